"""One session from all who saw it."""

from pathlib import Path

import pytest

from agent_logger.catalog.join import join
from agent_logger.catalog.ledger import Ledger
from agent_logger.catalog.totals import total
from agent_logger.formats.session_responses import responses_of_session
from tests.catalog.witnesses import seen, told
from tests.formats.claude_files import Fixture, fixtures

FIXTURES = pytest.mark.parametrize("fixture", fixtures(), ids=lambda it: it.name)


@FIXTURES
def test_every_turn_is_there_once_with_those_who_saw_it(fixture: Fixture, tmp_path: Path) -> None:
    truth = seen(fixture)
    for session_id, witnesses in told(fixture, tmp_path).items():
        turns = join(witnesses).turns
        assert {it.message_id: set(it.witnesses) for it in turns} == truth.get(session_id, {})
        assert len(turns) == len({it.message_id for it in turns})


@FIXTURES
def test_what_was_billed_is_counted_once(fixture: Fixture, tmp_path: Path) -> None:
    ledger = Ledger()
    for witnesses in told(fixture, tmp_path).values():
        ledger.add(responses_of_session(join(witnesses)))
    rows = [row for row in ledger.rows() if not row.partial]
    assert total(rows).usage == fixture.true_usage()
