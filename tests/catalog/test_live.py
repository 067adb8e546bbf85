import pytest

from agent_logger.catalog.live import in_flight, is_live
from agent_logger.session import Exchange, Session

ENDED = Exchange(number=1, complete=True, end_reason="result")
AT_WORK = Exchange(number=2, complete=False)
CUT = Exchange(number=2, complete=False, end_reason="cut")

SESSIONS = [
    pytest.param([ENDED], 299, True, id="has just grown"),
    pytest.param([ENDED], 301, False, id="is over"),
    pytest.param([ENDED, AT_WORK], 3000, True, id="a long tool"),
    pytest.param([ENDED, AT_WORK], 3601, False, id="killed"),
    pytest.param([ENDED, CUT], 3000, False, id="interrupted"),
    pytest.param([], 10, True, id="has just begun"),
    pytest.param([], 400, False, id="nothing came"),
]


@pytest.mark.parametrize(("exchanges", "silent", "live"), SESSIONS)
def test_live_is_what_has_grown_or_is_in_flight(exchanges: list[Exchange], silent: float, live: bool) -> None:
    session = Session(id="s", exchanges=exchanges)
    assert is_live(1_000.0, 1_000.0 + silent, in_flight=in_flight(session)) is live
