"""Goose numbers its sessions on every machine anew: different sessions have one id, and copies of a session are one."""

import json
import os
import shutil
from collections.abc import Sequence
from pathlib import Path
from typing import Any
from uuid import uuid4

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from agent_logger.archive.run import archive_all
from agent_logger.catalog.catalog import Catalog
from agent_logger.model.session import Session
from tests.agents.databases.recorded import recorded_database
from tests.commands import run_command

ID = "20261118_1"
SCENARIOS = ("anthropic", "compaction", "failures", "tools", "tree")  # all but one have a session with this id


@pytest.fixture(scope="module")
def homes(tmp_path_factory: pytest.TempPathFactory) -> dict[str, Path]:
    """The home of a machine for each recording, which is in its archive."""
    made = {}
    for scenario in SCENARIOS:
        folder = tmp_path_factory.mktemp(scenario)
        recorded_database("goose", f"1.52.0/{scenario}", folder)
        made[scenario] = folder / ".agent-logger"
        with pytest.MonkeyPatch.context() as there:
            there.setenv("HOME", str(folder))
            assert not archive_all(made[scenario]).failed
        machine = {"machine": scenario, "home": str(made[scenario])}
        (made[scenario] / "machine.json").write_text(json.dumps(machine))
    return made


def sessions_in(catalog: Catalog) -> list[str]:
    """All sessions, without what they are called."""
    return sorted(
        repr((each.title, each.started, each.turns, each.exchanges, each.usage)) for each in catalog.sessions()
    )


def contents(catalog: Catalog) -> dict[str, Session | None]:
    return {each.id: catalog.session(each.id) for each in catalog.sessions()}


@settings(max_examples=15, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(scenarios=st.lists(st.sampled_from(SCENARIOS), min_size=2, max_size=4), one_by_one=st.booleans())
def test_homes_are_the_sum_of_their_different_sessions(
    scenarios: Sequence[str], one_by_one: bool, homes: dict[str, Path], tmp_path: Path
) -> None:
    folder = tmp_path / uuid4().hex
    copies = [folder / f"{number}-{scenario}" for number, scenario in enumerate(scenarios)]
    expected, responses = [], 0
    for scenario in set(scenarios):
        with Catalog.open(folder / "own", homes=[homes[scenario]]) as alone:
            expected += sessions_in(alone)
            responses += alone.total().responses
    for scenario, copy in zip(scenarios, copies, strict=True):
        shutil.copytree(homes[scenario], copy)
    if one_by_one:  # homes in which something is found later
        archives = [copy / "archive" for copy in copies]
        for archive in archives:
            archive.rename(archive.with_name("aside"))
        for archive in archives:
            with Catalog.open(folder / "own", homes=copies) as catalog:
                catalog.refresh()
            archive.with_name("aside").rename(archive)
    with Catalog.open(folder / "own", homes=copies) as catalog:
        assert sessions_in(catalog) == sorted(expected)
        assert catalog.total().responses == responses
        there = contents(catalog)
        assert all(session and session.id == name for name, session in there.items())
        assert len({repr(session and session.exchanges) for session in there.values()}) == len(there)
        assert catalog.refresh().changed == 0
    with Catalog.open(folder / "another", homes=copies[::-1]) as anew:
        assert contents(anew) == there


def run(home: Path, *arguments: str) -> Any:
    done = run_command(list(arguments), {"PATH": os.environ["PATH"], "HOME": str(home)})
    assert done.returncode == 0, done.stderr
    return done.stdout


def test_an_imported_session_is_not_hidden_by_one_of_this_machine(homes: dict[str, Path], tmp_path: Path) -> None:
    here = tmp_path / "here"
    for scenario in ("compaction", "tree", "compaction"):
        run(here, "import", str(homes[scenario]))
    imported = {row["id"] for row in json.loads(run(here, "ls", "--all", "--json"))}
    assert len(imported) == 2
    recorded_database("goose", "1.52.0/failures", here)
    rows = {row["id"]: row for row in json.loads(run(here, "ls", "--all", "--json"))}
    assert len(rows) == 3 and rows[ID]["imported"] == []
    others = sorted(rows.keys() - {ID})
    assert all(name.startswith(f"{ID}-") for name in others)
    run(here, "tag", others[0], "theirs")
    run(here, "tag", ID, "ours")
    shutil.rmtree(here / ".agent-logger" / "catalog.db", ignore_errors=True)
    for path in (here / ".agent-logger").glob("catalog*"):
        path.unlink()
    rows = {row["id"]: row for row in json.loads(run(here, "ls", "--all", "--json"))}
    assert [rows[name]["labels"] for name in (ID, *others)] == [["ours"], ["theirs"], []]
    for name in rows:
        assert json.loads(run(here, "show", name, "--json"))["id"] == name
        assert name in run(here, "tree", name, "--json")
        run(here, "export", name, "--to", "md", "-o", str(tmp_path / f"{name}.md"))
    assert len({(tmp_path / f"{name}.md").read_text() for name in rows}) == 3


def test_the_other_session_comes_back_from_a_bundle_under_the_id_that_goose_gave_it(
    homes: dict[str, Path], tmp_path: Path
) -> None:
    here, there = tmp_path / "here", tmp_path / "there"
    run(here, "import", str(homes["compaction"]))
    recorded_database("goose", "1.52.0/failures", here)
    (other,) = {row["id"] for row in json.loads(run(here, "ls", "--all", "--json"))} - {ID}
    run(here, "export", other, "--to", "bundle", "-o", str(tmp_path / "one.tar.zst"))
    run(there, "import", str(tmp_path / "one.tar.zst"))
    (row,) = json.loads(run(there, "ls", "--all", "--json"))
    assert row["id"] == ID


def test_a_session_in_the_archive_is_not_hidden_by_one_after_the_database_was_deleted(tmp_path: Path) -> None:
    def rows() -> dict[str, dict[str, Any]]:
        listed = json.loads(run(tmp_path, "ls", "--all", "--json"))
        return {row["id"]: {key: row[key] for key in ("started", "exchanges", "output_tokens")} for row in listed}

    database = recorded_database("goose", "1.52.0/failures", tmp_path)
    run(tmp_path, "archive")
    (old,) = rows().values()
    database.unlink()
    assert rows() == {ID: old}
    recorded_database("goose", "1.52.0/compaction", tmp_path)
    both = rows()
    run(tmp_path, "archive")
    assert rows() == both and len(both) == 2
    (name,) = both.keys() - {ID}
    assert both[name] == old != both[ID]
