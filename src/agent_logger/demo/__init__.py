"""A scripted model API on loopback, and a conversation with it.

`agent-logger demo` plays the conversation and records it, with no key and no network. `tests/fakeapi` extends the same
server with more vendors' APIs and with faults.
"""
