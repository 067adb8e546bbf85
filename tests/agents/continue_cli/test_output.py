"""What `cn -p --format json` prints under `run`."""

import msgspec
import pytest

from agent_logger.messages.sdk import SdkMessage
from agent_logger.recording.run.output import RunOutput, agent_printing
from tests.agents.foreign import DATA

RECORDED = DATA / "continue-cli/1.5.47"


def messages(printed: bytes) -> list[SdkMessage]:
    output = RunOutput("continue-cli")
    return [*output.feed(printed), *output.end()]


@pytest.mark.parametrize(
    ("printed", "text"), [("fork/01.stdout", "Two files."), ("separators/01.stdout", "One\u2028two\n\nthree \0 <b>")]
)
def test_the_answer_is_a_message_and_the_result(printed: str, text: str) -> None:
    data = (RECORDED / printed).read_bytes()
    assert agent_printing(data) == "continue-cli"
    said, end = messages(data)
    assert said.inner and isinstance(said.inner.content, list)
    for block in said.inner.content:
        assert isinstance(block.text, msgspec.Raw)
        assert (block.type, msgspec.json.decode(block.text)) == ("text", text)
    assert len(said.inner.content) == 1
    assert end.result and (end.result.is_error, end.result.result) == (False, text)


def test_the_report_of_a_summary_is_no_answer() -> None:
    data = (RECORDED / "compact/02.stdout").read_bytes()
    assert agent_printing(data) == "continue-cli"
    [message] = messages(data)
    assert (message.inner, message.result) == (None, None)


def test_an_answer_that_is_json_is_recorded_as_it_is() -> None:
    data = (RECORDED / "separators/02.stdout").read_bytes()
    assert agent_printing(data) is None
    assert all(message.inner is None for message in messages(data))
