"""How responses and exchanges ended, as views tell it."""

import pytest

from agent_logger.model.session import Exchange, Turn
from agent_logger.views.endings import Ending, exchange_ending, turn_ending


@pytest.mark.parametrize(
    ("reason", "ending"),
    [
        *((it, None) for it in (None, "", "completed", "stop", "STOP", "end_turn", "tool_use", "tool_calls")),
        *((it, None) for it in ("tool-calls", "stop_sequence", "function_call")),
        *(
            (it, Ending(it, is_bad=True))
            for it in ("max_tokens", "MAX_TOKENS", "length", "refusal", "failed", "SAFETY")
        ),
        *((it, Ending(it, is_bad=False)) for it in ("pause_turn", "of_next_year")),
    ],
)
def test_a_response_with_a_normal_stop_reason_has_no_remark(reason: str | None, ending: Ending | None) -> None:
    assert turn_ending(Turn(message_id="m", stop_reason=reason)) == ending


@pytest.mark.parametrize(
    ("complete", "reason", "ending"),
    [
        (True, "result", None),
        (False, None, Ending("in flight", is_bad=False)),
        (False, "input", Ending("ended by the next input", is_bad=False)),
        (False, "lost", None),
        (False, "cut", Ending("incomplete (cut)", is_bad=True)),
        (False, "failed", Ending("incomplete (failed)", is_bad=True)),
        (False, "exit code 1", Ending("incomplete (exit code 1)", is_bad=True)),
    ],
)
def test_an_exchange_that_ended_abnormally_has_a_warning(
    complete: bool, reason: str | None, ending: Ending | None
) -> None:
    assert exchange_ending(Exchange(number=1, complete=complete, end_reason=reason)) == ending
