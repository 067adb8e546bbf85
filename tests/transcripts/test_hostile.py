"""Hostile ids and a farm of links: nothing is opened to write, made, renamed or removed outside of the root."""

import json
import re
import subprocess
import sys
from pathlib import Path

import pytest

from agent_logger import FileStorage
from tests.hostile import NAMES

# A store that checks nothing removes what these name: so they lead no further than to the test's own folder.
UP = 6  # folders
IDS = [
    *(name.replace("/etc/", "{outside}/") if name.startswith("/") else name for name in NAMES),
    *("{outside}/passwd", "{outside}/", "/{outside}", "a\0b", "x" * 300, "é" * 200),
]

PROGRAM = """
import asyncio, json, os, sys
from agent_logger import FileStorage
from agent_logger.transcripts.sdk_store import AgentLoggerSessionStore
root, project, ids = sys.argv[1], sys.argv[2], json.loads(sys.argv[3])

def inside(event, given):
    # Whatever is wrong with the product, the machine that tests it must stay.
    if event == "shutil.rmtree" and not os.path.realpath(given[0]).startswith(root):
        os.write(2, f"{event} of {given[0]!r}".encode())
        os._exit(3)

sys.addaudithook(inside)
storage = FileStorage(root, project)
store = AgentLoggerSessionStore(storage)
block = [{"type": "tool_result", "tool_use_id": "../../../t", "content": "x" * 40000}]

async def tried(work, *given):
    try:
        done = work(*given)
        if asyncio.iscoroutine(done):
            await done
    except Exception as error:
        print(type(error).__name__, error)

async def main():
    for name in ids:
        message = {"type": "user", "message": {"role": "user", "content": block}, "cwd": name.replace(chr(0), "")}
        await tried(storage.append, name, message)
        for key in ({"project_key": name, "session_id": "s"}, {"project_key": "p", "session_id": name},
                    {"project_key": "p", "session_id": "s", "subpath": name}):
            await tried(store.append, key, [{"type": "user"}])
            await tried(store.load, key)
            await tried(store.delete, key)
        await tried(storage.load, name)
    await tried(storage.list)
    storage.close()
    for name in ids:
        await tried(storage.delete, name)

asyncio.run(main())
"""

CALLS = "openat,open,creat,mkdir,mkdirat,rename,renameat,renameat2,unlink,unlinkat,rmdir"
CALLS += ",link,linkat,symlink,symlinkat,chmod,fchmodat"
WRITES = re.compile(r"O_WRONLY|O_RDWR|O_CREAT|O_TRUNC|O_APPEND")
FREE = ("/dev/null", "/dev/tty")


@pytest.mark.needs("strace")
def test_hostile_ids_and_symlinks_write_nothing_outside_the_root(tmp_path: Path) -> None:
    project, outside, home = (tmp_path / name for name in ("project", "outside", "home"))
    root = tmp_path.joinpath(*"deeper"[:UP], "root")
    ids = [name.replace("{outside}", str(outside)) for name in IDS]
    for folder in (project, outside):
        folder.mkdir()
    (outside / "kept").write_text("kept")
    own = FileStorage(root, project).folder
    own.mkdir(parents=True)
    for link in (root / "projects" / "link", own / "link", own / "memory", own / "link.jsonl"):
        link.symlink_to(outside)
    trace = tmp_path / "trace"
    command = [sys.executable, "-B", "-c", PROGRAM, str(root), str(project), json.dumps(ids)]
    strace = ["strace", "-f", "--seccomp-bpf", "-s", "4096", "-o", str(trace), "-e", f"trace={CALLS}"]
    done = subprocess.run([*strace, *command], capture_output=True, text=True, timeout=100, check=False)
    assert done.returncode == 0, done.stderr
    assert "TypeError" not in done.stdout
    found = [line for line in trace.read_text(errors="replace").splitlines() if "= -1 " not in line]
    written = [path for line in found for path in _written(line)]
    assert len(written) > 200
    assert {it for it in written if not _is_inside(it, root, home) and it not in FREE} == set()
    assert [(it.name, it.read_text()) for it in outside.iterdir()] == [("kept", "kept")]


def _written(line: str) -> list[str]:
    if re.search(r"\bopen(?:at)?\(", line) and not WRITES.search(line):
        return []
    return re.findall(r'"((?:/|\.\./)[^"]*)"', line)


def _is_inside(path: str, *roots: Path) -> bool:
    real = Path(path).parent.resolve() / Path(path).name  # a link itself may be named, what it leads to may not
    return any(root == real or root in real.parents for root in roots)
