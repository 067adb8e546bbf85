"""What models are paid for: a row per response that files report, as the ledger takes it from every reader."""

from datetime import datetime

import msgspec

from agent_logger.model.session import MAIN, SYNTHETIC, ClientTotal, Usage, Witness


class ModelResponse(msgspec.Struct, frozen=True, kw_only=True, gc=False):  # quicker to make than a dataclass
    """A response of a model, once per source: the lines that a client splits it into are one row.

    Copies in other sources, which forks and resumed sessions make, are rows of their own with the same `message_id`.
    """

    family: str  # whose ids these are: anthropic, openai, gemini
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
    final: bool = True  # it came to its end; else `usage` may be what was known when it began
    reported_cost_usd: float | None = None  # the client's own price
    witness: Witness = "transcript"

    @property
    def is_synthetic(self) -> bool:
        """Whether the client wrote this in the model's name: no model was asked, and nothing is billed."""
        return self.model == SYNTHETIC

    @property
    def is_sidechain(self) -> bool:
        return self.thread != MAIN


class ReportedTotal(msgspec.Struct, frozen=True, kw_only=True):
    """What a client says a stretch of a session took in all, once per source."""

    session: str
    project: str | None
    agent: str
    family: str
    total: ClientTotal
