"""`run`, `run_async` and `stream` with small agents of our own: scripts that print what agents print."""

import asyncio
import gc
import json
import os
import subprocess
import sys
import time
from pathlib import Path
from typing import Any

import msgspec
import pytest

from agent_logger import Event, Failure, RunResult, SessionLogger
from agent_logger.archive.run import archive_all
from agent_logger.logs.log_records import read_exchanges, read_log
from agent_logger.model.records import ExchangeRecord, Resume, SessionStart
from agent_logger.recording.run import child as children
from tests.memory import PEAK_KB
from tests.recording.played import script
from tests.recording.run import run, run_async, stream

SESSION = "7b320356-a178-418e-a692-69ce6e1e657c"
INIT = {
    "type": "system",
    "subtype": "init",
    "session_id": SESSION,
    "model": "m",
    "cwd": "/w",
    "tools": ["Bash"],
}
RESULT = {
    "type": "result",
    "subtype": "success",
    "is_error": False,
    "session_id": SESSION,
    "result": "Done.",
    "num_turns": 1,
    "total_cost_usd": 0.5,
}


def said(number: int, size: int = 10) -> dict[str, Any]:
    block = {"type": "text", "text": f"{number} " + "x" * size}
    return {"type": "assistant", "session_id": SESSION, "message": {"id": f"m{number}", "content": [block]}}


def echo(*messages: dict[str, Any]) -> str:
    return "\n".join(f"cat <<'END'\n{json.dumps(it)}\nEND" for it in messages)


@pytest.fixture
def claude(tmp_path: Path) -> Any:
    """An agent with this shell text; keeps its arguments and its input."""

    def make(text: str = echo(INIT, said(1), RESULT)) -> str:
        keep = f'printf "%s\\n" "$@" > {tmp_path}/arguments\ncat > {tmp_path}/input'
        return script(tmp_path / "claude", f"{keep}\n{text}")

    return make


def exchanges(result: RunResult) -> list[ExchangeRecord]:
    log = Path(result.metadata.log or "")
    return read_exchanges(log.parent, log.stem)


def records(result: RunResult, kind: type[Any]) -> list[Any]:
    log = Path(result.metadata.log or "")
    return [it.value for it in read_log(log.parent, log.stem) if isinstance(it.value, kind)]


def test_a_run_returns_and_records_its_result(claude: Any, tmp_path: Path) -> None:
    result = run("Fix the timer", executable=claude(), cwd=tmp_path, sessions_dir=tmp_path / "s")
    assert (result.success, result.data, result.failure, result.error) == (True, "Done.", None, None)
    assert (result.metadata.session_id, result.metadata.cost, result.metadata.turns) == (SESSION, 0.5, 1)
    assert (result.events, result.warnings, result.stderr) == (None, [], "")
    assert result.resume_command() == ([str(tmp_path / "claude"), "--resume", SESSION], str(tmp_path))
    [start] = records(result, SessionStart)
    assert (start.witness, start.agent, start.argv[:3]) == (
        "run",
        "claude-code",
        [str(tmp_path / "claude"), "-p", "Fix the timer"],
    )
    [exchange] = exchanges(result)
    assert (exchange.user_input, exchange.end_reason) == ("Fix the timer", "result")
    assert exchange.exit and (exchange.exit.status, exchange.exit.signal) == (0, None)
    facts = (Path(os.environ["AGENT_LOGGER_HOME"]) / "facts.jsonl").read_text()
    assert str(tmp_path / "s") in facts


PROMPTS = [
    ("Fix the timer", False),
    ("-v is an option", True),
    ("doctor", True),  # a subcommand
    ("long " * 20_000, True),
    ("with\0NUL in it", True),
]


@pytest.mark.parametrize(("prompt", "by_input"), PROMPTS, ids=[it[0][:20] for it in PROMPTS])
def test_a_prompt_that_could_be_misread_is_passed_on_standard_input(
    prompt: str, by_input: bool, claude: Any, tmp_path: Path
) -> None:
    result = run(prompt, executable=claude(), sessions_dir=tmp_path / "s")
    arguments = (tmp_path / "arguments").read_text().splitlines()
    assert (prompt in arguments) is not by_input
    assert (tmp_path / "input").read_text() == (prompt if by_input else "")
    assert [it.user_input for it in exchanges(result)] == [prompt]


WRONG = [
    {"resume": "-x"},
    {"resume": "../../etc/passwd"},
    {"resume": "a b"},
    {"resume": ""},
    {"session_id": "-x"},
    {"session_id": "x" * 65},
    {"fork": True},
    {"resume": "abc", "continue_": True},
    {"extra_args": "--verbose"},
    {"timeout": 0},
    {"timeout": -1.5},
    {"timeout": float("nan")},
    {"prompt": " \n"},
]


@pytest.mark.parametrize("options", WRONG, ids=str)
def test_invalid_options_raise_before_the_agent_starts(options: dict[str, Any], claude: Any, tmp_path: Path) -> None:
    with pytest.raises(ValueError):
        run(**{"prompt": "go on", "executable": claude(), "sessions_dir": tmp_path / "s", **options})
    assert not (tmp_path / "arguments").exists() and not (tmp_path / "s").exists()


def test_options_reach_the_agent(claude: Any, tmp_path: Path) -> None:
    run(
        "go on",
        executable=claude(),
        sessions_dir=tmp_path / "s",
        resume="abc",
        fork=True,
        max_turns=3,
        model="opus",
        permission_mode="plan",
        append_system_prompt="-be nice",
        extra_args=["--add-dir", "/x"],
    )
    arguments = (tmp_path / "arguments").read_text().splitlines()
    wanted = ["--resume=abc", "--fork-session", "--max-turns=3", "--model=opus", "--permission-mode=plan"]
    wanted += ["--append-system-prompt=-be nice", "--add-dir", "/x"]
    assert [it for it in arguments if it in wanted] == wanted


def test_the_system_prompt_is_recorded_as_form_and_hmac_without_its_text(claude: Any, tmp_path: Path) -> None:
    secret = "You are a pirate."
    file = tmp_path / "prompt.txt"
    file.write_text(secret)
    options: list[dict[str, Any]] = [
        {"system_prompt": secret},
        {"system_prompt_file": file},
        {"append_system_prompt": secret},
        {"append_system_prompt_file": tmp_path / "nowhere"},
    ]
    found = [
        records(run("go on", executable=claude(), sessions_dir=tmp_path / f"s{it}", **options[it]), SessionStart)[0]
        for it in range(4)
    ]
    forms = [it.system_prompt[0].form for it in found]
    assert forms == [next(iter(it)) for it in options]
    hmacs = [it.system_prompt[0].hmac for it in found]
    assert hmacs[0] == hmacs[1] == hmacs[2] and hmacs[0].startswith("v1:") and hmacs[3] is None


def test_a_session_can_be_resumed_by_its_label(claude: Any, tmp_path: Path) -> None:
    run("one two", executable=claude(), sessions_dir=tmp_path / "s", label="my timer")
    result = run("and on", executable=claude(), sessions_dir=tmp_path / "s", resume="my timer")
    assert f"--resume={SESSION}" in (tmp_path / "arguments").read_text()
    assert result.metadata.resumed_from == SESSION
    [resume] = records(result, Resume)
    assert resume.argv and resume.resumed_from == SESSION
    assert [it.user_input for it in exchanges(result)] == ["one two", "and on"]


def test_keys_are_redacted_in_the_log_but_not_in_the_result(claude: Any, tmp_path: Path) -> None:
    key = "sk-ant-api03-" + "AbCdEf0123456789" * 4
    text = echo(INIT, said(1), {**RESULT, "result": key}) + f"\necho {key} >&2; echo {key}"
    result = run(f"my key is {key}", executable=claude(text), sessions_dir=tmp_path / "s", append_system_prompt=key)
    assert result.data == key and key in (result.stdout or "") and key in (result.stderr or "")
    recorded = b"".join(it.read_bytes() for it in (tmp_path / "s").rglob("*") if it.is_file())
    assert key.encode() not in recorded and b"sk-ant-...6789" in recorded


# ---------------------------------------------------------------- failures


def test_a_missing_executable_fails_without_a_log(tmp_path: Path) -> None:
    result = run("go on", executable=str(tmp_path / "nothing"), sessions_dir=tmp_path / "s")
    assert (result.success, result.failure) == (False, Failure.EXECUTABLE_MISSING)
    assert result.error == f"cannot run {tmp_path}/nothing: no such file"
    assert (result.metadata.exit_status, result.metadata.log) == (None, None)
    assert not (tmp_path / "s").exists()  # there was no agent to have a session with


def test_a_relative_executable_is_explained(claude: Any, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """It is looked for below the folder that the agent runs in, not below ours."""
    claude()
    (tmp_path / "sub").mkdir()
    monkeypatch.chdir(tmp_path)
    result = run("go on", executable="./claude", cwd="sub", record=False)
    assert result.failure is Failure.EXECUTABLE_MISSING
    assert result.error == (
        f"cannot run ./claude: no such file below {tmp_path}/sub, where the agent runs; use an absolute path"
    )


def test_an_unknown_option_names_the_one_that_was_meant() -> None:
    with pytest.raises(TypeError, match=r"^there is no option 'includeEvents'; did you mean 'include_events'\?$"):
        run("go on", includeEvents=True)  # type: ignore[call-arg]


def test_the_sessions_folder_of_the_settings_is_used(
    claude: Any, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("AGENT_LOGGER_SESSIONS_DIR", str(tmp_path / "set"))
    assert Path(run("go on", executable=claude()).metadata.log or "").parent == tmp_path / "set"
    with SessionLogger() as logger:
        logger.log_user_input("one")
    assert logger.path and logger.path.parent == tmp_path / "set"
    monkeypatch.setenv("AGENT_LOGGER_PORT", "none")  # which a command reports
    monkeypatch.chdir(tmp_path)
    with SessionLogger() as logger:
        logger.log_user_input("one")
    assert logger.path and logger.path.parent == tmp_path / "sessions"


def test_a_session_that_only_the_archive_has_comes_with_the_way_to_restore_it(claude: Any, home: Path) -> None:
    file = home / ".claude/projects/-w" / f"{SESSION}.jsonl"
    file.parent.mkdir(parents=True)
    line = {"type": "user", "uuid": "u", "sessionId": SESSION, "message": {"role": "user", "content": "Hi"}}
    file.write_text(json.dumps(line) + "\n")
    archive_all(home / ".agent-logger")
    file.unlink()
    missing = {**RESULT, "is_error": True, "errors": [f"No conversation found with session ID: {SESSION}"]}
    agent = claude(echo(missing) + "\nexit 1")
    result = run("go on", resume=SESSION, executable=agent, record=False)
    assert result.failure is Failure.SESSION_NOT_FOUND
    assert f"'agent-logger archive --restore {SESSION}'" in (result.error or "")
    other = run("go on", resume=SESSION.replace("7b", "8c"), executable=agent, record=False)
    assert "restore" not in (other.error or "")


def test_a_missing_working_folder_fails_without_a_log(claude: Any, tmp_path: Path) -> None:
    result = run("go on", executable=claude(), cwd=tmp_path / "nowhere", sessions_dir=tmp_path / "s")
    assert (result.failure, result.error) == (Failure.OTHER, f"the folder {tmp_path}/nowhere does not exist")
    assert not (tmp_path / "s").exists()


def test_a_failed_run_has_metadata(claude: Any, tmp_path: Path) -> None:
    failed = {**RESULT, "is_error": True, "terminal_reason": "max_turns", "errors": ["Reached maximum"]}
    claude_path = claude(echo(INIT, failed) + "\nexit 1")
    result = run("go on", executable=claude_path, sessions_dir=tmp_path / "s")
    assert (result.failure, result.error, result.data) == (Failure.MAX_TURNS, "Reached maximum", None)
    assert (result.metadata.cost, result.metadata.is_max_turns, result.metadata.exit_status) == (0.5, True, 1)
    assert result.resume_command() == ([claude_path, "--resume", SESSION], str(Path.cwd()))


def test_an_agent_that_exceeds_the_timeout_is_killed(claude: Any, tmp_path: Path, monkeypatch: Any) -> None:
    monkeypatch.setattr(children, "PATIENCE_SECONDS", 0.3)
    text = f"trap '' INT TERM\n{echo(INIT, said(1))}\nwhile :; do sleep 0.05; done"
    begun = time.monotonic()
    result = run("go on", executable=claude(text), sessions_dir=tmp_path / "s", timeout=2)
    assert (result.failure, result.metadata.signal) == (Failure.TIMED_OUT, 9)
    assert time.monotonic() - begun < 20
    [exchange] = exchanges(result)
    assert exchange.exit and exchange.exit.signal == 9 and not exchange.complete


def test_a_background_child_holding_the_output_does_not_block_the_run(claude: Any, tmp_path: Path) -> None:
    result = run("go on", executable=claude(f"{echo(INIT, RESULT)}\nsleep 30 &"), sessions_dir=tmp_path / "s")
    assert result.success and result.data == "Done."


def test_output_that_is_not_a_message_is_recorded_and_reported_as_a_warning(claude: Any, tmp_path: Path) -> None:
    text = f"echo 'npm warn'\n{echo(INIT)}\necho careful >&2\n{echo(RESULT)}\nprintf '{{\"type\":\"assi'"
    result = run("go on", executable=claude(text), sessions_dir=tmp_path / "s")
    assert result.success and result.warnings == ["npm warn", '{"type":"assi']
    assert result.stderr == "careful\n"
    [exchange] = exchanges(result)
    raw = {it.raw: it.type for it in exchange.messages if it.raw}
    assert raw == {"npm warn": "unknown", "careful": "stderr", '{"type":"assi': "unknown"}


# ---------------------------------------------------------------- several results

NOTED = {
    **RESULT,
    "origin": {"kind": "task-notification"},
    "result": "Later.",
    "total_cost_usd": 0.75,
    "num_turns": 2,
}


def test_with_several_results_the_last_gives_the_data_and_costs_are_summed(claude: Any, tmp_path: Path) -> None:
    result = run("go on", executable=claude(echo(INIT, said(1), RESULT, INIT, said(2), NOTED)), sessions_dir=tmp_path)
    assert (result.data, result.metadata.cost, result.metadata.turns) == ("Later.", 0.75, 3)
    first, second = exchanges(result)
    assert (first.user_input, first.exit, second.user_input) == ("go on", None, None)
    assert second.exit and second.exit.status == 0


# ---------------------------------------------------------------- a disk that fails


@pytest.mark.skipif(os.geteuid() != 0, reason="the root of the file system is mounted")
def test_a_full_disk_does_not_affect_the_run(claude: Any, small_disk: Path) -> None:
    text = "\n".join(echo(said(it, 100_000)) for it in range(100))
    result = run("go on", executable=claude(f"{echo(INIT)}\n{text}\n{echo(RESULT)}"), sessions_dir=small_disk / "s")
    assert result.success and len(result.stdout or "") > 100 * 100_000
    assert result.metadata.lost > 0


def test_an_uncreatable_sessions_folder_does_not_affect_the_run(claude: Any, tmp_path: Path) -> None:
    (tmp_path / "file").write_text("")
    result = run("go on", executable=claude(), sessions_dir=tmp_path / "file" / "s")
    assert result.success and result.data == "Done." and result.metadata.lost > 0


def test_without_recording_the_result_is_the_same_and_nothing_is_written(claude: Any, tmp_path: Path) -> None:
    written = run("go on", executable=claude(), sessions_dir=tmp_path / "s", include_events=True)
    result = run("go on", executable=claude(), sessions_dir=tmp_path / "n", include_events=True, record=False)
    assert not (tmp_path / "n").exists() and result.metadata.log is None
    assert result.data == written.data and result.stdout == written.stdout
    assert msgspec.structs.replace(written.metadata, log=None) == result.metadata


# ---------------------------------------------------------------- for event loops


async def taken(executable: str, folder: Path, **options: Any) -> tuple[list[Event], RunResult]:
    events = stream("go on", executable=executable, sessions_dir=folder, **options)
    with pytest.raises(RuntimeError):
        _ = events.result
    return [event async for event in events], events.result


def test_run_run_async_and_stream_give_the_same_events_and_data(claude: Any, tmp_path: Path) -> None:
    use = {"type": "tool_use", "id": "t1", "name": "Bash", "input": {"command": "ls"}}
    tool = {"type": "assistant", "session_id": SESSION, "message": {"id": "m", "content": [use]}}
    block = {"type": "tool_result", "tool_use_id": "t1", "content": "a.txt"}
    answer = {"type": "user", "session_id": SESSION, "uuid": "u", "message": {"content": [block]}}
    agent = claude(echo(INIT, said(1), tool, answer, RESULT))
    plain = run("go on", executable=agent, sessions_dir=tmp_path / "1", include_events=True)
    later = asyncio.run(run_async("go on", executable=agent, sessions_dir=tmp_path / "2", include_events=True))
    events, streamed = asyncio.run(taken(agent, tmp_path / "3"))
    told = [
        [(it.type, it.text, it.tool, it.output) for it in found or []] for found in (plain.events, later.events, events)
    ]
    assert told[0] == told[1] == told[2] and len(told[0]) == 3
    assert plain.data == later.data == streamed.data == "Done."
    assert (streamed.stdout, streamed.stderr, streamed.events) == (None, None, None)
    assert later.stdout == plain.stdout


def alive(pid: int) -> bool:
    try:
        return Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[0] != "Z"
    except OSError:
        return False


def pid_of(tmp_path: Path) -> int:
    give_up = time.monotonic() + 60
    while not (tmp_path / "pid").exists() or not (tmp_path / "pid").read_text().strip():
        assert time.monotonic() < give_up
        time.sleep(0.02)
    return int((tmp_path / "pid").read_text())


def gone(pid: int) -> bool:
    give_up = time.monotonic() + 60
    while alive(pid) and time.monotonic() < give_up:
        time.sleep(0.05)
    return not alive(pid)


def endless(tmp_path: Path) -> str:
    return f"echo $$ > {tmp_path}/pid\n{echo(INIT, said(1))}\nwhile :; do sleep 0.05; done"


def test_cancelling_run_async_ends_the_agent(claude: Any, tmp_path: Path) -> None:
    async def main() -> None:
        task = asyncio.create_task(
            run_async("go on", executable=claude(endless(tmp_path)), sessions_dir=tmp_path / "s")
        )
        while not (tmp_path / "pid").exists():
            await asyncio.sleep(0.02)
        task.cancel()
        with pytest.raises(asyncio.CancelledError):
            await task

    asyncio.run(main())
    assert gone(pid_of(tmp_path))
    [log] = (tmp_path / "s").glob("*.jsonl")
    assert read_exchanges(log.parent, log.stem)[0].exit


@pytest.mark.parametrize("how", ["closed", "forgotten"])
def test_abandoning_the_stream_ends_the_agent(how: str, claude: Any, tmp_path: Path) -> None:
    async def main() -> None:
        events = stream("go on", executable=claude(endless(tmp_path)), sessions_dir=tmp_path / "s")
        async for _ in events:
            break
        if how == "closed":
            await events.aclose()
            assert events.result.failure is Failure.INTERRUPTED

    asyncio.run(main())
    gc.collect()
    assert gone(pid_of(tmp_path))


def test_a_slow_event_consumer_pauses_the_agent(claude: Any, tmp_path: Path, monkeypatch: Any) -> None:
    from agent_logger.recording.run import runner

    monkeypatch.setattr(runner, "WAITING_EVENTS", 10)
    lines = echo(said(1, 20_000))
    count = tmp_path / "count"
    text = f"{echo(INIT)}\nfor i in $(seq 200); do {lines}\necho $i > {count}\ndone\n{echo(RESULT)}"

    async def main() -> int:
        events = stream("go on", executable=claude(text), sessions_dir=tmp_path / "s")
        await anext(events)
        waiting, before = "", None
        while not waiting or waiting != before:  # until it stands still
            before = waiting
            await asyncio.sleep(0.5)
            waiting = count.read_text() if count.exists() else ""
        assert int(waiting) < 100
        return 1 + len([event async for event in events])

    assert asyncio.run(main()) == 200


# ---------------------------------------------------------------- large output

MEASURED = f"""{PEAK_KB}
import asyncio, sys
from agent_logger import stream
async def main():
    events = stream("go on", executable=sys.argv[1], sessions_dir=sys.argv[2])
    count = 0
    async for event in events:
        count += 1
    print(count, events.result.success, events.result.metadata.lost)
asyncio.run(main())
print(peak_kb())
"""


def measured(claude: Any, tmp_path: Path, megabytes: int) -> int:
    """Peak memory in KB."""
    line = json.dumps(said(1, 100_000))
    (tmp_path / "line").write_text(f"{line}\n" * 10)
    text = f"{echo(INIT)}\nfor i in $(seq {megabytes}); do cat {tmp_path}/line; done\n{echo(RESULT)}"
    command = [sys.executable, "-c", MEASURED, claude(text), str(tmp_path / "s")]
    done = subprocess.run(command, capture_output=True, text=True, check=True, timeout=900)
    told, peak = done.stdout.splitlines()
    assert told == f"{megabytes * 10} True 0"
    return int(peak)


def test_a_stream_uses_bounded_memory(claude: Any, tmp_path: Path) -> None:
    assert measured(claude, tmp_path, 100) < 120_000
    [log] = (tmp_path / "s").glob("*.jsonl")
    [exchange] = read_exchanges(log.parent, log.stem)
    texts = [it for it in exchange.messages if it.source == "assistant"]
    assert len(texts) == 1000 and exchange.complete and exchange.stats
    assert exchange.messages[-1].type == "result_message"


@pytest.mark.long
def test_a_stream_of_a_gigabyte_uses_bounded_memory(claude: Any, tmp_path: Path) -> None:
    assert measured(claude, tmp_path, 1000) < 120_000


def test_runs_leave_no_zombie_processes() -> None:
    """After all of the above."""
    children_of_ours = Path(f"/proc/{os.getpid()}/task/{os.getpid()}/children")
    if children_of_ours.exists():
        states = [Path(f"/proc/{it}/stat").read_text() for it in children_of_ours.read_text().split()]
        assert not [it for it in states if it.rpartition(")")[2].split()[0] == "Z"]
