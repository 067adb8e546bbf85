"""Sessions that no model answered in: an agent that did not start, an API that refused."""

from pathlib import Path

import msgspec

from agent_logger.catalog.catalog import Catalog
from agent_logger.home.facts import register_log_folder
from agent_logger.journal.journal import Journal
from agent_logger.model.records import ExchangeRecord, SessionStart
from tests.journal.wire_logs import write
from tests.logs.wire_log.wire_records import talk

TS = "2026-11-15T08:00:00.000Z"


def run_log(folder: Path, name: str, asked: str) -> None:
    """Of a run that printed nothing that names its session."""
    journal = Journal(folder, name, "exchange")
    start = SessionStart(
        session_id=None,
        ts=TS,
        model=None,
        cwd="/p",
        tools_available=None,
        permission_mode=None,
        witness="run",
        agent="codex",
    )
    told = ExchangeRecord(
        session_id=None, exchange=1, ts_start=TS, ts_end=TS, user_input=asked, messages=[], stats=None
    )
    for record in (start, told):
        assert journal.append(record)
    journal.close()


def test_runs_without_an_id_are_separate_sessions(home: Path) -> None:
    ours, folder = home / ".agent-logger", home / "sessions"
    register_log_folder(ours, folder)
    names = {f"20261115_08000{it}_unnamed-{it}": f"Ask {it}" for it in (1, 2)}
    for name, asked in names.items():
        run_log(folder, name, asked)
    with Catalog.open(ours) as catalog:
        sessions = catalog.sessions()
        assert {it.id: it.title for it in sessions} == names
        assert {(it.agent, *it.witnesses) for it in sessions} == {("codex", "run")}
        assert all(catalog.session(name) for name in names)


def test_a_session_with_only_refused_calls_has_its_agent_and_witnesses(home: Path) -> None:
    ours, folder = home / ".agent-logger", home / "logs"
    register_log_folder(ours, folder)
    records = [
        msgspec.structs.replace(it, agent="claude-code") if hasattr(it, "upstream") else it
        for it in talk("claude-cli/2.1.325/api_error_400").records()
    ]
    write(folder / "anthropic", "20261115-080000-abcd", records)
    with Catalog.open(ours) as catalog:
        [found] = catalog.sessions()
    assert (found.agent, list(found.witnesses), found.turns) == ("claude-code", ["wire"], 0)
