"""What gptme prints under `run`."""

from agent_logger.messages.sdk import SdkMessage
from agent_logger.recording.run.output import RunOutput, agent_printing
from tests.agents.foreign import DATA

PRINTED = DATA / "gptme/0.35.1/parallel/01.stdout"


def test_printed_lines_are_the_conversation() -> None:
    printed = PRINTED.read_bytes()
    assert agent_printing(printed) == "gptme"
    output = RunOutput("gptme")
    messages: list[SdkMessage] = [*output.feed(printed), *output.end()]
    blocks = [block for message in messages if message.inner for block in message.inner.content]
    assert [(getattr(block, "type", None), getattr(block, "is_error", None)) for block in blocks] == [
        ("text", None),
        *[("tool_use", None)] * 3,
        *[("tool_result", False), ("tool_result", True), ("tool_result", False)],
        ("text", None),
        ("tool_use", None),
        ("tool_result", False),
    ]
