"""Thousands of sessions of one family, as where a server gives all its answers the same id."""

from datetime import UTC, datetime
from pathlib import Path

from agent_logger.catalog.discovery.reader import ResponseBatch
from agent_logger.catalog.ledger.rows import BIT
from agent_logger.catalog.refresh.families import SourceReading, update_families
from agent_logger.catalog.refresh.ingest import ingest
from agent_logger.catalog.sqlite.database import open_in_memory
from agent_logger.catalog.sqlite.schema import CATALOG
from agent_logger.files.sources import Source
from agent_logger.home.homes import Homes, RemovedSessions
from agent_logger.model.responses import ModelResponse
from agent_logger.model.session import Usage

SESSIONS = 600


def found(name: str, folder: str = "/p") -> Source:
    return Source(f"{folder}/{name}", "claude-code", f"{folder}/{name}", name, 1.0, 1, name, ())


def reading(number: int, message_id: str) -> SourceReading:
    name = f"{number:08x}-1111-4111-8111-111111111111"
    billed = ModelResponse(
        family="anthropic",
        message_id=message_id,
        model="claude-haiku-4-5",
        usage=Usage(input_tokens=1, output_tokens=1),
        at=datetime(2026, 11, 15, tzinfo=UTC),
        session=name,
        agent="claude-code",
        project="/p",
        thread="main",
    )
    return SourceReading(found(name), ResponseBatch(name, None, BIT["transcript"], [billed]))


def thousands_of_steps(*, is_family: bool) -> int:
    """That the database takes to take them in."""
    steps = 0

    def count() -> int:
        nonlocal steps
        steps += 1
        return 0

    database = open_in_memory(CATALOG)
    database.set_progress_handler(count, 1000)
    update_families(database, [reading(it, f"msg_01{0 if is_family else it:022d}") for it in range(SESSIONS)])
    (families,) = database.execute("SELECT count(DISTINCT family) FROM sessions").fetchone()
    assert families == (1 if is_family else SESSIONS)
    return steps


def test_shared_responses_are_looked_up_once_per_response() -> None:
    assert thousands_of_steps(is_family=True) < 2 * thousands_of_steps(is_family=False)


def test_a_large_family_is_ingested_in_few_batches(tmp_path: Path) -> None:
    """Each portion derives all that came before it, so there are few of them."""
    sources = [found(str(it), str(tmp_path)) for it in range(3000)]
    assert ingest(open_in_memory(CATALOG), sources, (), RemovedSessions(Homes(tmp_path)), None) == 4
