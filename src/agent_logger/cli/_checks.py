"""The checks of `agent-logger doctor`: each returns what it found, and what to do about it."""

import os
import shlex
import shutil
import subprocess
import time
from collections.abc import Callable, Iterable, Iterator
from contextlib import suppress
from dataclasses import dataclass, field
from pathlib import Path
from typing import Literal, Self

import msgspec

from agent_logger import config, platform
from agent_logger.agents.base import Agent, ProxySetup, module
from agent_logger.agents.claude_code.folders import claude_roots
from agent_logger.agents.folders import agent_folders
from agent_logger.agents.locations import main_files
from agent_logger.agents.registry import AGENTS, located
from agent_logger.archive.copy import has_caught_up
from agent_logger.archive.layout import folder_of
from agent_logger.catalog.discovery.agent_files import agent_sessions
from agent_logger.catalog.refresh.damage import files_of
from agent_logger.cli._damaged import damage_text, verify_command
from agent_logger.clock import timestamp
from agent_logger.errors import SourceError
from agent_logger.files.git import git_folders
from agent_logger.files.parts import PartFile, parts_in
from agent_logger.files.sources import Source, StampCache
from agent_logger.home.facts import known_folders
from agent_logger.hooks.settings import commands_in
from agent_logger.logs.damage import count_damage
from agent_logger.logs.find import client_id
from agent_logger.logs.verify import log_files, verify_file
from agent_logger.proxy.base_urls import base_urls
from agent_logger.proxy.status import ProxyReport
from agent_logger.views.figures import counted

SOON_DAYS = 7  # a session that its agent deletes within these should be kept by now
LIVE_SECONDS = 300.0
RECENT_SECONDS = 3600.0  # logs of calls of a live session were written to within these
MOST_VERIFIED_BYTES = 256 << 20  # of logs, the newest: `verify` reads all
DAY_SECONDS = 86_400
GIT_SECONDS = 5.0

Mark = Literal["ok", "note", "wrong"]


class Finding(msgspec.Struct, frozen=True, kw_only=True):
    check: str
    mark: Mark
    text: str = msgspec.field(name="found")
    next: str | None = None  # what to do about it


class Doomed(msgspec.Struct, frozen=True, kw_only=True):
    """A session that its agent is going to delete."""

    id: str
    path: str
    deleted_after: str  # then, when the client starts next
    is_archived: bool = msgspec.field(name="kept")  # as it is now


class Examined(msgspec.Struct, frozen=True, kw_only=True):
    findings: list[Finding]
    doomed: list[Doomed]  # all of them, the first to go first
    damaged_lines: int  # in logs of ours and in files of agents, as far as they were read


def examine(home: Path, proxies: list[ProxyReport]) -> Examined:
    doomed = sorted(_doomed(home), key=lambda doomed: doomed.deleted_after)
    ours, theirs = _read_logs(home), _read_agents_files()
    findings = [
        *_home(home),
        *_recording(proxies),
        *_log_folders(home),
        *_damage(ours, theirs),
        *_agents(),
        *_clients(proxies),
        *_unseen(home, proxies),
        *_hooks(),
        *_cleanup(doomed),
        *_variables(),
    ]
    damaged_lines = sum([*ours.damaged.values(), *theirs.damaged.values()])
    return Examined(findings=findings, doomed=doomed, damaged_lines=damaged_lines)


# ---------------------------------------------------------------- our own


def _home(home: Path) -> Iterator[Finding]:
    place = next(path for path in (home, *home.parents) if path.exists())
    if not place.is_dir() or not os.access(place, os.W_OK):
        yield Finding(
            check="home",
            mark="wrong",
            text=f"{home} cannot be written to",
            next="make it writable, or set AGENT_LOGGER_HOME",
        )
    elif platform.is_low_on_space(place):
        free = shutil.disk_usage(place).free
        yield Finding(
            check="home",
            mark="wrong",
            text=f"the disk of {home} is nearly full: {free / 1e6:,.0f} MB free",
            next="make room; agent-logger du shows what logs take",
        )
    else:
        yield Finding(check="home", mark="ok", text=str(home))


def _recording(proxies: list[ProxyReport]) -> Iterator[Finding]:
    if not proxies:
        yield Finding(
            check="proxy", mark="note", text="not running; calls are not being recorded", next="agent-logger"
        )
    for proxy in proxies:
        where = f"port {proxy.port}, {proxy.log_dir}"
        if not proxy.recording:
            problem = proxy.problem or "its recorder does not answer"
            yield Finding(
                check="proxy",
                mark="wrong",
                text=f"{where}: not recording: {problem}",
                next="agent-logger status",
            )
        elif proxy.lost:
            yield Finding(
                check="proxy",
                mark="wrong",
                text=f"{where}: {proxy.lost:,} records lost",
                next="agent-logger status",
            )
        else:
            yield Finding(
                check="proxy", mark="ok", text=f"{where}: recording, {proxy.calls or 0:,} calls, none lost"
            )


def _log_folders(home: Path) -> Iterator[Finding]:
    folders = known_folders(home)
    gone = [folder for folder in folders if not folder.is_dir()]
    for path in gone:
        yield Finding(
            check="log folders",
            mark="note",
            text=f"{path} is gone",
            next="put it back if its logs are missed",
        )
    if not gone:
        yield Finding(check="log folders", mark="ok", text=_all_there(len(folders)))
    for path in folders:
        index = path / "sessions.db"
        if index.exists() and not is_ignored(index):
            yield Finding(
                check="log folders",
                mark="note",
                text=f"git does not ignore {index}",
                next=f"add the line * to {path / '.gitignore'}, or the folder to a .gitignore above it",
            )


def is_ignored(path: Path) -> bool:
    """Whether git ignores a file; also true if there is no git, or no repository."""
    if not shutil.which("git") or not any(git_folders(path.parent)):
        return True
    # No setting of the repository is to start a program.
    line = ["git", "-c", "core.fsmonitor=false", "-C", str(path.parent), "check-ignore", "-q", path.name]
    try:
        done = subprocess.run(line, capture_output=True, timeout=GIT_SECONDS, check=False)
    except (OSError, subprocess.TimeoutExpired):
        return True
    return done.returncode != 1  # 128: git cannot tell


def _all_there(count: int) -> str:
    return f"{count}, all there" if count else "none yet"


@dataclass(slots=True)
class _FilesRead:
    """The result of reading files of lines, the newest first, up to a limit in bytes."""

    files: int = 0
    every_bytes: int = 0
    read_bytes: int = 0
    lost: int = 0  # records that a log says could not be written
    damaged: dict[Path, int] = field(default_factory=dict)

    def read(self, files: Iterable[Path], look: Callable[[Path], tuple[int, int]]) -> Self:
        """Read the files. `look` returns how many damaged lines a file has, and how many records it says are lost."""
        for file in sorted(files, key=lambda path: -platform.modified_at(path)):
            size = platform.size_of(file)
            self.files += 1
            self.every_bytes += size
            if self.read_bytes + size > MOST_VERIFIED_BYTES:
                continue
            self.read_bytes += size
            damaged, lost = look(file)
            self.lost += lost
            if damaged:
                self.damaged[file] = damaged
        return self

    @property
    def share(self) -> str:
        if self.read_bytes == self.every_bytes:
            return "all"
        return f"the newest {self.read_bytes / 1e6:,.0f} of {self.every_bytes / 1e6:,.0f} MB"


def _read_logs(home: Path) -> _FilesRead:
    def look(file: Path) -> tuple[int, int]:
        report = verify_file(file)
        return len(report.damage), report.lost

    folders = (folder for folder in known_folders(home) if folder.is_dir())
    return _FilesRead().read([file for folder in folders for file in log_files(folder)], look)


def _read_agents_files() -> _FilesRead:
    def look(file: Path) -> tuple[int, int]:
        with suppress(OSError, SourceError):
            return count_damage(file).places, 0
        return 0, 0

    paths = (file for session in agent_sessions(StampCache()) for file in files_of(session))
    return _FilesRead().read(dict.fromkeys(paths), look)


def _damage(ours: _FilesRead, theirs: _FilesRead) -> Iterator[Finding]:
    if ours.damaged:
        finding = f"{damage_text(ours.damaged)} in logs"
        yield Finding(check="damage", mark="wrong", text=finding, next=verify_command(ours.damaged))
    else:
        finding = f"none in {counted(ours.files, 'file')} of logs ({ours.share} read)"
        yield Finding(check="damage", mark="ok", text=finding)
    if ours.lost:
        finding = f"{counted(ours.lost, 'record')} missing in logs, which say so: the disk did not take them"
        yield Finding(check="damage", mark="note", text=finding, next="agent-logger verify names the logs")
    if theirs.damaged:
        finding = f"{damage_text(theirs.damaged)} in files of agents ({theirs.share} read)"
        yield Finding(check="damage", mark="note", text=finding, next=verify_command(theirs.damaged))


# ---------------------------------------------------------------- agents


def _agents() -> Iterator[Finding]:
    """The agents that have a folder on this machine."""
    folders = {agent.name: agent_folders(location) for agent, location in located()}
    names = [name for name, paths in folders.items() if any(path.is_dir() for path in paths)]
    text = f"reads the session files of {', '.join(names)}" if names else "none has session files here yet"
    yield Finding(check="agents", mark="ok", text=text)


def _clients(proxies: list[ProxyReport]) -> Iterator[Finding]:
    """Whether agents started from this shell go through a proxy."""
    if not proxies:
        return
    for agent, location in located():
        if not any(folder.is_dir() for folder in agent_folders(location)):
            continue
        if any(_is_set_up(agent, proxy.port) for proxy in proxies):
            yield Finding(check="set up", mark="ok", text=f"{agent.name} goes through the proxy")
        else:
            finding = f"{agent.name}, started from this shell, does not go through the proxy"
            yield Finding(check="set up", mark="note", text=finding, next=_next(agent))


def _next(agent: Agent) -> str:
    """What to do to send the agent through the proxy."""
    if agent.setup and agent.setup.hint:
        return agent.setup.hint
    return f'eval "$(agent-logger env)", or agent-logger run -- {agent.run.executable if agent.run else agent.name}'


def _is_set_up(agent: Agent, port: int) -> bool:
    """Whether the agent is sent to this port, by its variable or by a file of its own."""
    setup, address = agent.setup or ProxySetup(), f"127.0.0.1:{port}/"
    value = config.variable(setup.variable) or "" if setup.variable else ""
    if address in value and (not setup.must_match or value == base_urls(port).get(setup.variable or "")):
        return True
    files = [folder / setup.settings_file for folder in agent_folders(agent.location) if setup.settings_file]
    return any(address in _text(file) for file in files)


def _text(path: Path) -> str:
    try:
        return path.read_text("utf-8", "replace")
    except OSError:
        return ""


def _unseen(home: Path, proxies: list[ProxyReport]) -> Iterator[Finding]:
    """The sessions that are active now, by their files, and of which the proxy has seen no call."""
    if not proxies:
        return
    recorded = {client_id(log) for folder in known_folders(home) for log in _recent_logs(folder)}
    unseen: dict[Agent, int] = {}
    for agent, location in located():
        if not agent.names_sessions_on_wire or location.is_database:
            continue  # the names of its files do not tell whether a session was on the wire
        for path in main_files(location, agent_folders(location)):
            is_live = time.time() - platform.modified_at(path) < LIVE_SECONDS
            if is_live and not any(name and name in path.name for name in recorded):
                unseen[agent] = unseen.get(agent, 0) + 1
    for agent, count in unseen.items():
        sessions = "a session" if count == 1 else f"{count} sessions"
        finding = (
            f"{agent.name} is running {sessions} that {'bypasses' if count == 1 else 'bypass'} the proxy"
        )
        yield Finding(check="unseen", mark="wrong", text=finding, next=_next(agent))


def _recent_logs(folder: Path) -> Iterator[PartFile]:
    inner = [path for path in folder.iterdir() if path.is_dir()] if folder.is_dir() else []
    for part in (part for path in inner for part in parts_in(path)):
        if time.time() - platform.modified_at(part.path) < RECENT_SECONDS:
            yield part


def _hooks() -> Iterator[Finding]:
    roots = [claude_root for claude_root in claude_roots() if claude_root.is_dir()]
    for root in roots:
        calls = commands_in(_text(root / "settings.json"))
        broken = {
            command
            for commands in calls.values()
            for command in commands
            if not shutil.which(shlex.split(command)[0])
        }
        where = root / "settings.json"
        if broken:
            finding = f"{where} calls {', '.join(sorted(broken))}, which is not there"
            yield Finding(check="hooks", mark="wrong", text=finding, next="agent-logger hook --install")
        elif calls:
            yield Finding(check="hooks", mark="ok", text=f"{where}: {len(calls)} events are kept")
        else:
            finding = f"{where} has none of ours"
            yield Finding(check="hooks", mark="note", text=finding, next="agent-logger hook --install")


# ---------------------------------------------------------------- what agents delete


def _doomed(home: Path) -> Iterator[Doomed]:
    """The sessions that agents will delete: some delete, when they start, what was not written to for a number of
    days."""
    for agent in AGENTS:
        for root in agent_folders(agent.location) if agent.cleanup else ():
            days: int = module(agent.cleanup or "").cleanup_days(root)
            for source in agent.discover([root], StampCache()):
                if not source.main_missing and (session := _doomed_session(home, root, source, days)):
                    yield session


def _doomed_session(home: Path, root: Path, source: Source, days: int) -> Doomed | None:
    target = folder_of(home, source.agent or "", root).target(Path(source.path).relative_to(root).parts)
    try:
        status = os.lstat(source.path)
        is_archived = has_caught_up(status, target)
    except OSError:
        return None
    after = timestamp(status.st_mtime + days * DAY_SECONDS)
    return Doomed(id=source.name, path=source.path, deleted_after=after, is_archived=is_archived)


def _cleanup(doomed: list[Doomed]) -> Iterator[Finding]:
    if not doomed:
        return
    soon = timestamp(time.time() + SOON_DAYS * DAY_SECONDS)
    lost = [session for session in doomed if not session.is_archived]
    urgent = [session for session in lost if session.deleted_after < soon]
    if urgent:
        finding = f"claude-code deletes {len(urgent):,} sessions by {soon[:10]} that nobody keeps"
        finding += f", the first after {urgent[0].deleted_after[:10]}"
        yield Finding(check="cleanup", mark="wrong", text=finding, next="agent-logger archive")
    elif lost:
        finding = f"{len(lost):,} of {len(doomed):,} sessions of claude-code are not kept as they are now"
        finding += f"; the first is deleted after {lost[0].deleted_after[:10]}"
        yield Finding(check="cleanup", mark="note", text=finding, next="agent-logger archive")
    else:
        finding = f"all {len(doomed):,} sessions of claude-code are in the archive"
        yield Finding(
            check="cleanup",
            mark="ok",
            text=f"{finding}; it deletes the first after {doomed[0].deleted_after[:10]}",
        )


def _variables() -> Iterator[Finding]:
    for name in config.stray_variables():
        yield Finding(
            check="variables",
            mark="note",
            text=f"{name} is set but is not a known setting",
            next="agent-logger config",
        )
