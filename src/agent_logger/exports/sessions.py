"""Sessions of the catalog, or in files, as exports get them."""

from collections.abc import Callable, Sequence
from functools import partial
from pathlib import Path

from agent_logger.catalog.catalog import Catalog
from agent_logger.catalog.summary import Filter, SessionSummary
from agent_logger.errors import SourceError
from agent_logger.exports.base import ExportedSession
from agent_logger.files.parts import PartFile, part_of
from agent_logger.files.sources import Source, source_at
from agent_logger.logs.log_records import kind_of_log
from agent_logger.logs.reader import read_session
from agent_logger.model.session import Session


def exported_sessions(catalog: Catalog, where: Filter) -> list[ExportedSession]:
    """Return the sessions of the catalog that match, the one that began first at the beginning."""
    stamps = catalog.stamps()
    summaries = catalog.sessions(where, order="started")[::-1]
    return [_in_catalog(catalog, summary, *stamps.get(summary.id, ("", 0))) for summary in summaries]


def _in_catalog(catalog: Catalog, summary: SessionSummary, stamp: str, size: int) -> ExportedSession:
    sources = partial(catalog.sources, summary.id)
    return ExportedSession(
        summary.id,
        read=partial(_read, catalog, summary.id),
        wire_logs=partial(_wire_logs, sources),
        sources=sources,
        titles=partial(catalog.titles_beside, summary.id),
        continued_in=partial(_continued_in, catalog, summary),
        agent=summary.agent,
        project=summary.project,
        stamp=stamp,
        bytes=size,
    )


def _continued_in(catalog: Catalog, summary: SessionSummary) -> str | None:
    """Return the only session that begins with all of this one."""
    forks = [catalog.summary(name) for name in catalog.forks(summary.id)]
    whole = summary.exchanges + (summary.inherited_exchanges or 0)
    later = [fork.id for fork in forks if fork and whole and fork.inherited_exchanges == whole]
    return later[0] if len(later) == 1 else None


def _read(catalog: Catalog, session_id: str) -> Session:
    if session := catalog.read(session_id):
        return session
    raise SourceError(f"the files of session {session_id!r} can no longer be read")


def _wire_logs(sources: Callable[[], Sequence[Source]]) -> list[PartFile]:
    ours = (part_of(Path(source.path)) for source in sources() if source.is_log)
    logs = dict.fromkeys(PartFile(part.folder, part.name) for part in ours if part)
    return [log for log in logs if kind_of_log(log.folder, log.name) == "wire"]


def exported_log(log: PartFile) -> ExportedSession:
    """Return the session of one log of the proxy."""
    return ExportedSession(log.name, read=lambda: read_session(log.path), wire_logs=lambda: [log])


def exported_file(path: Path, read: Callable[[], Session]) -> ExportedSession:
    """Return the session in a file."""
    session = read()
    part = part_of(path)
    is_wire = part is not None and kind_of_log(part.folder, part.name) == "wire"
    logs = [PartFile(part.folder, part.name)] if part and is_wire else []
    return ExportedSession(
        session.id,
        read=lambda: session,
        wire_logs=lambda: logs,
        sources=lambda: [_source_at(path, session)],
        agent=session.agent,
        project=session.project,
    )


def _source_at(path: Path, session: Session) -> Source:
    part = part_of(path)
    if part and kind_of_log(part.folder, part.name):
        return Source(str(part.path), None, str(part.path), part.name, 0.0, 0, "")
    return source_at(session.agent or "", path, session.id)
