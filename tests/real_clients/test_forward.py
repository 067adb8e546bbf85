"""Real clients that take no base URL behave the same under `agent-logger run`, which records them by the forward door.

The test internet is the proxy that the user has: directly the client goes through it, and under `run` our proxy does.
"""

import json
import os
import re
import shutil
import sys
import time
from collections.abc import Callable, Iterator
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest

from agent_logger.files.parts import parts_in
from agent_logger.logs.log_records import read_log
from agent_logger.logs.reader import read_session
from agent_logger.model.records import Request
from agent_logger.proxy.forward.hosts import RecordedHosts
from agent_logger.proxy.state import running
from tests.clients import Finished, Sandbox, npm_program
from tests.fakeapi import Call, answers
from tests.internet import Internet, Site
from tests.internet.packages import PUBLISHED
from tests.internet.vendors import VendorHosts

from . import alike
from .forward_clients import ANSWER, CLIENTS, GITHUB_TOKEN, OAUTH_TOKEN, TOOLS, ForwardClient
from .running import KEYS

RUN = [sys.executable, "-m", "agent_logger", "run", "--door", "forward"]
LAST = re.compile(
    r"(\d+) requests? recorded · (?:\$[\d.]+(?: \+ \d+ unpriced)?|cost unknown) · agent-logger show [\w-]+"
)
TOKEN = re.compile(rb"alr_[A-Za-z0-9]{32}")
# These are not installed by `./dev`.
OTHERS = ("node20", "node22", "node24")
RECORDED = RecordedHosts.configured(())
SECONDS = 120.0
USAGE = {"input_tokens": 10, "output_tokens": 5, "cache_read_input_tokens": 1000, "cache_creation_input_tokens": 0}
# The vendors' own back ends, and the models that are asked there.
BACK_ENDS = {
    "chatgpt.com": "gpt-fake-1",
    "cloudcode-pa.googleapis.com": "gemini-fake-1",
    "api.individual.githubcopilot.com": "gpt-5.4",
}


@dataclass
class World:
    """An internet, its hosts, and a user who reaches it through a proxy and trusts its certificates."""

    sandbox: Sandbox
    api: VendorHosts
    internet: Internet
    environment: dict[str, str]

    def run(self, *command: str, **variables: str) -> Finished:
        return self.sandbox.run(list(command), {**self.environment, **variables}, seconds=SECONDS)

    @property
    def ours(self) -> Path:
        return self.sandbox.home / ".agent-logger"

    def recordable(self) -> list[Call]:
        """The calls that the API saw at hosts which are recorded."""
        return [call for call in self.api.calls if RECORDED.covers(_host(call))]

    def recorded(self) -> list[Request]:
        folders = [path for path in (self.ours / "logs").iterdir() if path.is_dir() and not path.name.startswith(".")]
        logs = dict.fromkeys((part.folder, part.name) for folder in folders for part in parts_in(folder))
        return [item.value for log in logs for item in read_log(*log) if isinstance(item.value, Request)]


def _host(call: Call) -> str:
    return next(value for name, value in call.headers if name.lower() == "host").partition(":")[0]


@contextmanager
def a_world(folder: Path, client: ForwardClient | None = None, **options: Any) -> Iterator[World]:
    """A world; the options are those of `VendorHosts`."""
    with ExitStack() as stack:
        sites: dict[str, int] = {}
        if client and client.model_host in PUBLISHED:
            PUBLISHED[client.model_host](folder / "site")
            sites[client.model_host] = stack.enter_context(Site(folder / "site")).port
        turn = {"text": ANSWER, "usage": USAGE}
        api = stack.enter_context(VendorHosts(answers(turn, repeat=True), **options))
        internet = stack.enter_context(Internet(folder / "internet", api.port, sites))
        sandbox = Sandbox(folder)
        if client:
            client.prepare(sandbox)
        bundle = folder / "trusted.pem"
        bundle.write_bytes(Path("/etc/ssl/certs/ca-certificates.crt").read_bytes() + internet.ca_file.read_bytes())
        environment = {
            **dict.fromkeys(("HTTPS_PROXY", "https_proxy"), internet.url),
            **dict.fromkeys(("SSL_CERT_FILE", "REQUESTS_CA_BUNDLE", "CURL_CA_BUNDLE", "GIT_SSL_CAINFO"), str(bundle)),
            "NODE_EXTRA_CA_CERTS": str(internet.ca_file),
            "HTTP_PROXY": "",
            "NO_PROXY": "",
            **(client.environment if client else {}),
        }
        yield World(sandbox, api, internet, environment)


def _parameters(*names: str) -> list[Any]:
    clients = {**CLIENTS, **TOOLS}
    return [
        pytest.param(
            clients[name],
            id=name,
            marks=pytest.mark.long if name in OTHERS else pytest.mark.needs(*clients[name].needs),
        )
        for name in names
    ]


def _installed(client: ForwardClient) -> None:
    if client.program() is None:
        pytest.skip(f"{client.name} is not installed; TEST_CLIENTS names the folder of further clients")


ABLE = tuple(name for name in CLIENTS if name not in ("node20", "node22"))


@pytest.mark.parametrize("client", _parameters(*ABLE))
def test_a_client_behaves_the_same_and_all_its_calls_are_recorded(client: ForwardClient, tmp_path: Path) -> None:
    _check_alike(client, tmp_path)


@pytest.mark.needs("codex")
def test_codex_with_a_chatgpt_login_posts_compressed_bodies_where_there_is_no_websocket(tmp_path: Path) -> None:
    world = _check_alike(CLIENTS["codex-chatgpt"], tmp_path, websocket_status=426)
    (call,) = [call for call in world.api.calls if call.lane]
    assert dict(call.headers).get("content-encoding") == "zstd"
    assert [request.kind for request in world.recorded()].count("main") == 1


def _check_alike(client: ForwardClient, folder: Path, *, websocket_status: int = 101) -> World:
    _installed(client)
    node = {"NODE_USE_ENV_PROXY": "1"} if client.name == "node24" else {}
    with a_world(folder / "run", client, websocket_status=websocket_status) as world:
        direct = world.run(*client.command(), **node)
        asked = [call for call in world.api.calls if call.lane]
    assert direct.exit_code == 0 and client.prints in direct.stdout, direct
    shutil.rmtree(folder / "run")
    with a_world(folder / "run", client, websocket_status=websocket_status) as world:
        recorded = world.run(*RUN, "--", *client.command())
        calls = [call for call in world.api.calls if call.lane]
    said, last = _split(recorded.stderr)
    assert (recorded.exit_code, client.prints in recorded.stdout) == (0, True), recorded
    if client.is_repeatable:
        assert not "\n".join(alike.differences(alike.said(recorded.stdout), alike.said(direct.stdout)))
    assert _words(said) == _words(direct.stderr)
    assert not "\n".join(alike.differences(_requests(calls), _requests(asked)))
    line = LAST.fullmatch(last)
    assert line and int(line[1]) >= len(calls), recorded.stderr
    assert len(world.recorded()) == len(world.recordable())
    _check_secrets(world)
    if client.model_host in BACK_ENDS:
        _check_ledger(world, len(calls), BACK_ENDS[client.model_host])
    return world


def _check_ledger(world: World, count: int, model: str) -> None:
    """Check that the API's answers are all that was billed: as the log of the calls has them, which is one session,
    and as all witnesses have them."""
    expected = (model, count, 10 * count, 5 * count, 1000 * count)
    logs = [path for path in (world.ours / "logs").glob("[a-z]*/*.jsonl") if path.stem != "unattributed"]
    (session,) = map(read_session, logs)
    turns = [turn for exchange in session.exchanges for turn in exchange.turns]
    billed = [turn.usage for turn in turns if turn.usage]
    assert (
        *{turn.model for turn in turns},
        len(turns),
        sum(usage.input_tokens for usage in billed),
        sum(usage.output_tokens for usage in billed),
        sum(usage.cache_read_tokens for usage in billed),
    ) == expected
    assert session.unread_calls == 0
    shown = {name: _json(world, name, *options) for name, options in (("usage", ["--by", "model"]), ("ls", []))}
    (row,), (listed,) = shown["usage"]["rows"], shown["ls"]
    sums = ("input_tokens", "output_tokens", "cache_read_tokens")
    assert (row["key"], count, *(row[name] for name in sums)) == expected
    assert (listed["models"], listed["exchanges"]) == ([model], 1)


def _json(world: World, *command: str) -> Any:
    return json.loads(world.run(sys.executable, "-m", "agent_logger", *command, "--json").stdout)


@pytest.mark.long
@pytest.mark.needs("copilot")
@pytest.mark.parametrize(
    ("endpoints", "model"),
    [
        (("/responses",), "gpt-5.4"),
        (("ws:/responses", "/responses"), "gpt-5.4"),
        (("/v1/messages", "/chat/completions"), "claude-sonnet-4.5"),
    ],
)
def test_each_endpoint_of_copilot_is_read(endpoints: tuple[str, ...], model: str, tmp_path: Path) -> None:
    client, endpoint = CLIENTS["copilot-github"], endpoints[0]
    with a_world(tmp_path, client, copilot_endpoints=endpoints) as world:
        done = world.run(*RUN, "--", *client.command(), "--model", model)
        calls = [call for call in world.api.calls if call.lane]
        assert done.exit_code == 0 and calls, done
        assert {call.transport for call in calls} == {"websocket" if endpoint.startswith("ws:") else "http"}
        assert {call.path for call in calls} == {endpoint.removeprefix("ws:")}
        _check_ledger(world, len(calls), model)


def _requests(calls: list[Call]) -> list[Any]:
    """The calls as they reached the API; some clients shuffle their headers, and Gemini CLI the skills it lists.

    Without the number of the turn, for some ask for a title at the same time: all answers here are the same.
    """
    found = [[*start, sorted(headers), _sorted_skills(body)] for *start, _, headers, body in alike.requests(calls)]
    return sorted(found, key=json.dumps)


_SKILLS = re.compile(r"(?<=<available_skills>)(?:\s*<skill>.*?</skill>)+", re.DOTALL)


def _sorted_skills(value: Any) -> Any:
    match value:
        case dict():
            return {key: _sorted_skills(item) for key, item in value.items()}
        case list():
            return [_sorted_skills(item) for item in value]
        case str():
            return _SKILLS.sub(lambda skills: "".join(sorted(re.findall(r"(?s)<skill>.*?</skill>", skills[0]))), value)
    return value


def _split(stderr: str) -> tuple[str, str]:
    """What the client said, and the last line of ours."""
    *lines, last = stderr.rstrip("\n").split("\n")
    return "\n".join(line for line in lines if not line.startswith("agent-logger: ")), last


def _words(text: str) -> set[str]:
    """The lines of a client, without times; how often it repeats a complaint is chance. Gemini CLI may complain about
    its own measurements of its start."""
    lines = (alike.plain(line).strip() for line in text.splitlines())
    return {line for line in lines if line and not line.startswith("[STARTUP]")}


def _check_secrets(world: World) -> None:
    secrets = [key.encode() for key in (*KEYS, OAUTH_TOKEN, GITHUB_TOKEN)]
    for path in (world.ours / "logs").rglob("*"):
        data = path.read_bytes() if path.is_file() else b""
        assert not TOKEN.search(data) and not [secret for secret in secrets if secret in data], path


@pytest.mark.parametrize("client", _parameters(*TOOLS))
def test_a_tool_of_an_agent_reaches_a_host_that_is_only_passed_on(client: ForwardClient, tmp_path: Path) -> None:
    with a_world(tmp_path, client) as world:
        done = world.run(*RUN, "--", *client.command())
    assert (done.exit_code, client.prints in done.stdout + done.stderr) == (0, True), done
    assert f"agent-logger: 1 host reached unread: {client.model_host}" in done.stderr
    assert world.internet.hosts() == {client.model_host}
    assert world.recorded() == []


@pytest.mark.long
@pytest.mark.parametrize("client", _parameters("node20"))
def test_a_client_that_uses_no_proxy_is_not_recorded(client: ForwardClient, tmp_path: Path) -> None:
    _installed(client)
    with a_world(tmp_path, client) as world:
        done = world.run(*RUN, "--", *client.command())
    assert done.exit_code == 1 and world.internet.tunnels == []
    assert done.stderr.rstrip().endswith("0 requests recorded · none_made: the agent made no model request")


@pytest.mark.needs("codex")
def test_a_client_that_does_not_trust_us_works_nevertheless(tmp_path: Path) -> None:
    """A program of the user sets the variables for certificates again. The client tries again, and is let through."""
    client = CLIENTS["codex-chatgpt"]
    with a_world(tmp_path, client) as world:
        own = world.environment["SSL_CERT_FILE"]
        changed = f"SSL_CERT_FILE={own} CODEX_CA_CERTIFICATE={own}"
        done = world.run(*RUN, "--", "sh", "-c", f'{changed} exec "$0" "$@"', *client.command())
    assert (done.exit_code, ANSWER in done.stdout) == (0, True), done
    text = f"agent-logger: it does not trust the certificate of agent-logger: {client.model_host}"
    assert text in done.stderr.splitlines()
    assert len(world.recorded()) < len(world.api.calls)


@pytest.mark.needs("curl")
def test_a_server_that_outlives_the_run_is_recorded(tmp_path: Path) -> None:
    client, go = CLIENTS["curl"], tmp_path / "go"
    with a_world(tmp_path, client) as world:
        waits = f'(while ! [ -e {go} ]; do sleep 0.1; done; "$0" "$@") >/dev/null 2>&1 </dev/null & echo left behind'
        done = world.run(*RUN, "--", "sh", "-c", waits, *client.command())
        assert (done.exit_code, done.stdout) == (0, "left behind\n")
        assert world.api.calls == [] and running(world.ours)
        go.touch()
        world.api.wait(1)
        _wait_for(lambda: len(world.recorded()) == 1)
        _wait_for(lambda: not running(world.ours))
    assert [call.method for call in world.api.calls] == ["POST"]


def _wait_for(condition: Callable[[], object]) -> None:
    give_up = time.monotonic() + SECONDS
    while not condition():
        assert time.monotonic() < give_up
        time.sleep(0.05)


@pytest.mark.needs("codex")
def test_the_door_follows_from_the_login(tmp_path: Path) -> None:
    client = CLIENTS["codex-chatgpt"]
    with a_world(tmp_path, client) as world:
        done = world.run(sys.executable, "-m", "agent_logger", "run", "--", *client.command())
    assert done.exit_code == 0 and LAST.fullmatch(_split(done.stderr)[1]), done.stderr
    assert {request.door for request in world.recorded()} == {"forward"}
    assert not os.path.exists(world.sandbox.home / ".codex" / "agent-logger")


def _files(folder: Path) -> set[str]:
    return {alike.plain(str(path.relative_to(folder))) for path in folder.rglob("*") if path.is_file()}


@pytest.mark.long
def test_an_old_claude_with_a_gateway_in_its_settings_is_recorded(tmp_path: Path) -> None:
    """It has no `--settings`, and asks its proxy for a tunnel to a gateway that is plain HTTP on this machine."""
    program = npm_program("claude", "claude-1.0.3")
    if program is None:
        pytest.skip("Claude Code 1.0.3 is not installed; TEST_CLIENTS names the folder of further clients")
    command = [str(program), "-p", "Say hello", "--output-format", "json"]
    done: list[Finished] = []
    files: list[set[str]] = []
    for before in ([], RUN[:4]):
        with a_world(tmp_path / "run", CLIENTS["claude-key"]) as world:
            settings = world.sandbox.home / ".claude" / "settings.json"
            settings.parent.mkdir()
            settings.write_text(json.dumps({"env": {"ANTHROPIC_BASE_URL": f"http://127.0.0.1:{world.api.port}"}}))
            words = [*before, "--", *command] if before else command
            done.append(world.run(*words, HTTPS_PROXY="", https_proxy=""))
            files.append(_files(settings.parent))
            made = len(world.api.calls)
            recorded = len(world.recorded()) if before else made
        assert made == recorded > 0
        shutil.rmtree(tmp_path / "run")
    direct, sent = done
    assert (direct.exit_code, ANSWER in direct.stdout) == (sent.exit_code, ANSWER in sent.stdout) == (0, True), sent
    assert files[0] == files[1]
    line = LAST.fullmatch(_split(sent.stderr)[1])
    assert line and int(line[1]) == made
