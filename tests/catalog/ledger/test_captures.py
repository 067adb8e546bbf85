"""The real clients' calls of `tests/data`, through the wire log's reader into one ledger."""

import pytest

from agent_logger.catalog.ledger.ledger import Ledger
from agent_logger.catalog.ledger.metrics import metrics_of
from agent_logger.catalog.ledger.session_responses import responses_of_session
from agent_logger.catalog.ledger.totals import total, totals
from agent_logger.logs.wire_log.session import session_of
from agent_logger.model.session import Usage
from tests.logs.wire_log.wire_records import Talk, talks

TALKS = pytest.mark.parametrize("spoken", talks(), ids=lambda it: f"{it.name}-{(it.client_id or '')[:4]}")


@TALKS
def test_ledger_usage_matches_the_session_usage(spoken: Talk) -> None:
    session, ledger = session_of(spoken.records()), Ledger()
    ledger.add(responses_of_session(session))
    ledger.add(responses_of_session(session_of(spoken.records(rejoined=False))))  # the same log once more
    rows = list(ledger.rows())
    assert total(rows).usage == session.usage == metrics_of(session).usage
    assert {row.copies for row in rows} <= {2}
    assert {row.joined_by for row in rows} <= {"message id"}


@pytest.mark.parametrize("scenario", sorted({it.name for it in talks()}))
def test_the_ledger_total_of_a_scenario_is_the_sum_of_its_sessions(scenario: str) -> None:
    """One scenario at a time: the API that they were recorded with gives the same ids after each start."""
    sessions, ledger = [session_of(it.records()) for it in talks() if it.name == scenario], Ledger()
    for session in sessions:
        ledger.add(responses_of_session(session))
    rows = list(ledger.rows())
    assert total(rows).usage == sum((it.usage for it in sessions), Usage())
    assert {key: it.usage for key, it in totals(rows, "session").items()} == {
        it.id: it.usage for it in sessions if it.usage != Usage()
    }
    fakes = {"claude-fake-1", "gpt-fake-1", "fake-model", "fake-gemini"}
    assert {row.model for row in rows if row.cost.nano_usd is None} <= fakes
    assert total(rows).unpriced == sum(row.model in fakes for row in rows)
