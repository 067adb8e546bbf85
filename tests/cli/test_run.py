"""`agent-logger run` as a process: what goes through it, how it ends, who has the terminal."""

import contextlib
import json
import os
import pty
import random
import select
import shlex
import signal
import subprocess
import sys
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from tests.recording.played import script

from agent_logger.agents.claude_code.naming import project_folders
from agent_logger.logs.log_records import read_exchanges, read_log
from agent_logger.model.records import ExchangeRecord, SessionStart

ROOT = Path(__file__).parents[2]
RUN = [sys.executable, "-m", "agent_logger", "run"]
SESSION = "7b320356-a178-418e-a692-69ce6e1e657c"
RESULT = {"type": "result", "is_error": False, "session_id": SESSION, "result": "Done.", "num_turns": 2}
RESULT |= {"total_cost_usd": 0.25, "duration_ms": 1500, "usage": {"input_tokens": 10, "output_tokens": 5}}


@pytest.fixture
def env(tmp_path: Path) -> dict[str, str]:
    (tmp_path / "bin").mkdir()
    return {
        "PATH": f"{tmp_path / 'bin'}:{os.environ['PATH']}",
        "HOME": str(tmp_path),
        "AGENT_LOGGER_HOME": str(tmp_path / ".agent-logger"),
        "TERM": "dumb",
    }


def run(env: dict[str, str], *arguments: str, given: bytes | None = None) -> subprocess.CompletedProcess[bytes]:
    return subprocess.run(
        [*RUN, *arguments],
        env=env,
        cwd=env["HOME"],
        input=given,
        capture_output=True,
        start_new_session=True,
        timeout=120,
        check=False,
    )


@contextlib.contextmanager
def started(env: dict[str, str], *arguments: str) -> Iterator[subprocess.Popen[bytes]]:
    command = [*RUN, *arguments]
    pipe = subprocess.PIPE
    with subprocess.Popen(
        command, env=env, cwd=env["HOME"], stdout=pipe, stderr=pipe, start_new_session=True
    ) as process:
        try:
            yield process
        finally:
            if process.poll() is None:
                process.kill()


def logs(env: dict[str, str]) -> list[tuple[SessionStart | None, list[ExchangeRecord]]]:
    found = []
    for path in sorted(Path(env["HOME"]).glob(".agent-logger/sessions/*.jsonl")):
        starts = [it.value for it in read_log(path.parent, path.stem) if isinstance(it.value, SessionStart)]
        found.append((starts[0] if starts else None, read_exchanges(path.parent, path.stem)))
    return found


def agent(env: dict[str, str], text: str, name: str = "claude") -> None:
    script(Path(env["HOME"]) / "bin" / name, text)


def printing(*messages: object) -> str:
    return "\n".join(f"printf '%s\\n' {shlex.quote(json.dumps(it))}" for it in messages)


# ---------------------------------------------------------------- byte for byte

BYTES = bytes(range(256)) * 300 + b"no newline at the end"


def test_output_passes_byte_for_byte_and_is_recorded(env: dict[str, str], tmp_path: Path) -> None:
    (tmp_path / "out").write_bytes(BYTES)
    (tmp_path / "err").write_bytes(b"careful \xff\n")
    done = run(env, "--", "sh", "-c", "cat out; cat err >&2; exit 7")
    assert (done.returncode, done.stdout) == (7, BYTES)
    assert done.stderr.startswith(b"careful \xff\n") and b"agent-logger: recorded in" in done.stderr
    [(start, [exchange])] = logs(env)
    assert start and start.argv == ["sh", "-c", "cat out; cat err >&2; exit 7"]
    assert start.witness == "run" and start.cwd == str(tmp_path)
    assert exchange.exit and exchange.exit.status == 7
    assert {it.type for it in exchange.messages} == {"run_started", "unknown", "stderr"}


def test_lines_are_passed_on_at_once_and_survive_a_kill(env: dict[str, str], tmp_path: Path) -> None:
    """And what we had passed on is recorded, though we are killed."""
    first = {
        "type": "assistant",
        "session_id": SESSION,
        "message": {"content": [{"type": "text", "text": "Hi"}]},
    }
    agent(env, f"{printing(first)}\nsleep 100")
    with started(env, "--", "claude", "-p", "Fix the timer") as process:
        assert process.stdout and b"Hi" in process.stdout.readline()
        give_up = time.monotonic() + 30
        while not any(b'"Hi"' in it.read_bytes() for it in (tmp_path / ".agent-logger/sessions").glob("*.live*")):
            assert time.monotonic() < give_up
            time.sleep(0.01)
        process.kill()
    [(_, [exchange])] = logs(env)
    assert exchange.user_input == "Fix the timer" and not exchange.complete
    assert [it.text for it in exchange.messages if it.source == "assistant"] == ["Hi"]


@pytest.mark.parametrize(
    ("words", "cost"), [([], b"$0.25"), (["-c"], b"cost unknown"), (["-r", SESSION], b"cost unknown")]
)
def test_the_cost_of_a_continued_session_of_which_no_log_exists_is_unknown(
    env: dict[str, str], words: list[str], cost: bytes
) -> None:
    """The client counts by model over the whole session."""
    models = {"claude-opus-5-5": {"inputTokens": 1000, "outputTokens": 50, "costUSD": 0.25}}
    agent(env, printing({**RESULT, "modelUsage": models}))
    done = run(env, "--", "claude", "-p", *words, "--output-format", "json", "Fix the timer")
    assert cost in done.stderr


def test_a_run_of_any_command_is_listed_as_a_run_from_its_start(env: dict[str, str]) -> None:
    with started(env, "--", "sh", "-c", "echo first; exec sleep 20") as process:
        assert process.stdout and process.stdout.readline() == b"first\n"
        give_up = time.monotonic() + 30
        while not (rows := listed(env)) and time.monotonic() < give_up:
            time.sleep(0.05)
        process.kill()
    assert [(it["agent"], it["witnesses"]) for it in rows] == [(None, ["run"])]
    assert [(it["agent"], it["witnesses"]) for it in listed(env)] == [(None, ["run"])], "killed, it stays one"


def test_the_summary_line_shows_turns_tokens_cost_and_duration(env: dict[str, str]) -> None:
    agent(env, printing(RESULT))
    done = run(env, "--", "claude", "-p", "Fix the timer", "--output-format", "json")
    assert done.stderr.decode().splitlines() == [
        "agent-logger: session 7b320356 · 2 turns · 10 in, 5 out tokens · $0.2500 · 1.5 s",
        "0 requests recorded · other_base_url: the agent's settings name another address",
    ]
    assert json.loads(done.stdout) == RESULT


def test_a_folder_that_cannot_be_looked_into_changes_no_exit_code(env: dict[str, str]) -> None:
    done = run(env, "--sessions-dir", f"/{'long' * 100}", "--", "sh", "-c", "echo out; exit 7")
    assert (done.returncode, done.stdout) == (7, b"out\n")
    assert b"agent-logger: not recorded" in done.stderr


def test_an_agent_that_refuses_its_arguments_asked_no_model(env: dict[str, str]) -> None:
    error = "Error: --resume requires a valid session ID or session title"
    refused = {"type": "result", "subtype": "error_during_execution", "is_error": True, "num_turns": 0}
    agent(env, f"{printing({**refused, 'session_id': SESSION, 'errors': [error]})}\nexit 1")
    done = run(env, "--resume", "nope", "Fix the timer")
    summary, last = done.stderr.decode().splitlines()
    assert summary.endswith("session not found")
    assert last == "0 requests recorded · none_made: the agent made no model request"


def test_an_agent_that_prints_no_id_is_identified_by_its_session_file(env: dict[str, str], tmp_path: Path) -> None:
    folder = tmp_path / ".claude" / "projects" / project_folders(tmp_path)[0]
    line = {"type": "user", "sessionId": SESSION, "message": {"role": "user", "content": "Fix the timer"}}
    (tmp_path / "line").write_text(json.dumps(line) + "\n")
    agent(env, f"mkdir -p {folder}; cp {tmp_path}/line {folder}/{SESSION}.jsonl; echo Done.")
    done = run(env, "--", "claude", "-p", "Fix the timer")
    assert done.stdout == b"Done.\n" and b"session 7b320356" in done.stderr
    [it] = listed(env)
    assert (it["id"], it["witnesses"]) == (SESSION, ["run", "transcript"])


def test_runs_without_a_session_id_are_separate_sessions(env: dict[str, str]) -> None:
    for word in ("one", "two"):
        run(env, "--", "echo", word)
    rows = listed(env)
    assert len({it["id"] for it in rows}) == 2
    assert all(it["id"] == it["log"] and it["witnesses"] == ["run"] for it in rows)
    assert {it["title"] for it in rows} == {"echo one", "echo two"}


def listed(env: dict[str, str]) -> list[dict[str, Any]]:
    line = [sys.executable, "-m", "agent_logger", "ls", "--json"]
    found: list[dict[str, Any]] = json.loads(subprocess.run(line, env=env, capture_output=True, check=True).stdout)
    return found


def test_a_prompt_is_passed_to_claude_with_its_options(env: dict[str, str], tmp_path: Path) -> None:
    agent(env, f'printf "%s " "$@" > {tmp_path}/arguments\n{printing(RESULT)}\nexit 4')
    done = run(env, "Fix the timer", "--max-turns", "3", "--model", "opus")
    assert done.returncode == 4 and json.loads(done.stdout) == RESULT
    wanted = "-p Fix the timer --output-format stream-json --verbose --max-turns=3 --model=opus "
    assert (tmp_path / "arguments").read_text() == wanted


def test_a_timed_out_agent_is_interrupted_and_reported(env: dict[str, str]) -> None:
    agent(env, f"{printing({'type': 'system', 'subtype': 'init', 'session_id': SESSION})}\nexec sleep 30")
    done = run(env, "--timeout", "0.5", "Fix the timer")
    assert done.returncode == -signal.SIGINT
    assert done.stderr.decode().splitlines() == [
        "agent-logger: session 7b320356 · timed out",
        "0 requests recorded · none_made: the agent made no model request",
    ]


@pytest.mark.needs("jsonschema")
def test_the_json_option_prints_the_metadata_instead_of_the_output(env: dict[str, str]) -> None:
    agent(env, printing({**RESULT, "is_error": True, "terminal_reason": "max_turns"}))
    told = json.loads(run(env, "--json", "Fix the timer").stdout)
    schema = json.loads((ROOT / "src/agent_logger/schemas/run.json").read_text())
    pytest.importorskip("jsonschema").Draft202012Validator(schema).validate(told)
    assert (told["session_id"], told["cost"], told["failure"]) == (SESSION, 0.25, "max_turns")
    assert (told["success"], told["is_max_turns"], told["data"]) == (False, True, None)


def test_the_json_option_prints_the_answer(env: dict[str, str]) -> None:
    agent(env, printing({**RESULT, "result": "Fixed."}))
    assert json.loads(run(env, "--json", "Fix the timer").stdout)["data"] == "Fixed."
    agent(env, printing({**RESULT, "structured_output": {"lines": [1, 2]}}))
    assert json.loads(run(env, "--json", "Fix the timer").stdout)["data"] == {"lines": [1, 2]}


@pytest.mark.parametrize(
    ("arguments", "code"),
    [
        ([], 2),
        (["--"], 2),
        (["a prompt", "--", "claude"], 2),
        (["--resume", "x", "--", "claude"], 2),
        (["--resume=-x", "a prompt"], 2),
        ([""], 2),
        (["--timeout", "0", "a prompt"], 2),
        (["--timeout", "-1", "--", "true"], 2),
    ],
    ids=str,
)
def test_wrong_arguments_are_a_one_line_usage_error(arguments: list[str], code: int, env: dict[str, str]) -> None:
    done = run(env, *arguments)
    assert (done.returncode, done.stdout, done.stderr.count(b"\n")) == (code, b"", 1), done.stderr


NOT_STARTED = [
    (
        ["a prompt"],
        127,
        "cannot find claude: install it (npm install -g @anthropic-ai/claude-code), or put its folder on the PATH",
    ),
    (["--", "no-such"], 127, "cannot find no-such: install it, or put its folder on the PATH"),
    (["--", "./no-such"], 127, "cannot run ./no-such: no such file"),
    (["--", "bin/odd"], 127, "cannot run bin/odd: the interpreter in its first line does not exist"),
    (["--", "/etc/passwd"], 126, "cannot run /etc/passwd: Permission denied"),
]


@pytest.mark.parametrize(("arguments", "code", "said"), NOT_STARTED, ids=str)
def test_a_command_that_cannot_start_is_a_one_line_error_and_leaves_no_session(
    arguments: list[str], code: int, said: str, env: dict[str, str], tmp_path: Path
) -> None:
    env["PATH"] = str(tmp_path / "bin")
    agent(env, "", "odd")
    (tmp_path / "bin/odd").write_text("#!/no/such/shell\n")
    done = run(env, *arguments)
    assert (done.returncode, done.stdout, done.stderr.decode()) == (code, b"", f"agent-logger: {said}\n")
    assert logs(env) == []
    told = json.loads(run(env, "--json", *arguments).stdout)
    assert (told["success"], told["failure"], told["error"]) == (False, "executable_missing", said)


# ---------------------------------------------------------------- input


def test_input_piped_to_an_agent_is_passed_on_and_recorded(env: dict[str, str], tmp_path: Path) -> None:
    agent(env, f"cat > {tmp_path}/input\n{printing(RESULT)}")
    text = b"a long text\n" * 100_000
    run(env, "--", "claude", "-p", "Sum it up", given=text)
    assert (tmp_path / "input").read_bytes() == text
    [(_, [exchange])] = logs(env)
    assert exchange.user_input == "Sum it up\n" + text.decode().strip()


def test_stream_json_messages_piped_to_an_agent_are_recorded_as_user_input(env: dict[str, str], tmp_path: Path) -> None:
    agent(env, f"cat > {tmp_path}/input\n{printing(RESULT)}")
    said = {"type": "user", "message": {"role": "user", "content": "Fix the timer"}}
    arguments = (
        "claude",
        "-p",
        "--input-format",
        "stream-json",
        "--output-format",
        "stream-json",
        "--verbose",
    )
    run(env, "--", *arguments, given=json.dumps(said).encode() + b"\n")
    [(_, [exchange])] = logs(env)
    assert exchange.user_input == "Fix the timer"


def test_the_stdin_of_other_commands_is_not_consumed(env: dict[str, str], tmp_path: Path) -> None:
    """What the first does not take is there for the next."""
    (tmp_path / "input").write_text("one\ntwo\n")
    line = f"{shlex.join(RUN)} -- sh -c 'read x; echo got $x'; cat"
    with (tmp_path / "input").open() as source:
        command = ["sh", "-c", line]
        done = subprocess.run(command, stdin=source, capture_output=True, env=env, cwd=tmp_path, check=True)
    assert done.stdout == b"got one\ntwo\n"


# ---------------------------------------------------------------- ends


@pytest.mark.parametrize("number", [signal.SIGKILL, signal.SIGTERM, signal.SIGSEGV, signal.SIGPIPE])
def test_run_ends_with_the_signal_that_ended_the_agent(number: int, env: dict[str, str]) -> None:
    assert run(env, "--", "sh", "-c", f"kill -{int(number)} $$").returncode == -number
    [(_, [exchange])] = logs(env)
    assert exchange.exit and exchange.exit.signal == number


@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM, signal.SIGHUP, signal.SIGUSR1])
def test_signals_are_forwarded_to_the_agent(number: int, env: dict[str, str]) -> None:
    text = f"trap 'echo caught; exit 9' {int(number)}; echo ready; while :; do sleep 0.05; done"
    with started(env, "--", "sh", "-c", text) as process:
        assert process.stdout and process.stdout.readline() == b"ready\n"
        process.send_signal(number)
        assert process.stdout.read() == b"caught\n"
        assert process.wait(60) == 9


def test_a_closed_stdout_also_ends_the_agent(env: dict[str, str]) -> None:
    with started(env, "--", "sh", "-c", "while echo y; do :; done") as process:
        assert process.stdout and process.stdout.readline() == b"y\n"
        process.stdout.close()
        assert process.wait(60) != 0


def test_an_unwritable_folder_is_reported_and_the_agent_runs(env: dict[str, str], tmp_path: Path) -> None:
    (tmp_path / ".agent-logger").mkdir()
    (tmp_path / ".agent-logger/sessions").write_text("a file")
    done = run(env, "--", "sh", "-c", "echo hi; exit 5")
    assert (done.returncode, done.stdout) == (5, b"hi\n")
    assert "agent-logger: not recorded · 3 records lost" in done.stderr.decode().splitlines()


def killed(env: dict[str, str], count: int) -> None:
    seed = random.randrange(1 << 30)
    command = [sys.executable, str(Path(__file__).with_name("killed_runs.py")), str(count), str(seed)]
    done = subprocess.run(command, env=env, cwd=env["HOME"], capture_output=True, timeout=1200, check=False)
    assert done.stdout.decode().split() == [str(count), "0"], (seed, done.stderr)


def test_runs_killed_at_random_end_like_their_agent(env: dict[str, str]) -> None:
    killed(env, 30)


@pytest.mark.long
def test_500_runs_killed_at_random_end_like_their_agent(env: dict[str, str]) -> None:
    killed(env, 500)


# ---------------------------------------------------------------- the terminal


class Terminal:
    """`agent-logger run` in a terminal of its own."""

    def __init__(self, env: dict[str, str], *arguments: str, cwd: Path | None = None) -> None:
        self.seen = b""
        self.pid, self._fd = pty.fork()
        if self.pid == 0:
            os.chdir(cwd or env["HOME"])
            os.execve(sys.executable, [*RUN, *arguments], env)

    def wait_for(self, text: bytes, seconds: float = 60) -> None:
        assert self.shows(text, seconds), self.seen

    def shows(self, text: bytes, seconds: float, since: int = 0) -> bool:
        give_up = time.monotonic() + seconds
        while text not in self.seen[since:] and time.monotonic() < give_up:
            if not self._look():
                break
        return text in self.seen[since:]

    def _look(self) -> bool:
        """Take in what is shown. `False` if nothing more will be."""
        if select.select([self._fd], [], [], 0.2)[0]:
            try:
                self.seen += os.read(self._fd, 4096)
            except OSError:
                return False
        return True

    def type(self, text: bytes) -> None:
        os.write(self._fd, text)

    def type_until(self, text: bytes, shown: bytes) -> None:
        """Who is not ready yet throws away what is typed; an agent that is busy takes Ctrl-C for what it does."""
        since = len(self.seen)
        for _ in range(10):
            self.type(text)
            if self.shows(shown, 6, since):
                return
        raise AssertionError(self.seen)

    def end(self) -> int:
        with contextlib.suppress(OSError):
            while chunk := os.read(self._fd, 4096):
                self.seen += chunk
        _, status = os.waitpid(self.pid, 0)
        os.close(self._fd)
        return os.waitstatus_to_exitcode(status)


INTERACTIVE = """
[ -t 0 ] && [ -t 1 ] && [ -t 2 ] && echo "has a terminal"
echo "base $ANTHROPIC_BASE_URL"
read answer
echo "heard $answer"
trap 'echo interrupted; exit 6' INT
echo ready
while :; do sleep 0.05; done
"""


def test_an_interactive_agent_keeps_the_terminal(env: dict[str, str], tmp_path: Path) -> None:
    agent(env, INTERACTIVE)
    terminal = Terminal(env, "--", "claude")
    terminal.wait_for(b"has a terminal")
    terminal.wait_for(b"base http://127.0.0.1:")
    terminal.type(b"hello\n")
    terminal.wait_for(b"heard hello")
    terminal.wait_for(b"ready")
    terminal.type(b"\x03")
    assert terminal.end() == 6
    assert terminal.seen.count(b"interrupted") == 1
    [(start, [exchange])] = logs(env)
    assert start and start.argv == ["claude"] and start.agent == "claude-code"
    assert exchange.exit and exchange.exit.status == 6


def test_no_proxy_is_started_for_a_missing_agent(env: dict[str, str], tmp_path: Path) -> None:
    env["PATH"] = str(tmp_path / "bin")
    terminal = Terminal(env, "--", "claude")
    assert terminal.end() == 127 and b"cannot find claude" in terminal.seen
    assert not {"sessions", "logs", ".agent-logger"} & {it.name for it in tmp_path.iterdir()}


def test_the_session_file_of_the_agent_is_recorded(env: dict[str, str], tmp_path: Path) -> None:
    from agent_logger.agents.claude_code.naming import folder_name

    folder = tmp_path / ".claude/projects" / folder_name(os.path.realpath(tmp_path))
    agent(env, f"mkdir -p {folder}\necho '{{}}' > {folder}/{SESSION}.jsonl")
    assert Terminal(env, "--", "claude").end() == 0
    [(start, [exchange])] = logs(env)
    assert start and start.session_id == SESSION
    [file] = [it for it in exchange.messages if it.type == "session_file"]
    assert file.content and json.loads(bytes(file.content))["path"] == f"{folder}/{SESSION}.jsonl"


def test_the_agent_runs_with_a_warning_if_the_proxy_cannot_start(env: dict[str, str], tmp_path: Path) -> None:
    (tmp_path / ".agent-logger").mkdir()
    (tmp_path / ".agent-logger/logs").write_text("a file")
    agent(env, 'echo "base [$ANTHROPIC_BASE_URL]"; exit 3')
    terminal = Terminal(env, "--", "claude")
    assert terminal.end() == 3
    assert b"base []" in terminal.seen and "0 requests recorded · proxy_not_started: ".encode() in terminal.seen


def test_an_agent_that_stops_itself_can_be_continued(env: dict[str, str]) -> None:
    """As under a shell with job control, which waits for us, not for the agent."""
    agent(env, "echo ready; kill -STOP $$; echo again")
    terminal = Terminal(env, "--", "claude")
    terminal.wait_for(b"ready")
    _, status = os.waitpid(terminal.pid, os.WUNTRACED)
    assert os.WIFSTOPPED(status)
    os.kill(terminal.pid, signal.SIGCONT)
    terminal.wait_for(b"again")
    assert terminal.end() == 0


def test_a_prompt_run_in_a_terminal_shows_the_answer(env: dict[str, str]) -> None:
    use = {"type": "tool_use", "id": "t", "name": "Bash", "input": {"command": "ls \x1b[31m"}}
    text = {"type": "text", "text": "It is \x1b]0;evil\x07 mended."}
    message = {"type": "assistant", "session_id": SESSION, "message": {"content": [use, text]}}
    agent(env, printing(message, RESULT))
    terminal = Terminal(env, "Fix the timer")
    assert terminal.end() == 0
    assert b"> Bash ls \\x1b[31m" in terminal.seen and b"It is \\x1b]0;evil\\x07 mended." in terminal.seen
    assert b"session 7b320356" in terminal.seen
