"""Reads the lines of an exchange log into a session."""

import shlex
from collections.abc import Iterable, Iterator, Mapping, Sequence
from datetime import datetime
from typing import Any

import msgspec
from msgspec.structs import replace

from agent_logger.agents.claude_code import AGENT as CLAUDE_CODE
from agent_logger.agents.claude_code.transcript.facts import compaction_of
from agent_logger.agents.claude_code.transcript.records import CompactionMessage, MessageUsage, message_usage
from agent_logger.agents.claude_code.transcript.turns import more_final
from agent_logger.agents.command_lines import starts_new
from agent_logger.agents.objects import in_utc
from agent_logger.agents.registry import names_sessions_on_wire
from agent_logger.logs.context import context_files
from agent_logger.logs.exchange_sums import usage_by_model, with_sums
from agent_logger.messages import counters
from agent_logger.messages.entries import EXCEPTION, whole_thought
from agent_logger.messages.outcome import failure_of
from agent_logger.messages.result_usage import with_result
from agent_logger.messages.sdk import STDERR, UNKNOWN
from agent_logger.model import session
from agent_logger.model.prices import canonical, priced
from agent_logger.model.records import AnyRecord, ExchangeRecord, Exit, Message, SessionStart, as_bytes
from agent_logger.model.remainders import with_remainders
from agent_logger.model.session import (
    AGENT_PREFIX,
    MAIN,
    SYNTHETIC,
    Block,
    BlockKind,
    ClientTotal,
    Compaction,
    ModelTotal,
    Session,
    SubAgent,
    Turn,
    Usage,
    Witness,
)
from agent_logger.providers.json_values import fields_of, text_of

SESSION_NOTE = "session_requests"  # the type of the message by which a run notes its session


def session_of(records: Iterable[AnyRecord], exchanges: Sequence[ExchangeRecord], log: str = "") -> Session:
    """Return the session of a log, from its other records, and its exchanges, each once. `log` names a session that no
    client named."""
    start = next((record for record in records if isinstance(record, SessionStart)), _UNSAID)
    witness = start.witness or witness_of(exchanges)
    agent = start.agent or (CLAUDE_CODE.name if witness == "sdk" else None)
    exchanges = _checked(exchanges, is_new=witness == "run" and starts_new(start.argv or [], agent))
    ids = [start.session_id, *(exchange.session_id for exchange in exchanges)]
    exchanges = [exchange for exchange in exchanges if not _is_note(exchange)]
    read_exchanges = [_exchange(exchange, start.model, witness) for exchange in exchanges]
    times = [time for exchange in read_exchanges for time in (exchange.started, exchange.ended) if time]
    costs = [
        exchange.stats.cost_usd for exchange in exchanges if exchange.stats and exchange.stats.cost_usd is not None
    ]
    pairs = list(zip(read_exchanges, exchanges, strict=True))
    # Otherwise what others used in all could not be separated from what their unnamed calls used.
    is_named = any(ids) and names_sessions_on_wire(agent)
    totals = [total for pair in pairs for total in _totals(*pair, start.model, witness, is_named=is_named)]
    if is_named:
        read_exchanges = [with_sums(exchange, record.stats, start.model, witness) for exchange, record in pairs]
    # Nothing but its command says what a run of an unknown agent was.
    command = shlex.join(start.argv) if start.argv and not start.agent else None
    made = Session(
        id=next(filter(None, ids), log),
        agent=agent,
        title=next((exchange.user_input for exchange in read_exchanges if exchange.user_input), command),
        project=start.cwd,
        started=min(times, default=None),
        ended=max(times, default=None),
        exchanges=read_exchanges,
        agents=_agents([turn for exchange in read_exchanges for turn in exchange.turns]),
        reported_cost_usd=sum(costs) if costs else None,
        compactions=[
            _compaction(message)
            for exchange in exchanges
            for message in exchange.messages
            if message.source == "system" and message.type == counters.COMPACTION
        ],
        context_files=context_files(start.context),
        totals=totals,
    )
    return with_remainders(made) if totals else made


def _totals(
    exchange: session.Exchange,
    record: ExchangeRecord,
    model: str | None,
    witness: Witness,
    *,
    is_named: bool,
) -> Iterator[ClientTotal]:
    """Yield what the result says that the exchange used in all. A result without responses can be compared with what
    other witnesses saw only if they know the session by its name."""
    stats = record.stats
    billed = [turn for turn in exchange.turns if turn.usage and turn.model != SYNTHETIC]
    ids = tuple(dict.fromkeys(turn.message_id for turn in billed if turn.message_id))
    if stats is None or not (ids or is_named) or (not ids and billed):
        return
    main = next((turn.model for turn in billed if turn.thread == MAIN and turn.model), model)
    unnamed = [turn for turn in billed if not turn.message_id]
    models = [
        ModelTotal(model=name, usage=_less(usage, name, unnamed))
        for name, usage in usage_by_model(stats, main)
        if any(usage.counts)
    ]
    if stats.inherited and counters.Work.of(record.messages).has_agents:
        models.append(ModelTotal(model=main, usage=None))
    if models:
        yield ClientTotal(
            witness=witness,
            models=tuple(models),
            started=exchange.started,
            ended=exchange.ended,
            message_ids=ids,
            is_whole=bool(stats.model_usage),
            exchange=exchange.number,
        )


def _less(usage: Usage, model: str | None, turns: Iterable[Turn]) -> Usage:
    """Subtract responses without an id: they count separately."""
    for turn in turns:
        if turn.usage and canonical(turn.model or "") == canonical(model or ""):
            usage = usage - turn.usage
    return Usage(**{name: max(0, getattr(usage, name)) for name in Usage.__struct_fields__})


def _checked(exchanges: Sequence[ExchangeRecord], *, is_new: bool) -> Sequence[ExchangeRecord]:
    """Return the exchanges with the first result's share of the client's counters as it is calculated today."""
    for at, exchange in enumerate(exchanges):
        if exchange.stats and exchange.stats.reported_model_usage:
            stats = counters.checked(exchange.stats, counters.Work.of(exchange.messages, is_new=is_new))
            return [*exchanges[:at], replace(exchange, stats=stats), *exchanges[at + 1 :]]
    return exchanges


# How a log began whose first line is lost.
_UNSAID = SessionStart(session_id=None, ts="", model=None, cwd=None, tools_available=None, permission_mode=None)


RUN_STARTED = "run_started"  # what a run notes first, where it does not begin with a prompt


def witness_of(exchanges: Sequence[ExchangeRecord]) -> Witness:
    """Return the witness of a log that does not name it yet, or never will, because its writer was killed."""
    first = next((message for exchange in exchanges for message in exchange.messages), None)
    return "run" if first and first.type == RUN_STARTED else "sdk"


def _compaction(message: Message) -> Compaction:
    parent = message.parent_tool_use_id
    try:
        boundary = msgspec.json.decode(message.content or b"{}", type=_Boundary).compact_metadata
    except (ValueError, RecursionError):
        boundary = None
    return compaction_of(boundary, time_of(message.ts), f"{AGENT_PREFIX}{parent}" if parent else MAIN)


class _Boundary(msgspec.Struct):
    """The client's own message about a compaction."""

    compact_metadata: CompactionMessage | None = None


def _agents(turns: Sequence[Turn]) -> list[SubAgent]:
    """Return the sub-agents. An SDK names a sub-agent by the tool call that started it; the call's input has the
    rest."""
    uses = {block.id: (turn, block) for turn in turns for block in turn.blocks if block.kind == "tool_use"}
    threads = dict.fromkeys(turn.thread for turn in turns if turn.thread.startswith(AGENT_PREFIX))
    return [_agent(thread, *uses.get(thread.removeprefix(AGENT_PREFIX), (None, None))) for thread in threads]


def _agent(thread: str, caller: Turn | None, use: Block | None) -> SubAgent:
    given = fields_of(use.input if use else None)
    return SubAgent(
        thread=thread,
        parent_thread=caller.thread if caller else MAIN,
        tool_use_id=thread.removeprefix(AGENT_PREFIX),
        kind=text_of(given.get("subagent_type")),
        description=text_of(given.get("description")),
    )


def _is_note(record: ExchangeRecord) -> bool:
    """Whether nothing happened but that a run, after its result, noted which session it was."""
    if record.user_input is not None or (record.exit and (record.exit.status or record.exit.signal)):
        return False
    return bool(record.messages) and all(message.type == SESSION_NOTE for message in record.messages)


def _exchange(record: ExchangeRecord, model: str | None, witness: Witness) -> session.Exchange:
    started = time_of(record.ts_start)
    turns = [priced(turn) for turn in with_result(_turns(record.messages, model, witness), record.stats)]
    printed = "\n".join(_printed(record.messages)) if not turns else ""
    exited = _exited(record.exit) if record.exit and record.end_reason != "result" else None
    if turns and exited == WELL:
        exited = None  # the log of an agent that prints no result: its turns are all that is known
    failure = failure_of(record.stats) if record.stats else None
    raised = _raised(record.messages) if not record.complete else None
    return session.Exchange(
        number=record.exchange,
        started=started,
        ended=_not_before(started, time_of(record.ts_end)),
        user_input=record.user_input,
        turns=turns,
        complete=exited == WELL if exited else record.complete and not failure,
        end_reason=exited or (failure.value if failure else raised and raised.reason) or record.end_reason,
        printed=printed or None,
    )


def _printed(messages: Iterable[Message]) -> Iterator[str]:
    """Yield what was printed and is not a message, on either output; and the exception that ended the exchange."""
    for message in messages:
        if message.source == "system" and message.type in (UNKNOWN, STDERR) and message.raw:
            yield as_bytes(message.raw, message.raw_encoding).decode("utf-8", "replace")
        elif raised := _raised([message]):
            yield raised.error


class _Raised(msgspec.Struct, frozen=True):
    """The exception that ended an exchange, as the SDK's logger saw it."""

    reason: str = "error"
    error: str = ""


def _raised(messages: Iterable[Message]) -> _Raised | None:
    exceptions = [message for message in messages if message.source == "system" and message.type == EXCEPTION]
    try:
        return msgspec.json.decode(exceptions[-1].content or b"{}", type=_Raised) if exceptions else None
    except (ValueError, RecursionError):
        return _Raised()


WELL = "exit code 0"


def _exited(exit_: Exit) -> str:
    """Return how a run ended that says nothing of itself: no result is missing that it should have printed."""
    return f"exit code {exit_.status}" if exit_.signal is None else f"signal {exit_.signal}"


def _not_before(start: datetime | None, end: datetime | None) -> datetime | None:
    """Return the end, but not before the start: a clock that was set back must not make a duration negative."""
    return max(start, end) if start and end else end


def _turns(messages: list[Message], model: str | None, witness: Witness) -> list[Turn]:
    """Return a turn for each message id. What a model did not answer goes to the turn it belongs to: a tool's result,
    and the prompt of a sub-agent, to the turn that called the tool; anything else to the latest. What the client itself
    notes, and what came before the first turn, is in none."""
    turns: dict[str, Turn] = {}
    callers: dict[str, str] = {}
    for number, message in enumerate(messages):
        if message.source == "assistant":
            key = message.message_id or f"message {number}"
            callers.setdefault(message.tool_use_id or "", key)
        else:
            called = message.tool_use_id or message.parent_tool_use_id or ""
            key = callers.get(called) or next(reversed(turns), "")
            if not key and message.source == "tool":
                key = f"message {number}"
            if not key or message.source == "system":
                continue
        turns[key] = _extended(turns.get(key) or _turn(message, model, witness), message)
    return list(turns.values())


def _turn(message: Message, model: str | None, witness: Witness) -> Turn:
    parent = message.parent_tool_use_id
    return Turn(
        message_id=message.message_id,
        thread=f"{AGENT_PREFIX}{parent}" if parent else MAIN,
        model=message.model or model,
        started=time_of(message.ts),
        witnesses=frozenset({witness}),
    )


def _extended(turn: Turn, message: Message) -> Turn:
    ended = _not_before(turn.started, time_of(message.ts))
    turn = replace(turn, blocks=[*turn.blocks, _block(message)], ended=ended)
    reported = message_usage(_value(message.usage)) if message.source == "assistant" else None
    return _counted(turn, message, reported) if reported else turn


def _counted(turn: Turn, message: Message, reported: MessageUsage) -> Turn:
    """Set the usage. All lines of one response report the same, except the last."""
    if not reported.is_understood:
        return replace(turn, unread_usage=turn.usage is None)
    usage, final = reported.usage(), message.stop_reason is not None
    was_final = turn.stop_reason is not None
    if turn.usage and not more_final(usage, turn.usage, final=final, was_final=was_final):
        return turn
    return replace(
        turn,
        usage=usage,
        unread_usage=False,
        service_tier=reported.service_tier or turn.service_tier,
        stop_reason=message.stop_reason or turn.stop_reason,
    )


KINDS: Mapping[str, BlockKind] = {
    "text": "text",
    "thinking": "thinking",
    "tool_use": "tool_use",
    "result": "tool_result",
    "image": "image",
}


def _block(message: Message) -> Block:
    whole = _value(message.content) if message.content else message.raw
    if message.type == "thinking":
        whole = whole_thought(whole, message.text or "")
    return Block(
        kind=KINDS.get(message.type, "other") if message.source in ("assistant", "tool") else "other",
        text=message.text or message.output or "",
        id=message.tool_use_id,
        name=message.name,
        input=_value(message.input),
        is_error=bool(message.is_error),
        at=time_of(message.ts),
        raw=whole,
    )


def _value(raw: msgspec.Raw | msgspec.UnsetType) -> Any:
    return msgspec.json.decode(raw) if raw else None


def time_of(ts: str | None) -> datetime | None:
    try:
        return in_utc(datetime.fromisoformat(ts)) if ts else None
    except ValueError:
        return None
