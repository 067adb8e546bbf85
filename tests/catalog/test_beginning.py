"""A session that somebody looked at while its file was being begun."""

import json
import os
from pathlib import Path

import pytest

from agent_logger.catalog.catalog import Catalog
from agent_logger.files import foreign
from tests.agents.foreign import DATA
from tests.catalog.catalogs import ID, assistant, user

[ROLLOUT, *_] = sorted(DATA.glob("codex/*/*/home/.codex/sessions/*/*/*/*.jsonl"))


def turns(catalog: Catalog) -> int:
    catalog.refresh()
    return sum(it.turns for it in catalog.sessions())


@pytest.mark.parametrize("first", [0, 50], ids=["nothing yet", "half of the first line"])
def test_a_rollout_is_read_once_its_first_line_is_complete(home: Path, first: int) -> None:
    file = home / ".codex/sessions/2026/11/15" / ROLLOUT.name
    file.parent.mkdir(parents=True)
    file.write_bytes(ROLLOUT.read_bytes()[:first])
    with Catalog.open(home / ".agent-logger") as catalog:
        assert turns(catalog) == 0
        with file.open("ab") as rest:
            rest.write(ROLLOUT.read_bytes()[first:])
        assert turns(catalog) > 0


@pytest.mark.parametrize("left", [0, 50], ids=["nothing", "half of the first line"])
def test_a_rollout_without_its_first_line_is_not_a_session(home: Path, left: int) -> None:
    file = home / ".codex/sessions/2026/11/15" / ROLLOUT.name
    file.parent.mkdir(parents=True)
    file.write_bytes(ROLLOUT.read_bytes())
    with Catalog.open(home / ".agent-logger") as catalog:
        assert turns(catalog) > 0
        os.truncate(file, left)
        catalog.refresh()
        assert catalog.sessions() == []


def test_a_subagent_is_counted_once_its_first_line_is_complete(home: Path) -> None:
    session = ID.format(1)
    folder = home / ".claude/projects/-p"
    folder.mkdir(parents=True)
    lines = [user(1, "go", session), assistant(2, "gone", session)]
    (folder / f"{session}.jsonl").write_text("".join(json.dumps(line) + "\n" for line in lines))
    agent = folder / "agent-a1.jsonl"
    agent.touch()
    with Catalog.open(home / ".agent-logger") as catalog:
        assert turns(catalog) == 1
        more = {**assistant(3, "helped", session), "isSidechain": True, "agentId": "a1"}
        agent.write_text(json.dumps(more) + "\n")
        assert turns(catalog) == 2


def test_identified_files_are_not_opened_again(home: Path) -> None:
    file = home / ".local/share/opencode/storage/session/global/ses_1.json"
    file.parent.mkdir(parents=True)
    file.write_text('{"id": "ses_1"}')
    with Catalog.open(home / ".agent-logger") as catalog:
        catalog.refresh()
        before = foreign.work.files
        catalog.refresh()
        assert foreign.work.files == before
