"""Reads a long session incrementally: what was written since, and a little before it, instead of all of it.

A mark is a line of the file after which a reader gets the same turns, whether it has read what is before or not. That
is checked when a mark is made. When it is used, anything that could make a difference causes the session to be read as
a whole: another file in its place, sub-agents that continued, lines older than the mark or linked to lines before it,
results of calls before it, a response that continues.
"""

import dataclasses
import os
from collections.abc import Iterable
from contextlib import suppress
from pathlib import Path

import msgspec

from agent_logger.agents.claude_code.transcript.session import Transcript, transcript_of
from agent_logger.agents.claude_code.transcript.turns import is_unique
from agent_logger.agents.registry import agent_called
from agent_logger.agents.source_files import SourceFiles
from agent_logger.catalog.discovery.reader import open_source
from agent_logger.catalog.ledger.rows import NEVER, micros_of
from agent_logger.catalog.session_details import Counts, counts_of
from agent_logger.errors import SourceError
from agent_logger.files import foreign
from agent_logger.files.follow import Position, Rest, position_at
from agent_logger.files.sources import Source
from agent_logger.model.responses import ModelResponse
from agent_logger.model.session import MAIN, Session, Turn

LONG_BYTES = 1 << 20  # a shorter file is read as a whole faster than a mark would be found
TAIL_BYTES = 1 << 18  # bytes that may be read again and again before the mark moves
# Bytes at the end of a file that are searched for the line of a turn.
FIRST_BYTES, MOST_BYTES = 1 << 16, 1 << 24


class Mark(msgspec.Struct, frozen=True, kw_only=True):
    """The place where reading continues, and the facts about what comes before."""

    position: Position
    size: int = 0  # the size of the file when it was last read
    others: str  # the stamp of its sub-agents' files
    exchange: int  # the number of the exchange that the mark is in
    turn: int  # the place of the first turn after the mark
    at: int  # the time of that turn, in microseconds
    loose: frozenset[str]  # ids of lines before the mark that lines after it are linked to
    counts: Counts
    inherited_turns: int = 0  # turns that count in another session


class SessionTail(msgspec.Struct, frozen=True, kw_only=True):
    """The part of a session after a mark; its first exchange and turn have these numbers."""

    mark: Mark  # where to continue the next time
    exchange: int
    turn: int
    session: Session
    titled: bool  # whether the client or a person gave a title after the mark
    counts: Counts  # counts of the whole session


def mark_of(sources: Iterable[Source], session: Session) -> Mark | None:
    """Return a mark for a session that was just read; None if it cannot be read incrementally."""
    source = _single_source(sources)
    inherited = session.inherited.turns if session.inherited else 0
    return _make_mark(source, session, 1, 0, counts_of(session), inherited) if source else None


def tail_of(sources: Iterable[Source], mark: Mark, before: Iterable[ModelResponse]) -> SessionTail | None:
    """Return what a session has after its mark; None if it must be read as a whole. `before`: its responses."""
    source = _single_source(sources)
    if source is None or _other_stamps(source) != mark.others:
        return None
    read = _read(source, mark.position)
    if read is None:
        return None
    transcript, position = read
    if position.size == mark.size:  # nothing was appended, so something was written over
        return None
    earlier = {response.message_id for response in before if micros_of(response.at) < mark.at}
    if not _is_continuation(transcript, mark) or any(turn.message_id in earlier for turn in transcript.session.turns):
        return None
    counts = mark.counts + counts_of(transcript.session)
    moved = None
    if position.offset - mark.position.offset > TAIL_BYTES:
        moved = _make_mark(source, transcript.session, mark.exchange, mark.turn, counts, mark.inherited_turns)
    return SessionTail(
        mark=moved or msgspec.structs.replace(mark, size=position.size),
        exchange=mark.exchange,
        turn=mark.turn,
        session=transcript.session,
        titled=transcript.titled,
        counts=counts,
    )


def _single_source(sources: Iterable[Source]) -> Source | None:
    """Return the file of a session that has no other witness, if it is not a sealed copy."""
    listing = list(sources)
    agent = agent_called(listing[0].agent) if len(listing) == 1 else None
    if agent is None or not agent.reads_on or listing[0].prompts_only:
        return None
    path = Path(listing[0].path)
    return listing[0] if foreign.existing(path) == path else None


def _other_stamps(source: Source) -> str:
    return source.stamp.partition(";")[2]


def _read(found_source: Source, position: Position) -> tuple[Transcript, Position] | None:
    """Read what the main file has after a position, and how far it was read; None if it is another file by now."""
    try:
        rest = Rest(Path(found_source.path), position)
        if rest.restarted:
            return None
        source = open_source(found_source)
        main = dataclasses.replace(source.main, chunks=rest.chunks)
        return transcript_of(SourceFiles(main, (), source.text)), rest.position
    except (SourceError, OSError):
        return None


def _is_continuation(transcript: Transcript, mark: Mark) -> bool:
    return (
        micros_of(transcript.session.started) >= mark.at
        and transcript.loose == mark.loose  # no new links to lines before, and no missing line was added
        and not transcript.summaries  # summaries may describe lines before the mark
        and _is_plain(transcript.session)
    )


def _is_plain(session: Session) -> bool:
    """Whether all turns are in the main thread, and every result has its call."""
    turns = session.turns
    return (
        bool(turns)
        and not session.side_turns
        and all(turn.thread == MAIN and _open_calls(turn) is not None for turn in turns)
    )


def _open_calls(turn: Turn) -> set[str | None] | None:
    """Return the calls that have no result yet; None if there is a result without a call."""
    used = {block.id for block in turn.blocks if block.kind == "tool_use"}
    results = {block.id for block in turn.blocks if block.kind == "tool_result"}
    return used - results if results <= used else None


# ---------------------------------------------------------------- making a mark


def _make_mark(
    source: Source, session: Session, exchange: int, turn: int, counts: Counts, inherited_turns: int
) -> Mark | None:
    """Make a mark at the first turn that may still continue. The session's first exchange and turn have these numbers;
    the counts cover the whole session."""
    at = _open_turn(session)
    path = Path(source.path)
    offset = _find_line(path, session.turns[at]) if at is not None else None
    if at is None or offset is None:
        return None
    position = position_at(path, offset)
    transcript, end = _read(source, position) or (None, position)
    if transcript is None or not _is_end(transcript.session, session, at):
        return None
    return Mark(
        position=position,
        size=end.size,
        others=_other_stamps(source),
        exchange=exchange + len(session.exchanges) - len(transcript.session.exchanges),
        turn=turn + at,
        at=micros_of(transcript.session.started),
        loose=transcript.loose,
        counts=counts - counts_of(transcript.session),
        inherited_turns=inherited_turns,
    )


def _open_turn(session: Session) -> int | None:
    """Return the first turn of the last exchange that waits for a result; else the last of all. None if its line is not
    known."""
    turns = session.turns
    if not turns or session.side_turns:
        return None
    before = len(turns) - len(session.exchanges[-1].turns)
    waiting = (at for at, turn in enumerate(turns[before:], before) if _open_calls(turn))
    at = next(waiting, len(turns) - 1)
    return at if is_unique(turns[at].message_id) else None


def _find_line(path: Path, turn: Turn) -> int | None:
    """Return where the first line of a turn begins, if it is near the end of the file."""
    name = f'"{turn.message_id}"'.encode()
    with suppress(SourceError, OSError), foreign.opened(path) as fd:
        size, window = os.fstat(fd).st_size, FIRST_BYTES
        while window <= MOST_BYTES:
            start = max(0, size - window)
            data = os.pread(fd, size - start, start)
            foreign.work.bytes += len(data)
            at = data.find(name)
            if at >= (window // 2 if start else 0):  # a line near the start may have another one before it
                return start + data.rfind(b"\n", 0, at) + 1
            window *= 4
    return None


def _is_end(whole: Session, session: Session, at: int) -> bool:
    """Whether the one session is what the other has from this turn on."""
    inputs, of_all = ([exchange.user_input for exchange in each_session.exchanges] for each_session in (whole, session))
    return (
        _is_plain(whole)
        and micros_of(whole.started) != NEVER
        and whole.ended == session.ended  # lines need not be in the order of their times
        and whole.turns == session.turns[at:]
        and inputs == [None, *of_all[len(of_all) - len(inputs) + 1 :]]
        and whole.exchanges[-1].end_reason == session.exchanges[-1].end_reason
    )
