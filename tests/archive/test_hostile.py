"""Nothing outside the folders of agents is opened, and nothing outside our own written, whatever names say."""

import json
import os
import re
import socket
import subprocess
import sys
from pathlib import Path

import pytest

from agent_logger.errors import SourceError
from agent_logger.files.foreign import opened_below
from tests.hostile import SHORT

pytestmark = pytest.mark.needs("strace")

SESSION = "707575f7-6966-4682-abc3-e62e1560a136"
SECRET = "the secret of somebody else"

IDS = [*SHORT, "a" * 5000, SESSION + "/../../x", SESSION + "\u2028"]


def plant(home: Path, outside: Path) -> None:
    """Sessions, and among them everything that could lead elsewhere."""
    outside.mkdir()
    for name in ("secret", "secret.jsonl", f"{SESSION}.jsonl", "opencode.db", "MEMORY.md"):
        (outside / name).write_text(SECRET)
    (outside / "folder").mkdir()
    (outside / "folder" / f"{SESSION}.jsonl").write_text(SECRET)
    projects = home / ".claude" / "projects"
    (projects / "-p" / SESSION / "subagents").mkdir(parents=True)
    (projects / "-p" / f"{SESSION}.jsonl").write_text('{"type":"user"}\n')
    (projects / "-p" / "memory").symlink_to(outside)
    (projects / "-p" / SESSION / "tool-results").symlink_to(outside / "folder")
    (projects / "-p" / SESSION / "subagents" / "agent-1.jsonl").symlink_to(outside / "secret.jsonl")
    (projects / "-linked").symlink_to(outside / "folder")
    (projects / "-loop").symlink_to(projects)
    (projects / "-p" / "self.jsonl").symlink_to("self.jsonl")
    (projects / "-p" / "absolute.jsonl").symlink_to("/etc/passwd")
    os.mkfifo(projects / "-p" / "fifo.jsonl")
    bound = socket.socket(socket.AF_UNIX)
    here = os.getcwd()
    os.chdir(projects)
    bound.bind("s.jsonl")
    os.chdir(here)
    bound.close()
    (home / ".claude" / "file-history").symlink_to(outside)
    (home / ".claude" / "history.jsonl").symlink_to(outside / "secret.jsonl")
    (home / ".codex").mkdir()
    (home / ".codex" / "sessions").symlink_to(outside)
    (home / ".gemini" / "tmp" / "p").mkdir(parents=True)
    (home / ".gemini" / "tmp" / "p" / "chats").symlink_to(outside / "folder")
    (home / ".local" / "share" / "opencode").mkdir(parents=True)
    (home / ".local" / "share" / "opencode" / "opencode.db").symlink_to(outside / "opencode.db")


CALLS = "open,openat,creat,mkdir,mkdirat,rename,renameat,renameat2,link,linkat,symlink,symlinkat,unlink,unlinkat"
AT = re.compile(r'(?:(?:AT_FDCWD|\d+)<(?P<folder>[^>]*)>, )?"(?P<name>(?:[^"\\]|\\.)*)"')
ARCHIVE = (sys.executable, "-m", "agent_logger", "archive")


def traced(tmp_path: Path, *command: str) -> tuple[subprocess.CompletedProcess[bytes], list[str]]:
    """What the command said, and every call of the system with a path that came to something."""
    log = tmp_path / "strace"
    line = ["strace", "-f", "-y", "-s", "8192", "-o", str(log), "-e", f"trace={CALLS}", *command]
    done = subprocess.run(line, capture_output=True, cwd=tmp_path, check=False, stdin=subprocess.DEVNULL)
    return done, [it for it in log.read_text(errors="replace").splitlines() if "= -1" not in it]


def of_outside(calls: list[str], outside: Path) -> list[str]:
    return [it for it in calls if str(outside) in it or "passwd" in it]


def written(calls: list[str], tmp_path: Path) -> set[Path]:
    """What was opened for writing, made, renamed or removed below the test's folder."""
    changing = [it for it in calls if re.search(r"O_WRONLY|O_RDWR", it) or not re.search(r"\bopen(at)?\(", it)]
    named = [Path(it["folder"] or tmp_path, it["name"]) for call in changing for it in AT.finditer(call)]
    return {it for it in named if it.is_relative_to(tmp_path)}


def test_archive_follows_no_links_and_writes_only_below_its_own_folder(home: Path, tmp_path: Path) -> None:
    outside = tmp_path / "outside"
    plant(home, outside)
    done, calls = traced(tmp_path, *ARCHIVE)
    assert done.returncode == 0, done.stderr
    assert of_outside(calls, outside) == []
    own = home / ".agent-logger"
    assert written(calls, tmp_path)
    assert not [it for it in written(calls, tmp_path) if not it.is_relative_to(own)]
    kept = [it for it in (own / "archive").rglob("*") if it.is_file() and it.name != ".folder"]
    assert [it.name for it in kept] == [f"{SESSION}.jsonl"]
    assert not [it for it in own.rglob("*") if it.is_symlink()]


RESTORE_ALL = """
import sys, json
from pathlib import Path
from agent_logger.errors import AgentLoggerError
from agent_logger.archive import restore
home = Path(sys.argv[2])
for wanted in json.loads(sys.argv[1]):
    try:
        restore.carry_out(restore.plan(home, restore.find(home, wanted)))
    except AgentLoggerError:
        print('refused')
"""


def test_hostile_ids_are_refused_without_opening_or_writing_files(home: Path, tmp_path: Path) -> None:
    """One process for all of them: to start one takes longer than what it does."""
    outside = tmp_path / "outside"
    plant(home, outside)
    traced(tmp_path, *ARCHIVE)
    own = str(home / ".agent-logger")
    done, calls = traced(tmp_path, sys.executable, "-c", RESTORE_ALL, json.dumps(IDS), own)
    assert (done.returncode, done.stdout.split()) == (0, [b"refused"] * len(IDS)), done.stderr
    assert of_outside(calls, outside) == []
    assert written(calls, tmp_path) == set()


def test_a_link_created_after_the_folder_was_listed_is_not_followed(home: Path, tmp_path: Path) -> None:
    plant(home, tmp_path / "outside")
    root = home / ".claude" / "projects"
    for linked in (f"-linked {SESSION}.jsonl", "-p memory MEMORY.md", "-p absolute.jsonl"):
        with pytest.raises((OSError, SourceError)), opened_below(root, linked.split(" ")):
            pass
    for out in (f".. projects -p {SESSION}.jsonl", "-p/.. x", ""):
        with pytest.raises(SourceError, match="is outside this folder"), opened_below(root, out.split(" ")):
            pass


@pytest.mark.parametrize("wanted", ["../outside/secret", "\x1b[31m", "", "/etc/passwd"])
def test_restore_refuses_hostile_ids_with_a_one_line_error(home: Path, tmp_path: Path, wanted: str) -> None:
    plant(home, tmp_path / "outside")
    line = [sys.executable, "-m", "agent_logger", "archive", "--yes", f"--restore={wanted}"]
    done = subprocess.run(line, capture_output=True, check=False)
    assert (done.returncode, done.stdout, done.stderr.count(b"\n")) == (1, b"", 1)
    assert b"\x1b" not in done.stderr


def test_restore_does_not_follow_a_link_in_the_target_path(home: Path, tmp_path: Path) -> None:
    outside = tmp_path / "outside"
    plant(home, outside)
    traced(tmp_path, *ARCHIVE)
    projects = home / ".claude" / "projects"
    (projects / "-p").rename(tmp_path / "away")
    (outside / "empty").mkdir()
    (projects / "-p").symlink_to(outside / "empty")
    before = sorted(outside.rglob("*"))
    done, _ = traced(tmp_path, *ARCHIVE, "--restore", SESSION, "--yes")
    assert done.returncode == 1
    assert sorted(outside.rglob("*")) == before
