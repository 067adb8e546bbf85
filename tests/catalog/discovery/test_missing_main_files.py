"""Sessions whose main file was deleted, while the files of their sub-agents are left."""

import json
import shutil
from pathlib import Path
from typing import Any

import pytest

from agent_logger.catalog.catalog import Catalog
from agent_logger.model.session import Usage
from tests.agents.foreign import DATA
from tests.catalog.catalogs import ID, assistant, claude_file, user
from tests.commands import run_command

NESTED = "2762b52b-dea7-4289-9b7f-edf7d601eb4d"


@pytest.fixture
def main_file(home: Path) -> Path:
    shutil.copytree(DATA / "claude-cli/2.1.325/nested_subagents/home/.claude", home / ".claude")
    [path] = home.glob(f".claude/projects/*/{NESTED}.jsonl")
    return path


def opened(home: Path) -> Catalog:
    return Catalog.open(home / ".agent-logger")


def of_agents(catalog: Catalog) -> Usage:
    rows = [row for row in catalog.ledger() if row.thread != "main"]
    return sum((row.usage for row in rows if row.usage), Usage())


def test_subagents_without_a_main_file_are_listed_and_counted(home: Path, main_file: Path) -> None:
    with opened(home) as catalog:
        spent, turns = of_agents(catalog), sum(row.thread != "main" for row in catalog.ledger())
    main_file.unlink()
    with opened(home) as catalog:
        [row] = catalog.sessions()
        session = catalog.session(NESTED)
        assert session
        assert (row.id, row.main_missing, row.usage, row.turns) == (NESTED, True, spent, turns)
        assert (session.main_missing, session.usage, session.exchanges) == (True, spent, [])
        assert (catalog.total().usage, catalog.total().responses) == (spent, turns)
        assert row.project == "/home/user/project"
        assert all(path.exists() for path in row.paths)
        tree = catalog.tree(NESTED)
        assert tree
        assert [len(it.agents) for it in tree.agents] == [1]
        assert catalog.search("SUBTASK-GAMMA") or catalog.search("Gamma")
    shown = run_command(["show", NESTED[:8]], {"HOME": str(home), "PATH": "/usr/bin:/bin"})
    assert "The session's main file is missing" in shown.stdout


def test_a_restored_main_file_is_no_longer_missing(home: Path, main_file: Path) -> None:
    kept = main_file.read_bytes()
    main_file.unlink()
    with opened(home) as catalog:
        before = catalog.total().responses
        main_file.write_bytes(kept)
        catalog.refresh()
        [row] = catalog.sessions()
        assert not row.main_missing
        assert catalog.total().responses > before
        main_file.unlink()
        catalog.refresh()
        assert (catalog.sessions()[0].main_missing, catalog.total().responses) == (True, before)
        shutil.rmtree(main_file.with_suffix(""))
        catalog.refresh()
        assert catalog.sessions() == []


def test_prompts_from_the_history_are_shown_beside_the_subagents(home: Path, main_file: Path) -> None:
    main_file.unlink()
    typed = {"display": "Delegate this", "timestamp": 1794751080000, "project": "/p", "sessionId": NESTED}
    (home / ".claude/history.jsonl").write_text(json.dumps(typed) + "\n")
    with opened(home) as catalog:
        [row] = catalog.sessions()
        session = catalog.session(NESTED)
        assert session
        assert [it.user_input for it in session.exchanges] == ["Delegate this"]
        assert (row.main_missing, row.prompts_only, row.turns) == (True, False, 4)


def agent_line(number: int, session: str, **more: Any) -> dict[str, Any]:
    return {**assistant(number, "done", session, **more), "isSidechain": True, "agentId": "x1"}


@pytest.mark.parametrize("folder", ["", "subagents/"])
def test_subagents_in_older_layouts_are_counted_without_a_main_file(home: Path, folder: str) -> None:
    gone, there = ID.format(1), ID.format(2)
    project = claude_file(home, there, [user(1, "Hello", there), assistant(2, "Hi", there)]).parent
    path = project / f"{folder}agent-x1.jsonl"
    path.parent.mkdir(exist_ok=True)
    path.write_text(json.dumps(agent_line(5, gone)) + "\n")
    with opened(home) as catalog:
        assert {it.id: (it.main_missing, it.turns) for it in catalog.sessions()} == {
            gone: (True, 1),
            there: (False, 1),
        }


def test_folders_without_subagents_are_not_sessions(home: Path) -> None:
    project = home / ".claude/projects/-p-shop"
    (project / ID.format(1) / "tool-results").mkdir(parents=True)
    (project / ID.format(2) / "subagents").mkdir(parents=True)
    (project / "memory").mkdir()
    with opened(home) as catalog:
        assert catalog.sessions() == []


# ---------------------------------------------------------------- summaries


def summary(text: str, leaf: str) -> dict[str, Any]:
    return {"type": "summary", "summary": text, "leafUuid": leaf}


def titles(catalog: Catalog) -> dict[str, str | None]:
    catalog.refresh()
    return {it.id: it.title for it in catalog.sessions()}


def test_a_summary_in_another_sessions_file_is_the_title_of_the_session_it_names(home: Path) -> None:
    first, second = ID.format(1), ID.format(2)
    lines = [user(1, "Hello", first), assistant(2, "Hi", first), user(3, "More", first)]
    claude_file(home, first, lines)
    with opened(home) as catalog:
        assert titles(catalog) == {first: "Hello"}
        path = claude_file(home, second, [summary("A greeting", lines[1]["uuid"]), user(9, "Next", second)])
        assert titles(catalog) == {first: "A greeting", second: "Next"}
        claude_file(home, second, [summary("A longer talk", lines[2]["uuid"])])
        assert titles(catalog)[first] == "A longer talk"
        path.unlink()
        assert titles(catalog) == {first: "Hello"}


def test_a_custom_title_takes_precedence_over_a_summary(home: Path) -> None:
    first, second = ID.format(1), ID.format(2)
    lines = [user(1, "Hello", first), {"type": "custom-title", "customTitle": "Mine", "sessionId": first}]
    claude_file(home, first, lines)
    claude_file(home, second, [summary("A greeting", lines[0]["uuid"]), user(9, "Next", second)])
    with opened(home) as catalog:
        assert titles(catalog)[first] == "Mine"


def test_keys_in_a_summary_are_not_stored(home: Path) -> None:
    first, second = ID.format(1), ID.format(2)
    key = "sk-ant-api03-" + "Qz7" * 30
    line = user(1, "Hello", first)
    claude_file(home, first, [line])
    claude_file(home, second, [summary(f"Uses {key}", line["uuid"])])
    with opened(home) as catalog:
        assert "Uses" in (titles(catalog)[first] or "")
    assert not [it for it in home.glob(".agent-logger/catalog.db*") if key.encode() in it.read_bytes()]
