"""A session that is exported as a bundle and imported elsewhere is the same session."""

from pathlib import Path
from typing import Any

import pytest
from msgspec.structs import replace

from agent_logger.catalog.catalog import Catalog
from agent_logger.catalog.summary import Filter, SessionSummary
from agent_logger.exports.formats import FORMATS
from agent_logger.exports.masks.mask import Machine, Masks
from agent_logger.exports.sessions import exported_sessions
from agent_logger.exports.write import Export
from agent_logger.imports.run import run_import
from tests.catalog.test_all_agents import Recording, recordings

NO_MASKS = Masks((), bytes(32), Machine(), lambda _: ())
RECORDINGS = list(recordings())


def bundle(catalog: Catalog, file: Path, where: Filter | None = None) -> Path:
    export = Export(FORMATS["bundle"], exported_sessions(catalog, where or Filter()), NO_MASKS)
    export.write_to_file(file)
    report = export.finish()
    assert not report.failed, report.failed
    return file


def told(catalog: Catalog) -> tuple[Any, ...]:
    """What the catalog says of all sessions, without where their files are."""
    sessions = [_bare(summary) for summary in catalog.sessions()]
    read = {summary.id: catalog.read(summary.id) for summary in catalog.sessions()}
    trees = {summary.id: catalog.tree(summary.id) for summary in catalog.sessions()}
    rows = sorted(catalog.ledger(), key=repr)
    return sorted(sessions, key=repr), read, trees, rows


def _bare(summary: SessionSummary) -> SessionSummary:
    return replace(summary, paths=(), imported=())


@pytest.mark.parametrize("recording", RECORDINGS, ids=lambda recording: recording.name)
def test_every_recorded_session_comes_back_from_a_bundle(
    recording: Recording, home: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    recording.copy(home)
    with Catalog.open() as catalog:
        before = told(catalog)
        file = bundle(catalog, tmp_path / "all.tar.zst")
        bundle(catalog, again := tmp_path / "again.tar.zst")
    assert file.read_bytes() == again.read_bytes()
    monkeypatch.setenv("HOME", str(tmp_path / "empty"))
    other = tmp_path / "empty" / ".agent-logger"
    run_import(other, file)
    run_import(other, file)
    with Catalog.open(other) as catalog:
        after = told(catalog)
    assert after[0] == before[0]
    assert after[1] == before[1]
    assert after[2:] == before[2:]
