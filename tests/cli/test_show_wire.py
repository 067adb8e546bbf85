"""`show --turn N --wire`: the exact request and response of a turn, as the proxy recorded them."""

import json
from pathlib import Path

import pytest
from tests.cli.test_ls import run
from tests.proxy.conversing import Client, World

KEY = "sk-ant-api03-" + "Qz7" * 20


@pytest.fixture
def world(tmp_path: Path) -> World:
    world = World(tmp_path)
    client = Client(world.relay, "0b1c2d3e-named")
    for text in ("fix the timer", "and now the kettle\x1b[2J"):
        client.ask(text)
    world.record()
    return world


def test_the_call_of_a_turn_is_shown_with_what_was_new_in_it(world: World) -> None:
    first = run(world, "show", "0b1c2d3e", "--turn", "0", "--wire")
    assert (first.returncode, first.stderr) == (0, "")
    second = run(world, "show", "0b1c2d3e", "--turn", "1", "--wire").stdout
    assert "POST /" in second
    assert "fix the timer" in first.stdout
    assert "3 messages, 2 of them new since call" in second
    assert "and now the kettle\\x1b[2J" in second
    assert "answer to fix the timer" in second
    assert "200" in second
    assert "\x1b" not in second
    assert max(map(len, second.splitlines())) <= 80


def test_as_json_the_records_are_whole(world: World) -> None:
    (call,) = json.loads(run(world, "show", "0b1c2d3e", "--turn", "1", "--wire", "--json").stdout)
    assert call["request"]["type"] == "request"
    assert call["response"]["status"] == 200
    assert call["changes"]["kept"] == 1


@pytest.mark.parametrize("options", [[], ["--json"]])
def test_credentials_in_the_headers_of_an_older_log_are_not_shown(world: World, options: list[str]) -> None:
    for log in world.log_dir.glob("*/*.jsonl"):
        log.write_bytes(
            log.read_bytes().replace(b'"headers":{', b'"headers":{"X-Portkey-Api-Key":"hunter2",')
        )
    shown = run(world, "show", "0b1c2d3e", "--turn", "1", "--wire", *options).stdout
    assert "X-Portkey-Api-Key" in shown and "hunter2" not in shown


def test_a_turn_that_the_proxy_did_not_see_is_exit_1(world: World) -> None:
    done = run(world, "show", "0b1c2d3e", "--turn", "7", "--wire")
    assert (done.returncode, done.stdout) == (1, "")
    assert "no proxied request was recorded for turn 7" in done.stderr
