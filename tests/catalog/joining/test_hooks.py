"""Hooks are a witness: what they were told of a session is that session's."""

import json
import os
import time
from collections.abc import Iterator
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import pytest

from agent_logger import Catalog, Filter
from agent_logger.logs.hook_files import file_of, hooks_path, session_named, tag_in, tag_of
from tests.catalog.catalogs import ID, all_of, assistant, claude_file, tool, user
from tests.commands import run_command

ONE, TWO = ID.format(1), ID.format(2)
MORNING = datetime(2026, 11, 15, tzinfo=UTC).timestamp()


@pytest.fixture
def catalog(home: Path) -> Iterator[Catalog]:
    with Catalog.open(home / ".agent-logger") as opened:
        yield opened


def hook(home: Path, event: str, at: float, session: str = ONE, **more: Any) -> Path:
    """As `agent-logger hook` keeps it."""
    told = {"session_id": session, "cwd": "/p/shop", "hook_event_name": event, **more}
    stamp = datetime.fromtimestamp(MORNING + at, UTC).isoformat(timespec="milliseconds")
    path = file_of(
        hooks_path(home / ".agent-logger"), MORNING + at, session_named(session, more.get("transcript_path"))
    )
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(json.dumps({"type": "hook", "v": 1, "ts": stamp, "input": told}) + "\n")
    return path


def hooks_of_a_session(home: Path, session: str = ONE) -> None:
    began = hook(home, "SessionStart", 0.5, session, source="startup")
    noted = b',"context":{"instructions":[{"path":"/p/shop/CLAUDE.md","bytes":7,"hmac":"v1:x"}]}}'
    began.write_bytes(began.read_bytes().removesuffix(b"}\n") + noted + b"\n")
    hook(home, "UserPromptSubmit", 1, session, prompt="count the zebras\nall of them")
    use = {"tool_name": "Bash", "tool_use_id": f"toolu_01{2:022d}", "tool_input": {"command": "wc"}}
    hook(home, "PreToolUse", 2, session, **use)
    hook(home, "PostToolUse", 3, session, **use, tool_response={"stdout": "7", "stderr": ""})
    hook(home, "Stop", 5, session, last_assistant_message="Seven of them.")
    hook(home, "SessionEnd", 86_400 + 9, session, reason="prompt_input_exit")  # on the next day


def files(home: Path) -> list[Path]:
    return sorted(hooks_path(home / ".agent-logger").glob("*/*"))


def test_a_session_recorded_only_by_hooks_is_listed_and_shown(home: Path, catalog: Catalog) -> None:
    hooks_of_a_session(home)
    (told,) = catalog.sessions()
    assert (told.id, told.title, told.project) == (ONE, "count the zebras", "/p/shop")
    assert told.witnesses == {"hook"}
    assert (told.exchanges, told.tool_calls, told.turns, told.cost.nano_usd) == (1, 1, 2, None)
    assert told.paths == ()
    session = catalog.session(ONE[:6])
    assert session
    assert session.end_reason == "prompt_input_exit"
    assert session.witnesses == {"hook"}
    assert session.ended == datetime(2026, 11, 16, 0, 0, 9, tzinfo=UTC)
    assert [it.path for it in session.context_files] == ["/p/shop/CLAUDE.md"]
    (exchange,) = session.exchanges
    assert (exchange.user_input, exchange.complete) == ("count the zebras\nall of them", True)
    (call,) = session.tool_calls
    assert (call.name, call.input, call.result) == ("Bash", {"command": "wc"}, "7")
    assert [block.text for block in session.turns[-1].blocks] == ["Seven of them."]
    assert [it.session for it in catalog.search("zebras")] == [it.session for it in catalog.search("seven")] == [ONE]
    assert catalog.total().responses == 0


def test_joining_hooks_to_a_transcript_does_not_change_turns_usage_or_cost(home: Path, catalog: Catalog) -> None:
    claude_file(home, ONE, [user(1, "count the zebras", ONE), *tool(2, ONE, "Bash", {"command": "wc"}, "7")])
    claude_file(home, ONE, [assistant(4, "Seven.", ONE)])
    claude_file(home, TWO, [user(1, "another", TWO), assistant(9, "yes", TWO)])
    before = catalog.summary(ONE)
    hooks_of_a_session(home)
    catalog.refresh()
    after = catalog.summary(ONE)
    assert before and after
    assert after.witnesses == {"hook", "transcript"}
    assert (after.turns, after.usage, after.cost, after.exchanges, after.paths) == (
        (before.turns, before.usage, before.cost, before.exchanges, before.paths)
    )
    session = catalog.session(ONE)
    assert session and session.end_reason == "prompt_input_exit"
    assert [sorted(it.witnesses) for it in session.turns] == [["hook", "transcript"], ["transcript"]]
    assert session.started and session.started.second == 0
    assert [it.id for it in catalog.sessions(Filter(witness="hook"))] == [ONE]
    assert all_of(catalog) == all_of(again(catalog))


def again(catalog: Catalog) -> Catalog:
    """Made anew in the same home, for what hooks told is there."""
    for path in catalog.home.glob("catalog*"):
        path.unlink()
    return Catalog.open(catalog.home)


def test_old_hook_folders_are_not_read_again_and_new_hooks_are_read(home: Path, catalog: Catalog) -> None:
    hooks_of_a_session(home)
    all_of(catalog)
    for folder in hooks_path(catalog.home).iterdir():
        os.utime(folder, (time.time() - 100,) * 2)
    catalog.refresh()
    done = catalog.refresh()
    assert (done.changed, done.files_opened) == (0, 0)
    hook(home, "UserPromptSubmit", 20, prompt="and the okapi?")
    assert catalog.refresh().changed == 1
    session = catalog.session(ONE)
    assert session and [it.user_input for it in session.exchanges][1:] == ["and the okapi?"]


def test_removing_a_session_deletes_only_its_own_hooks(home: Path, catalog: Catalog) -> None:
    hooks_of_a_session(home)
    hooks_of_a_session(home, TWO)
    hook(home, "Notification", 3, session="")
    all_of(catalog)
    ours = catalog.files_of_ours(ONE)
    assert {it.path.parent.name for it in ours} == {"20261115", "20261116"}
    assert sum(it.size for it in ours) == sum(it.stat().st_size for it in files(home) if ONE in it.name)
    catalog.remove(ONE)
    assert not any(ONE in it.name for it in files(home))
    assert len(files(home)) == 7
    assert [it.id for it in catalog.sessions()] == [TWO]
    hook(home, "SessionEnd", 30, reason="other")  # its agent was still there
    catalog.refresh()
    assert [it.id for it in catalog.sessions()] == [TWO]
    catalog.remove(TWO)
    assert [it.name for it in hooks_path(catalog.home).iterdir()] == ["20261115"]


def test_sessions_from_hooks_work_with_ls_show_tree_and_prune(home: Path) -> None:
    hooks_of_a_session(home)
    for path in files(home):
        os.utime(path, (MORNING - 400 * 86_400,) * 2)

    def run(*arguments: str) -> str:
        environment = {"PATH": os.environ["PATH"], "HOME": str(home), "COLUMNS": "80"}
        done = run_command([*arguments], environment)
        assert done.returncode == 0
        return done.stdout

    assert run("ls", "--witness", "hook").splitlines()[-1].split()[-1] == "hook"
    assert "seen by hook; ended: prompt_input_exit" in run("show", ONE)
    assert "Bash" in run("show", ONE)
    assert ONE[:8] in run("tree", ONE)
    assert run("prune", "--older-than", "9999d", "--yes") == ""
    assert "1 session" in run("prune", "--larger-than", "1B", "--yes")
    assert files(home) == []


@pytest.mark.parametrize("session", ["../../x", "a" * 100, "ü", "..", "x/y", ".json"])
def test_a_session_id_unsafe_as_a_file_name_is_listed_and_removed(home: Path, catalog: Catalog, session: str) -> None:
    path = hook(home, "UserPromptSubmit", 1, session, prompt="hello")
    assert path in files(home)
    assert tag_in(path.name) == tag_of(session)
    assert [it.id for it in catalog.sessions()] == [session]
    catalog.remove(session)
    assert files(home) == []


def test_a_hook_belongs_to_the_session_of_its_transcript_path(home: Path, catalog: Catalog) -> None:
    hook(home, "UserPromptSubmit", 1, ONE, prompt="hello", transcript_path=f"/c/projects/-p/{TWO}.jsonl")
    assert [it.id for it in catalog.sessions()] == [TWO]


def test_other_files_in_the_hooks_folder_are_left_alone(home: Path, catalog: Catalog) -> None:
    hooks_of_a_session(home)
    folder = files(home)[0].parent
    (folder / f"120000.000-00000000-{TWO}.json").write_text("no JSON")
    (folder / "notes.txt").write_text("mine")
    (folder / "120000.000-00000000.json").symlink_to("/etc/passwd")
    assert {it.id for it in catalog.sessions()} == {ONE, TWO}
    catalog.remove(ONE)
    assert (folder / "notes.txt").exists()
    assert all_of(catalog) == all_of(again(catalog))
