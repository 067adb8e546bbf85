"""What Mistral Vibe prints under `run`."""

import json

import pytest

from agent_logger.messages.sdk import SdkMessage
from agent_logger.recording.run.output import RunOutput, agent_printing
from tests.agents.foreign import DATA

RECORDED = DATA / "mistral-vibe"
PRINTED = sorted(path.relative_to(RECORDED).as_posix() for path in RECORDED.glob("*/*/*.stdout"))


def messages(path: str) -> list[SdkMessage]:
    output = RunOutput("mistral-vibe")
    return [*output.feed((RECORDED / path).read_bytes()), *output.end()]


def blocks(path: str) -> list[str | None]:
    return [
        getattr(block, "type", None) for message in messages(path) if message.inner for block in message.inner.content
    ]


@pytest.mark.parametrize("path", PRINTED)
def test_the_output_is_recognised(path: str) -> None:
    assert agent_printing((RECORDED / path).read_bytes()) == "mistral-vibe"


def test_printed_entries_are_the_conversation() -> None:
    calls = ["tool_use", "tool_result"]
    assert blocks("3.0.2/anthropic/01.stdout") == ["thinking", "text", *calls, "thinking", "text"]
    assert blocks("3.0.2/tools/01.stdout") == ["text", *calls, *calls, *calls, "text"]
    failed = [
        getattr(block, "is_error", None)
        for message in messages("3.0.2/tools/01.stdout")
        if message.inner
        for block in message.inner.content
        if getattr(block, "type", None) == "tool_result"
    ]
    assert [bool(error) for error in failed] == [False, False, True]


@pytest.mark.parametrize("path", PRINTED)
def test_every_entry_is_read_once_and_names_the_session(path: str) -> None:
    text = (RECORDED / path).read_text()
    entries = json.loads(text) if text.startswith("[") else [json.loads(line) for line in text.split("\n") if line]
    read = [message for message in messages(path) if not message.is_text]
    assert {json.loads(message.raw)["id"] for message in read if message.raw} == {entry["id"] for entry in entries}
    assert {message.session_id for message in read} == {entries[0]["sessionId"]}
