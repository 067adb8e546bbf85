"""What would be sent, for people to read."""

from collections.abc import Iterator
from contextlib import closing

import msgspec

from agent_logger.catalog.catalog import Catalog
from agent_logger.push.levels import ShareRules, is_match
from agent_logger.push.protocol import MOST_RANGE_BYTES, ObjectHead
from agent_logger.push.sender import SharedObject, SharedSession
from agent_logger.push.sharing import Sharing


class ShownObject(msgspec.Struct, frozen=True):
    """An object as it would be sent: a line of `share --show`."""

    object: str
    head: ObjectHead
    content: str


def lines_of(catalog: Catalog, key: bytes, rules: ShareRules, pattern: str | None) -> Iterator[bytes]:
    """Yield a line of JSON for each object, and several for one that would be sent in several ranges."""
    for session in Sharing(catalog, key, rules).sessions():
        if pattern is None or is_match(pattern, session.project or None):
            for outgoing in session.objects():
                yield from _lines(session, outgoing)


def _lines(session: SharedSession, outgoing: SharedObject) -> Iterator[bytes]:
    head = ObjectHead(
        session=session.id,
        level=session.level,
        revision=0,
        form=outgoing.form,
        rules=outgoing.rules,
        place=outgoing.place,
        origin=outgoing.origin,
    )
    for data in _pieces(outgoing):
        entry = ShownObject(outgoing.id, head, data.decode("utf-8", "replace"))
        yield msgspec.json.encode(entry)


def _pieces(outgoing: SharedObject) -> Iterator[bytes]:
    if outgoing.form == "lines":
        start, tail = 0, ""
        while piece := outgoing.piece(start, tail, None):
            yield piece.data
            start, tail = piece.end, piece.tail
        return
    with closing(outgoing.content()) as content:
        offset = 0
        while offset < content.length:
            data = content.read(offset, MOST_RANGE_BYTES)
            yield data
            offset += len(data)
