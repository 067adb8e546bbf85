"""A fork's numbers: what came after it is its own, what came before is said to count elsewhere."""

import json
import os
import re
import shutil
from pathlib import Path
from typing import Any

import pytest
from tests.agents.foreign import DATA
from tests.catalog.catalogs import ID, assistant, claude_file, user
from tests.commands import run_command

TRUNK, FORK = "64c46467", "59378c67"


@pytest.fixture
def forked(home: Path) -> Path:
    shutil.copytree(DATA / "claude-cli/2.1.325/forks_go_on/home/.claude", home / ".claude")
    return home


def printed(*arguments: str) -> str:
    done = run_command([*arguments], {**os.environ, "COLUMNS": "100"})
    assert done.returncode == 0, done.stderr
    return done.stdout


def listed() -> dict[str, Any]:
    return {it["id"][:8]: it for it in json.loads(printed("ls", "--json"))}


def numbered(text: str) -> int:
    return len(re.findall(r"^ *#\d+", text, re.MULTILINE))


def test_the_header_of_a_fork_matches_ls_and_names_the_session_that_counts_the_rest(
    forked: Path,
) -> None:
    rows = listed()
    assert (rows[FORK]["exchanges"], rows[FORK]["inherited_exchanges"], rows[FORK]["turns"]) == (3, 1, 3)
    text = printed("show", FORK)
    assert "3 exchanges, 3 turns" in text
    assert f"${rows[FORK]['cost_usd']:.4f}" in text
    [before] = re.findall(r"(\d+) turns? before the fork, (\S+), counted in (\S+)", text)
    assert before[0] == "1"
    assert before[2] == TRUNK
    assert numbered(text) == 3 + int(before[0])
    assert "before the fork" not in printed("show", TRUNK)
    costs = rows[FORK]["cost_usd"] + float(before[1].lstrip("$"))
    shown = json.loads(printed("show", FORK, "--json"))
    assert sum(it["cost"]["nano_usd"] for ex in shown["exchanges"] for it in ex["turns"]) == pytest.approx(
        costs * 1e9, abs=1e5
    )


def test_the_json_of_a_fork_names_the_session_that_counts_each_turn(forked: Path) -> None:
    shown = json.loads(printed("show", FORK, "--json"))
    places = [turn["counted_in"] and turn["counted_in"][:8] for ex in shown["exchanges"] for turn in ex["turns"]]
    assert places == [TRUNK, None, None, None]
    before = shown["inherited"]
    assert (before["exchanges"], before["turns"], [it[:8] for it in before["counted_in"]]) == (1, 1, [TRUNK])
    assert shown["parent"][:8] == TRUNK


@pytest.mark.parametrize("form", ["md", "html"])
def test_exports_of_a_fork_name_the_session_that_counts_the_rest(forked: Path, form: str) -> None:
    text = printed("export", FORK, "--to", form).replace("\\", "")
    assert re.search(r"before the fork.{0,20}?1 turn, \$0\.\d+, counted in 64c46467", text, re.DOTALL)
    assert "3 exchanges, 3 turns" in text


def test_the_turn_count_of_the_header_matches_the_printed_turns(home: Path) -> None:
    """Also those without an id or tokens, and what the client said in the model's name."""
    name = ID.format(1)
    bare = [
        {"type": "user", "message": {"role": "user", "content": "Hello"}},
        {"type": "assistant", "message": {"role": "assistant", "content": "Hi"}},
        {"type": "user", "message": {"role": "user", "content": "And?"}},
        {"type": "assistant", "message": {"role": "assistant", "content": "So."}},
    ]
    claude_file(home, name, bare)
    other = ID.format(2)
    error = assistant(2, "API Error: 529", other, model="<synthetic>")
    claude_file(home, other, [user(1, "Hello", other), error])
    for it in (name, other):
        text = printed("show", it)
        row = next(row for row in json.loads(printed("ls", "--json")) if row["id"] == it)
        assert re.search(rf"\b{numbered(text)} turns?,", text), text
        assert row["turns"] == numbered(text) > 0


def test_a_change_of_the_trunk_changes_what_a_fork_inherits(forked: Path) -> None:
    """The trunk comes and goes, and the fork's own file stays as it is."""
    assert listed()[FORK]["inherited_exchanges"] == 1
    trunk = next(forked.glob(f".claude/projects/*/{TRUNK}*.jsonl"))
    kept = forked / trunk.name
    shutil.move(trunk, kept)
    for path in forked.glob(".claude/projects/*/*.jsonl"):
        if not path.name.startswith(FORK):
            path.unlink()
    assert (listed()[FORK]["exchanges"], listed()[FORK]["inherited_exchanges"]) == (4, 0)
    shutil.move(kept, trunk)
    assert (listed()[FORK]["exchanges"], listed()[FORK]["inherited_exchanges"]) == (3, 1)
