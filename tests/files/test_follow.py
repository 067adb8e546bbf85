"""A file that somebody else writes is followed, whatever becomes of it."""

import os
import stat
from pathlib import Path

import msgspec
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from agent_logger.files import follow, foreign
from agent_logger.files.follow import Follower, Position
from agent_logger.protocols.jsonl import Damage, JsonEntry


def values(follower: Follower) -> list[object]:
    return [it.value if isinstance(it, JsonEntry) else it.reason for it in follower.read()]


@pytest.fixture
def path(tmp_path: Path) -> Path:
    return tmp_path / "session.jsonl"


def grow(path: Path, data: bytes) -> None:
    with path.open("ab") as file:
        file.write(data)


def test_read_returns_only_lines_completed_since_the_last_read(path: Path) -> None:
    follower = Follower(path)
    assert values(follower) == []
    grow(path, b'{"n":1}\n{"n":')
    assert values(follower) == [{"n": 1}]
    assert values(follower) == []
    grow(path, b'2}\n\n{"n":3}')
    assert values(follower) == [{"n": 2}]
    grow(path, b"\n")
    found = follower.read()
    assert [(it.line, it.offset) for it in found] == [(4, 17)]
    assert (follower.position.offset, follower.position.size) == (25, 25)
    assert not follower.restarted


def test_a_bad_line_is_reported_once_its_newline_is_written(path: Path) -> None:
    follower = Follower(path)
    grow(path, b'{"n":1}\n{bad')
    assert values(follower) == [{"n": 1}]
    grow(path, b'\n{"n":2}\n')
    damage, entry = follower.read()
    assert isinstance(damage, Damage)
    assert (damage.line, damage.offset, damage.length) == (2, 8, 4)
    assert isinstance(entry, JsonEntry)


def test_a_saved_position_can_be_resumed(path: Path) -> None:
    follower = Follower(path)
    grow(path, b'{"n":1}\n')
    follower.read()
    kept = msgspec.json.encode(follower.position)
    grow(path, b'{"n":2}\n')
    later = Follower(path, msgspec.json.decode(kept, type=Position))
    assert (values(later), later.restarted) == ([{"n": 2}], False)


def test_a_position_stays_valid_after_the_file_is_renamed(path: Path) -> None:
    grow(path, b'{"n":1}\n')
    follower = Follower(path)
    follower.read()
    moved = path.rename(path.with_name("moved.jsonl"))
    assert (values(follower), follower.gone) == ([], True)
    grow(moved, b'{"n":2}\n')
    assert values(Follower(moved, follower.position)) == [{"n": 2}]


CHANGES = [
    pytest.param(lambda it: it.write_bytes(b'{"m":1}\n'), [{"m": 1}], id="written anew, shorter"),
    pytest.param(lambda it: it.write_bytes(b'{"m":1}\n' * 9), [{"m": 1}] * 9, id="written anew, longer"),
    pytest.param(lambda it: it.write_bytes(b'{"n":1}\n{"n":8}\n{"n":3}\n'), None, id="changed where it was read"),
    pytest.param(lambda it: os.truncate(it, 8), [{"n": 1}], id="cut"),
    pytest.param(lambda it: os.truncate(it, 0), [], id="emptied"),
]


@pytest.mark.parametrize(("change", "found"), CHANGES)
def test_a_rewritten_file_is_read_again_from_the_start(path: Path, change, found) -> None:  # type: ignore[no-untyped-def]
    grow(path, b'{"n":1}\n{"n":2}\n')
    follower = Follower(path)
    follower.read()
    change(path)
    assert values(follower) == (found if found is not None else [{"n": 1}, {"n": 8}, {"n": 3}])
    assert follower.restarted
    grow(path, b'{"new":1}\n')
    assert (values(follower), follower.restarted) == ([{"new": 1}], False)


def test_a_change_after_the_first_block_is_detected(path: Path) -> None:
    grow(path, b'{"n":1}\n' * 2000)
    follower = Follower(path)
    follower.read()
    os.truncate(path, 8 * 1900)
    grow(path, b'{"m":2}\n' * 200)
    assert len(follower.read()) == 2100
    assert follower.restarted


def test_a_change_in_the_first_bytes_only_is_detected(path: Path) -> None:
    grow(path, b'{"n":1}\n' * 2000)
    follower = Follower(path)
    follower.read()
    with path.open("r+b") as file:
        file.write(b'{"m":1}\n')
    assert len(follower.read()) == 2000
    assert follower.restarted


def test_a_replacement_file_is_read_from_the_start(path: Path) -> None:
    grow(path, b'{"n":1}\n{"n":2}\n')
    follower = Follower(path)
    follower.read()
    path.with_name("new").write_bytes(b'{"n":1}\n{"n":2}\n{"n":3}\n')
    path.with_name("new").replace(path)
    assert values(follower) == [{"n": 1}, {"n": 2}, {"n": 3}]
    assert follower.restarted


def test_a_deleted_file_returns_no_lines_until_the_file_is_recreated(path: Path) -> None:
    grow(path, b'{"n":1}\n')
    follower = Follower(path)
    follower.read()
    path.unlink()
    assert (values(follower), follower.gone) == ([], True)
    grow(path, b'{"n":7}\n')
    assert (values(follower), follower.gone) == ([{"n": 7}], False)


def test_symlinks_fifos_devices_and_folders_are_not_opened(tmp_path: Path, path: Path) -> None:
    grow(path, b'{"n":1}\n')
    link, fifo, folder = (tmp_path / name for name in ("link", "fifo", "folder"))
    link.symlink_to(path)
    os.mkfifo(fifo)
    folder.mkdir()
    for odd in (link, fifo, folder, Path("/dev/zero"), tmp_path / "absent"):
        follower = Follower(odd)
        assert (follower.read(), follower.gone) == ([], True), odd


def test_reading_does_not_modify_the_file(path: Path) -> None:
    grow(path, b'{"n":1}\n{"torn')
    path.chmod(0o400)
    os.utime(path, ns=(5, 7))
    Follower(path).read()
    told = path.stat()
    assert (path.read_bytes(), told.st_mtime_ns, stat.S_IMODE(told.st_mode)) == (b'{"n":1}\n{"torn', 7, 0o400)


def test_a_long_file_is_read_in_several_steps(path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(follow, "ONCE_BYTES", 1 << 20)
    monkeypatch.setattr(foreign, "READ_BYTES", 1 << 16)
    grow(path, b'{"n":"%s"}\n' % (b"x" * 1000) * 3000)
    follower = Follower(path)
    counts = [len(follower.read())]
    while follower.behind:
        counts.append(len(follower.read()))
    assert (sum(counts), len(counts)) == (3000, 3)


def test_an_overlong_line_is_reported_as_damage_once(path: Path) -> None:
    with path.open("wb") as file:
        file.truncate(65 << 20)
    follower = Follower(path)
    assert follower.read() == []
    grow(path, b'\n{"n":1}\n')
    damage, entry = follower.read()
    assert (damage.offset, damage.line, entry.line) == (0, 1, 2)
    assert isinstance(damage, Damage)
    assert damage.length == 65 << 20


@settings(max_examples=60, deadline=None)
@given(st.lists(st.integers(1, 12), max_size=30))
def test_every_line_is_returned_once_for_any_sequence_of_appends(
    tmp_path_factory: pytest.TempPathFactory, steps: list[int]
) -> None:
    path = tmp_path_factory.mktemp("follow") / "f.jsonl"
    whole = b"".join(b'{"n":%d}\n' % number for number in range(40))
    follower, found, at = Follower(path), [], 0
    for step in [*steps, len(whole)]:
        grow(path, whole[at : at + step])
        at += step
        found += values(follower)
        follower = Follower(path, follower.position)
    assert found == [{"n": number} for number in range(40)]
