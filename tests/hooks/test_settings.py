"""Hooks in somebody's settings: ours come and go, everything else stays as it is."""

import json
import os
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from agent_logger.errors import SourceError
from agent_logger.hooks.settings import EVENTS, add_hooks, commands_in, remove_hooks

COMMAND = ["/opt/my tools/agent-logger", "hook"]
OTHER = {"matcher": "Bash", "hooks": [{"type": "command", "command": "./lint.sh hook"}]}

SETTINGS = {
    "none yet": "",
    "empty": "{}",
    "empty line": "{}\n",
    "one line": '{"model":"opus","x":[1,  2]}',
    "four blanks, odd inside": '{\n    "zeta": {"b": 1,\n "a": 2},\n    "env": {}\n}\n',
    "tabs, no newline at the end": '{\n\t"a": "ü \\u00fc",\n\t"b": 1e400\n}',
    "hooks of others first": json.dumps({"hooks": {"Stop": [OTHER]}, "last": 1}, indent=2),
    "hooks of others last": json.dumps({"first": 1, "hooks": {"Stop": [OTHER], "New": []}}),
    "CRLF": '{\r\n  "a": 1\r\n}\r\n',
}
ANY = pytest.mark.parametrize("text", SETTINGS.values(), ids=SETTINGS)
WITHOUT_HOOKS = [text for text in SETTINGS.values() if "hooks" not in text and text.strip("{}\n")]


def without_hooks(text: str) -> dict[str, Any]:
    settings: dict[str, Any] = json.loads(text or "{}")
    settings.pop("hooks", None)
    return settings


@ANY
def test_install_adds_one_command_per_event_and_keeps_other_settings(text: str) -> None:
    after = add_hooks(text, COMMAND)
    assert {event: len(it) for event, it in commands_in(after).items()} == dict.fromkeys(EVENTS, 1)
    assert without_hooks(after) == without_hooks(text)
    assert list(without_hooks(after)) == list(without_hooks(text))
    assert add_hooks(after, COMMAND) == after
    stop = json.loads(text or "{}").get("hooks", {}).get("Stop", [])
    assert json.loads(after)["hooks"]["Stop"][:-1] == stop


@ANY
def test_uninstall_restores_the_original_settings(text: str) -> None:
    assert remove_hooks(text) == text
    assert json.loads(remove_hooks(add_hooks(text, COMMAND))) == json.loads(text or "{}")


@pytest.mark.parametrize("text", WITHOUT_HOOKS)
def test_settings_of_others_are_preserved_byte_for_byte(text: str) -> None:
    assert remove_hooks(add_hooks(text, COMMAND)) == text
    body = text[: text.rindex("}")].rstrip()
    assert add_hooks(text, COMMAND).startswith(body)


def test_install_replaces_a_command_with_an_old_path() -> None:
    moved = add_hooks(add_hooks("{}", COMMAND), ["/new/python", "-m", "agent_logger", "hook"])
    assert set(map(tuple, commands_in(moved).values())) == {("/new/python -m agent_logger hook",)}


BROKEN = ["[]", "{", '{"hooks": []}', '{"hooks": {"Stop": {}}}', "// a comment\n{}", '"x"', "[" * 100_000]


@pytest.mark.parametrize("text", BROKEN, ids=range(len(BROKEN)))
def test_unparsable_settings_are_rejected(text: str) -> None:
    with pytest.raises(SourceError):
        add_hooks(text, COMMAND)
    assert commands_in(text) == {}


JSON = st.recursive(
    st.none() | st.booleans() | st.integers() | st.text(),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(), inner, max_size=3),
    max_leaves=12,
)
GROUPS = st.lists(st.sampled_from([OTHER, {}, {"hooks": []}]), max_size=2)


@given(
    st.dictionaries(st.text().filter(lambda name: name != "hooks"), JSON, max_size=4),
    st.none() | st.dictionaries(st.sampled_from([*EVENTS, "Future"]), GROUPS, max_size=3),
    st.sampled_from([None, 2, 4, "\t"]),
    st.booleans(),
)
def test_install_and_uninstall_round_trip_any_settings(
    rest: dict[str, Any], hooks: Any, indent: Any, ascii_only: bool
) -> None:
    settings = rest if hooks is None else {**rest, "hooks": hooks}
    text = json.dumps(settings, indent=indent, ensure_ascii=ascii_only)
    after = add_hooks(text, COMMAND)
    assert without_hooks(after) == rest
    back = json.loads(remove_hooks(after))
    assert back.pop("hooks", {}) == {event: it for event, it in (hooks or {}).items() if it or event not in EVENTS}
    assert back == rest


# ---------------------------------------------------------------- the command


def run(home: Path, *options: str, answer: str = "") -> subprocess.CompletedProcess[str]:
    environment = {"HOME": str(home), "PATH": os.environ["PATH"]}
    line = [sys.executable, "-m", "agent_logger", "hook", *options]
    return subprocess.run(line, env=environment, input=answer, capture_output=True, text=True, check=False)


def test_install_shows_a_diff_and_writes_only_after_confirmation(home: Path) -> None:
    path = home / ".claude" / "settings.json"
    path.parent.mkdir()
    path.write_text('{\n  "model": "opus"\n}\n')
    path.chmod(0o640)
    refused = run(home, "--install", answer="n\n")
    assert (refused.returncode, path.read_text()) == (1, '{\n  "model": "opus"\n}\n')
    assert '+  "hooks": {' in refused.stdout
    done = run(home, "--install", answer="y\n")
    assert (done.returncode, path.stat().st_mode & 0o777) == (0, 0o640)
    assert set(commands_in(path.read_text())) == set(EVENTS)
    assert run(home, "--install").stderr.startswith("nothing to do")
    assert run(home, "--uninstall", "--yes").returncode == 0
    assert path.read_text() == '{\n  "model": "opus"\n}\n'
    assert [it.name for it in path.parent.iterdir()] == ["settings.json"]


def test_a_symlinked_settings_file_remains_a_symlink(home: Path) -> None:
    real = home / "dotfiles" / "claude.json"
    real.parent.mkdir()
    real.write_text("{}")
    (home / ".claude").mkdir()
    (home / ".claude" / "settings.json").symlink_to(real)
    assert run(home, "--install", "--yes").returncode == 0
    assert (home / ".claude" / "settings.json").is_symlink()
    assert set(commands_in(real.read_text())) == set(EVENTS)


def test_unparsable_settings_are_left_unchanged(home: Path) -> None:
    path = home / ".claude" / "settings.json"
    path.parent.mkdir()
    path.write_text("{ // mine\n}")
    done = run(home, "--install", "--yes")
    assert (done.returncode, path.read_text()) == (1, "{ // mine\n}")
    assert str(path) in done.stderr


def test_print_settings_outputs_a_hooks_block_for_every_event(home: Path) -> None:
    assert set(commands_in(run(home, "--print-settings").stdout)) == set(EVENTS)
    assert run(home, "--print-settings", "--install").returncode == 2
