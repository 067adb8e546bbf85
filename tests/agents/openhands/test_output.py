"""What OpenHands prints under `run`."""

import json

import pytest

from agent_logger.messages.sdk import Inner, SdkMessage
from agent_logger.recording.run.output import RunOutput, agent_printing
from tests.agents.foreign import DATA
from tests.agents.recorded import recording

RECORDED = DATA / "openhands/1.16.0"
PRINTED = sorted(path.relative_to(RECORDED).as_posix() for path in RECORDED.glob("*/*.stdout"))


def messages(path: str) -> list[SdkMessage]:
    output = RunOutput("openhands")
    return [*output.feed((RECORDED / path).read_bytes()), *output.end()]


def inner_of(path: str) -> list[Inner]:
    return [message.inner for message in messages(path) if message.inner]


@pytest.mark.parametrize("path", PRINTED)
def test_the_output_is_recognised_after_its_texts(path: str) -> None:
    assert agent_printing((RECORDED / path).read_bytes()) == "openhands"


def test_printed_events_are_the_conversation_with_the_ids_of_its_responses() -> None:
    inner = inner_of("tools/01.stdout")
    kinds = [getattr(block, "type", None) for message in inner for block in message.content]
    # The result of the first tool is not among the printed events of this recording.
    assert kinds == ["text", "tool_use", "tool_use", "tool_result", "tool_use", "tool_result"]
    responses = recording(RECORDED / "tools").of({"main"})[:3]
    assert [message.id for message in inner if message.id] == [response.id for response in responses]


def test_a_message_to_the_user_and_the_tool_that_ends_a_run_are_its_result() -> None:
    for path, text in (
        ("tools/01.stdout", "Two files; missing.txt is not there."),
        ("tools/02.stdout", "The function is greet."),
    ):
        [result] = [message.result for message in messages(path) if message.result]
        assert (result.is_error, result.result) == (False, text)


def test_every_printed_event_is_recorded_once() -> None:
    for path in PRINTED:
        printed = [line for line in (RECORDED / path).read_text().split("\n") if line.startswith('{"id"')]
        read = [message for message in messages(path) if message.type not in ("unknown", "stderr")]
        assert {json.loads(message.raw)["id"] for message in read} == {json.loads(line)["id"] for line in printed}
