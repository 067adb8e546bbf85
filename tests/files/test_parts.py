"""Which files a log has, in folders that hold the logs of many sessions."""

import os
import sys
import time
from pathlib import Path

import pytest

from agent_logger.files.parts import PartFile, live_files_of, parts_in, parts_of
from agent_logger.logs.remove import removal_of_log, removal_of_session
from tests.journal.wire_logs import calls, write
from tests.journal.wire_logs import start as wire_start


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    for name in ("one.jsonl", "one.p2.jsonl.zst", "two.jsonl", "two.jsonl.live", "notes.txt"):
        (tmp_path / name).touch()
    return tmp_path


def settle(folder: Path) -> None:
    """As if nothing had changed in it for a minute."""
    os.utime(folder, (time.time() - 60, time.time() - 60))


LISTED: list[str] = []
sys.addaudithook(lambda event, args: LISTED.append(str(args[0])) if event == "os.scandir" else None)


def test_parts_and_live_files_are_distinguished(folder: Path) -> None:
    assert parts_of(folder, "one") == [PartFile(folder, "one"), PartFile(folder, "one", 2)]
    assert live_files_of(folder, "two") == {PartFile(folder, "two"): [folder / "two.jsonl.live"]}
    assert {part.name for part in parts_in(folder)} == {"one", "two"}


def test_a_missing_folder_has_no_parts(tmp_path: Path) -> None:
    assert parts_in(tmp_path / "nowhere") == parts_of(tmp_path / "nowhere", "one") == []


def test_an_unchanged_folder_is_listed_once(folder: Path) -> None:
    settle(folder)
    before = LISTED.count(str(folder))
    for _ in range(100):
        parts_of(folder, "one")
        live_files_of(folder, "two")
    assert LISTED.count(str(folder)) == before + 1


def test_added_and_removed_parts_are_seen_immediately(folder: Path) -> None:
    settle(folder)
    assert len(parts_of(folder, "one")) == 2
    (folder / "one.p3.jsonl").touch()
    assert len(parts_of(folder, "one")) == 3
    settle(folder)
    assert len(parts_of(folder, "one")) == 3
    (folder / "one.p3.jsonl").unlink()
    assert len(parts_of(folder, "one")) == 2


def test_rapid_successive_changes_are_all_seen(folder: Path) -> None:
    """The clock of a file system may stand still between them."""
    for number in range(3, 200):
        (folder / f"one.p{number}.jsonl").touch()
        assert len(parts_of(folder, "one")) == number


@pytest.mark.parametrize("name", ["{outside}", "", ".", "..", "../../outside", "a/../../../outside"])
def test_a_log_name_that_points_outside_its_folder_is_not_removed(tmp_path: Path, name: str) -> None:
    folder, outside = tmp_path / "logs" / "anthropic", tmp_path / "outside"
    (folder / "a").mkdir(parents=True)
    outside.mkdir()
    with pytest.raises(ValueError, match="not the name of a log"):
        removal_of_session(PartFile(folder, name.format(outside=outside)))
    assert outside.is_dir() and folder.is_dir()


@pytest.mark.parametrize("kind", ["file", "link to a folder", "nothing"])
def test_a_file_replaced_after_planning_is_not_removed(tmp_path: Path, kind: str) -> None:
    """Between the plan and the removal somebody is asked, which may take an hour."""
    logs = tmp_path / "logs"
    log = write(logs, "notes", [wire_start("notes"), *calls(1)])
    removal = removal_of_log(PartFile(logs, "notes"))
    assert [it.path for it in removal.files] == [log]
    mine = tmp_path / "mine" / log.name
    mine.parent.mkdir()
    mine.write_text("mine")
    if kind == "file":
        os.replace(mine, log)
    else:
        logs.rename(tmp_path / "moved")
        if kind == "link to a folder":
            logs.symlink_to(mine.parent)
    removal.carry_out()
    assert (log if kind == "file" else mine).read_text() == "mine"
