import json
import os
import subprocess
from collections.abc import Callable
from pathlib import Path

import pytest
from tests.commands import run_command

from agent_logger.files.parts import PartFile
from agent_logger.home.layout import install_key
from agent_logger.journal.journal import Journal
from agent_logger.journal.seal import seal
from agent_logger.model.records import Resume

Run = Callable[..., subprocess.CompletedProcess[str]]


@pytest.fixture
def verify(tmp_path: Path) -> Run:
    def verify(*arguments: object) -> subprocess.CompletedProcess[str]:
        clean = {"PATH": os.environ["PATH"], "HOME": str(tmp_path / "home")}
        return run_command(["verify", *map(str, arguments)], clean, folder=tmp_path)

    return verify


def write_log(folder: Path, name: str = "a", records: int = 3) -> Path:
    log = Journal(folder, name, "exchange")
    for number in range(records):
        log.append(Resume(session_id=str(number), ts="2026-11-15T08:45:32.000Z"))
    log.close()
    return folder / f"{name}.jsonl"


def test_an_intact_log_is_one_line_with_exit_code_0(verify: Run, tmp_path: Path) -> None:
    path = write_log(tmp_path / "logs")
    done = verify(path)
    size = f"{path.stat().st_size:,}"
    assert (done.returncode, done.stderr) == (0, "")
    assert done.stdout == f"1 file, 3 records, {size} bytes: 0 torn ends, 0 repaired, 0 damaged\n"


def test_damage_is_reported_by_file_line_and_offset_with_exit_code_1(verify: Run, tmp_path: Path) -> None:
    path = write_log(tmp_path / "logs")
    path.write_bytes(b'{"a":1}\n\0\0\0\n{"b":2}\n')
    done = verify(path.parent)
    assert done.returncode == 1
    assert done.stdout.splitlines()[0] == f"{path}:2: offset 8, 3 bytes: NUL bytes"


def test_a_torn_end_is_reported_with_exit_code_0(verify: Run, tmp_path: Path) -> None:
    path = write_log(tmp_path / "logs")
    with path.open("ab") as file:
        file.write(b'{"ty')
    done = verify(path)
    assert done.returncode == 0
    assert f"{path}: torn end of 4 bytes\n" in done.stdout


def test_sealed_parts_are_verified(verify: Run, tmp_path: Path) -> None:
    write_log(tmp_path / "logs", "a", records=500)
    assert seal(PartFile(tmp_path / "logs", "a"))
    write_log(tmp_path / "logs", "b")
    assert "2 files, 503 records" in verify(tmp_path / "logs").stdout
    sealed = tmp_path / "logs" / "a.jsonl.zst"
    content = bytearray(sealed.read_bytes())
    content[20] ^= 0xFF
    sealed.write_bytes(content)
    broken = verify(tmp_path / "logs")
    assert broken.returncode == 1
    assert "a sealed frame is damaged" in broken.stdout


def test_json_output_reports_the_same_damage(verify: Run, tmp_path: Path) -> None:
    path = write_log(tmp_path / "logs")
    with path.open("ab") as file:
        file.write(b"rubbish\n{")
    done = verify("--json", path)
    report = json.loads(done.stdout)
    assert done.returncode == 1
    assert (report["records"], report["torn"], report["damage"]) == (3, 1, 1)
    [bad] = report["files"][0]["damage"]
    assert (bad["line"], bad["length"], bad["reason"]) == (4, 7, "not JSON: expecting value")


def test_verify_without_a_path_reads_the_default_folders(verify: Run, tmp_path: Path) -> None:
    assert verify().stdout.startswith("0 files")
    install_key(tmp_path / "home/.agent-logger")  # without it, logs do not prove who wrote them
    write_log(tmp_path / "logs")
    write_log(tmp_path / "sessions")
    write_log(tmp_path / "home" / ".agent-logger" / "projects" / "x")
    assert verify().stdout.startswith("4 files, 11 records"), "with facts.jsonl, which names the two folders"


def test_a_missing_path_is_a_one_line_error_with_exit_code_1(verify: Run, tmp_path: Path) -> None:
    done = verify(tmp_path / "nowhere")
    assert (done.returncode, done.stdout) == (1, "")
    assert done.stderr == f"agent-logger: {tmp_path}/nowhere: no such file or folder\n"


def test_control_characters_in_a_file_name_are_escaped(verify: Run, tmp_path: Path) -> None:
    path = tmp_path / "\x1b]0;owned\x07.jsonl"
    path.write_bytes(b"rubbish\n")
    done = verify(path)
    assert "\x1b" not in done.stdout
    assert "\\x1b]0;owned\\x07.jsonl" in done.stdout


def test_a_fifo_does_not_block_verify(verify: Run, tmp_path: Path) -> None:
    os.mkfifo(tmp_path / "a.jsonl")
    done = verify(tmp_path / "a.jsonl")
    assert done.returncode == 1
    assert "not a regular file" in done.stdout
