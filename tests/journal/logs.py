"""What a log holds, beside what was acknowledged."""

from collections import Counter
from collections.abc import Iterable
from contextlib import suppress
from dataclasses import dataclass, field
from pathlib import Path

from agent_logger.files.line_files import entries
from agent_logger.files.parts import live_files_of, parts_of
from agent_logger.journal.journal import Journal
from agent_logger.logs.log_records import read_exchanges, read_log
from agent_logger.logs.verify import FileReport, verify_file
from agent_logger.model.records import (
    ExchangeRecord,
    Gap,
    LiveMessage,
    LiveStart,
    Message,
    Recovered,
    Resume,
    Unknown,
)
from agent_logger.protocols.jsonl import Damage, Torn
from tests.journal.writer import Ack, digest

TS = "2026-01-01T00:00:00.000Z"


def resume(key: str, text: str = "") -> Resume:
    return Resume(session_id=key, ts=TS, resumed_from=text)


def start(key: str, number: int = 1) -> LiveStart:
    return LiveStart(id=key, session_id="s", exchange=number, ts_start=TS, user_input="do it")


def message(text: str) -> Message:
    return Message(source="assistant", type="text", ts=TS, text=text)


def live(key: str, text: str) -> LiveMessage:
    return LiveMessage(id=key, message=message(text))


def exchange(key: str, *texts: str, number: int = 1) -> ExchangeRecord:
    return ExchangeRecord(
        id=key,
        session_id="s",
        exchange=number,
        ts_start=TS,
        ts_end=TS,
        user_input="do it",
        messages=[message(text) for text in texts],
        stats=None,
        end_reason="result",
    )


@dataclass
class Found:
    """A log as it is read back."""

    appended: dict[str, str] = field(default_factory=dict)  # id, digest of its text
    times_appended: Counter[str] = field(default_factory=Counter)
    logged: Counter[str] = field(default_factory=Counter)  # how often an exchange is in the log
    exchanges: dict[str, ExchangeRecord] = field(default_factory=dict)  # those in flight too
    gaps: list[Gap] = field(default_factory=list)
    recovered: int = 0
    unreadable: list[Damage | Unknown] = field(default_factory=list)  # a torn line is none
    order: list[str] = field(default_factory=list)  # of what was appended

    @property
    def gap_lost(self) -> int:
        return sum(gap.lost for gap in self.gaps)

    def missing(self, acks: Iterable[Ack]) -> list[str]:
        """What was acknowledged and is not there, or is there in another form, or twice."""
        return [fault for ack in acks if (fault := self._fault(ack))]

    def _fault(self, ack: Ack) -> str | None:
        whole = self.exchanges.get(ack.id)
        match ack.op:
            case "append":
                good = self.appended.get(ack.id) == ack.digest and self.times_appended[ack.id] == 1
            case "begin":
                good = whole is not None
            case "add":
                good = whole is not None and ack.digest in {digest(it.text) for it in whole.messages}
            case "end":
                good = whole is not None and whole.complete and self.logged[ack.id] == 1
                good = good and whole is not None and len(whole.messages) == ack.number
            case _:
                good = True
        return None if good else f"{ack.op} {ack.id} {ack.number or ''}"


def look(folder: Path, name: str = "log") -> Found:
    found = Found()
    for item in read_log(folder, name):
        match item.value:
            case Resume(session_id=str(key)) as record:
                found.appended[key] = digest(record.resumed_from)
                found.times_appended[key] += 1
                found.order.append(key)
            case ExchangeRecord(id=str(key)):
                found.logged[key] += 1
            case Gap() as gap:
                found.gaps.append(gap)
            case Recovered():
                found.recovered += 1
            case Damage() | Unknown() as bad:
                found.unreadable.append(bad)
    found.exchanges = {it.id or "": it for it in read_exchanges(folder, name)}
    return found


def reopen(folder: Path, name: str = "log") -> None:
    """Be the next owner."""
    journal = Journal(folder, name, "exchange")
    assert journal.open()
    journal.close()


def reports(folder: Path, name: str = "log") -> list[FileReport]:
    return [verify_file(part.existing_path()) for part in parts_of(folder, name)]


def damage(folder: Path, name: str = "log") -> list[str]:
    return [f"{it.path}: {bad}" for it in reports(folder, name) for bad in it.damage]


def torn(folder: Path, name: str = "log") -> list[str]:
    """The parts and live files that end within a line."""
    live_files = [path for paths in live_files_of(folder, name).values() for path in paths]
    paths = [part.existing_path() for part in parts_of(folder, name)] + live_files
    return [str(path) for path in paths if _is_torn(path)]


def _is_torn(path: Path) -> bool:
    with suppress(FileNotFoundError):  # a live file that the upkeep has just removed
        return any(isinstance(it, Torn) for it in entries(path))
    return False
