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
import re
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, field
from functools import cached_property
from typing import Any, TypeVar

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
_SLASH = r"(?:\\{0,8}/|%2[Ff])"
# A name in a path: words with single blanks between them only if a slash follows.
_NAME = r"""[^\s/\\"'`<>|:*?;,()\[\]{}$&=#!%]|%(?!2[Ff])[0-9A-Fa-f]{2}"""
_WORDS = rf"(?:(?:{_NAME}|\\ ){{1,255}}(?: (?:{_NAME}){{1,64}}){{0,3}}(?={_SLASH}(?:{_NAME}))|(?:{_NAME}|\\ ){{1,255}})"
_BELOW = rf"(?P<below>(?:{_SLASH}{_WORDS})*)"
_WINDOWS_NAME = r"""[^\\/:*?"'<>|\r\n\t]"""
_WINDOWS = (
    rf"(?P<drive>[A-Za-z]:)(?P<sep>\\{{1,8}}|/)(?i:Users)"
    rf"(?P<windows>(?:(?P=sep){_WINDOWS_NAME}{{1,255}}(?=(?P=sep){_WINDOWS_NAME}))*"
    rf"(?:(?P=sep)(?:{_NAME}){{1,255}})?)"
)
_EMAIL = re.compile(
    rf"{_AFTER_NO_LETTER}[\w.%+-]{{1,64}}@(?:[A-Za-z0-9](?:[A-Za-z0-9-]{{0,61}}[A-Za-z0-9])?\.)+[A-Za-z]{{2,24}}(?![A-Za-z0-9])"
)
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
        if "emails" in self.kinds and "@" in text:
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
        exact = "|".join(_spelled(root) for root in roots) or "(?!)"
        encoded = "|".join(re.escape(_encoded(root)) for root in roots) or "(?!)"
        return re.compile(
            rf"(?P<exact>{_AFTER_NO_LETTER}(?:{exact})(?![A-Za-z0-9_-]))(?P<under>(?:{_SLASH}{_WORDS})*)"
            rf"|(?P<root>{_SLASH}(?:home|Users)(?={_SLASH}{_NAME})|(?:(?<![\w~./-])|(?<=\\[nrtbf]))~[\w-]*(?={_SLASH}{_NAME})){_BELOW}"
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
        if match["drive"] is not None:
            return f"{match['drive']}{match['sep']}Users{self._windows(match['windows'] or '', match['sep'])}"
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

    def _windows(self, below: str, separator: str) -> str:
        return separator.join(map(self._pseudonym, below.split(separator)))

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
        spelled = (r"(?:\s|\\[nt]|%20|\+|\\u00a0)+".join(map(re.escape, name.split())) for name in names)
        return re.compile(rf"{_AFTER_NO_LETTER}(?:{'|'.join(spelled)}){_BEFORE_NO_LETTER}", re.IGNORECASE)

    def _name(self, match: re.Match[str]) -> str:
        self._count("names")
        return f"name-{self.pseudonyms.of('name', ' '.join(match[0].lower().split()))}"

    # ------------------------------------------------------------ sessions and lines

    def session(self, session: Session) -> Session:
        """Return the session with pseudonyms in all its texts. Secrets are removed first: half a key looks like
        none."""
        return self._model(session) if self.kinds else session

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
            ("emails" in self.kinds and "@" in text and _EMAIL.search(text))
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
    slash = r"(?:\\{1,8}|\\{0,8}/|%2[Ff]|%5[Cc])"
    return slash.join(r"(?: |\\ |%20)".join(map(re.escape, name.split(" "))) for name in names)


def _plain(spelled: str) -> str:
    return re.sub(r"\\{0,8}/|%2[Ff]|%5[Cc]|\\(?=\S)", "/", spelled.replace("%20", " ").replace("\\ ", " "))


def _encoded(path: str) -> str:
    """Return the form that agents give to a path for the name of a folder."""
    return re.sub(r"[^A-Za-z0-9]", "-", path)
