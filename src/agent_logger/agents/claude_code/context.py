"""The instructions and settings that Claude Code applies to a session in a folder.

This follows what versions since 2.1 do, which is more than the specification says: instructions are read from every
folder on the way up, also above the git root, under three names; `CLAUDE_CONFIG_DIR` replaces the user's settings, and
the git root's local settings apply in its sub-folders too.
"""

import os
import stat
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any, Literal

import msgspec

from agent_logger.agents.claude_code.folders import claude_roots, claude_variables

NAMES = ("CLAUDE.md", ".claude/CLAUDE.md", "CLAUDE.local.md")
MOST_BYTES = 4 << 20  # bytes of a file that are read
DEFAULT_CLEANUP_DAYS = 30

Scope = Literal["folder", "parent", "above", "user"]


class Settings(msgspec.Struct, frozen=True, kw_only=True):
    """Settings of Claude Code: those we know, and all others unchanged in `rest`."""

    hooks: dict[str, Any] = {}
    agent: str | None = None
    permission_mode: str | None = None
    cleanup_period_days: int | None = None  # days until it deletes a session; none: 30
    rest: dict[str, Any] = {}

    @classmethod
    def of(cls, values: dict[str, Any]) -> "Settings":
        """Build settings from JSON values. A value of an unexpected form stays in `rest`."""
        fields = {
            "hooks": ("hooks", dict),
            "agent": ("agent", str),
            "permissionMode": ("permission_mode", str),
            "cleanupPeriodDays": ("cleanup_period_days", int),
        }
        typed = {key: values[key] for key, (_, kind) in fields.items() if type(values.get(key)) is kind}
        rest = {key: value for key, value in values.items() if key not in typed}
        permissions = values.get("permissions")
        mode = permissions.get("defaultMode") if isinstance(permissions, dict) else None
        given = {fields[key][0]: value for key, value in typed.items()}
        return cls(**({"permission_mode": mode} if isinstance(mode, str) else {}) | given, rest=rest)

    def over(self, weaker: "Settings") -> "Settings":
        """Merge with weaker settings, where these win; the hooks of both are called."""
        events = dict.fromkeys((*weaker.hooks, *self.hooks))
        hooks = {event: _listed(weaker.hooks.get(event)) + _listed(self.hooks.get(event)) for event in events}
        return Settings(
            hooks=hooks,
            agent=self.agent or weaker.agent,
            permission_mode=self.permission_mode or weaker.permission_mode,
            cleanup_period_days=(
                weaker.cleanup_period_days if self.cleanup_period_days is None else self.cleanup_period_days
            ),
            rest={**weaker.rest, **self.rest},
        )


def _listed(groups: object) -> list[Any]:
    return groups if isinstance(groups, list) else []


class InstructionFile(msgspec.Struct, frozen=True, kw_only=True):
    path: str
    scope: Scope  # the folder, one on the way to the git root, one above it, or the user's configuration
    bytes: int
    hmac: str


class SettingsFile(msgspec.Struct, frozen=True, kw_only=True):
    path: str
    is_there: bool
    applies: bool
    hmac: str | None = None
    problem: str | None = None  # why it could not be read
    settings: Settings | None = None


class Context(msgspec.Struct, frozen=True, kw_only=True):
    """What applies to a session of Claude Code in a folder."""

    cwd: str
    git_root: str | None
    instructions: list[InstructionFile]  # the nearest first; the model gets them in the reverse order
    settings_files: list[SettingsFile]  # the weakest first
    settings: Settings  # the settings that apply, merged
    variables: dict[str, str]


def read_context(cwd: Path, hmac_of: Callable[[bytes], str]) -> Context:
    """Return what applies in a folder. Raises nothing for what is in the files, nor for a folder that does not
    exist."""
    folder = Path(os.path.realpath(cwd))
    root = git_root(folder)
    files = list(_settings_files(folder, root, hmac_of))
    settings = Settings()
    for file in files:
        settings = file.settings.over(settings) if file.settings and file.applies else settings
    return Context(
        cwd=str(folder),
        git_root=str(root) if root else None,
        instructions=list(_instructions(folder, root, hmac_of)),
        settings_files=files,
        settings=settings,
        variables=claude_variables(),
    )


def git_root(folder: Path) -> Path | None:
    """Return the folder of the repository or worktree that contains this folder."""
    return next((path for path in (folder, *folder.parents) if os.path.lexists(path / ".git")), None)


def cleanup_days(root: Path) -> int:
    """Return the number of days after which Claude Code deletes sessions of that configuration folder. A project's own
    settings may differ."""
    data = _read(root / "settings.json")
    settings = _settings(data)[0] if data is not None else None
    days = settings.cleanup_period_days if settings else None
    return DEFAULT_CLEANUP_DAYS if days is None else days


# ---------------------------------------------------------------- files


def _instructions(folder: Path, root: Path | None, hmac_of: Callable[[bytes], str]) -> Iterator[InstructionFile]:
    inside: Scope = "folder"
    places: list[tuple[Scope, Path]] = []
    for above in (folder, *folder.parents):
        places += [(inside, above / name) for name in NAMES]
        inside = "above" if above == root or inside == "above" else "parent"
    places += [("user", claude_root / "CLAUDE.md") for claude_root in claude_roots()]
    visited = set()
    for scope, path in places:
        data = _read(path) if path not in visited else None
        visited.add(path)
        if data is not None:
            yield InstructionFile(path=str(path), scope=scope, bytes=len(data), hmac=hmac_of(data))


def _settings_files(folder: Path, root: Path | None, hmac_of: Callable[[bytes], str]) -> Iterator[SettingsFile]:
    user = Path.home() / ".claude" / "settings.json"
    given = (
        [claude_root / "settings.json" for claude_root in claude_roots()]
        if "CLAUDE_CONFIG_DIR" in claude_variables()
        else []
    )
    yield _settings_file(user, hmac_of, applies=not given or user in given)
    yield from (_settings_file(path, hmac_of) for path in given if path != user)
    yield _settings_file(folder / ".claude" / "settings.json", hmac_of)
    if root and root != folder:
        yield _settings_file(root / ".claude" / "settings.local.json", hmac_of)
    yield _settings_file(folder / ".claude" / "settings.local.json", hmac_of)


def _settings_file(path: Path, hmac_of: Callable[[bytes], str], *, applies: bool = True) -> SettingsFile:
    data = _read(path)
    if data is None:
        return SettingsFile(path=str(path), is_there=False, applies=applies)
    settings, problem = _settings(data)
    return SettingsFile(
        path=str(path), is_there=True, applies=applies, hmac=hmac_of(data), problem=problem, settings=settings
    )


def _settings(data: bytes) -> tuple[Settings | None, str | None]:
    try:
        settings = msgspec.json.decode(data or b"{}")
    except (ValueError, RecursionError) as error:
        return None, str(error)
    return (Settings.of(settings), None) if isinstance(settings, dict) else (None, "no JSON object")


def _read(path: Path) -> bytes | None:
    """Read a file. Links are followed, as the client does (a file of instructions is often one), but only to a regular
    file."""
    try:
        fd = os.open(path, os.O_RDONLY | os.O_CLOEXEC | os.O_NONBLOCK | os.O_NOCTTY)
    except OSError:
        return None
    try:
        return os.read(fd, MOST_BYTES) if stat.S_ISREG(os.fstat(fd).st_mode) else None
    except OSError:
        return None
    finally:
        os.close(fd)
