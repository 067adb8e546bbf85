"""What Droid prints under `run`, in its two forms."""

from pathlib import Path

from msgspec.structs import replace

from agent_logger.agents.droid import AGENT
from agent_logger.catalog.discovery.unidentified import is_told_by
from agent_logger.files.sources import StampCache
from agent_logger.messages.sdk import SdkMessage
from agent_logger.model.session import Usage
from agent_logger.recording.exchanges import Began
from agent_logger.recording.run.output import RunOutput, agent_printing
from agent_logger.recording.run.recording import RunRecording, RunStart
from tests.agents.foreign import DATA

RECORDED = DATA / "droid/0.225.2"


def messages(path: str) -> list[SdkMessage]:
    output = RunOutput("droid")
    return [*output.feed((RECORDED / path).read_bytes()), *output.end()]


def kinds(path: str) -> list[str]:
    blocks = (block for message in messages(path) if message.inner for block in message.inner.content)
    return [str(getattr(block, "type", None)) for block in blocks]


def test_a_printed_object_has_the_answer_the_session_and_its_tokens() -> None:
    assert agent_printing((RECORDED / "fork/01.stdout").read_bytes()) == "droid"
    [message] = [message for message in messages("fork/01.stdout") if message.result]
    assert message.session_id == "b188a1e5-c262-49c7-9786-d3ad5353f1ec"
    result = message.result
    assert result and result.usage
    assert (result.is_error, result.result, result.duration_ms) == (False, "Two files.", 905)
    assert (result.usage.input_tokens, result.usage.output_tokens) == (1644, 224)


def test_streamed_lines_are_the_conversation() -> None:
    assert agent_printing((RECORDED / "responses_api/01.stdout").read_bytes()) == "droid"
    assert kinds("responses_api/01.stdout") == ["text", "tool_use", "tool_result", "text"]
    [message] = [message for message in messages("responses_api/01.stdout") if message.result]
    assert message.result and message.result.usage
    assert (message.result.result, message.result.usage.cache_read_input_tokens) == ("Two files.", 5888)


def test_a_failed_run_says_why() -> None:
    *_, message = messages("failures/01.stdout")
    assert message.result
    assert (message.result.is_error, message.result.errors) == (True, ["400 bad request"])
    assert kinds("failures/01.stdout") == ["text", "tool_use", "tool_result"]


def test_the_tokens_of_a_run_that_resumes_are_not_those_of_the_session(tmp_path: Path) -> None:
    printed = (RECORDED / "fork/01.stdout").read_bytes()
    for goes_on, tokens in ((False, 224), (True, None)):
        start = RunStart(argv=["droid"], began=Began(agent="droid"), prompt="List the files", goes_on=goes_on)
        run = RunRecording(start, tmp_path / str(goes_on))
        run.out(printed)
        run.ended(None)
        counted = run.metadata().tokens
        assert (counted.output if counted else None) == tokens


def test_calls_are_found_in_the_file_that_says_the_same_without_their_tokens() -> None:
    [source] = AGENT.discover([RECORDED / "tools/home/.factory"], StampCache())
    session = AGENT.session_of(AGENT.open_session(source))
    counted = [replace(turn, usage=Usage(input_tokens=9, output_tokens=1)) for turn in session.turns]
    exchanges = [replace(session.exchanges[0], turns=counted)]
    assert is_told_by(replace(session, exchanges=exchanges), session)
    other = replace(counted[0], blocks=[replace(counted[0].blocks[0], text="Something else.")])
    assert not is_told_by(replace(session, exchanges=[replace(exchanges[0], turns=[other])]), session)
