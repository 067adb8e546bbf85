"""Real clients, through the relay, against the scripted API: they notice nothing, and everything is told."""

import importlib
import json

import pytest

from agent_logger.config import Origin
from agent_logger.proxy.spool import frames
from tests.clients import ANTHROPIC_KEY, OPENAI_KEY, Sandbox, run_claude, run_codex
from tests.fakeapi import FakeAPI, answers
from tests.proxy.wires import Running, relaying


def through(relay: Running, api: FakeAPI, provider: str) -> str:
    return f"http://127.0.0.1:{relay.port}/{provider}/127.0.0.1:{api.port}"


def kept_nothing_of(relay: Running, key: str) -> bool:
    texts = [getattr(it, "head", b"") + getattr(it, "data", b"") for it in relay.tap.frames]
    return key.encode() not in b"".join(texts)


@pytest.mark.needs("anthropic")
@pytest.mark.parametrize("encoding", ["identity", "gzip", "br", "zstd"])
def test_the_anthropic_sdk_streams_through_the_relay(encoding: str) -> None:
    anthropic = importlib.import_module("anthropic")
    script = answers({"text": "Hello, Welt.", "encoding": encoding})
    with FakeAPI(script) as api, relaying(Origin("http", "127.0.0.1", api.port)) as relay:
        client = anthropic.Anthropic(base_url=through(relay, api, "anthropic"), api_key=ANTHROPIC_KEY, max_retries=0)
        asked = {"model": "m", "max_tokens": 9, "messages": [{"role": "user", "content": "Hi"}]}
        with client, client.messages.stream(**asked) as events:
            assert events.get_final_text() == "Hello, Welt."
        assert relay.tap.reason() is None
        assert kept_nothing_of(relay, ANTHROPIC_KEY)
        [call] = api.calls
        assert relay.tap.response_body() == bytes(call.sent)
        assert relay.tap.request_body() == call.body
        assert {name.lower(): value for name, value in call.headers}["authorization"] == f"Bearer {ANTHROPIC_KEY}"


@pytest.mark.needs("anthropic")
def test_the_anthropic_sdk_raises_when_the_upstream_cuts_the_stream() -> None:
    anthropic = importlib.import_module("anthropic")
    turn = {"text": "Hello there, this will not end well.", "disconnect_after": 4, "disconnect": "fin"}
    with FakeAPI(answers(turn)) as api, relaying(Origin("http", "127.0.0.1", api.port)) as relay:
        client = anthropic.Anthropic(base_url=through(relay, api, "anthropic"), api_key=ANTHROPIC_KEY, max_retries=0)
        asked = {"model": "m", "max_tokens": 9, "messages": [{"role": "user", "content": "Hi"}]}
        with client, pytest.raises(Exception, match=r"(?i)incomplete|closed"):
            client.messages.stream(**asked).__enter__().get_final_text()
        assert relay.tap.reason() == "upstream_closed"


@pytest.mark.needs("claude")
def test_claude_code_runs_through_the_relay(sandbox: Sandbox) -> None:
    script = answers({"text": "Done as asked."}, repeat=True)
    with FakeAPI(script) as api, relaying(Origin("http", "127.0.0.1", api.port)) as relay:
        url = through(relay, api, "anthropic")
        ran = run_claude(sandbox, url, "-p", "Say it.", "--output-format", "json")
        assert json.loads(ran.stdout)["result"] == "Done as asked.", ran.stderr
        assert {end.reason for end in relay.tap.of(frames.CallEnd)} <= {None, "client_gone"}
        assert any(b"/v1/messages" in it.path for it in relay.tap.of(frames.RequestHeadFrame))
        assert kept_nothing_of(relay, ANTHROPIC_KEY)
        assert api.calls
        assert not relay.tap.of(frames.Refusal)


@pytest.mark.needs("codex")
def test_codex_runs_through_the_relay(sandbox: Sandbox) -> None:
    script = answers({"text": "Done as asked."}, repeat=True)
    with FakeAPI(script) as api, relaying(Origin("http", "127.0.0.1", api.port)) as relay:
        ran = run_codex(sandbox, through(relay, api, "openai"), "Say it.")
        assert "Done as asked." in ran.stdout, ran.stderr
        assert kept_nothing_of(relay, OPENAI_KEY)
        assert not relay.tap.of(frames.Refusal)
