"""`agent-logger run` records the requests of its agent: through which proxy, where to, how many, and why if none."""

import os
import re
import shlex
import signal
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from pathlib import Path

import msgspec
import pytest
from tests.clients import ANTHROPIC_KEY
from tests.fakeapi import FakeAPI, answers
from tests.ports import free_port
from tests.proxy.relay.test_upstream import Authority, authority, forward_proxy, over_tls  # noqa: F401 (a fixture)
from tests.proxy.wires import response
from tests.recording.played import script

from agent_logger.files.parts import parts_in
from agent_logger.logs.log_records import read_log
from agent_logger.model.records import Request, Response
from agent_logger.proxy.runs.processes import process_with, start_time
from agent_logger.proxy.state import Announcement, ProxyState, running

RUN = [sys.executable, "-m", "agent_logger", "run"]
TURN = {"text": "Hello.", "usage": {"input_tokens": 10, "output_tokens": 5}, "model": "claude-haiku-4-5"}
# An agent that asks a model as often as its first argument says, and says what it was answered.
AGENT = """
import json, os, sys, urllib.request
def ask():
    url = os.environ["ANTHROPIC_BASE_URL"] + "/v1/messages"
    body = {"model": "claude-haiku-4-5", "max_tokens": 9, "messages": [{"role": "user", "content": "Hi"}],
            "tools": [{"name": "t", "input_schema": {"type": "object"}}]}
    headers = {"content-type": "application/json", "x-api-key": KEY, "user-agent": "claude-cli/2.1 (external, cli)",
               "x-claude-code-session-id": "7b320356-a178-418e-a692-69ce6e1e657c"}
    with urllib.request.urlopen(urllib.request.Request(url, json.dumps(body).encode(), headers)) as answer:
        return json.load(answer)["content"][0]["text"]
"""
MESSAGE: dict[str, object] = {"id": "msg_1", "type": "message", "role": "assistant", "model": "claude-haiku-4-5"}
MESSAGE |= {"stop_reason": "end_turn", "usage": {"input_tokens": 10, "output_tokens": 5}}
ASKS = "for _ in range(int(sys.argv[1])): print(ask(), flush=True)"
LAST = re.compile(r"(\d+) requests? recorded · (\$[\d.]+|cost unknown) · agent-logger show ([\w-]+)(?: · in (.+))?")


class Home:
    """A home with an agent on its PATH, and what was recorded in it."""

    def __init__(self, folder: Path) -> None:
        self.folder, self.ours = folder, folder / ".agent-logger"
        (folder / "bin").mkdir()
        self.agent("asks", ASKS)
        self.env = {"PATH": f"{folder}/bin:{os.environ['PATH']}", "HOME": str(folder), "TERM": "dumb"}

    def agent(self, name: str, text: str) -> None:
        path = self.folder / f"{name}.py"
        path.write_text(f"KEY = {ANTHROPIC_KEY!r}\n{AGENT}{text}")
        script(self.folder / "bin" / name, f'exec {shlex.quote(sys.executable)} {path} "$@"')

    def run(self, *words: str, **variables: str) -> subprocess.CompletedProcess[str]:
        return subprocess.run(
            [*RUN, *words],
            env={**self.env, **variables},
            cwd=self.folder,
            stdin=subprocess.DEVNULL,
            capture_output=True,
            text=True,
            timeout=100,
            check=False,
        )

    def start(self, *words: str, **variables: str) -> subprocess.Popen[str]:
        pipe = subprocess.PIPE
        environment = {**self.env, **variables}
        return subprocess.Popen([*RUN, *words], env=environment, cwd=self.folder, stdout=pipe, stderr=pipe, text=True)

    @contextmanager
    def lasting_run(self, url: str) -> Iterator[ProxyState]:
        """A run of one request that lasts. Its proxy lasts, too, however slow the machine is."""
        self.agent("lasts", 'import time; print(ask(), flush=True)\nwhile not os.path.exists("go"): time.sleep(0.02)')
        with self.start("--", "lasts", ANTHROPIC_BASE_URL=url) as process:
            assert process.stdout and process.stdout.readline() == "Hello.\n"
            (state,) = running(self.ours)
            try:
                yield state
            finally:
                (self.folder / "go").touch()
                process.communicate(timeout=60)

    def calls(self, log_dir: Path | None = None) -> tuple[int, int]:
        """How many requests and responses are in the wire logs."""
        folder = (log_dir or self.ours / "logs") / "anthropic"
        logs = dict.fromkeys((part.folder, part.name) for part in parts_in(folder))
        records = [item.value for log in logs for item in read_log(*log)]
        return sum(isinstance(it, Request) for it in records), sum(isinstance(it, Response) for it in records)

    def leaves_nothing(self, pids: set[int]) -> bool:
        return not running(self.ours) and all(start_time(pid) is None for pid in pids)


def wait_for(condition: Callable[[], object], seconds: float = 60) -> None:
    give_up = time.monotonic() + seconds
    while not condition():
        assert time.monotonic() < give_up
        time.sleep(0.02)


def last_line(done: subprocess.CompletedProcess[str]) -> str:
    return done.stderr.rstrip("\n").rpartition("\n")[2]


def recorded(done: subprocess.CompletedProcess[str]) -> int:
    line = LAST.fullmatch(last_line(done))
    assert line, done.stderr
    return int(line[1])


@pytest.fixture
def place(tmp_path: Path) -> Iterator[Home]:
    place = Home(tmp_path)
    yield place
    for state in running(place.ours):
        os.kill(state.pid, signal.SIGTERM)


@contextmanager
def an_api(count: int = 100) -> Iterator[FakeAPI]:
    with FakeAPI(answers(*[TURN] * count)) as api:
        yield api


# ---------------------------------------------------------------- the line, and what is behind it


def test_the_last_line_counts_the_requests_and_says_how_to_see_them(place: Home) -> None:
    with an_api() as api:
        done = place.run("--", "asks", "3", ANTHROPIC_BASE_URL=api.url)
    assert (done.returncode, done.stdout) == (0, "Hello.\n" * 3)
    assert done.stderr == "3 requests recorded · $0.0008 · agent-logger show 7b320356\n", "and nothing twice"
    assert len(api.calls) == 3 and place.calls() == (3, 3)


def test_later_runs_use_the_proxy_of_the_first(place: Home) -> None:
    with an_api() as api, place.lasting_run(api.url) as first:
        assert recorded(place.run("--", "asks", "2", ANTHROPIC_BASE_URL=api.url)) == 2
        assert running(place.ours) == [first]
    assert place.calls() == (3, 3)


def test_the_proxy_of_runs_ends_with_the_last_of_them(place: Home) -> None:
    with an_api() as api, place.lasting_run(api.url) as state:
        pass
    wait_for(lambda: place.leaves_nothing({state.pid}))
    assert not list(place.ours.glob("proxy-*"))


def test_the_token_of_a_run_is_in_no_file(place: Home) -> None:
    place.agent("quotes", 'os.environ["ANTHROPIC_BASE_URL"]; print(ask(), os.environ["ANTHROPIC_BASE_URL"])')
    with an_api() as api, place.lasting_run(api.url) as state:
        done = place.run("--", "quotes", ANTHROPIC_BASE_URL=api.url)
        place.run(
            "--", "sh", "-c", "curl -s $ANTHROPIC_BASE_URL/../../openai/not.allowed/x", ANTHROPIC_BASE_URL=api.url
        )
    (token,) = re.findall("alr_[A-Za-z0-9]{32}", done.stdout)
    with suppress(ProcessLookupError):
        os.kill(state.pid, signal.SIGTERM)
    wait_for(lambda: place.leaves_nothing({state.pid}))
    files = [path for path in place.ours.rglob("*") if path.is_file()]
    assert files and not [path for path in files if token.encode() in path.read_bytes()]


def test_a_run_without_a_request_says_so(place: Home) -> None:
    done = place.run("--", "true")
    assert last_line(done) == "0 requests recorded · none_made: the agent made no model request"


def test_a_login_that_ignores_the_base_url_is_named(place: Home) -> None:
    (place.folder / ".codex").mkdir()
    (place.folder / ".codex/auth.json").write_text('{"auth_mode": "chatgpt", "tokens": {"access_token": "x"}}')
    script(place.folder / "bin/codex", 'echo "$@"')
    done = place.run("--door", "base-url", "--", "codex", "exec", "hi there")
    assert done.stdout == "exec hi there\n"
    assert last_line(done).startswith("0 requests recorded · login_ignores_base_url: ")


def test_requests_that_are_no_model_requests_are_not_counted(place: Home) -> None:
    probe = 'urllib.request.urlopen(os.environ["ANTHROPIC_BASE_URL"] + "/v1/models?limit=9").read(); print(ask())'
    place.agent("probes", probe)
    with an_api() as api:
        done = place.run("--", "probes", ANTHROPIC_BASE_URL=api.url)
    assert len(api.calls) == 2 and recorded(done) == 1 and place.calls() == (2, 2)


# ---------------------------------------------------------------- which proxy, which folder


def test_a_running_proxy_is_used_and_its_folder_is_named(place: Home) -> None:
    proxy = [sys.executable, "-m", "agent_logger", "proxy", "--port", "0"]
    with (
        an_api() as api,
        subprocess.Popen(proxy, env=place.env, cwd=place.folder, stderr=subprocess.PIPE, text=True) as process,
    ):
        try:
            wait_for(lambda: running(place.ours))
            done = place.run("--", "asks", "2", ANTHROPIC_BASE_URL=api.url)
        finally:
            process.terminate()
    assert last_line(done).endswith(f"· in {place.folder / 'logs'}")
    assert recorded(done) == 2 and place.calls(place.folder / "logs") == (2, 2)
    assert not (place.ours / "logs").exists()


def test_a_proxy_with_workers_takes_runs_in_all_of_them(place: Home) -> None:
    proxy = [sys.executable, "-m", "agent_logger", "proxy", "--port", "0", "--workers", "3"]
    with (
        an_api() as api,
        subprocess.Popen(proxy, env=place.env, cwd=place.folder, stderr=subprocess.PIPE, text=True) as process,
    ):
        try:
            wait_for(lambda: running(place.ours))
            done = place.run("--", "asks", "20", ANTHROPIC_BASE_URL=api.url)
        finally:
            process.terminate()
    assert done.stdout == "Hello.\n" * 20
    assert recorded(done) == 20 and place.calls(place.folder / "logs") == (20, 20)


def test_a_chosen_log_folder_gets_a_proxy_of_its_own(place: Home) -> None:
    with an_api() as api:
        place.run("--", "asks", "1", ANTHROPIC_BASE_URL=api.url)
        chosen = place.folder / "chosen"
        done = place.run("--log-dir", str(chosen), "--", "asks", "2", ANTHROPIC_BASE_URL=api.url)
    assert recorded(done) == 2 and last_line(done).endswith(f"· in {chosen}")
    assert (place.calls(), place.calls(chosen)) == ((1, 1), (2, 2))


def test_an_older_proxy_that_takes_no_runs_is_not_used(place: Home) -> None:
    log_dir = place.ours / "logs"
    state = ProxyState(
        pid=os.getpid(), started="2026-01-01T00:00:00.000Z", port=free_port(), log_dir=str(log_dir), version="0"
    )
    older = Announcement(place.ours, state)
    try:
        with an_api() as api:
            done = place.run("--", "asks", "1", ANTHROPIC_BASE_URL=api.url)
    finally:
        older.close()
    line = LAST.fullmatch(last_line(done))
    assert line and Path(line[4]).parent == log_dir and place.calls(Path(line[4])) == (1, 1)


def test_a_home_with_a_long_path_works(tmp_path: Path) -> None:
    folder = tmp_path / ("long" * 30)
    folder.mkdir()
    place = Home(folder)
    with an_api() as api:
        assert recorded(place.run("--", "asks", "1", ANTHROPIC_BASE_URL=api.url)) == 1


# ---------------------------------------------------------------- several at once


def test_runs_with_different_gateways_share_a_proxy_and_do_not_meet(place: Home) -> None:
    with an_api() as one, an_api() as other:
        first = place.start("--", "asks", "5", ANTHROPIC_BASE_URL=one.url)
        second = place.start("--", "asks", "7", ANTHROPIC_BASE_URL=f"{other.url}/gateway")
        for process, count in ((first, 5), (second, 7)):
            _, stderr = process.communicate(timeout=60)
            assert stderr.rstrip().rpartition("\n")[2].startswith(f"{count} requests recorded"), stderr
        assert len(running(place.ours)) <= 1  # none if the machine took two seconds to get here
    assert {call.path for call in one.calls} == {"/v1/messages"} and len(one.calls) == 5
    assert {call.path for call in other.calls} == {"/gateway/v1/messages"} and len(other.calls) == 7


def test_a_gateway_of_one_run_is_not_allowed_for_another(place: Home) -> None:
    """Not even while it runs."""
    place.agent("waits", "print(ask(), flush=True); sys.stdin.readline()")
    with an_api() as api:
        process = subprocess.Popen(
            [*RUN, "--", "waits"],
            env={**place.env, "ANTHROPIC_BASE_URL": api.url},
            cwd=place.folder,
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            text=True,
        )
        assert process.stdout and process.stdout.readline() == "Hello.\n"
        host = api.url.removeprefix("http://")
        urls = "${ANTHROPIC_BASE_URL%%/anthropic*}/anthropic/" + host
        done = place.run("--", "sh", "-c", f"curl -s -o /dev/null -w '%{{http_code}}' {urls}/v1/models")
        assert done.stdout == "403"
        process.communicate("\n", timeout=60)
    assert len(api.calls) == 1


def test_runs_with_different_upstream_proxies_go_their_own_ways(
    place: Home,
    authority: Authority,  # noqa: F811
) -> None:
    """To a host that only their proxies know, with a certificate that only they trust."""
    message = {**MESSAGE, "content": [{"type": "text", "text": "Secure."}]}
    answer = response(msgspec.json.encode(message), headers=b"Content-Type: application/json\r\n")
    with (
        over_tls(authority, answer) as upstream,
        forward_proxy(upstream.port) as (one, one_url),
        forward_proxy(upstream.port) as (other, other_url),
    ):
        variables = {"ANTHROPIC_BASE_URL": "https://api.openai.com", "SSL_CERT_FILE": authority.ca_file}
        first = place.start("--", "asks", "2", HTTPS_PROXY=one_url, **variables)
        second = place.start("--", "asks", "3", HTTPS_PROXY=other_url, **variables)
        for process, count in ((first, 2), (second, 3)):
            stdout, stderr = process.communicate(timeout=60)
            assert stdout == "Secure.\n" * count and stderr.startswith(f"{count} requests recorded"), stderr
        assert len(running(place.ours)) <= 1  # none if the machine took two seconds to get here
    assert one.heads and other.heads and place.calls() == (5, 5)


FIFTY = """
import sys
from concurrent.futures import ThreadPoolExecutor
from agent_logger import run
with ThreadPoolExecutor(50) as pool:
    results = list(pool.map(lambda n: run(f"prompt {n}", executable="./claude"), range(50)))
print(sum(it.metadata.requests or 0 for it in results), {it.metadata.no_requests for it in results})
"""


def test_fifty_runs_at_once_in_one_process_share_one_proxy(place: Home) -> None:
    result = {"type": "result", "is_error": False, "session_id": "x", "result": "Done."}
    (place.folder / "claude").write_text(
        "#!/bin/sh\nread prompt\n"
        'curl -s -X POST -H "content-type: application/json" -H "x-api-key: k" '
        """-d '{"model":"m","messages":[{"role":"user","content":"x"}],"tools":[{"name":"t"}]}' """
        f"$ANTHROPIC_BASE_URL/v1/messages > /dev/null\necho '{msgspec.json.encode(result).decode()}'\n"
    )
    (place.folder / "claude").chmod(0o755)
    with an_api() as api:
        env = {**place.env, "ANTHROPIC_BASE_URL": api.url}
        done = subprocess.run(
            [sys.executable, "-c", FIFTY], env=env, cwd=place.folder, capture_output=True, text=True, timeout=110
        )
    assert done.stdout == "50 {None}\n", done.stderr
    assert len(api.calls) == 50 and len(list(place.ours.glob("logs/.spool/owner"))) == 1


# ---------------------------------------------------------------- killed, left behind, nested

KILLED = """
print(ask(), flush=True)
while not os.path.exists("go"): time.sleep(0.01)
for _ in range(3000): print("more than any pipe holds " * 4, flush=True)
print(ask(), flush=True)
open("done", "w").close()
"""


def test_an_agent_whose_run_is_killed_continues_and_is_recorded(place: Home) -> None:
    place.agent("survives", "import time" + KILLED)
    with an_api() as api:
        process = place.start("--", "survives", ANTHROPIC_BASE_URL=api.url)
        assert process.stdout and process.stdout.readline() == "Hello.\n"
        (state,) = running(place.ours)
        process.kill()
        process.communicate()
        (place.folder / "go").touch()
        wait_for((place.folder / "done").exists)
        wait_for(lambda: place.leaves_nothing({state.pid}), 5 + 2)  # seconds of a busy machine
    assert len(api.calls) == 2 and place.calls() == (2, 2)


def test_a_process_that_the_agent_leaves_behind_is_still_recorded(place: Home) -> None:
    place.agent("server", "import time\nwhile not os.path.exists('go'): time.sleep(0.01)\nprint(ask())")
    with an_api() as api:
        done = place.run("--", "sh", "-c", "server > out 2> err < /dev/null & echo started", ANTHROPIC_BASE_URL=api.url)
        assert done.stdout == "started\n"
        time.sleep(4)  # longer than an unused proxy stays
        (place.folder / "go").touch()
        wait_for(lambda: (place.folder / "out").read_text())
        (state,) = running(place.ours)
        wait_for(lambda: place.leaves_nothing({state.pid}), 10)
    assert (place.folder / "out").read_text() == "Hello.\n" and place.calls() == (1, 1)


def test_a_run_inside_a_run_reaches_the_same_gateway_and_counts_for_itself(place: Home) -> None:
    inner = shlex.join([*RUN, "--", "asks", "2"])
    with an_api() as api:
        done = place.run("--", "sh", "-c", f"asks 1; {inner}", ANTHROPIC_BASE_URL=api.url)
    assert done.stdout == "Hello.\n" * 3
    counts = [int(it) for it in re.findall(r"(\d+) requests? recorded", done.stderr)]
    assert counts == [2, 1] and len(api.calls) == 3 and place.calls() == (3, 3)


def test_no_process_has_the_token_of_a_run_that_has_ended(place: Home) -> None:
    with an_api() as api:
        place.run("--", "asks", "1", ANTHROPIC_BASE_URL=api.url)
    assert process_with("alr_" + "x" * 32) is None


def test_calls_that_are_not_understood_are_named_at_the_end_and_by_show(place: Home) -> None:
    body = '{"result": "hi"}'
    odd = f"HTTP/1.1 200 OK\r\ncontent-type: application/json\r\ncontent-length: {len(body)}\r\n\r\n{body}"
    place.agent("asks", "try: ask()\nexcept KeyError: print('odd')")
    with FakeAPI(answers({"raw": odd})) as api:
        done = place.run("--", "asks", ANTHROPIC_BASE_URL=api.url)
    assert done.stdout == "odd\n"
    text = "agent-logger: 1 call to models not understood, kept as bytes, tokens not counted: /v1/messages"
    assert text in done.stderr.splitlines()
    show = [sys.executable, "-m", "agent_logger", "show", "7b320356"]
    shown = subprocess.run(show, env=place.env, capture_output=True, text=True, timeout=100, check=True).stdout
    assert "not understood: 1 call to models, kept as bytes, tokens not counted" in " ".join(shown.split())
