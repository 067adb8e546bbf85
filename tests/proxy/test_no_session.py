"""Calls that belong to no session are paid for all the same; calls that answer nothing are not."""

import json
from pathlib import Path
from typing import Any

import pytest
from click.testing import CliRunner

from agent_logger.catalog.catalog import Catalog
from agent_logger.cli import shell
from agent_logger.home.facts import known_folders
from agent_logger.model.session import Usage
from tests.proxy.recorder.test_recording import World

COMPLETION = {"choices": [{"text": "x", "finish_reason": "stop"}], "model": "gpt-3.5-turbo-instruct"}
EMBEDDED = {"object": "list", "data": [{"embedding": [0.1]}], "model": "text-embedding-3-small"}
COUNTED = {"prompt_tokens": 9, "total_tokens": 13, "completion_tokens": 4}
EMBEDDED_COUNTED = {"prompt_tokens": 9, "total_tokens": 9}


@pytest.fixture
def world(tmp_path: Path) -> World:
    return World(tmp_path)


def ask(world: World, path: str, body: Any, answer: Any) -> None:
    pieces = [json.dumps(body).encode()], [json.dumps(answer).encode()]
    world.relay.call(path=path.encode(), body=pieces[0], answer=pieces[1])


def billed(world: World) -> tuple[int, Usage]:
    """How many sessions are listed, and what all responses took."""
    assert world.log_dir in known_folders(world.home)
    with Catalog.open(world.home) as catalog:
        catalog.refresh()
        catalog.refresh()
        return len(list(catalog.sessions())), catalog.total().usage


def test_calls_without_a_session_are_in_the_totals_but_not_listed(world: World) -> None:
    ask(world, "/v1/embeddings", {"model": "e", "input": "abc"}, {**EMBEDDED, "usage": EMBEDDED_COUNTED})
    ask(world, "/v1/completions", {"prompt": "def f(", "suffix": ")"}, {**COMPLETION, "usage": COUNTED})
    world.record()
    assert billed(world) == (0, Usage(input_tokens=18, output_tokens=4))
    told = CliRunner().invoke(shell, ["usage", "--json"], env={"AGENT_LOGGER_HOME": str(world.home)})
    assert json.loads(told.stdout)["totals"]["input_tokens"] == 18


def test_token_counting_batches_and_model_lists_have_no_usage(world: World) -> None:
    messages = {"model": "m", "messages": [{"role": "user", "content": "hi"}]}
    ask(world, "/v1/messages/count_tokens", messages, {"input_tokens": 99})
    ask(world, "/v1/messages/batches", {"requests": [messages]}, {"id": "msgbatch_1", "usage": COUNTED})
    ask(world, "/v1/models", {}, {"data": []})
    world.record()
    assert billed(world) == (0, Usage())


def test_a_text_completion_forms_a_session(world: World) -> None:
    ask(world, "/v1/completions", {"prompt": "Say hi"}, {**COMPLETION, "usage": COUNTED})
    world.record()
    assert billed(world) == (1, Usage(input_tokens=9, output_tokens=4))
    with Catalog.open(world.home) as catalog:
        [session] = catalog.sessions()
        assert (session.title, session.models) == ("Say hi", ("gpt-3.5-turbo-instruct",))


def test_a_conversation_with_ollama_is_one_session(world: World) -> None:
    messages: list[Any] = [{"role": "user", "content": "How many?"}]
    called = {
        "role": "assistant",
        "content": "",
        "tool_calls": [{"function": {"name": "ls", "arguments": {}}}],
    }
    ended = {"model": "llama", "done": True, "done_reason": "stop", "prompt_eval_count": 5, "eval_count": 2}
    ask(world, "/api/chat", {"model": "llama", "messages": messages}, {**ended, "message": called})
    messages += [called, {"role": "tool", "tool_name": "ls", "content": "a b"}]
    answer = {"role": "assistant", "content": "Two."}
    ask(world, "/api/chat", {"model": "llama", "messages": messages}, {**ended, "message": answer})
    messages += [answer, {"role": "user", "content": "Thanks"}]
    ask(world, "/api/chat", {"model": "llama", "messages": messages}, {**ended, "message": answer})
    world.record()
    assert billed(world) == (1, Usage(input_tokens=15, output_tokens=6))
    with Catalog.open(world.home) as catalog:
        [found] = catalog.sessions()
        session = catalog.session(found.id)
    assert session
    assert [it.user_input for it in session.exchanges] == ["How many?", "Thanks"]
    [call] = session.tool_calls
    assert (call.name, call.result) == ("ls", "a b")
