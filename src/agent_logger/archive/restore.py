"""Restores a session from the archive to where its agent finds it: planned first, then written.

No existing file is changed. No link below the agent's folder is followed. A file gets its name when it is complete. A
session of an agent that has a database is written to a folder of ours, or one that the user names, as documents that
the agent itself imports: a database of another program is read, and never written to.
"""

import hashlib
import os
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from functools import partial
from pathlib import Path
from typing import Literal, NamedTuple, cast

import msgspec

from agent_logger import platform
from agent_logger.agents.base import Agent, AgentLocation, ImportSupport, module
from agent_logger.agents.contracts import LONGEST_NAME, ImportDocument, ImportDocuments, LeftOutRow
from agent_logger.agents.folders import agent_folders
from agent_logger.agents.locations import beside, fits
from agent_logger.agents.registry import agent_called
from agent_logger.archive.layout import ArchivedCopy, copies
from agent_logger.archive.sessions import Archived, archived_sessions
from agent_logger.errors import SourceError, StoreError
from agent_logger.files import foreign
from agent_logger.files.sources import source_at
from agent_logger.model.plurals import pluralize
from agent_logger.protocols.jsonl import JsonEntry

RESTORED = "restored"  # the folder of our home for documents
MOST_DOCUMENTS = 1_000  # with the same session, each with different content
_FOLDER = os.O_RDONLY | os.O_DIRECTORY | os.O_NOFOLLOW | os.O_CLOEXEC


class RestoreStep(NamedTuple):
    copy: Path  # in the archive, under its plain name
    root: Path
    parts: tuple[str, ...]
    state: Literal["missing", "there", "other"]  # `there`: as the copy; `other`: another file is there
    chunks: Callable[[], Iterable[bytes]]  # what to write

    @property
    def to(self) -> Path:
        return self.root.joinpath(*self.parts)


class ImportCommand(msgspec.Struct, frozen=True):
    """The command that the user runs next."""

    folder: str | None  # where to run it: the session is put into the project there
    arguments: tuple[str, ...]


class RestoredFile(msgspec.Struct, frozen=True):
    path: str
    state: Literal["written", "there", "other"]  # other: a different file has this name, and is kept


_STATES: Mapping[str, Literal["written", "there", "other"]] = {"missing": "written", "there": "there", "other": "other"}


class RestoreReport(msgspec.Struct, frozen=True, kw_only=True):
    session: str
    agent: str
    files: list[RestoredFile]
    next: Sequence[ImportCommand]  # commands that import the session into the agent; empty if the agent has it
    left_out: Sequence[LeftOutRow]  # rows of the archived database that the agent's import refuses
    completed_rows: int  # of older versions: they got fields that the agent's import requires


class Plan(NamedTuple):
    session: Archived
    steps: list[RestoreStep]
    commands: tuple[ImportCommand, ...] = ()
    left_out: tuple[LeftOutRow, ...] = ()
    completed: int = 0  # rows of older versions that were given fields which the agent's import requires

    def report(self) -> RestoreReport:
        """Return what was done, once this was carried out."""
        return RestoreReport(
            session=self.session.id,
            agent=self.session.agent,
            files=[RestoredFile(str(step.to), _STATES[step.state]) for step in self.steps],
            next=self.commands,
            left_out=self.left_out,
            completed_rows=self.completed,
        )

    @property
    def missing(self) -> list[RestoreStep]:
        return [step for step in self.steps if step.state == "missing"]


def find(home: Path, given: str) -> Archived:
    """Find a session by id, or by a unique beginning of it. Raises `SourceError`."""
    every = [(name, session) for session in archived_sessions(home) for name in session.names]
    matching = [session for name, session in every if name == given]
    matching = matching or [session for name, session in every if name.startswith(given or "/")]
    if not matching:
        raise SourceError(f"no session {given!r} in the archive; 'agent-logger ls' lists all sessions")
    if len({session.id for session in matching}) > 1:
        count = len({session.id for session in matching})
        raise SourceError(f"{given!r} is ambiguous ({pluralize(count, 'session')} in the archive): use a longer prefix")
    return max(matching, key=lambda session: session.source.modified)


def plan(home: Path, session: Archived, to: Path | None = None) -> Plan:
    """Plan a restore to where the agent looks now: the folder the files came from if it is one of these, else the first
    of them. What the agent has to import goes to the folder `to`, or to one of our home. Raises `SourceError`."""
    agent = agent_called(session.agent)
    assert agent
    assert agent.location
    if agent.imports:
        return _plan_of_documents(home, session, agent, agent.imports, to)
    return Plan(
        session,
        [
            _step(copy.target, *_place(agent.location, copy), partial(foreign.chunks, copy.target))
            for copy in _copies_of(session, agent.location)
        ],
    )


def _place(location: AgentLocation, copy: ArchivedCopy) -> tuple[Path, tuple[str, ...]]:
    """Return where a file belongs: a folder of the agent's, and the path below it. A database was copied with the path
    from its own folder, which may be below that of the agent."""
    roots, origin = agent_folders(location), copy.folder.origin
    if origin in roots or location.is_named_by_user:
        return origin, copy.parts
    whole = copy.origin.parts
    for pattern in sorted((tuple(glob.split("/")) for glob in location.globs), key=len, reverse=True):
        if location.is_database and fits(whole[-len(pattern) :], pattern):
            root = Path(*whole[: -len(pattern)])
            return root if root in roots else roots[0], whole[-len(pattern) :]
    return roots[0], copy.parts


def _step(copy: Path, root: Path, parts: tuple[str, ...], chunks: Callable[[], Iterable[bytes]]) -> RestoreStep:
    step = RestoreStep(copy, root, parts, "missing", chunks)
    if not os.path.lexists(step.to):
        return step
    is_same = foreign.existing(step.to) == step.to and _digest(foreign.chunks(step.to)) == _digest(chunks())
    return step._replace(state="there" if is_same else "other")


def _digest(chunks: Iterable[bytes]) -> str:
    digest = hashlib.sha256()
    for chunk in chunks:
        digest.update(chunk)
    return digest.hexdigest()


def _copies_of(session: Archived, location: AgentLocation) -> Iterator[ArchivedCopy]:
    """Yield the copies of the main file, those of sub-agents, and what is beside them for this session alone."""
    own = {session.source.path, *(session.source.others or ())}
    patterns = beside(location.beside, session.parts)
    for copy in copies(session.folder):
        if str(copy.target) in own or any(fits(copy.parts, pattern) for pattern in patterns):
            yield copy


# ---------------------------------------------------------------- documents to import


def _plan_of_documents(home: Path, session: Archived, agent: Agent, support: ImportSupport, to: Path | None) -> Plan:
    """Plan a document for the session, and one for each that it started; none for what the agent's database has
    completely."""
    root, above = (home, (RESTORED,)) if to is None else (to.absolute(), ())
    steps, commands, left_out, completed = [], [], [], 0
    source, origin = session.open(), session.folder.origin.joinpath(*session.parts)
    documents = cast("ImportDocuments", module(support.documents))
    for file in (source.main, *source.others):
        try:
            document = documents.import_document(file)
        except SourceError as error:
            if file is source.main:
                raise
            left_out.append(LeftOutRow(file.name[:LONGEST_NAME], "session", str(error)))
            continue
        if document.rows <= _rows_there(agent, origin, document.session):
            continue
        left_out += document.left_out
        step = _document_step(session, root, above, document)
        steps.append(step)
        commands.append(ImportCommand(document.directory, (*support.command, str(step.to))))
        completed += document.completed
    return Plan(session, steps, tuple(commands), tuple(left_out), completed)


def _rows_there(agent: Agent, database: Path, session: str) -> set[tuple[str, str]]:
    """Return the rows that the agent's own database has of a session; none if it cannot be read."""
    try:
        entries = agent.open_session(source_at(agent.name, database, session)).main.entries
        values = [entry.value for entry in entries if isinstance(entry, JsonEntry)]
    except (OSError, SourceError):
        return set()
    return {(value["table"], value["id"]) for value in values if type(value["id"]) is str}


def _document_step(session: Archived, root: Path, above: tuple[str, ...], document: ImportDocument) -> RestoreStep:
    """Plan a document under the first name that is free, or that a file with the same content has."""
    for number in range(1, MOST_DOCUMENTS + 1):
        name = f"{document.session}.json" if number == 1 else f"{document.session}-{number}.json"
        step = _step(Path(session.source.path), root, (*above, name), lambda: [document.data])
        if step.state != "other":
            return step
    raise SourceError(f"{step.to.parent} holds {MOST_DOCUMENTS:,} files with this session; delete some")


# ---------------------------------------------------------------- writing


def carry_out(planned: Plan) -> None:
    """Write the files. Raises `StoreError`; what was written before stays, because each file is complete."""
    for step in planned.missing:
        try:
            _write(step)
        except FileExistsError as error:
            raise StoreError(f"{step.to}: another file appeared there; it was not changed") from error
        except (OSError, SourceError) as error:
            raise StoreError(f"cannot write {step.to}: {getattr(error, 'strerror', None) or error}") from error


def _write(step: RestoreStep) -> None:
    """Write a file with the current time: by its old one the agent might delete it again at once."""
    name = step.parts[-1]
    temporary = f".{name[:100]}.{os.getpid()}"
    with _made_below(step.root, step.parts[:-1]) as folder:
        fd = os.open(temporary, os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_NOFOLLOW, 0o600, dir_fd=folder)
        held = platform.Held(fd, step.to)
        try:
            for chunk in step.chunks():
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
    """Yield a descriptor of the folder, created if it did not exist."""
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
