"""One model response, as far as money is concerned: what the ledger is made of.

A reader of files yields these without making a whole session: `responses_of(source)` is the fast path of `usage`.
"""

from dataclasses import dataclass
from datetime import datetime

from agent_logger.session import Usage, Witness


@dataclass(frozen=True, slots=True, kw_only=True)
class ModelResponse:
    family: str  # whose form the ids have: "anthropic", "openai", "gemini", ...
    message_id: str | None  # the vendor's; none where the client does not keep it
    request_id: str | None
    model: str | None
    usage: Usage | None
    tier: str | None
    at: datetime | None
    session: str
    project: str | None
    agent: str
    thread: str
    final: bool  # the usage is that of the whole response
    reported_cost_usd: float | None
    witness: Witness
