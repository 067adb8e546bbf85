"""What Kimi Code prints under `run`."""

import json

from agent_logger.messages.sdk import SdkMessage
from agent_logger.recording.run.output import RunOutput, agent_printing
from tests.agents.foreign import DATA

RECORDED = DATA / "kimi-code/2.1.0"


def messages(path: str) -> list[SdkMessage]:
    output = RunOutput("kimi-code")
    return [*output.feed((RECORDED / path).read_bytes()), *output.end()]


def test_printed_lines_are_the_conversation_and_its_session() -> None:
    printed = (RECORDED / "tools/01.stdout").read_bytes()
    assert agent_printing(printed) == "kimi-code"
    blocks = [block for message in messages("tools/01.stdout") if message.inner for block in message.inner.content]
    kinds = [getattr(block, "type", None) for block in blocks]
    assert kinds == [
        *("text", "tool_use", "tool_use", "tool_result", "tool_result"),
        *("tool_use", "tool_result", "text"),
    ]
    result = next(message for message in messages("tools/01.stdout") if message.result)
    assert result.session_id == "session_4a191189-894c-4bda-9e23-65b8bfa4d924"
    assert result.result and result.result.result == "Two files; missing.txt is not there."


def test_every_printed_line_is_recorded_once() -> None:
    for path in sorted(RECORDED.glob("*/*.stdout")):
        lines = [line for line in path.read_text().split("\n") if line.startswith("{")]
        read = [message for message in messages(path.relative_to(RECORDED).as_posix()) if message.type != "unknown"]
        assert len({bytes(message.raw) for message in read}) == len({json.dumps(json.loads(line)) for line in lines})
