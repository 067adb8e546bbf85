"""What Grok Build prints under `run`, in its three forms."""

from agent_logger.messages.sdk import SdkMessage
from agent_logger.recording.run.output import RunOutput, agent_printing
from tests.agents.foreign import DATA

RECORDED = DATA / "grok-build/1.0.41"


def messages(path: str) -> list[SdkMessage]:
    output = RunOutput("grok-build")
    return [*output.feed((RECORDED / path).read_bytes()), *output.end()]


def kinds(path: str) -> list[str]:
    blocks = (block for message in messages(path) if message.inner for block in message.inner.content)
    return [str(getattr(block, "type", None)) for block in blocks]


def test_a_printed_object_has_the_answer_the_session_and_its_tokens() -> None:
    assert agent_printing((RECORDED / "tools/01.stdout").read_bytes()) == "grok-build"
    [message] = [message for message in messages("tools/01.stdout") if message.result]
    assert message.session_id == "01a1e2bc-ac7a-7291-98e7-0f8cbac37ecb"
    result = message.result
    assert result
    assert (result.is_error, result.num_turns) == (False, 3)
    assert result.usage and result.usage.input_tokens == 2737
    assert result.usage.cache_read_input_tokens == 12032
    assert result.model_usage and list(result.model_usage) == ["gpt-fake-1"]


def test_streamed_updates_are_the_conversation() -> None:
    assert agent_printing((RECORDED / "streams/01.stdout").read_bytes()) == "grok-build"
    read = [kind for kind in kinds("streams/01.stdout") if kind != "text"]
    assert read == ["tool_use", "tool_result"]
    [message] = [message for message in messages("streams/01.stdout") if message.result]
    assert message.result
    assert message.result.result == "Two files."
    assert message.session_id


def test_messages_like_claude_codes_have_no_made_up_ids() -> None:
    read = messages("streams/02.stdout")
    assert all(message.inner.id is None for message in read if message.inner)
    assert kinds("streams/02.stdout") == ["text", "tool_use", "tool_result", "text"]
    [message] = [message for message in read if message.result]
    assert message.result
    assert message.result.result == "None."


def test_a_printed_error_is_a_failed_result() -> None:
    for path in ("failures/02.stdout", "streams/04.stdout", "streams/05.stdout"):
        [message] = [message for message in messages(path) if message.result]
        assert message.result
        assert message.result.is_error
        assert message.result.errors and "No such thing" in message.result.errors[0]
