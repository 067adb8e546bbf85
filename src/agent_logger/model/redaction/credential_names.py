"""Which names say that their value is a credential: of headers, query parameters, options, variables, JSON keys.

A name is a credential's if it has one of a few words in it, anywhere, for gateways make up names as they like. Names
that have such a word and hold no secret are in one table, `_HARMLESS`. Hiding too much costs a value that somebody
wanted to read; hiding too little costs a key. So a name that the table does not list is hidden.
"""

import re
from functools import cache, lru_cache

# Each credential's name has one of these: where none of them is, no name needs to be looked at.
WORDS = (
    b"key",
    b"token",
    b"secret",
    b"auth",
    b"pass",
    b"cookie",
    b"credential",
    b"sig",
    b"pwd",
    b"jwt",
    b"bearer",
)
_LONGEST_NAME = 256  # characters; a longer one is made to be odd, and not remembered

_CREDENTIAL = (
    r"key|token|secret|auth|passw|passphrase|passcode|cookie|credential|signature|jwt|bearer"
    r"|(?<![a-z])(?:pass|pwd|sig)(?![a-z])"
)
_HARMLESS = r"""
    # Keys that name a request, a place in a cache, a row; and the handshake of a WebSocket.
      (?:idempotency|sec-web-?socket|cache|surrogate|partition|foreign|sort|public)-?keys?\d?
    | key(?:board|word|note|stroke|map|bind(?:ing)?|frame|space)s?(?![a-z])
    | (?<![a-z])(?:mon|tur|don|whis|hoc|joc)keys?(?![a-z])
    | key-(?:spend|max-budget|[tr]pm-limit)         # what LiteLLM tells of a key
    | author(?:s|ed|ship|ity|ities)?(?![a-z])
    | (?:www|proxy)-authenticate                    # what a server asks for
    | access-control-(?:allow|expose|request|max)-[a-z-]*
    | (?:accept-signature|signature-(?:input|agent))
    | tokeni[sz](?:e|er|ers|ed|ing|ation)(?![a-z]) | (?<![a-z])(?:max|min|num)tokens
    | (?:page|next|continuation|sync|cursor|skip)-?token
    | ^(?:old)?pwd$                                 # a shell's folder
    | .*-request-?id$
    # About a credential: how it is sent, where it is kept, how long it holds.
    | (?:key|token|secret|auth|password|cookie|credentials?|signature)s?-?
      (?:type|mode|method|scheme|alg(?:orithm)?|expir(?:y|es|ation)(?:-(?:at|in))?|ttl|count|limit|budget|length|usage
        |file|path|dir|folder|jar|sock|url|uri|endpoint|env|helper|timeout|provider)$
    """
# Tokens that are counted: rate limits, usage, budgets.
_COUNTED = (
    r"(?<![a-z])(?:rate-?limit|limit|remaining|reset|max|min|input|output|prompt|completion|total|used|usage|count"
    r"|consumed|available|thinking|reasoning|budget|cached?|context|per|num)(?![a-z])"
)
_BETWEEN_WORDS = r"(?<=[a-z0-9])(?=[A-Z])|[^A-Za-z0-9]+"
# Patterns are compiled when they are needed: an agent waits for the hook that imports this module.
_compiled = cache(re.compile)


def is_credential_name(name: bytes) -> bool:
    """Whether the value of this name is to be hidden."""
    if len(name) > _LONGEST_NAME:
        return _is_credential_name(name)
    return _remembered(name)


def _is_credential_name(name: bytes) -> bool:
    text = name.decode("latin-1").strip()
    if "authoriz" in text.lower():
        return True
    words = _compiled(_BETWEEN_WORDS).sub("-", text).lower().lstrip("-")
    telling = _telling(words)
    if _compiled(_CREDENTIAL).search(telling):
        return True
    # A word may be spelled so that it seems to be two; but then nothing in it was found to be harmless.
    return telling == words and _compiled(_CREDENTIAL).search(text.lower()) is not None


def _telling(words: str) -> str:
    """The words of a name without the harmless ones."""
    if "tokens" in words and _compiled(_COUNTED).search(words):
        words = words.replace("tokens", "")
    return _compiled(_HARMLESS, re.VERBOSE).sub("", words)


_remembered = lru_cache(4096)(_is_credential_name)
