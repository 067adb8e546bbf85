"""The responses of models that are billed: one type, from every reader to the ledger."""

from datetime import UTC, datetime
from typing import Literal

import msgspec

from agent_logger.model.prices import Tokens
from agent_logger.model.session import SYNTHETIC, ClientTotal, Usage, Witness

ResponseMatch = Literal["message id", "request id", "time", "order", "result"]  # the most certain first
TRANSCRIPT: frozenset[Witness] = frozenset({"transcript"})

EARLIEST = datetime(1970, 1, 1, tzinfo=UTC)
LATEST = datetime(9980, 1, 1, tzinfo=UTC)  # near the year 9999 zones cannot be computed
MOST_TOKENS = 1 << 60  # more is damage


class ModelResponse(msgspec.Struct, frozen=True, kw_only=True, gc=False, array_like=True):
    """A response of a model, from its reader to its row in the ledger. The lines that a client splits it into are one.

    Copies in other sources, which forks and resumed sessions make, have the same `message_id`. The ledger merges them
    into one: then `witnesses`, `copies`, `joined_by` and `last_at` speak of all of them.
    """

    family: str  # the vendor of the ids: anthropic, openai, gemini
    message_id: str | None = None
    request_id: str | None = None
    model: str | None
    usage: Usage | None  # the most final that the source tells
    tier: str | None = None
    at: datetime | None  # the earliest
    session: str
    project: str | None
    agent: str
    thread: str
    # Whether the response has ended; otherwise `usage` may be that of its beginning.
    final: bool = True
    reported_cost_usd: float | None = None  # the client's own price
    witnesses: frozenset[Witness] = TRANSCRIPT
    copies: int = 1  # 0: what a client counts beyond all known responses
    joined_by: ResponseMatch | None = None  # how copies were recognised, by the least certain way
    last_at: datetime | None = None  # the time of the latest copy
    home: str = ""  # the other home that has it; empty: this installation's own
    owner: str = ""  # on a hub, the person who has pushed it
    claim: int = 0  # on a hub, the place of the owner in the order of those who pushed the session

    @property
    def is_synthetic(self) -> bool:
        """Whether the client wrote this in the model's name: no model was asked, and nothing is billed."""
        return self.model == SYNTHETIC

    @property
    def tokens(self) -> Tokens | None:
        return self.usage.counts if self.usage else None


def countable(response: ModelResponse) -> ModelResponse:
    """Return the response with a time that can be compared and counts that can be added; None where it has no such."""
    at, usage = response.at, response.usage
    # Nearly every response; in this one function, because there are millions of them.
    if (
        at is not None
        and at.tzinfo is not None
        and EARLIEST <= at < LATEST
        and usage is not None
        and 0
        <= usage.input_tokens
        | usage.output_tokens
        | usage.cache_read_tokens
        | usage.cache_write_tokens
        | usage.cache_write_1h_tokens
        < MOST_TOKENS
    ):
        return response
    at, usage = countable_time(at), countable_usage(usage)
    if at is response.at and usage is response.usage:
        return response
    return msgspec.structs.replace(response, at=at, usage=usage)


def countable_time(at: datetime | None) -> datetime | None:
    if at is None:
        return None
    time = utc(at)
    return time if EARLIEST <= time < LATEST else None


def utc(time: datetime) -> datetime:
    """Return the time with a zone, so that it can be compared with others."""
    return time if time.tzinfo else time.replace(tzinfo=UTC)


def countable_usage(usage: Usage | None) -> Usage | None:
    if usage is None:
        return None
    given, output, read, write, hour = counts = usage.counts
    if 0 <= given | output | read | write | hour < MOST_TOKENS:  # nearly every usage
        return usage
    return usage if -MOST_TOKENS < min(counts) <= max(counts) < MOST_TOKENS else None


class ReportedTotal(msgspec.Struct, frozen=True, kw_only=True):
    """The total usage that a client reports for a stretch of a session, once per source."""

    session: str
    project: str | None
    agent: str
    family: str
    total: ClientTotal
    home: str = ""  # as that of a response
