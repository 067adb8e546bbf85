"""Model responses for tests: one call makes a plain one, and says only what the test is about."""

from datetime import UTC, datetime, timedelta
from typing import Any

from msgspec.structs import replace

from agent_logger.catalog.ledger.ledger import Ledger
from agent_logger.catalog.ledger.rows import LedgerRow
from agent_logger.model.responses import ModelResponse
from agent_logger.model.session import MAIN, Usage

NOON = datetime(2026, 11, 15, 12, tzinfo=UTC)
PLAIN = ModelResponse(
    family="anthropic",
    message_id="msg_01AbCdEfGhIjKlMnOpQrStUv",
    request_id=None,
    model="claude-haiku-4-5",
    usage=Usage(input_tokens=1000, output_tokens=100),
    tier=None,
    at=NOON,
    session="one",
    project="/home/user/project",
    agent="claude-code",
    thread=MAIN,
    final=True,
    reported_cost_usd=None,
)


def response(*, witness: Any = "transcript", **facts: Any) -> ModelResponse:
    return replace(PLAIN, witnesses=frozenset({witness}), **facts)


def at(seconds: float) -> datetime:
    return NOON + timedelta(seconds=seconds)


def unique(number: int) -> str:
    return f"msg_01{number:022d}"


def rows_of(*responses: ModelResponse) -> list[LedgerRow]:
    ledger = Ledger()
    ledger.add(responses)
    return list(ledger.rows())


def row_of(*responses: ModelResponse) -> LedgerRow:
    [row] = rows_of(*responses)
    return row
