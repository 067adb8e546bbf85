"""The responses in the files of a Claude Code session, for the ledger: the fields that costs need, and no others.

Most bytes of a file are results of tools, and blocks of responses. The decoder skips them, many lines at once. It is
the same decoder that reads whole sessions, and the same rules make one response from its lines, so both ways give the
same numbers.
"""

from collections.abc import Iterable, Iterator, Mapping
from datetime import datetime
from typing import NamedTuple

import msgspec

from agent_logger.agents.claude_code.transcript.beginning import Beginning, BeginningReader
from agent_logger.agents.claude_code.transcript.billed_calls import BilledCalls
from agent_logger.agents.claude_code.transcript.cost_state import BilledAnswer
from agent_logger.agents.claude_code.transcript.lines import (
    RecordReader,
    WholeCopies,
    read,
    readable,
    type_of,
)
from agent_logger.agents.claude_code.transcript.records import NOTHING, ForkedFrom, MessageHead, MessageUsage
from agent_logger.agents.claude_code.transcript.requests import API_ERROR, REQUEST
from agent_logger.agents.claude_code.transcript.session import AGENT_NAME, session_id_of
from agent_logger.agents.claude_code.transcript.subagents import WARM_UP, agent_of
from agent_logger.agents.claude_code.transcript.turns import Billed, is_unique, time_of
from agent_logger.agents.source_files import File, SourceFiles, portions_of
from agent_logger.messages.result_usage import ModelTotals
from agent_logger.model.responses import ModelResponse
from agent_logger.model.session import MAIN, SIDE, SYNTHETIC, ClientTotal
from agent_logger.protocols import jsonl
from agent_logger.protocols.jsonl import JsonEntry, is_utf8
from agent_logger.protocols.lines import Line, lines_in
from agent_logger.providers.json_values import text_of

FAMILY = "anthropic"
COST_STATE = "cost-state"


class _Record(msgspec.Struct, frozen=True, gc=False, rename="camel"):
    """The fields of an `AssistantRecord` that costs need."""

    type: str = ""
    uuid: str | None = None
    message: MessageHead | str | None = None
    request_id: str | None = None
    timestamp: str | None = None
    session_id: str | None = None
    cwd: str | None = None
    is_sidechain: bool | None = None
    agent_id: str | None = None
    is_aborted_mid_stream: bool | None = None
    cost_usd: float | None = msgspec.field(name="costUSD", default=None)
    usage: MessageUsage | None = None
    forked_from: ForkedFrom | str | None = None
    model_usage: dict[str, ModelTotals] | None = None  # the usage of the whole session, in a `cost-state`
    summary: object = None  # fields of a `SummaryRecord`: this and the next
    leaf_uuid: object = None
    params: msgspec.Raw = NOTHING  # a field of a request
    subtype: object = None  # fields of a `SystemRecord`: this and the next
    error: msgspec.Raw = NOTHING
    is_api_error_message: object = None


_reader = RecordReader(_Record)


def responses_of(source: SourceFiles, earlier: Iterable[ModelResponse] = ()) -> Iterator[ModelResponse]:
    """Yield each response of the session and its sub-agents once, also those that the client made up (`is_synthetic`).

    `earlier` is what was read of them before; then the source has what was written since, or more. That is correct if
    all ids are unique (`may_read_on`). Nothing is raised, whatever is in the files.
    """
    return iter(read_responses(source, earlier).responses)


class SessionResponses(NamedTuple):
    """What the ledger needs of a session's files, and what they say of other sessions' files."""

    responses: list[ModelResponse]
    beginning: Beginning
    totals: tuple[ClientTotal, ...]  # the total usage that the client reports, and requests without an answer
    summaries: Mapping[str, str]  # summaries by the last line that they cover, which may be in another file
    must_reread: bool = False  # the earlier result is not enough to continue from it


def read_responses(
    source: SourceFiles,
    earlier: Iterable[ModelResponse] = (),
    beginning: Beginning | None = None,
    totals: Iterable[ClientTotal] = (),
) -> SessionResponses:
    """Read the responses, as `responses_of` does, with the rest that the ledger needs. `beginning` and `totals` are
    what was read of them before, as `earlier` is of the responses."""
    rows = _Rows(source, earlier, beginning, totals)
    rows.read(source.main)
    main = len(rows.rows)
    for file in source.others:
        if file.name.endswith(".jsonl"):
            rows.read(file)
    return SessionResponses(
        list(rows.as_responses()),
        rows.beginning.beginning(),
        rows.totals(main),
        rows.summaries,
        rows.calls.must_reread,
    )


def may_read_on(responses: Iterable[ModelResponse]) -> bool:
    """Whether responses that are written after these can be told from them without reading these again."""
    return all(is_unique(response.message_id) for response in responses)


class _Row(Billed, eq=False, gc=False):
    message_id: str | None
    request_id: str | None
    thread: str
    session: str | None
    project: str | None
    model: str | None = None
    at: datetime | None = None
    aborted: bool = False
    cost: float | None = None

    def take(self, record: _Record, message: MessageHead) -> None:
        self.request_id = record.request_id or self.request_id
        self.model = message.model or self.model
        self.aborted = self.aborted or bool(record.is_aborted_mid_stream)
        if record.cost_usd is not None:
            self.cost = max(self.cost or 0.0, record.cost_usd)  # copies say 0
        at = time_of(record.timestamp)
        if at and (self.at is None or at < self.at):
            self.at = at
        reported = message.usage or record.usage
        if reported and self.model != SYNTHETIC:
            self.count(reported, final=message.stopped is not None)


def _row_of(response: ModelResponse) -> _Row:
    return _Row(
        response.message_id,
        response.request_id,
        response.thread,
        response.session,
        response.project,
        model=response.model,
        usage=response.usage,
        tier=response.tier,
        at=response.at,
        final=response.final,
        cost=response.reported_cost_usd,
    )


class _Rows:
    def __init__(
        self,
        source: SourceFiles,
        earlier: Iterable[ModelResponse],
        before: Beginning | None,
        totals: Iterable[ClientTotal],
    ) -> None:
        self.calls = BilledCalls(tuple(totals))
        self._name = source.main.name
        self.rows = [_row_of(response) for response in earlier]
        self.beginning = BeginningReader(before, sum(row.thread == MAIN for row in self.rows))
        self._begins = True  # the main file is being read, and may still show its beginning
        self.summaries: dict[str, str] = {}
        self._by_id = {row.message_id: row for row in self.rows if row.message_id}
        self._open: dict[str, _Row] = {}  # the latest by thread, as long as nothing else was said there
        self._last: _Record | None = None  # line of a response, if nothing else was between
        self._is_unique = True  # the message id of that line
        self._lines: set[str] = set()  # ids of the lines of responses, to recognise their copies
        self._session: str | None = None
        self._cwd: str | None = None
        self._thread: str | None = None  # the thread of the file that is read; none: its lines name it
        self._is_asked = True  # a prompt was read in it

    def totals(self, main: int) -> tuple[ClientTotal, ...]:
        """Return the client's totals. `main`: how many rows come from the session's own file."""
        answers = [BilledAnswer(row.message_id, row.thread, row.model, row.at) for row in self.rows]
        return self.calls.totals(answers, main)

    def _count(self, record: _Record) -> None:
        if self._thread is None and record.model_usage is not None:
            self.calls.end()
            self.calls.count(record.model_usage, len(self.rows))

    def _note(self, record: _Record) -> None:
        """Note what the client writes about its calls."""
        if record.type == REQUEST:
            self._last = None  # the next line of a response is an answer to this
            self.calls.request(time_of(record.timestamp), record.params)
        elif record.type == "system" and record.subtype == API_ERROR:
            self.calls.error(record.error)

    def read(self, file: File) -> None:
        self._last = None
        self._copies = WholeCopies(file)
        agent = agent_of(file.name)
        self._thread, self._is_asked = (f"agent:{agent}", False) if agent else (None, True)
        self._begins = agent is None and self.beginning.is_open
        if agent:
            self.calls.begin_agent()
        for portion in portions_of(file):
            records = _reader.all_exact(portion)
            if records is None or not _are_plain(records):
                self._read_one_by_one(portion)
                continue
            for number, record in enumerate(records):
                kind = record.type
                # Prompts and results, half of all lines, say nothing more of the beginning, unless it is a fork's.
                if self._begins and (
                    kind != "user" or not self.beginning.is_begun or not record.uuid or record.forked_from
                ):
                    self._begin(record)
                if kind == "assistant":
                    self._take(record)
                elif kind == "user":
                    self._ask(portion, number)
                elif record.model_usage is not None and kind == COST_STATE:
                    self._count(record)
                elif kind == "summary":
                    self._sum_up(record)
                else:
                    self._note(record)
        if agent:
            self.calls.end_agent()

    def _sum_up(self, record: _Record) -> None:
        leaf, summary = record.leaf_uuid, record.summary
        if isinstance(leaf, str) and isinstance(summary, str) and leaf and summary.strip():
            self.summaries[leaf] = summary

    def _begin(self, record: _Record) -> None:
        message = record.message if record.type == "assistant" and not record.is_sidechain else None
        self.beginning.see(record, message.id if isinstance(message, MessageHead) else None)
        self._begins = self.beginning.is_open

    def _read_one_by_one(self, portion: bytes) -> None:
        """Read lines one by one, because at least one of them does not fit its type."""
        for number, line in enumerate(lines_in(portion)):
            data = line[:-1]
            if self._begins and is_utf8(data) and (record := _reader.exact(data)):
                self._begin(record)
            kind = type_of(data)
            if kind == "user":
                self._ask(portion, number)
            elif kind == COST_STATE and (record := _reader.exact(data)):
                self._count(record)
            elif kind == "summary" and is_utf8(data) and (record := _reader.exact(data)):
                self._sum_up(record)
            elif kind in (REQUEST, "system") and is_utf8(data) and (record := _reader.exact(data)):
                self._note(record)
            # Quotes within texts are escaped, so this occurs in lines of responses, in those that are glued to one, and
            # in few others.
            if kind == "assistant" or b'"assistant"' in data:
                self._line(data)

    def _ask(self, portion: bytes, number: int) -> None:
        """Note that line as input of the model: what the model says next is another response."""
        if not self._is_asked and _is_warm_up(lines_in(portion)[number]):
            self._thread = SIDE
        self._is_asked = True
        self._open.clear()
        self._last = None
        self.calls.prompt()

    def _line(self, data: bytes) -> None:
        record = _reader.exact(data) if is_utf8(data) else None
        if record is None or (record.type == "assistant" and not _is_plain(record) and read(data) is None):
            self._damaged(data)
        elif record.type == "assistant":
            self._take(record)

    def _damaged(self, data: bytes) -> None:
        for entry in jsonl.decode(Line(0, 0, len(data), data)):
            value = readable(entry) if isinstance(entry, JsonEntry) else None
            if (
                value
                and value.get("type") == "assistant"
                and not self._copies.have("assistant", text_of(value.get("uuid")))
            ):
                self._take(_reader.fitting(value))

    def _take(self, record: _Record) -> None:
        message = record.message if isinstance(record.message, MessageHead) else MessageHead()
        if not self._repeats(record, message):
            self.calls.answer(message.model, is_error=bool(record.is_api_error_message))
            unique = is_unique(message.id)
            # A copy of a line may know more of its response. It does not begin another one.
            if record.uuid in self._lines and not (unique and message.id in self._by_id):
                return
            self._last, self._is_unique = record, unique
            self._add(record, message)
        if record.uuid:
            self._lines.add(record.uuid)

    def _add(self, record: _Record, message: MessageHead) -> None:
        self._session = self._session or record.session_id
        self._cwd = self._cwd or record.cwd
        thread = self._thread
        if thread is None:
            thread = f"agent:{record.agent_id or ''}" if record.is_sidechain else MAIN
        row = self._row(message.id, record, thread)
        if row.thread == thread:
            row.take(record, message)
            self._open[thread] = row

    def _repeats(self, record: _Record, message: MessageHead) -> bool:
        """Whether a line says what the one before it said, and later, as most lines of a response do."""
        last = self._last
        return (
            last is not None
            and message.id is not None
            and last.message == message
            and last.request_id == record.request_id
            and last.agent_id == record.agent_id
            and last.is_sidechain == record.is_sidechain
            and last.is_aborted_mid_stream == record.is_aborted_mid_stream
            and last.cost_usd == record.cost_usd
            and last.timestamp is not None
            and record.timestamp is not None
            and last.timestamp <= record.timestamp
        )

    def _row(self, message_id: str | None, record: _Record, thread: str) -> _Row:
        earlier = self._by_id.get(message_id) if message_id else None
        if earlier and (self._is_unique or self._is_same(earlier, record, thread)):
            return earlier
        row = _Row(message_id, record.request_id, thread, record.session_id, record.cwd)
        self.rows.append(row)
        if message_id:
            self._by_id[message_id] = row
        return row

    def _is_same(self, earlier: _Row, record: _Record, thread: str) -> bool:
        """Whether the line belongs to the earlier response. Local servers count to 999 and start again, so several
        responses may share one id."""
        if earlier.request_id and record.request_id:
            return earlier.request_id == record.request_id
        return self._open.get(thread) is earlier

    def as_responses(self) -> Iterator[ModelResponse]:
        session = session_id_of(self._name, self._session)
        for row in self.rows:
            yield ModelResponse(
                family=FAMILY,
                message_id=row.message_id,
                request_id=row.request_id,
                model=row.model,
                usage=row.usage,
                tier=row.tier,
                at=row.at,
                session=session,
                project=row.project or self._cwd,
                agent=AGENT_NAME,
                thread=row.thread,
                final=row.final and not row.aborted,
                reported_cost_usd=row.cost,
            )


def _are_plain(records: list[_Record]) -> bool:
    """Whether all lines of responses are plain. Most repeat the message of the line before them."""
    last: MessageHead | str | None = None
    for record in records:
        if record.type == "assistant" and (last is None or record.message != last or record.usage):
            if not _is_plain(record):
                return False
            last = record.message
    return True


def _is_plain(record: _Record) -> bool:
    """Whether the record has an id, and a usage in the API's own names, if any."""
    message = record.message
    if not isinstance(message, MessageHead) or message.id is None:
        return False
    usage = message.usage or record.usage
    return usage is None or usage.is_understood


class _Prompt(msgspec.Struct, gc=False):
    content: object = None


class _User(msgspec.Struct, gc=False):
    message: _Prompt | str | None = None


_user = RecordReader(_User)


def _is_warm_up(data: bytes) -> bool:
    record = _user.exact(data)
    message = record.message if record else None
    return (message.content if isinstance(message, _Prompt) else message) == WARM_UP
