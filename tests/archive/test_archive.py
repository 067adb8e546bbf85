"""The archive: what agents delete stays, byte for byte, and goes back to where it was."""

import os
import shutil
import signal
import sqlite3
import subprocess
import sys
import tempfile
import time
from contextlib import closing
from pathlib import Path

import pytest

from agent_logger.agents.registry import AGENTS
from agent_logger.archive import restore
from agent_logger.archive.collect import ArchiveReport
from agent_logger.archive.layout import archive_path, copies, folders
from agent_logger.archive.run import archive_all, seal_archive
from agent_logger.archive.sessions import copies_of
from agent_logger.catalog.discovery.sessions import places
from agent_logger.files import foreign
from agent_logger.model.session import Session

DATA = Path(__file__).parents[1] / "data"
# Agents without a folder of their own: their files lie wherever the user was.
NAMED_BY_USER = {agent.name for agent in AGENTS if agent.location and agent.location.is_named_by_user}
TREES = [
    tree
    for tree in sorted(DATA.glob("*/*/*/home"))
    if any(tree.rglob("*.json*")) and tree.parts[-4] not in NAMED_BY_USER
]
SQL = sorted(DATA.glob("opencode/*/*/opencode.sql"))
SESSION = "707575f7-6966-4682-abc3-e62e1560a136"


@pytest.fixture
def own(home: Path) -> Path:
    return home / ".agent-logger"


def run(own: Path) -> ArchiveReport:
    report = archive_all(own)
    assert report.failed == []
    return report


def changes(report: ArchiveReport) -> tuple[int, int, int, int]:
    return report.new, report.grown, report.rewritten, report.bytes


def sealed(own: Path) -> ArchiveReport:
    report = ArchiveReport()
    seal_archive(own, 0, report)
    assert report.failed == []
    return report


def kept(own: Path) -> dict[str, bytes]:
    """Everything in the archive as it reads, sealed or not, by its path below the agent's folder."""
    every = [copy for folder in folders(own) for copy in copies(folder)]
    return {"/".join(copy.parts): b"".join(foreign.chunks(copy.target)) for copy in every}


def claude(home: Path, text: str, name: str = f"projects/-p/{SESSION}.jsonl") -> Path:
    path = home / ".claude" / name
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(text)
    return path


def older(path: str, own: Path) -> list[bytes]:
    found = [it for it in archive_path(own).rglob("*") if it.as_posix().partition(path)[1:2] == (path,)]
    return [it.read_bytes() for it in sorted(found) if "~" in it.name]


# ---------------------------------------------------------------- reading on


def sessions(own: Path) -> dict[str, Session]:
    return {it.name: it.read() for it in places(own)}


@pytest.mark.parametrize("tree", TREES, ids=lambda it: "/".join(it.parts[-4:-1]))
def test_archived_sessions_are_unchanged_after_the_agent_deletes_them(home: Path, own: Path, tree: Path) -> None:
    shutil.copytree(tree, home, dirs_exist_ok=True)
    before, responses = sessions(own), {it.name: list(it.responses()) for it in places(own)}
    run(own)
    assert [it.name for it in places(own)] == [it.name for it in places(own) if not _is_kept(it.path, own)]
    for folder in (".claude", ".codex", ".gemini", ".config"):
        shutil.rmtree(home / folder, ignore_errors=True)
    assert sessions(own) == before
    sealed(own)
    assert not [it for it in archive_path(own).rglob("*.jsonl") if it.stat().st_size]
    assert sessions(own) == before
    assert {it.name: list(it.responses()) for it in places(own)} == responses


def _is_kept(path: Path, own: Path) -> bool:
    return path.is_relative_to(archive_path(own))


def test_an_archived_copy_takes_precedence_over_the_prompt_history(home: Path, own: Path) -> None:
    """The client's history of prompts outlives its sessions: it is asked only where there is no copy."""
    shutil.copytree(DATA / "claude-cli/2.1.325/interactive_tui/home", home, dirs_exist_ok=True)
    before = sessions(own)
    run(own)
    shutil.rmtree(home / ".claude" / "projects")
    assert sessions(own) == before


def test_keys_and_settings_of_the_client_are_not_copied(home: Path, own: Path) -> None:
    claude(home, "{}", "sessions/4711.json")
    claude(home, "secret", "sessions/key.pem")
    claude(home, "secret", ".credentials.json")
    claude(home, "{}", "settings.json")
    claude(home, "old\n", f"sessions/{SESSION}.jsonl")
    run(own)
    assert list(kept(own)) == [f"sessions/{SESSION}.jsonl"]


def database(home: Path) -> Path:
    path = home / ".local" / "share" / "opencode" / "opencode.db"
    path.parent.mkdir(parents=True)
    with closing(sqlite3.connect(path)) as made:
        made.executescript(SQL[0].read_text())
    return path


def change(path: Path, statement: str) -> None:
    with closing(sqlite3.connect(path)) as made, made:
        made.execute(statement)
    os.utime(path, (time.time() + 10,) * 2)  # a coarse clock would hide it


def test_a_new_database_copy_is_kept_only_when_opencode_deletes_sessions(home: Path, own: Path) -> None:
    path = database(home)
    before = sessions(own)
    assert run(own).new == 1
    assert changes(run(own)) == (0, 0, 0, 0)
    change(path, "INSERT INTO message SELECT 'msg_new', session_id, 1, 1, data FROM message LIMIT 1")
    assert run(own).grown == 1
    assert older("opencode.db", own) == []
    gone = "ses_e209093e4ffebVAVMYwIIYHZLz"
    change(path, f"DELETE FROM session WHERE id = '{gone}'")
    assert run(own).rewritten == 1
    assert len(older("opencode.db", own)) == 1
    found = sessions(own)
    assert found.keys() == before.keys()
    assert found[gone] == before[gone]


def test_a_database_named_by_opencode_db_is_archived(
    home: Path, own: Path, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    path = database(home).rename(tmp_path / "mine.db")
    monkeypatch.setenv("OPENCODE_DB", str(path))
    before = sessions(own)
    assert len(before) > 1
    run(own)
    path.unlink()
    assert sessions(own) == before


def test_a_database_in_use_is_copied_with_its_wal(home: Path, own: Path) -> None:
    path = database(home)
    with closing(sqlite3.connect(path)) as writer:
        writer.execute("PRAGMA journal_mode=WAL")
        with writer:
            writer.execute("UPDATE session SET title = 'in the log only'")
        run(own)
    path.unlink()
    assert {it.title for it in sessions(own).values()} == {"in the log only"}


# ---------------------------------------------------------------- only what is new


def test_a_second_run_copies_only_new_data(home: Path, own: Path) -> None:
    path = claude(home, "one\n")
    claude(home, "remember\n", "projects/-p/memory/MEMORY.md")
    assert changes(run(own)) == (2, 0, 0, 13)
    assert changes(run(own)) == (0, 0, 0, 0)
    with path.open("a") as file:
        file.write("two\n")
    assert changes(run(own)) == (0, 1, 0, 4)
    path.unlink()
    assert changes(run(own)) == (0, 0, 0, 0)
    assert kept(own)[f"projects/-p/{SESSION}.jsonl"] == b"one\ntwo\n"


def test_a_touched_file_is_not_copied_again(home: Path, own: Path) -> None:
    path = claude(home, "one\n")
    run(own)
    os.utime(path, (1, 1))
    assert changes(run(own)) == (0, 0, 0, 0)
    assert older("jsonl", own) == []


REWRITES = {
    "shorter": "o\n",
    "as long": "eno\n",
    "longer": "something else\n",
    "emptied": "",
}


@pytest.mark.parametrize("text", REWRITES.values(), ids=REWRITES)
@pytest.mark.parametrize("is_sealed", [False, True])
def test_a_rewritten_file_is_a_new_generation(home: Path, own: Path, text: str, is_sealed: bool) -> None:
    path = claude(home, "one\n")
    run(own)
    if is_sealed:
        assert sealed(own).sealed == 1
    claude(home, text)
    os.utime(path, (5, 5))
    assert run(own).rewritten == 1
    assert kept(own)[f"projects/-p/{SESSION}.jsonl"] == text.encode()
    assert older("jsonl", own) == [b"one\n"]
    claude(home, "third\n")
    run(own)
    assert older("jsonl", own) == [b"one\n", *([text.encode()] if text else [])]  # an empty one has grown


@pytest.mark.parametrize("size", [3_000_000, 20_000_000])
@pytest.mark.parametrize("more", ["", "more\n"], ids=["as long", "longer"])
def test_a_change_in_the_middle_of_a_large_file_is_detected(home: Path, own: Path, size: int, more: str) -> None:
    path = claude(home, "a" * size + "\n")
    run(own)
    before = path.stat().st_ino
    with path.open("r+b") as file:  # in place, as an editor may: its beginning and its end are what they were
        file.seek(size // 2)
        file.write(b"b")
        file.seek(0, os.SEEK_END)
        file.write(more.encode())
    os.utime(path, (5, 5))
    assert path.stat().st_ino == before
    assert run(own).rewritten == 1
    assert kept(own)[f"projects/-p/{SESSION}.jsonl"] == path.read_bytes()
    assert [len(it) for it in older("jsonl", own)] == [size + 1]


def test_a_sealed_copy_is_extended_when_its_session_grows(home: Path, own: Path) -> None:
    path = claude(home, "one\n")
    run(own)
    assert sealed(own).sealed == 1
    assert changes(run(own)) == (0, 0, 0, 0)
    with path.open("a") as file:
        file.write("two\n")
    assert changes(run(own)) == (0, 1, 0, 4)
    assert kept(own)[f"projects/-p/{SESSION}.jsonl"] == b"one\ntwo\n"
    assert [it.name for it in archive_path(own).rglob(f"{SESSION}*")] == [f"{SESSION}.jsonl"]


def test_a_damaged_sealed_copy_is_preserved_beside_a_new_copy(home: Path, own: Path) -> None:
    path = claude(home, "one\n" * 100)
    run(own)
    sealed(own)
    (packed,) = archive_path(own).rglob("*.zst")
    broken = bytearray(packed.read_bytes())
    broken[12] ^= 0xFF
    packed.write_bytes(broken)
    with path.open("a") as file:
        file.write("two\n")
    run(own)
    assert kept(own)[f"projects/-p/{SESSION}.jsonl"] == path.read_bytes()
    assert older("jsonl", own) == [bytes(broken)]


def test_copies_are_private_and_sources_are_unchanged(home: Path, own: Path) -> None:
    path = claude(home, "one\n")
    path.chmod(0o644)
    before = path.stat()
    run(own)
    for it in archive_path(own).rglob("*"):
        assert it.stat().st_mode & 0o077 == 0
    after = path.stat()
    assert (before.st_mtime_ns, before.st_mode, before.st_ino) == (
        after.st_mtime_ns,
        after.st_mode,
        after.st_ino,
    )


def test_files_with_reserved_names_are_skipped_and_reported(home: Path, own: Path) -> None:
    claude(home, "x", "projects/-p/memory/notes.md~")
    claude(home, "x", "projects/-p/memory/packed.zst")
    claude(home, "x", "projects/-p/memory/odd\nname ü.md")
    report = run(own)
    assert {Path(it.path).name for it in report.left_out} == {"notes.md~", "packed.zst"}
    assert list(kept(own)) == ["projects/-p/memory/odd\nname ü.md"]


def test_concurrent_archive_runs_make_one_copy(home: Path, own: Path) -> None:
    path = claude(home, "line\n" * 500_000)
    command = [sys.executable, "-m", "agent_logger", "archive"]
    running = [subprocess.Popen(command, stdout=subprocess.PIPE) for _ in range(4)]
    for process in running:
        assert process.communicate(timeout=100)[0]
        assert process.returncode == 0
    assert kept(own)[f"projects/-p/{SESSION}.jsonl"] == path.read_bytes()
    assert older("jsonl", own) == []


# ---------------------------------------------------------------- faults


def test_a_kill_or_a_failing_disk_at_any_step_loses_nothing(tmp_path: Path) -> None:
    """Each step of a run that appends, unseals, rewrites and begins: see the program."""
    memory = Path("/dev/shm") if os.access("/dev/shm", os.W_OK) else tmp_path  # where a sync takes no time
    root = Path(__file__).parents[2]
    with tempfile.TemporaryDirectory(dir=memory) as folder:
        program = [sys.executable, "-m", "tests.archive.archive_faults", folder]
        done = subprocess.run(program, cwd=root, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr[-3000:]
    assert int(done.stdout) > 30


def test_a_full_disk_is_reported_and_the_copy_is_completed_later(home: Path, small_disk: Path) -> None:
    own = small_disk / "own"
    text = b"".join(b'{"n":%d}\n' % number for number in range(400_000))
    path = claude(home, text.decode())
    full = archive_all(own)
    assert [(it.path, it.reason) for it in full.failed] == [(str(path), "No space left on device")]
    (copy,) = archive_path(own).rglob("*.jsonl")
    part = copy.stat().st_size
    assert 0 < part < len(text)
    assert text.startswith(copy.read_bytes())
    subprocess.run(["mount", "-o", "remount,size=64m", str(small_disk)], check=True)
    assert changes(run(own)) == (0, 1, 0, len(text) - part)
    assert copy.read_bytes() == text


# ---------------------------------------------------------------- putting back


def put_back(own: Path, wanted: str) -> restore.Plan:
    planned = restore.plan(own, restore.find(own, wanted))
    restore.carry_out(planned)
    return planned


@pytest.mark.parametrize("is_sealed", [False, True])
@pytest.mark.parametrize("tree", TREES[::5], ids=lambda it: "/".join(it.parts[-4:-1]))
def test_a_restored_session_is_where_its_agent_expects_it(home: Path, own: Path, tree: Path, is_sealed: bool) -> None:
    shutil.copytree(tree, home, dirs_exist_ok=True)
    before, files = sessions(own), main_and_beside(home)
    run(own)
    if is_sealed:
        sealed(own)
    for folder in (".claude", ".codex", ".gemini"):
        shutil.rmtree(home / folder, ignore_errors=True)
    for name in before:
        put_back(own, name)
    shutil.rmtree(archive_path(own))
    assert sessions(own) == before
    for path, text in main_and_beside(home).items():
        assert files[path] == text


@pytest.mark.parametrize("agent", ["claude-cli", "codex", "gemini-cli"])
def test_a_session_is_restored_by_its_listed_id(home: Path, own: Path, agent: str) -> None:
    tree = next(it for it in TREES if it.parts[-4] == agent)
    shutil.copytree(tree, home, dirs_exist_ok=True)
    listed = {it.id for it in sessions(own).values()}
    files = main_and_beside(home)
    run(own)
    for folder in (".claude/projects", ".codex/sessions", ".gemini/tmp"):
        shutil.rmtree(home / folder, ignore_errors=True)
    for name in listed:
        assert put_back(own, name[:18]).session.copy in copies_of(own, name)
    assert main_and_beside(home) == files


def main_and_beside(home: Path) -> dict[Path, bytes]:
    return {it: it.read_bytes() for it in home.rglob("*") if it.is_file() and ".agent-logger" not in it.parts}


def test_restore_never_changes_existing_files(home: Path, own: Path) -> None:
    path = claude(home, "one\n")
    run(own)
    assert put_back(own, SESSION).missing == []
    path.write_text("mine\n")
    planned = put_back(own, SESSION[:6])
    assert [it.state for it in planned.steps] == ["other"]
    assert path.read_text() == "mine\n"


def test_restore_lists_the_files_to_write_and_asks_for_confirmation(home: Path, own: Path) -> None:
    path = claude(home, '{"type":"user"}\n')
    run(own)
    path.unlink()
    command = [sys.executable, "-m", "agent_logger", "archive", "--restore", SESSION]
    refused = subprocess.run(command, input="n\n", capture_output=True, text=True, check=False)
    assert (refused.returncode, refused.stdout) == (1, f"write {path}\n")
    assert not path.exists()
    done = subprocess.run([*command, "--yes"], capture_output=True, text=True, check=False)
    assert (done.returncode, path.read_text()) == (0, '{"type":"user"}\n')
    assert time.time() - path.stat().st_mtime < 100
    again = subprocess.run([*command, "--yes"], capture_output=True, text=True, check=False)
    assert (again.returncode, again.stderr.split(":")[0]) == (0, "nothing to do")


# ---------------------------------------------------------------- going on


def test_watch_copies_new_data_until_it_is_interrupted(home: Path, own: Path) -> None:
    claude(home, "one\n")
    command = [sys.executable, "-m", "agent_logger", "archive", "--watch"]
    with subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True) as process:
        try:
            assert process.stdout
            assert process.stdout.readline().startswith("1 file: 1 new, 0 grown, 0 rewritten; 4 bytes copied")
            claude(home, "one\ntwo\n")
            assert process.stdout.readline().startswith("1 file: 0 new, 1 grown, 0 rewritten; 4 bytes copied")
            process.send_signal(signal.SIGINT)
            assert process.wait(30) == 130
        finally:
            process.kill()
    assert kept(own)[f"projects/-p/{SESSION}.jsonl"] == b"one\ntwo\n"
