"""The exceptions a caller can act on, one per decision.

Recording itself raises none of them: what cannot be written is counted (`Journal.lost`)
and marked in the log.
"""


class AgentLoggerError(Exception):
    """The base of all errors here. The message is one line for a person: what is wrong, where, and what to do."""


class ConfigError(AgentLoggerError):
    """A setting has a value it cannot have. Names the setting, its source and what is allowed."""


class StoreError(AgentLoggerError):
    """A folder or file of ours cannot be used or written. The error of the system, if there is one, is its cause."""


class SourceError(AgentLoggerError):
    """A file broke its own format where no reader could go on."""
