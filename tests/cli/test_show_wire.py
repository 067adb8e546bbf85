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


def test_the_call_of_a_turn_is_shown_with_its_new_messages(world: World) -> None:
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


def test_json_output_contains_the_complete_records(world: World) -> None:
    (call,) = json.loads(run(world, "show", "0b1c2d3e", "--turn", "1", "--wire", "--json").stdout)
    assert call["request"]["type"] == "request"
    assert call["response"]["status"] == 200
    assert call["changes"]["kept"] == 1


@pytest.mark.parametrize("options", [[], ["--json"]])
def test_credentials_in_the_headers_of_an_older_log_are_not_shown(world: World, options: list[str]) -> None:
    for log in world.log_dir.glob("*/*.jsonl"):
        log.write_bytes(log.read_bytes().replace(b'"headers":{', b'"headers":{"X-Portkey-Api-Key":"hunter2",'))
    shown = run(world, "show", "0b1c2d3e", "--turn", "1", "--wire", *options).stdout
    assert "X-Portkey-Api-Key" in shown and "hunter2" not in shown


def test_a_turn_without_a_proxied_request_exits_with_1(world: World) -> None:
    done = run(world, "show", "0b1c2d3e", "--turn", "7", "--wire")
    assert (done.returncode, done.stdout) == (1, "")
    assert "no proxied request was recorded for turn 7" in done.stderr


def test_the_requests_of_two_turns_are_compared(world: World) -> None:
    shown = run(world, "show", "0b1c2d3e", "--turn", "1", "--wire", "--diff", "0")
    assert (shown.returncode, shown.stderr) == (0, "")
    assert "message 3 (user) added" in shown.stdout
    assert "+ user: and now the kettle\\x1b[2J" in shown.stdout
    assert "fix the timer" not in shown.stdout.replace("answer to fix the timer", "")
    assert shown.stdout.rstrip().endswith("1 message unchanged")
    assert max(map(len, shown.stdout.splitlines())) <= 80
    assert run(world, "show", "0b1c2d3e", "--wire", "--diff", "0").stdout == shown.stdout, "the last turn"


def test_the_comparison_of_a_request_with_a_later_one_shows_what_is_missing(world: World) -> None:
    shown = run(world, "show", "0b1c2d3e", "--turn", "0", "--wire", "--diff", "1").stdout
    assert "message 3 (user) removed" in shown
    assert "- user: and now the kettle" in shown


def test_a_request_does_not_differ_from_itself(world: World) -> None:
    shown = run(world, "show", "0b1c2d3e", "--turn", "1", "--wire", "--diff", "1").stdout
    assert "no difference, 3 messages unchanged" in shown


def test_json_output_of_a_comparison_has_the_changes_since_the_other_turn(world: World) -> None:
    (same,) = json.loads(run(world, "show", "0b1c2d3e", "--turn", "1", "--wire", "--diff", "1", "--json").stdout)
    assert (same["changes"]["kept"], same["changes"]["messages"]) == (3, [])
    assert same["changes"]["since"] == same["call"]["call"]


@pytest.mark.parametrize(
    ("arguments", "status", "message"),
    [
        (["--diff", "0"], 2, "--diff needs --wire"),
        (["--wire"], 2, "--wire needs --turn N"),
        (["--turn", "1", "--wire", "--diff", "7"], 1, "no proxied request was recorded for turn 7"),
    ],
)
def test_wrong_comparisons_are_refused(world: World, arguments: list[str], status: int, message: str) -> None:
    done = run(world, "show", "0b1c2d3e", *arguments)
    assert (done.returncode, done.stdout) == (status, "")
    assert message in done.stderr
