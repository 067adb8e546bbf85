"""The checks of `agent-logger doctor`: each returns what it found, and what to do about it."""

import os
import shlex
import shutil
import subprocess
import time
from collections.abc import Callable, Iterable, Iterator
from contextlib import suppress
from dataclasses import dataclass, field
from datetime import datetime
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
from agent_logger.catalog.discovery.installed_agents import counts_text, installed_agents
from agent_logger.catalog.refresh.damage import files_of
from agent_logger.cli._damaged import damage_text, verify_command
from agent_logger.clock import timestamp
from agent_logger.errors import SourceError
from agent_logger.files.git import git_folders
from agent_logger.files.parts import PartFile, parts_in
from agent_logger.files.sources import Source, StampCache, entries_in
from agent_logger.home.facts import known_folders
from agent_logger.home.last_runs import last_runs
from agent_logger.hooks.settings import commands_in
from agent_logger.logs.damage import count_damage
from agent_logger.logs.find import client_id
from agent_logger.logs.verify import log_files, verify_file
from agent_logger.model.last_run import LastRun
from agent_logger.model.plurals import pluralize
from agent_logger.proxy.base_urls import base_urls
from agent_logger.proxy.status import ProxyReport
from agent_logger.views.recorded_runs import captured_text, gaps, unread_text

SOON_DAYS = 7  # a session that its agent deletes within this time should be archived by now
LIVE_SECONDS = 300.0
RECENT_SECONDS = 3600.0  # the logs of a live session were written to within this time
MOST_VERIFIED_BYTES = 256 << 20  # the newest logs; `verify` reads all
DAY_SECONDS = 86_400
GIT_SECONDS = 5.0

Mark = Literal["ok", "note", "wrong"]


class Finding(msgspec.Struct, frozen=True):
    check: str
    mark: Mark
    text: str = msgspec.field(name="found")
    next: str | None = None  # what to do about it


class Doomed(msgspec.Struct, frozen=True, kw_only=True):
    """A session that its agent is going to delete."""

    id: str
    path: str
    deleted_after: str  # when the client is next started after this time
    is_archived: bool = msgspec.field(name="kept")  # in its current state


class Examined(msgspec.Struct, frozen=True, kw_only=True):
    findings: list[Finding]
    doomed: list[Doomed]  # ordered by time of deletion
    damaged_lines: int  # in our logs and in agents' files, as far as they were read


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
        *_runs(home),
        *_hooks(),
        *_cleanup(doomed),
        *(
            Finding("variables", "note", f"{name} is set but is not a known setting", "agent-logger config")
            for name in config.stray_variables()
        ),
    ]
    damaged_lines = sum([*ours.damaged.values(), *theirs.damaged.values()])
    return Examined(findings=findings, doomed=doomed, damaged_lines=damaged_lines)


# ---------------------------------------------------------------- our own


def _home(home: Path) -> Iterator[Finding]:
    place = next(path for path in (home, *home.parents) if os.path.exists(path))
    if not os.path.isdir(place) or not os.access(place, os.W_OK):
        yield Finding("home", "wrong", f"{home} cannot be written to", "make it writable, or set AGENT_LOGGER_HOME")
    elif platform.is_low_on_space(place):
        free = shutil.disk_usage(place).free
        yield Finding(
            "home",
            "wrong",
            f"the disk of {home} is nearly full: {free / 1e6:,.0f} MB free",
            "free some space; agent-logger du shows what the logs use",
        )
    else:
        yield Finding("home", "ok", str(home))


def _recording(proxies: list[ProxyReport]) -> Iterator[Finding]:
    if not proxies:
        yield Finding("proxy", "note", "not running; calls are not being recorded", "agent-logger")
    for proxy in proxies:
        where = f"port {proxy.port}, {proxy.log_dir}"
        if not proxy.recording:
            problem = proxy.problem or "the recorder does not respond"
            yield Finding("proxy", "wrong", f"{where}: not recording: {problem}", "agent-logger status")
        elif proxy.lost:
            yield Finding("proxy", "wrong", f"{where}: {pluralize(proxy.lost, 'record')} lost", "agent-logger status")
        else:
            calls = pluralize(proxy.calls or 0, "call")
            yield Finding("proxy", "ok", f"{where}: recording, {calls}, nothing lost")


def _why_gone(folder: Path) -> str:
    try:
        folder.stat()
    except FileNotFoundError:
        return "no longer exists"
    except OSError as error:
        return f"cannot be read: {error.strerror}"
    return "is not a folder"


def _log_folders(home: Path) -> Iterator[Finding]:
    folders = known_folders(home)
    gone = [folder for folder in folders if not os.path.isdir(folder)]
    for path in gone:
        yield Finding("log folders", "note", f"{path} {_why_gone(path)}", "restore it if you need its logs")
    if not gone:
        yield Finding("log folders", "ok", f"{len(folders)}, all present" if folders else "none yet")
    for path in folders:
        index = path / "sessions.db"
        if os.path.exists(index) and not is_ignored(index):
            yield Finding(
                "log folders",
                "note",
                f"git does not ignore {index}",
                f"add the line * to {path / '.gitignore'}, or the folder to a .gitignore above it",
            )


def is_ignored(path: Path) -> bool:
    """Whether git ignores a file; also true if there is no git, or no repository."""
    if not shutil.which("git") or not any(git_folders(path.parent)):
        return True
    # No setting of the repository may start a program.
    line = ["git", "-c", "core.fsmonitor=false", "-C", str(path.parent), "check-ignore", "-q", path.name]
    try:
        done = subprocess.run(line, capture_output=True, timeout=GIT_SECONDS, check=False)
    except (OSError, subprocess.TimeoutExpired):
        return True
    return done.returncode != 1  # 128: git does not know


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

    folders = (folder for folder in known_folders(home) if os.path.isdir(folder))
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
        yield Finding("damage", "wrong", finding, verify_command(ours.damaged))
    else:
        logs = pluralize(ours.files, "log file")
        finding = f"none in {logs} ({ours.share} read)" if ours.files else "no logs yet"
        yield Finding("damage", "ok", finding)
    if ours.lost:
        finding = f"logs report {pluralize(ours.lost, 'lost record')}, which could not be written to disk"
        yield Finding("damage", "note", finding, "agent-logger verify lists the logs")
    if theirs.damaged:
        finding = f"{damage_text(theirs.damaged)} in agents' files ({theirs.share} read)"
        yield Finding("damage", "note", finding, verify_command(theirs.damaged))


# ---------------------------------------------------------------- agents


def _agents() -> Iterator[Finding]:
    """The agents that have a folder on this machine, their sessions there, and what these tell of tokens."""
    agents = installed_agents()
    if not agents:
        yield Finding("agents", "ok", "no session files found yet")
    for unit in dict.fromkeys(agent.tokens_per for agent in agents):
        names = ", ".join(counts_text(agent) for agent in agents if agent.tokens_per == unit)
        counts = f"count tokens per {unit}" if unit else "count no tokens"
        yield Finding("agents", "ok", f"session files that {counts}: {names}")
    for reason in (reason for agent in agents for reason in agent.unreadable):
        yield Finding("agents", "wrong", f"no session can be read from {reason}", "restore it from a backup")


def _clients(proxies: list[ProxyReport]) -> Iterator[Finding]:
    """Whether agents started from this shell go through a proxy."""
    if not proxies:
        return
    for agent, location in located():
        if not any(os.path.isdir(folder) for folder in agent_folders(location)):
            continue
        if any(_is_set_up(agent, proxy.port) for proxy in proxies):
            yield Finding("set up", "ok", f"{agent.name} uses the proxy")
        else:
            finding = f"{agent.name} does not use the proxy when started from this shell"
            yield Finding("set up", "note", finding, _next(agent))


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
    """The sessions whose files are being written to, but that the proxy has no call of."""
    if not proxies:
        return
    recorded = {client_id(log) for folder in known_folders(home) for log in _recent_logs(folder)}
    unseen: dict[Agent, int] = {}
    for agent, location in located():
        if not agent.names_sessions_on_wire or location.is_database:
            continue  # the names of its files do not show whether a session was proxied
        for path in main_files(location, agent_folders(location)):
            is_live = time.time() - platform.modified_at(path) < LIVE_SECONDS
            if is_live and not any(name and name in path.name for name in recorded):
                unseen[agent] = unseen.get(agent, 0) + 1
    for agent, count in unseen.items():
        sessions = pluralize(count, "session")
        finding = f"{agent.name} is running {sessions} that {'bypasses' if count == 1 else 'bypass'} the proxy"
        yield Finding("unseen", "wrong", finding, _next(agent))


def _recent_logs(folder: Path) -> Iterator[PartFile]:
    inner = [Path(entry.path) for entry in entries_in(str(folder)) if entry.is_dir()]
    for part in (part for path in inner for part in parts_in(path)):
        if time.time() - platform.modified_at(part.path) < RECENT_SECONDS:
            yield part


def _runs(home: Path) -> Iterator[Finding]:
    """What was recorded of the last run of each agent."""
    for run in last_runs(home):
        when = f"{datetime.fromisoformat(run.ended).astimezone():%Y-%m-%d %H:%M}" if run.ended else "at an unknown time"
        missing = list(gaps(run))
        unread = [text] if (text := unread_text(run)) else []
        text = "; ".join([f"{run.agent}, {when}: {captured_text(run)}", *missing, *unread])
        yield Finding("last run", "wrong" if missing else "ok" if run.requests else "note", text, _next_run(run))


def _next_run(run: LastRun) -> str | None:
    """What to do about what was not recorded; `None` if all was."""
    if run.not_trusted:
        return "agent-logger ca shows the certificate that it has to trust"
    if run.missing or run.not_opened:
        return "agent-logger status"
    if run.requests:
        return None
    return "agent-logger run --door forward -- ..." if run.door == "base-url" else "agent-logger status"


def _hooks() -> Iterator[Finding]:
    roots = [claude_root for claude_root in claude_roots() if os.path.isdir(claude_root)]
    for root in roots:
        calls = commands_in(_text(root / "settings.json"))
        broken = {
            command for commands in calls.values() for command in commands if not shutil.which(shlex.split(command)[0])
        }
        where = root / "settings.json"
        if broken:
            finding = f"{where} runs a command that does not exist: {', '.join(sorted(broken))}"
            yield Finding("hooks", "wrong", finding, "agent-logger hook --install")
        elif calls:
            yield Finding("hooks", "ok", f"{where}: {pluralize(len(calls), 'event')} recorded")
        else:
            finding = f"{where} has no hooks of agent-logger"
            yield Finding("hooks", "note", finding, "agent-logger hook --install")


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
        sessions = pluralize(len(urgent), "session")
        are = "is" if len(urgent) == 1 else "are"
        finding = f"claude-code will delete {sessions} by {soon[:10]} that {are} not archived"
        finding += f", the first after {urgent[0].deleted_after[:10]}"
        yield Finding("cleanup", "wrong", finding, "agent-logger archive")
    elif lost:
        have = "has" if len(lost) == 1 else "have"
        finding = f"{len(lost):,} of {pluralize(len(doomed), 'session')} of claude-code {have} no up-to-date copy"
        finding += f"; it deletes the first after {lost[0].deleted_after[:10]}"
        yield Finding("cleanup", "note", finding, "agent-logger archive")
    else:
        are = "is" if len(doomed) == 1 else "are"
        finding = f"{pluralize(len(doomed), 'session')} of claude-code {are} archived"
        yield Finding("cleanup", "ok", f"{finding}; it deletes the first after {doomed[0].deleted_after[:10]}")
