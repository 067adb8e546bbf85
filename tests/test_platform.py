"""Two that do the same at the same time, in one process or in two."""

import os
import threading
import time
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pytest

from agent_logger import platform
from agent_logger.home.layout import prepare_log_folder
from agent_logger.platform import Held, replace_file


def test_replacing_a_file_from_two_threads_leaves_one_complete_version(
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


def test_two_processes_starting_concurrently_can_prepare_a_log_folder(
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


def test_a_forked_child_holds_no_lock_of_its_parent(tmp_path: Path) -> None:
    path = tmp_path / "file"
    held = platform.open_file(path, create=True)
    assert platform.lock(held)
    read_end, write_end = os.pipe()
    child = os.fork()
    if child == 0:
        os.close(write_end)
        os.read(read_end, 1)  # until the parent has looked
        os._exit(0)
    try:
        assert platform.is_locked(path)
        held.close()
        until = time.monotonic() + 10  # the child may not have begun yet
        while platform.is_locked(path) and time.monotonic() < until:
            time.sleep(0.01)
        assert not platform.is_locked(path)
    finally:
        os.close(write_end)
        os.waitpid(child, 0)
        os.close(read_end)


def test_of_two_that_want_a_file_while_a_third_looks_at_it_one_owns_it(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(platform, "LOOK_SECONDS", 3.0)
    path = tmp_path / "file"
    looker, *owners = (platform.open_file(path, create=not path.exists()) for _ in range(3))
    assert platform.lock(looker, shared=True)
    threading.Timer(0.2, looker.close).start()
    with ThreadPoolExecutor(2) as pool:
        assert sorted(pool.map(platform.lock_past_looks, owners)) == [False, True]


def test_work_in_a_folder_may_ask_for_the_same_folder_again(tmp_path: Path) -> None:
    began = time.monotonic()
    with platform.exclusive_in(tmp_path), platform.exclusive_in(tmp_path):
        pass
    assert time.monotonic() - began < platform.WAIT_SECONDS / 2


def test_a_folder_is_free_for_another_when_the_outermost_work_ends(tmp_path: Path) -> None:
    order = []

    def work_of_another() -> None:
        with platform.exclusive_in(tmp_path):
            order.append("another")

    with ThreadPoolExecutor() as threads, platform.exclusive_in(tmp_path):
        with platform.exclusive_in(tmp_path):
            waiting = threads.submit(work_of_another)
        time.sleep(0.05)
        order.append("first")
    waiting.result()
    assert order == ["first", "another"]
