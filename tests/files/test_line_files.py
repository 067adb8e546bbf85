"""A part that is sealed while a reader looks for it is read all the same, and counts once."""

from collections.abc import Callable
from pathlib import Path

import pytest

from agent_logger.files.line_files import entries, part_entries, plain_size, raw_lines, read_at, whole_lines
from agent_logger.files.parts import PartFile
from agent_logger.journal.journal import Journal
from agent_logger.journal.seal import seal
from agent_logger.logs.verify import log_files, summary, verify_file
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
