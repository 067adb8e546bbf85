import fcntl
import json
import os
import threading
from pathlib import Path

import msgspec
import pytest

from agent_logger.files.parts import PartFile, live_files_of, parts_of
from agent_logger.journal.journal import Journal
from agent_logger.journal.open_part import OpenPart
from agent_logger.journal.seal import seal
from agent_logger.journal.sync import UPKEEP
from agent_logger.logs.reader import read_exchanges, read_log
from agent_logger.model.records import ExchangeRecord, Gap, Part, Recovered, Unknown
from tests.journal.logs import damage, exchange, live
from tests.journal.logs import start as live_start
from tests.journal.world import NAME, FakeTime, note, notes_in, records_in, start


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    return tmp_path / "sessions"


def journal(folder: Path, **options: object) -> Journal:
    return Journal(folder, NAME, "exchange", **options)  # type: ignore[arg-type]


def first_line(path: Path) -> dict[str, object]:
    value = json.loads(path.read_bytes().split(b"\n")[0])
    assert isinstance(value, dict)
    return value


def live_paths(folder: Path) -> list[Path]:
    return [path for paths in live_files_of(folder, NAME).values() for path in paths]


# ---------------------------------------------------------------- writing


def test_what_was_appended_is_in_the_file_at_once(folder: Path) -> None:
    log = journal(folder)
    assert log.append(start())
    assert log.append(note("one"))
    assert notes_in(folder) == ["one"]
    assert (log.written, log.lost) == (2, 0)


def test_the_first_record_says_which_log_and_part_it_is_and_who_wrote_it(folder: Path) -> None:
    journal(folder).append(start())
    line = first_line(folder / f"{NAME}.jsonl")
    assert line["type"] == "session_start"
    writer = line["writer"]
    assert isinstance(writer, dict)
    assert (writer["pid"], line["machine"]) == (os.getpid(), os.uname().nodename)
    assert line["log"] != line["part"]


def test_a_first_line_that_may_not_be_changed_has_a_part_record_before_it(folder: Path) -> None:
    verbatim = b'{"type": "user",  "uuid":"1"}'
    Journal(folder, NAME, "transcript").append(Unknown(verbatim))
    head, line = (folder / f"{NAME}.jsonl").read_bytes().splitlines()
    assert msgspec.json.decode(head)["reason"] == "verbatim"
    assert line == verbatim


def test_many_threads_write_whole_lines_each_in_its_order(folder: Path) -> None:
    log = journal(folder)

    def work(name: str) -> None:
        for number in range(200):
            log.append(note(f"{name}-{number}"))

    threads = [threading.Thread(target=work, args=(name,)) for name in "abcd"]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    found = notes_in(folder)
    for name in "abcd":
        assert [it for it in found if it.startswith(name)] == [f"{name}-{n}" for n in range(200)]
    assert log.written == 800


def test_pending_is_what_is_written_but_not_synced(folder: Path) -> None:
    log = journal(folder)
    log.append(start())
    UPKEEP.finish()
    assert log.pending == 0


def test_files_and_folders_are_the_owners_alone(folder: Path) -> None:
    old = os.umask(0)
    try:
        log = journal(folder)
        log.append(start())
        log.begin(live_start("x"))
    finally:
        os.umask(old)
    assert folder.stat().st_mode & 0o777 == 0o700
    assert {path.stat().st_mode & 0o777 for path in folder.iterdir()} == {0o600}


def test_a_folder_we_create_is_not_for_git(folder: Path, tmp_path: Path) -> None:
    journal(folder).append(start())
    assert (folder / ".gitignore").read_text() == "*\n"
    Journal(tmp_path, "theirs", "exchange").append(start())
    assert not (tmp_path / ".gitignore").exists()


@pytest.mark.parametrize("kind", ["symbolic", "hard", "dangling"])
def test_a_log_that_is_a_link_is_not_written_to_but_a_new_part(
    folder: Path, tmp_path: Path, kind: str
) -> None:
    folder.mkdir()
    target, link = tmp_path / "target", folder / f"{NAME}.jsonl"
    target.write_text("precious")
    if kind == "hard":
        link.hardlink_to(target)
    else:
        link.symlink_to(target if kind == "symbolic" else tmp_path / "nothing")
    log = journal(folder)
    assert log.append(start())
    assert target.read_text() == "precious"
    assert not (tmp_path / "nothing").exists()
    first, second = (folder / f"{NAME}.p2.jsonl").read_bytes().splitlines()
    assert b'"reason":"linked"' in first and b'"session_start"' in second


def test_bodies_are_not_written_through_a_link(folder: Path, tmp_path: Path) -> None:
    log = journal(folder)
    assert log.append(start())
    (tmp_path / "theirs").mkdir()
    (folder / f"{NAME}.bodies").symlink_to(tmp_path / "theirs")
    assert not log.append(exchange("1", "x" * (9 << 20)))
    assert log.failing and "is a symbolic link; remove it" in log.failing
    assert not list((tmp_path / "theirs").iterdir())


# ---------------------------------------------------------------- parts


def test_a_second_writer_begins_a_part_of_its_own(folder: Path) -> None:
    one, two = journal(folder), journal(folder)
    one.append(start())
    two.append(note("from two"))
    one.append(note("from one"))
    assert [part.number for part in parts_of(folder, NAME)] == [1, 2]
    assert sorted(notes_in(folder)) == ["from one", "from two"]
    parts = [it for it in records_in(folder) if isinstance(it, Part)]
    assert [(part.number, part.reason, part.after) for part in parts] == [(2, "owned", None)]
    assert parts[0].log == first_line(folder / f"{NAME}.jsonl")["log"]


@pytest.mark.parametrize(("seconds", "parts"), [(0.02, 1), (2.0, 2)])
def test_who_only_looks_whether_a_log_has_an_owner_costs_it_no_part(
    folder: Path, seconds: float, parts: int
) -> None:
    one = journal(folder)
    one.append(start())
    one.close()
    fd = os.open(folder / f"{NAME}.jsonl", os.O_RDONLY)
    fcntl.flock(fd, fcntl.LOCK_SH)  # as `is_locked` does, for a moment
    looked = threading.Timer(seconds, os.close, [fd])
    looked.start()
    assert journal(folder).append(note("next"))  # and nobody who looks for ever holds it up
    assert len(parts_of(folder, NAME)) == parts
    looked.join()


def test_whoever_comes_after_the_owner_goes_on_with_its_part(folder: Path) -> None:
    one = journal(folder)
    one.append(start())
    one.close()
    journal(folder).append(note("next"))
    assert len(parts_of(folder, NAME)) == 1


def test_a_full_part_is_followed_by_the_next(folder: Path) -> None:
    log = journal(folder, part_bytes=900)
    log.append(start())
    for number in range(40):
        log.append(note(f"{number}"))
    parts = parts_of(folder, NAME)
    assert len(parts) > 2
    assert all(part.path.stat().st_size <= 900 for part in parts)
    assert notes_in(folder) == [f"{number}" for number in range(40)]


def test_order_is_kept_over_parts_whatever_the_clock_does(folder: Path) -> None:
    time = FakeTime()
    log = journal(folder, part_bytes=600, clock=time.clock)
    log.append(start())
    for number, jump in enumerate([0, -86_400, 365 * 86_400, 0, -5, 0, 0, 0]):
        time.wall += jump
        log.append(note(f"{number}", ts=time.clock.now()))
    assert len(parts_of(folder, NAME)) > 1
    assert notes_in(folder) == [f"{number}" for number in range(8)]


def test_parts_written_at_the_same_time_are_merged_by_time(folder: Path) -> None:
    one, two = journal(folder), journal(folder)
    for number in range(6):
        (one, two)[number % 2].append(note(f"{number}", ts=f"2026-11-15T08:45:3{number}.000Z"))
    assert notes_in(folder) == [f"{number}" for number in range(6)]


def test_a_torn_line_is_ended_and_accounted_for_by_the_next_owner(folder: Path) -> None:
    one = journal(folder)
    one.append(start())
    one.close()
    path = folder / f"{NAME}.jsonl"
    with path.open("ab") as file:
        file.write(b'{"type":"resume","v":1,"sess')
    assert damage(folder, NAME) == [], "a torn end is in flight, not damage"
    journal(folder).append(note("after"))
    assert damage(folder, NAME) == []
    found = [item.value for item in read_log(folder, NAME)]
    assert [it.torn_bytes for it in found if isinstance(it, Recovered)] == [28]
    assert path.read_bytes().count(b"\n") == 4


def test_an_empty_part_left_by_a_killed_process_is_taken_over(folder: Path) -> None:
    folder.mkdir()
    (folder / f"{NAME}.jsonl").touch()
    journal(folder).append(start())
    assert "log" in first_line(folder / f"{NAME}.jsonl")
    assert len(parts_of(folder, NAME)) == 1


# ---------------------------------------------------------------- exchanges in flight


def test_an_exchange_in_flight_is_on_disk_message_by_message(folder: Path) -> None:
    log = journal(folder)
    log.begin(live_start("x"))
    log.add(live("x", "roses"))
    log.add(live("x", "violets"))
    [found] = read_exchanges(folder, NAME)
    assert (found.user_input, [it.text for it in found.messages]) == ("do it", ["roses", "violets"])
    assert not found.complete


def test_an_exchange_that_has_ended_is_there_once_and_its_live_file_goes(folder: Path) -> None:
    log = journal(folder)
    for number in (1, 2):
        log.begin(live_start(f"x{number}", number))
        log.add(live(f"x{number}", "roses"))
        assert log.end(exchange(f"x{number}", "roses", number=number))
        assert [it.complete for it in read_exchanges(folder, NAME)] == [True] * number
    UPKEEP.finish()
    assert live_paths(folder) == []
    assert len(read_exchanges(folder, NAME)) == 2


def abandon(log: Journal) -> None:
    """What is left when the process of a journal is killed."""
    log._close_part()
    log.after_fork()


def test_the_next_owner_completes_an_orphan(folder: Path) -> None:
    one = journal(folder)
    one.append(start())
    one.begin(live_start("x"))
    one.add(live("x", "roses"))
    abandon(one)
    journal(folder).open()
    UPKEEP.finish()
    [found] = [it for it in records_in(folder) if isinstance(it, ExchangeRecord)]
    assert (found.complete, found.end_reason, found.messages[0].text) == (False, "recovered", "roses")
    assert live_paths(folder) == []


def test_an_orphan_of_a_log_without_a_record_is_completed_too(folder: Path) -> None:
    one = journal(folder)
    one.begin(live_start("x"))
    abandon(one)
    journal(folder).open()
    assert [it.end_reason for it in read_exchanges(folder, NAME)] == ["recovered"]
    assert first_line(folder / f"{NAME}.jsonl")["type"] == "exchange"
    assert "log" in first_line(folder / f"{NAME}.jsonl")


def test_an_exchange_killed_between_its_record_and_the_removal_is_there_once(folder: Path) -> None:
    one = journal(folder)
    one.begin(live_start("x"))
    one.append(exchange("x", "roses"))
    abandon(one)
    assert len(live_paths(folder)) == 1
    journal(folder).open()
    UPKEEP.finish()
    assert [it.complete for it in read_exchanges(folder, NAME)] == [True]
    assert live_paths(folder) == []


def test_an_exchange_of_a_living_process_is_left_alone(folder: Path) -> None:
    one, two = journal(folder), journal(folder)
    one.begin(live_start("x"))
    two.append(note("two"))
    UPKEEP.finish()
    assert one.add(live("x", "roses"))
    assert [it.end_reason for it in read_exchanges(folder, NAME)] == [None]


def test_an_exchange_goes_on_over_the_end_of_a_part(folder: Path) -> None:
    log = journal(folder, part_bytes=1000)
    log.append(start())
    log.begin(live_start("x"))
    log.add(live("x", "roses"))
    for number in range(20):
        log.append(note(f"{number}"))
    log.add(live("x", "violets"))
    [path] = live_paths(folder)
    newest = parts_of(folder, NAME)[-1]
    assert path == newest.live_path
    assert [it.text for it in read_exchanges(folder, NAME)[0].messages] == ["roses", "violets"]


# ---------------------------------------------------------------- a disk that fails


def test_what_could_not_be_written_is_counted_and_the_gap_is_in_the_log(folder: Path) -> None:
    time = FakeTime()
    log = journal(folder, clock=time.clock)
    folder.parent.joinpath("sessions").write_text("a file where the folder should be")
    assert not log.append(start())
    assert not log.append(note("lost, within the back-off"))
    assert (log.written, log.lost, log.failing) == (0, 2, "File exists")
    folder.unlink()
    time.pass_by(1)
    assert log.append(note("kept"))
    assert log.failing is None
    part, gap, kept = records_in(folder)
    assert isinstance(part, Part)
    assert isinstance(gap, Gap)
    assert (gap.lost, gap.seconds, gap.reason) == (2, 1.0, "File exists")
    assert kept == note("kept")


def test_the_gap_is_written_without_another_record(folder: Path) -> None:
    log = journal(folder)
    folder.write_text("in the way")
    log.append(start())
    folder.unlink()
    log.close()
    assert [it.lost for it in records_in(folder) if isinstance(it, Gap)] == [1]


def test_a_clock_that_is_set_back_gives_no_negative_gap(folder: Path) -> None:
    time = FakeTime()
    log = journal(folder, clock=time.clock)
    folder.write_text("in the way")
    log.append(start())
    folder.unlink()
    time.wall -= 86_400
    time.monotonic += 2
    log.append(start())
    [gap] = [it for it in records_in(folder) if isinstance(it, Gap)]
    assert gap.seconds == 2


def test_a_log_that_is_removed_while_it_is_written_begins_anew(folder: Path) -> None:
    log = journal(folder)
    log.append(start())
    UPKEEP.finish()
    (folder / f"{NAME}.jsonl").unlink()
    log.append(note("into a new one"))
    log.append(note("there, too"))
    assert notes_in(folder) == ["into a new one", "there, too"]


def test_a_log_that_is_replaced_while_it_is_written_begins_anew(folder: Path) -> None:
    log = journal(folder)
    log.append(start())
    UPKEEP.finish()
    (folder / f"{NAME}.jsonl").rename(folder / "aside.jsonl")
    log.append(note("into the one that is aside"))
    UPKEEP.finish()
    log.append(note("into a new one"))
    assert notes_in(folder) == ["into a new one"]
    assert "into the one" in (folder / "aside.jsonl").read_text()


def test_after_a_failed_sync_the_file_is_not_trusted_again(
    folder: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    log = journal(folder)
    log.append(start())
    log.append(note("may be gone after a power cut"))

    def fail(fd: int) -> None:
        raise OSError(5, "Input/output error")

    with monkeypatch.context() as patch:
        patch.setattr("agent_logger.platform.sync", fail)
        log.upkeep()
    before = (folder / f"{NAME}.jsonl").read_bytes()
    assert log.append(note("in a new part"))
    assert (folder / f"{NAME}.jsonl").read_bytes() == before
    found = records_in(folder)
    [part] = [it for it in found if isinstance(it, Part)]
    [gap] = [it for it in found if isinstance(it, Gap)]
    assert (part.reason, part.after) == ("sync_failed", first_line(folder / f"{NAME}.jsonl")["part"])
    assert (gap.lost, gap.unsynced) == (0, 2)


# ---------------------------------------------------------------- sealed parts


def test_a_sealed_log_goes_on_in_a_new_part(folder: Path) -> None:
    one = journal(folder)
    one.append(start())
    one.append(note("sealed"))
    one.close()
    assert seal(PartFile(folder, NAME))
    journal(folder).append(note("plain"))
    assert notes_in(folder) == ["sealed", "plain"]
    [part] = [it for it in records_in(folder) if isinstance(it, Part)]
    assert (part.reason, part.log) == ("sealed", records_in(folder)[0].log)  # type: ignore[union-attr]


class _Interrupted(Journal):
    """In the middle of a record a signal handler writes to another log, for which a file has to be closed."""

    def _opened(self) -> OpenPart:
        part = super()._opened()
        UPKEEP.release_one(Journal(self.folder, "another", "exchange"))
        return part


def test_a_journal_in_the_middle_of_a_record_is_not_closed_for_a_signal_handler(folder: Path) -> None:
    log = _Interrupted(folder, NAME, "exchange")
    assert log.append(start())
    assert log.append(note("one"))
    assert (notes_in(folder), log.lost) == (["one"], 0)
