"""What is imported is kept, shown with its origin, counted once, and removed as one."""

import json
import os
import shutil
import subprocess
import sys
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

import pytest

from agent_logger import platform
from agent_logger.catalog.catalog import Catalog
from agent_logger.errors import SourceError
from agent_logger.exports.pack import packed
from agent_logger.imports.run import importable, run_import
from agent_logger.protocols.tar import header
from tests.commands import run_command
from tests.imports.bundles import ID, TRANSCRIPT, entry, head, line, pack, tar, whole, write

OTHER = "0f000000-1111-4111-8111-111111111111"


def bundle(tmp_path: Path, session: str, content: bytes, name: str = "x.tar.zst") -> Path:
    entries = [entry(f"{session}/session.json", head(session, machine="build7"))]
    return write(tmp_path / name, pack(tar([*entries, entry(TRANSCRIPT.replace(ID, session), content)])))


def transcript(home: Path, session: str, content: bytes) -> Path:
    folder = home / ".claude" / "projects" / "-p"
    folder.mkdir(parents=True, exist_ok=True)
    return write(folder / f"{session}.jsonl", content)


def responses() -> dict[str, int]:
    """How many responses count in each session."""
    with Catalog.open() as catalog:
        return {str(name): total.responses for name, total in catalog.usage("session").items()}


def ours(home: Path) -> Path:
    return home / ".agent-logger"


def test_an_imported_session_is_listed_with_its_origin(home: Path, tmp_path: Path) -> None:
    result = run_import(ours(home), bundle(tmp_path, ID, line(1)))
    assert (result.state, result.machine) == ("new", "build7")
    with Catalog.open() as catalog:
        (summary,) = catalog.sessions()
        session = catalog.read(ID)
    assert summary.imported == (result.import_name,)
    assert session is not None
    assert [(origin.machine, origin.kind) for origin in session.imported] == [("build7", "bundle")]
    assert not summary.live


def test_the_same_bundle_twice_is_one_import(home: Path, tmp_path: Path) -> None:
    file = bundle(tmp_path, ID, line(1))
    run_import(ours(home), file)
    assert run_import(ours(home), file).state == "there"
    assert responses() == {ID: 1}


def test_of_two_imports_of_a_session_the_longer_counts(home: Path, tmp_path: Path) -> None:
    run_import(ours(home), bundle(tmp_path, ID, line(1), "early.tar.zst"))
    run_import(ours(home), bundle(tmp_path, ID, line(1) + line(2), "late.tar.zst"))
    assert responses() == {ID: 2}


def test_a_session_of_this_machine_outranks_an_imported_one(home: Path, tmp_path: Path) -> None:
    file = transcript(home, ID, line(1))
    run_import(ours(home), bundle(tmp_path, ID, line(1) + line(2)))
    assert responses() == {ID: 1}
    file.unlink()
    assert responses() == {ID: 2}


def test_a_response_that_this_machine_has_counts_there_alone(home: Path, tmp_path: Path) -> None:
    transcript(home, ID, line(1) + line(2))
    run_import(ours(home), bundle(tmp_path, OTHER, line(1, OTHER) + line(3, OTHER)))
    assert responses() == {ID: 2, OTHER: 1}


def test_an_import_is_removed_as_one(home: Path, tmp_path: Path) -> None:
    transcript(home, ID, line(1))
    name = run_import(ours(home), bundle(tmp_path, OTHER, line(3, OTHER))).import_name
    assert responses() == {ID: 1, OTHER: 1}
    told = run_command(["import", "--remove", name, "--yes"], {"HOME": str(home)})
    assert told.returncode == 0, told.stderr
    assert responses() == {ID: 1}
    assert list((ours(home) / "archive" / "imported").iterdir()) == []


@pytest.mark.parametrize("name", ["../..", "..", "", "x/y", ".making-1", "nothing"])
def test_nothing_but_an_import_is_removed(name: str, home: Path) -> None:
    (ours(home) / "archive" / "imported" / ".making-1").mkdir(parents=True)
    told = run_command(["import", "--remove", name, "--yes"], {"HOME": str(home)})
    assert told.returncode == 1
    assert (ours(home) / "archive" / "imported" / ".making-1").is_dir()


def test_a_session_file_is_recognised_by_its_content(home: Path, tmp_path: Path) -> None:
    run_import(ours(home), write(tmp_path / "colleague.jsonl", line(1) + line(2)))
    assert responses() == {ID: 2}


@pytest.mark.parametrize("sessions", [1, 12])
def test_an_export_is_imported_however_well_it_is_packed(sessions: int, home: Path, tmp_path: Path) -> None:
    size = 96 << 20
    file = tmp_path / "x.tar.zst"
    with file.open("wb") as written:
        for number in range(sessions):
            session = f"{number:08x}{ID[8:]}"
            log = f"{session}/logs/logs-00000000/a.jsonl"
            first = [entry(f"{session}/session.json", head(session)), entry(TRANSCRIPT.replace(ID, session), line(1))]
            zeros = [bytes(1 << 20)] * (size // sessions >> 20)
            pieces = [tar(first), header(log, size // sessions, 0), *zeros]
            written.writelines(packed(pieces))
    assert file.stat().st_size < 2 << 20
    assert run_import(ours(home), file).bytes > size


NAMES = [
    *("no suffix", "ended.zst", "older~1", "back\\slash.jsonl", "line\nend.jsonl", "\x1b[2J.jsonl", "\u200d.jsonl"),
    *("-", "--list", "..x", ".hidden", "session.json", "origin.json", "a" * 255, "a" * 249 + ".jsonl"),
]


@pytest.mark.parametrize("name", [*map(os.fsencode, NAMES), b"\xff\xfe.jsonl"])
def test_a_session_file_may_have_any_name(name: bytes, home: Path, tmp_path: Path) -> None:
    file = write(Path(os.fsdecode(os.fsencode(tmp_path) + b"/" + name)), line(1) + line(2))
    assert [run_import(ours(home), file).state for _ in range(2)] == ["new", "there"]
    assert responses() == {ID: 2}
    assert run_command(["import", "--list"], {"HOME": str(home), "PATH": os.environ["PATH"]}).returncode == 0


def test_a_file_without_a_session_is_an_error(home: Path, tmp_path: Path) -> None:
    with pytest.raises(SourceError, match=r"notes\.txt: not a bundle, a home, or a file with a session"):
        run_import(ours(home), write(tmp_path / "notes.txt", b"hello"))
    with pytest.raises(SourceError, match="no such file"):
        run_import(ours(home), tmp_path / "nothing")


def test_another_home_is_imported_and_imported_again(home: Path, tmp_path: Path) -> None:
    other = laptop(tmp_path, line(1, OTHER))
    (other / "sessions").mkdir()
    (other / "key").write_bytes(bytes(32))
    first = run_import(ours(home), other)
    assert (first.kind, responses()) == ("home", {OTHER: 1})
    assert run_import(ours(home), tmp_path / "laptop").import_name == first.import_name
    laptop(tmp_path, line(1, OTHER) + line(2, OTHER))
    assert run_import(ours(home), other).state == "replaced"
    assert responses() == {OTHER: 2}
    copied = [path.name for path in (ours(home) / "archive" / "imported").rglob("*")]
    assert "key" not in copied


def _log(session: str, lines: bytes) -> bytes:
    start = {"type": "session_header", "v": 1, "session_id": session, "cwd": "/p", "agent": "claude-code"}
    return json.dumps(start).encode() + b"\n" + lines


def laptop(tmp_path: Path, lines: bytes) -> Path:
    """Write the home of another machine, which has one session."""
    log = tmp_path / "laptop" / ".agent-logger" / "projects" / "-p" / f"{OTHER}.jsonl"
    log.parent.mkdir(parents=True, exist_ok=True)
    log.write_bytes(_log(OTHER, lines))
    return log.parents[2]


KILLED = """
import os, sys
from pathlib import Path
from agent_logger.imports.run import run_import
left = int(sys.argv[1])
def counted(function):
    def step(*args, **options):
        global left
        left -= 1
        if left < 0:
            os._exit(9)
        return function(*args, **options)
    return step
for name in ("rename", "mkdir", "unlink"):
    setattr(os, name, counted(getattr(os, name)))
run_import(Path(sys.argv[2]), Path(sys.argv[3]))
"""


def killed_import(step: int, home: Path, path: Path) -> bool:
    """Import in a process that dies before a step. Returns whether it died."""
    done = subprocess.run([sys.executable, "-c", KILLED, str(step), home, path], capture_output=True, check=False)
    assert done.returncode in (0, 9), done.stderr
    return done.returncode == 9


def test_an_import_that_is_killed_at_any_step_harms_nothing(home: Path, tmp_path: Path) -> None:
    other = laptop(tmp_path, line(1, OTHER))
    name = run_import(ours(home), other).import_name
    imported = ours(home) / "archive" / "imported"
    before = tmp_path / "before"
    shutil.copytree(imported, before)
    laptop(tmp_path, line(1, OTHER) + line(2, OTHER))
    bundled = bundle(tmp_path, ID, line(5))
    step = 0
    while killed_import(step, ours(home), other):
        counts = run_and_list(home, bundled)
        assert counts in ({OTHER: 1, ID: 1}, {OTHER: 2, ID: 1}), f"killed before step {step}"
        assert [path.name for path in imported.iterdir() if path.name[0] == "."] == [], f"killed before step {step}"
        shutil.rmtree(imported)
        shutil.copytree(before, imported)
        step += 1
    assert step > 5
    assert responses() == {OTHER: 2}
    assert [path.name for path in imported.iterdir()] == [name]


def run_and_list(home: Path, path: Path) -> dict[str, int]:
    run_import(ours(home), path)
    return responses()


def test_imports_at_once_all_succeed(home: Path, tmp_path: Path) -> None:
    other = laptop(tmp_path, line(1, OTHER))
    run_import(ours(home), other)
    laptop(tmp_path, line(1, OTHER) + line(2, OTHER))
    with ThreadPoolExecutor(8) as threads:
        results = list(threads.map(lambda _: run_import(ours(home), other), range(24)))
    assert len({result.import_name for result in results}) == 1
    assert [path.name for path in (ours(home) / "archive" / "imported").iterdir()] == [results[0].import_name]
    assert responses() == {OTHER: 2}


def test_an_import_is_on_the_device_before_it_has_its_name(
    home: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    synced: set[int] = set()
    sync, rename = platform.sync, os.rename

    def noting(fd: int) -> None:
        synced.add(os.fstat(fd).st_ino)
        sync(fd)

    def checking(path: Path, to: Path) -> None:
        if to.parent.name == "imported" and to.name[0] != ".":
            files = {file.stat().st_ino for file in path.rglob("*") if file.is_file()}
            assert len(files) == 3 and files <= synced
        rename(path, to)

    monkeypatch.setattr(platform, "sync", noting)
    monkeypatch.setattr(os, "rename", checking)
    assert run_import(ours(home), bundle(tmp_path, ID, line(1))).state == "new"


def test_no_file_takes_the_place_of_another_import(home: Path, tmp_path: Path) -> None:
    file = bundle(tmp_path, ID, line(1))
    first = run_import(ours(home), file).import_name
    origin = ours(home) / "archive" / "imported" / first / "origin.json"
    fields = json.loads(origin.read_text())
    origin.write_text(json.dumps({**fields, "digest": fields["digest"][:8] + "0" * 56}))
    assert [run_import(ours(home), file).state for _ in range(2)] == ["new", "there"]
    assert json.loads(origin.read_text())["digest"].endswith("000")


def test_a_folder_stands_for_the_bundles_and_homes_in_it(tmp_path: Path) -> None:
    (tmp_path / "all" / "laptop" / ".agent-logger").mkdir(parents=True)
    write(tmp_path / "all" / "x.tar.zst", pack(tar(whole())))
    write(tmp_path / "all" / "notes.txt", b"hello")
    assert [path.name for path in importable(tmp_path / "all")] == ["laptop", "x.tar.zst"]


def test_the_home_in_use_is_not_imported_into_itself(home: Path) -> None:
    ours(home).mkdir()
    with pytest.raises(SourceError, match="home that is in use"):
        run_import(ours(home), ours(home))


def test_the_command_reports_what_failed_and_imports_the_rest(home: Path, tmp_path: Path) -> None:
    bundle(tmp_path, ID, line(1))
    write(tmp_path / "bad.tar.zst", pack(b"x" * 512))
    told = run_command(["import", str(tmp_path)], {"HOME": str(home)})
    assert told.returncode == 1
    assert "bad.tar.zst" in told.stderr and "x.tar.zst: imported from build7" in told.stdout
    assert responses() == {ID: 1}


def test_list_and_json_tell_where_imports_came_from(home: Path, tmp_path: Path) -> None:
    file = bundle(tmp_path, ID, line(1))
    run_import(ours(home), file)
    told: Any = json.loads(run_command(["import", "--list", "--json"], {"HOME": str(home)}).stdout)
    assert [(each["machine"], each["path"]) for each in told] == [("build7", str(file))]
    assert "imported from build7 (bundle x.tar.zst)" in run_command(["show", ID], {"HOME": str(home)}).stdout


def test_imports_of_another_home_are_read_with_it(home: Path, tmp_path: Path) -> None:
    other = tmp_path / "laptop" / ".agent-logger"
    run_import(other, bundle(tmp_path, OTHER, line(3, OTHER)))
    transcript(home, ID, line(1))
    with Catalog.open(homes=[ours(home), other]) as catalog:
        assert {summary.id: len(summary.imported) for summary in catalog.sessions()} == {ID: 0, OTHER: 1}
        session = catalog.read(OTHER)
    assert session and [origin.machine for origin in session.imported] == ["build7"]


def test_an_imported_home_has_the_machine_that_it_names(home: Path, tmp_path: Path) -> None:
    other = tmp_path / "x" / ".agent-logger"
    run_import(other, bundle(tmp_path, OTHER, line(3, OTHER)))
    write(other / "machine.json", b'{"machine": "laptop", "v": 1}')
    result = run_import(ours(home), other)
    assert (result.machine, responses()) == ("laptop", {OTHER: 1})
