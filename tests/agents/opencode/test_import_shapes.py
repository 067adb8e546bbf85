"""What `opencode import` refuses is known before it is asked."""

import msgspec
import pytest

from agent_logger.agents.opencode.import_shapes import Whole, fault_in_message, fault_in_part


@pytest.mark.parametrize("value", [{}, {"role": None}, {"role": "user"}, {"role": "assistant", "id": 5}])
def test_a_message_without_what_every_message_has_is_refused_with_a_reason(value: dict[str, object]) -> None:
    assert fault_in_message(value)


@pytest.mark.parametrize("value", [{}, {"type": 5}, {"type": "text"}, {"type": "tool", "state": {}}])
def test_a_part_without_what_every_part_has_is_refused_with_a_reason(value: dict[str, object]) -> None:
    assert fault_in_part(value)


def test_whole_numbers_are_those_that_javascript_can_count_to() -> None:
    assert msgspec.convert(2**53 - 1, type=Whole) == 2**53 - 1
    for number in (-1, 2**53):
        with pytest.raises(msgspec.ValidationError):
            msgspec.convert(number, type=Whole)
