"""How a run ended and what it used, from its results, its exit and its last output.

A result failed if it says `is_error`, or if its subtype begins with `error`: a failed request to the API has the
subtype `success`, and older clients that reach a limit say `error_max_turns` with `is_error: false`.
"""

import re
import signal
from dataclasses import dataclass, field
from enum import StrEnum
from typing import Any, Literal, cast

import msgspec

from agent_logger.messages import counters
from agent_logger.messages.sdk import Result, SdkMessage
from agent_logger.model.records import CostFrom, ExchangeStats, Exit, Tokens

_NOT_FOUND = re.compile(
    r"no (?:conversation|saved session|session|rollout|previous sessions?) found"
    r"|session .{0,80}not found|requires a valid session ID|invalid session identifier",
    re.IGNORECASE,
)
_INTERRUPTS = {signal.SIGINT, signal.SIGTERM, signal.SIGHUP}


class Failure(StrEnum):
    """Why a run did not succeed."""

    MAX_TURNS = "max_turns"
    BUDGET = "budget"
    API_ERROR = "api_error"
    SESSION_NOT_FOUND = "session_not_found"
    INTERRUPTED = "interrupted"
    NO_RESULT = "no_result"
    EXECUTABLE_MISSING = "executable_missing"
    TIMED_OUT = "timed_out"
    OTHER = "other"


# Why no request was recorded: the agent calls another address than the one it was given; it does so with its login; it
# does not trust our certificate; there is no proxy; it made no request.
NoRequests = Literal["other_base_url", "login_ignores_base_url", "not_trusted", "proxy_not_started", "none_made"]


class ReportedCounters(msgspec.Struct, frozen=True, kw_only=True):
    """The client's counters as the last result had them."""

    total_cost_usd: float | None
    duration_api_ms: int | None
    model_usage: dict[str, dict[str, Any]] | None


class RunMetadata(msgspec.Struct, frozen=True, kw_only=True):
    """The metadata of a run. A field is `None` if no source gives it.

    `cost` is what this run cost in dollars, `total_cost` what its session cost so far; `cost_from` and
    `total_cost_from` say how these are known. `tokens` and `model_usage` are what the run was billed, sub-agents
    included; `reported` has the client's counters as they came. `log` is the file that it was recorded to.
    """

    session_id: str | None = None
    cost: float | None = None  # of this run, in dollars
    cost_from: CostFrom | None = None
    total_cost: float | None = None  # of the session
    total_cost_from: Literal["reported", "log", "own"] | None = None
    turns: int | None = None
    duration_ms: int | None = None
    api_duration_ms: int | None = None
    is_max_turns: bool = False
    tokens: Tokens | None = None  # that were billed, sub-agents included
    model_usage: dict[str, dict[str, Any]] | None = None  # of this run
    terminal_reason: str | None = None
    permission_denials: list[Any] | None = None
    reported: ReportedCounters | None = None
    resumed_from: str | None = None
    continues: str | None = None  # the session that this new one continues
    exit_status: int | None = None
    signal: int | None = None
    log: str | None = None  # the file it was recorded to
    lost: int = 0  # records that could not be written
    requests: int | None = None  # to models that were recorded; `None`: they were not to be
    no_requests: NoRequests | None = None  # why none was

    def to_dict(self) -> dict[str, Any]:
        """Return the fields by name, as values that JSON has."""
        return cast("dict[str, Any]", msgspec.to_builtins(self))


@dataclass(slots=True)
class RunOutcome:
    """The outcome of a run so far. Give `add` every message, and with a result the stats of its exchange."""

    results: list[ExchangeStats] = field(default_factory=list)
    last: Result = field(default_factory=Result)
    session_id: str | None = None

    def add(self, message: SdkMessage, stats: ExchangeStats | None) -> None:
        self.session_id = message.session_id or self.session_id
        if message.result and stats:
            self.last = message.result
            self.results.append(stats)

    # ------------------------------------------------------------ how it ended

    @property
    def has_history(self) -> bool:
        """Whether the client itself says that the session it reports on is older than this run."""
        new, counted = self.last.model_usage_since_last_result, self.last.model_usage
        return len(self.results) == 1 and new is not None and bool(counted) and new != counted

    @property
    def _is_error(self) -> bool:
        return is_failed(self.results[-1])

    def failure(self, exited: Exit | None, text: str, *, timed_out: bool = False) -> Failure | None:
        """Why the run failed; `None` if it did not. `text` is the end of the standard error."""
        if timed_out:
            return Failure.TIMED_OUT
        if self.results:
            return failure_of(self.results[-1], self.error or "")
        if _NOT_FOUND.search(text):
            return Failure.SESSION_NOT_FOUND
        is_interrupted = exited and (exited.signal or (exited.status or 0) - 128) in _INTERRUPTS
        return Failure.INTERRUPTED if is_interrupted else Failure.NO_RESULT

    @property
    def data(self) -> Any:
        """The last result's structured output, else its text; nothing if it failed."""
        if not self.results or self._is_error:
            return None
        if self.last.structured_output:
            return msgspec.json.decode(self.last.structured_output)
        return self.last.result

    @property
    def error(self) -> str | None:
        """What the last result says went wrong."""
        if not self.results or not self._is_error:
            return None
        text = self.last.result if isinstance(self.last.result, str) else None
        return "; ".join(self.last.errors or []) or text or self.results[-1].subtype

    # ------------------------------------------------------------ what it came to

    def metadata(self, *, log_cost: float | None = None, goes_on: bool = False, **fields: Any) -> RunMetadata:
        """The metadata of the run. `log_cost`: the sum over the logs of the conversation; `goes_on`: there was
        something before this run."""
        numbers = self._numbers(log_cost, goes_on=goes_on) if self.results else {}
        return RunMetadata(session_id=self.session_id, **numbers, **fields)

    def _numbers(self, log_cost: float | None, *, goes_on: bool) -> dict[str, Any]:
        last, billed = self.results[-1], [counters.billed(result) for result in self.results]
        cost = _sum([result.cost_usd for result in self.results])
        reported = counters.counters_in(last)
        total, source = self._total(reported, cost, log_cost, goes_on=goes_on)
        return {
            "cost": cost,
            "cost_from": None if cost is None else last.cost_from,
            "total_cost": total,
            "total_cost_from": source,
            "turns": _sum([result.num_turns for result in self.results]),
            "duration_ms": _sum([result.duration_ms for result in self.results]),
            "api_duration_ms": _sum([result.duration_api_ms for result in self.results]),
            "is_max_turns": self.failure(None, "") is Failure.MAX_TURNS,
            "tokens": counters.sum_of([tokens for tokens in billed if tokens]),
            "model_usage": counters.models_of(self.results),
            "terminal_reason": last.terminal_reason,
            "permission_denials": _denials(self.results),
            "reported": ReportedCounters(
                total_cost_usd=reported.cost_usd,
                duration_api_ms=reported.api_ms,
                model_usage=reported.models or None,
            ),
        }

    def _total(
        self, reported: counters.Counters, cost: float | None, log_cost: float | None, *, goes_on: bool
    ) -> tuple[float | None, str | None]:
        """The cost of the session, and where it comes from. Current clients count over the session; for older ones it
        is known from the logs, or if there was nothing before this run."""
        if reported.cost_usd is not None and (reported.outlive_process or counters.is_apart(self.last)):
            return round(reported.cost_usd, counters.COST_DIGITS), "reported"
        if cost is not None and not goes_on:
            return cost, "own"
        return (log_cost, "log") if log_cost is not None else (None, None)


def is_failed(stats: ExchangeStats) -> bool:
    """Whether the exchange that ended with these stats failed."""
    if stats.is_error or (stats.subtype or "").startswith("error"):
        return True
    return stats.is_error is None and bool(stats.errors)


def failure_of(stats: ExchangeStats, text: str = "") -> Failure | None:
    """Why the exchange that ended with these stats failed; `text` is what its result says about that."""
    reason, kind = stats.terminal_reason or "", stats.subtype or ""
    if not is_failed(stats):
        return None
    if "max_turns" in (reason, kind.removeprefix("error_")):
        return Failure.MAX_TURNS
    if reason == "budget_exhausted" or kind.startswith("error_max_budget"):
        return Failure.BUDGET
    if reason == "api_error" or stats.api_error_status is not None:
        return Failure.API_ERROR
    if reason.startswith("aborted"):
        return Failure.INTERRUPTED
    return Failure.SESSION_NOT_FOUND if _NOT_FOUND.search(text) else Failure.OTHER


def _sum(values: list[Any]) -> Any:
    """The sum; `None` if one of the values is unknown, for a part is not the whole."""
    return None if None in values else round(sum(values), counters.COST_DIGITS)


def _denials(results: list[ExchangeStats]) -> list[Any] | None:
    lists = [msgspec.json.decode(result.permission_denials) for result in results if result.permission_denials]
    return [denial for denials in lists if isinstance(denials, list) for denial in denials] if lists else None
