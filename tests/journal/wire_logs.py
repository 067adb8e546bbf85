"""Wire logs on disk, and branches of them, made of the calls of a real client."""

from collections.abc import Iterable
from pathlib import Path

from agent_logger.journal.journal import Journal
from agent_logger.model.records import Fork, Record, WireStart
from tests.logs.wire_log.wire_records import talk, ts

CHAIN = talk("claude-cli/2.1.325/multi_input_replay")  # three exchanges, a call each


def write(folder: Path, name: str, records: Iterable[Record]) -> Path:
    journal = Journal(folder, name, "wire")
    for record in records:
        assert journal.append(record)
    journal.close()
    return folder / f"{name}.jsonl"


def start(name: str) -> WireStart:
    return WireStart(ts=ts(0), provider="anthropic", upstream="api.anthropic.com", session=name)


def fork(parent: str, from_seq: int) -> Fork:
    return Fork(ts=ts(0), from_seq=from_seq, parent_session=parent, reason="message_history_diverged")


def calls(*seqs: int) -> list[Record]:
    """Those of the chain, numbered from 1 as in every log."""
    return list(CHAIN.of(*seqs).called())


def own(name: str, parent: str, from_seq: int, *seqs: int) -> list[Record]:
    return [start(name), fork(parent, from_seq), *calls(*seqs)]
