"""The session files that an agent writes while it runs, for an agent whose output does not name its session.

Other runs may write files in the same project at the same time. A file is not of this run if a running program has its
session open; it is most likely of this run if it has its prompt, and no other run has taken it.
"""

import os
from collections.abc import Sequence
from contextlib import nullcontext
from glob import escape
from pathlib import Path
from typing import TYPE_CHECKING

from msgspec import structs

from agent_logger import platform
from agent_logger.agents.base import Agent, module
from agent_logger.agents.claude_code.naming import is_id
from agent_logger.agents.folders import agent_files, agent_folders
from agent_logger.agents.locations import main_files
from agent_logger.agents.running import running_sessions
from agent_logger.clock import CLOCK
from agent_logger.errors import AgentLoggerError
from agent_logger.files.sources import Source, StampCache
from agent_logger.home.layout import safe_name
from agent_logger.protocols.json_text import encode
from agent_logger.recording.run.recording import RunRecording

if TYPE_CHECKING:
    from agent_logger.model.session import Exchange, Turn

Stamp = tuple[int, int, int]


class SessionFiles:
    """The files of an agent that change while it runs in a folder."""

    def __init__(self, agent: Agent, cwd: Path) -> None:
        self._agent = agent
        # None: the agent does not name folders by project.
        self._folders: tuple[str, ...] | None = module(agent.naming).project_folders(cwd) if agent.naming else None
        self._began = CLOCK.wall()
        self._since = self._began - 1  # file systems round
        # Without it, the file of a run that ended a moment ago would count as changed by this one.
        self._before = {path: _stamp(path) for path in self._project_files()}

    def note(self, recording: RunRecording) -> None:
        """Record the paths of the changed files, and the id of the session if one of them is likely its file."""
        paths = self.changed()
        files, reason = self._likely_files(paths, recording.prompts)
        # Two runs that end at the same time must not take the same file.
        with platform.exclusive_in(recording.folder) if recording.folder else nullcontext():
            if len(paths) > 1:  # one of several may be all that can be read of them now, and another run's
                free = [path for path in files if not self._is_taken(path.stem, recording.folder)]
                if len(files) > 1:
                    reason = "not_taken" if len(free) == 1 else "same_prompt"
                # The oldest: a run that began later cannot have written it, and finds the others free.
                files = free[:1]
            for path in paths:
                fact = {"type": "system", "subtype": "session_file", "path": str(path)}
                if path in files:
                    fact |= {"session_id": path.stem, "matched_by": reason}
                recording.note(encode(fact))

    def own_session(self, prompts: list[str]) -> str | None:
        """Return the session that the run worked on, for an agent that does not name it on the wire: the only one that
        changed meanwhile, and has the prompt."""
        agent = self._agent
        if agent.names_sessions_on_wire or agent.reader is None:
            return None
        sources = agent.discover(agent_folders(agent.location), StampCache())
        changed = [source for source in sources if source.modified >= self._since]
        names = {self._name_of(source) for source in changed if not prompts or self._was_asked(source, prompts)}
        return names.pop() if len(names) == 1 else None

    def _name_of(self, source: Source) -> str:
        """Return the session's id; the name of a file may have only a part of it."""
        inside = module(self._agent.files).session_id(Path(source.path)) if self._agent.has_id_inside else None
        return inside or source.name

    def _was_asked(self, source: Source, prompts: list[str]) -> bool:
        """Whether the session got one of the prompts in the time of the run."""
        try:
            exchanges = self._agent.session_of(self._agent.open_session(source)).exchanges
        except (AgentLoggerError, OSError):
            return False
        recent = [exchange for exchange in exchanges if exchange.ended and exchange.ended.timestamp() >= self._since]
        return bool(_inputs(recent).intersection(prompt.strip() for prompt in prompts))

    def has_answers(self) -> bool:
        """Whether a changed file has an answer of a model from the time of the run."""
        return any(map(self._turns, self.changed()))

    def answers_of(self, session_id: str) -> frozenset[str]:
        """Return the vendor's ids of the answers that a session has got in the time of the run; none if its file does
        not have them."""
        if self._agent.response_ids != "vendor":
            return frozenset()
        turns = (turn for path in self.changed() for turn in self._turns(path, session_id))
        return frozenset(turn.message_id for turn in turns if turn.message_id)

    def _turns(self, path: Path, session_id: str | None = None) -> "list[Turn]":
        """Return the turns of the file from the time of the run; none if it is of another session."""
        from agent_logger.logs.reader import read_session

        try:
            session = read_session(path)
        except (AgentLoggerError, OSError):
            return []
        if session_id not in (None, session.id):
            return []
        billed = (turn for turn in session.turns if turn.is_billed)
        return [turn for turn in billed if turn.ended and turn.ended.timestamp() >= self._began]

    def changed(self) -> list[Path]:
        if self._folders is None:
            changed = [path for path in agent_files(self._agent) if platform.modified_at(path) >= self._since]
        else:
            changed = [path for path in self._project_files() if _stamp(path) != self._before.get(path)]
        return sorted(changed, key=platform.modified_at)

    def _project_files(self) -> list[Path]:
        location = self._agent.location
        if not self._folders or location is None:
            return []
        globs = [glob.replace("*", escape(name), 1) for glob in location.globs for name in self._folders]
        return main_files(structs.replace(location, globs=tuple(globs)), agent_folders(location))

    def _likely_files(self, paths: list[Path], prompts: list[str]) -> tuple[list[Path], str]:
        """Return the files that may be of this run, and by what; several if their runs had the same prompt."""
        elsewhere = running_sessions() if paths else frozenset()
        files = [path for path in paths if self._folders and is_id(path.stem) and path.stem not in elsewhere]
        if len(files) > 1:
            return [path for path in files if _has_prompt(path, prompts)], "prompt"
        return files, "only_file"

    def _is_taken(self, session_id: str, folder: Path | None) -> bool:
        """Whether another run has given the name of this session to its log since this one began."""
        logs = folder.glob(f"*_{escape(safe_name(session_id[:8]))}*") if folder else ()
        return any(platform.modified_at(log) >= self._since for log in logs)


def _stamp(path: Path) -> Stamp | None:
    try:
        stat = os.stat(path)
    except OSError:
        return None
    return stat.st_ino, stat.st_size, stat.st_mtime_ns


def _has_prompt(path: Path, prompts: list[str]) -> bool:
    from agent_logger.logs.reader import read_session  # seldom, and it takes its time

    try:
        exchanges = read_session(path).exchanges
    except (AgentLoggerError, OSError):
        return False
    return bool(_inputs(exchanges).intersection(prompt.strip() for prompt in prompts))


def _inputs(exchanges: "Sequence[Exchange]") -> set[str]:
    return {exchange.user_input.strip() for exchange in exchanges if exchange.user_input}
