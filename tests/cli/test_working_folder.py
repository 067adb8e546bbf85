"""`./logs` and `./sessions` of the working folder: read if this installation wrote them, otherwise only named."""

import json
import os
import shutil
import subprocess
import time
from pathlib import Path

import pytest
from tests.commands import run_command
from tests.journal.wire_logs import calls, start
from tests.journal.wire_logs import write as write_log

from agent_logger import FileStorage, SessionLogger
from agent_logger.files.parts import PartFile
from agent_logger.home.facts import known_folders
from agent_logger.home.layout import install_key
from agent_logger.journal.journal import Journal
from agent_logger.journal.seal import seal
from agent_logger.journal.sync import UPKEEP
from agent_logger.logs.folder_origin import HEAD_BYTES, NEWEST_FILES, folder_origin
from agent_logger.model.records import SessionStart

SESSION = "7b320356-a178-418e-a692-69ce6e1e657c"
WIRE = "20261115-080000-abcd"
OTHER = "another installation wrote its logs"
UNPROVEN = "nothing shows that this installation wrote its logs"
NOTE = "./{0} is not read: {1}\nTo read it from now on: AGENT_LOGGER_{2}_DIR=./{0} agent-logger ls\n"


@pytest.fixture
def ours(home: Path) -> Path:
    return home / ".agent-logger"


@pytest.fixture
def project(tmp_path: Path, ours: Path) -> Path:
    """A project folder that was moved after this installation had recorded to it."""
    before, after = tmp_path / "before", tmp_path / "after"
    with SessionLogger(before / "sessions") as logger:
        logger.log_user_input("find the okapi")
        logger.log({"type": "system", "subtype": "init", "session_id": SESSION, "model": "m", "cwd": "/p"})
        logger.log({"type": "result", "session_id": SESSION, "usage": {"input_tokens": 1, "output_tokens": 1}})
    write_log(before / "logs" / "anthropic", WIRE, [start(WIRE), *calls(1)])
    UPKEEP.finish()
    before.rename(after)
    return after


def run(home: Path, folder: Path, *arguments: str, **more: str) -> subprocess.CompletedProcess[str]:
    usual = {"PATH": os.environ["PATH"], "HOME": str(home.parent), "AGENT_LOGGER_HOME": str(home)}
    return run_command(list(arguments), {**usual, **more}, folder=folder)


def ids(done: subprocess.CompletedProcess[str]) -> set[str]:
    return {row["id"] for row in json.loads(done.stdout)}


def replace_key(home: Path) -> None:
    """Make it another installation, which knows no folders."""
    (home / "key").write_bytes(os.urandom(32))
    (home / "facts.jsonl").unlink()


def rewrite(project: Path, change: str) -> None:
    """Change the first record of every log."""
    for path in project.rglob("*.jsonl"):
        first, rest = path.read_bytes().split(b"\n", 1)
        record = json.loads(first)
        if change == "remove":
            del record["mac"], record["machine"]
        else:
            record[change] = record[change][:-1] + ("0" if record[change][-1] != "0" else "1")
        path.write_bytes(json.dumps(record, separators=(",", ":")).encode() + b"\n" + rest)


def test_the_logs_of_a_moved_project_are_read_and_registered(project: Path, ours: Path) -> None:
    done = run(ours, project, "ls", "--json")
    assert (ids(done), done.stderr) == ({SESSION, WIRE}, "")
    assert {project / "logs", project / "sessions"} <= set(known_folders(ours))
    elsewhere = run(ours, project.parent, "ls", "--json")
    assert ids(elsewhere) == {SESSION, WIRE}


def test_sealed_logs_prove_their_origin_too(project: Path, ours: Path) -> None:
    for path in [*project.rglob("*.jsonl")]:
        assert seal(PartFile(path.parent, path.stem))
    assert not [*project.rglob("*.jsonl")]
    assert ids(run(ours, project, "ls", "--json")) == {SESSION, WIRE}


@pytest.mark.parametrize("kind", ["exchange", "transcript"])
def test_every_door_signs_its_first_part(tmp_path: Path, ours: Path, kind: str) -> None:
    if kind == "exchange":
        with SessionLogger(tmp_path / "logged") as logger:
            logger.log({"type": "system", "subtype": "init", "session_id": SESSION, "model": "m", "cwd": "/p"})
    else:
        with FileStorage(tmp_path / "logged", cwd="/p") as storage:
            storage.append(SESSION, {"type": "user", "message": {"role": "user", "content": "hi"}})
    key = (ours / "key").read_bytes()
    logs = [path for path in (tmp_path / "logged").rglob("*.jsonl") if path.name != "history.jsonl"]
    assert [folder_origin(path.parent, key) for path in logs] == ["own"]


READING = [
    ["ls", "--json"],
    ["usage", "--json"],
    ["search", "okapi", "--json"],
    ["show", SESSION],
    ["find", SESSION],
    ["tail", "--session", SESSION],
    ["tree", SESSION],
    ["export", SESSION, "--to", "json"],
    ["export", WIRE, "--to", "wire"],
    ["verify"],
    ["du"],
    ["doctor"],
    ["rm", SESSION, "--yes"],
]


@pytest.mark.parametrize("arguments", READING, ids=" ".join)
def test_logs_of_another_installation_are_named_once_and_not_read(
    project: Path, ours: Path, arguments: list[str]
) -> None:
    replace_key(ours)
    files = {path: path.read_bytes() for path in project.rglob("*") if path.is_file()}
    done = run(ours, project, *arguments)
    assert done.stderr.startswith(NOTE.format("logs", OTHER, "LOG") + NOTE.format("sessions", OTHER, "SESSIONS"))
    assert done.stderr.count("is not read") == 2
    assert all(len(line) <= 80 for line in done.stderr.splitlines()[:4])
    assert "okapi" not in done.stdout and "anthropic" not in done.stdout
    assert str(project) not in done.stdout
    assert known_folders(ours) == []
    assert {path: path.read_bytes() for path in files} == files


def test_the_command_in_the_note_reads_the_folder_from_then_on(project: Path, ours: Path) -> None:
    replace_key(ours)
    chosen = run(ours, project, "ls", "--json", AGENT_LOGGER_LOG_DIR="./logs", AGENT_LOGGER_SESSIONS_DIR="./sessions")
    assert (ids(chosen), chosen.stderr) == ({SESSION, WIRE}, "")
    later = run(ours, project, "ls", "--json")
    assert (ids(later), later.stderr) == ({SESSION, WIRE}, "")


@pytest.mark.parametrize(
    ("change", "reason"), [("remove", UNPROVEN), *((name, OTHER) for name in ("mac", "log", "part", "machine"))]
)
def test_a_head_that_the_key_does_not_confirm_proves_nothing(
    project: Path, ours: Path, change: str, reason: str
) -> None:
    rewrite(project, change)
    done = run(ours, project, "ls", "--json")
    assert ids(done) == set()
    assert done.stderr.startswith(NOTE.format("logs", reason, "LOG"))


def test_logs_without_a_mac_are_read_where_they_were_recorded(tmp_path: Path, project: Path, ours: Path) -> None:
    rewrite(project, "remove")
    project.rename(tmp_path / "before")
    done = run(ours, tmp_path / "before", "ls", "--json")
    assert (ids(done) & {SESSION}, done.stderr.count("./sessions")) == ({SESSION}, 0)


def test_older_logs_without_a_mac_do_not_hide_a_newer_one_with_it(project: Path, ours: Path) -> None:
    rewrite(project, "remove")
    write_log(project / "logs" / "openai", "20261116-080000-abcd", [start("20261116-080000-abcd"), *calls(1)])
    assert WIRE in ids(run(ours, project, "ls", "--json"))


def test_one_log_of_ours_among_those_of_a_colleague_opens_nothing(project: Path, ours: Path) -> None:
    mine = (ours / "key").read_bytes()
    replace_key(ours)
    shutil.rmtree(project / "logs")
    assert folder_origin(project / "sessions", mine) == "own"
    (ours / "key").write_bytes(mine)
    colleague = project / "sessions" / "20300101_000000_aaaaaaaa.jsonl"
    copy = next((project / "sessions").glob("*.jsonl")).read_bytes()
    colleague.write_bytes(copy.replace(b'"mac":"v1:', b'"mac":"v1:0'))
    assert OTHER in run(ours, project, "ls").stderr


def test_a_folder_without_logs_in_our_form_is_not_mentioned(tmp_path: Path, ours: Path) -> None:
    logs = tmp_path / "app" / "logs"
    (logs / "deep").mkdir(parents=True)
    (logs / "app.jsonl").write_text('{"type":"request","ts":"t","mac":"aa:bb:cc:dd:ee:ff","path":"/"}\n' * 9)
    (logs / "deep" / "hooks.jsonl").write_text('{"type":"hook","ts":"t"}\n')
    (logs / "20261115.jsonl").write_text('{"type":"user","uuid":"1"}\n')
    (logs / "20261116.jsonl.zst").write_bytes(b"\x28\xb5\x2f\xfdhalf")
    done = run(ours, logs.parent, "ls")
    assert "not read" not in done.stderr
    assert known_folders(ours) == []


def hostile(folder: Path, kind: str, mine: bytes) -> None:
    """Fill a folder with what a look at it must survive. `mine`: a log that proves to be ours."""
    folder.mkdir(parents=True)
    for number in range(NEWEST_FILES + 1):
        path = folder / f"9{number}.jsonl"
        match kind:
            case "fifo":
                os.mkfifo(path)
            case "link to a log":
                target = folder.parent / "target"
                target.write_bytes(mine)
                path.symlink_to(target)
            case "link to a folder":
                (folder.parent / "targets").mkdir(exist_ok=True)
                (folder.parent / "targets" / "1.jsonl").write_bytes(mine)
                (folder / f"provider{number}").symlink_to(folder.parent / "targets")
            case "folder":
                path.mkdir()
            case "device":
                path.symlink_to("/dev/zero")
            case "huge":
                path.touch()
                os.truncate(path, 1 << 36)
            case "long line":
                path.write_bytes(b'{"type":"request","body":"' + b"x" * 2 * HEAD_BYTES)
            case "nested":
                path.write_bytes(b'{"type":"request","a":' + b"[" * (HEAD_BYTES // 2) + b"\n")
            case "half characters":
                path.write_bytes(b'{"type":"resume","session_id":"\\ud800","ts":"t","mac":"\\ud800","log":"\\udfff"}\n')


KINDS = [
    "fifo",
    "link to a log",
    "link to a folder",
    "folder",
    "device",
    "huge",
    "long line",
    "nested",
    "half characters",
]


@pytest.mark.parametrize("kind", KINDS)
def test_a_hostile_folder_neither_hangs_a_command_nor_is_read(
    tmp_path: Path, project: Path, ours: Path, kind: str
) -> None:
    mine = next((project / "sessions").glob("*.jsonl")).read_bytes()
    shutil.rmtree(project)
    (ours / "facts.jsonl").unlink()
    hostile(tmp_path / "clone" / "logs", kind, mine)
    began = time.monotonic()
    done = run(ours, tmp_path / "clone", "ls", "--json")
    assert time.monotonic() - began < 20
    assert (ids(done), known_folders(ours)) == (set(), [])


def test_a_link_in_place_of_the_folder_is_not_followed(tmp_path: Path, project: Path, ours: Path) -> None:
    clone = tmp_path / "clone"
    clone.mkdir()
    for name in ("logs", "sessions"):
        (clone / name).symlink_to(project / name)
    done = run(ours, clone, "ls", "--json")
    assert (ids(done), done.stderr) == (set(), "")


def test_a_sealed_file_is_read_only_at_its_beginning(tmp_path: Path, ours: Path) -> None:
    key = install_key(ours)
    journal = Journal(tmp_path / "sessions", "20261115_080000_a", "exchange")
    first = SessionStart(session_id=SESSION, ts="t", model=None, cwd=None, tools_available=None, permission_mode=None)
    journal.append(first)
    for _ in range(20):
        journal.append(
            SessionStart(
                session_id="x" * (1 << 20), ts="t", model=None, cwd=None, tools_available=None, permission_mode=None
            )
        )
    journal.close()
    UPKEEP.finish()
    assert seal(PartFile(tmp_path / "sessions", "20261115_080000_a"))
    began = time.thread_time()
    assert folder_origin(tmp_path / "sessions", key) == "own"
    assert time.thread_time() - began < 0.01


@pytest.mark.parametrize("files", [0, 1, 20_000])
def test_a_look_at_a_folder_takes_at_most_ten_milliseconds(tmp_path: Path, files: int) -> None:
    folder = tmp_path / "logs"
    if files:
        folder.mkdir()
    for number in range(files):
        (folder / f"{number}.jsonl").touch()
    times = []
    for _ in range(5):
        began = time.thread_time()
        folder_origin(folder, bytes(32))
        times.append(time.thread_time() - began)
    assert min(times) < (0.01 if files else 0.002)
