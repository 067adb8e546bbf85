"""The shape that all export formats share: a format takes sessions and yields pieces, which become files.

A piece is a stretch of the output, with its place in the session: what was removed from it, and what looks odd in it,
is reported by that place.
"""

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, NamedTuple

from agent_logger.exports.masks.mask import NO_MASK, SessionMask

if TYPE_CHECKING:
    from agent_logger.files.parts import PartFile
    from agent_logger.files.sources import Source
    from agent_logger.model.session import Session


class ExportPiece(NamedTuple):
    """A stretch of the output."""

    place: str  # "exchange 3", "call 7 request", "line 12 of the transcript"
    data: bytes


@dataclass(frozen=True, slots=True)
class ExportedSession:
    """A session as a format gets it: what the format does not use is not read."""

    id: str
    # Raises `SourceError` if the session cannot be read.
    read: Callable[[], "Session"]
    # The logs of the proxy.
    wire_logs: Callable[[], "Sequence[PartFile]"] = field(default=tuple)
    # Where each witness has the session.
    sources: Callable[[], "Sequence[Source]"] = field(default=tuple)
    # Titles in files of other sessions, by the line that each ends at: of this session or others.
    titles: Callable[[], "Mapping[str, str]"] = field(default=dict)
    # The session that continues this one in another file, if there is exactly one.
    continued_in: Callable[[], str | None] = lambda: None
    agent: str | None = None
    project: str | None = None
    stamp: str = ""  # changes with the session's files
    bytes: int = 0  # the size of its files


@dataclass(slots=True)
class ExportContext:
    """The conditions of one export, and the losses that formats report."""

    mask: SessionMask = NO_MASK
    # Whether the file has other sessions, too.
    is_joined: bool = False
    damaged: list[object] = field(default_factory=list)

    def on_damage(self, damage: object) -> None:
        self.damaged.append(damage)


Pieces = Callable[[ExportedSession, ExportContext], Iterator[ExportPiece]]


class Format(NamedTuple):
    """A format of exports. `module` has `pieces`, which is a `Pieces`."""

    name: str
    suffix: str
    media_type: str
    title: str  # on the page
    module: str
    # Whether one file can have several sessions, one after the other.
    joins: bool = True
    # Whether the pieces are those of an archive, which is packed by zstd when it is written.
    packed: bool = False
