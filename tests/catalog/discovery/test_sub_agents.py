"""What the proxy recorded of a sub-agent belongs to the session that started it, as the agent's database says."""

from pathlib import Path

import msgspec

from agent_logger.archive.imported import BundledSession, imports_path
from agent_logger.catalog.discovery.imported import in_its_bundle
from agent_logger.catalog.discovery.sub_agents import below_its_starter
from agent_logger.model.session import Exchange, Session, Turn
from tests.agents.databases.recorded import recorded_database


def recorded(name: str, agent: str | None) -> Session:
    turns = [Turn(thread="main", message_id="chatcmpl-1"), Turn(thread="side", message_id="chatcmpl-2")]
    return Session(id=name, agent=agent, exchanges=[Exchange(number=1, turns=turns)])


def threads(session: Session) -> tuple[str, list[str]]:
    return session.id, [turn.thread for turn in session.turns]


def test_a_session_that_another_one_started_becomes_its_thread(home: Path) -> None:
    recorded_database("goose", "1.52.0/tree", home)
    for agent in ("goose", None):
        inner = below_its_starter(recorded("20261118_3", agent))
        assert threads(inner) == ("20261118_1", ["agent:20261118_3", "side"])


def test_sessions_of_people_and_of_other_agents_stay_as_they_are(home: Path) -> None:
    recorded_database("goose", "1.52.0/tree", home)
    for name, agent in (("20261118_1", "goose"), ("20261118_9", None), ("20261118_3", "codex"), ("ses_1", "goose")):
        session = recorded(name, agent)
        assert below_its_starter(session) is session


def test_without_a_database_a_sub_agent_is_a_session(home: Path) -> None:
    session = recorded("20261118_3", "goose")
    assert below_its_starter(session) is session


def test_in_a_bundle_a_sub_agent_becomes_a_thread_of_the_bundled_session(tmp_path: Path) -> None:
    unit = imports_path(tmp_path) / "import" / "unit"
    log = unit / "logs" / "logs-00000000" / "20261118-070000-a7f3.jsonl"
    head = BundledSession(session="20261118_1", logs=(log.stem,), agent_logger="0.1.0")
    for elsewhere in (tmp_path, imports_path(tmp_path), unit / "logs"):
        elsewhere.mkdir(parents=True, exist_ok=True)
        (elsewhere / "session.json").write_bytes(msgspec.json.encode(head))
        assert in_its_bundle(recorded(log.stem, None), log).id == log.stem
    (unit / "session.json").write_bytes(msgspec.json.encode(head))
    assert threads(in_its_bundle(recorded("20261118_3", "goose"), log))[1] == ["agent:20261118_3", "side"]
    assert threads(in_its_bundle(recorded(log.stem, None), log)) == ("20261118_1", ["main", "side"])
    for name, path in (("ses_another", log), ("20261118_3", log.with_name("parent.jsonl"))):
        session = recorded(name, None)
        assert in_its_bundle(session, path) is session
