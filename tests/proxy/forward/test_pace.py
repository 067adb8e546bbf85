"""How fast tunnels are opened."""

from agent_logger.proxy.forward.pace import Pace


def test_a_second_of_tunnels_is_opened_at_once_and_the_others_one_by_one() -> None:
    pace = Pace()
    waits = [pace.wait_seconds(100.0) for _ in range(128)]
    assert waits[:64] == [0.0] * 64
    assert waits[64] and waits[127] and abs(waits[127] - 1.0) < 0.001


def test_tunnels_that_would_wait_too_long_are_not_opened_and_delay_nobody() -> None:
    pace = Pace()
    waits = [pace.wait_seconds(100.0) for _ in range(5000)]
    opened = [wait for wait in waits if wait is not None]
    assert len(opened) == 64 * 31
    assert pace.wait_seconds(131.0) == 0.0


def test_several_relays_share_the_pace_of_a_run() -> None:
    pace = Pace(relays=4)
    assert [pace.wait_seconds(100.0) for _ in range(17)][15:] == [0.0, 0.0625]
