"""A scan seals what is due: our logs, wherever they are, and nobody else's files."""

import asyncio
import json
import os
import subprocess
import sys
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from agent_logger import Catalog, FileStorage, SessionLogger, find_session
from agent_logger.files.parts import PartFile
from agent_logger.files.sealed import FRAME_MAGIC
from agent_logger.home.facts import register_log_folder
from agent_logger.journal.seal import seal
from agent_logger.journal.sync import UPKEEP
from agent_logger.transcripts.sdk_store import AgentLoggerSessionStore
from tests.catalog.catalogs import ID, all_of, assistant, claude_file, made_anew, user
from tests.journal.wire_logs import calls, start
from tests.journal.wire_logs import write as write_log

ONE, TWO, THREE = (ID.format(it) for it in (1, 2, 3))
DAY = 86_400.0
WIRE = "20261115-080000-abcd"
KEY = {"project_key": "-work", "session_id": THREE}


@pytest.fixture
def catalog(home: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Catalog]:
    """One log of each kind, and a file of an agent's, none of them touched for two days."""
    monkeypatch.setenv("HOME", str(home))
    kept = home / ".agent-logger"
    write_log(home / "logs" / "anthropic", WIRE, [start(WIRE), *calls(1)])
    register_log_folder(kept, home / "logs")
    with SessionLogger(home / "sessions") as logger:
        logger.log({"type": "system", "subtype": "init", "session_id": ONE, "cwd": "/p"})
        logger.log({"type": "result", "subtype": "success", "session_id": ONE, "total_cost_usd": 0.1})
    with FileStorage(cwd=home) as storage:
        storage.append(TWO, user(1, "find the okapi", TWO))
        storage.append(TWO, assistant(2, "found it", TWO))
    store = AgentLoggerSessionStore(FileStorage())
    asyncio.run(store.append(KEY, [user(3, "kept by the SDK", THREE)]))
    for log in store._open.values():  # as the end of the process does
        log.journal.close()
    UPKEEP.finish()
    claude_file(home, ID.format(4), [user(4, "mine", ID.format(4)), assistant(5, "yes", ID.format(4))])
    age(home)
    with Catalog.open(kept) as opened:
        yield opened


def age(home: Path, days: float = 2) -> None:
    for path in home.rglob("*.jsonl"):
        os.utime(path, (time.time() - days * DAY,) * 2)


def plain(home: Path) -> set[str]:
    return {it.name for it in home.rglob("*.jsonl") if it.name not in ("facts.jsonl", "history.jsonl")}


def sealed(home: Path) -> set[str]:
    return {it.name.removesuffix(".zst") for it in home.rglob("*.zst")}


def test_sealed_logs_give_the_same_answers_and_are_not_read_again(home: Path, catalog: Catalog) -> None:
    before, logs = all_of(catalog, ["okapi"]), plain(home)
    sessions = {it.id: catalog.session(it.id) for it in before.sessions}
    assert catalog.is_sealing_due(DAY)
    assert catalog.seal(DAY) == len(logs) - 1
    assert (plain(home), sealed(home)) == ({f"{ID.format(4)}.jsonl"}, logs - plain(home))
    done = catalog.refresh()
    assert (done.changed, done.files_opened) == (0, 0)
    for asked in (catalog, made_anew(catalog.home, home / "other")):
        if asked is not catalog:
            register_log_folder(home / "other", catalog.home / "projects")
        assert all_of(asked, ["okapi"]) == before
        assert {it: asked.session(it) for it in sessions} == sessions
    assert not catalog.is_sealing_due(DAY)


def test_sealed_transcripts_can_be_read_listed_and_extended(home: Path, catalog: Catalog) -> None:
    all_of(catalog)
    catalog.seal(DAY)
    with FileStorage(cwd=home) as storage:
        assert [it["type"] for it in storage.load(TWO) or []] == ["user", "assistant"]
        assert {it.id for it in storage.list()} == {TWO, THREE}
        storage.append(TWO, assistant(7, "and more", TWO))
    store = AgentLoggerSessionStore(FileStorage())
    assert asyncio.run(store.load(KEY)) == [user(3, "kept by the SDK", THREE)]
    catalog.refresh()
    session = catalog.session(TWO)
    assert session and [turn.blocks[0].text for turn in session.turns] == ["found it", "and more"]
    assert {it.suffix for it in catalog.home.rglob(f"{TWO}*.jsonl*")} == {".zst", ".jsonl"}


def test_recent_logs_and_logs_in_use_are_not_sealed(home: Path, catalog: Catalog) -> None:
    all_of(catalog)
    assert catalog.seal(None) == catalog.seal(3 * DAY) == 0
    assert not catalog.is_sealing_due(3 * DAY)
    with FileStorage(cwd=home) as storage:
        storage.append(TWO, assistant(7, "at work", TWO))
        age(home)
        catalog.seal(DAY)
        assert f"{TWO}.jsonl" in plain(home)


def test_foreign_files_and_transcripts_in_agent_folders_are_not_sealed(home: Path, catalog: Catalog) -> None:
    theirs = home / "logs" / "notes.jsonl"
    theirs.write_text('{"type":"user","message":{"role":"user","content":"no log of ours"}}\n')
    with FileStorage(home / ".claude", cwd=home) as storage:
        storage.append(ID.format(5), user(1, "for Claude Code to find", ID.format(5)))
    age(home)
    all_of(catalog)
    catalog.seal(DAY)
    assert plain(home) == {"notes.jsonl", f"{ID.format(4)}.jsonl", f"{ID.format(5)}.jsonl"}
    assert find_session(ID.format(5))


def test_sealing_continues_in_the_next_run_after_its_time_limit(home: Path, catalog: Catalog) -> None:
    all_of(catalog)
    counts = []
    while catalog.is_sealing_due(DAY):
        counts.append(catalog.seal(DAY, seconds=0))
        catalog.refresh()
    assert counts == [1] * len(sealed(home))
    assert plain(home) == {f"{ID.format(4)}.jsonl"}


def test_a_log_half_sealed_by_a_killed_process_is_sealed_again(home: Path, catalog: Catalog) -> None:
    before = all_of(catalog)
    log = PartFile(home / "logs" / "anthropic", WIRE)
    log.sealed_path.with_name(log.sealed_path.name + ".tmp").write_bytes(FRAME_MAGIC + b"half")
    data = log.path.read_bytes()
    catalog.seal(DAY)
    log.path.write_bytes(data)  # killed before the plain one went
    os.utime(log.path, (time.time() - 2 * DAY,) * 2)
    catalog.refresh()
    assert all_of(catalog) == before
    assert seal(log)
    assert all_of(catalog) == before


def test_a_command_seals_logs_in_the_background(home: Path, catalog: Catalog) -> None:
    def listed(**variables: str) -> list[dict[str, Any]]:
        environment = {"PATH": os.environ["PATH"], "HOME": str(home), **variables}
        command = [sys.executable, "-m", "agent_logger", "ls", "--json"]
        told = subprocess.run(command, env=environment, capture_output=True, check=True).stdout
        return sorted(json.loads(told), key=lambda it: str(it["id"]))

    before = listed(AGENT_LOGGER_SEAL_AFTER="never")
    assert not sealed(home)
    assert listed() == before
    until = time.monotonic() + 60
    while plain(home) != {f"{ID.format(4)}.jsonl"} and time.monotonic() < until:
        time.sleep(0.05)
    assert plain(home) == {f"{ID.format(4)}.jsonl"}
    assert listed() == before
