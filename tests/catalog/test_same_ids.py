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
OWN_TEXT, IMPORTED_TEXT = "After the error", "It greets"
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


def listed(home: Path) -> dict[str, dict[str, Any]]:
    keys = ("started", "exchanges", "output_tokens", "cost_usd")
    rows = json.loads(run(home, "ls", "--all", "--json"))
    return {row["id"]: {key: row[key] for key in keys if key in row} for row in rows}


def contents_of(rows: dict[str, dict[str, Any]]) -> list[str]:
    return sorted(map(repr, rows.values()))


def found(home: Path, text: str) -> set[str]:
    return {row["session"] for row in json.loads(run(home, "search", text, "--json"))}


def responses_in(home: Path) -> int:
    return sum(row["responses"] for row in json.loads(run(home, "usage", "--json"))["rows"])


@pytest.fixture
def own_and_imported(homes: dict[str, Path], tmp_path: Path) -> tuple[Path, dict[str, Any], dict[str, Any]]:
    """A machine with a session of its own and an imported one of the same id, and what each is alone."""
    alone, here = tmp_path / "alone", tmp_path / "here"
    run(alone, "import", str(homes["compaction"]))
    (imported,) = listed(alone).values()
    recorded_database("goose", "1.52.0/failures", here)
    (own,) = listed(here).values()
    run(here, "import", str(homes["compaction"]))
    assert len(listed(here)) == 2
    return here, own, imported


@pytest.mark.parametrize("is_archived", [False, True])
def test_removing_the_own_session_leaves_the_imported_one(
    is_archived: bool, own_and_imported: tuple[Path, dict[str, Any], dict[str, Any]], tmp_path: Path
) -> None:
    here, _, imported = own_and_imported
    if is_archived:
        run(here, "archive")
    (other,) = listed(here).keys() - {ID}
    run(here, "tag", other, "theirs")
    run(here, "tag", ID, "ours")
    assert found(here, OWN_TEXT) == {ID} and found(here, IMPORTED_TEXT) == {other}
    run(here, "rm", ID, "--yes")
    assert found(here, OWN_TEXT) == set() and found(here, IMPORTED_TEXT) == {ID}
    assert contents_of(listed(here)) == [repr(imported)]
    for name in ("theirs", other):  # it has the plain id now, and is still found by what it was called
        assert json.loads(run(here, "show", name, "--json"))["id"] == ID
    assert [row["labels"] for row in json.loads(run(here, "ls", "--all", "--json"))] == [["theirs"]]
    assert responses_in(here) == responses_in(tmp_path / "alone")
    for path in (here / ".agent-logger").glob("catalog*"):
        path.unlink()
    assert contents_of(listed(here)) == [repr(imported)]
    with Catalog.open(here / ".agent-logger") as catalog:
        catalog.refresh()
        assert catalog.refresh().files_opened == 0


def test_removing_the_imported_session_leaves_the_own_one(
    own_and_imported: tuple[Path, dict[str, Any], dict[str, Any]], homes: dict[str, Path]
) -> None:
    here, own, _ = own_and_imported
    (other,) = listed(here).keys() - {ID}
    run(here, "rm", other, "--yes")
    assert listed(here) == {ID: own}
    run(here, "import", str(homes["compaction"]))  # it does not come back
    for path in (here / ".agent-logger").glob("catalog*"):
        path.unlink()
    assert listed(here) == {ID: own}


def test_removing_an_import_leaves_the_own_session_of_the_same_id(
    own_and_imported: tuple[Path, dict[str, Any], dict[str, Any]],
) -> None:
    here, own, _ = own_and_imported
    (row,) = json.loads(run(here, "import", "--list", "--json"))
    run(here, "tag", ID, "ours")
    run(here, "import", "--remove", row["name"], "--yes")
    assert listed(here) == {ID: own}
    (marked,) = json.loads(run(here, "tag", "--json"))
    assert (marked["session"], marked["labels"]) == (ID, ["ours"])


@pytest.fixture
def two_in_an_archive(tmp_path: Path) -> Path:
    """A machine whose database was deleted: the archive has two sessions of one id."""
    there = tmp_path / "there"
    database = recorded_database("goose", "1.52.0/failures", there)
    run(there, "archive")
    database.unlink()
    recorded_database("goose", "1.52.0/compaction", there)
    run(there, "archive")
    assert len(listed(there)) == 2
    return there


def test_both_sessions_in_an_archive_are_imported(two_in_an_archive: Path, tmp_path: Path) -> None:
    there, here = two_in_an_archive, tmp_path / "here"
    for _ in range(2):
        run(here, "import", str(there / ".agent-logger"))
        assert contents_of(listed(here)) == contents_of(listed(there))
    third = tmp_path / "third"  # from an import, and twice
    run(third, "import", str(here / ".agent-logger"), str(there / ".agent-logger"))
    assert contents_of(listed(third)) == contents_of(listed(there))
    assert responses_in(third) == responses_in(there)


def test_both_sessions_in_an_archive_are_in_one_bundle(two_in_an_archive: Path, tmp_path: Path) -> None:
    there, here, bundle = two_in_an_archive, tmp_path / "here", tmp_path / "both.tar.zst"
    run(there, "export", "--to", "bundle", "--yes", "-o", str(bundle))
    for _ in range(2):
        run(here, "import", str(bundle))
        assert listed(here) == listed(there)
    run(here, "import", str(there / ".agent-logger"))
    assert listed(here) == listed(there)
    assert responses_in(here) == responses_in(there)


def test_marks_stay_with_the_session_that_they_were_made_for(homes: dict[str, Path], tmp_path: Path) -> None:
    def marks() -> dict[str, tuple[list[str], bool, str | None]]:
        rows = json.loads(run(here, "tag", "--json"))
        return {row["session"]: (row["labels"], row["pinned"], row["note"]) for row in rows}

    here = tmp_path / "here"
    run(here, "import", str(homes["compaction"]))
    assert set(listed(here)) == {ID}
    run(here, "tag", ID, "theirs", "--pin", "--note", "of a colleague")
    recorded_database("goose", "1.52.0/failures", here)
    (other,) = listed(here).keys() - {ID}
    assert marks() == {other: (["theirs"], True, "of a colleague")}
    run(here, "tag", ID, "ours")
    run(here, "tag", other, "--remove", "theirs", "--unpin")
    assert marks() == {ID: (["ours"], False, None), other: ([], False, "of a colleague")}
    (row,) = json.loads(run(here, "import", "--list", "--json"))
    run(here, "import", "--remove", row["name"], "--yes")
    assert {name: labels for name, (labels, *_) in marks().items() if name == ID} == {ID: ["ours"]}
    (shown,) = json.loads(run(here, "ls", "--all", "--json"))
    assert (shown["labels"], shown["note"]) == (["ours"], None)
    run(here, "import", str(homes["compaction"]))
    assert marks() == {ID: (["ours"], False, None), other: ([], False, "of a colleague")}
