"""Thoughts: progress is in the live file alone, and their text is stored once."""

import json
from pathlib import Path
from typing import Any

import pytest

from agent_logger import SessionLogger
from agent_logger.journal.sync import UPKEEP
from agent_logger.logs.log_records import read_exchanges
from agent_logger.logs.reader import read_session
from agent_logger.recording import exchanges as exchanges_module
from tests.recording.run import run

ID = "1f320356-a178-418e-a692-69ce6e1e657c"
THOUGHT = "A thought that is long enough to be found. " * 40
INIT = {"type": "system", "subtype": "init", "session_id": ID, "model": "claude-haiku-4-5", "cwd": "/x"}
TICK = {"type": "system", "subtype": "thinking_tokens", "session_id": ID, "estimated_tokens": 7}
RESULT = {"type": "result", "subtype": "success", "is_error": False, "session_id": ID, "result": "Done."}


def thinking(**more: Any) -> dict[str, Any]:
    block = {"type": "thinking", "thinking": THOUGHT, **more}
    return {"type": "assistant", "session_id": ID, "message": {"id": "msg_1", "content": [block]}}


def log(folder: Path, *messages: dict[str, Any], close: bool = True) -> SessionLogger:
    logger = SessionLogger(folder)
    logger.log_user_input("think")
    for message in messages:
        logger.log(message)
    if close:
        logger.close()
    return logger


SIGNED = thinking(signature="c2lnbmVk")


def test_thinking_progress_is_written_to_the_live_file_only(tmp_path: Path) -> None:
    logger = log(tmp_path, INIT, *[TICK] * 400, SIGNED, close=False)
    [live] = tmp_path.glob("*.live")
    assert live.read_text().count('"type":"thinking_tokens"') == 400
    logger.log(RESULT)
    logger.close()
    assert logger.path
    assert "thinking_tokens" not in logger.path.read_text()
    [exchange] = read_exchanges(tmp_path, logger.path.stem)
    assert [it.type for it in exchange.messages] == ["thinking", "result_message"]


def test_thinking_progress_is_not_logged_for_a_large_exchange(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(exchanges_module, "HELD_BYTES", 100)
    logger = log(tmp_path, INIT, TICK, SIGNED, TICK, RESULT)
    UPKEEP.finish()
    assert logger.path
    [exchange] = read_exchanges(tmp_path, logger.path.stem)
    assert [it.type for it in exchange.messages] == ["thinking", "result_message"]


def test_thinking_progress_is_not_logged_for_a_run(tmp_path: Path) -> None:
    program = tmp_path / "claude"
    text = "\n".join(json.dumps(it) for it in (INIT, *[TICK] * 20, SIGNED, RESULT))
    program.write_text(f"#!/bin/sh\ncat <<'END'\n{text}\nEND\n")
    program.chmod(0o755)
    found = run("a b", executable=str(program), sessions_dir=tmp_path / "s")
    assert found.metadata.log
    assert "thinking_tokens" not in Path(found.metadata.log).read_text()


def test_a_recovered_exchange_omits_thinking_progress(tmp_path: Path) -> None:
    first = log(tmp_path, INIT, TICK, SIGNED, TICK, close=False)
    assert first.path
    [live] = tmp_path.glob("*.live")
    left, folder = live.read_bytes(), tmp_path / "crashed"
    folder.mkdir()
    (folder / live.name).write_bytes(left)
    (folder / first.path.name).write_bytes(first.path.read_bytes())
    first.close()
    with SessionLogger(folder) as logger:
        logger.log_user_input("again")
        logger.log(INIT)
        logger.log(RESULT)
    assert logger.path
    found = read_exchanges(folder, logger.path.stem)
    assert [it.end_reason for it in found] == ["recovered", "result"]
    assert [it.type for it in found[0].messages] == ["thinking"]


@pytest.mark.parametrize("message", [thinking(), SIGNED], ids=["bare", "signed"])
def test_a_thinking_text_is_stored_once_and_its_block_is_read_completely(
    message: dict[str, Any], tmp_path: Path
) -> None:
    logger = log(tmp_path, INIT, message, RESULT)
    assert logger.path
    assert logger.path.read_text().count(THOUGHT) == 1
    [turn] = read_session(logger.path).turns
    [block] = turn.blocks
    assert (block.kind, block.text) == ("thinking", THOUGHT)
    assert block.raw in (None, message["message"]["content"][0])
    assert "signature" not in message["message"]["content"][0] or block.raw


def test_a_log_that_stores_the_thinking_text_twice_reads_the_same(tmp_path: Path) -> None:
    logger = log(tmp_path, INIT, SIGNED, RESULT)
    assert logger.path
    new, lines = read_session(logger.path), [json.loads(it) for it in logger.path.read_text().splitlines()]
    for line in lines:
        for entry in line.get("messages", ()):
            if entry["type"] == "thinking":
                entry["content"] = SIGNED["message"]["content"][0]
    logger.path.write_text("".join(json.dumps(line) + "\n" for line in lines))
    assert read_session(logger.path) == new
