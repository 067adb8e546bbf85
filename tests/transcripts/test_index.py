"""`sessions-index.json` is derived: whatever is in it, a list tells what is in the folder."""

import json
import os
import random
import threading
from collections.abc import Callable
from pathlib import Path

import pytest

from agent_logger import FileStorage, StoredSession
from agent_logger.files.parts import PartFile
from agent_logger.transcripts import store
from agent_logger.transcripts.testing.storage import user

Listed = list[tuple[str, str | None, int]]


@pytest.fixture
def storage(tmp_path: Path) -> FileStorage:
    storage = FileStorage(tmp_path / "root", tmp_path)
    for name in "abc":
        storage.append(name, user(f"The prompt of {name}"))
    storage.close()
    return storage


def index_of(storage: FileStorage) -> Path:
    return storage.folder / "sessions-index.json"


def listed(storage: FileStorage) -> Listed:
    return sorted((it.id, it.first_prompt, it.message_count) for it in storage.list())


TRUE = [(name, f"The prompt of {name}", 1) for name in "abc"]


def test_the_index_contains_the_listed_session_data(storage: FileStorage, tmp_path: Path) -> None:
    index = json.loads(index_of(storage).read_text())
    entry = index["entries"][0]
    told = ("sessionId", "firstPrompt", "summary", "messageCount", "projectPath")
    assert [entry[name] for name in told] == ["a", "The prompt of a", "The prompt of a", 1, str(tmp_path)]
    assert entry["created"] <= entry["modified"]
    assert entry["gitBranch"] is None
    assert Path(entry["fullPath"]).exists()


def test_the_index_is_written_on_close_and_list_but_not_on_append(storage: FileStorage) -> None:
    before = index_of(storage).stat()
    for _ in range(5):
        storage.append("a", user("more"))
    assert index_of(storage).stat() == before
    assert listed(storage)[0][2] == 6
    after = index_of(storage).stat()
    assert after.st_ino != before.st_ino
    assert listed(storage)[0][2] == 6
    assert index_of(storage).stat() == after  # nothing has changed, so nothing is written


def test_unchanged_sessions_are_not_read_again(storage: FileStorage, monkeypatch: pytest.MonkeyPatch) -> None:
    read: list[str] = []
    described = store._described

    def noted(log: PartFile) -> StoredSession | None:
        read.append(log.name)
        return described(log)

    monkeypatch.setattr(store, "_described", noted)
    assert listed(storage) == TRUE
    assert read == []
    storage.append("b", user("more"))
    storage.list()
    assert read == ["b"]


CORRUPTIONS: list[tuple[str, Callable[[bytes], bytes]]] = [
    ("empty", lambda _: b""),
    ("cut", lambda data: data[: len(data) // 2]),
    ("not JSON", lambda _: b"\0\xff not JSON"),
    ("a list", lambda _: b"[]"),
    ("no entries", lambda _: b'{"version":1,"entries":[],"digest":""}'),
    ("other types", lambda data: data.replace(b'"messageCount":1', b'"messageCount":"1"')),
    ("another number", lambda data: data.replace(b'"messageCount":1', b'"messageCount":7')),
    ("another prompt", lambda data: data.replace(b"prompt of a", b"prompt of z")),
    ("older", lambda data: data.replace(b'"version":1', b'"version":0')),
    ("nested", lambda _: b"[" * 100_000),
]


@pytest.mark.parametrize("corrupt", [it for _, it in CORRUPTIONS], ids=[name for name, _ in CORRUPTIONS])
def test_a_list_is_correct_and_repairs_a_corrupt_index(storage: FileStorage, corrupt: Callable[[bytes], bytes]) -> None:
    good = index_of(storage).read_bytes()
    index_of(storage).write_bytes(corrupt(good))
    assert listed(storage) == TRUE
    assert index_of(storage).read_bytes() == good


def test_a_list_is_correct_after_any_bit_flip_in_the_index(storage: FileStorage) -> None:
    good = index_of(storage).read_bytes()
    rng = random.Random(7)
    for _ in range(50):
        bad = bytearray(good)
        bad[rng.randrange(len(bad))] ^= 1 << rng.randrange(8)
        index_of(storage).write_bytes(bad)
        assert listed(storage) == TRUE, bytes(bad)


def test_a_list_is_correct_when_the_index_is_missing_or_unusable(storage: FileStorage) -> None:
    index_of(storage).unlink()
    assert listed(storage) == TRUE
    index_of(storage).unlink()
    index_of(storage).mkdir()
    assert listed(storage) == TRUE


def test_an_index_of_a_newer_version_is_not_overwritten(storage: FileStorage) -> None:
    newer = b'{"version":2,"entries":{"new":"form"},"more":1}'
    index_of(storage).write_bytes(newer)
    assert listed(storage) == TRUE
    storage.append("a", user("more"))
    storage.close()
    assert listed(storage)[0][2] == 2
    assert index_of(storage).read_bytes() == newer


def test_sessions_removed_or_added_by_other_processes_are_listed_correctly(storage: FileStorage) -> None:
    old = index_of(storage).read_bytes()
    (storage.folder / "a.jsonl").unlink()
    other = FileStorage(storage.root, storage.cwd)
    other.append("d", user("The prompt of d"))
    index_of(storage).write_bytes(old)  # by a process that knew nothing of it
    assert [name for name, _, _ in listed(storage)] == ["b", "c", "d"]


def test_a_replaced_session_file_is_read_again(storage: FileStorage) -> None:
    a = storage.folder / "a.jsonl"
    times = a.stat()
    data = a.read_bytes().replace(b"prompt of a", b"prompt of z")
    a.unlink()
    a.write_bytes(data)
    os.utime(a, ns=(times.st_atime_ns, times.st_mtime_ns))
    assert listed(storage)[0][1] == "The prompt of z"


def test_a_moved_folder_is_listed_at_its_new_path(storage: FileStorage, tmp_path: Path) -> None:
    storage.root.rename(tmp_path / "moved")
    moved = FileStorage(tmp_path / "moved", tmp_path)
    assert listed(moved) == TRUE
    paths = {it["fullPath"] for it in json.loads(index_of(moved).read_text())["entries"]}
    assert all(Path(path).exists() for path in paths)


def test_concurrent_lists_are_correct(storage: FileStorage) -> None:
    wrong: list[object] = []

    def work(number: int) -> None:
        own = FileStorage(storage.root, storage.cwd)
        for turn in range(10):
            own.append(f"t{number}", user("x"))
            counts = {it.id: it.message_count for it in own.list()}
            if counts.get(f"t{number}") != turn + 1 or any(counts.get(name) != 1 for name in "abc"):
                wrong.append(counts)
            own.close()

    threads = [threading.Thread(target=work, args=(number,)) for number in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert wrong == []
    assert [it.message_count for it in sorted(storage.list(), key=lambda it: it.id)] == [
        1,
        1,
        1,
        10,
        10,
        10,
        10,
    ]


def test_a_session_named_like_the_index_does_not_overwrite_the_index(storage: FileStorage) -> None:
    block = {"type": "tool_result", "tool_use_id": "t", "content": "x" * 40_000}
    storage.append("sessions-index.json", {"type": "user", "message": {"role": "user", "content": [block]}})
    storage.close()
    assert len(json.loads(index_of(storage).read_text())["entries"]) == 4


def test_projects_that_share_a_folder_name_are_listed_separately(tmp_path: Path) -> None:
    root = tmp_path / "root"
    for name in ("a_b", "a-b"):
        (tmp_path / name).mkdir()
        FileStorage(root, tmp_path / name).append(name, user("x"))
    storage = FileStorage(root, tmp_path)
    assert len(list((root / "projects").iterdir())) == 1
    assert [it.id for it in storage.list(tmp_path / "a_b")] == ["a_b"]
    assert [it.id for it in storage.list(tmp_path / "a-b")] == ["a-b"]
    assert len(storage.list()) == 2
