"""Two that do the same at the same time, in one process or in two."""

from pathlib import Path

import pytest

from agent_logger import platform
from agent_logger.home.layout import prepare_log_folder
from agent_logger.platform import Held, replace_file


def test_a_file_that_two_threads_replace_is_one_of_both_as_a_whole(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    path, write, writes = tmp_path / "file", Held.write, 0

    def after_another(held: Held, data: bytes) -> None:
        nonlocal writes
        writes += 1
        if writes == 1:
            replace_file(path, b"theirs")
            assert path.read_bytes() == b"theirs"
        write(held, data)

    monkeypatch.setattr(Held, "write", after_another)
    replace_file(path, b"ours")
    assert path.read_bytes() == b"ours"
    assert [it.name for it in tmp_path.iterdir() if it.is_file()] == ["file"]


def test_two_that_start_at_once_can_both_write_to_a_log_folder(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    open_file = platform.open_file

    def after_another(path: Path, *, create: bool = False, top: Path | None = None) -> Held:
        if path.name.startswith(".write-test"):
            path.touch()
        return open_file(path, create=create, top=top)

    monkeypatch.setattr(platform, "open_file", after_another)
    prepare_log_folder(tmp_path / "logs")
    assert [it.name for it in (tmp_path / "logs").iterdir()] == [".gitignore"]
