"""An adapter for another provider: what it prints and leaves is what Claude Code would; the suite sees what is not."""

import json
import os
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from agent_logger import Usage, read_session
from agent_logger.agents.claude_code.naming import project_folders
from agent_logger.agents.claude_code.transcript.records import token_usage
from agent_logger.errors import SourceError, StoreError
from agent_logger.transcripts.adapters import ModelAnswer, TranscriptWriter, answer_of, usage_of
from agent_logger.transcripts.testing import run_adapter_conformance
from tests.clients import ROOT, Sandbox
from tests.fakeapi import FakeAPI, answers

EXAMPLE = ROOT / "examples" / "openai_adapter.py"
TURNS: list[dict[str, Any]] = [
    {
        "content": [
            {"type": "text", "text": 'I look. It says "type":"tool_use" somewhere.'},
            {"type": "tool_use", "name": "Read", "input": {"file_path": "seed.txt"}},
            {"type": "tool_use", "name": "Glob", "input": {"pattern": "*.txt"}},
        ],
        "usage": {
            "input_tokens": 30,
            "cache_creation_input_tokens": 0,
            "cache_read_input_tokens": 300,
            "output_tokens": 11,
        },
    },
    {
        "content": [{"type": "tool_use", "name": "Read", "input": {"file_path": "missing.txt"}}],
        "usage": {
            "input_tokens": 5,
            "cache_creation_input_tokens": 0,
            "cache_read_input_tokens": 330,
            "output_tokens": 7,
        },
    },
    {
        "text": "It says hello.",
        "usage": {
            "input_tokens": 8,
            "cache_creation_input_tokens": 0,
            "cache_read_input_tokens": 335,
            "output_tokens": 5,
        },
    },
]
USAGE = Usage(input_tokens=43, output_tokens=23, cache_read_tokens=965)


def run_example(sandbox: Sandbox, *more: str, folder: str | None = "config") -> str:
    (sandbox.project / "seed.txt").write_text("hello\n")
    with FakeAPI(answers(*TURNS)) as api:
        environment = {"OPENAI_BASE_URL": f"{api.url}/v1", "OPENAI_API_KEY": "sk-fake"}
        if folder:
            environment["OPENAI_CONFIG_DIR"] = str(sandbox.home / folder)
        command = [
            sys.executable,
            str(EXAMPLE),
            "-p",
            "What is in seed.txt?",
            "--output-format",
            "json",
            *more,
        ]
        done = sandbox.run(command, environment)
    assert (done.exit_code, done.stderr) == (0, "")
    return done.stdout


# ---------------------------------------------------------------- the example


@pytest.mark.parametrize("folder", ["config", None], ids=["in a folder of its own", "where Claude Code has its own"])
def test_the_example_adapter_passes_the_conformance_suite(sandbox: Sandbox, folder: str | None) -> None:
    output = run_example(sandbox, folder=folder)
    config_dir = sandbox.home / (folder or ".claude")
    session = run_adapter_conformance(output, config_dir=config_dir, cwd=sandbox.project, usage=USAGE)
    assert [it.user_input for it in session.exchanges] == ["What is in seed.txt?"]
    assert [(it.name, it.is_error) for it in session.tool_calls] == [
        ("Read", False),
        ("Glob", False),
        ("Read", True),
    ]
    assert session.tool_calls[0].result == "hello\n"
    assert token_usage(session).output_tokens == 23
    assert token_usage(session).context_tokens == 343
    result = json.loads(output)[-1]
    assert (result["result"], result["num_turns"], result["is_error"]) == ("It says hello.", 4, False)


def test_the_grep_commands_of_the_specification_count_tool_calls(sandbox: Sandbox) -> None:
    run_example(sandbox)
    (path,) = (sandbox.home / "config" / "projects" / project_folders(sandbox.project)[0]).glob("*.jsonl")
    for what, number in (("tool_use", 3), ("tool_result", 3)):
        counted = subprocess.run(["grep", "-c", f'"type":"{what}"', path], capture_output=True, text=True, check=True)
        assert int(counted.stdout) == number


@pytest.mark.parametrize("folder", [None, "config"])
def test_the_ls_command_lists_an_adapter_session(folder: str | None, sandbox: Sandbox) -> None:
    """Also if the variable that named the folder is no longer set."""
    run_example(sandbox, folder=folder)
    environment = {"HOME": str(sandbox.home), "PATH": os.environ["PATH"]}
    command = [sys.executable, "-m", "agent_logger", "ls", "--json"]
    listed = subprocess.run(command, env=environment, capture_output=True, check=True).stdout
    (found,) = json.loads(listed)
    assert (found["title"], found["output_tokens"], found["witnesses"]) == (
        "What is in seed.txt?",
        23,
        ["transcript"],
    )


def test_a_session_end_hook_gets_the_session_and_transcript(sandbox: Sandbox) -> None:
    script = 'cat > hook.json; echo "$OPENAI_PROJECT_DIR|$CLAUDE_PROJECT_DIR" > hook.env'
    output = run_example(sandbox, "--hook", script)
    told = json.loads((sandbox.project / "hook.json").read_text())
    assert told["hook_event_name"] == "SessionEnd"
    assert (told["reason"], told["cwd"], told["permission_mode"]) == ("exit", str(sandbox.project), "default")
    assert told["session_id"] == json.loads(output)[-1]["session_id"]
    assert Path(told["transcript_path"]).is_file()
    assert (sandbox.project / "hook.env").read_text() == f"{sandbox.project}|{sandbox.project}\n"


# ---------------------------------------------------------------- the suite can fail

Break = Callable[[list[dict[str, Any]]], object]

BROKEN: list[tuple[str, Break]] = [
    ("no uuid", lambda it: it[1].pop("uuid")),
    ("the same uuid", lambda it: it[2].update(uuid=it[1]["uuid"])),
    ("a parent that is not there", lambda it: it[2].update(parentUuid="nobody")),
    ("no timestamp", lambda it: it[0].pop("timestamp")),
    ("a local timestamp", lambda it: it[0].update(timestamp="2026-11-15 10:00")),
    ("another session", lambda it: it[0].update(sessionId="other")),
    ("no usage", lambda it: it[1]["message"].pop("usage")),
    ("no model", lambda it: it[1]["message"].pop("model")),
    ("another usage", lambda it: [line["message"]["usage"].update(output_tokens=12) for line in it[1:4]]),
    ("ids that differ", lambda it: it[2]["message"].update(id="msg_other")),
    ("two blocks in a line", lambda it: it[1]["message"]["content"].append({"type": "text", "text": "x"})),
    ("a text as message", lambda it: it[0].update(message="What?")),
    ("a result that is missing", lambda it: it.pop(4)),
    ("a call that is missing", lambda it: it.pop(2)),
    ("another last text", lambda it: it[-1]["message"]["content"][0].update(text="Bye")),
    ("no lines", lambda it: it.clear()),
]


@pytest.mark.parametrize("broken", [it for _, it in BROKEN], ids=[name for name, _ in BROKEN])
def test_the_conformance_suite_detects_a_wrong_transcript(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, broken: Break
) -> None:
    output, path = written(tmp_path, monkeypatch)
    lines = [json.loads(line) for line in path.read_text().splitlines()]
    broken(lines)
    path.write_text("".join(json.dumps(line, separators=(",", ":")) + "\n" for line in lines))
    with pytest.raises(AssertionError):
        run_adapter_conformance(output, config_dir=tmp_path / "config", cwd=tmp_path, usage=USAGE)


RESULTS = ["result", "session_id", "duration_ms", "num_turns", "total_cost_usd", "type"]


@pytest.mark.parametrize("field", RESULTS)
def test_the_conformance_suite_detects_a_missing_result_field(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, field: str
) -> None:
    output, _ = written(tmp_path, monkeypatch)
    printed = json.loads(output)
    run_adapter_conformance(output, config_dir=tmp_path / "config", cwd=tmp_path, usage=USAGE)
    del printed[-1][field]
    for wrong in (json.dumps(printed), json.dumps(printed[-1]), "[]", "no JSON"):
        with pytest.raises(AssertionError):
            run_adapter_conformance(wrong, config_dir=tmp_path / "config", cwd=tmp_path, usage=USAGE)


@pytest.mark.parametrize("damage", [b'{"type":"user","cut', b'{"type": "user"}\n', b"\0\n"])
def test_the_conformance_suite_detects_damaged_lines(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, damage: bytes
) -> None:
    output, path = written(tmp_path, monkeypatch)
    path.write_bytes(path.read_bytes() + damage)
    with pytest.raises(AssertionError):
        run_adapter_conformance(output, config_dir=tmp_path / "config", cwd=tmp_path, usage=USAGE)


def written(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> tuple[str, Path]:
    """A session of the same turns, without an endpoint."""
    monkeypatch.setenv("OPENAI_CONFIG_DIR", str(tmp_path / "config"))
    writer = TranscriptWriter("openai", cwd=tmp_path)
    writer.user("What is in seed.txt?")
    for number, turn in enumerate(TURNS):
        blocks = turn.get("content") or [{"type": "text", "text": turn["text"]}]
        blocks = [{**block, "id": f"t{number}{at}"} if "name" in block else block for at, block in enumerate(blocks)]
        usage = turn["usage"]
        answer = ModelAnswer(
            blocks=blocks,
            model="gpt-fake-1",
            message_id=f"msg_{number:024}",
            usage=Usage(
                input_tokens=usage["input_tokens"],
                output_tokens=usage["output_tokens"],
                cache_read_tokens=usage["cache_read_input_tokens"],
            ),
            stop_reason="end_turn",
        )
        writer.assistant(answer)
        for use in answer.tool_uses:
            writer.tool_result(use["id"], "some text")
    output = json.dumps(writer.result())
    writer.close()
    return output, writer.path


# ---------------------------------------------------------------- the writer


def test_each_line_is_written_immediately_and_a_session_can_be_resumed(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("MY_AI_CONFIG_DIR", str(tmp_path / "mine"))
    writer = TranscriptWriter("my-ai", cwd=tmp_path)
    writer.user("one")
    assert writer.path.is_relative_to(tmp_path / "mine" / "projects")
    assert len(writer.path.read_bytes().splitlines()) == 1
    with pytest.raises(StoreError):
        TranscriptWriter("my-ai", cwd=tmp_path, session_id=writer.session_id).user("at once")
    writer.close()
    writer.path.write_bytes(writer.path.read_bytes() + b'{"type":"user","torn')
    again = TranscriptWriter("my-ai", cwd=tmp_path, session_id=writer.session_id)
    again.user("two")
    again.summary("Two prompts")
    again.close()
    session = read_session(writer.path)
    assert [it.user_input for it in session.exchanges] == ["one", "two"]
    assert session.title == "Two prompts"
    first, _, second, _ = writer.path.read_bytes().splitlines()
    assert json.loads(second)["parentUuid"] == json.loads(first)["uuid"]
    assert writer.path.stat().st_mode & 0o777 == 0o600


def test_a_failing_disk_raises_no_exception_and_losses_are_counted(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("OPENAI_CONFIG_DIR", str(tmp_path / "config"))
    (tmp_path / "config").write_text("a file where the folder should be")
    writer = TranscriptWriter("openai", cwd=tmp_path)
    writer.user("one")
    writer.user("two")
    assert writer.lost == 2
    assert writer.result()[-1]["session_id"] == writer.session_id


@pytest.mark.parametrize("session_id", ["../x", "not a uuid", "1234"])
def test_a_session_id_must_be_a_uuid(session_id: str) -> None:
    with pytest.raises(ValueError):
        TranscriptWriter("openai", session_id=session_id)


def test_the_result_cost_is_the_list_price_or_unknown(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("OPENAI_CONFIG_DIR", str(tmp_path))
    usage = Usage(input_tokens=1_000_000, output_tokens=0)
    for model, known in (("gpt-5-mini", True), ("gpt-fake-1", False)):
        writer = TranscriptWriter("openai", cwd=tmp_path)
        writer.assistant(ModelAnswer(blocks=[], model=model, message_id="m", usage=usage, stop_reason="end_turn"))
        assert (writer.result()[-1]["total_cost_usd"] is not None) == known
        assert writer.result()[-1]["usage"] == usage_of(usage)


def test_answers_of_every_api_are_converted() -> None:
    chat = b'{"id":"c1","model":"m","choices":[{"message":{"role":"assistant","content":"Hi"},'
    chat += b'"finish_reason":"length"}],'
    chat += b'"usage":{"prompt_tokens":5,"completion_tokens":2,"prompt_tokens_details":{"cached_tokens":4}}}'
    answer = answer_of("/v1/chat/completions", chat)
    assert (answer.blocks, answer.stop_reason) == ([{"type": "text", "text": "Hi"}], "max_tokens")
    assert answer.usage == Usage(input_tokens=1, output_tokens=2, cache_read_tokens=4)
    gemini = b'{"candidates":[{"content":{"role":"model","parts":[{"functionCall":{"name":"f","args":{"x":1}}}]},'
    gemini += b'"finishReason":"STOP"}],"modelVersion":"g"}'
    (use,) = answer_of("/v1beta/models/g:generateContent", gemini).tool_uses
    assert (use["name"], use["input"]) == ("f", {"x": 1})
    assert use["id"]


@pytest.mark.parametrize(
    "body", [b"", b"<html>", b'{"error":{"message":"no such model","type":"invalid_request_error"}}']
)
def test_an_invalid_answer_raises_a_source_error(body: bytes) -> None:
    with pytest.raises(SourceError):
        answer_of("/v1/chat/completions", body)


def test_the_result_has_every_message_as_it_is_in_the_file(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    output, path = written(tmp_path, monkeypatch)
    start, *messages, end = json.loads(output)
    lines = [json.loads(line) for line in path.read_bytes().splitlines()]
    spoken = [line for line in lines if line["type"] == "assistant" or isinstance(line["message"]["content"], list)]
    assert (start["type"], end["type"]) == ("system", "result")
    assert [(it["type"], it["uuid"], it["message"]) for it in messages] == [
        (line["type"], line["uuid"], line["message"]) for line in spoken
    ]
    assert len(messages) > 2
