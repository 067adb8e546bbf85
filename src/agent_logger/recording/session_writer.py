"""Write sessions as exchange logs: choose the log of each message, and write its records.

Whether the messages come from an SDK or from a run's output does not matter here. Nothing here raises for a disk that
fails: `failed` says why, and `lost` counts.
"""

import time
from collections.abc import Iterable
from contextlib import AbstractContextManager, nullcontext
from pathlib import Path

from msgspec import UNSET

from agent_logger.clock import CLOCK, Clock
from agent_logger.errors import AgentLoggerError
from agent_logger.files.parts import PartFile, parts_of
from agent_logger.home.layout import safe_name
from agent_logger.journal.journal import Journal
from agent_logger.logs.find import exchange_log_of, free_name
from agent_logger.logs.log_records import read_exchange_log
from agent_logger.messages.counters import COST_DIGITS, Counters
from agent_logger.messages.sdk import SdkMessage
from agent_logger.model.records import (
    EndReason,
    ExchangeRecord,
    ExchangeStats,
    Exit,
    Json,
    LiveMessage,
    LiveStart,
    Redaction,
    SessionStart,
)
from agent_logger.platform import exclusive_in, on_fork
from agent_logger.recording.context import noted_context
from agent_logger.recording.exchanges import Began, Exchanges, LargeExchange, UserInput, Written
from agent_logger.recording.numbering import OthersNumbers
from agent_logger.recording.totals import Totals

RESET = "conversation_reset"
PROVISIONAL = "unnamed"  # used in the name of a log until the id is known
Redactions = tuple[Redaction, ...]


class SessionWriter:
    """Write one conversation after the other, each to a log of its own under `folder`."""

    def __init__(
        self,
        folder: Path,
        *,
        resumed_from: str | None = None,
        goes_on: bool = False,
        began: Began = Began(),  # noqa: B008 (it is frozen)
        clock: Clock = CLOCK,
    ) -> None:
        self.folder = folder
        self.session_id: str | None = None
        self.path: Path | None = None
        self.failed: str | None = None  # why the last call could not write all; `None` if it did
        self.error: OSError | None = None  # the error of the disk behind that
        self.stats: ExchangeStats | None = None  # of the last result
        self._clock, self._resumed_from, self._began = clock, resumed_from, began
        self._goes_on = goes_on  # with a session, which `resumed_from` may not name
        self._lost = 0  # in logs that are closed
        self._log: _Log | None = None
        on_fork(self)

    def after_fork(self) -> None:
        """Leave what is in flight for the parent to write. The child's next message begins an exchange of its own."""
        if self._log:
            self._log.after_fork()

    @property
    def lost(self) -> int:
        """How many records could not be written."""
        return self._lost + (self._log.journal.lost if self._log else 0)

    def input(self, given: UserInput, redactions: Redactions = ()) -> None:
        self.failed = None
        log = self._opened()
        with self._numbering(log):
            self._write(log, log.exchanges.input(given, self._clock.now(), redactions))

    def message(self, message: SdkMessage, redactions: Redactions = ()) -> None:
        self.failed = None
        log = self._log_of(message)
        is_reset = message.type == RESET
        if is_reset and not log.exchanges.in_flight:
            log = self._leave(log)
            is_reset = False
        name = log.exchanges.names(message)
        may_begin = not log.exchanges.in_flight or message.type in ("user", "result")
        with self._numbering(log, name) if name or may_begin else nullcontext():
            if name:
                self._identify(log, name)
            self._write(log, log.exchanges.message(message, self._clock.now(), redactions))
        if message.result:
            self.stats = log.exchanges.last_stats
        if is_reset:
            self._leave(log)

    def finish(self, reason: str | None = None, end_reason: EndReason = "eof", exited: Exit | None = None) -> None:
        self.failed = None
        if log := self._log:
            self._close(log, reason, end_reason, exited)
            self._log, self._resumed_from = None, self.session_id

    def end_exchange(self) -> None:
        """End the exchange in flight, whose stream is over; the session may go on."""
        self.failed = None
        if log := self._log:
            self._write(log, log.exchanges.end("eof", self._clock.now()))

    def client_starts(self, resumed_from: str | None, *, goes_on: bool) -> None:
        """Prepare for a new process of the client. What the process before it left unfinished ends, and so does a
        session that this one does not continue. Inputs that wait for an answer are for the new process."""
        if not self.is_waiting:
            self.end_exchange()
        log, continues = self._log, goes_on and resumed_from in (None, self.session_id)
        if log and log.exchanges.totals.exchanges and not continues:
            log = self._leave(log, inputs_go_on=self.is_waiting, is_over=True)
        if log is None or log.exchanges.session_id is None:
            self._resumed_from = resumed_from or (self._resumed_from if goes_on else None)
            self._goes_on = goes_on

    @property
    def in_flight(self) -> bool:
        """Whether an exchange has begun and not ended."""
        return bool(self._log and self._log.exchanges.in_flight)

    @property
    def is_waiting(self) -> bool:
        """Whether an input was logged and nothing came after it."""
        return bool(self._log and self._log.exchanges.is_waiting)

    @property
    def cost_usd(self) -> float | None:
        """The cost of the whole conversation, including the sessions that this one continues; `None` if one of their
        logs, or a cost in one, is missing."""
        exchanges = self._log.exchanges if self._log else None
        if exchanges is None or exchanges.has_unknown_history or exchanges.totals.unknown_costs:
            return None
        own = exchanges.cost_usd
        earlier = _cost_up_to(self.folder, self.continues, {self.session_id})
        return None if own is None or earlier is None else round(own + earlier, COST_DIGITS)

    @property
    def resumed(self) -> str | None:
        """The session that this log continues, if its log existed before."""
        return self.session_id if self._log and self._log.is_resumed else None

    @property
    def continues(self) -> str | None:
        return self._log.exchanges.continues if self._log else None

    def _context(self, cwd: str | None) -> Json:
        """The context to record, for agents that have one. A session without a named agent is the SDK's, which has
        one."""
        if self._began.agent is None:
            return noted_context(cwd)
        from agent_logger.agents.registry import agent_called  # the SDK's logger names no agent

        agent = agent_called(self._began.agent)
        return noted_context(cwd) if agent and agent.context else UNSET

    # ------------------------------------------------------------ which log

    def _log_of(self, message: SdkMessage) -> "_Log":
        log = self._opened()
        if log.exchanges.belongs(message):
            return log
        # A fork includes the old counters.
        return self._leave(log, log.exchanges.totals.counters, inputs_go_on=log.exchanges.is_waiting)

    def _opened(self, continues: str | None = None, inherited: Counters | None = None) -> "_Log":
        if self._log is None:
            stem = time.strftime("%Y%m%d_%H%M%S", time.gmtime(self._clock.wall()))
            journal = Journal(self.folder, f"{stem}_{PROVISIONAL}-{self._clock.uuid7()[-8:]}", "exchange")
            exchanges = Exchanges(
                self._clock.uuid7,
                continues=continues,
                inherited=inherited,
                began=self._began,
                context=self._context,
                others_number=OthersNumbers(journal).highest,
            )
            self._log = _Log(journal, exchanges, stem)
            self.session_id, self.path = None, _path(journal)
        return self._log

    def _leave(
        self, log: "_Log", inherited: Counters | None = None, *, inputs_go_on: bool = False, is_over: bool = False
    ) -> "_Log":
        """End this session and open a new one, which continues it unless it is over. Inputs that wait for an answer may
        move to the new one."""
        inputs = log.exchanges.withdraw() if inputs_go_on else []
        self._log = None
        new = self._opened(None if is_over else log.exchanges.session_id, inherited)
        for given in inputs:
            self._write(new, new.exchanges.input(given, self._clock.now()))
        if inputs:
            log.journal.withdraw()
        self._close(log, None if is_over else "reset", "eof" if is_over else "reset")
        return new

    def _close(self, log: "_Log", reason: str | None, end_reason: EndReason, exited: Exit | None = None) -> None:
        self._write(log, log.exchanges.finish(reason, self._clock.now(), end_reason, exited))
        log.journal.close()
        self._lost += log.journal.lost

    def _identify(self, log: "_Log", session_id: str) -> None:
        """Give the log its name, now that the client's id is known, or continue the log that exists under that id."""
        part = exchange_log_of(self.folder, session_id)
        name = part.name if part else free_name(self.folder, f"{log.stem}_{safe_name(session_id[:8])}")
        exchanges, resumed_from = log.exchanges, self._resumed_from
        if log.journal.rename(name) and part:
            log.is_resumed = True
            totals, has_start, _ = _read(part)
            exchanges.resume(totals, has_start=has_start, resumed_from=resumed_from)
        elif resumed_from and resumed_from != session_id and not exchanges.continues:
            parent = exchange_log_of(self.folder, resumed_from)
            exchanges.go_on_from(resumed_from, _read(parent)[0].counters if parent else None)
        elif resumed_from or self._goes_on:
            exchanges.has_unknown_history = True
        self.session_id, self.path, self._resumed_from = session_id, _path(log.journal), None
        self._goes_on = False
        self._write(log, exchanges.identified(session_id))

    def _numbering(self, log: "_Log", name: str | None = None) -> AbstractContextManager[None]:
        """Choose the log of a session that has got its `name`, or the number of an exchange that may begin, and write
        that down before another logger of the session chooses."""
        return exclusive_in(self.folder) if name or log.exchanges.session_id else nullcontext()

    # ------------------------------------------------------------ writing

    def _write(self, log: "_Log", records: Iterable[Written]) -> None:
        for record in records:
            if not log.write(record):
                self.error = log.journal.error
                why = self.error.strerror if self.error else "unknown error"
                self.failed = log.journal.failing or f"cannot write the exchange in flight ({why})"


class _Log:
    """A log that is being written: its journal, and the exchanges to write to it."""

    def __init__(self, journal: Journal, exchanges: Exchanges, stem: str) -> None:
        self.journal, self.exchanges, self.stem = journal, exchanges, stem
        self.is_resumed = False  # it existed before
        self._in_flight = False

    def after_fork(self) -> None:
        self.exchanges.withdraw()
        self._in_flight = False

    def write(self, record: Written) -> bool:
        match record:
            case LiveStart() if self._in_flight:
                return self.journal.note(record)
            case LiveStart():
                self._in_flight = True
                return self.journal.begin(record)
            case LiveMessage():
                return self.journal.add(record, counts=self.exchanges.is_large)
            case LargeExchange():
                self._in_flight = False
                return self.journal.end(record.record, record.finished)
            case ExchangeRecord():
                self._in_flight = False
                return self.journal.end(record)
        return self.journal.append(record)


def _path(journal: Journal) -> Path:
    return PartFile(journal.folder, journal.name).path


def _cost_up_to(folder: Path, session_id: str | None, visited: set[str | None]) -> float | None:
    """The cost of this session and of those that it continues, from their logs."""
    cost = 0.0
    while session_id is not None:
        log = exchange_log_of(folder, session_id) if session_id not in visited else None
        if log is None:
            return None
        visited.add(session_id)
        totals, _, session_id = _read(log)
        if totals.cost_usd is None or totals.unknown_costs:
            return None
        cost += totals.cost_usd
    return cost


def _read(log: PartFile) -> tuple[Totals, bool, str | None]:
    """The totals of a log, whether it has a start record, and the session that it continues."""
    try:
        read = read_exchange_log(log.folder, log.name)
    except (OSError, AgentLoggerError):
        return Totals(), bool(parts_of(log.folder, log.name)), None
    start = read.start
    exchanges = [exchange for exchange in read.exchanges if exchange.complete or exchange.end_reason]
    totals = Totals.of(sorted(exchanges, key=lambda exchange: exchange.exchange), is_new=_is_new_run(start))
    return totals, start is not None, start.continues if start else None


def _is_new_run(start: SessionStart | None) -> bool:
    """Whether the log is that of a run which started a new session."""
    if start is None or start.witness != "run":
        return False
    from agent_logger.agents.command_lines import starts_new  # only runs have command lines

    return starts_new(start.argv or [], start.agent)
