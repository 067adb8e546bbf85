"""Which parts of a command line are credentials: they are hidden in the record of a run, and recognised by their
value."""

import json
import os
import re
from collections.abc import Iterator, Sequence
from typing import Any, NamedTuple

from agent_logger.model.redaction.credential_names import is_credential_name
from agent_logger.model.redaction.redactor import credentials_of

HIDDEN = "[redacted]"
_HEADER_OPTIONS = {"-H", "--header", "--headers", "--proxy-header", "--request-header"}
_USER_OPTIONS = {"-u", "--user", "-U", "--proxy-user"}
_OPTION = re.compile(r"--?([A-Za-z][\w.-]*)")
_SWITCH = re.compile(r"(?:no|skip|disable|enable|without|print|show|list|require|allow)-")  # takes no value
_USER = re.compile(r"[^:/\s]+:(\S+)")
_NAME_ALONE = re.compile(r"(?:\S*[/:.])?([A-Za-z_][\w-]*)")  # a name as in `config set NAME VALUE`
_RANDOM_WORD = re.compile(r"(?=.*[a-z])(?=.*[A-Z])(?=.*\d)[\w+=~-]{16,}")
_SCRIPT_OPTION = re.compile(r"-[a-z]*c|-e|--command|--eval")  # options with a script as their value
_TEXT = r"""(?:"((?:[^"\\]|\\.)*)"|'([^']*)'|([^\s"'`;&,(){}\[\]]+))"""
_SCHEME = r"(?:(?i:bearer|basic|token|oauth|api-?key)\s+)?"
# Each names a credential in its first group, and has the value in its last. What is the whole argument is sure to be
# meant so; what is found inside one, in a script or a prompt, is only hidden there, unless it looks like a secret.
_WHOLE = (
    re.compile(r"--?([A-Za-z][\w.-]*)=(.+)", re.DOTALL),
    re.compile(r"""([A-Za-z_][\w.-]*)=["']?([^"']+)["']?""", re.DOTALL),
    re.compile(r"(?:-H\s*|--?)?([A-Za-z][\w-]*):\s*" + _SCHEME + r"(\S+)"),
)
_INSIDE = (
    re.compile(r"""["']?(?<![\w.-])([A-Za-z_][\w.-]*)["']?\s*=\s*""" + _SCHEME + _TEXT),
    re.compile(r"""(?<![\w.-])([A-Za-z][\w-]*):\s*""" + _SCHEME + r"""([^\s"'`;&,(){}\[\]]{8,})"""),
    re.compile(r'"([^"\\]{1,100})"\s*[:=]\s*"' + _SCHEME + r'((?:[^"\\]|\\.)*)"'),
    re.compile(r"'([^'\\]{1,100})'\s*:\s*'" + _SCHEME + r"([^']*)'"),
    re.compile(r'\\"([^"\\]{1,100})\\{1,8}"\s*[:=]\s*\\{1,8}"' + _SCHEME + r'([^"\\]*)\\'),
    re.compile(r"""["']([^"'\\]{1,100})\\{0,8}["']\s*[:=]\s*(\d[\d.]{5,})"""),
    re.compile(r"(?:%26|%3[Ff])([\w.-]+)%3[Dd]([^\s%&\"']+)"),
    re.compile(r"(?:^|\s)--?([A-Za-z][\w-]+)(?:\s+(?!-)|=)" + _TEXT),
)
# Users with their passwords, wherever they stand, and tokens in place of a user. What `$` or a bracket begins is a
# place for a password, not one.
_UNNAMED = (
    re.compile(r"""(?:^|\s)(?:-[uU](?!r[il]:)\s*|--(?:proxy-)?user[\s=]\s*)["']?[^:/\s"']+:([^\s"'/$<{*][^\s"']*)"""),
    re.compile(r"""://[^\s/?#@:"'`<>]{0,128}:(?![$<{*]|%[s(])([^\s/?#@"'`<>]{1,256})@"""),
    re.compile(r"""://([\w.~-]{16,256})(?::x-oauth-basic)?@"""),
)


_JSON_STRING = re.compile(r'"((?:[^"\\]|\\.)*)"')


class _Secret(NamedTuple):
    start: int
    end: int
    sure: bool  # false: the text may be a word of a prompt
    name: str = "password"


def _looks_random(value: str) -> bool:
    return len(value) >= 8 and re.search(r"\d", value) is not None and re.search("[A-Za-z]", value) is not None


def hidden_arguments(words: Sequence[str]) -> list[str]:
    """The words of a command line without the values that options, headers and assignments name as credentials."""
    arguments = []
    for word, secrets in zip(words, _secrets(words), strict=True):
        at, pieces = 0, []
        for secret in sorted(secrets):
            if secret.start >= at:
                pieces += [word[at : secret.start], HIDDEN]
            at = max(at, secret.end)
        arguments.append("".join([*pieces, word[at:]]))
    return arguments


def argument_credentials(words: Sequence[str]) -> list[bytes]:
    """The values of the credentials that a command is given by its words."""
    values = [
        value
        for word, secrets in zip(words, _secrets(words), strict=True)
        for secret in secrets
        if secret.sure or _looks_random(word[secret.start : secret.end])
        for value in _values(secret.name, word[secret.start : secret.end])
    ]
    return list(dict.fromkeys(values))


def _values(name: str, text: str) -> tuple[bytes, ...]:
    """The values of a credential as they may be printed: without quotes and schemes, each cookie alone."""
    return credentials_of([(os.fsencode(name), os.fsencode(text.strip("'\"")))])


def _secrets(words: Sequence[str]) -> Iterator[list[_Secret]]:
    before = ""
    for word in words:
        yield _after(before, word) or [*_named(word, is_script=bool(_SCRIPT_OPTION.fullmatch(before)))]
        before = word


def _after(before: str, word: str) -> list[_Secret]:
    """The secrets in a word, by what the word before it says."""
    if before in _USER_OPTIONS and (user := _USER.fullmatch(word)):
        return [_Secret(*user.span(1), sure=True)]
    if before in _HEADER_OPTIONS:
        name, _, value = word.partition(":")
        secrets = credentials_of([(os.fsencode(name.strip()), os.fsencode(value.strip()))])
        places = [(word.find(text, len(name)), text) for text in map(os.fsdecode, secrets)]
        return [_Secret(at, at + len(text), sure=True) for at, text in places if at >= 0]
    option = _OPTION.fullmatch(before)
    if option and not _SWITCH.match(option[1]) and is_credential_name(os.fsencode(option[1])):
        if word and (not word.startswith("-") or _RANDOM_WORD.fullmatch(word)):
            # A text with blanks may be a prompt.
            return [_Secret(0, len(word), sure=not re.search(r"\s", word), name=option[1])]
        return []
    name_alone = _NAME_ALONE.fullmatch(before)
    if name_alone and is_credential_name(os.fsencode(name_alone[1])) and _RANDOM_WORD.fullmatch(word):
        return [_Secret(0, len(word), sure=True)]
    return []


def _named(word: str, *, is_script: bool) -> Iterator[_Secret]:
    for pattern in () if is_script else _WHOLE:
        match = pattern.fullmatch(word)
        if match and is_credential_name(os.fsencode(match[1])):
            yield _Secret(*match.span(2), sure=True, name=match[1])
    for pattern in _INSIDE:
        for match in pattern.finditer(word):
            group = match.lastindex or 1
            if group > 1 and match[group] and is_credential_name(os.fsencode(match[1])):
                yield _Secret(*match.span(group), sure=word.startswith(("{", "[")), name=match[1])
    for pattern in _UNNAMED:
        yield from (_Secret(*match.span(1), sure=False) for match in pattern.finditer(word))
    if word.startswith(("{", "[")):
        yield from _in_json(word)


def _in_json(word: str) -> Iterator[_Secret]:
    """The strings below a credential's name, in a list or deeper: among them may be others that are no secrets."""
    try:
        texts = set(_texts_below(json.loads(word), is_secret=False))
    except (ValueError, RecursionError):
        return
    for match in _JSON_STRING.finditer(word) if texts else ():
        if json.loads(match[0], strict=False) in texts:
            yield _Secret(*match.span(1), sure=False)


def _texts_below(value: Any, *, is_secret: bool) -> Iterator[str]:
    if isinstance(value, str) and is_secret and value:
        yield value
    elif isinstance(value, list):
        for item in value:
            yield from _texts_below(item, is_secret=is_secret)
    elif isinstance(value, dict):
        for name, item in value.items():
            named = is_secret or is_credential_name(name.encode("utf-8", "surrogatepass"))
            yield from _texts_below(item, is_secret=named)
