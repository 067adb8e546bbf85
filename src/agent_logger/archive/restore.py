"""Putting a session back from the archive to where its agent finds it: planned first, then written.

Nothing that is there is changed. No link below the agent's folder is followed. A file gets its name when it is whole.
"""

import os
from collections.abc import Iterator, Sequence
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import Literal, NamedTuple

from agent_logger import platform
from agent_logger.agents.base import AgentLocation
from agent_logger.agents.folders import agent_folders
from agent_logger.agents.locations import beside, fits
from agent_logger.agents.registry import agent_called
from agent_logger.archive import restore_database
from agent_logger.archive.layout import ArchivedCopy, copies
from agent_logger.archive.sessions import Archived, archived_sessions
from agent_logger.errors import SourceError, StoreError
from agent_logger.files import foreign

_FOLDER = os.O_RDONLY | os.O_DIRECTORY | os.O_NOFOLLOW | os.O_CLOEXEC


class RestoreStep(NamedTuple):
    copy: Path  # under its plain name
    root: Path
    parts: tuple[str, ...]
    state: Literal["missing", "there", "other"]  # as the copy says; or something else is in its place

    @property
    def to(self) -> Path:
        return self.root.joinpath(*self.parts)


class Plan(NamedTuple):
    session: Archived
    steps: list[RestoreStep]
    rows: "restore_database.DatabaseRows | None" = None  # to be added to a database that is there

    @property
    def missing(self) -> list[RestoreStep]:
        return [step for step in self.steps if step.state == "missing"]


def find(home: Path, given: str) -> Archived:
    """By id, or a beginning that no other has. Raises `SourceError`."""
    every = [(name, session) for session in archived_sessions(home) for name in session.names]
    matching = [session for name, session in every if name == given]
    matching = matching or [session for name, session in every if name.startswith(given or "/")]
    if not matching:
        raise SourceError(f"no session {given} in the archive; 'agent-logger ls' lists those there are")
    if len({session.id for session in matching}) > 1:
        count = len({session.id for session in matching})
        raise SourceError(f"{given} begins the ids of {count} sessions in the archive; give more of it")
    return max(matching, key=lambda session: session.source.modified)


def plan(session: Archived) -> Plan:
    """Where the agent looks now: the folder the files came from if it is one of these, else the first of them. A
    database may have been anywhere."""
    agent = agent_called(session.agent)
    assert agent
    assert agent.location
    roots = agent_folders(agent.location)
    origin = session.folder.origin
    root = origin if origin in roots or agent.location.is_database else roots[0]
    if agent.location.is_database:
        database = root.joinpath(*session.parts)
        if foreign.existing(database):
            return Plan(session, [], restore_database.rows_of(session.file, session.id, database))
        return Plan(session, [RestoreStep(session.file, root, session.parts, "missing")])
    return Plan(session, [_step(copy, root) for copy in _copies_of(session, agent.location)])


def _step(copy: ArchivedCopy, root: Path) -> RestoreStep:
    to = root.joinpath(*copy.parts)
    if not os.path.lexists(to):
        return RestoreStep(copy.target, root, copy.parts, "missing")
    same = foreign.existing(to) == to and _digest(to) == _digest(copy.target)
    return RestoreStep(copy.target, root, copy.parts, "there" if same else "other")


def _digest(path: Path) -> str:
    import hashlib

    digest = hashlib.sha256()
    for chunk in foreign.chunks(path):
        digest.update(chunk)
    return digest.hexdigest()


def _copies_of(session: Archived, location: AgentLocation) -> Iterator[ArchivedCopy]:
    """Of the main file, those of sub-agents, and what lies beside them for this session alone."""
    own = {session.source.path, *(session.source.others or ())}
    patterns = beside(location.beside, session.parts)
    for copy in copies(session.folder):
        if str(copy.target) in own or any(fits(copy.parts, pattern) for pattern in patterns):
            yield copy


# ---------------------------------------------------------------- writing


def carry_out(planned: Plan) -> None:
    """Raises `StoreError`; what was written before stays, for each file is whole."""
    for step in planned.missing:
        try:
            _write(step)
        except FileExistsError as error:
            raise StoreError(f"{step.to}: something came there meanwhile; it was not touched") from error
        except (OSError, SourceError) as error:
            raise StoreError(
                f"cannot write {step.to}: {getattr(error, 'strerror', None) or error}"
            ) from error
    if planned.rows:
        restore_database.add(planned.rows)


def _write(step: RestoreStep) -> None:
    """With the time of now: by its old one the agent might delete it again at once."""
    name = step.parts[-1]
    temporary = f".{name[:100]}.{os.getpid()}"
    with _made_below(step.root, step.parts[:-1]) as folder:
        fd = os.open(temporary, os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_NOFOLLOW, 0o600, dir_fd=folder)
        held = platform.Held(fd, step.to)
        try:
            for chunk in foreign.chunks(step.copy):
                held.write(chunk)
            platform.sync(held.fd)
            os.link(temporary, name, src_dir_fd=folder, dst_dir_fd=folder, follow_symlinks=False)
        finally:
            held.close()
            with suppress(OSError):
                os.unlink(temporary, dir_fd=folder)
        os.fsync(folder)


@contextmanager
def _made_below(root: Path, parts: Sequence[str]) -> Iterator[int]:
    """A descriptor of the folder, made where it was not there."""
    platform.make_folder(root)
    folder = os.open(root, os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC)
    try:
        for part in parts:
            with suppress(FileExistsError):
                os.mkdir(part, platform.FOLDER_MODE, dir_fd=folder)
            above, folder = folder, os.open(part, _FOLDER, dir_fd=folder)
            os.close(above)
        yield folder
    finally:
        os.close(folder)
