"""How much of which project is shared: the table `[share]` of the settings, and its lines as `share` writes them."""

import tomllib
from collections.abc import Mapping
from fnmatch import fnmatchcase
from pathlib import Path
from typing import NamedTuple, cast

import msgspec

from agent_logger.errors import ConfigError
from agent_logger.push.protocol import LEVELS, Level

EVERYTHING = "*"
DEFAULT: Level = "numbers"
LEVELS_TABLE = "share.levels"


class ShareRules(NamedTuple):
    """The levels of projects, and the names under which they are shared. Of several patterns that match a project, the
    last one counts."""

    levels: Mapping[str, Level]
    names: Mapping[str, str]

    def level_of(self, project: str | None) -> Level:
        level: Level = DEFAULT
        for pattern, pattern_level in sorted(self.levels.items(), key=lambda item: item[0] != EVERYTHING):
            if is_match(pattern, project):
                level = pattern_level
        return level

    def name_of(self, project: str) -> str | None:
        """Return the name that the owner gave to a project; None if it has none."""
        names = [name for pattern, name in self.names.items() if is_match(pattern, project)]
        return names[-1] if names else None


def is_match(pattern: str, project: str | None) -> bool:
    """Whether a pattern means a project: its folder, one above it, or everything."""
    if pattern == EVERYTHING:
        return True
    if project is None:
        return False
    path = str(Path(pattern).expanduser()).rstrip("/") if pattern.startswith("~") else pattern.rstrip("/")
    return fnmatchcase(project, path) or fnmatchcase(project, f"{path}/*")


def share_rules(table: Mapping[str, object], file: Path | None) -> ShareRules:
    """Return the rules that the table `[share]` holds. Raises `ConfigError`."""
    unknown = set(table) - {"levels", "names"}
    levels, names = table.get("levels", {}), table.get("names", {})
    if unknown or not _is_texts(levels) or not _is_texts(names):
        raise ConfigError(f"{file}: [share] may have the tables [share.levels] and [share.names], of texts")
    for pattern, level in cast("Mapping[str, str]", levels).items():
        if level not in LEVELS:
            raise ConfigError(f"{file}: [share.levels] {pattern!r} is {level!r}; use {', '.join(LEVELS)}")
    return ShareRules(cast("Mapping[str, Level]", levels), cast("Mapping[str, str]", names))


def _is_texts(table: object) -> bool:
    return isinstance(table, dict) and all(isinstance(value, str) and value for value in table.values())


def with_level(text: str, pattern: str, level: Level) -> str:
    """Return the text of a settings file in which the pattern has this level. What else is in the file stays. Raises
    `ConfigError` if that cannot be done."""
    line = f"{_key(pattern)} = {_key(level)}"
    header = f"[{LEVELS_TABLE}]"
    lines = text.splitlines()
    starts = [number for number, each in enumerate(lines) if each.strip() == header]
    if not starts:
        changed = [*lines, *([""] if lines and lines[-1] else []), header, line]
    else:
        start = starts[0] + 1
        end = next((number for number in range(start, len(lines)) if lines[number].lstrip()[:1] == "["), len(lines))
        body = [each for each in lines[start:end] if _pattern_in(each) != pattern]
        while body and not body[-1].strip():
            body.pop()
        changed = [*lines[:start], *body, line, *([""] if end < len(lines) else []), *lines[end:]]
    result = "\n".join(changed) + "\n"
    if _levels_in(result) != {**{k: v for k, v in _levels_in(text).items() if k != pattern}, pattern: level}:
        raise ConfigError(f"cannot add {line} to [{LEVELS_TABLE}] in the settings file; write it there yourself")
    return result


def _key(text: str) -> str:
    return msgspec.json.encode(text).decode()


def _pattern_in(line: str) -> str | None:
    try:
        return next(iter(tomllib.loads(line)), None)
    except tomllib.TOMLDecodeError:
        return None


def _levels_in(text: str) -> dict[str, object]:
    try:
        table = tomllib.loads(text).get("share", {})
    except tomllib.TOMLDecodeError:
        return {}
    return dict(table.get("levels", {})) if isinstance(table, dict) else {}
