"""Read every byte of what was recorded and of the agents' own files: what is damaged, and what was redacted.

This runs in a process of its own, at low priority: it may take minutes, and the page must not wait for it.
"""

import os
import sys
from collections import Counter
from collections.abc import Iterator
from pathlib import Path

import msgspec

from agent_logger.catalog.discovery.own_logs import log_folders
from agent_logger.catalog.discovery.sessions import places
from agent_logger.errors import SourceError
from agent_logger.files.line_files import entries
from agent_logger.logs.verify import BadPlace, log_files, verify_file
from agent_logger.model import records
from agent_logger.model.records import Kind, Redaction, Request, Response
from agent_logger.protocols.jsonl import JsonEntry


class DamagedPlace(msgspec.Struct, frozen=True, kw_only=True):
    path: str
    place: BadPlace


class VerificationReport(msgspec.Struct, frozen=True, kw_only=True):
    files: int
    bytes: int
    records: int
    torn: int
    damage: list[DamagedPlace]
    lost: int  # records that the logs say are missing
    redactions: dict[str, int]  # by rule


def verify_home(home: Path) -> VerificationReport:
    files = list(dict.fromkeys(_files(home)))
    reports = [verify_file(path) for path in files]
    rules = Counter(redaction.rule for path in files for redaction in _redactions(path))
    return VerificationReport(
        files=len(files),
        bytes=sum(report.bytes for report in reports),
        records=sum(report.records for report in reports),
        torn=sum(report.torn_bytes > 0 for report in reports),
        damage=[DamagedPlace(path=report.path, place=bad) for report in reports for bad in report.damage],
        lost=sum(report.lost for report in reports),
        redactions=dict(rules.most_common()),
    )


def _files(home: Path) -> Iterator[Path]:
    for folder in log_folders(home):
        yield from log_files(folder)
    for place in places(home):
        if place.agent and place.path.suffix in (".jsonl", ".zst"):
            yield place.path


def _redactions(path: Path) -> Iterator[Redaction]:
    """The redactions in the calls of a log of ours."""
    kind: Kind | None = None
    try:
        for item in entries(path):
            if isinstance(item, JsonEntry):
                kind = kind or records.kind_of(item.raw)
                if kind is None:
                    return  # not ours
                record = records.decode(item.raw, kind)
                yield from (record.redactions or () if isinstance(record, Request | Response) else ())
    except (SourceError, OSError, ValueError):
        return


def main() -> None:
    os.nice(19)
    sys.stdout.buffer.write(msgspec.json.encode(verify_home(Path(sys.argv[1]))))


if __name__ == "__main__":
    main()
