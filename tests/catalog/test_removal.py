"""A session that was removed is gone from the disk, the catalog and the index, and stays so."""

import json
from pathlib import Path

import pytest

from agent_logger import Catalog
from agent_logger.errors import StoreError
from agent_logger.files.parts import PartFile
from agent_logger.home.facts import bury, register_log_folder, tombstones
from agent_logger.journal.journal import Journal
from agent_logger.journal.seal import seal
from tests.catalog.catalogs import ID, all_of, assistant, claude_file, made_anew, user
from tests.journal.wire_logs import CHAIN, calls, own, start
from tests.journal.wire_logs import write as write_log

ONE, TWO = ID.format(1), ID.format(2)


@pytest.fixture
def catalog(home: Path) -> Catalog:
    """A session of ours in two logs, one of them sealed; one that only Claude Code has."""
    folder = home / "logs" / "anthropic"
    write_log(folder, "log", CHAIN.records())
    assert seal(PartFile(folder, "log"))
    write_log(folder, "log", [CHAIN.records()[-1]])
    write_log(folder, "other", [start("other"), *calls(2)])
    kept = home / ".agent-logger"
    register_log_folder(kept, home / "logs")
    claude_file(home, ONE, [user(1, "zebra", ONE), assistant(2, "yes", ONE)])
    return Catalog.open(kept)


def test_a_removed_session_is_deleted_and_does_not_reappear(home: Path, catalog: Catalog, tmp_path: Path) -> None:
    name = CHAIN.client_id
    assert name
    assert catalog.search("banana")
    gone = catalog.remove(name)
    assert [it.path.name for it in gone] == ["log.jsonl"]
    assert [path.name for path in (home / "logs" / "anthropic").glob("[!.]*")] == ["other.jsonl"]
    assert {it.id for it in catalog.sessions()} == {"other", ONE}
    assert catalog.summary(name) is None
    assert not [hit for hit in catalog.search("banana") if hit.session == name]
    assert {row.session for row in catalog.ledger()} == {"other", ONE}
    write_log(home / "logs" / "anthropic", "log2", CHAIN.records())  # the agent goes on with it
    for asked in (catalog, Catalog.open(catalog.home), made_anew(catalog.home, tmp_path / "anew")):
        asked.refresh()
        assert {it.id for it in asked.sessions()} == {"other", ONE}
        assert {row.session for row in asked.ledger()} == {"other", ONE}
        assert asked.refresh().files_opened == 0, "nor is it read again and again"


def test_removal_keeps_the_file_of_an_agent_and_hides_the_session(home: Path, catalog: Catalog) -> None:
    path = home / ".claude" / "projects" / "-p-shop" / f"{ONE}.jsonl"
    assert catalog.search("zebra")
    before = path.read_bytes()
    assert catalog.remove(ONE) == []
    assert path.read_bytes() == before
    claude_file(home, ONE, [assistant(9, "zebra again", ONE)])
    catalog.refresh()
    assert ONE not in {it.id for it in catalog.sessions()}
    assert catalog.search("zebra") == []


def test_no_text_of_a_removed_session_remains_in_the_catalog_files(home: Path, catalog: Catalog) -> None:
    claude_file(home, TWO, [user(1, "xylophonist", TWO), assistant(9, "quokka", TWO)])
    assert catalog.search("xylophonist")
    catalog.remove(TWO)
    assert catalog.index()
    catalog.close()
    left = {path.name: path.read_bytes() for path in catalog.home.glob("catalog*")}
    assert left
    for name, data in left.items():
        assert b"xylophonist" not in data, name
        assert b"quokka" not in data, name


def test_a_log_in_use_is_not_deleted(home: Path, catalog: Catalog) -> None:
    journal = Journal(home / "logs" / "anthropic", "other", "wire")
    journal.append(calls(3)[0])
    with pytest.raises(StoreError, match="being written to"):
        catalog.remove(CHAIN.client_id or "", "other")
    assert [it.is_in_use for it in catalog.files_of_ours("other")] == [True]
    assert [*(home / "logs" / "anthropic").glob("log*")], "all of them, or none"
    assert "other" in {it.id for it in catalog.sessions()}
    journal.close()
    catalog.remove("other")
    assert "other" not in {it.id for it in catalog.sessions()}


def test_an_interrupted_removal_is_finished_by_the_next_removal(home: Path, catalog: Catalog) -> None:
    left = home / "logs" / "anthropic" / "other.jsonl"
    bury(catalog.home, "other", [left])  # and then the machine stopped
    catalog.refresh()
    assert "other" not in {it.id for it in catalog.sessions()}
    assert left.exists()
    catalog.remove(ONE)
    assert not left.exists()
    assert set(tombstones(catalog.home)) == {"other", ONE}


def test_a_log_written_later_under_a_removed_name_is_not_deleted(home: Path, catalog: Catalog) -> None:
    """As an agent of one's own does that goes on with its session."""
    again = home / "logs" / "anthropic" / "other.jsonl"
    catalog.remove("other")
    write_log(again.parent, "other", [start("other"), *calls(2)])
    before = again.read_bytes()
    catalog.remove(ONE)
    assert again.read_bytes() == before


def test_other_sessions_in_the_shard_of_a_removed_session_are_still_found(catalog: Catalog) -> None:
    before = all_of(catalog, ["zebra"])
    assert before.hits
    catalog.remove("other")
    after = all_of(catalog, ["zebra"])
    assert after.hits == before.hits


def test_a_parent_is_not_removed_without_its_branches(home: Path, catalog: Catalog) -> None:
    write_log(home / "logs" / "anthropic", "other_b1", own("other_b1", "other", 1, 3))
    assert catalog.branches("other") == {"other_b1": "other"}
    before = all_of(catalog)
    with pytest.raises(StoreError, match="other_b1 would lose the part before the fork, which is in the log of other"):
        catalog.remove("other")
    assert all_of(catalog) == before
    catalog.remove("other", "other_b1")
    assert {it.id for it in catalog.sessions()} == {CHAIN.client_id, ONE}


def test_facts_are_stored_as_json_lines(catalog: Catalog) -> None:
    catalog.remove(ONE)
    lines = [json.loads(line) for line in (catalog.home / "facts.jsonl").read_text().splitlines()]
    assert [it["type"] for it in lines] == ["log_folder", "tombstone"]
    assert lines[1]["session"] == ONE
