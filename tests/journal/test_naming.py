"""A log gets its name when its session's id is known, and nothing is lost on the way."""

from pathlib import Path

from agent_logger.home.facts import register_log_folder
from agent_logger.home.layout import facts_path
from agent_logger.journal.journal import Journal
from agent_logger.journal.sync import UPKEEP
from agent_logger.logs.find import exchange_log_of, free_name
from agent_logger.logs.log_records import read_exchanges
from agent_logger.model.records import SessionStart
from tests.journal.logs import exchange, live, start


def journal(folder: Path, name: str) -> Journal:
    return Journal(folder, name, "exchange")


def session(session_id: str) -> SessionStart:
    return SessionStart(session_id=session_id, ts="t", model=None, cwd=None, tools_available=None, permission_mode=None)


def names(folder: Path) -> list[str]:
    return sorted(path.name for path in folder.iterdir() if path.suffix in (".jsonl", ".live"))


def test_renaming_a_log_also_renames_its_live_file(tmp_path: Path) -> None:
    log = journal(tmp_path, "unnamed")
    log.begin(start("x", 1))
    log.add(live("x", "one"))
    assert log.rename("named")
    assert names(tmp_path) == ["named.jsonl", "named.jsonl.live"]
    log.add(live("x", "two"))
    [found] = read_exchanges(tmp_path, "named")
    assert [it.text for it in found.messages] == ["one", "two"]
    assert log.end(exchange("x"))
    UPKEEP.finish()
    assert names(tmp_path) == ["named.jsonl"]


def test_renaming_a_log_to_an_existing_log_continues_the_existing_log(tmp_path: Path) -> None:
    before = journal(tmp_path, "named")
    before.append(session("s"))
    before.begin(start("old", 1))
    before.add(live("old", "left behind"))
    before.close()
    log = journal(tmp_path, "unnamed")
    log.begin(start("new", 1))
    assert log.rename("named")
    assert "unnamed.jsonl" not in names(tmp_path)
    ends = {it.id: it.end_reason for it in read_exchanges(tmp_path, "named")}
    assert ends == {"old": "recovered", "new": None}


def test_a_log_with_records_keeps_its_name(tmp_path: Path) -> None:
    log = journal(tmp_path, "unnamed")
    log.append(session("s"))
    assert not log.rename("named")
    assert (names(tmp_path), log.name) == (["unnamed.jsonl"], "unnamed")


def test_a_later_live_start_note_replaces_the_earlier_one(tmp_path: Path) -> None:
    log = journal(tmp_path, "log")
    log.begin(start("x", 1))
    log.note(start("x", 7))
    log.note(start("next", 8))
    log.add(live("x", "one"))
    found = [(it.id, it.exchange, len(it.messages)) for it in read_exchanges(tmp_path, "log")]
    assert found == [("x", 7, 1), ("next", 8, 0)]


def test_withdrawing_an_exchange_removes_its_live_file(tmp_path: Path) -> None:
    log = journal(tmp_path, "log")
    log.append(session("s"))
    log.begin(start("x", 1))
    log.withdraw()
    UPKEEP.finish()
    assert names(tmp_path) == ["log.jsonl"]


def test_a_log_is_found_by_its_session_id_under_any_file_name(tmp_path: Path) -> None:
    journal(tmp_path, "renamed-by-its-user").append(session("1f320356-a178"))
    journal(tmp_path, "another").append(session("1f320356-0000"))
    found = exchange_log_of(tmp_path, "1f320356-a178")
    assert found and found.name == "renamed-by-its-user"
    assert exchange_log_of(tmp_path, "1f320356") is None
    assert exchange_log_of(tmp_path / "not-there", "1f320356-a178") is None


def test_a_name_that_is_taken_gets_a_number(tmp_path: Path) -> None:
    assert free_name(tmp_path, "log") == "log"
    journal(tmp_path, "log").append(session("a"))
    assert free_name(tmp_path, "log") == "log-2"
    journal(tmp_path, "log-2").append(session("b"))
    assert free_name(tmp_path, "log") == "log-3"


def test_a_log_folder_is_registered_once(tmp_path: Path) -> None:
    for _ in range(2):
        register_log_folder(tmp_path / "home", tmp_path / "sessions")
    lines = facts_path(tmp_path / "home").read_text().splitlines()
    assert len(lines) == 1
    assert str(tmp_path / "sessions") in lines[0]
