"""`rm`, `prune` and `archive --restore` among files of others that have names like ours: nothing of theirs changes."""

import json
import os
import stat
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator
from contextlib import suppress
from pathlib import Path

import pytest
from hypothesis import HealthCheck, example, given, settings
from hypothesis import strategies as st
from tests.catalog.catalogs import ID, user
from tests.commands import run_command
from tests.journal.wire_logs import calls, start
from tests.journal.wire_logs import write as write_log

from agent_logger import FileStorage, SessionLogger
from agent_logger.home.facts import register_log_folder
from agent_logger.journal.sync import UPKEEP
from agent_logger.model.records import Response

SDK, KEPT, CLAUDE = ID.format(1), ID.format(2), ID.format(3)
WIRE = "20261115-080000-abcd"
UUID7 = "019a0000-0000-7000-8000-00000000000a"
LOG_OF_OTHERS = "log of others"  # in our own form
CONTENTS = [b"", b"# notes\n", b'{"type":"note","text":"mine"}\n', b"\x28\xb5\x2f\xfdhalf", LOG_OF_OTHERS]
KINDS = ["file", "file", "file", "folder", "link to a file", "link to a folder", "link to nowhere", "fifo"]
SUFFIXES = [
    "", ".jsonl", ".jsonl.zst", ".zst", ".jsonl.zst.tmp", ".jsonl.live", f".jsonl.live.{UUID7}", ".p2.jsonl",
    ".p2.jsonl.zst", ".p7.jsonl", ".p2.jsonl.live", ".bodies", ".bodies/x", f".bodies/{UUID7}", ".bodies/1.jsonl",
    ".bodies/line", ".bodies/deep/x", "/important.md", "/tool-results/toolu_9.txt", "/tool-results/deep/x",
    "/subagents/agent-1.jsonl", "/subagents/agent-1.bodies/1.jsonl", "/other/x.jsonl", "_b1.jsonl", "_b1/x",
    ".jsonl~", ".JSONL", ".jsonl.bak",
]  # fmt: skip


names = st.one_of(
    st.sampled_from(SUFFIXES),
    st.text(st.characters(blacklist_characters="/\0", blacklist_categories=["Cs"]), max_size=8).map("/".__add__),
)
strangers = st.lists(
    st.tuples(st.sampled_from(["notes", WIRE, KEPT]), names, st.sampled_from(KINDS), st.sampled_from(CONTENTS)),
    max_size=12,
)


class World:
    """One log of each kind, under names of people's own; and what strangers put beside them."""

    def __init__(self, root: Path) -> None:
        self.root, self.home = root, root / "home"
        self.home.mkdir(exist_ok=True)
        self.outside = root / "outside"
        self.outside.mkdir()
        (self.outside / "file").write_text("of somebody else")
        (self.outside / "folder").mkdir()
        (self.outside / "folder" / "1.jsonl").write_text("of somebody else")
        self.own = self.home / ".agent-logger"
        self.folders = {
            "notes": root / "sessions",
            WIRE: root / "logs" / "anthropic",
            KEPT: self._kept(),
        }
        self._sdk()
        self._wire()
        register_log_folder(self.own, root / "logs")
        register_log_folder(self.own, root / "sessions")
        UPKEEP.finish()
        self.ours = {path for path in root.rglob("*") if path.is_file() and self.outside not in path.parents}
        self.own_folders = {path for path in root.rglob("*") if path.is_dir() and self.outside not in path.parents}
        for path in self.ours:
            os.utime(path, (time.time() - 7200,) * 2)
        self.theirs: dict[str, tuple[object, ...]] = {}

    def _sdk(self) -> None:
        with SessionLogger(self.root / "sessions") as logger:
            logger.log({"type": "system", "subtype": "init", "session_id": SDK, "cwd": "/p"})
            logger.log({"type": "result", "subtype": "success", "session_id": SDK, "total_cost_usd": 0.1})
        [path] = (self.root / "sessions").glob("*.jsonl")
        path.rename(path.with_name("notes.jsonl"))

    def _wire(self) -> None:
        """With a body that is too large for a line."""
        request, response = calls(1)
        assert isinstance(response, Response)
        large = Response(
            ts=response.ts,
            seq=2,
            status=200,
            headers={},
            timing=response.timing,
            body="x" * (9 << 20),
            call=f"{UUID7[:-1]}b",
        )
        write_log(self.folders[WIRE], WIRE, [start(WIRE), request, response, large])
        assert list((self.folders[WIRE] / f"{WIRE}.bodies").iterdir())

    def _kept(self) -> Path:
        """With a result in a file."""
        with FileStorage(self.own, cwd=self.root) as storage:
            result = {"type": "tool_result", "tool_use_id": "toolu_1", "content": "x" * 40_000}
            storage.append(KEPT, user(1, "hello", KEPT))
            storage.append(KEPT, {"type": "user", "message": {"role": "user", "content": [result]}})
        [path] = self.own.rglob(f"{KEPT}.jsonl")
        assert list((path.parent / KEPT / "tool-results").iterdir())
        return path.parent

    def put(self, log: str, suffix: str, kind: str, content: bytes | str) -> None:
        if suffix == "_b1.jsonl" and content == LOG_OF_OTHERS:
            return  # a log in our form, with a name that no other has, is a session as any other
        path = Path(f"{self.folders[log]}/{log}{suffix}")
        if len(os.fsencode(path.name)) > 200 or os.path.lexists(path) or path == self.folders[log]:
            return
        with suppress(OSError):  # a name below a file
            path.parent.mkdir(parents=True, exist_ok=True)
            self._make(path, kind, content)

    def _make(self, path: Path, kind: str, content: bytes | str) -> None:
        match kind:
            case "folder":
                path.mkdir()
                (path / "inside.md").write_bytes(b"theirs")
            case "fifo":
                os.mkfifo(path)
            case "link to a file":
                path.symlink_to(self.outside / "file")
            case "link to a folder":
                path.symlink_to(self.outside / "folder")
            case "link to nowhere":
                path.symlink_to(self.outside / "nowhere")
            case _:
                path.write_bytes(self._log_of_others() if isinstance(content, str) else content)

    def _log_of_others(self) -> bytes:
        write_log(self.root / "elsewhere", "theirs", [start("theirs"), *calls(2)])
        data = (self.root / "elsewhere" / "theirs.jsonl").read_bytes()
        (self.root / "elsewhere" / "theirs.jsonl").unlink()
        return data

    def look(self) -> dict[str, tuple[object, ...]]:
        """All that is not ours, by what any change would change."""
        found: dict[str, tuple[object, ...]] = {}
        for path in self._everything():
            it = os.lstat(path)
            data: object = None
            if stat.S_ISREG(it.st_mode):
                data = path.read_bytes()
            elif stat.S_ISLNK(it.st_mode):
                data = os.readlink(path)
            found[str(path)] = (it.st_ino, it.st_mode, data, it.st_mtime_ns)
        return found

    def _everything(self) -> Iterator[Path]:
        for folder, folders, files in os.walk(self.root):
            for name in [*folders, *files]:
                path = Path(folder, name)
                if path not in self.ours | self.own_folders and path.parent != self.own:
                    yield path

    def run(self, *arguments: str, code: int | None = 0) -> str:
        done = run_command([*arguments], {"PATH": os.environ["PATH"], "HOME": str(self.home)}, folder=self.root)
        assert code is None or done.returncode == code, done.stderr
        assert "Traceback" not in done.stderr
        return done.stdout

    def left(self) -> set[Path]:
        return {path for path in self.ours if os.path.lexists(path)}


@settings(max_examples=25, deadline=None, suppress_health_check=[HealthCheck.too_slow])
@given(strangers, st.sampled_from(["rm", "prune"]))
@example([("notes", "/important.md", "file", b"mine")], "rm")
@example([("notes", "/important.md", "file", b"mine")], "prune")
@example([(WIRE, ".bodies/x", "file", b"mine"), (WIRE, ".p2.jsonl", "file", LOG_OF_OTHERS)], "rm")
@example([(KEPT, "/important.md", "file", b"mine"), (KEPT, "/subagents/agent-1.jsonl", "file", b"{}\n")], "rm")
@example([(name, suffix, "file", b"") for name in ("notes", WIRE, KEPT) for suffix in SUFFIXES], "rm")
@example(
    [(name, suffix, "link to a folder", b"") for name in ("notes", WIRE, KEPT) for suffix in SUFFIXES],
    "prune",
)
def test_rm_and_prune_change_no_foreign_files_and_delete_only_listed_files(
    given_strangers: list[tuple[str, str, str, bytes | str]], command: str
) -> None:
    with tempfile.TemporaryDirectory() as folder:
        world = World(Path(folder).resolve())
        for stranger in given_strangers:
            world.put(*stranger)
        before = world.look()
        sessions = [it["id"] for it in json.loads(world.run("ls", "--all", "--json"))]
        asked = ["rm", *sessions] if command == "rm" else ["prune", "--larger-than", "0B"]
        told = json.loads(world.run(*asked, "--dry-run", "--json"))
        shown = {path for it in told for path in it["paths"]}
        assert world.look() == before
        ours = world.left()
        world.run(*asked, "--yes")
        assert {path: it for path, it in world.look().items() if it != before.get(path)} == {}
        assert [path for path in before if not os.path.lexists(path)] == []
        assert {str(path) for path in ours - world.left()} == shown
        assert sum(it["bytes"] for it in told) == sum(file["bytes"] for it in told for file in it["files"])


def test_rm_deletes_all_own_files_without_foreign_files(tmp_path: Path) -> None:
    world = World(tmp_path)
    told = world.run("rm", SDK, WIRE, KEPT, "--yes")
    left = {path for path in world.left() if path.parent != world.own}
    assert {path.name for path in left} <= {"sessions-index.json", ".gitignore", "history.jsonl"}
    for path in world.ours - left:
        assert path.parent == world.own or str(path) in told
    assert not (world.folders[WIRE] / f"{WIRE}.bodies").exists()
    assert not (world.folders[KEPT] / KEPT).exists()


def test_foreign_files_are_listed_and_their_folder_is_kept(tmp_path: Path) -> None:
    world = World(tmp_path)
    world.put(WIRE, ".bodies/x", "file", b"mine")
    world.put(KEPT, "/important.md", "file", b"mine")
    told = {it["session"]: it for it in json.loads(world.run("rm", WIRE, KEPT, "--dry-run", "--json"))}
    assert told[WIRE]["not_ours"] == [str(world.folders[WIRE] / f"{WIRE}.bodies" / "x")]
    assert told[KEPT]["not_ours"] == [str(world.folders[KEPT] / KEPT / "important.md")]
    world.run("rm", WIRE, KEPT, "--yes")
    assert [it.name for it in (world.folders[WIRE] / f"{WIRE}.bodies").iterdir()] == ["x"]
    assert [it.name for it in (world.folders[KEPT] / KEPT).iterdir()] == ["important.md"]


def test_a_log_without_ids_from_the_first_versions_is_removed(tmp_path: Path) -> None:
    world = World(tmp_path)
    old = tmp_path / "sessions" / "old.jsonl"
    began = {"session_id": "older", "ts": "2026-01-01T00:00:00.000Z", "model": "m", "cwd": "/"}
    line = {"type": "session_start", **began, "tools_available": [], "permission_mode": "default"}
    old.write_text(f"{json.dumps(line)}\n")
    strangers = [old.with_name("old.p2.jsonl"), old.with_name("old")]
    strangers[0].write_text(f"{json.dumps(line | {'session_id': 'another'})}\n")
    strangers[1].mkdir()
    world.run("rm", "older", "--yes")
    assert not old.exists()
    assert all(path.exists() for path in strangers)


def test_a_session_killed_before_its_first_record_is_removed(tmp_path: Path) -> None:
    world = World(tmp_path)
    program = """
import os, sys
from agent_logger import SessionLogger
SessionLogger(sys.argv[1]).log_user_input("find the okapi")
os.kill(os.getpid(), 9)
"""
    subprocess.run([sys.executable, "-c", program, str(tmp_path / "sessions")], check=False, timeout=60)
    begun = [path for path in (tmp_path / "sessions").iterdir() if "unnamed" in path.name]
    assert {path.suffix for path in begun} == {".jsonl", ".live"}
    [session] = [it["id"] for it in json.loads(world.run("ls", "--json")) if "unnamed" in it["id"]]
    world.run("rm", session, "--yes")
    assert not any(path.exists() for path in begun)


@pytest.mark.parametrize("suffix", [".jsonl.zst", ".p2.jsonl.zst", ".p2.jsonl", ".jsonl.live"])
def test_a_fifo_named_like_a_part_does_not_block_commands(tmp_path: Path, suffix: str) -> None:
    world = World(tmp_path)
    for log in world.folders:
        world.put(log, suffix, "fifo", b"")
    assert {it["id"] for it in json.loads(world.run("ls", "--json"))} == {SDK, WIRE, KEPT}
    world.run("show", WIRE)


# ---------------------------------------------------------------- archive --restore

LINE = '{"type":"user","sessionId":"%s","uuid":"u","message":{"role":"user","content":"hello"}}\n'
RESTORED = [
    f"{CLAUDE}.jsonl", CLAUDE, f"{CLAUDE}/subagents", f"{CLAUDE}/subagents/agent-1.jsonl", f"{CLAUDE}/tool-results",
    f"{CLAUDE}/tool-results/toolu_1.txt", f".{CLAUDE}.jsonl.1", f"{CLAUDE}.jsonl.zst", f"{CLAUDE}.p2.jsonl", ".",
]  # fmt: skip


@settings(max_examples=25, deadline=None, suppress_health_check=[HealthCheck.too_slow])
@given(st.lists(st.tuples(st.sampled_from(RESTORED), st.sampled_from(KINDS)), max_size=5))
@example([(f"{CLAUDE}.jsonl", "file")])
@example([(f"{CLAUDE}.jsonl", "link to a file"), (CLAUDE, "link to a folder")])
def test_restore_does_not_overwrite_foreign_files(given_strangers: list[tuple[str, str]]) -> None:
    with tempfile.TemporaryDirectory() as folder:
        world = World(Path(folder).resolve())
        project = world.home / ".claude" / "projects" / "-p"
        for name in (
            f"{CLAUDE}.jsonl",
            f"{CLAUDE}/subagents/agent-1.jsonl",
            f"{CLAUDE}/tool-results/toolu_1.txt",
        ):
            (project / name).parent.mkdir(parents=True, exist_ok=True)
            (project / name).write_text(LINE % CLAUDE)
        world.run("archive")
        for path in sorted(project.rglob("*"), reverse=True):
            path.rmdir() if path.is_dir() else path.unlink()
        for name, kind in given_strangers:
            if not os.path.lexists(project / name):
                with suppress(OSError):
                    (project / name).parent.mkdir(parents=True, exist_ok=True)
                    world._make(project / name, kind, b"theirs")
        world.ours |= set(world.own.rglob("*"))
        before = world.look()
        world.run("archive", "--restore", CLAUDE, "--yes", code=None)
        shared = [Path(path) for path in before if Path(path).is_dir() and project in (Path(path), *Path(path).parents)]
        changed = {path: it for path, it in world.look().items() if path in before and it != before[path]}
        assert {path for path in changed if Path(path) not in shared} == set()
        assert [path for path in before if not os.path.lexists(path)] == []
