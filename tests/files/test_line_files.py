"""A part that is sealed while a reader looks for it is read all the same, and counts once."""

import random
from collections.abc import Callable
from pathlib import Path

import pytest

from agent_logger.files import foreign
from agent_logger.files.line_files import (
    entries,
    first_entries,
    part_entries,
    plain_size,
    raw_lines,
    read_at,
    whole_lines,
)
from agent_logger.files.parts import PartFile
from agent_logger.journal.journal import Journal
from agent_logger.journal.ownership import head_of
from agent_logger.journal.seal import seal
from agent_logger.logs.verify import log_files, summary, verify_file
from agent_logger.protocols.jsonl import Damage, JsonEntry
from tests.journal.logs import resume

READERS: dict[str, Callable[[PartFile], object]] = {
    "entries": lambda part: list(entries(part.path)),
    "entries of the part": lambda part: list(part_entries(part)),
    "lines": lambda part: list(raw_lines(part.path)),
    "whole lines of the part": lambda part: list(whole_lines(part)),
    "a piece": lambda part: read_at(part.path, 5, 50),
    "size": lambda part: plain_size(part.path),
}


@pytest.fixture
def part(tmp_path: Path) -> PartFile:
    journal = Journal(tmp_path, "log", "exchange")
    assert all(journal.append(resume(f"r{number}")) for number in range(9))
    journal.close()
    return PartFile(tmp_path, "log")


@pytest.mark.parametrize("read", READERS.values(), ids=READERS)
def test_a_part_that_is_sealed_after_its_path_was_determined_is_read(
    part: PartFile, read: Callable[[PartFile], object], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(PartFile, "existing_path", lambda part: part.path)
    plain = read(part)
    assert seal(part)
    assert read(part) == plain


@pytest.mark.parametrize("read", READERS.values(), ids=READERS)
def test_a_part_that_is_gone_is_named_in_the_error(part: PartFile, read: Callable[[PartFile], object]) -> None:
    part.path.unlink()
    if read is READERS["size"]:
        assert read(part) == 0
        return
    with pytest.raises(FileNotFoundError) as error:
        read(part)
    assert error.value.filename == str(part.path)


def test_a_part_that_is_being_sealed_is_verified_once(part: PartFile) -> None:
    (plain,) = log_files(part.folder)
    data, report = part.path.read_bytes(), verify_file(plain)
    assert seal(part)
    meanwhile = verify_file(plain)
    assert (meanwhile.records, meanwhile.damage) == (report.records, [])
    assert meanwhile.bytes == part.sealed_path.stat().st_size
    part.path.write_bytes(data)  # as before the last step
    assert summary(list(map(verify_file, log_files(part.folder)))).records == report.records


@pytest.fixture
def large_part(tmp_path: Path) -> PartFile:
    """A part whose lines do not pack well, in one frame."""
    journal = Journal(tmp_path, "large", "exchange")
    chance = random.Random(1)
    assert all(journal.append(resume(f"r{number}", chance.randbytes(50_000).hex())) for number in range(40))
    journal.close()
    return PartFile(tmp_path, "large")


def test_for_the_head_of_a_sealed_part_not_all_of_it_is_unpacked(large_part: PartFile) -> None:
    head, every = head_of(large_part), list(part_entries(large_part))
    assert seal(large_part)
    before = foreign.work.bytes
    assert head_of(large_part) == head
    assert foreign.work.bytes - before < plain_size(large_part.sealed_path) / 2
    assert list(first_entries(large_part)) == every


@pytest.mark.parametrize("kept", [0.3, 0.9, 0.999])
def test_the_head_of_a_damaged_sealed_part_is_read_up_to_the_damage(large_part: PartFile, kept: float) -> None:
    plain = list(first_entries(large_part))
    assert seal(large_part)
    data = bytearray(large_part.sealed_path.read_bytes())
    at = int(len(data) * kept) - 100
    data[at : at + 50] = bytes(50)
    large_part.sealed_path.write_bytes(data)
    assert [type(entry) for entry in part_entries(large_part)] == [Damage]
    *before, damage = first_entries(large_part)
    whole = [entry for entry in before if isinstance(entry, JsonEntry)]
    assert isinstance(damage, Damage)
    assert whole[:5] == plain[:5]
