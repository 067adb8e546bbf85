"""Group messages into exchanges: when an exchange begins, when it ends, and what the log says about it.

One `Exchanges` is one log. Inputs and messages go in; records come out in the order in which they must be written: a
`LiveStart` for an exchange that begins, or about which more is known now; a `LiveMessage` for each entry; the
`ExchangeRecord`.

An input opens an exchange, and the next result that answers a person ends it. While the agent is busy, further inputs
queue up; the client answers all of them together, so they open the next exchange together. That exchange is in the live
file from the moment its first input is known. A client sends `init` when it starts the next exchange: if inputs are
waiting, an exchange that already had an `init` is over then, with or without a result.

What the agent does unasked (a background task reports) ends with a result that has an `origin`: it answers no input.

An exchange of a run waits after its result for the process to exit, or for the next exchange. The messages
of an exchange that grows large are not held in memory: they are in the live file, and its record is a `LargeExchange`.
"""

from collections.abc import Callable, Iterator
from typing import Any, Literal

import msgspec
from msgspec import UNSET, Raw
from msgspec.structs import replace

from agent_logger.messages import counters
from agent_logger.messages.entries import entries, is_thinking_progress, text_of
from agent_logger.messages.sdk import STREAM_EVENT, Init, SdkMessage, SdkStreamEvent
from agent_logger.model.records import (
    EndReason,
    ExchangeRecord,
    ExchangeStats,
    Exit,
    Json,
    LiveMessage,
    LiveStart,
    Message,
    Redaction,
    Resume,
    SessionEnd,
    SessionStart,
    SystemPrompt,
)
from agent_logger.protocols.json_text import raw as raw_json
from agent_logger.recording.totals import Tally, Totals

HELD_BYTES = 8 << 20  # of an exchange's messages; a line of the log has the same limit
Content = str | list[Raw]


class Began(msgspec.Struct, frozen=True):
    """What is known of a session before its client says anything."""

    witness: Literal["sdk", "run"] = "sdk"
    agent: str | None = None
    argv: list[str] | None = None
    cwd: str | None = None
    system_prompt: list[SystemPrompt] | None = None
    is_new: bool = False  # the agent was started without a session to continue


class LargeExchange(msgspec.Struct, frozen=True):
    """An exchange without its messages. These are in the live file; each must pass through `finished` before it is
    written."""

    record: ExchangeRecord
    finished: Callable[[Message], Message | None]


Written = SessionStart | Resume | LiveStart | LiveMessage | ExchangeRecord | LargeExchange | SessionEnd


class UserInput(msgspec.Struct, frozen=True):
    text: str
    content: Json = UNSET  # its blocks, if it is more than a text

    @classmethod
    def of(cls, content: Content) -> "UserInput":
        if isinstance(content, str):
            return cls(content)
        return cls(text_of([msgspec.json.decode(raw) for raw in content]), raw_json(content))


class _Open(msgspec.Struct):
    """An exchange in flight."""

    id: str
    number: int
    started: str
    inputs: list[UserInput] = msgspec.field(default_factory=list)
    messages: list[Message] = msgspec.field(default_factory=list)
    tally: Tally = msgspec.field(default_factory=Tally)
    work: counters.Work = msgspec.field(default_factory=counters.Work)
    bytes: int = 0
    result: tuple[ExchangeStats, Json] | None = None  # and its origin; in a run it waits for the exit
    redactions: list[Redaction] = msgspec.field(default_factory=list)
    # By message: the event that has its final usage.
    ends: dict[str, SdkStreamEvent] = msgspec.field(default_factory=dict)
    streaming: dict[str | None, str] = msgspec.field(default_factory=dict)  # thread to message
    announced: bool = False  # by an init
    answered: bool = False  # it holds a message of the agent

    @property
    def accepts_input(self) -> bool:
        return not (self.inputs or self.answered)

    @property
    def is_large(self) -> bool:
        return self.bytes > HELD_BYTES

    def grow(self, count: int) -> None:
        self.bytes += count
        if self.is_large:
            self.messages.clear()

    def note(self, message: Message) -> None:
        self.tally.note(message)
        self.work.note(message)
        if not self.is_large:
            self.messages.append(message)

    def finish_tally(self) -> None:
        """Replace the output tokens of each response with the final count that its stream reported."""
        for message_id, (usage, is_main) in list(self.tally.usage.items()):
            end = self.ends.get(message_id)
            if end and end.usage and isinstance(output := end.usage.get("output_tokens"), int):
                self.tally.take(message_id, replace(usage, output_tokens=output), is_main=is_main)

    def input_fields(self) -> dict[str, Any]:
        """The fields that `LiveStart` and `ExchangeRecord` share."""
        texts = [user_input.text for user_input in self.inputs]
        return {
            "id": self.id,
            "exchange": self.number,
            "ts_start": self.started,
            "user_input": "\n".join(texts) if texts else None,
            "user_content": self._user_content(),
            "user_inputs": texts if len(texts) > 1 else None,
        }

    def _user_content(self) -> Any:
        """The blocks of the only input, or a list with the content of each of several; unset if all are plain text."""
        blocks = [user_input.content for user_input in self.inputs if user_input.content]
        if not blocks:
            return UNSET
        if len(self.inputs) == 1:
            return blocks[0]
        return raw_json([user_input.content or user_input.text for user_input in self.inputs])


class Exchanges:
    """The exchanges of one log. `continues` is the session that this one continues; `goes_on` means that there is an
    earlier one, whether its id is known or not."""

    def __init__(
        self,
        new_id: Callable[[], str],
        *,
        continues: str | None = None,
        inherited: counters.Counters | None = None,
        goes_on: bool = False,
        began: Began = Began(),  # noqa: B008 (it is frozen)
        context: Callable[[str | None], Json] = lambda _: UNSET,
        others_number: Callable[[], int] = lambda: 0,
    ) -> None:
        self._context = context  # of a session in that folder
        self._others_number = others_number  # the highest that another logger of the session has used
        self.session_id: str | None = None
        self.continues = continues
        self.totals = Totals()
        self.last_stats: ExchangeStats | None = None  # of the last result
        self._began = began
        self._new_id = new_id
        self._before = inherited
        self._has_start = self._resumes = False
        self._resumed_from: str | None = None
        self.has_unknown_history = goes_on  # that no log here holds
        self._init: tuple[Init, Raw] | None = None
        self._model: str | None = None
        self._open: _Open | None = None
        self._next: _Open | None = None  # inputs that wait for the exchange in flight to end

    # ------------------------------------------------------------ which log

    def belongs(self, message: SdkMessage) -> bool:
        """Whether a message belongs in this log; a message of another session belongs in the log of that session."""
        return not (self.session_id and message.session_id) or message.session_id == self.session_id

    def names(self, message: SdkMessage) -> str | None:
        """The session id that this log gets from this message. Messages that the old session still sends after a reset
        do not count."""
        given = message.session_id
        if self.session_id or not given or (given == self.continues and not message.init):
            return None
        return given

    def resume(self, past: Totals, *, has_start: bool, resumed_from: str | None) -> None:
        """Continue the numbers and totals of a log that exists already."""
        self.totals, self._has_start, self._resumes = past, has_start, has_start
        self._resumed_from = resumed_from
        self._before = past.counters

    def go_on_from(self, session_id: str, before: counters.Counters | None) -> None:
        """Note that this session is new but includes an earlier one: a fork, or a client that changes ids."""
        self.continues, self._before = session_id, before

    def identified(self, session_id: str) -> Iterator[Written]:
        """Take the client's id, now that it is known, and renumber the exchanges in flight."""
        self.session_id = session_id
        last = max(self.totals.last_number, self._others_number())
        for number, exchange in enumerate(self.in_flight, last + 1):
            exchange.number = number
            yield self._live(exchange)

    @property
    def in_flight(self) -> list[_Open]:
        return [exchange for exchange in (self._open, self._next) if exchange]

    @property
    def is_waiting(self) -> bool:
        """Whether an input was logged and nothing came after it."""
        return bool(self._open and self._open.inputs and not (self._open.tally.count or self._open.announced))

    @property
    def cost_usd(self) -> float | None:
        """The cost of the log so far, including the exchange that waits for the process to exit."""
        waiting = self._open.result[0].cost_usd if self._open and self._open.result else None
        costs = [cost for cost in (self.totals.cost_usd, waiting) if cost is not None]
        return round(sum(costs), counters.COST_DIGITS) if costs else None

    @property
    def is_large(self) -> bool:
        """Whether the messages of the exchange in flight are in the live file alone."""
        return bool(self._open and self._open.is_large)

    def withdraw(self) -> list[UserInput]:
        """Remove and return the inputs that nothing has answered yet: they belong to the session that answers them."""
        inputs = [user_input for exchange in self.in_flight for user_input in exchange.inputs]
        self._open = self._next = None
        return inputs

    # ------------------------------------------------------------ what happens

    def input(self, given: UserInput, ts: str, redactions: tuple[Redaction, ...] = ()) -> Iterator[Written]:
        yield from self._go_on(ts)
        if self._open is None:
            exchange = self._open = self._begun(ts)
        elif self._open.accepts_input:
            exchange = self._open
        else:
            exchange = self._next = self._next or self._begun(ts, after=self._open.number)
        exchange.inputs.append(given)
        exchange.redactions += (replace(redaction, place="user_input") for redaction in redactions)
        yield self._live(exchange)

    def message(self, message: SdkMessage, ts: str, redactions: tuple[Redaction, ...] = ()) -> Iterator[Written]:
        prompt = message.prompt
        if prompt is not None and not self._knows(prompt):
            yield from self.input(UserInput.of(prompt), ts, redactions)
            return
        if not message.is_text:
            yield from self._go_on(ts)
        if message.init:
            yield from self._initialised(message, message.init, ts)
        if self._open is None:
            self._open = self._begun(ts)
            yield self._live(self._open)
        yield from self._add(self._open, message, ts, redactions)
        if message.result:
            yield from self._result(self._open, message, ts)

    def _knows(self, prompt: Content) -> bool:
        """Whether a prompt is an input that was logged before and that the client sent back."""
        text = UserInput.of(prompt).text
        return any(text in [user_input.text for user_input in exchange.inputs] for exchange in self.in_flight)

    def _initialised(self, message: SdkMessage, init: Init, ts: str) -> Iterator[Written]:
        self._init = self._init or (init, Raw(message.raw))
        yield from self._started(ts)
        if self._open and self._open.announced and self._next:
            yield from self._ended(self._open, "input", ts)

    def _add(
        self, exchange: _Open, message: SdkMessage, ts: str, redactions: tuple[Redaction, ...]
    ) -> Iterator[Written]:
        place = f"messages[{exchange.tally.count}]"
        exchange.redactions += (replace(redaction, place=place) for redaction in redactions)
        exchange.answered |= message.inner is not None
        self._model = self._model or (message.inner.model if message.inner else None)
        if message.init:
            exchange.announced = True
            if self._init and _same(message.raw, self._init[1]):
                return  # said in `session_start`
        exchange.grow(0 if message.is_progress else len(message.raw))
        for entry in entries(message, ts):
            if message.is_progress:
                _note_usage(exchange, message)
            else:
                exchange.note(entry)
            if not message.result or self._awaits_exit or exchange.is_large:
                yield LiveMessage(id=exchange.id, message=entry)  # else its exchange is written in a moment

    def _result(self, exchange: _Open, message: SdkMessage, ts: str) -> Iterator[Written]:
        goes_on = bool(self.continues or self._resumed_from or self.has_unknown_history)
        stats = self.last_stats = counters.stats(message, self._before, goes_on=goes_on, work=exchange.work)
        if message.result:
            self._before = counters.later(counters.counters_of(message.result), self._before)
        if not message.is_human and exchange.inputs:  # nothing has answered them
            self._next = self._next or self._begun(ts, after=exchange.number)
            self._next.inputs[:0], exchange.inputs = exchange.inputs, []
        exchange.result = (stats, message.origin)
        if not self._awaits_exit:
            yield from self._go_on(ts)

    @property
    def _awaits_exit(self) -> bool:
        return self._began.witness == "run"

    def _go_on(self, ts: str) -> Iterator[Written]:
        """End the exchange in flight if it has its result."""
        if self._open and self._open.result:
            yield from self._ended(self._open, "result", ts)

    def finish(
        self, reason: str | None, ts: str, end_reason: EndReason, exited: Exit | None = None
    ) -> Iterator[Written]:
        """End the log: write what is in flight, and the totals."""
        yield from self.end(end_reason, ts, exited)
        if not self._has_start and not self.totals.exchanges:
            return  # nothing was said in it
        yield from self._started(ts)
        yield self.totals.end(self.session_id, ts, reason)

    def end(self, end_reason: EndReason, ts: str, exited: Exit | None = None) -> Iterator[Written]:
        """End what is in flight. The last exchange of a run says how the process ended."""
        while self._open:
            last = exited if self._next is None else None
            yield from self._ended(self._open, "result" if self._open.result else end_reason, ts, last)

    # ------------------------------------------------------------ records

    def _begun(self, ts: str, *, after: int | None = None) -> _Open:
        own = self.totals.last_number if after is None else after
        number = max(own, self._others_number() if self.session_id else 0)
        return _Open(self._new_id(), number + 1, ts, work=counters.Work(self._began.is_new))

    def _live(self, exchange: _Open) -> LiveStart:
        return LiveStart(session_id=self.session_id, **exchange.input_fields())

    def _ended(
        self,
        exchange: _Open,
        end_reason: EndReason,
        ts: str,
        exited: Exit | None = None,
    ) -> Iterator[Written]:
        yield from self._started(ts)
        exchange.finish_tally()
        stats, origin = exchange.result or (None, UNSET)
        record = ExchangeRecord(
            session_id=self.session_id,
            ts_end=ts,
            messages=[_with_end(message, exchange.ends) for message in exchange.messages],
            stats=stats,
            origin=origin,
            complete=stats is not None,
            end_reason=end_reason,
            exit=exited,
            redactions=exchange.redactions or None,
            **exchange.input_fields(),
        )
        self.totals.add(record, exchange.tally)
        self._open, self._next = self._next, None
        yield LargeExchange(record, _finisher(exchange.ends)) if exchange.is_large else record
        if self._open:
            yield self._live(self._open)

    def _started(self, ts: str) -> Iterator[Written]:
        if self._resumes:
            self._resumes = False
            yield Resume(
                session_id=self.session_id,
                ts=ts,
                resumed_from=self._resumed_from,
                argv=self._began.argv,
                system_prompt=self._began.system_prompt,
            )
        elif not self._has_start:
            self._has_start = True
            init = self._init[0] if self._init else Init()
            yield SessionStart(
                session_id=self.session_id,
                ts=ts,
                model=init.model or self._model,
                cwd=init.cwd or self._began.cwd,
                tools_available=init.tools,
                permission_mode=init.permissionMode,
                witness=self._began.witness,
                init=self._init[1] if self._init else UNSET,
                context=self._context(init.cwd or self._began.cwd),
                agent=self._began.agent,
                argv=self._began.argv,
                system_prompt=self._began.system_prompt,
                continues=self.continues,
            )


def _note_usage(exchange: _Open, message: SdkMessage) -> None:
    event, thread = message.event, message.parent_tool_use_id
    if event and event.type == "message_start" and event.message and event.message.id:
        exchange.streaming[thread] = event.message.id
    elif event and event.type == "message_delta" and event.usage and thread in exchange.streaming:
        exchange.ends[exchange.streaming[thread]] = event


def _with_end(entry: Message, ends: dict[str, SdkStreamEvent]) -> Message:
    """The entry with the usage from the start of its response, overridden by the usage from its end."""
    end = ends.get(entry.message_id or "")
    if not end or not end.usage:
        return entry
    first = msgspec.json.decode(entry.usage) if entry.usage else {}
    usage = raw_json({**(first if isinstance(first, dict) else {}), **end.usage})
    stop_reason = end.delta.stop_reason if end.delta else None
    return replace(entry, usage=usage, stop_reason=stop_reason or entry.stop_reason)


def _finisher(ends: dict[str, SdkStreamEvent]) -> Callable[[Message], Message | None]:
    def finished(entry: Message) -> Message | None:
        is_progress = entry.type == STREAM_EVENT or is_thinking_progress(entry)
        return None if is_progress else _with_end(entry, ends)

    return finished


_VARYING = {"uuid"}


def _same(one: bytes, other: Raw) -> bool:
    if one == bytes(other):
        return True
    first, second = (msgspec.json.decode(raw) for raw in (one, other))
    return all(first.get(key) == second.get(key) for key in (first.keys() | second.keys()) - _VARYING)
