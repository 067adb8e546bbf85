"""One model response, as far as money is concerned: what the ledger is made of."""

from dataclasses import dataclass
from datetime import datetime

from agent_logger.session import Usage, Witness


@dataclass(frozen=True, slots=True, kw_only=True)
class ModelResponse:
    """A response of a model, once per source: the lines that a client splits it into are one row.

    Copies in other sources, as forks and resumed sessions make them, are rows of their own with the same `message_id`.
    """

    family: str  # whose form the ids have: "anthropic", "openai", "gemini", ...
    message_id: str | None  # the vendor's; none where the client does not keep it
    request_id: str | None
    model: str | None
    usage: Usage | None  # the most final that the source tells
    tier: str | None
    at: datetime | None  # the earliest
    session: str
    project: str | None
    agent: str
    thread: str
    final: bool  # it came to its end; else `usage` may be what was known when it began
    reported_cost_usd: float | None  # the client's own price
    witness: Witness
