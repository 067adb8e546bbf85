"""Reads the records of a wire log into the session that its calls make.

Agents send their whole history again with every call. So only the new messages of a request are read: they hold the
results of the tools that the last answer of its thread called, or what a person typed, which begins an exchange. The
answer is a turn of the exchange that was in flight when its request came.

An answer that was cut stays visible, `complete: false`. It counts with the usage that it reported, also if the client
made the call again, and as unknown without one. An answer that the API ended with an error is not billed. An attempt
without a message is no turn.
"""

from collections.abc import Iterable, Sequence
from datetime import UTC, datetime
from itertools import takewhile

import msgspec
from msgspec.structs import replace

from agent_logger.logs.exchange_log import time_of
from agent_logger.logs.wire_log.answers import answer_of, body_of, is_unread
from agent_logger.logs.wire_log.calls import CallThread, ExchangeCalls, LoggedCall
from agent_logger.messages.human_input import is_interruption, typed
from agent_logger.model.records import Fork, Request, Response, Rewrite, WireStart
from agent_logger.model.session import MAIN, SIDE, Block, Compaction, Session, Turn, Witness
from agent_logger.providers import request_body
from agent_logger.providers.answer import Answer
from agent_logger.providers.blocks.base import value_of
from agent_logger.providers.blocks.registry import (
    MessageContent,
    answer_blocks,
    by_of,
    dialect_of_answer,
    message_content,
)
from agent_logger.providers.ending import is_answered
from agent_logger.providers.registry import Dialect, dialect_of

WIRE: frozenset[Witness] = frozenset({"wire"})
COMPACTION = "compaction"  # the reason of a rewrite
SHORT_ID = 16  # characters; some local servers reuse their ids


def session_of(records: Iterable[object], name: str = "") -> Session:
    """Return the session of a log, from all its records in order; for a branch, those of its parents come first.

    `name` is the log's, for a session that has no other. Nothing is raised, whatever is in the records.
    """
    reading = Reading()
    for record in records:
        reading.take(record)
    return reading.session(name)


class Reading:
    """A wire log while it is read: pass it all records in order, and get the session at any time."""

    def __init__(self) -> None:
        self._start: WireStart | None = None
        self._parent: str | None = None
        self._agent: str | None = None
        self._first: datetime | None = None
        self._last: datetime | None = None
        self._open: dict[int, LoggedCall] = {}
        self._attempts: dict[int, list[LoggedCall]] = {}  # by the number of the first
        self._threads: dict[str, CallThread] = {}
        self._exchanges: list[ExchangeCalls] = []
        self._side: list[LoggedCall] = []
        self._short_ids: set[str] = set()
        self._compactions: list[Compaction] = []
        self._unread = 0  # calls to models

    def take(self, record: object) -> None:
        match record:
            case WireStart():
                self._start, self._agent = record, record.agent or self._agent
                self._see(record.ts)
            case Fork():
                self._parent = record.parent_session
            case Rewrite():
                self._threads.setdefault(MAIN, CallThread()).messages = 0
                if record.reason == COMPACTION:
                    self._compactions.append(Compaction(at=self._see(record.ts)))
            case Request():
                self._request(record)
            case Response():
                self._response(record)

    def session(self, name: str) -> Session:
        start = self._start
        identity = start.identity if start else None
        inputs = (exchange.user_input for exchange in self._exchanges if exchange.user_input)
        count = len(self._exchanges)
        return Session(
            id=(identity and identity.session) or (start and start.session) or name,
            agent=self._agent,
            title=next((text.strip().split("\n")[0] for text in inputs), None),
            started=self._first,
            ended=self._last,
            exchanges=[exchange.as_exchange(at, last=at == count) for at, exchange in enumerate(self._exchanges, 1)],
            side_turns=[turn for call in self._side if (turn := call.as_turn())],
            parent=self._parent,
            compactions=self._compactions,
            unread_calls=self._unread,
        )

    def _see(self, ts: str) -> datetime | None:
        """Return the time of a record, in a form that can be compared with others."""
        time = time_of(ts)
        if time is None:
            return None
        time = time if time.tzinfo else time.replace(tzinfo=UTC)
        self._first = min(self._first or time, time)
        self._last = max(self._last or time, time)
        return time

    # ------------------------------------------------------------ requests

    def _request(self, record: Request) -> None:
        call = LoggedCall(
            thread=record.thread or MAIN,
            kind=record.kind,
            dialect=dialect_of(self._start.provider if self._start else "", record.path),
            websocket=record.transport == "websocket",
            started=self._see(record.ts),
        )
        self._open[record.seq] = call
        call.asks_model = call.websocket or record.method == "POST"
        if call.dialect is None:
            is_other = call.asks_model and record.kind == "other"
            call.asks_model = is_other and request_body.asks_model(body_of(record), record.path)
            return
        first = record.retry_of if record.retry_of in self._attempts else record.seq
        earlier = self._attempts.setdefault(first, [])
        if call.thread == SIDE:
            self._side.append(call)
        else:
            call.exchange = earlier[0].exchange if earlier else self._place(call, call.dialect, record)
        if call.exchange:
            call.exchange.calls.append(call)
        for attempt in earlier:
            attempt.retried = True
        earlier.append(call)

    def _place(self, call: LoggedCall, dialect: Dialect, record: Request) -> ExchangeCalls:
        """Return the exchange that a call belongs to, after assigning its new messages."""
        body = dialect.request(body_of(record), record.path)
        messages = dialect.messages(body) if body else ()
        call.model = request_body.text(body.model) if body else None
        new = self._new(call, dialect, messages)
        prompt = _prompt(new) if call.thread == MAIN and call.kind in (None, "main") else None
        current = self._exchanges[-1] if self._exchanges else None
        if prompt is not None and not (current and _is_again(current, prompt)):
            current = None
        elif current is None and call.thread == MAIN:  # the log lacks its beginning, but the history may have it
            prompt = _latest_prompt(dialect, messages)
        if current is None:
            current = ExchangeCalls(prompt, call.started)
            self._exchanges.append(current)
        return current

    def _new(self, call: LoggedCall, dialect: Dialect, messages: Sequence[msgspec.Raw]) -> list[MessageContent]:
        """Return the messages after the model's last one. Results of tools may also be further up, between messages
        that are not the model's and what the client says in its name."""
        thread = self._threads.setdefault(call.thread, CallThread())
        new = list(takewhile(lambda message: by_of(dialect, message) != "model", reversed(messages)))[::-1]
        first = len(messages) - len(new)
        read = [message_content(dialect, message) for message in new]
        above = messages[thread.messages : first] if thread.uses else ()
        for block in (block for message in above for block in message_content(dialect, message).results):
            thread.attach(block, call.started, orphans=False)
        for block in (block for content in read for block in content.results):
            thread.attach(block, call.started, orphans=True)
        thread.messages = len(messages)
        return read

    # ------------------------------------------------------------ responses

    def _response(self, record: Response) -> None:
        ended = self._see(record.ts)
        call = self._open.pop(record.seq, None) or self._lost_call(record)
        if call is None:
            return
        if call.dialect is None:
            self._unread += call.asks_model and is_answered(record.status)
            return
        # Clocks may be set back.
        call.ended = max(call.started, ended) if call.started and ended else ended
        call.open = False
        answer = answer_of(record, call.dialect, websocket=call.websocket)
        if answer:
            self._answered(call, call.dialect, answer, record.request_id)
        elif call.asks_model:
            self._unread += is_unread(record, call.dialect, websocket=call.websocket)

    def _lost_call(self, record: Response) -> LoggedCall | None:
        """Return a side call for an answer whose request is lost: its place is unknown, but it was billed."""
        message = value_of(record.message) if record.message else None
        if message is None:
            return None
        call = LoggedCall(SIDE, None, dialect_of_answer(message), websocket=False, started=None)
        self._side.append(call)
        return call

    def _answered(self, call: LoggedCall, dialect: Dialect, answer: Answer, request_id: str | None) -> None:
        message_id = self._unique(answer.message_id)
        blocks = [
            _settled(block, at, answer.message_id, call.ended)
            for at, block in enumerate(answer_blocks(dialect, answer.message))
        ]
        error = answer.error.name if answer.error else None
        if not blocks and not answer.usage and (error or answer.complete or answer.stop_reason):
            return  # a failure in the form of an answer
        call.turn = Turn(
            message_id=message_id,
            request_id=request_id,
            thread=call.thread,
            model=answer.model or call.model,
            service_tier=answer.service_tier,
            stop_reason=answer.stop_reason,
            blocks=blocks,
            usage=None if error and not answer.ended else answer.usage,
            unread_usage=bool(answer.raw_usage) and answer.usage is None,
            started=call.started,
            ended=call.ended,
            witnesses=WIRE,
            complete=answer.complete,
            error=error,
        )
        self._threads.setdefault(call.thread, CallThread()).answer(call, blocks)

    def _unique(self, message_id: str | None) -> str | None:
        """Return the message id, or None if it was used before: each call is a response of its own, also where servers
        count to 999 and start again."""
        if message_id is None or len(message_id) >= SHORT_ID:
            return message_id
        if message_id in self._short_ids:
            return None
        self._short_ids.add(message_id)
        return message_id


def _settled(block: Block, at: int, message_id: str | None, time: datetime | None) -> Block:
    """Set the block's time; and give a tool call without an id, such as Gemini's, one that its result can have too."""
    if block.kind == "tool_use" and not block.id:
        block = replace(block, id=f"{message_id or ''}#{at}")
    return replace(block, at=time)


def _prompt(new: Sequence[MessageContent]) -> str | None:
    """Return what a person typed, after the results of tools. Texts in one message with results are the client's,
    unless the person has interrupted it."""
    texts: list[str] = []
    for content in new:
        if content.results:
            texts = []
        if not content.results or is_interruption(content.texts):
            texts.extend(content.texts)
    return typed(texts)


def _latest_prompt(dialect: Dialect, messages: Sequence[msgspec.Raw]) -> str | None:
    sent = (message_content(dialect, message) for message in reversed(messages) if by_of(dialect, message) == "user")
    return next((text for content in sent if not content.results and (text := typed(content.texts))), None)


def _is_again(current: ExchangeCalls, prompt: str) -> bool:
    """Whether the prompt repeats the current exchange: it does as long as no attempt at it has succeeded."""
    answered = any(call.turn and call.turn.complete for call in current.main_calls())
    return current.user_input == prompt and not answered
