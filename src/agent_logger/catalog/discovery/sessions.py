"""Every session there is, found and not read yet: our own logs, the files of other agents, and the copies of what these
have deleted."""

import os
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass
from functools import partial
from pathlib import Path

from msgspec.structs import replace

from agent_logger.agents.claude_code.files import find
from agent_logger.agents.claude_code.folders import claude_roots
from agent_logger.catalog.discovery.agent_files import agent_sessions
from agent_logger.catalog.discovery.all_sources import find_sources
from agent_logger.catalog.discovery.below_folder import sessions_below
from agent_logger.catalog.discovery.reader import hook_events, hooked_session, read_batch, session_of
from agent_logger.catalog.joining.join import join
from agent_logger.errors import SourceError
from agent_logger.files.sources import Source, StampCache
from agent_logger.home.homes import Homes
from agent_logger.hooks.reader import agent_of
from agent_logger.hooks.session import session_of as hook_session
from agent_logger.hooks.session import with_hooks
from agent_logger.model.responses import ModelResponse
from agent_logger.model.session import Session


@dataclass(frozen=True, slots=True)
class SessionLocation:
    """Where a session is, and its name there: the name of its log, or the client's id."""

    agent: str | None  # the agent whose file it is; none for a log of ours, which names its agent
    path: Path
    name: str
    modified: float
    size: int
    read: Callable[[], Session]
    responses: Callable[[], Iterator[ModelResponse]]  # billed responses, without the rest where that is faster
    prompts_only: bool = False  # the path is that of the agent's history: the session's own file is gone
    is_log: bool = False  # false also for hooks, whose path stands for the files of one day


def place_of(source: Source) -> SessionLocation:
    return SessionLocation(
        source.agent,
        Path(source.others[0] if source.main_missing and source.others else source.path),
        source.name,
        source.modified,
        source.size,
        partial(session_of, source),
        lambda: iter(read_batch(source).responses),
        source.prompts_only,
        source.is_log,
    )


def places(home: Path) -> list[SessionLocation]:
    """Return the places of all sessions, the one last written to first."""
    return _sorted(source for source in find_sources(Homes(home), StampCache()) if not source.is_of_no_session)


def discover(folder: str | os.PathLike[str] | None = None) -> list[SessionLocation]:
    """Return the sessions that agents have on this machine, the one last written to first.

    With a `folder`, return the sessions in the files below it instead, those of agents and ours, whatever the names of
    the files: a copy of another machine's sessions, for example.
    """
    if folder is None:
        return _sorted(agent_sessions(StampCache()))
    return _sorted(sessions_below(Path(folder).expanduser().absolute()))


def _sorted(there: Iterable[Source]) -> list[SessionLocation]:
    return sorted(map(place_of, there), key=lambda place: (-place.modified, str(place.path), place.name))


def find_session(session_id: str, repo_root: str | os.PathLike[str] | None = None) -> Path | None:
    """Return the file of an agent's session, by the client's id: the one in the project folder first, else the newest.

    Returns None if there is none. Raises `ValueError` if it is not an id.
    """
    root = Path(repo_root).expanduser() if repo_root is not None else None
    return next(iter(files_of(session_id, root)), None)


def files_of(session_id: str, repo_root: Path | None = None) -> list[Path]:
    """Return all files that have this id, the best first. Raises `ValueError` if it is not an id."""
    of_claude = [Path(source.path) for source in find(claude_roots(), session_id, repo_root)]
    others = [place.path for place in discover() if place.name == session_id and not place.prompts_only]
    return list(dict.fromkeys(of_claude + others))


def joined(witnesses: Sequence[Source], summaries: Mapping[str, str] | None = None) -> Session | None:
    """Return the session that these witnesses describe together. A witness that cannot be read is left out; None if all
    are. `summaries`: those in files of other sessions, by the line they end at."""
    sessions: list[Session] = []
    names = set()
    for witness in witnesses:
        if not witness.is_of_hooks:
            with suppress(SourceError, OSError):
                sessions.append(session_of(witness, summaries))
                names.add(witness.name)
    if hooks := [witness for witness in witnesses if witness.is_of_hooks]:
        return _hooked(sessions, names, hooks)
    return _joined(sessions, names)


def _joined(sessions: list[Session], names: set[str]) -> Session | None:
    if not sessions:
        return None
    if any(not session.main_missing and not session.prompts_only for session in sessions):
        # Any other witness has the prompts, too.
        sessions = [session for session in sessions if not session.prompts_only]
    whole = join(sessions)
    # A branch belongs to the session that it branched off in, and names the log.
    return replace(whole, parent=None) if whole.parent in names else whole


def _hooked(sessions: list[Session], names: set[str], hooks: Sequence[Source]) -> Session | None:
    """Add hooks to a session. They report less than any other witness except the history of prompts."""
    events = hook_events(hooks)
    if whole := _joined([session for session in sessions if not session.prompts_only], names):
        return with_hooks(whole, events)
    return hook_session(hooked_session(hooks[0]), agent_of(events), events) if events else _joined(sessions, names)
