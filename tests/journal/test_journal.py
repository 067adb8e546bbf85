import fcntl
import hmac
import json
import os
import re
import threading
from pathlib import Path

import msgspec
import pytest

from agent_logger import platform
from agent_logger.files.parts import PartFile, live_files_of, parts_of
from agent_logger.home.layout import install_key
from agent_logger.home.part_origin import machine_of
from agent_logger.journal.journal import Journal
from agent_logger.journal.open_part import OpenPart
from agent_logger.journal.seal import seal
from agent_logger.journal.sync import UPKEEP
from agent_logger.logs.log_records import read_exchanges, read_log
from agent_logger.model.records import ExchangeRecord, Gap, Kind, Part, Recovered, Unknown
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


def test_appended_records_are_in_the_file_immediately(folder: Path) -> None:
    log = journal(folder)
    assert log.append(start())
    assert log.append(note("one"))
    assert notes_in(folder) == ["one"]
    assert (log.written, log.lost) == (2, 0)


def test_the_first_record_names_its_log_part_machine_and_writer(folder: Path) -> None:
    journal(folder).append(start())
    line = first_line(folder / f"{NAME}.jsonl")
    assert line["type"] == "session_start"
    writer = line["writer"]
    assert isinstance(writer, dict)
    assert writer["pid"] == os.getpid()
    assert line["log"] != line["part"]


@pytest.fixture
def key(home: Path) -> bytes:
    return install_key(home / ".agent-logger")


def mac_by_hand(line: dict[str, object], key: bytes) -> str:
    """The mac as docs/FORMATS.md describes it."""
    text = "\n".join(["part", *(str(line[name]) for name in ("log", "part", "machine"))])
    return "v1:" + hmac.new(key, text.encode(), "sha512").hexdigest()[:64]


def test_each_part_begins_with_a_mac_of_its_ids_under_the_install_key(folder: Path, key: bytes) -> None:
    journals = [journal(folder), journal(folder)]
    for log in journals:
        log.append(start())
    heads = [first_line(folder / name) for name in (f"{NAME}.jsonl", f"{NAME}.p2.jsonl")]
    assert [head["type"] for head in heads] == ["session_start", "part"]
    assert [head["mac"] for head in heads] == [mac_by_hand(head, key) for head in heads]
    assert heads[0]["mac"] != heads[1]["mac"]


@pytest.mark.parametrize("kind", ["exchange", "wire", "transcript"])
def test_a_verbatim_first_line_leaves_the_mac_to_its_part_record(folder: Path, key: bytes, kind: Kind) -> None:
    log = Journal(folder, NAME, kind)
    log.append(Unknown(b'{"type":"user"}'))
    log.append(Unknown(b'{"type":"assistant"}'))
    head, *others = (folder / f"{NAME}.jsonl").read_bytes().splitlines()
    line = json.loads(head)
    assert line["mac"] == mac_by_hand(line, key)
    assert b"mac" not in b"".join(others)


def test_the_machine_is_the_same_in_all_logs_of_one_installation_and_hides_its_name(
    folder: Path, home: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    for name in "ab":
        install_key(home / ".agent-logger")
        Journal(folder, name, "exchange").append(start())
    install_key(home / "other")
    monkeypatch.setenv("AGENT_LOGGER_HOME", str(home / "other"))
    Journal(folder, "c", "exchange").append(start())
    machines = [first_line(folder / f"{name}.jsonl")["machine"] for name in "abc"]
    assert machines[0] == machines[1] != machines[2]
    assert all(re.fullmatch("[0-9a-f]{32}", str(machine)) for machine in machines)


def test_another_machine_with_the_same_key_has_another_id(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    key, ids = bytes(32), []
    for content in (b"3d1219c7\n", b"77aa\n", b"\n", None):
        file = tmp_path / "machine-id"
        file.unlink(missing_ok=True)
        if content is not None:
            file.write_bytes(content)
        monkeypatch.setattr(platform, "MACHINE_ID", file)
        machine_of.cache_clear()
        ids.append(machine_of(key))
    machine_of.cache_clear()
    assert len(set(ids)) == 3 and ids[2] == ids[3], "without an id, the name of the machine counts"


@pytest.mark.parametrize("obstacle", ["no home", "short key", "home is a file", "key is a folder"])
def test_a_part_begins_without_a_mac_if_the_key_cannot_be_used(folder: Path, home: Path, obstacle: str) -> None:
    ours = home / ".agent-logger"
    if obstacle == "home is a file":
        ours.write_text("")
    elif obstacle != "no home":
        ours.mkdir()
        (ours / "key").mkdir() if obstacle == "key is a folder" else (ours / "key").write_bytes(b"short")
    log = journal(folder)
    assert log.append(start()) and log.append(note("one"))
    line = first_line(folder / f"{NAME}.jsonl")
    assert "mac" not in line and "machine" not in line and line["log"]
    assert ours.exists() == (obstacle != "no home"), "a log creates no home"
    assert (notes_in(folder), log.lost) == (["one"], 0)


def test_a_verbatim_first_line_is_preceded_by_a_part_record(folder: Path) -> None:
    verbatim = b'{"type": "user",  "uuid":"1"}'
    Journal(folder, NAME, "transcript").append(Unknown(verbatim))
    head, line = (folder / f"{NAME}.jsonl").read_bytes().splitlines()
    assert msgspec.json.decode(head)["reason"] == "verbatim"
    assert line == verbatim


def test_concurrent_threads_write_whole_lines_in_order(folder: Path) -> None:
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


def test_pending_is_zero_after_a_sync(folder: Path) -> None:
    log = journal(folder)
    log.append(start())
    UPKEEP.finish()
    assert log.pending == 0


def test_files_and_folders_are_accessible_to_the_owner_only(folder: Path) -> None:
    old = os.umask(0)
    try:
        log = journal(folder)
        log.append(start())
        log.begin(live_start("x"))
    finally:
        os.umask(old)
    assert folder.stat().st_mode & 0o777 == 0o700
    assert {path.stat().st_mode & 0o777 for path in folder.iterdir()} == {0o600}


def test_a_created_folder_gets_a_gitignore_and_an_existing_folder_does_not(folder: Path, tmp_path: Path) -> None:
    journal(folder).append(start())
    assert (folder / ".gitignore").read_text() == "*\n"
    Journal(tmp_path, "theirs", "exchange").append(start())
    assert not (tmp_path / ".gitignore").exists()


@pytest.mark.parametrize("kind", ["symbolic", "hard", "dangling"])
def test_a_linked_log_is_not_written_to_and_a_new_part_starts(folder: Path, tmp_path: Path, kind: str) -> None:
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


def test_bodies_are_not_written_through_a_symlink(folder: Path, tmp_path: Path) -> None:
    log = journal(folder)
    assert log.append(start())
    (tmp_path / "theirs").mkdir()
    (folder / f"{NAME}.bodies").symlink_to(tmp_path / "theirs")
    assert not log.append(exchange("1", "x" * (9 << 20)))
    assert log.failing and "is a symbolic link; remove it" in log.failing
    assert not list((tmp_path / "theirs").iterdir())


# ---------------------------------------------------------------- parts


def test_a_second_writer_starts_its_own_part(folder: Path) -> None:
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
def test_a_brief_ownership_check_does_not_cause_a_new_part(folder: Path, seconds: float, parts: int) -> None:
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


def test_the_next_writer_continues_the_part_of_a_closed_journal(folder: Path) -> None:
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


def test_record_order_across_parts_is_independent_of_the_clock(folder: Path) -> None:
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


def test_the_next_owner_terminates_and_reports_a_torn_line(folder: Path) -> None:
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


def test_an_empty_part_left_by_a_killed_process_is_reused(folder: Path) -> None:
    folder.mkdir()
    (folder / f"{NAME}.jsonl").touch()
    journal(folder).append(start())
    assert "log" in first_line(folder / f"{NAME}.jsonl")
    assert len(parts_of(folder, NAME)) == 1


# ---------------------------------------------------------------- exchanges in flight


def test_messages_of_an_exchange_in_flight_are_readable_immediately(folder: Path) -> None:
    log = journal(folder)
    log.begin(live_start("x"))
    log.add(live("x", "roses"))
    log.add(live("x", "violets"))
    [found] = read_exchanges(folder, NAME)
    assert (found.user_input, [it.text for it in found.messages]) == ("do it", ["roses", "violets"])
    assert not found.complete


def test_an_ended_exchange_is_logged_once_and_its_live_file_removed(folder: Path) -> None:
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
    log.release()
    log.after_fork()


def test_the_next_owner_recovers_an_orphaned_exchange(folder: Path) -> None:
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


def test_an_orphaned_exchange_in_a_log_without_records_is_recovered(folder: Path) -> None:
    one = journal(folder)
    one.begin(live_start("x"))
    abandon(one)
    journal(folder).open()
    assert [it.end_reason for it in read_exchanges(folder, NAME)] == ["recovered"]
    assert first_line(folder / f"{NAME}.jsonl")["type"] == "exchange"
    assert "log" in first_line(folder / f"{NAME}.jsonl")


def test_an_exchange_is_logged_once_after_a_crash_before_live_file_removal(folder: Path) -> None:
    one = journal(folder)
    one.begin(live_start("x"))
    one.append(exchange("x", "roses"))
    abandon(one)
    assert len(live_paths(folder)) == 1
    journal(folder).open()
    UPKEEP.finish()
    assert [it.complete for it in read_exchanges(folder, NAME)] == [True]
    assert live_paths(folder) == []


def test_an_exchange_of_a_running_process_is_not_recovered(folder: Path) -> None:
    one, two = journal(folder), journal(folder)
    one.begin(live_start("x"))
    two.append(note("two"))
    UPKEEP.finish()
    assert one.add(live("x", "roses"))
    assert [it.end_reason for it in read_exchanges(folder, NAME)] == [None]


def test_an_exchange_in_flight_continues_in_the_next_part(folder: Path) -> None:
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


def test_lost_records_are_counted_and_reported_by_a_gap_record(folder: Path) -> None:
    time = FakeTime()
    log = journal(folder, clock=time.clock)
    folder.parent.joinpath("sessions").write_text("a file where the folder should be")
    assert not log.append(start())
    assert not log.append(note("lost, within the back-off"))
    assert (log.written, log.lost, log.failing) == (0, 2, "Not a directory")
    folder.unlink()
    time.pass_by(1)
    assert log.append(note("kept"))
    assert log.failing is None
    part, gap, kept = records_in(folder)
    assert isinstance(part, Part)
    assert isinstance(gap, Gap)
    assert (gap.lost, gap.seconds, gap.reason) == (2, 1.0, "Not a directory")
    assert kept == note("kept")


def test_closing_the_journal_writes_a_pending_gap(folder: Path) -> None:
    log = journal(folder)
    folder.write_text("in the way")
    log.append(start())
    folder.unlink()
    log.close()
    assert [it.lost for it in records_in(folder) if isinstance(it, Gap)] == [1]


def test_setting_the_clock_back_gives_no_negative_gap(folder: Path) -> None:
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


def test_removing_an_open_log_starts_a_new_file(folder: Path) -> None:
    log = journal(folder)
    log.append(start())
    UPKEEP.finish()
    (folder / f"{NAME}.jsonl").unlink()
    log.append(note("into a new one"))
    log.append(note("there, too"))
    assert notes_in(folder) == ["into a new one", "there, too"]


def test_renaming_an_open_log_starts_a_new_file(folder: Path) -> None:
    log = journal(folder)
    log.append(start())
    UPKEEP.finish()
    (folder / f"{NAME}.jsonl").rename(folder / "aside.jsonl")
    log.append(note("into the one that is aside"))
    UPKEEP.finish()
    log.append(note("into a new one"))
    assert notes_in(folder) == ["into a new one"]
    assert "into the one" in (folder / "aside.jsonl").read_text()


def test_after_a_failed_sync_records_are_written_to_a_new_part(folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    log = journal(folder)
    log.append(start())

    def fail(fd: int) -> None:
        raise OSError(5, "Input/output error")

    with monkeypatch.context() as patch:  # before the record: on a busy machine the thread that syncs may be first
        patch.setattr("agent_logger.platform.sync", fail)
        log.append(note("may be gone after a power cut"))
        UPKEEP.finish()  # waits for the thread, if that was first
    before = (folder / f"{NAME}.jsonl").read_bytes()
    assert log.append(note("in a new part"))
    assert (folder / f"{NAME}.jsonl").read_bytes() == before
    found = records_in(folder)
    [part] = [it for it in found if isinstance(it, Part)]
    [gap] = [it for it in found if isinstance(it, Gap)]
    assert (part.reason, part.after) == ("sync_failed", first_line(folder / f"{NAME}.jsonl")["part"])
    assert gap.lost == 0
    assert gap.unsynced in (1, 2), "the first record may have been synced"


# ---------------------------------------------------------------- sealed parts


def test_a_sealed_log_continues_in_a_new_part(folder: Path) -> None:
    one = journal(folder)
    one.append(start())
    one.append(note("sealed"))
    one.close()
    assert seal(PartFile(folder, NAME))
    journal(folder).append(note("plain"))
    assert notes_in(folder) == ["sealed", "plain"]
    [part] = [it for it in records_in(folder) if isinstance(it, Part)]
    assert (part.reason, part.log) == ("sealed", records_in(folder)[0].log)  # type: ignore[union-attr]


def test_a_signal_handler_does_not_close_a_journal_during_an_append(
    folder: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    log = journal(folder)
    assert log.append(start())
    append = OpenPart.append

    def interrupted(part: OpenPart, line: bytes) -> None:
        """A signal handler writes to another log, for which a file has to be closed."""
        UPKEEP.release_one(Journal(folder, "another", "exchange"))
        append(part, line)

    monkeypatch.setattr(OpenPart, "append", interrupted)
    assert log.append(note("one"))
    assert (notes_in(folder), log.lost) == (["one"], 0)
