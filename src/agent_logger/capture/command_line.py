"""Which parts of a command line are credentials: they are hidden in the record of a run, and known by their value."""

import os
import re
from collections.abc import Iterator, Sequence
from typing import NamedTuple

from agent_logger.credential_names import is_credential_name
from agent_logger.redact import credentials_of

HIDDEN = "[redacted]"
_HEADER_OPTIONS = {"-H", "--header", "--headers", "--proxy-header", "--request-header"}
_USER_OPTIONS = {"-u", "--user", "-U", "--proxy-user"}
_OPTION = re.compile(r"--?([A-Za-z][\w.-]*)")
_SWITCH = re.compile(r"(?:no|skip|disable|enable|without|print|show|list|require|allow)-")  # takes no value
_USER = re.compile(r"[^:/\s]+:(\S+)")
_SCRIPT_OPTION = re.compile(r"-[a-z]*c|-e|--command|--eval")  # what follows is more than one word
_TEXT = r"""(?:"((?:[^"\\]|\\.)*)"|'([^']*)'|([^\s"'`;&,(){}\[\]]+))"""
_SCHEME = r"(?:(?i:bearer|basic|token|oauth|api-?key)\s+)?"
# Each names a credential in its first group, and has the value in its last. What is the whole argument is sure to be
# meant so; what is found inside one, in a script or a prompt, is only hidden there, unless it looks like a secret.
_WHOLE = (
    re.compile(r"--?([A-Za-z][\w.-]*)=(.+)", re.DOTALL),
    re.compile(r"""([A-Za-z_][\w.-]*)=["']?([^"']+)["']?""", re.DOTALL),
    re.compile(r"(?:-H\s*)?([A-Za-z][\w-]*):\s*" + _SCHEME + r"(\S+)"),
)
_INSIDE = (
    re.compile(r"""["']?(?<![\w.-])([A-Za-z_][\w.-]*)["']?\s*=\s*""" + _SCHEME + _TEXT),
    re.compile(r"""(?<![\w.-])([A-Za-z][\w-]*):\s*""" + _SCHEME + r"""([^\s"'`;&,(){}\[\]]{8,})"""),
    re.compile(r'"([^"\\]{1,100})"\s*[:=]\s*"' + _SCHEME + r'((?:[^"\\]|\\.)*)"'),
    re.compile(r"(?:^|\s)--?([A-Za-z][\w-]+)(?:\s+(?!-)|=)" + _TEXT),
)


class _Secret(NamedTuple):
    start: int
    end: int
    sure: bool  # else it may be a word of a prompt


def _looks_random(value: str) -> bool:
    return (
        len(value) >= 8 and re.search(r"\d", value) is not None and re.search("[A-Za-z]", value) is not None
    )


def hidden_arguments(words: Sequence[str]) -> list[str]:
    """The words of a command line without the values that options, headers and assignments name as credentials."""
    shown = []
    for word, secrets in zip(words, _secrets(words), strict=True):
        at, pieces = 0, []
        for secret in sorted(secrets):
            if secret.start >= at:
                pieces += [word[at : secret.start], HIDDEN]
            at = max(at, secret.end)
        shown.append("".join([*pieces, word[at:]]))
    return shown


def argument_credentials(words: Sequence[str]) -> list[bytes]:
    """The values of the credentials that a command is given by its words."""
    values = [
        word[secret.start : secret.end]
        for word, secrets in zip(words, _secrets(words), strict=True)
        for secret in secrets
        if secret.sure or _looks_random(word[secret.start : secret.end])
    ]
    return [os.fsencode(value) for value in dict.fromkeys(values)]


def _secrets(words: Sequence[str]) -> Iterator[list[_Secret]]:
    before = ""
    for word in words:
        yield _after(before, word) or [*_named(word, is_script=bool(_SCRIPT_OPTION.fullmatch(before)))]
        before = word


def _after(before: str, word: str) -> list[_Secret]:
    """What the word is to the option before it."""
    if before in _USER_OPTIONS and (user := _USER.fullmatch(word)):
        return [_Secret(*user.span(1), sure=True)]
    if before in _HEADER_OPTIONS:
        name, _, value = word.partition(":")
        secrets = credentials_of([(os.fsencode(name.strip()), os.fsencode(value.strip()))])
        places = [(word.find(text, len(name)), text) for text in map(os.fsdecode, secrets)]
        return [_Secret(at, at + len(text), sure=True) for at, text in places if at >= 0]
    option = _OPTION.fullmatch(before)
    takes_secret = option and not _SWITCH.match(option[1]) and is_credential_name(os.fsencode(option[1]))
    if takes_secret and word and not word.startswith("-"):
        return [_Secret(0, len(word), sure=not re.search(r"\s", word))]  # with blanks it may be a prompt
    return []


def _named(word: str, *, is_script: bool) -> Iterator[_Secret]:
    for pattern in _WHOLE:
        found = None if is_script else pattern.fullmatch(word)
        if found and is_credential_name(os.fsencode(found[1])):
            yield _Secret(*found.span(2), sure=True)
            return
    for pattern in _INSIDE:
        for found in pattern.finditer(word):
            group = found.lastindex or 1
            if group > 1 and found[group] and is_credential_name(os.fsencode(found[1])):
                yield _Secret(*found.span(group), sure=word.startswith(("{", "[")))
