"""What a session comes to: tools, files, time, tokens, cost. Pure, over a session from whatever source."""

import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from operator import sub
from typing import Any

from msgspec.structs import replace

from agent_logger.catalog.ledger import Ledger
from agent_logger.catalog.totals import Total, total
from agent_logger.formats.session_responses import responses_of_session
from agent_logger.session import (
    PATH_KEYS,
    SYNTHETIC,
    Cost,
    Exchange,
    Session,
    ToolCall,
    ToolKind,
    Turn,
    Usage,
)

LONGEST_PAUSE = timedelta(minutes=5)  # of a gap that count as active: longer, and nobody was there
SHORT_ID = 16  # characters; servers that count give the same ones in every answer
PATH_LISTS = ("paths", "file_paths")


@dataclass(frozen=True, slots=True, kw_only=True)
class ToolUse:
    """All calls of one tool. `name` is the agent's own; none where only results are known."""

    name: str | None
    kind: ToolKind
    calls: int
    errors: int
    seconds: float | None  # none where nothing tells when they began and ended


@dataclass(frozen=True, slots=True, kw_only=True)
class Metrics:
    exchanges: int
    turns: int  # responses, each once, of all threads
    models: Sequence[str]  # in the order of their first answer
    tools: Sequence[ToolUse]  # the most used first
    files_read: Sequence[str]
    files_written: Sequence[str]
    files_edited: Sequence[str]
    wall_seconds: float | None  # from the first moment to the last
    active_seconds: float | None  # the same, of no pause more than 5 minutes
    usage: Usage  # billed
    output_tokens: int
    context_tokens: int | None
    peak_context_tokens: int | None
    cost: Cost


def metrics_of(session: Session) -> Metrics:
    ledger = Ledger()
    ledger.add(responses_of_session(session))
    billed = total(ledger.rows())
    calls = list(tool_calls(session))
    files = _files(calls)
    times = _times(session)
    models = (turn.model for turn in session.turns if turn.model and turn.usage and turn.model != SYNTHETIC)
    return Metrics(
        exchanges=len(session.exchanges),
        turns=billed.responses,
        models=list(dict.fromkeys(models)),
        tools=_tools(calls),
        files_read=files["read"],
        files_written=files["write"],
        files_edited=files["edit"],
        wall_seconds=(times[-1] - times[0]).total_seconds() if times else None,
        active_seconds=_active(times).total_seconds() if times else None,
        usage=billed.usage,
        output_tokens=billed.usage.output_tokens,
        context_tokens=session.context_tokens,
        peak_context_tokens=session.peak_context_tokens,
        cost=billed.cost,
    )


def exchange_total(session: Session, exchange: Exchange) -> Total:
    """What one exchange of it came to."""
    ledger = Ledger()
    ledger.add(responses_of_session(replace(session, exchanges=[exchange], side_turns=())))
    return total(ledger.rows())


# ---------------------------------------------------------------- tools


def tool_calls(session: Session) -> Iterable[ToolCall]:
    """Each once: a use in one turn and its result in another, and the copies that a compacted or resumed session
    makes, are one call."""
    calls: dict[object, ToolCall] = {}
    for number, turn in enumerate(session.turns):
        for place, call in enumerate(turn.tool_calls):
            key: object = call.id if call.id and len(call.id) >= SHORT_ID else (number, call.id or place)
            calls[key] = _one(calls[key], call) if key in calls else call
    return calls.values()


def count_tool_calls(session: Session) -> tuple[int, int]:
    """How many, and how many of them failed: as `tool_calls` has them, which takes longer."""
    calls: dict[object, bool] = {}
    for number, turn in enumerate(session.turns):
        for place, block in enumerate(turn.blocks):
            if block.kind in ("tool_use", "tool_result"):
                key: object = (
                    block.id if block.id and len(block.id) >= SHORT_ID else (number, block.id or place)
                )
                calls[key] = block.is_error if block.kind == "tool_result" else calls.get(key, False)
    return len(calls), sum(calls.values())


def _one(first: ToolCall, second: ToolCall) -> ToolCall:
    use, result = (first if first.name else second), (second if second.result is not None else first)
    return replace(use, result=result.result, is_error=result.is_error, ended=result.ended)


def _tools(calls: Iterable[ToolCall]) -> list[ToolUse]:
    by_name: dict[str | None, list[ToolCall]] = {}
    for call in calls:
        by_name.setdefault(call.name, []).append(call)
    uses = [_use(name, of_name) for name, of_name in by_name.items()]
    return sorted(uses, key=lambda it: (-it.calls, it.name or ""))


def _use(name: str | None, calls: Sequence[ToolCall]) -> ToolUse:
    seconds = [_seconds(it.started, it.ended) for it in calls if it.started and it.ended]
    return ToolUse(
        name=name,
        kind=calls[0].kind,
        calls=len(calls),
        errors=sum(it.is_error for it in calls),
        seconds=sum(seconds) if seconds else None,
    )


def _seconds(start: datetime, end: datetime) -> float:
    return max(0.0, (_utc(end) - _utc(start)).total_seconds())  # clocks are set back


# ---------------------------------------------------------------- files

PATCHED = re.compile(
    r"^\*\*\* (Add|Update|Delete) File: (.+?)\s*$|^\*\*\* (Move) to: (.+?)\s*$", re.MULTILINE
)


def _files(calls: Iterable[ToolCall]) -> dict[ToolKind, list[str]]:
    """Those that were read, written and edited, in the order of first use, without what failed."""
    files: dict[ToolKind, dict[str, None]] = {"read": {}, "write": {}, "edit": {}}
    for call in calls:
        if not call.is_error:
            for kind, path in _touched(call):
                if kind in files:
                    files[kind][path] = None
    return {kind: list(paths) for kind, paths in files.items()}


def _touched(call: ToolCall) -> Iterator[tuple[ToolKind, str]]:
    given, kind = call.input, call.kind
    if kind in ("edit", "shell"):
        for patched in PATCHED.finditer(_patch(given)):
            yield "write" if patched[1] == "Add" else "edit", patched[2] or patched[4]
    if not isinstance(given, dict):
        return
    # One tool of Anthropic's views, creates and edits, and says which in its input.
    command = given.get("command")
    if isinstance(command, str):
        kind = COMMANDS.get(command, kind)
    for key in PATH_KEYS:
        if isinstance(path := given.get(key), str):
            yield kind, path
    for key in PATH_LISTS:
        if isinstance(paths := given.get(key), list):
            yield from ((kind, path) for path in paths if isinstance(path, str))


COMMANDS: Mapping[str, ToolKind] = {"view": "read", "create": "write"}


def _patch(told: Any) -> str:
    """The text of an `apply_patch`: alone, in a field, or in the arguments of a shell."""
    given = told.values() if isinstance(told, dict) else [told]
    texts = [text for it in given for text in (it if isinstance(it, list) else [it]) if isinstance(text, str)]
    return "\n".join(text for text in texts if "*** Begin Patch" in text)


# ---------------------------------------------------------------- time


def active_seconds(session: Session) -> float | None:
    """From the first moment to the last, of no pause more than 5 minutes."""
    times = _times(session)
    return _active(times).total_seconds() if times else None


def _times(session: Session) -> list[datetime]:
    """Every moment that something tells of, in order."""
    turns = session.turns
    spans: list[Session | Exchange | Turn] = [session, *session.exchanges, *turns]
    told = [time for it in spans for time in (it.started, it.ended)]
    told += [block.at for turn in turns for block in turn.blocks]
    return sorted([time if time.tzinfo else time.replace(tzinfo=UTC) for time in told if time])


def _active(times: Sequence[datetime]) -> timedelta:
    gaps = map(sub, times[1:], times)
    beyond = [gap - LONGEST_PAUSE for gap in gaps if gap > LONGEST_PAUSE]
    return times[-1] - times[0] - sum(beyond, timedelta())


def _utc(time: datetime) -> datetime:
    return time if time.tzinfo else time.replace(tzinfo=UTC)
