"""The figures of a session: tools, files, time, tokens, cost. Pure, for a session from any source."""

import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime, timedelta
from typing import Any

import msgspec
from msgspec.structs import replace

from agent_logger.catalog.ledger.models import AnswerModel, models_of
from agent_logger.catalog.ledger.session_responses import responses_of_session, totals_of_session
from agent_logger.catalog.ledger.totals import Total, total_of
from agent_logger.model.responses import utc
from agent_logger.model.session import (
    PATH_KEYS,
    Block,
    Cost,
    Exchange,
    Session,
    ToolKind,
    Turn,
    Usage,
    tool_kind,
)

LONGEST_PAUSE = timedelta(minutes=5)  # the part of a gap that counts as active: the rest is idle
SHORT_ID = 16  # characters; servers that count repeat shorter ones in every answer
PATH_LISTS = ("paths", "file_paths")


@dataclass(frozen=True, slots=True, kw_only=True)
class ToolUsage:
    """All calls of one tool. `name` is the agent's own; none where only results are known."""

    name: str | None
    kind: ToolKind
    calls: int
    errors: int
    seconds: float | None  # none where start and end are unknown


@dataclass(frozen=True, slots=True, kw_only=True)
class Metrics:
    exchanges: int  # for a fork, exchanges, turns, tokens and cost are those after it
    turns: int  # turns of all threads, also those without a result
    models: Sequence[str]  # the main one first
    tools: Sequence[ToolUsage]  # the most used first
    files_read: Sequence[str]
    files_written: Sequence[str]
    files_edited: Sequence[str]
    wall_seconds: float | None  # time from the first moment to the last
    # Time that the agent worked: the exchanges, with at most 5 minutes of any pause.
    active_seconds: float | None
    usage: Usage  # billed
    output_tokens: int
    context_tokens: int | None
    peak_context_tokens: int | None
    cost: Cost


def metrics_of(session: Session) -> Metrics:
    turns = session.turns
    inherited = session.inherited
    usage, cost = _own_usage(session)
    calls = _calls(session.own_turns)
    files = _files(calls)
    answers = (AnswerModel(turn.model, turn.thread, turn.usage is not None) for turn in turns)
    return Metrics(
        exchanges=len(session.exchanges) - (inherited.exchanges if inherited else 0),
        turns=len(session.own_turns),
        models=models_of(answers).all,
        tools=_tools(calls),
        files_read=files["read"],
        files_written=files["write"],
        files_edited=files["edit"],
        wall_seconds=_wall_seconds(session),
        active_seconds=active_seconds(session),
        usage=usage,
        output_tokens=usage.output_tokens,
        context_tokens=session.context_tokens,
        peak_context_tokens=session.peak_context_tokens,
        cost=cost,
    )


def exchange_total(session: Session, exchange: Exchange) -> Total:
    """Return the total of one exchange."""
    totals = [total for total in session.totals if total.exchange == exchange.number]
    return _total(replace(session, exchanges=[exchange], side_turns=(), totals=totals))


def _own_usage(session: Session) -> tuple[Usage, Cost]:
    """Return what counts in this session. A fork's totals also cover turns that count in another one, so what they have
    beyond all turns is taken from the session, which knows these."""
    if not session.inherited:
        billed = _total(session)
        return billed.usage, billed.cost
    own = total_of(responses_of_session(replace(session, exchanges=(), side_turns=session.own_turns, totals=())))
    beyond = session.not_itemised
    usage = sum((remainder.usage for remainder in beyond if remainder.usage), own.usage)
    return usage, Cost.total([own.cost, *(remainder.cost for remainder in beyond if remainder.cost)])


def _total(session: Session) -> Total:
    return total_of(responses_of_session(session), list(totals_of_session(session)))


# ---------------------------------------------------------------- tools


class _Call(msgspec.Struct, gc=False):
    """What is counted of a tool call. A `ToolCall` takes longer to make, and has more."""

    name: str | None = None
    kind: ToolKind = "other"
    input: Any = None
    is_error: bool = False
    started: datetime | None = None
    ended: datetime | None = None

    def take(self, block: Block) -> None:
        """Take over what a use or a result says; of copies of a use, the first counts."""
        if block.kind == "tool_result":
            self.is_error, self.ended = block.is_error, block.at
        elif self.name is None:
            self.name, self.input, self.started = block.name, block.input, block.at
            self.kind = tool_kind(block.name) if block.name else "other"


def _calls(turns: Iterable[Turn]) -> list[_Call]:
    """Return each call once: a use in one turn and its result in another, and the copies that a compacted or resumed
    session makes, are one call."""
    calls: dict[object, _Call] = {}
    for number, turn in enumerate(turns):
        for place, block in enumerate(turn.blocks):
            if block.kind == "tool_use" or block.kind == "tool_result":
                calls.setdefault(_call_key(block, number, place), _Call()).take(block)
    return list(calls.values())


def count_tool_calls(session: Session) -> tuple[int, int]:
    """Return how many calls there are, and how many of them failed; of a fork, those after it."""
    failed: dict[object, bool] = {}
    for number, turn in enumerate(session.own_turns):
        for place, block in enumerate(turn.blocks):
            if block.kind == "tool_use":
                failed.setdefault(_call_key(block, number, place), False)
            elif block.kind == "tool_result":
                failed[_call_key(block, number, place)] = block.is_error
    return len(failed), sum(failed.values())


def _call_key(block: Block, turn: int, place: int) -> object:
    """Return a key that a use, its result, and copies of both have in common."""
    key = block.id
    return key if key and len(key) >= SHORT_ID else (turn, key or place)


def _tools(calls: Iterable[_Call]) -> list[ToolUsage]:
    by_name: dict[str | None, list[_Call]] = {}
    for call in calls:
        by_name.setdefault(call.name, []).append(call)
    uses = [_use(name, of_name) for name, of_name in by_name.items()]
    return sorted(uses, key=lambda use: (-use.calls, use.name or ""))


def _use(name: str | None, calls: Sequence[_Call]) -> ToolUsage:
    seconds = [_seconds(call.started, call.ended) for call in calls if call.started and call.ended]
    return ToolUsage(
        name=name,
        kind=calls[0].kind,
        calls=len(calls),
        errors=sum(call.is_error for call in calls),
        seconds=sum(seconds) if seconds else None,
    )


def _seconds(start: datetime, end: datetime) -> float:
    return max(0.0, (utc(end) - utc(start)).total_seconds())  # clocks may be set back


# ---------------------------------------------------------------- files

PATCHED = re.compile(r"^\*\*\* (Add|Update|Delete) File: (.+?)\s*$|^\*\*\* (Move) to: (.+?)\s*$", re.MULTILINE)


def _files(calls: Iterable[_Call]) -> dict[ToolKind, list[str]]:
    """Return the files that were read, written and edited, in the order of first use, without failed calls."""
    files: dict[ToolKind, dict[str, None]] = {"read": {}, "write": {}, "edit": {}}
    for call in calls:
        if not call.is_error:
            for kind, path in _paths_in(call):
                if kind in files:
                    files[kind][path] = None
    return {kind: list(paths) for kind, paths in files.items()}


def _paths_in(call: _Call) -> Iterator[tuple[ToolKind, str]]:
    if call.kind == "edit" or call.kind == "shell":
        for patched in PATCHED.finditer(_patch(call.input)):
            yield "write" if patched[1] == "Add" else "edit", patched[2] or patched[4]
    if isinstance(call.input, dict):
        yield from _paths_in_input(call.input, call.kind)


def _paths_in_input(given: Mapping[Any, Any], kind: ToolKind) -> Iterator[tuple[ToolKind, str]]:
    # Anthropic has one tool that views, creates and edits; its input says which.
    command = given.get("command")
    if isinstance(command, str):
        kind = COMMANDS.get(command, kind)
    for key, value in given.items():
        if key in PATH_KEYS and isinstance(value, str):
            yield kind, value
        elif key in PATH_LISTS and isinstance(value, list):
            yield from ((kind, path) for path in value if isinstance(path, str))


COMMANDS: Mapping[str, ToolKind] = {"view": "read", "create": "write"}


def _patch(patch: Any) -> str:
    """Return the text of an `apply_patch`: alone, in a field, or in the arguments of a shell."""
    texts: list[str] = []
    for value in patch.values() if isinstance(patch, dict) else (patch,):
        if isinstance(value, str):
            texts.append(value)
        elif isinstance(value, list):
            texts += [text for text in value if isinstance(text, str)]
    return "\n".join([text for text in texts if "*** Begin Patch" in text])


# ---------------------------------------------------------------- time


def _wall_seconds(session: Session) -> float | None:
    """Return the seconds from the first moment to the last, of the session if it has times, else of its turns."""
    moments = [moment for turn in session.turns for moment in _moments(turn, (turn,))]
    started = session.started or min(moments, default=None)
    ended = session.ended or max(moments, default=None)
    return _seconds(started, ended) if started and ended else None


def active_seconds(session: Session) -> float | None:
    """Return how long its agent worked: from an input to the last step that follows it, counting at most 5 minutes of
    any pause. The time between exchanges is a person's. What was done at the same time counts once."""
    spans = [span for exchange in session.exchanges for span in _spans(_moments(exchange, exchange.turns))]
    spans += [span for turn in session.side_turns for span in _spans(_moments(turn, (turn,)))]
    if not spans:
        return None if session.started is None else 0.0
    total, (start, end) = timedelta(), min(spans)
    for began, ended in sorted(spans):
        if began > end:
            total += end - start
            start = began
        end = max(end, ended)
    return (total + (end - start)).total_seconds()


def _moments(span: Exchange | Turn, turns: Iterable[Turn]) -> list[datetime]:
    """Return every known moment, in order."""
    times = [span.started, span.ended]
    for turn in turns:
        times += (turn.started, turn.ended, *(block.at for block in turn.blocks))
    return sorted([utc(time) for time in times if time])


def _spans(moments: Sequence[datetime]) -> Iterator[tuple[datetime, datetime]]:
    """Yield the time that the moments cover, in pieces where a pause was too long: of such a pause the allowed length
    counts."""
    if not moments:
        return
    start = last = moments[0]
    for moment in moments:
        if moment - last > LONGEST_PAUSE:
            yield start, last + LONGEST_PAUSE
            start = moment
        last = moment
    yield start, last
