"""Output that a program already has is read as `run` reads it."""

import json
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from agent_logger import Failure, read_output
from tests.agents.foreign import DATA
from tests.recording.played import player, script
from tests.recording.run import run
from tests.recording.run.test_runner import INIT, RESULT, SESSION, said

MESSAGES = [INIT, said(1), RESULT]
NDJSON = "".join(f"{json.dumps(it)}\n" for it in MESSAGES)
FORMS = {
    "object": json.dumps(RESULT),
    "object, pretty": json.dumps(RESULT, indent=2),
    "array": json.dumps(MESSAGES),
    "array, pretty": json.dumps(MESSAGES, indent=4),
    "lines": NDJSON,
    "lines without an end": NDJSON.rstrip("\n"),
    "lines of Windows": NDJSON.replace("\n", "\r\n"),
    "lines with a mark": "\ufeff" + NDJSON,
    "lines after others": f"npm warn old\n{NDJSON}bye\n",
}


@pytest.mark.parametrize("text", FORMS.values(), ids=FORMS)
@pytest.mark.parametrize("as_bytes", [False, True])
def test_every_form_of_output_is_read(text: str, as_bytes: bool) -> None:
    result = read_output(text.encode() if as_bytes else text)
    assert (result.success, result.data, result.session_id) == (True, "Done.", SESSION)
    assert (result.metadata.cost, result.metadata.turns, result.stdout) == (0.5, 1, text)
    assert result.warnings == (["npm warn old", "bye"] if text.startswith("npm") else [])
    command = result.resume_command()
    assert command and command[0] == ["claude", "--resume", SESSION]


STREAMS = [it for it in sorted(DATA.glob("claude-cli/*/*/*.stdout")) if it.stat().st_size < 1 << 20]


@pytest.mark.parametrize("path", STREAMS, ids=lambda it: it.relative_to(DATA).as_posix())
def test_output_is_read_as_a_run_reads_it(path: Path, tmp_path: Path) -> None:
    own = run("go on", executable=player(tmp_path / "claude", path), record=False, include_events=True)
    later = read_output(path.read_bytes())
    assert (later.data, later.metadata.turns, later.session_id) == (own.data, own.metadata.turns, own.session_id)
    kinds = [[(it.type, it.text, it.tool, it.output) for it in result.events or ()] for result in (own, later)]
    assert kinds[0] == kinds[1]


OTHERS = [
    ("codex/0.166.0/exec_resume/01.stdout", "codex"),
    ("codex/0.50.0/exec_resume/01.stdout", "codex"),
    ("gemini-cli/0.61.0/exec_resume/01.stdout", "gemini"),
    ("gemini-cli/0.61.0/exec_resume/02.stdout", "gemini"),
    ("opencode/1.18.33/run_anthropic/01.stdout", "opencode"),
    ("pi/0.74.2/tools/01.stdout", "pi"),
]


@pytest.mark.parametrize(("name", "executable"), OTHERS)
def test_output_of_other_agents_is_recognised(name: str, executable: str) -> None:
    result = read_output((DATA / name).read_bytes())
    assert result.success and result.data and result.metadata.tokens and result.warnings == []
    command = result.resume_command()
    assert command and command[0][0] == executable and command[0][-1] == result.session_id


def test_qwen_code_is_recognised_by_its_first_message() -> None:
    usage = {"input_tokens": 90, "output_tokens": 6, "cache_read_input_tokens": 30}
    lines = [{**INIT, "qwen_code_version": "0.1"}, {**RESULT, "usage": usage}]
    tokens = read_output("".join(f"{json.dumps(it)}\n" for it in lines)).metadata.tokens
    assert tokens and (tokens.input, tokens.cache_read) == (60, 30)


def test_an_answer_that_quotes_another_agent_is_still_claudes() -> None:
    quoted = {"type": "thread.started", "thread_id": "x"}
    text = {"type": "assistant", "message": {"id": "m", "content": [{"type": "text", "text": json.dumps(quoted)}]}}
    assert read_output("".join(f"{json.dumps(it)}\n" for it in (INIT, text, RESULT))).session_id == SESSION


ENDS: list[tuple[dict[str, Any], Failure, bool]] = [
    ({"is_error": True, "subtype": "error_max_turns"}, Failure.MAX_TURNS, True),
    ({"is_error": True, "terminal_reason": "budget_exhausted"}, Failure.BUDGET, True),
    ({"is_error": True, "api_error_status": 529}, Failure.API_ERROR, True),
    ({"is_error": True, "errors": ["No conversation found with session ID: x"]}, Failure.SESSION_NOT_FOUND, False),
    ({"is_error": True, "errors": ["--resume requires a valid session ID"]}, Failure.SESSION_NOT_FOUND, False),
]


@pytest.mark.parametrize(("fields", "failure", "resumable"), ENDS)
def test_a_failure_can_be_resumed_unless_there_is_no_session(
    fields: dict[str, Any], failure: Failure, resumable: bool, tmp_path: Path
) -> None:
    text = f"cat <<'END'\n{json.dumps({**RESULT, **fields})}\nEND\nexit 1"
    own = run("go on", resume="an-id", executable=script(tmp_path / "claude", text), record=False)
    for result in (own, read_output(own.stdout or "")):
        assert (result.failure, result.data) == (failure, None)
        command = result.resume_command()
        assert (command and command[0][1:]) == (["--resume", SESSION] if resumable else None)


def test_a_run_that_timed_out_can_be_resumed(tmp_path: Path) -> None:
    text = f"cat <<'END'\n{json.dumps(INIT)}\nEND\nexec sleep 30"
    result = run("go on", executable=script(tmp_path / "claude", text), record=False, timeout=1)
    assert result.failure is Failure.TIMED_OUT
    assert result.resume_command() == ([str(tmp_path / "claude"), "--resume", SESSION], str(Path.cwd()))


@given(st.one_of(st.text(), st.binary()))
def test_any_output_is_read(output: str | bytes) -> None:
    result = read_output(output)
    assert result.failure in (Failure.NO_RESULT, Failure.SESSION_NOT_FOUND) and result.data is None
    json.dumps(result.to_dict())


def test_results_metadata_and_events_are_dicts_for_json() -> None:
    call = {"type": "tool_use", "id": "t", "name": "Bash", "input": {"command": "ls"}}
    used = {"type": "assistant", "session_id": SESSION, "message": {"id": "m", "content": [call]}}
    usage = {"input_tokens": 1, "output_tokens": 2}
    failed = {
        **RESULT,
        "is_error": True,
        "subtype": "error_max_turns",
        "usage": usage,
        "permission_denials": [{"a": 1}],
    }
    result = read_output(json.dumps([INIT, used, failed]))
    given = json.loads(json.dumps(result.to_dict()))
    assert set(given) == {
        "success", "data", "error", "failure", "session_id", "stdout", "stderr", "warnings", "metadata", "events",
    }  # fmt: skip
    assert (given["failure"], given["session_id"]) == ("max_turns", SESSION)
    assert given["metadata"] == json.loads(json.dumps(result.metadata.to_dict()))
    assert given["metadata"]["tokens"]["output"] == 2 and given["metadata"]["exit_status"] is None
    assert given["metadata"]["permission_denials"] == [{"a": 1}]
    [event] = result.events or []
    assert given["events"] == [event.to_dict()]
    assert event.to_dict() == {
        "type": "tool_use",
        "timestamp": event.timestamp,
        "tool": "Bash",
        "input": {"command": "ls"},
        "tool_use_id": "t",
    }
