"""What command-line agents print, in every form, cut anywhere, with anything between."""

import json
from pathlib import Path
from typing import Any

import msgspec
import pytest
from hypothesis import given
from hypothesis import strategies as st

from agent_logger.agents import command_lines
from agent_logger.messages.outcome import Failure, RunOutcome
from agent_logger.messages.sdk import SdkMessage
from agent_logger.model.records import Exit
from agent_logger.recording.exchanges import Began, Exchanges
from agent_logger.recording.run.events import Event, Events
from agent_logger.recording.run.output import LINE_BYTES, MOST_WARNINGS, ErrorOutput, RunOutput

DATA = Path(__file__).parents[2] / "data"
RESULT = {"type": "result", "subtype": "success", "is_error": False, "result": "Done.", "session_id": "s1"}
TEXT = {"type": "assistant", "session_id": "s1", "message": {"content": [{"type": "text", "text": "Hi."}]}}


def dumped(*messages: dict[str, Any]) -> bytes:
    return b"".join(json.dumps(it).encode() + b"\n" for it in messages)


FORMS = [
    pytest.param(dumped(TEXT, RESULT), 0, id="lines"),
    pytest.param(json.dumps([TEXT, RESULT]).encode(), 0, id="array"),
    pytest.param(dumped(TEXT, RESULT).rstrip(b"\n"), 0, id="no newline at the end"),
    pytest.param(dumped(TEXT).rstrip() + dumped(RESULT), 0, id="two glued together"),
    pytest.param(b"\xef\xbb\xbf" + dumped(TEXT, RESULT).replace(b"\n", b"\r\n"), 0, id="BOM and CRLF"),
    pytest.param(b"hello\n" + dumped(TEXT) + b"[warn] low\n\n" + dumped(RESULT), 2, id="text between"),
    pytest.param(dumped(TEXT, RESULT) + b'{"type":"assi', 1, id="torn"),
]


def read(data: bytes, size: int = 1 << 20, agent: str | None = None) -> tuple[list[SdkMessage], list[str]]:
    output = RunOutput(agent)
    found = [it for at in range(0, len(data), size) for it in output.feed(data[at : at + size])]
    return [*found, *output.end()], output.warnings


@pytest.mark.parametrize(("data", "warnings"), FORMS)
@pytest.mark.parametrize("size", [1, 7, 1 << 20])
def test_every_output_form_gives_the_same_messages(data: bytes, warnings: int, size: int) -> None:
    found, warned = read(data, size)
    understood = [it for it in found if not it.is_text]
    assert [it.type for it in understood] == ["assistant", "result"]
    assert understood[-1].result and understood[-1].result.result == "Done."
    assert len(warned) == warnings


@given(st.lists(st.one_of(st.binary(max_size=60), st.sampled_from([b"\n", b"{", b"[", b'{"type":"x"}', b"[1]"]))))
def test_any_output_is_read_without_loss_or_error(pieces: list[bytes]) -> None:
    output, kept = RunOutput(), []
    for piece in pieces:
        kept += output.feed(piece)
    kept += output.end()
    text = b"".join(pieces)
    for line in text.split(b"\n"):
        if line.strip() and not line.strip().startswith((b"{", b"[")):
            assert any(line in it.raw for it in kept), line


def test_an_endless_line_is_read_in_pieces() -> None:
    output = RunOutput()
    chunk = b"x" * (1 << 20)
    kept = [it for _ in range(20) for it in output.feed(chunk)]
    assert max(len(it.raw) for it in kept) <= LINE_BYTES + len(chunk)
    assert sum(len(it.raw) for it in [*kept, *output.end()]) == 20 << 20


def test_warnings_are_bounded() -> None:
    _, warnings = read(b"what?\n" * 1000)
    assert (len(warnings), warnings[-1]) == (MOST_WARNINGS + 1, f"({1000 - MOST_WARNINGS} more)")


def test_only_the_end_of_standard_error_is_held() -> None:
    errors = ErrorOutput()
    kept = [it for _ in range(100) for it in errors.feed(b"y" * 500 + b"\n")] + errors.feed(b"why")
    kept += errors.end()
    assert errors.last.endswith("why") and len(errors.last) <= ErrorOutput.KEPT_BYTES
    assert sum(len(it.raw) for it in kept) == 100 * 500 + 3


# ---------------------------------------------------------------- events


def events(data: bytes, agent: str | None = None) -> list[Event]:
    found = Events()
    return [event for it in read(data, agent=agent)[0] for event in found.of(it, 1000)]


def shape(found: list[Event]) -> list[tuple[str, object]]:
    return [(it.type, it.text if it.text is not None else it.tool) for it in found]


def test_tool_lines_become_events_like_tool_blocks() -> None:
    """The form that the specification shows."""
    lines = dumped(
        {"type": "tool_use", "tool": "Read", "input": {"file": "src/index.ts"}},
        {"type": "tool_result", "tool": "Read", "output": "file contents..."},
    )
    use, result = events(lines)
    assert (use.type, use.tool, use.input) == ("tool_use", "Read", {"file": "src/index.ts"})
    assert (result.type, result.tool, result.output) == ("tool_result", "Read", "file contents...")
    assert result.is_error is False


AGENTS_LINES = {
    "claude-code": dumped(TEXT),
    "codex": dumped({"type": "item.completed", "item": {"id": "1", "type": "agent_message", "text": "Hi."}}),
    "gemini-cli": dumped({"type": "message", "role": "assistant", "content": "Hi."}),
    "opencode": dumped({"type": "text", "sessionID": "s1", "part": {"type": "text", "text": "Hi."}}),
}


@pytest.mark.parametrize("agent", AGENTS_LINES)
def test_an_invalid_utf_8_byte_is_replaced_and_the_line_is_read(agent: str) -> None:
    line = AGENTS_LINES[agent].replace(b"Hi", b"H\xff")
    assert shape(events(line, agent)) == [("content", "H\ufffd.")]


def test_events_are_the_same_in_an_array_and_in_lines() -> None:
    lines = (DATA / "claude-cli/2.1.325/tools_stream/stream.stdout").read_bytes()
    array = b"[" + b",".join(lines.split(b"\n")[:-1]) + b"]"
    found = events(lines)
    assert found == events(array)
    assert [it.tool for it in found if it.type == "tool_result"] == ["Write", "Read", "Bash", "Bash"]
    assert not {it.type for it in found} - {"content", "thinking", "tool_use", "tool_result"}


def test_event_timestamps_never_decrease() -> None:
    found, message = Events(), read(dumped(TEXT))[0][0]
    assert [found.of(message, at)[0].timestamp for at in (5, 3, 9)] == [5, 5, 9]


# ---------------------------------------------------------------- other agents

AGENT_RUNS = [
    ("codex", "codex/0.166.0/exec_resume/01", "01a1de0e-1762-7272-9edc-e377de7a1047",
     "Done: note.txt says hello-codex.", (130, 75, 0, 1060), ["command_execution"]),
    ("gemini-cli", "gemini-cli/0.61.0/exec_resume/01", "252c5bc1-3ccd-4a99-8b32-b16c20006afe",
     "The directory is empty.", (360, 62, 0, 1050), ["list_directory"]),
    ("gemini-cli", "gemini-cli/0.61.0/exec_resume/02", "252c5bc1-3ccd-4a99-8b32-b16c20006afe",
     "Second answer.", (270, 28, 0, 1060), []),
    ("opencode", "opencode/1.18.33/run_anthropic/01", "ses_e21f16d6dffeU6tFgfD6T2t3cX",
     "Wrote oc.txt.", (20, 40, 200, 2000), ["write"]),
    ("opencode", "opencode/1.18.33/agents_fork/01", "ses_e2090ac44ffeRxh9TZzNatan0E",
     "One file.", (66, 96, 660, 6600), ["task", "read"]),
    ("pi", "pi/0.74.2/tools/01", "01a1e2ba-ccde-7457-b2d1-48282ed1a8f0",
     "Two files, and missing.txt does not exist.", (3517, 467, 0, 8704), ["bash", "read", "read"]),
]  # fmt: skip


def outcome(data: bytes, agent: str | None = None) -> RunOutcome:
    exchanges, found = Exchanges(lambda: "id", began=Began("run")), RunOutcome()
    for message in read(data, agent=agent)[0]:
        list(exchanges.message(message, "2026-11-15T00:00:00.000Z"))
        found.add(message, exchanges.last_stats)
    return found


@pytest.mark.parametrize(
    ("agent", "run", "session", "text", "tokens", "tools"), AGENT_RUNS, ids=[it[1] for it in AGENT_RUNS]
)
def test_the_output_of_other_agents_is_read(
    agent: str, run: str, session: str, text: str, tokens: tuple[int, ...], tools: list[str]
) -> None:
    data = (DATA / f"{run}.stdout").read_bytes()
    found = outcome(data, agent)
    assert (found.session_id, found.data, found.failure(None, "")) == (session, text, None)
    billed = found.metadata().tokens
    assert billed and (billed.input, billed.output, billed.cache_creation, billed.cache_read) == tokens
    assert [it.tool for it in events(data, agent) if it.type == "tool_use"] == tools


def test_the_output_of_copilot_is_read_and_has_no_tokens() -> None:
    data = (DATA / "copilot-cli/1.0.102/agents/01.stdout").read_bytes()
    found = outcome(data, "copilot-cli")
    [manifest] = DATA.glob("copilot-cli/1.0.102/agents/home/.copilot/session-state/*/events.jsonl")
    assert (found.session_id, found.data) == (manifest.parent.name, "Two files; hello.py greets.")
    assert (found.failure(None, ""), found.metadata().tokens) == (None, None)
    tools = [(it.type, it.tool or "") for it in events(data, "copilot-cli") if it.type in ("tool_use", "tool_result")]
    assert sorted(tool for kind, tool in tools if kind == "tool_use") == ["bash", "bash", "task", "task", "view"]
    assert len(tools) == 10
    failed = outcome((DATA / "copilot-cli/1.0.102/failures/02.stdout").read_bytes(), "copilot-cli")
    assert failed.data is None and failed.failure(None, "")


def test_a_multi_line_json_result_is_logged_as_one_line() -> None:
    """For a log is read line by line."""
    data = (DATA / "gemini-cli/0.61.0/exec_resume/02.stdout").read_bytes()
    *texts, result = read(data, agent="gemini-cli")[0]
    assert all(it.is_text for it in texts) and data.strip() == b"\n".join(it.raw for it in texts)
    assert result.result and b"\n" not in result.raw and json.loads(result.raw) == json.loads(data)


@pytest.mark.parametrize(
    ("stats", "tokens"),
    [
        ({"total_tokens": 96, "input_tokens": 90, "output_tokens": 6, "duration_ms": 5}, (90, 6, 0)),
        (
            {"models": {"g": {"tokens": {"prompt": 90, "candidates": 6, "cached": 30, "thoughts": 2}}}},
            (60, 8, 30),
        ),
    ],
)
def test_older_gemini_cli_token_counts_are_read(stats: Any, tokens: tuple[int, int, int]) -> None:
    told = {"type": "result", "status": "success", "stats": stats}
    billed = outcome(dumped(told), "gemini-cli").metadata().tokens
    assert billed and (billed.input, billed.output, billed.cache_read) == tokens


def test_qwen_code_output_is_read_with_its_own_token_counting() -> None:
    message = {"id": "made-up", "content": [{"type": "text", "text": "Hi."}], "usage": {"input_tokens": 9}}
    usage = {"input_tokens": 90, "output_tokens": 6, "cache_read_input_tokens": 30}
    data = dumped({**TEXT, "message": message}, {**RESULT, "usage": usage})
    billed = outcome(data, "qwen-code").metadata().tokens
    assert billed and (billed.input, billed.output, billed.cache_read) == (60, 6, 30)
    [said, _] = read(data, agent="qwen-code")[0]
    assert said.inner and (said.inner.id, said.inner.usage) == (None, msgspec.UNSET)
    assert command_lines.prompt_of(["qwen", "-y", "-p", "Go"]) == "Go"


def test_opencode_errors_are_reported() -> None:
    found = outcome((DATA / "opencode/1.18.33/agents_fork/04.stdout").read_bytes(), "opencode")
    assert (found.failure(None, ""), found.error) == (Failure.API_ERROR, "no such thing")


def test_codex_usage_is_the_difference_of_its_cumulative_thread_counters() -> None:
    runs = [(DATA / f"codex/0.166.0/exec_resume/0{it}.stdout").read_bytes() for it in (1, 2, 3)]
    found = outcome(b"".join(runs), "codex")
    [first, second, third] = [it.model_usage for it in found.results]
    assert b'"inputTokens":90' in bytes(second) and b'"outputTokens":9' in bytes(second)  # type: ignore[arg-type]
    billed = found.metadata().tokens
    assert billed and (billed.input + billed.cache_read, billed.output) == (2735, 91)
    assert first and third


# ---------------------------------------------------------------- failures

ERRORS = [
    ({"is_error": True, "terminal_reason": "max_turns"}, Failure.MAX_TURNS),
    ({"is_error": True, "subtype": "error_max_turns"}, Failure.MAX_TURNS),
    ({"is_error": True, "terminal_reason": "budget_exhausted"}, Failure.BUDGET),
    ({"is_error": True, "api_error_status": 529}, Failure.API_ERROR),
    ({"is_error": True, "terminal_reason": "api_error"}, Failure.API_ERROR),
    ({"is_error": True, "terminal_reason": "aborted_tools"}, Failure.INTERRUPTED),
    ({"is_error": True, "errors": ["No conversation found with session ID: x"]}, Failure.SESSION_NOT_FOUND),
    ({"is_error": True, "errors": ["boom"]}, Failure.OTHER),
    ({"is_error": False, "subtype": "error_max_turns"}, Failure.MAX_TURNS),
    ({"is_error": False, "subtype": "error_during_execution", "result": "x"}, Failure.OTHER),
    ({"is_error": False, "subtype": "success"}, None),
    ({"is_error": None, "errors": ["boom"]}, Failure.OTHER),
]


@pytest.mark.parametrize(("fields", "failure"), ERRORS, ids=[str(it[0]) for it in ERRORS])
def test_a_result_with_an_error_in_any_field_is_a_failure(fields: dict[str, Any], failure: Failure | None) -> None:
    found = outcome(dumped({**RESULT, **fields}))
    assert found.failure(Exit(status=0, signal=None), "") is failure
    assert (found.data is None) == (failure is not None)
    assert found.metadata().is_max_turns == (failure is Failure.MAX_TURNS)


@pytest.mark.parametrize(
    ("exited", "said", "failure"),
    [
        (Exit(status=1, signal=None), "", Failure.NO_RESULT),
        (Exit(status=None, signal=9), "", Failure.NO_RESULT),
        (Exit(status=143, signal=None), "", Failure.INTERRUPTED),
        (Exit(status=None, signal=2), "", Failure.INTERRUPTED),
        (Exit(status=1, signal=None), "No conversation found with session ID: x", Failure.SESSION_NOT_FOUND),
    ],
)
def test_a_run_without_a_result_is_a_failure(exited: Exit, said: str, failure: Failure) -> None:
    assert RunOutcome().failure(exited, said) is failure


OLD = {"type": "result", "subtype": "success", "cost_usd": 0.05, "duration_ms": 5000, "duration_api_ms": 4500}


@pytest.mark.parametrize("names", [{}, {"total_cost": 0.05}, {"total_cost_usd": 0.05}])
def test_costs_are_read_under_every_field_name(names: dict[str, float]) -> None:
    """The first is a line of the specification."""
    told = outcome(dumped({**OLD, "num_turns": 3, "result": "final", "session_id": "abc123", **names})).metadata()
    assert (told.cost, told.total_cost, told.turns) == (0.05, 0.05, 3)
    assert (told.duration_ms, told.api_duration_ms) == (5000, 4500)
    assert (told.cost_from, told.total_cost_from) == ("own", "own")


def test_missing_metadata_fields_are_none() -> None:
    told = outcome(dumped(RESULT)).metadata()
    assert (told.cost, told.total_cost, told.turns, told.tokens, told.api_duration_ms) == (None,) * 5


# ---------------------------------------------------------------- command lines

COMMANDS = [
    (["claude"], False, None, None, False),
    (["/opt/bin/claude", "-p", "Fix it", "--model", "x"], True, "Fix it", None, False),
    (["claude", "-p", "--resume", "abc", "go on"], True, "go on", "abc", True),
    (["claude", "-p", "--verbose", "Fix it"], True, "Fix it", None, False),
    (["claude", "-p", "--allowedTools", "Bash", "Edit"], True, None, None, False),
    (["claude", "-p", "--model", "x"], True, None, None, False),
    (["claude", "--print", "--resume=abc"], True, None, "abc", True),
    (["claude", "-p", "Fix it", "-c"], True, "Fix it", None, True),
    (["codex", "exec", "--json", "Fix it"], True, "Fix it", None, False),
    (["codex", "exec", "--json", "-m", "x"], True, None, None, False),
    (["codex", "exec", "Fix it"], True, "Fix it", None, False),
    (["codex", "exec", "resume", "abc", "Fix it"], True, "Fix it", "abc", True),
    (["gemini", "-p", "Fix it", "--output-format", "json"], True, "Fix it", None, False),
    (["opencode", "run", "--format", "json", "Fix it"], True, "Fix it", None, False),
    (["opencode", "run", "-s", "ses_1", "Fix it"], True, "Fix it", "ses_1", True),
    (["copilot", "-p", "Fix it", "--allow-all-tools", "--resume=abc"], True, "Fix it", "abc", True),
    (["copilot", "-i", "Fix it"], False, None, None, False),
    (["pi", "--mode", "json", "-p", "Fix it"], True, "Fix it", None, False),
    (["make", "-p"], False, None, None, False),
]


@pytest.mark.parametrize(("words", "headless", "prompt", "resumed", "goes_on"), COMMANDS, ids=lambda it: str(it))
def test_a_command_line_gives_prompt_mode_and_resumed_session(
    words: list[str], headless: bool, prompt: str | None, resumed: str | None, goes_on: bool
) -> None:
    assert command_lines.is_headless(words) is headless
    assert command_lines.prompt_of(words) == prompt
    assert (command_lines.resumed_by(words), command_lines.goes_on(words)) == (resumed, goes_on)
