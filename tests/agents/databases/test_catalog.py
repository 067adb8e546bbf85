"""Sessions of databases in the catalog: what is damaged is reported, and costs nothing else."""

from pathlib import Path

import pytest

from agent_logger.catalog.catalog import Catalog
from tests.agents.databases.recorded import recorded_database


def leaf_with(data: bytes | bytearray, text: bytes, page: int = 4096) -> int:
    """The offset of a page with rows of a table that contains the text."""
    starts = range(0, len(data), page)
    return next(start for start in starts if data[start] == 13 and text in data[start : start + page])


@pytest.mark.parametrize(
    ("agent", "scenario", "text", "responses"),
    [
        pytest.param("kilo", "7.7.9/tree", b'"type":"step-finish"', 10, id="kilo"),
        pytest.param("goose", "1.52.0/tree", b"toolRequest", 12, id="goose"),
        pytest.param("hermes", "0.19.0/tree", b"Counting.", 2, id="hermes"),
        pytest.param("openclaw", "2026.9.6/errors", b"toolResult", 4, id="openclaw"),
    ],
)
def test_damage_in_a_database_is_counted_and_the_rest_is_read(
    home: Path, agent: str, scenario: str, text: bytes, responses: int
) -> None:
    path = recorded_database(agent, scenario, home)
    data = bytearray(path.read_bytes())
    start = leaf_with(data, text)
    data[start : start + 4096] = bytes(4096)
    path.write_bytes(data)
    with Catalog.open() as catalog:
        catalog.refresh()
        sessions = list(catalog.sessions())
        rows = list(catalog.ledger())
    assert sessions
    assert 0 < sum(row.copies for row in rows) <= responses
    assert all(session.damaged_lines for session in sessions)


@pytest.mark.parametrize(
    ("agent", "scenario"),
    [("kilo", "7.7.9/tools"), ("goose", "1.52.0/tools"), ("hermes", "0.19.0/tools"), ("openclaw", "2026.9.6/tools")],
)
def test_a_whole_database_has_no_damage(home: Path, agent: str, scenario: str) -> None:
    recorded_database(agent, scenario, home)
    with Catalog.open() as catalog:
        catalog.refresh()
        [session] = catalog.sessions()
    assert (session.damaged_lines, session.turns) == (0, 4)
