r"""Masks: paths, names and e-mail addresses of a machine become pseudonyms, the same for the same text.

`paths`: home folders of any user (`/home/*`, `/Users/*`, `C:\Users\*`, `~`), the session's working folder, and what
lies below them, folder by folder; also in the form that agents give to the names of project folders (`-home-ann-app`).
`names`: the login, the user's full name, the name of the host, the authors in the git repository of the session, and
the words of `[mask]` in the settings, wherever no letter or digit stands beside them, in upper or lower case.
`emails`: e-mail addresses. Nothing else is promised.

A text may be JSON in JSON or a URL: escapes and percent-encodings of separators are allowed for. Pseudonyms are
HMACs under the key of this installation.
"""

import hmac
import html
import re
import unicodedata
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, field
from functools import cached_property
from typing import Any, TypeVar
from urllib.parse import unquote

import msgspec
from msgspec.structs import replace

from agent_logger.agents.registry import AGENTS
from agent_logger.model.redaction.redactor import hidden
from agent_logger.model.session import AGENT_PREFIX, Model, Session

KINDS = ("paths", "names", "emails")
# Words of the formats themselves: one that is the login, too, stays where it is all that a text says.
_FORMAT_WORDS = frozenset(
    {"agent", "api", "assistant", "content", "default", "developer", "file", "home", "id", "main"}
    | {"message", "model", "name", "path", "role", "root", "session", "system", "text", "tool", "type", "user"}
).union(*((agent.name, *agent.aliases) for agent in AGENTS))
_AFTER_NO_LETTER = r"(?:(?<![A-Za-z0-9])|(?<=\\[nrtbf])|(?<=%[0-9A-Fa-f]{2})|(?<=\\u[0-9A-Fa-f]{4}))"
_BEFORE_NO_LETTER = r"(?![A-Za-z0-9])"
# A slash as JSON, URLs and HTML spell it, and slashes in a row, which mean one.
_ONE_SLASH = r"(?:\\{0,8}/|%(?:25){0,3}2[Ff]|\\{1,8}u002[Ff]|&#(?:x2[Ff]|47);)"
_SLASH = rf"(?:{_ONE_SLASH}{{1,4}})"
_NAME = r"""[^\s/\\"'`<>|:*?;,()\[\]{}$&=#!%]|%(?!(?:25){0,3}2[Ff]|5[Cc])[0-9A-Fa-f]{2}"""
# What may be in a name, too, but rather ends a path: if a letter or a slash and a name follow, or if it is a word in
# brackets, as in the routes of web applications.
_GOES_ON = rf"""(?=[^\s/\\"'`<>|:*?]{{0,64}}{_SLASH}(?:{_NAME}|[(\[{{$#]))"""
_IN_BRACKETS = r"\[[\w.$-]{1,64}\]|\([\w.$-]{1,64}\)"
_ODD = rf"""(?:(?<=\w)[',](?=\w)|[()\[\]{{}}$&=#!;]{_GOES_ON}|{_IN_BRACKETS})"""
# A name in a path: words with single blanks between them only if a slash follows.
_WORD = rf"(?:{_NAME}|{_ODD}|\\ ){{1,255}}"
_WORDS = rf"(?:{_WORD}(?: (?:{_NAME}){{1,64}}){{0,3}}(?={_SLASH}(?:{_NAME}))|{_WORD})"
_BELOW = rf"(?P<below>(?:{_SLASH}{_WORDS})*)"
_BACKSLASH = r"(?:\\{1,8}|/|%(?:25){0,3}5[Cc])"
# Between the words of a name.
_BETWEEN = r"(?:\s|\\[nrt]|%(?:25){0,3}20|[+._-]|&nbsp;|\\{1,8}u00(?:20|a0))"
_WINDOWS_NAME = r"""[^\\/:*?"'<>|\r\n\t]"""


def _below_windows(separator: str) -> str:
    """Return a pattern for names of Windows, with the separator that a group of this name has."""
    return (
        rf"(?:(?P={separator}){_WINDOWS_NAME}{{1,255}}?(?=(?P={separator}){_WINDOWS_NAME}))*"
        rf"(?:(?P={separator})(?:{_NAME}|{_ODD}){{1,255}})?"
    )


_WINDOWS = (
    rf"(?P<drive>[A-Za-z](?::|%(?:25){{0,3}}3[Aa])|\\{{2,16}}(?i:wsl)(?:\.localhost|\$)\\{{1,8}}[\w.-]{{1,64}})"
    rf"(?P<sep>{_BACKSLASH}|%2[Ff])(?P<users>(?i:Users|home))"
    rf"(?P<windows>{_below_windows('sep')})"
)
_EMAIL = re.compile(
    rf"{_AFTER_NO_LETTER}[\w.%+-]{{1,64}}(?:@|%(?:25){{0,3}}40|\\{{1,8}}u0040|&#(?:64|x40);)"
    r"(?:[^\W_](?:[\w-]{0,61}[^\W_])?\.)+[^\W\d_]{2,24}(?![A-Za-z0-9])"
)
_AT = re.compile(r"@|40|64")
_SUFFIX = re.compile(r"[^.].*?(\.[A-Za-z0-9]{1,5})")
# Fields with words of programs.
_WORD_FIELDS = {
    "kind",
    "thread",
    "parent_thread",
    "end_reason",
    "stop_reason",
    "joined_by",
    "field",
    "witness",
    "trigger",
}
_STRING = re.compile(rb'"(?:[^"\\]|\\.|(?!))*+"')
_DIGITS = 8

M = TypeVar("M", bound=Model)


class Pseudonyms:
    """Pseudonyms under one key."""

    def __init__(self, key: bytes) -> None:
        self._key = key
        self._made: dict[tuple[str, str], str] = {}

    def of(self, kind: str, text: str) -> str:
        if (kind, text) not in self._made:
            data = f"mask\n{kind}\n{text}".encode("utf-8", "surrogatepass")
            self._made[kind, text] = hmac.digest(self._key, data, "sha256").hex()[:_DIGITS]
        return self._made[kind, text]


@dataclass(frozen=True, slots=True)
class Machine:
    """What a mask hides of the machine and of one session."""

    homes: tuple[str, ...] = ()  # home folders that are not below /home or /Users, and the session's working folder
    names: tuple[str, ...] = ()


@dataclass(eq=False)
class SessionMask:
    """Masks texts of one session."""

    kinds: frozenset[str]
    pseudonyms: Pseudonyms
    machine: Machine
    # How many texts were replaced, by kind.
    counts: dict[str, int] = field(default_factory=dict)

    def text(self, text: str) -> str:
        """Return the text with pseudonyms."""
        if not self.kinds or not text:
            return text
        if "emails" in self.kinds and _AT.search(text):
            text = _EMAIL.sub(self._email, text)
        if "paths" in self.kinds:
            text = self._paths.sub(self._path, text) if self._may_have_path(text) else text
        if self._names and text.lower() not in _FORMAT_WORDS:
            text = self._names.sub(self._name, text)
        return text

    def _count(self, kind: str) -> None:
        self.counts[kind] = self.counts.get(kind, 0) + 1

    # ------------------------------------------------------------ e-mail addresses

    def _email(self, match: re.Match[str]) -> str:
        if match[0].endswith(".invalid"):
            return match[0]
        self._count("emails")
        return f"{self.pseudonyms.of('email', match[0].lower())}@masked.invalid"

    # ------------------------------------------------------------ paths

    @cached_property
    def _paths(self) -> re.Pattern[str]:
        roots = sorted(self.machine.homes, key=len, reverse=True)
        exact = "|".join(_spelled(root) for root in roots if not _is_of_windows(root)) or "(?!)"
        of_windows = "|".join(_spelled(root) for root in roots if _is_of_windows(root)) or "(?!)"
        encoded = "|".join(re.escape(_encoded(root)) for root in roots) or "(?!)"
        return re.compile(
            rf"(?P<exact>{_AFTER_NO_LETTER}(?:{exact})(?![A-Za-z0-9_-]))(?P<under>(?:{_SLASH}{_WORDS})*)"
            rf"|(?P<root>{_SLASH}(?:home|Users)(?={_SLASH}{_NAME})|(?:(?<![\w~./-])|(?<=\\[nrtbf]))~[\w-]*(?={_SLASH}{_NAME})){_BELOW}"
            rf"|(?P<disk>{_AFTER_NO_LETTER}(?i:{of_windows})(?![A-Za-z0-9_-]))"
            rf"(?P<inside>(?:(?=(?P<split>{_BACKSLASH})){_below_windows('split')})?)"
            rf"|{_WINDOWS}"
            rf"|{_AFTER_NO_LETTER}(?P<project>-(?:home|Users)-[A-Za-z0-9]|{encoded})(?P<rest>[A-Za-z0-9-]*)"
        )

    def _may_have_path(self, text: str) -> bool:
        """Whether the text may contain a path that is masked: a search for words is faster than the pattern."""
        return any(word in text for word in self._path_words) or "users" in text.lower()

    @cached_property
    def _path_words(self) -> tuple[str, ...]:
        words = (re.findall(r"[A-Za-z0-9]+", root) for root in self.machine.homes)
        return tuple(dict.fromkeys(("home", "~", *(max(own, key=len) for own in words if own))))

    def _path(self, match: re.Match[str]) -> str:
        self._count("paths")
        if match["exact"] is not None:
            return self._exact(_plain(match["exact"])) + self._below(match["under"])
        if match["disk"] is not None:
            return f"/home/{self._pseudonym(_plain_of_windows(match['disk']))}{self._windows(match['inside'])}"
        if match["drive"] is not None:
            return f"{match['drive']}{match['sep']}{match['users']}{self._windows(match['windows'])}"
        if match["project"] is not None:
            if _IS_FOLDER_PSEUDONYM.fullmatch(match[0]):
                return match[0]
            return f"-home-p-{self.pseudonyms.of('path', match['project'] + match['rest'])}"
        root = "~" if match["root"].startswith("~") else match["root"]
        return f"{root}{self._below(match['below'])}"

    def _exact(self, path: str) -> str:
        """Return the pseudonym of one of the machine's folders: below the outermost of them, name by name."""
        if generic := re.fullmatch(r"(/home|/Users)(/.+)", path):
            return generic[1] + self._below(generic[2])
        roots = [root for root in self.machine.homes if path == root or path.startswith(f"{root}/")]
        root = min(roots, key=len, default=path)
        return f"/home/{self._pseudonym(root.replace('.', '_'))}{self._below(path[len(root) :])}"

    def _below(self, below: str) -> str:
        """Return the names of a path as pseudonyms, with their slashes as they are spelled."""
        parts = re.split(rf"({_SLASH})", below)
        return "".join(part if number % 2 else self._pseudonym(part) for number, part in enumerate(parts))

    def _windows(self, below: str) -> str:
        parts = re.split(rf"({_BACKSLASH}|%2[Ff])", below)
        return "".join(part if number % 2 else self._pseudonym(part) for number, part in enumerate(parts))

    def _pseudonym(self, name: str) -> str:
        """Return the pseudonym of a name in a path. The suffix of a file stays, and so do dots at the end, which may
        end a sentence."""
        plain = name.rstrip(".")
        if not plain or _IS_PSEUDONYM.fullmatch(plain):
            return name
        suffix = _SUFFIX.fullmatch(plain)
        return f"p-{self.pseudonyms.of('path', plain)}{suffix[1] if suffix else ''}{name[len(plain) :]}"

    # ------------------------------------------------------------ names

    @cached_property
    def _names(self) -> re.Pattern[str] | None:
        names = sorted({name.strip() for name in self.machine.names} - {""}, key=len, reverse=True)
        if "names" not in self.kinds or not names:
            return None
        spelled = (rf"{_BETWEEN}+".join(map(_spelled_word, name.split())) for name in names)
        return re.compile(rf"{_AFTER_NO_LETTER}(?:{'|'.join(spelled)}){_BEFORE_NO_LETTER}", re.IGNORECASE)

    def _name(self, match: re.Match[str]) -> str:
        self._count("names")
        return f"name-{self.pseudonyms.of('name', _plain_name(match[0]))}"

    # ------------------------------------------------------------ sessions and lines

    def session(self, session: Session) -> Session:
        """Return the session with pseudonyms in all its texts. Secrets are removed first: half a key looks like
        none."""
        if not self.kinds:
            return session
        exchanges = [*reversed(session.exchanges)]
        session = replace(session, exchanges=[])
        # One after the other, so that a long session is in memory once.
        masked = [self._model(exchanges.pop()) for _ in range(len(exchanges))]
        return replace(self._model(session), exchanges=masked)

    def _model(self, model: M) -> M:
        changes = {}
        for name in model.__struct_fields__:
            value = getattr(model, name)
            masked = self._field(name, value)
            if masked is not value:
                changes[name] = masked
        return replace(model, **changes) if changes else model

    def _field(self, name: str, value: Any) -> Any:
        match value:
            case str():
                return self._word(value) if name in _WORD_FIELDS else self._hidden(value)
            case Model():
                return self._model(value)
            case dict():
                return mapped(value, self._hidden)
            case list() | tuple():
                items = [self._field(name, item) for item in value]
                changed = any(new is not old for new, old in zip(items, value, strict=True))
                return type(value)(items) if changed else value
        return value

    def _word(self, text: str) -> str:
        """Return a value that programs compare: it stays if it is one of their words, and keeps the prefix of a
        thread."""
        if re.fullmatch(r"[a-z_ ]{1,40}", text):
            return text
        prefix = AGENT_PREFIX if text.startswith(AGENT_PREFIX) else ""
        return prefix + self._hidden(text.removeprefix(prefix))

    def _hidden(self, text: str) -> str:
        return self.text(hidden(text))

    def line(self, line: bytes) -> bytes:
        """Return a line of JSON, which has no secrets, with pseudonyms in its strings. All else stays byte for
        byte."""
        if not self.kinds or not (b"\\u" in line or self.finds(line.decode("utf-8", "replace"))):
            return line
        return _STRING.sub(lambda match: self._string(match[0]), line)

    def finds(self, text: str) -> bool:
        """Whether anything in the text is to be masked."""
        return bool(
            ("emails" in self.kinds and _AT.search(text) and _EMAIL.search(text))
            or ("paths" in self.kinds and self._may_have_path(text) and self._paths.search(text))
            or (self._names and self._names.search(text))
        )

    def finds_left(self, text: str) -> bool:
        """Whether a masked text has anything left that is to be masked. A name that is a word of the formats, too,
        cannot be judged."""
        names = tuple(name for name in self.machine.names if name.lower() not in _FORMAT_WORDS)
        probe = SessionMask(self.kinds, self.pseudonyms, Machine(self.machine.homes, names))
        return probe.text(text) != text

    def _string(self, string: bytes) -> bytes:
        try:
            text = msgspec.json.decode(string, type=str)
        except (ValueError, UnicodeDecodeError):  # no JSON after all, or half a character
            text = string.decode("utf-8", "surrogateescape")
            return self.text(text).encode("utf-8", "surrogateescape")
        masked = self.text(text)
        return string if masked == text else msgspec.json.encode(masked)


_IS_PSEUDONYM = re.compile(rf"p-[0-9a-f]{{{_DIGITS}}}(?:\.[A-Za-z0-9]{{1,5}})?")
_IS_FOLDER_PSEUDONYM = re.compile(rf"-home-p-[0-9a-f]{{{_DIGITS}}}")
NO_MASK = SessionMask(frozenset(), Pseudonyms(bytes(32)), Machine())


class Masks:
    """Masks of the sessions of one export: each session has a working folder and a repository of its own."""

    def __init__(
        self, kinds: Iterable[str], key: bytes, machine: Machine, authors_of: Callable[[str], Iterable[str]]
    ) -> None:
        self.kinds, self._machine = frozenset(kinds), machine
        self._pseudonyms = Pseudonyms(key)
        self._authors_of = authors_of
        self._masks: dict[str | None, SessionMask] = {}

    def of(self, project: str | None) -> SessionMask:
        if project not in self._masks:
            self._masks[project] = SessionMask(self.kinds, self._pseudonyms, self._with(project))
        return self._masks[project]

    def _with(self, project: str | None) -> Machine:
        if not project or not self.kinds:
            return self._machine
        authors = tuple(self._authors_of(project)) if "names" in self.kinds else ()
        homes = (project.rstrip("/\\"),) if len(project) > 1 else ()
        return Machine(tuple(dict.fromkeys((*self._machine.homes, *homes))), (*self._machine.names, *authors))

    @property
    def all(self) -> Iterable[SessionMask]:
        """The masks that were used."""
        return self._masks.values()

    @property
    def counts(self) -> Mapping[str, int]:
        """How many texts were replaced, by kind."""
        total: dict[str, int] = {}
        for mask in self._masks.values():
            for kind, count in mask.counts.items():
                total[kind] = total.get(kind, 0) + count
        return total


def mapped(value: Any, function: Callable[[str], str]) -> Any:
    """Return a JSON value with a function applied to all its texts, and itself where no text changed."""
    if isinstance(value, str):
        return function(value)
    if isinstance(value, Mapping):
        pairs = {mapped(key, function): mapped(item, function) for key, item in value.items()}
        return pairs if pairs != value else value
    if isinstance(value, list | tuple):
        items = [mapped(item, function) for item in value]
        return items if items != list(value) else value
    return value


def _spelled(path: str) -> str:
    """Return a pattern for a path, however JSON or a URL spells its slashes and blanks."""
    names = re.split(r"[/\\]+", path)
    spelled = [r"(?: |\\ |%20)".join(map(re.escape, name.split(" "))) for name in names]
    first = "" if spelled[0] else _ONE_SLASH + spelled.pop(0) + spelled.pop(0)
    return rf"(?:{_SLASH}|{_BACKSLASH})".join([first, *spelled] if first else spelled)


def _spelled_word(word: str) -> str:
    """Return a pattern for a word of a name, however JSON, a URL or HTML spells its characters."""
    return "".join(map(_spelled_character, unicodedata.normalize("NFC", word)))


def _spelled_character(character: str) -> str:
    if character.isascii() and character.isalnum():
        return character
    forms = dict.fromkeys((character, character.lower(), character.upper()))
    spelled = [re.escape(each) for form in forms for each in (form, unicodedata.normalize("NFD", form))]
    for form in forms:
        units = form.encode("utf-16-be", "surrogatepass")
        spelled.append("".join(rf"\\{{1,8}}u{units[at : at + 2].hex()}" for at in range(0, len(units), 2)))
        spelled.append("".join(f"%(?:25){{0,3}}{byte:02x}" for byte in form.encode("utf-8", "surrogatepass")))
        spelled.append("".join(f"&#(?:{ord(each)}|x0*{ord(each):x});" for each in form))
    slashes = r"\\{0,8}" if character in "'\"" else ""
    return f"{slashes}(?:{'|'.join(dict.fromkeys(spelled))})"


def _plain_name(spelled: str) -> str:
    """Return a name as it was before something was spelled for JSON, a URL or HTML."""
    plain = re.sub(r"\\{1,8}u([0-9A-Fa-f]{4})", lambda match: chr(int(match[1], 16)), spelled)
    plain = html.unescape(unquote(plain.replace("%25", "%")))
    plain = re.sub(_BETWEEN, " ", plain.encode("utf-16", "surrogatepass").decode("utf-16", "replace"))
    return unicodedata.normalize("NFC", " ".join(plain.replace("\\", "").lower().split()))


def _plain(spelled: str) -> str:
    return re.sub(rf"{_SLASH}|{_BACKSLASH}", "/", spelled.replace("%20", " ").replace("\\ ", " "))


def _is_of_windows(path: str) -> bool:
    return re.match(r"[A-Za-z]:", path) is not None


def _plain_of_windows(spelled: str) -> str:
    return re.sub(r"[\\/]+|%5[Cc]|%2[Ff]", "/", spelled.replace("%20", " ")).lower().replace(".", "_")


def _encoded(path: str) -> str:
    """Return the form that agents give to a path for the name of a folder."""
    return re.sub(r"[^A-Za-z0-9]", "-", path)
