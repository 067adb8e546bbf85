"""`agent-logger hook`: whatever it is given, it keeps what it can, says nothing and ends well."""

import json
import os
import resource
import subprocess
import sys
import time
from collections.abc import Callable
from contextlib import ExitStack
from pathlib import Path

import pytest

from agent_logger import HookInput
from agent_logger.hooks.reader import KeptHook, hooks_in
from agent_logger.logs.hook_files import day_folders, tag_in
from agent_logger.model.records import Hook, decode

SESSION = "707575f7-6966-4682-abc3-e62e1560a136"
KEY = "sk-ant-api03-" + "A1b2" * 12
HOOK = [sys.executable, "-m", "agent_logger", "hook"]
LAST_SECONDS = 60  # for whatever is done after a hook


def start(**variables: str) -> subprocess.Popen[bytes]:
    environment = {**os.environ, **variables}
    pipe = subprocess.PIPE
    return subprocess.Popen(HOOK, env=environment, stdin=pipe, stdout=pipe, stderr=pipe)


def hook(told: object, **variables: str) -> tuple[int, bytes, bytes]:
    data = told if isinstance(told, bytes) else json.dumps(told).encode()
    with start(**variables) as process:
        out, err = process.communicate(data, timeout=60)
    return process.returncode, out, err


SILENT = (0, b"", b"")


def kept(home: Path) -> list[Path]:
    return sorted((home / ".agent-logger" / "hooks").glob("*/*"))


def record(home: Path) -> Hook:
    (path,) = kept(home)
    found = decode(path.read_bytes(), "hook")
    assert isinstance(found, Hook)
    return found


def comes_true(what: Callable[[], bool]) -> bool:
    until = time.monotonic() + LAST_SECONDS
    while not (true := what()) and time.monotonic() < until:
        time.sleep(0.02)
    return true


def transcript(home: Path, name: str = SESSION, text: str = '{"type":"user"}\n') -> Path:
    path = home / ".claude" / "projects" / "-project" / f"{name}.jsonl"
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(text)
    return path


def kept_hooks(home: Path) -> list[KeptHook]:
    """Of all sessions, in the order they came."""
    folders = [Path(it) for it in day_folders(home / ".agent-logger")]
    tags = {(folder, tag) for folder in folders for it in folder.iterdir() if (tag := tag_in(it.name))}
    return sorted((it for folder, tag in tags for it in hooks_in(folder, tag)), key=lambda it: it.path)


def copies(home: Path) -> dict[str, bytes]:
    archive = home / ".agent-logger" / "archive"
    files = [it for it in archive.rglob("*") if it.is_file() and it.name[0] != "."]
    return {it.relative_to(archive).as_posix(): it.read_bytes() for it in files}


def test_a_hook_input_is_stored_verbatim_in_one_private_file(home: Path) -> None:
    told = {"session_id": SESSION, "hook_event_name": "NotKnownYet", "zeta": [1, {"a": "ü\u2028"}]}
    assert hook(told) == SILENT
    (path,) = kept(home)
    assert path.stat().st_mode & 0o777 == 0o600
    assert path.read_bytes().count(b"\n") == 1
    assert json.loads(bytes(record(home).input)) == told  # type: ignore[arg-type]


def test_a_stored_input_is_read_back_as_hook_input(home: Path) -> None:
    told = {"session_id": SESSION, "cwd": "/p", "hook_event_name": "SessionEnd", "reason": "exit", "more": 1}
    hook(told)
    (found,) = kept_hooks(home)
    wanted = HookInput(session_id=SESSION, cwd="/p", hook_event_name="SessionEnd", reason="exit", rest={"more": 1})
    assert found.input == wanted


def test_keys_are_redacted_before_anything_is_written(home: Path) -> None:
    assert hook({"session_id": SESSION, "prompt": f"my key is {KEY}"}) == SILENT
    found = record(home)
    assert KEY.encode() not in kept(home)[0].read_bytes()
    assert found.redactions
    assert found.redactions[0].rule == "anthropic"


ODD = {
    "nothing": b"",
    "not JSON": b"hello {",
    "a list": b"[1]",
    "not a number": b'{"a": NaN}',
    "not UTF-8": b'{"a":"\xff\xfe"}',
    "deep": b"[" * 100_000 + b"]" * 100_000,
    "newlines between values": b'{\n "session_id":\n\n "x"}\n\n',
    "ids that are paths": json.dumps({"session_id": "../../x", "transcript_path": "/etc/passwd"}).encode(),
    "names that are no texts": b'{"session_id": 7, "transcript_path": {"a": 1}, "hook_event_name": null}',
    "a NUL in a path": b'{"transcript_path": "/a\\u0000b"}',
    "an unknown user": b'{"transcript_path": "~nobody-here/x.jsonl"}',
    "10 MB": json.dumps({"session_id": "x", "tool_response": "y" * (10 << 20)}).encode(),
    "more than is kept": b'{"a":"' + b"y" * (20 << 20) + b'"}',
}


@pytest.mark.parametrize("data", ODD.values(), ids=ODD.keys())
def test_any_input_is_stored_without_output(home: Path, data: bytes) -> None:
    began = time.monotonic()
    assert hook(data) == SILENT
    assert time.monotonic() - began < 15
    found = record(home)
    assert found.raw is not None or found.input
    assert (found.bytes == len(data)) == (len(data) > 16 << 20)
    assert copies(home) == {}


def test_an_unusable_home_folder_causes_no_output(tmp_path: Path) -> None:
    (tmp_path / "file").write_text("")
    told = {"session_id": SESSION}
    assert hook(told, AGENT_LOGGER_HOME=str(tmp_path / "file" / "home")) == SILENT
    assert hook(told, AGENT_LOGGER_HOME="/proc/nowhere") == SILENT
    assert hook(told, AGENT_LOGGER_HOME="~nobody-here/x") == SILENT


def test_a_full_disk_leaves_no_partial_files(small_disk: Path, home: Path) -> None:
    transcript(home)
    with (small_disk / "fill").open("wb") as fill, pytest.raises(OSError, match="space"):
        while True:
            fill.write(bytes(65536))
            fill.flush()
    path = str(transcript(home))
    assert hook({"session_id": SESSION, "transcript_path": path}, AGENT_LOGGER_HOME=str(small_disk)) == SILENT
    assert not [it for it in small_disk.rglob("*") if it.is_file() and it.name != "fill"]


def test_the_hook_exits_when_the_agent_never_closes_stdin() -> None:
    with start() as process:
        assert process.stdin
        process.stdin.write(b'{"session_id":"x"}')
        process.stdin.flush()
        assert process.wait(timeout=60) == 0


def cpu_seconds() -> float:
    """Of the processes that were waited for: unlike the clock, it does not depend on who else is at work here."""
    used = resource.getrusage(resource.RUSAGE_CHILDREN)
    return used.ru_utime + used.ru_stime


@pytest.mark.parametrize("count", [40, pytest.param(200, marks=pytest.mark.long)])
def test_concurrent_hook_inputs_are_all_stored(home: Path, tmp_path: Path, count: int) -> None:
    path = transcript(home, text='{"type":"user","n":1}\n' * 100)
    inputs = [tmp_path / f"{number}.json" for number in range(count)]
    for number, it in enumerate(inputs):
        told = {"session_id": SESSION, "transcript_path": str(path), "number": number}
        it.write_text(json.dumps(told))
    before = cpu_seconds()
    said = tmp_path / "said"
    with said.open("wb") as out, ExitStack() as files:
        given = [files.enter_context(it.open("rb")) for it in inputs]
        running = [subprocess.Popen(HOOK, stdin=it, stdout=out, stderr=out) for it in given]
        assert {process.wait(timeout=100) for process in running} == {0}
    taken = cpu_seconds() - before
    assert said.read_bytes() == b""
    numbers = {it.input.rest["number"] for it in kept_hooks(home)}
    assert numbers == set(range(count))
    assert comes_true(lambda: path.read_bytes() in copies(home).values())
    assert len(copies(home)) == 1
    assert taken / 2 < 15, "seconds on two cores"


def test_the_transcript_is_copied_with_its_related_files(home: Path) -> None:
    path = transcript(home)
    beside = [
        path.with_suffix("") / "subagents" / "agent-1.jsonl",
        path.with_suffix("") / "tool-results" / "b.txt",
        path.parent / "memory" / "MEMORY.md",
        home / ".claude" / "file-history" / SESSION / "d154@v2",
    ]
    for it in beside:
        it.parent.mkdir(parents=True, exist_ok=True)
        it.write_text(f"{it.name}\n")
    transcript(home, "11111111-0000-4000-8000-000000000000")  # another session is not touched
    wanted = {it.relative_to(home / ".claude").as_posix() for it in (path, *beside)}
    hook({"session_id": SESSION, "transcript_path": f"~/.claude/projects/-project/{SESSION}.jsonl"})
    assert comes_true(lambda: {it.split("/", 2)[2] for it in copies(home)} == wanted)


def places_that_lead_astray(home: Path, outside: Path) -> list[Path]:
    projects = home / ".claude" / "projects"
    (projects / "-project").mkdir(parents=True)
    (projects / "-link").symlink_to(outside)
    (projects / "-project" / "link.jsonl").symlink_to(outside / "secret.jsonl")
    os.mkfifo(projects / "-project" / "fifo.jsonl")
    (projects / "-project" / "folder.jsonl").mkdir()
    (home / ".claude" / ".credentials.json").write_text("{}")
    return [
        outside / "secret.jsonl",
        projects / "-link" / "secret.jsonl",
        projects / "-project" / "link.jsonl",
        projects / "-project" / "fifo.jsonl",
        projects / "-project" / "folder.jsonl",
        projects / "-project" / ".." / ".." / ".credentials.json",
        Path("/dev/zero"),
        Path("relative.jsonl"),
        home / ".claude",
    ]


def test_only_regular_files_in_agent_folders_are_copied(home: Path, tmp_path: Path) -> None:
    outside = tmp_path / "outside"
    outside.mkdir()
    (outside / "secret.jsonl").write_text("secret\n")
    for path in places_that_lead_astray(home, outside):
        assert hook({"session_id": SESSION, "transcript_path": str(path)}) == SILENT
    good = transcript(home)
    hook({"session_id": SESSION, "transcript_path": str(good)})
    assert comes_true(lambda: len(copies(home)) > 0)
    assert [it.split("/")[-1] for it in copies(home)] == [good.name]


def test_the_hook_command_imports_no_slow_modules(tmp_path: Path) -> None:
    """What keeps it under 80 ms (`./dev bench startup` measures it): these take 10 to 40 ms each."""
    code = "import sys, agent_logger.__main__, agent_logger.hooks.entry; print('\\n'.join(sys.modules))"
    run = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    slow = {
        "msgspec",
        "click",
        "dataclasses",
        "inspect",
        "asyncio",
        "hashlib",
        "datetime",
        "subprocess",
        "logging",
    }
    assert not slow & set(run.stdout.split())
