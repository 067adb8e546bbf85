"""A tracker whose table is lost finds its sessions in the logs as they lie on the disk."""

import os
from pathlib import Path

from agent_logger.files.parts import PartFile
from agent_logger.journal.journal import Journal
from agent_logger.journal.seal import seal
from agent_logger.model.records import decode
from agent_logger.proxy.recorder.history import wire_logs
from agent_logger.proxy.tracking.memory import Memory
from agent_logger.proxy.tracking.table import Table
from tests.proxy.tracking.conversation import Recorder


def test_sessions_are_found_in_plain_and_sealed_parts(tmp_path: Path) -> None:
    recorder = Recorder()
    first = recorder.talk("a", "A", session="s")
    fork = recorder.talk("a", "A2", session="s")
    other = recorder.talk("b", "B")
    for number, ((provider, name), lines) in enumerate(recorder.logs.items()):
        journal = Journal(tmp_path / provider, name, "wire")
        assert all(journal.append(decode(line, "wire")) for line in lines)
        journal.close()
        os.utime(PartFile(tmp_path / provider, name).path, (number, number))
    (tmp_path / ".spool").mkdir()
    (tmp_path / "anthropic" / "unattributed.jsonl").write_bytes(b"{}\n")
    assert first.session
    assert seal(PartFile(tmp_path / "anthropic", first.session))
    names = [other.session, fork.session, first.session]
    assert [log.name for log in wire_logs(tmp_path)] == names
    recorder.start(Memory(Table(tmp_path / "sessions.db"), lambda: wire_logs(tmp_path)))
    assert recorder.talk("a", "A", "c", "C", session="s").session == first.session
    assert recorder.talk("a", "A2", "c", "C", session="s").session == fork.session
    assert recorder.talk("b", "B", "c", "C").session == other.session
