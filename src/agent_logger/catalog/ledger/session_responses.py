"""The model responses of a session, for the ledger: how wire logs and exchange logs enter it."""

from collections.abc import Iterator, Mapping
from functools import lru_cache

from agent_logger.agents.registry import AGENTS
from agent_logger.model.prices import canonical
from agent_logger.model.responses import ModelResponse, ReportedTotal
from agent_logger.model.session import Session, Turn, Witness

UNKNOWN = "unknown"  # agent or family

FAMILY_OF_ID: Mapping[str, str] = {
    "msg_": "anthropic",
    "chatcmpl-": "openai",
    "resp_": "openai",
    "gen-": "openrouter",
}
FAMILY_OF_VENDOR: Mapping[str, str] = {"anthropic": "anthropic", "openai": "openai", "google": "gemini"}
FAMILY_OF_AGENT: Mapping[str, str] = {agent.name: agent.family for agent in AGENTS if agent.family}

# A turn of a session that was read from several witnesses is counted once, for the one that knows most.
BEST_FIRST: tuple[Witness, ...] = ("wire", "transcript", "sdk", "run", "hook")


def responses_of_session(session: Session) -> Iterator[ModelResponse]:
    """Yield the responses that were billed. Attempts without a result are turns too, but without usage: they are left
    out. So is what no model said, such as a tool's result without a call."""
    for turn in session.turns:
        if turn.is_billed and not (turn.is_sum and session.totals):
            yield _response(session, turn)


def totals_of_session(session: Session) -> Iterator[ReportedTotal]:
    """Yield what clients report that parts of the session used in all."""
    for total in session.totals:
        yield ReportedTotal(
            session=session.id,
            project=session.project,
            agent=session.agent or UNKNOWN,
            family=FAMILY_OF_AGENT.get(session.agent or "", UNKNOWN),
            total=total,
        )


def _response(session: Session, turn: Turn) -> ModelResponse:
    return ModelResponse(
        family=family_of(session, turn),
        message_id=turn.message_id,
        request_id=turn.request_id,
        model=turn.model,
        usage=turn.usage,
        tier=turn.service_tier,
        at=turn.started or turn.ended,
        session=session.id,
        project=session.project,
        agent=session.agent or UNKNOWN,
        thread=turn.thread,
        final=turn.is_final,
        reported_cost_usd=None,
        witnesses=_best(turn.witnesses),
    )


@lru_cache(maxsize=64)
def _best(witnesses: frozenset[Witness]) -> frozenset[Witness]:
    return frozenset({next((witness for witness in BEST_FIRST if witness in witnesses), "wire")})


def family_of(session: Session, turn: Turn) -> str:
    """Return the vendor whose ids the turn has."""
    for start, family in FAMILY_OF_ID.items():
        if turn.message_id and turn.message_id.startswith(start):
            return family
    vendor = (canonical(turn.model or "") or "").partition("/")[0]
    return FAMILY_OF_VENDOR.get(vendor) or FAMILY_OF_AGENT.get(session.agent or "", UNKNOWN)
