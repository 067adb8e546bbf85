"""Two processes keep one file at once: what either saw of it is in the copy, and nothing is taken for another file."""

import os
from pathlib import Path
from typing import Any

import pytest

from agent_logger.archive import copy as module
from agent_logger.archive.copy import copy_file, generations
from agent_logger.files import sealed
from agent_logger.files.parts import PartFile
from agent_logger.journal.seal import seal


def kept(path: Path, target: Path) -> str:
    source = os.open(path, os.O_RDONLY)
    try:
        return copy_file(source, target).change
    finally:
        os.close(source)


def write(path: Path, text: str) -> None:
    with path.open("a") as file:
        file.write(text)


def another_goes_first(monkeypatch: pytest.MonkeyPatch, where: object, name: str, path: Path, target: Path) -> None:
    """The file grows, and another process has kept that, just before we get to this."""
    real, times = getattr(where, name), 0

    def later(*arguments: Any) -> Any:
        nonlocal times
        times += 1
        if times == 1:
            write(path, "two\n")
            assert kept(path, target) == "grown"
        return real(*arguments)

    monkeypatch.setattr(where, name, later)


def test_a_copy_extended_while_waiting_for_the_lock_is_not_a_new_generation(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    path, target = tmp_path / "file", tmp_path / "copy.jsonl"
    write(path, "one\n")
    kept(path, target)
    write(path, "and\n")
    another_goes_first(monkeypatch, module, "lock_for_a_while", path, target)
    assert kept(path, target) == "same"
    assert (target.read_text(), generations(target)) == ("one\nand\ntwo\n", [])


def test_a_sealed_copy_extended_by_another_process_is_not_a_new_generation(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    path, target = tmp_path / "file", tmp_path / "copy.jsonl"
    write(path, "one\n")
    kept(path, target)
    assert seal(PartFile(tmp_path, "copy"))
    assert not target.exists()
    write(path, "and\n")
    another_goes_first(monkeypatch, sealed, "SealedFile", path, target)
    assert kept(path, target) == "same"
    assert (target.read_text(), generations(target)) == ("one\nand\ntwo\n", [])
