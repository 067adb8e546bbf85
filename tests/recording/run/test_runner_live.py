"""The real CLI, run against the scripted API: what came of it, what was recorded, and that it did as it always does."""

import asyncio
import os
import signal
import subprocess
import sys
import threading
import time
from collections.abc import Iterator
from contextlib import suppress
from pathlib import Path
from typing import Any

import pytest

from agent_logger import Failure, RunResult, SessionLogger, read_session, run
from agent_logger.config import Origin
from agent_logger.logs.log_records import read_exchanges, read_log
from agent_logger.model.records import ExchangeRecord, SessionEnd, SessionStart
from agent_logger.model.session import Session
from tests.clients import ANTHROPIC_KEY, NOWHERE, QUIET_CLAUDE, Sandbox, find_claude
from tests.fakeapi import Call, FakeAPI
from tests.proxy.process import Process
from tests.real_clients import alike
from tests.real_clients.running import Upstream
from tests.recording.test_sdk_logger_live import ANSWERS, COSTS, STALL, answer, ask, background, options

pytestmark = [pytest.mark.needs("claude")]

TOOLS = ["--allowedTools", "Write,Read,Bash,Task,Agent"]


@pytest.fixture
def claude(sandbox: Sandbox, monkeypatch: pytest.MonkeyPatch) -> Any:
    """`run` with the real CLI in a home of its own, at this URL."""
    (sandbox.project / "seed.txt").write_text("hello seed\n")
    quiet = {**QUIET_CLAUDE, "HOME": str(sandbox.home), "HTTPS_PROXY": NOWHERE, "NO_PROXY": "127.0.0.1"}
    for name, value in {**quiet, "ANTHROPIC_API_KEY": ANTHROPIC_KEY, "CLAUDE_CODE_MAX_RETRIES": "1"}.items():
        monkeypatch.setenv(name, value)

    def start(url: str, prompt: str = "Do as you were told", **more: Any) -> RunResult:
        monkeypatch.setenv("ANTHROPIC_BASE_URL", url)
        folder = sandbox.project.parent / "s"
        more = {"extra_args": TOOLS, "timeout": 90.0, **more}
        return run(prompt, executable=str(find_claude()), cwd=sandbox.project, sessions_dir=folder, **more)

    return start


def exchanges(result: RunResult) -> list[ExchangeRecord]:
    log = Path(result.metadata.log or "")
    return read_exchanges(log.parent, log.stem)


def transcript(sandbox: Sandbox, session: str | None) -> Path:
    [path] = sandbox.home.glob(f".claude/projects/*/{session}.jsonl")
    return path


# ---------------------------------------------------------------- what came of it


def test_reaching_max_turns_is_reported_as_a_failure(claude: Any, sandbox: Sandbox) -> None:
    with FakeAPI("maxturns", {"CWD": str(sandbox.project)}) as api:
        result = claude(api.url, max_turns=1)
    assert (result.failure, result.metadata.is_max_turns) == (Failure.MAX_TURNS, True)
    assert (result.metadata.cost, result.metadata.exit_status) == (pytest.approx(0.00114), 1)
    [exchange] = exchanges(result)
    assert exchange.stats and exchange.stats.terminal_reason == "max_turns"


def test_an_api_error_is_reported_as_a_failure(claude: Any) -> None:
    with FakeAPI("err529") as api:
        result = claude(api.url)
    assert (result.success, result.failure, result.data) == (False, Failure.API_ERROR, None)
    assert "529" in (result.error or "") and result.metadata.session_id


def test_resume_and_continue_keep_the_session_and_fork_starts_another(claude: Any, sandbox: Sandbox) -> None:
    with FakeAPI(ANSWERS) as api:
        first = claude(api.url, "one two")
        again = claude(api.url, "-two", resume=first.metadata.session_id)
        further = claude(api.url, "three", continue_=True)
        fork = claude(api.url, "four five", resume=first.metadata.session_id, fork=True)
    ids = [it.metadata.session_id for it in (first, again, further)]
    assert len(set(ids)) == 1 and fork.metadata.session_id not in ids
    costs = [it.metadata.cost for it in (first, again, further, fork)]
    assert costs == pytest.approx(COSTS)
    assert fork.metadata.total_cost == pytest.approx(sum(COSTS)) and fork.metadata.continues == ids[0]
    assert [it.user_input for it in exchanges(further)] == ["one two", "-two", "three"]
    command = fork.resume_command()
    assert command and command[0][1:] == ["--resume", fork.metadata.session_id]


def test_resuming_a_missing_session_fails_without_an_api_call(claude: Any) -> None:
    with FakeAPI(ANSWERS) as api:
        result = claude(api.url, resume="00000000-0000-4000-8000-000000000000")
    assert result.failure is Failure.SESSION_NOT_FOUND and not api.calls


FORMS = ("system_prompt", "system_prompt_file", "append_system_prompt", "append_system_prompt_file")


@pytest.mark.parametrize("form", FORMS)
def test_every_form_of_a_system_prompt_reaches_the_model(form: str, claude: Any, tmp_path: Path) -> None:
    (tmp_path / "prompt.txt").write_text("Speak like a pirate.")
    value = str(tmp_path / "prompt.txt") if form.endswith("_file") else "Speak like a pirate."
    with FakeAPI(ANSWERS) as api:
        result = claude(api.url, **{form: value})
    assert result.success and b"Speak like a pirate." in api.calls[-1].body
    log = Path(result.metadata.log or "")
    [start] = [it.value for it in read_log(log.parent, log.stem) if isinstance(it.value, SessionStart)]
    assert [it.form for it in start.system_prompt or []] == [form]


def test_the_report_of_a_background_agent_is_a_second_exchange(claude: Any) -> None:
    later = {**answer(1), "text": "It has reported."}
    with FakeAPI(background(answer(1), later, answer(1))) as api:
        result = claude(api.url)
    assert result.success and result.data == "It has reported."
    found = exchanges(result)
    assert [it.user_input for it in found] == ["Do as you were told", None]
    assert found[1].origin and b"task-notification" in bytes(found[1].origin)
    assert (found[0].exit, found[1].exit and found[1].exit.status) == (None, 0)
    costs = [it.stats.cost_usd for it in found if it.stats and it.stats.cost_usd is not None]
    assert result.metadata.cost == pytest.approx(sum(costs)) == pytest.approx(3 * COSTS[0] + COSTS[1])
    told = result.metadata.tokens
    assert told and (told.input, told.output) == (50, 100)


# ---------------------------------------------------------------- ends


@pytest.fixture
def children() -> Iterator[Any]:
    """Waits until this process has a child that waits for the API to go on, and gives its id."""

    def find(api: FakeAPI) -> int:
        give_up = time.monotonic() + 60
        while not any(call.sent for call in api.calls) and time.monotonic() < give_up:
            time.sleep(0.05)
        own = Path(f"/proc/{os.getpid()}/task")
        found = [it for task in own.iterdir() for it in (task / "children").read_text().split()]
        named = [int(it) for it in found if "claude" in os.readlink(f"/proc/{it}/exe")]
        while _is_at_work(named[-1]) and time.monotonic() < give_up:
            pass
        return named[-1]

    yield find


def _is_at_work(pid: int) -> bool:
    """Whether it takes more than a twentieth of a second's time, or would if a busy machine left it any."""
    before = _seconds(pid)
    time.sleep(1)
    ran, waited = (now - then for now, then in zip(_seconds(pid), before, strict=True))
    return ran > 0.05 or ran + waited > 0.5


def _seconds(pid: int) -> tuple[float, float]:
    """How long it ran, and how long its threads have waited for a processor."""
    fields = Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()
    waited_ns = 0
    for task in Path(f"/proc/{pid}/task").iterdir():
        with suppress(OSError):  # it has just ended
            waited_ns += int((task / "schedstat").read_text().split()[1])
    return (int(fields[11]) + int(fields[12])) / os.sysconf("SC_CLK_TCK"), waited_ns / 1e9


@pytest.mark.parametrize(
    ("number", "failure", "complete"),
    [(signal.SIGINT, Failure.INTERRUPTED, True), (signal.SIGKILL, Failure.NO_RESULT, False)],
)
def test_a_run_reports_an_interrupted_or_killed_agent(
    number: int, failure: Failure, complete: bool, claude: Any, children: Any
) -> None:
    for _ in range(3):
        with FakeAPI(STALL) as api:
            killer = threading.Thread(target=lambda api=api: os.kill(children(api), number))
            killer.start()
            result = claude(api.url)
            killer.join()
        if result.failure is failure:  # else the client got the signal before it was ready for it
            break
    assert result.failure is failure
    [exchange] = exchanges(result)
    assert exchange.complete is complete and exchange.user_input == "Do as you were told"
    assert exchange.exit and exchange.exit.signal == (number if number == signal.SIGKILL else None)
    assert result.metadata.session_id and (result.metadata.terminal_reason is not None) is complete


OURS = """
import sys
from agent_logger import run
run("Do as you were told", executable=sys.argv[1], sessions_dir=sys.argv[2], extra_args=["--allowedTools", "Bash"])
"""


def test_the_next_run_recovers_the_exchange_of_a_killed_process(
    claude: Any, sandbox: Sandbox, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """What the agent had printed is there, and the next run of the session goes on from it."""
    with FakeAPI("maxturns", {"CWD": str(sandbox.project)}) as api:
        monkeypatch.setenv("ANTHROPIC_BASE_URL", api.url)
        command = [sys.executable, "-c", OURS, str(find_claude()), str(tmp_path / "s")]
        with subprocess.Popen(command, cwd=sandbox.project, start_new_session=True) as process:
            try:
                give_up = time.monotonic() + 60
                while len(api.calls) < 4 and time.monotonic() < give_up:
                    time.sleep(0.05)
                process.kill()
            finally:
                os.killpg(process.pid, signal.SIGKILL)
    [log] = (tmp_path / "s").glob("*.jsonl")
    [exchange] = read_exchanges(log.parent, log.stem)
    uses = [it for it in exchange.messages if it.type == "tool_use"]
    assert len(uses) >= 2 and exchange.user_input == "Do as you were told" and not exchange.complete
    session = exchange.session_id
    with FakeAPI(ANSWERS) as api:
        result = claude(api.url, "go on", resume=session)
    recovered, further = exchanges(result)
    assert (recovered.end_reason, further.user_input) == ("recovered", "go on")
    assert [it.tool_use_id for it in recovered.messages if it.type == "tool_use"] == [it.tool_use_id for it in uses]


# ---------------------------------------------------------------- as without us


def asked(calls: list[Call]) -> Any:
    return alike.requests(calls, parallel=True)


@pytest.mark.parametrize("scenario", ["tools", "subagent"])
def test_a_run_sends_the_same_api_requests_as_a_direct_call(
    scenario: str, claude: Any, sandbox: Sandbox, monkeypatch: pytest.MonkeyPatch
) -> None:
    variables = {"CWD": str(sandbox.project)}
    with FakeAPI(scenario, variables) as api:
        result = claude(api.url)
        recorded = api.calls
    for path in sandbox.project.iterdir():
        if path.name != "seed.txt":
            path.unlink()
    with FakeAPI(scenario, variables) as api:
        monkeypatch.setenv("ANTHROPIC_BASE_URL", api.url)
        arguments = ["-p", "Do as you were told", "--output-format", "stream-json", "--verbose", *TOOLS]
        command = [str(find_claude()), *arguments]
        direct = subprocess.run(command, cwd=sandbox.project, stdin=subprocess.DEVNULL, capture_output=True, check=True)
        wanted = api.calls
    assert not "\n".join(alike.differences(asked(recorded), asked(wanted)))
    assert alike.said(result.stdout or "") == alike.said(direct.stdout.decode())


# ---------------------------------------------------------------- the witnesses agree


def turns(session: Session) -> list[tuple[str, bool]]:
    """Message ids of what a model answered, and whether on the main thread."""
    return sorted({(it.message_id, it.thread == "main") for it in session.turns if it.message_id})


def tools(session: Session) -> list[tuple[str, str, bool]]:
    return sorted((it.id or "", it.name or "", bool(it.is_error)) for it in session.tool_calls)


@pytest.mark.needs("claude_agent_sdk")
@pytest.mark.parametrize("scenario", ["tools", "subagent"])
def test_sdk_log_transcript_and_wire_log_agree(scenario: str, sandbox: Sandbox, tmp_path: Path) -> None:
    """The SDK's messages, the client's own file, the wire: the same turns, tools and billed usage."""
    from claude_agent_sdk import ClaudeSDKClient

    (sandbox.project / "seed.txt").write_text("hello seed\n")
    logger = SessionLogger(tmp_path / "s")

    async def main(url: str) -> None:
        allowed = ["Write", "Read", "Bash", "Task", "Agent"]
        given = options(sandbox, url, allowed_tools=allowed, include_partial_messages=True)
        async with logger, ClaudeSDKClient(given) as client:
            await asyncio.wait_for(ask(client, logger, "Do as you were told"), 90)

    with FakeAPI(scenario, {"CWD": str(sandbox.project)}) as api:
        (tmp_path / "proxy" / "home").mkdir(parents=True)
        proxy = Process(tmp_path / "proxy", Upstream(Origin("http", "127.0.0.1", api.port)))  # type: ignore[arg-type]
        try:
            asyncio.run(main(f"http://127.0.0.1:{proxy.port}/anthropic/127.0.0.1:{api.port}"))
            assert proxy.stop() == 0
        finally:
            proxy.close()
    assert logger.path and logger.session_id
    [wire] = (it for it in (proxy.log_dir / "anthropic").glob("*.jsonl") if "unattributed" not in it.name)
    sdk, file, seen = (read_session(it) for it in (logger.path, transcript(sandbox, logger.session_id), wire))
    agents = scenario == "subagent"  # whose texts the SDK does not hear
    assert turns(file) == turns(seen)
    assert set(turns(sdk)) <= set(turns(file)) and (agents or turns(sdk) == turns(file))
    assert tools(sdk) == tools(file) == tools(seen) and len(tools(sdk)) == 4
    assert file.usage == seen.usage
    [end] = [it.value for it in read_log(logger.path.parent, logger.path.stem) if isinstance(it.value, SessionEnd)]
    billed, usage = end.billed_tokens, seen.usage
    assert billed and (billed.input, billed.output, billed.cache_creation, billed.cache_read) == (
        usage.input_tokens,
        usage.output_tokens,
        usage.cache_write_tokens,
        usage.cache_read_tokens,
    )


def test_a_run_log_agrees_with_the_client_transcript(claude: Any, sandbox: Sandbox) -> None:
    with FakeAPI("tools", {"CWD": str(sandbox.project)}) as api:
        result = claude(api.url)
    ours = read_session(Path(result.metadata.log or ""))
    theirs = read_session(transcript(sandbox, result.metadata.session_id))
    assert ours.agent == theirs.agent == "claude-code"
    assert turns(ours) == turns(theirs) and tools(ours) == tools(theirs)
    told, usage = result.metadata.tokens, theirs.usage
    assert told and (told.input, told.output) == (usage.input_tokens, usage.output_tokens)
    assert (told.cache_creation, told.cache_read) == (usage.cache_write_tokens, usage.cache_read_tokens)
