"""What the proxy recorded of a sub-agent belongs to the session that started it, as the agent's database says."""

from pathlib import Path

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
