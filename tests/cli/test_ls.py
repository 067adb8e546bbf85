"""`ls` and `show`, over what the proxy recorded."""

import json
import os
import re
import subprocess
from pathlib import Path

import pytest
from tests.commands import run_command
from tests.proxy.conversing import Client, World
from tests.proxy.tracking.conversation import said, user

KEY = "sk-ant-api03-" + "Qz7" * 20


@pytest.fixture
def world(tmp_path: Path) -> World:
    world = World(tmp_path)
    named, other = Client(world.relay, "0b1c2d3e-named"), Client(world.relay)
    named.message_ids = [f"msg_01{number}" + "Ab" * 10 for number in range(3)]
    other.message_ids = ["msg_02" + "Cd" * 11]
    for text in ("fix the timer", f"and do not tell {KEY}\x1b[31m"):
        named.ask(text)
    named.send([*named.history[:2], user("another way")], said("yes"))
    other.ask("hello")
    world.record()
    return world


def run(world: World, *arguments: str) -> subprocess.CompletedProcess[str]:
    environment = {
        "PATH": os.environ["PATH"],
        "HOME": str(world.home.parent),
        "AGENT_LOGGER_HOME": str(world.home),
        "COLUMNS": "80",
    }
    return run_command([*arguments], environment)


def test_every_session_is_listed_once_with_its_tokens_and_branches(world: World) -> None:
    done = run(world, "ls", "--json")
    rows = json.loads(done.stdout)
    assert {(row["title"], row["turns"], row["input_tokens"], len(row["paths"])) for row in rows} == {
        ("fix the timer", 3, 30, 2),
        ("hello", 1, 10, 1),
    }
    assert {row["parent"] for row in rows} == {None}
    text = run(world, "ls").stdout
    assert len(text.splitlines()) == 3
    assert max(map(len, text.splitlines())) <= 80
    assert len(run(world, "ls", "-n", "1").stdout.splitlines()) == 2


def test_a_session_is_shown_by_name_or_path_without_keys_or_control_characters(world: World) -> None:
    hello = next(row for row in json.loads(run(world, "ls", "--json").stdout) if row["title"] == "hello")
    by_name = run(world, "show", hello["log"])
    assert "hello" in by_name.stdout
    assert run(world, "show", hello["path"]).stdout == by_name.stdout
    named = next(
        row
        for row in json.loads(run(world, "ls", "--json").stdout)
        if row["title"] == "fix the timer" and not row["parent"]
    )
    shown = run(world, "show", named["log"])
    assert "fix the timer" in shown.stdout
    assert "answer to fix the timer" in shown.stdout
    for text in (shown.stdout, run(world, "show", named["log"], "--json").stdout):
        assert KEY not in text
        assert "\x1b" not in text
    assert json.loads(run(world, "show", named["log"], "--json").stdout)["exchanges"][0]["user_input"]


def test_a_key_in_a_transcript_is_not_shown(tmp_path: Path) -> None:
    """Agents' own files are kept word for word: what a person sees of them is not."""
    name = "33333333-1111-4111-8111-111111111111"
    said = f"please use {KEY} for it"
    lines = [
        {"type": "user", "uuid": "a", "message": {"role": "user", "content": said}},
        {
            "type": "assistant",
            "uuid": "b",
            "parentUuid": "a",
            "message": {
                "id": "msg_01ABCDEFGHIJKLMNOPQRSTUV",
                "role": "assistant",
                "model": "m",
                "content": [{"type": "tool_use", "id": "t", "name": "Bash", "input": {"command": said}}],
            },
        },
        {
            "type": "user",
            "uuid": "c",
            "parentUuid": "b",
            "message": {
                "role": "user",
                "content": [{"type": "tool_result", "tool_use_id": "t", "content": said}],
            },
        },
    ]
    path = tmp_path / ".claude" / "projects" / "-p" / f"{name}.jsonl"
    path.parent.mkdir(parents=True)
    path.write_text("".join(json.dumps({**line, "sessionId": name}) + "\n" for line in lines))
    world = World(tmp_path)
    world.spool.close()
    for arguments in (["ls"], ["ls", "--json"], ["show", name], ["show", name, "--json"]):
        done = run(world, *arguments)
        assert done.returncode == 0, done.stderr
        assert "please use" in done.stdout
        assert "Qz7Qz7" not in done.stdout, arguments


def test_an_ambiguous_name_exits_with_2_and_an_unknown_name_with_1(world: World) -> None:
    day = json.loads(run(world, "ls", "--json").stdout)[0]["log"][:8]
    several = run(world, "show", day)
    assert several.returncode == 2
    ids = re.search(rf"'{day}' is ambiguous \((.+)\): use a longer prefix or a path", several.stderr)
    assert ids
    assert [run(world, "find", name).returncode for name in ids[1].split(", ")] == [0] * len(ids[1].split(", "))
    none = run(world, "show", "nobody")
    assert (none.returncode, none.stdout) == (1, "")
    assert "agent-logger ls" in none.stderr


def test_ls_without_sessions_suggests_the_demo(tmp_path: Path) -> None:
    world = World(tmp_path)
    world.spool.close()
    done = run(world, "ls")
    assert (done.returncode, done.stdout) == (0, "")
    assert "agent-logger demo" in done.stderr
    assert run(world, "ls", "--json").stdout.strip() == "[]"
