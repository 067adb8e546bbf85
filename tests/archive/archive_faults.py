"""Runs the archive again and again, and each time another of its steps fails: by a kill, or an error of the disk.

`python -m tests.archive.archive_faults FOLDER` prints how many steps there were. It is a program of its own because it
forks: the child makes the fault, the parent looks at what is left.
"""

import errno
import os
import shutil
import signal
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

from agent_logger.archive.collect import ArchiveReport
from agent_logger.archive.layout import archive_path, copies, folders
from agent_logger.archive.run import archive_all, seal_archive
from agent_logger.files import foreign

STEPS = (
    "open",
    "write",
    "rename",
    "link",
    "unlink",
    "utime",
    "fdatasync",
    "fsync",
    "mkdir",
    "fchmod",
    "chmod",
)
LINES = [b'{"n":%d}\n' % number for number in range(2000)]
OLD = {
    "projects/-p/aaa.jsonl": b"".join(LINES[:1000]),  # will grow, and is sealed
    "projects/-p/bbb.jsonl": b"".join(LINES[:500]),  # will grow
    "projects/-p/memory/MEMORY.md": b"old memories\n",  # will be written anew
    "projects/-p/ccc.jsonl": b"".join(LINES[:10]),  # will be written anew, and is sealed
}
NEW = {
    "projects/-p/aaa.jsonl": b"".join(LINES),
    "projects/-p/bbb.jsonl": b"".join(LINES[:1500]),
    "projects/-p/memory/MEMORY.md": b"new memories, more of them\n",
    "projects/-p/ccc.jsonl": b"".join(LINES[5:10]),
    "projects/-p/ddd.jsonl": b"".join(LINES[:700]),  # is new
}


def write(root: Path, files: dict[str, bytes]) -> None:
    for name, text in files.items():
        path = root / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_bytes(text)


def prepare(folder: Path) -> Path:
    """The home, with the archive of `OLD`, and the agent's files as they are in `NEW`."""
    shutil.rmtree(folder, ignore_errors=True)
    home, root = folder / "own", folder / ".claude"
    os.environ["HOME"] = str(folder)
    write(root, OLD)
    os.utime(root / "projects/-p/bbb.jsonl", (4e9, 4e9))  # is not sealed
    archive_all(home)
    seal_archive(home, 0, ArchiveReport())
    write(root, NEW)
    return home


def fault_at(number: int, fail: Callable[[], None]) -> None:
    """In this process, the step of that number does not come to pass."""
    left = [number]

    def counted(original: Callable[..., Any]) -> Callable[..., Any]:
        def step(*args: Any, **kwargs: Any) -> Any:
            left[0] -= 1
            if left[0] == 0:
                if original is os.write and len(args[1]) > 1:
                    original(args[0], args[1][: len(args[1]) // 2])  # half of it does
                fail()
            return original(*args, **kwargs)

        return step

    for name in STEPS:
        setattr(os, name, counted(getattr(os, name)))


def killed() -> None:
    os.kill(os.getpid(), signal.SIGKILL)


def disk_full() -> None:
    raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))


def kept(home: Path) -> dict[str, bytes]:
    every = [copy for folder in folders(home) for copy in copies(folder)]
    return {"/".join(copy.parts): b"".join(foreign.chunks(copy.target)) for copy in every}


def generations(home: Path, name: str) -> list[bytes]:
    (folder,) = folders(home)
    path = folder.copies / name
    return [b"".join(foreign.chunks(it)) for it in path.parent.glob(f"{path.name}~*") if it.suffix != ".zst"]


def check_nothing_is_lost(home: Path) -> None:
    now = kept(home)
    for name, text in OLD.items():
        found = now.get(name, b"")
        is_on_the_way = found.startswith(text) and NEW[name].startswith(found)
        assert is_on_the_way or text in (found, *generations(home, name)), f"{name}: {found[:50]!r}"


def check_all_is_there(home: Path) -> None:
    assert kept(home) == NEW
    for name in ("projects/-p/memory/MEMORY.md", "projects/-p/ccc.jsonl"):
        assert OLD[name] in generations(home, name), name
    for it in archive_path(home).rglob("*~"):
        assert it.name.startswith("."), it  # in the making, and swept away later


def attempt(folder: Path, number: int, fail: Callable[[], None]) -> bool:
    """`False` if there is no such step."""
    home = prepare(folder)
    child = os.fork()
    if child == 0:
        fault_at(number, fail)
        report = archive_all(home)
        os._exit(3 if report.failed else 0)
    _, status = os.waitpid(child, 0)
    check_nothing_is_lost(home)
    report = archive_all(home)
    assert not report.failed, report.failed
    check_all_is_there(home)
    return os.WIFSIGNALED(status) or os.waitstatus_to_exitcode(status) != 0


def main(folder: Path) -> int:
    steps = 0
    for fail, stride in ((killed, 1), (disk_full, 2)):
        number = 1
        missed = 0  # a step whose failure harms nothing, as that of a sweep
        while missed < 5:
            missed = 0 if attempt(folder, number, fail) else missed + 1
            number += stride
            steps += 1
        steps -= missed
    print(steps)
    return 0


if __name__ == "__main__":
    sys.exit(main(Path(sys.argv[1])))
