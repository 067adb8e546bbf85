"""A session that is exported as a bundle and imported elsewhere is the same session."""

import json
import os
import shutil
from pathlib import Path
from random import Random
from typing import Any

import pytest
from msgspec.structs import replace

from agent_logger.agents.registry import AGENTS
from agent_logger.archive.run import archive_all
from agent_logger.catalog.catalog import Catalog
from agent_logger.catalog.discovery.agent_files import sessions_of
from agent_logger.catalog.summary import Filter, SessionSummary
from agent_logger.exports.base import ExportContext
from agent_logger.exports.formats import FORMATS, pieces_of
from agent_logger.exports.masks.mask import Machine, Masks
from agent_logger.exports.pack import packed, unpacked
from agent_logger.exports.sessions import exported_sessions
from agent_logger.exports.write import Export
from agent_logger.files.sources import StampCache
from agent_logger.home.facts import register_log_folder
from agent_logger.imports.run import run_import
from agent_logger.model.session import Session
from agent_logger.protocols.tar import header, padding
from tests.agents.databases.recorded import DATABASES
from tests.catalog.discovery.test_unidentified import FOLDER, TALK, left_behind
from tests.catalog.test_all_agents import Recording, recordings
from tests.catalog.witnesses import timed
from tests.journal.wire_logs import write
from tests.web.homes import demo

NO_MASKS = Masks((), bytes(32), Machine(), lambda _: ())
RECORDINGS = list(recordings())
AS_OPENCODE = {"kilo"}  # its recorded databases have no tables but those of opencode


def bundle(catalog: Catalog, file: Path, where: Filter | None = None) -> Path:
    export = Export(FORMATS["bundle"], exported_sessions(catalog, where or Filter()), NO_MASKS)
    export.write_to_file(file)
    report = export.finish()
    assert not report.failed, report.failed
    return file


def told(catalog: Catalog) -> tuple[Any, ...]:
    """What the catalog says of all sessions, without where their files are, and what machine they are from."""
    sessions = [_bare(summary) for summary in catalog.sessions()]
    read = {summary.id: _unlabelled(catalog.read(summary.id)) for summary in catalog.sessions()}
    trees = {summary.id: catalog.tree(summary.id) for summary in catalog.sessions()}
    rows = sorted((replace(row, home="") for row in catalog.ledger()), key=repr)
    return sorted(sessions, key=repr), read, trees, rows


def _unlabelled(session: Session | None) -> Session | None:
    return session and replace(session, imported=())


def _bare(summary: SessionSummary) -> SessionSummary:
    return replace(summary, paths=(), imported=(), machines=())


def move(monkeypatch: pytest.MonkeyPatch, home: Path) -> None:
    """Go to another machine, whose agents have no sessions."""
    monkeypatch.setenv("HOME", str(home))
    monkeypatch.delenv("AGENT_LOGGER_AGENT_FOLDERS", raising=False)


def settle(home: Path) -> None:
    """Give all files a time in the past, by the second, as bundles have it: some agents say by it when they ended."""
    for path in home.rglob("*"):
        os.utime(path, (1_794_000_000, 1_794_000_000))


def come_back(home: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> tuple[object, object]:
    """What a catalog says of a home, and one in an empty home of the bundle of all its sessions, imported twice."""
    with Catalog.open() as catalog:
        before = told(catalog)
        file = bundle(catalog, tmp_path / "all.tar.zst")
        bundle(catalog, again := tmp_path / "again.tar.zst")
    assert file.read_bytes() == again.read_bytes()
    move(monkeypatch, tmp_path / "empty")
    other = tmp_path / "empty" / ".agent-logger"
    assert [run_import(other, each).state for each in (file, file)] == ["new", "there"]
    with Catalog.open(other) as catalog:
        return before, told(catalog)


@pytest.mark.long
@pytest.mark.parametrize("recording", RECORDINGS, ids=lambda recording: recording.name)
def test_every_recorded_session_comes_back_from_a_bundle(
    recording: Recording, home: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    recording.copy(home)
    monkeypatch.setenv("AGENT_LOGGER_AGENT_FOLDERS", f"{home},{home / 'project'}")
    settle(home)
    before, after = come_back(home, tmp_path, monkeypatch)
    assert after == before


def test_a_session_of_every_agent_comes_back_from_one_bundle(
    home: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    copy_newest(monkeypatch, home)
    before, after = come_back(home, tmp_path, monkeypatch)
    assert after == before


@pytest.mark.parametrize("sealed", [False, True], ids=["plain", "sealed"])
def test_the_bytes_on_the_wire_come_back_from_a_bundle(
    sealed: bool, home: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    demo(home)
    with Catalog.open() as catalog:
        assert not sealed or catalog.seal(0.0)
        (name,) = catalog.resolve("last")
        wire = records_of(catalog, name)
        before = catalog.read(name), catalog.summary(name), catalog.calls_by_turn(name).keys()
        file = bundle(catalog, tmp_path / "demo.tar.zst", Filter(sessions=frozenset({name})))
    assert wire
    move(monkeypatch, tmp_path / "empty")
    other = tmp_path / "empty" / ".agent-logger"
    run_import(other, file)
    with Catalog.open(other) as catalog:
        assert records_of(catalog, name) == wire
        session, summary, turns = catalog.read(name), catalog.summary(name), catalog.calls_by_turn(name).keys()
    assert session and summary and before[0] and before[1]
    assert (replace(session, imported=()), _bare(summary), turns) == (before[0], _bare(before[1]), before[2])


def records_of(catalog: Catalog, name: str) -> bytes:
    """The proxy's records of a session, as `export --to wire` writes them."""
    (session,) = exported_sessions(catalog, Filter(sessions=frozenset({name})))
    return b"".join(piece.data for piece in pieces_of(FORMATS["wire"], session, ExportContext()))


def test_a_log_that_names_no_session_stays_with_its_session(
    home: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    left_behind(FOLDER, home)
    register_log_folder(home / ".agent-logger", home / "logs")
    write(home / "logs" / "gemini", TALK.name.replace("/", "-"), timed(TALK))
    with Catalog.open() as catalog:
        assert [summary.witnesses for summary in catalog.sessions()] == [{"wire", "transcript"}]
    before, after = come_back(home, tmp_path, monkeypatch)
    assert after == before


def copy_newest(monkeypatch: pytest.MonkeyPatch, home: Path, *without: str) -> None:
    """Put a recording of every agent into a home."""
    newest = {each.agent.name: each for each in RECORDINGS}
    for name, recording in newest.items():
        if name not in without:
            recording.copy(home)
    monkeypatch.setenv("AGENT_LOGGER_AGENT_FOLDERS", f"{home},{home / 'project'}")
    settle(home)


@pytest.mark.long
def test_the_archive_of_another_home_is_imported_with_all_sessions(
    home: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    copy_newest(monkeypatch, home, "aider")  # the archive has its main files only
    archive_all(home / ".agent-logger")
    with Catalog.open() as catalog:
        before = told(catalog)
    move(monkeypatch, tmp_path / "empty")
    run_import(other := tmp_path / "empty" / ".agent-logger", home / ".agent-logger")
    with Catalog.open(other) as catalog:
        assert told(catalog) == before


@pytest.mark.parametrize(
    "recording",
    {each.agent.name: each for each in RECORDINGS if each.agent.name in DATABASES.keys() - AS_OPENCODE}.values(),
    ids=lambda recording: recording.agent.name,
)
def test_a_database_is_recognised_whatever_its_name(
    recording: Recording, home: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    recording.copy(home)
    with Catalog.open() as catalog:
        before = [(summary.agent, summary.id, summary.exchanges) for summary in catalog.sessions()]
    (path,) = {Path(source.path) for source in sessions_of(recording.agent, StampCache())}
    for suffix in ("", "-wal"):
        if (beside := path.with_name(path.name + suffix)).exists():
            shutil.copy(beside, tmp_path / f"some.dat{suffix}")
    move(monkeypatch, tmp_path / "empty")
    run_import(other := tmp_path / "empty" / ".agent-logger", tmp_path / "some.dat")
    with Catalog.open(other) as catalog:
        assert [(summary.agent, summary.id, summary.exchanges) for summary in catalog.sessions()] == before


def test_session_files_of_every_agent_are_imported_one_by_one(
    home: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    copy_newest(monkeypatch, home, *AS_OPENCODE)
    paths = dict.fromkeys(Path(source.path) for agent in AGENTS for source in sessions_of(agent, StampCache()))
    with Catalog.open() as catalog:
        before = told(catalog)
    move(monkeypatch, tmp_path / "empty")
    other = tmp_path / "empty" / ".agent-logger"
    for path in paths:
        run_import(other, path)
    with Catalog.open(other) as catalog:
        assert told(catalog) == before


ODD: list[Any] = [None, True, -1, 10**400, "", "\0", "\ud800", "x" * 300, [], {}, {"a": {}}, "../../x", 0, -(10**18)]


def garbled(data: bytes, random: Random, share: float) -> bytes:
    """Replace a share of the values in lines of JSON by odd ones."""

    def value_of(value: Any) -> Any:
        if random.random() < share:
            return random.choice(ODD)
        if isinstance(value, dict):
            return {key: value_of(item) for key, item in value.items()}
        return [value_of(item) for item in value] if isinstance(value, list) else value

    lines = []
    for line in data.split(b"\n"):
        try:
            lines.append(json.dumps(value_of(json.loads(line))).encode())
        except ValueError:
            lines.append(line)
    return b"\n".join(lines)


@pytest.mark.long
@pytest.mark.parametrize("seed", range(6))
def test_garbled_copies_of_its_sessions_change_nothing_on_this_machine(
    seed: int, home: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    copy_newest(monkeypatch, home)
    random = Random(seed)
    with Catalog.open() as catalog:
        before, ids = told(catalog), [summary.id for summary in catalog.sessions()]
        members = [
            (name, b"".join(chunks))
            for name, chunks in unpacked([bundle(catalog, tmp_path / "all.tar.zst").read_bytes()])
        ]
        share, others = (
            random.choice([0.002, 0.02, 0.2]),
            random.choice([{}, {old: f"{old[:-4]}{at:04x}" for at, old in enumerate(ids)}]),
        )
        forged = []
        for name, data in members:
            for old, new in others.items():
                name, data = name.replace(old, new), data.replace(old.encode(), new.encode())
            data = data if name.endswith("/session.json") else garbled(data, random, share)
            forged.append(header(name, len(data), 1_794_000_000) + data + padding(len(data)))
        file = tmp_path / "forged.tar.zst"
        file.write_bytes(b"".join(packed(forged)))
        run_import(home / ".agent-logger", file)
        after = [summary for summary in catalog.sessions() if summary.id in ids]
        assert sorted(map(_bare, after), key=repr) == before[0]
        assert {name: _unlabelled(catalog.read(name)) for name in ids} == before[1]
        assert sorted((row for row in catalog.ledger() if row.session in ids), key=repr) == before[3]
