"""The report of an export: what was removed or replaced, by rule and place, and what looks odd and stayed."""

import platform as system
import re
from collections.abc import Callable, Iterable, Iterator, Mapping
from contextlib import suppress
from functools import cache
from pathlib import Path

import msgspec

from agent_logger.exports.base import ExportPiece
from agent_logger.model.plurals import pluralize
from agent_logger.model.records import Redaction
from agent_logger.model.redaction.redactor import observed_redactions

MOST_ROWS = 2000  # of each list; the sums count all
MOST_SHOWN = 5  # places and values of each kind that people see
LONGEST_VALUE = 80  # characters
Finder = Callable[[bytes], Iterable[str]]
ODD_KINDS = ("e-mail address", "home path", "host name", "long base64")


class RemovedSecret(msgspec.Struct, frozen=True, kw_only=True):
    """Secrets that one rule removed at one place."""

    rule: str
    session: str
    place: str
    count: int


class OddText(msgspec.Struct, frozen=True, kw_only=True):
    """A text that stayed, and that a person may want to look at before the file is shared."""

    kind: str  # e-mail address, home path, host name, long base64
    value: str  # of base64 its beginning
    session: str
    place: str
    count: int


class CheckHit(msgspec.Struct, frozen=True, kw_only=True):
    """What the check found in the finished output."""

    rule: str
    file: str | None  # the file inside a bundle, or of a folder; none: the output
    line: int
    count: int


class ExportReport(msgspec.Struct, kw_only=True):
    """The result of an export."""

    format: str
    sessions: int = 0
    skipped: int = 0  # sessions whose files an earlier, interrupted export wrote
    failed: list[str] = []  # sessions that could not be read or have nothing for this format, each with the reason
    bytes: int = 0
    files: list[str] = []  # paths of new files
    removed: list[RemovedSecret] = []
    removed_total: int = 0
    masked: Mapping[str, int] = {}  # texts with a pseudonym, by kind; none without --mask
    odd: list[OddText] = []
    odd_total: dict[str, int] = {}
    damaged_lines: int = 0
    checked: bool = False
    hits: list[CheckHit] = []


class SessionFindings(msgspec.Struct, frozen=True, kw_only=True):
    """What was removed from one session, and what looks odd in it."""

    removed: list[RemovedSecret] = []
    odd: list[OddText] = []
    damaged_lines: int = 0
    bytes: int = 0


class Inspector:
    """Collects the findings of one session while its pieces are made."""

    def __init__(self, session: str) -> None:
        self._session = session
        self._bytes = 0
        self._removed: dict[tuple[str, str], int] = {}
        self._odd: dict[tuple[str, str, str], int] = {}

    def inspected(self, pieces: Iterable[ExportPiece]) -> Iterator[ExportPiece]:
        """Yield the pieces, and note what was removed in making each, and what looks odd in it."""
        waiting = iter(pieces)
        redactions: list[Redaction] = []
        while True:
            with observed_redactions(redactions.append):
                piece = next(waiting, None)
            if piece is None:
                return
            for redaction in redactions:
                place = (redaction.rule, piece.place)
                self._removed[place] = self._removed.get(place, 0) + 1
            redactions.clear()
            for kind, values in _odd_values():
                for value in values(piece.data):
                    key = (kind, value, piece.place)
                    self._odd[key] = self._odd.get(key, 0) + 1
            self._bytes += len(piece.data)
            yield piece

    def findings(self, damaged_lines: int) -> SessionFindings:
        removed = (
            RemovedSecret(rule=rule, session=self._session, place=place, count=count)
            for (rule, place), count in self._removed.items()
        )
        odd = (
            OddText(kind=kind, value=value, session=self._session, place=place, count=count)
            for (kind, value, place), count in self._odd.items()
        )
        return SessionFindings(removed=list(removed), odd=list(odd), damaged_lines=damaged_lines, bytes=self._bytes)


def add_findings(report: ExportReport, findings: SessionFindings) -> None:
    """Add the findings of a session to the report."""
    report.sessions += 1
    report.bytes += findings.bytes
    report.damaged_lines += findings.damaged_lines
    report.removed_total += sum(row.count for row in findings.removed)
    report.removed += findings.removed[: MOST_ROWS - len(report.removed)]
    for row in findings.odd:
        report.odd_total[row.kind] = report.odd_total.get(row.kind, 0) + row.count
    report.odd += findings.odd[: MOST_ROWS - len(report.odd)]


# ---------------------------------------------------------------- what looks odd

_DOMAIN = re.compile(rb"@(?:[A-Za-z0-9](?:[A-Za-z0-9-]{0,61}[A-Za-z0-9])?\.){1,8}[A-Za-z]{2,24}(?![A-Za-z0-9])")
_LOCAL_PART = re.compile(rb"[A-Za-z0-9._%+-]{1,64}\Z")
_HOME = re.compile(
    rb"/(?:home|Users)\\{0,4}/[^\s/\\\"'<>|:*?;,()\[\]{}$&`]+|[A-Za-z]:(?:\\{1,8}|/)Users(?:\\{1,8}|/)[\w.-]+"
)
_INTERNAL_HOST = re.compile(
    rb"(?<![\w.-])(?:[A-Za-z0-9-]{1,63}\.){1,6}(?:internal|local|lan|corp|intranet|localdomain)(?![\w.-])"
)
_BASE64 = re.compile(rb"(?<![A-Za-z0-9+/_=-])[A-Za-z0-9+/_-]{200,}={0,2}")


@cache
def _odd_values() -> tuple[tuple[str, Finder], ...]:
    return tuple(_patterns())


def _patterns() -> Iterator[tuple[str, Finder]]:
    yield "e-mail address", _emails
    homes = [_HOME, *_own_home()]
    yield "home path", lambda data: _values(data, homes)
    host = system.node()
    named = rb"(?<![\w.-])%b(?![\w-])" % re.escape(host.encode()) if len(host) > 1 and host != "localhost" else rb"(?!)"
    hosts = [re.compile(named), _INTERNAL_HOST]
    yield "host name", lambda data: _values(data, hosts)
    yield (
        "long base64",
        lambda data: (f"{value[:24]}... ({pluralize(len(value), 'character')})" for value in _texts(data, _BASE64)),
    )


def _own_home() -> Iterator[re.Pattern[bytes]]:
    with suppress(RuntimeError):
        home = str(Path.home())
        if len(home) > 1 and not home.startswith(("/home/", "/Users/")):
            yield re.compile(rb"(?<![\w.-])%b(?![\w-])" % re.escape(home.encode("utf-8", "surrogateescape")))


def _emails(data: bytes) -> Iterator[str]:
    if b"@" not in data:
        return
    for domain in _DOMAIN.finditer(data):
        local = _LOCAL_PART.search(data[max(domain.start() - 64, 0) : domain.start()])
        if local and not domain[0].endswith(b".invalid"):
            yield _shortened(local[0] + domain[0])


def _values(data: bytes, patterns: Iterable[re.Pattern[bytes]]) -> Iterator[str]:
    for pattern in patterns:
        for value in _texts(data, pattern):
            if not _MASKED.search(value):
                yield value


_MASKED = re.compile(r"(?:home|Users)\W{1,8}p-[0-9a-f]{8}")


def _texts(data: bytes, pattern: re.Pattern[bytes]) -> Iterator[str]:
    return (match[0].decode("utf-8", "replace") for match in pattern.finditer(data))


def _shortened(value: bytes) -> str:
    return value.decode("utf-8", "replace")[:LONGEST_VALUE]


# ---------------------------------------------------------------- for people


def report_lines(report: ExportReport) -> Iterator[str]:
    """Yield the report as lines for a person."""
    yield _summary(report)
    if report.removed_total:
        rules = _sums((row.rule, row.count) for row in report.removed)
        yield f"removed: {pluralize(report.removed_total, 'secret')} ({_counts(rules)})"
        places = _sums((f"{row.session} {row.place}: {row.rule}", row.count) for row in report.removed)
        yield from _most(places)
    else:
        yield "removed: nothing looked like a secret"
    if report.masked:
        yield f"masked: {_counts(report.masked)}"
    if report.odd_total:
        yield "stayed, look at these before you share the output:"
        for kind, count in report.odd_total.items():
            values = _sums((row.value[:LONGEST_VALUE], row.count) for row in report.odd if row.kind == kind)
            listed = ", ".join(list(values)[:MOST_SHOWN]) + (", ..." if len(values) > MOST_SHOWN else "")
            yield f"  {count:,} x {kind}: {listed}"
    else:
        yield "stayed: no e-mail address, home path, host name or long base64"
    yield from (f"not exported: {line}" for line in report.failed)
    if report.damaged_lines:
        yield f"{pluralize(report.damaged_lines, 'damaged line')} skipped; 'agent-logger verify' lists them"
    if report.checked and not report.hits:
        yield "check: the finished output has nothing that the strictest rules find"
    for hit in report.hits[: 4 * MOST_SHOWN]:
        yield f"check: {hit.rule} in {hit.file or 'the output'} line {hit.line}"


def _summary(report: ExportReport) -> str:
    skipped = f", {report.skipped} written before" if report.skipped else ""
    sessions, size = pluralize(report.sessions, "session"), pluralize(report.bytes, "byte")
    return f"exported {sessions} as {report.format}: {size}{skipped}"


def _sums(pairs: Iterable[tuple[str, int]]) -> dict[str, int]:
    sums: dict[str, int] = {}
    for name, count in pairs:
        sums[name] = sums.get(name, 0) + count
    return dict(sorted(sums.items(), key=lambda item: -item[1]))


def _counts(counts: Mapping[str, int]) -> str:
    return ", ".join(f"{count:,} {name}" for name, count in counts.items())


def _most(counts: Mapping[str, int]) -> Iterator[str]:
    yield from (f"  {name} x {count:,}" for name, count in list(counts.items())[:MOST_SHOWN])
    if len(counts) > MOST_SHOWN:
        yield f"  and {pluralize(len(counts) - MOST_SHOWN, 'other place')}; --json lists them"
