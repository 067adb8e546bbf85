"""A session that is removed is gone from the archive, and is not put there again."""

import os
from pathlib import Path

import pytest

from agent_logger import Catalog
from agent_logger.archive.collect import ArchiveReport
from agent_logger.archive.layout import archive_path
from agent_logger.archive.run import archive_all, seal_archive
from agent_logger.home.facts import bury
from tests.archive.test_archive import SQL, database

SESSION, OTHER = "1f320356-a178-418e-a692-69ce6e1e657c", "2f320356-a178-418e-a692-69ce6e1e657c"
LINE = '{"type":"user","sessionId":"%s","uuid":"u","message":{"role":"user","content":"%s"}}\n'


@pytest.fixture
def home(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    for name in ("CLAUDE_CONFIG_DIR", "XDG_DATA_HOME", "OPENCODE_DB"):
        monkeypatch.delenv(name, raising=False)
    monkeypatch.setenv("HOME", str(tmp_path))
    return tmp_path


def write(home: Path, session: str, text: str, inside: str = "") -> Path:
    path = home / ".claude" / "projects" / "-p" / inside / f"{session}.jsonl"
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(text)
    os.utime(path, (1_700_000_000,) * 2)
    return path


def kept(own: Path) -> set[str]:
    return {it.name for it in archive_path(own).rglob("*") if it.is_file() and it.name[0] != "."}


@pytest.mark.parametrize("is_sealed", [False, True])
def test_removal_deletes_all_copies_of_a_session_and_no_others(home: Path, is_sealed: bool) -> None:
    own = home / ".agent-logger"
    write(home, SESSION, LINE % (SESSION, "first"))
    write(home, "agent-1", LINE % (SESSION, "help"), f"{SESSION}/subagents")
    write(home, OTHER, LINE % (OTHER, "other"))
    archive_all(own)
    write(home, SESSION, LINE % (SESSION, "written anew"))
    assert archive_all(own).rewritten == 1
    if is_sealed:
        seal_archive(own, 0, ArchiveReport())
    suffix = ".zst" if is_sealed else ""
    with Catalog.open(own) as catalog:
        catalog.remove(SESSION)
        assert kept(own) == {f"{OTHER}.jsonl{suffix}"}
        archive_all(own)
        assert kept(own) == {f"{OTHER}.jsonl{suffix}"}
        assert [it.id for it in catalog.sessions()] == [OTHER]
    assert not list(archive_path(own).rglob("agent-1*"))


def test_a_database_of_many_sessions_stays_when_one_of_them_is_removed(home: Path) -> None:
    assert SQL
    own = home / ".agent-logger"
    database(home)
    archive_all(own)
    with Catalog.open(own) as catalog:
        first, *others = [it.id for it in catalog.sessions()]
        assert others
        catalog.remove(first)
        assert kept(own) == {"opencode.db"}
        assert [it.id for it in catalog.sessions()] == others


def test_a_removed_session_with_a_short_name_does_not_block_other_sessions(home: Path) -> None:
    own = home / ".agent-logger"
    write(home, SESSION, LINE % (SESSION, "first"))
    bury(own, "p", [])
    archive_all(own)
    assert kept(own) == {f"{SESSION}.jsonl"}
