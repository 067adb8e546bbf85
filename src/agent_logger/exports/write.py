"""Writes exports to a file, into a folder or to stdout, so that an interrupted export of many sessions continues.

Beside unfinished output lies its journal: a line for each session that is written, with its stamp, where it ends, and
what was removed from it. The next export with the same options skips these sessions, as long as they are unchanged.
"""

import hashlib
import os
import tempfile
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import BinaryIO

import msgspec

from agent_logger import platform
from agent_logger.errors import SourceError, StoreError
from agent_logger.exports.base import ExportContext, ExportedSession, Format
from agent_logger.exports.check import check
from agent_logger.exports.formats import pieces_of
from agent_logger.exports.masks.mask import Masks
from agent_logger.exports.pack import packed, unpacked
from agent_logger.exports.report import ExportReport, Inspector, SessionFindings, add_findings
from agent_logger.home.layout import safe_name

FOLDER_JOURNAL = ".agent-logger-export.jsonl"
READ_BYTES = 1 << 20

Advance = Callable[[int], None]


class _Written(msgspec.Struct, frozen=True, kw_only=True):
    """A line of a journal: a session that is written whole."""

    options: str  # a hash of the options of the export
    session: str
    stamp: str
    file: str
    end: int  # the length of the file after this session
    findings: SessionFindings


class Export:
    """One export: which sessions, in which format, with which masks; and its report."""

    def __init__(
        self,
        form: Format,
        sessions: Sequence[ExportedSession],
        masks: Masks,
        *,
        checks: bool = False,
        advance: Advance = lambda _bytes: None,
    ) -> None:
        self.form, self.sessions = form, sessions
        self.report = ExportReport(format=form.name, checked=checks)
        self._masks, self._checks, self._advance = masks, checks, advance
        self._is_joined = form.joins and len(sessions) > 1

    # ------------------------------------------------------------ to stdout

    def write_to_stdout(self, put: Callable[[bytes], None]) -> None:
        """Pass all sessions on as one stream; with the check, only when it found nothing. Raises `SourceError` if there
        is only one session, and it cannot be read."""
        if not self._checks:
            self._write_all(put)
            return
        with tempfile.TemporaryFile() as file:
            self._write_all(file.write)
            file.seek(0)
            if self._passes(_chunks_of(file)):
                file.seek(0)
                for chunk in _chunks_of(file):
                    put(chunk)

    def _write_all(self, put: Callable[[bytes], object]) -> None:
        for session in self.sessions:
            with self._reporting(session):
                add_findings(self.report, self._write_session(session, put))

    def _write_session(self, session: ExportedSession, put: Callable[[bytes], object]) -> SessionFindings:
        context = ExportContext(self._masks.of(session.project), is_joined=self._is_joined)
        inspector = Inspector(session.id)
        inspected = inspector.inspected(pieces_of(self.form, session, context))
        data = (piece.data for piece in inspected)
        for chunk in packed(data) if self.form.packed else data:
            put(chunk)
        self._advance(session.bytes)
        return inspector.findings(len(context.damaged))

    @contextmanager
    def _reporting(self, session: ExportedSession) -> Iterator[None]:
        """Report a session that cannot be exported, if others can."""
        try:
            yield
        except SourceError as error:
            if len(self.sessions) == 1:
                raise
            self.report.failed.append(f"{session.id}: {error}")

    def _passes(self, chunks: Iterable[bytes], file: str | None = None) -> bool:
        """Whether the check finds nothing in what was written."""
        if self.form.packed:
            hits = [hit for name, content in unpacked(chunks) for hit in check(content, name, self._masks.all)]
        else:
            hits = list(check(chunks, file, self._masks.all))
        self.report.hits += hits
        return not hits

    # ------------------------------------------------------------ to a file

    def write_to_file(self, file: Path) -> None:
        """Write a new file that others cannot read; an existing one, perhaps a log, is not touched. Raises
        `StoreError`."""
        if self._is_joined:
            self._write_joined(file)
            return
        with _new_file(file) as held:
            self._write_all(held.write)
            self._check_file(held, None)
        if self.report.hits:
            file.unlink(missing_ok=True)
        else:
            self.report.files.append(str(file))

    def _check_file(self, held: platform.Held, name: str | None) -> bool:
        if not self._checks:
            return True
        with open(held.path, "rb") as written:
            return self._passes(_chunks_of(written), name)

    def _write_joined(self, file: Path) -> None:
        """Write all sessions into one file. Until it is whole, it has another name."""
        if file.exists() or file.is_symlink():
            raise StoreError(f"cannot create {file}: File exists; choose another path")
        partial, journal = (file.with_name(f".{file.name}{suffix}") for suffix in (".partial", ".partial.jsonl"))
        with _translated(f"cannot export to {file}"):
            with platform.open_or_create(partial) as held, platform.open_or_create(journal) as lines:
                self._continue(held, lines, _journal_of(journal))
                is_clean = self._check_file(held, None)
            if is_clean:
                os.link(partial, file)
                self.report.files.append(str(file))
            partial.unlink()
            journal.unlink()

    def _continue(self, held: platform.Held, lines: platform.Held, written: Sequence[_Written]) -> None:
        """Write the sessions that are not in the file yet, after those that are."""
        there = _common(written, self.sessions, self._options)
        size = held.size()
        while there and there[-1].end > size:
            there.pop()
        os.ftruncate(held.fd, there[-1].end if there else 0)
        os.ftruncate(lines.fd, 0)
        for row in there:
            lines.write(msgspec.json.encode(row) + b"\n")
            self._count_written(row)
        for session in self.sessions[len(there) :]:
            start = held.size()
            with self._reporting(session), _undone(held, start):
                findings = self._write_session(session, held.write)
                add_findings(self.report, findings)
                row = self._row(session, held.path.name, held.size(), findings)
                lines.write(msgspec.json.encode(row) + b"\n")

    def _count_written(self, row: _Written) -> None:
        add_findings(self.report, row.findings)
        self.report.skipped += 1

    def _row(self, session: ExportedSession, file: str, end: int, findings: SessionFindings) -> _Written:
        return _Written(
            options=self._options,
            session=session.id,
            stamp=session.stamp,
            file=file,
            end=end,
            findings=findings,
        )

    @property
    def _options(self) -> str:
        words = [self.form.name, str(self._is_joined), *sorted(self._masks.kinds)]
        return hashlib.sha256("\n".join(words).encode()).hexdigest()[:16]

    # ------------------------------------------------------------ into a folder

    def write_into(self, folder: Path) -> None:
        """Write one file for each session. Files of an earlier export into this folder are replaced where their session
        has changed; other files are not touched. Raises `StoreError`."""
        self._is_joined = False
        with _translated(f"cannot export into {folder}"):
            platform.make_folder(folder)
            journal = folder / FOLDER_JOURNAL
            rows = {row.file: row for row in _journal_of(journal)}
            with platform.open_or_create(journal) as lines:
                for session in self.sessions:
                    with self._reporting(session):
                        self._write_one(session, folder, rows, lines)

    def _write_one(
        self, session: ExportedSession, folder: Path, rows: dict[str, _Written], lines: platform.Held
    ) -> None:
        file = folder / f"{safe_name(session.id)}.{self.form.suffix}"
        row, size = rows.get(file.name), _size(file)
        if row and size == row.end and (row.options, row.stamp) == (self._options, session.stamp):
            self._count_written(row)
            self._advance(session.bytes)
            return
        if size is not None and row is None:
            raise SourceError(f"{file} exists, and no export into this folder wrote it")
        partial = folder / f".{file.name}.partial"
        partial.unlink(missing_ok=True)
        with _new_file(partial) as held:
            findings = self._write_session(session, held.write)
            end, is_clean = held.size(), self._check_file(held, file.name)
        if not is_clean:
            partial.unlink()
            return
        os.rename(partial, file)
        add_findings(self.report, findings)
        self.report.files.append(str(file))
        lines.write(msgspec.json.encode(self._row(session, file.name, end, findings)) + b"\n")

    def finish(self) -> ExportReport:
        self.report.masked = self._masks.counts
        return self.report


def _common(written: Sequence[_Written], sessions: Sequence[ExportedSession], options: str) -> list[_Written]:
    """Return the lines of a journal that are those of the first sessions, as they are now."""
    common: list[_Written] = []
    for row, session in zip(written, sessions, strict=False):
        if (row.options, row.session, row.stamp) != (options, session.id, session.stamp):
            break
        common.append(row)
    return common


def _journal_of(path: Path) -> list[_Written]:
    rows = []
    with suppress(OSError):
        for line in path.read_bytes().splitlines():
            with suppress(ValueError):  # a killed process did not end it
                rows.append(msgspec.json.decode(line, type=_Written))
    return rows


def _size(file: Path) -> int | None:
    try:
        return file.lstat().st_size
    except FileNotFoundError:
        return None


def _chunks_of(file: BinaryIO) -> Iterator[bytes]:
    return iter(lambda: file.read(READ_BYTES), b"")


@contextmanager
def _undone(held: platform.Held, size: int) -> Iterator[None]:
    """Take back what was written of a session that failed."""
    try:
        yield
    except SourceError:
        os.ftruncate(held.fd, size)
        raise


@contextmanager
def _new_file(file: Path) -> Iterator[platform.Held]:
    """Create a file, and remove it if writing fails."""
    try:
        held = platform.open_file(file, create=True)
    except OSError as error:
        raise StoreError(f"cannot create {file}: {error.strerror}; choose another path") from error
    try:
        with held, _translated(f"cannot export to {file}"):
            yield held
    except BaseException:
        file.unlink(missing_ok=True)
        raise


@contextmanager
def _translated(what: str) -> Iterator[None]:
    try:
        yield
    except OSError as error:
        raise StoreError(f"{what}: {error.strerror}") from error
