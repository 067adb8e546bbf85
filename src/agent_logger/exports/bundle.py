"""A session with the files of all its witnesses, for another machine: what `agent-logger import` takes.

A `.tar.zst` of a folder with `session.json` and the files, in the layout of `archive/imported`. Keys are removed from
every file. Bundles are joined by writing one after the other.
"""

import tempfile
from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import IO

import msgspec

from agent_logger import __version__
from agent_logger.agents.registry import given_id
from agent_logger.archive.imported import HEAD, BundledSession
from agent_logger.archive.witness_files import WitnessFile, witness_files
from agent_logger.errors import SourceError
from agent_logger.exports.base import ExportContext, ExportedSession, ExportPiece
from agent_logger.files.sources import Source
from agent_logger.home.layout import safe_name
from agent_logger.home.machine import host_name
from agent_logger.model.redaction.redactor import hidden
from agent_logger.protocols.tar import header, padding
from agent_logger.views.hidden_files import redacted_chunks, whole_lines

IN_MEMORY_BYTES = 1 << 20
PIECE_BYTES = 1 << 20
MOST_TITLES = 20


def pieces(session: ExportedSession, context: ExportContext) -> Iterator[ExportPiece]:
    if context.mask.kinds:
        raise SourceError("a bundle cannot be masked, because an import needs the paths; use another format")
    sources = session.sources()
    files = files_of(sources)
    if not files:
        raise SourceError(f"no file of session {session.id} is left: a bundle has files")
    name = hidden(session.id)
    unit = safe_name(name)
    logs = (source.name for source in sources if source.is_log)
    head = msgspec.json.encode(
        BundledSession(
            session=given_id(session.agent, name),
            agent=session.agent,
            machine=host_name(),
            logs=tuple(sorted(logs)),
            titles=_titles_of(files, session.titles()),
            agent_logger=__version__,
        )
    )
    newest = max(file.modified for file in files)
    yield ExportPiece(HEAD, header(f"{unit}/{HEAD}", len(head), newest) + head + padding(len(head)))
    for file in files:
        yield from _member(unit, file)


def files_of(sources: Iterable[Source]) -> Sequence[WitnessFile]:
    """Return the files of all witnesses, each once, sorted by place."""
    files = {file.parts: file for source in sources for file in witness_files(source)}
    return [files[parts] for parts in sorted(files)]


def _titles_of(files: Iterable[WitnessFile], titles: Mapping[str, str]) -> dict[str, str]:
    """Return the titles of lines that these files have."""
    own: set[str] = set()
    for file in files if titles else ():
        for portion in whole_lines(file.chunks()) if file.is_of_lines else ():
            own |= {line for line in titles.keys() - own if line.encode("utf-8", "replace") in portion}
    return {hidden(line): hidden(titles[line]) for line in sorted(own)[:MOST_TITLES]}


def _member(unit: str, file: WitnessFile) -> Iterator[ExportPiece]:
    """Yield a file. Its length is written before it, so what is left of it after redaction is put aside first."""
    place = "/".join(file.parts)
    with tempfile.SpooledTemporaryFile(IN_MEMORY_BYTES) as redacted:
        for chunk in redacted_chunks(file.chunks(), is_of_lines=file.is_of_lines):
            redacted.write(chunk)
            if len(chunk) >= PIECE_BYTES:
                yield ExportPiece(place, b"")  # reports what was removed so far
        size = redacted.tell()
        redacted.seek(0)
        yield ExportPiece(place, header(f"{unit}/{place}", size, file.modified))
        yield from (ExportPiece(place, chunk) for chunk in _chunks_of(redacted))
        yield ExportPiece(place, padding(size))


def _chunks_of(file: "IO[bytes]") -> Iterator[bytes]:
    """Yield pieces that end with a line where one ends."""
    while chunk := file.read(PIECE_BYTES):
        yield chunk + file.readline() if not chunk.endswith(b"\n") else chunk
