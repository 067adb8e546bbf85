"""Gemini CLI, and Claude Code once, name no session on the wire; their files do."""

from collections.abc import Callable
from datetime import timedelta
from pathlib import Path

import pytest
from msgspec.structs import replace

from agent_logger.agents.gemini_cli.session import session_of
from agent_logger.catalog.catalog import Catalog
from agent_logger.catalog.discovery.unidentified import is_told_by, name_among
from agent_logger.home.facts import register_log_folder
from agent_logger.logs.wire_log.session import session_of as wire_session
from agent_logger.model.records import WireStart
from agent_logger.model.session import Block, Session, Turn, Usage
from tests.agents.foreign import DATA, scenarios, sources_of
from tests.catalog.witnesses import timed
from tests.journal.wire_logs import write
from tests.logs.wire_log.wire_records import talk

TALK = talk("gemini-cli/0.61.0/exec_resume")
[FOLDER] = scenarios("gemini-cli")


@pytest.fixture
def chat() -> Session:
    [source] = sources_of("gemini-cli", FOLDER)
    return session_of(source)


def later(session: Session) -> Session:
    assert session.started and session.ended
    day = timedelta(days=1)
    return replace(session, started=session.started + day, ended=session.ended + day)


OTHERS: list[tuple[str, Callable[[Session], Session], bool]] = [
    ("the same", lambda it: it, True),
    ("not written to the end yet", lambda it: replace(it, exchanges=it.exchanges[:1]), True),
    ("the first answer alone is not enough", lambda it: replace(it, exchanges=()), False),
    ("another day", later, False),
    ("another beginning", lambda it: replace(it, exchanges=it.exchanges[1:]), False),
]


@pytest.mark.parametrize(("other", "same"), [pytest.param(it, same, id=name) for name, it, same in OTHERS])
def test_a_chat_is_matched_by_its_text_and_time(chat: Session, other: Callable[[Session], Session], same: bool) -> None:
    assert is_told_by(wire_session(timed(TALK)), other(chat)) is same


def test_a_chat_that_merges_tool_calls_of_two_responses_is_matched_by_text(chat: Session) -> None:
    """As 0.20 does: the response that called the second tool is in no file, nor what it took."""

    def turn(text: str, *tools: str, output: int) -> Turn:
        uses = [Block(kind="tool_use", name=it) for it in tools]
        said = [Block(kind="text", text=text)] if text else []
        return replace(chat.turns[0], blocks=[*said, *uses], usage=Usage(output_tokens=output))

    def told(*turns: Turn) -> Session:
        return replace(chat, exchanges=[replace(chat.exchanges[0], turns=turns)])

    wire = told(turn("I look.", "ls", output=3), turn("", "read", output=4), turn("Done.", output=5))
    assert is_told_by(wire, told(turn("I look.", "ls", "read", output=3), turn("Done.", output=5)))
    assert not is_told_by(wire, told(turn("I look.", "ls", "read", output=9), turn("Done.", output=5)))


def test_a_log_that_matches_two_chats_is_assigned_to_neither(chat: Session) -> None:
    wire = wire_session(timed(TALK))
    assert name_among(wire, [chat]) == chat.id
    assert name_among(wire, [chat, replace(chat, id="another")]) is None
    assert name_among(wire, []) is None


def test_the_chat_with_the_closest_answer_time_matches_among_identical_chats(chat: Session) -> None:
    """The same prompt in two terminals, with the same answer."""

    def answered(name: str, later: float) -> Session:
        def moved(turn: Turn) -> Turn:
            assert turn.ended
            return replace(turn, ended=turn.ended + timedelta(seconds=later))

        exchanges = [replace(it, turns=[moved(turn) for turn in it.turns]) for it in chat.exchanges]
        return replace(chat, id=name, exchanges=exchanges)

    chats = [answered(name, later) for name, later in (("first", -3.0), ("second", 0.1), ("third", 2.0))]
    assert name_among(wire_session(timed(TALK)), chats) == "second"


def left_behind(folder: Path, home: Path) -> None:
    for file in folder.joinpath("home").rglob("*"):
        if file.is_file():
            copy = home / file.relative_to(folder / "home")
            copy.parent.mkdir(parents=True, exist_ok=True)
            copy.write_bytes(file.read_bytes())


def test_the_log_and_the_chat_are_one_session_and_count_once(home: Path, chat: Session) -> None:
    left_behind(FOLDER, home)
    ours = home / ".agent-logger"
    register_log_folder(ours, home / "logs")
    write(home / "logs" / "gemini", TALK.name.replace("/", "-"), timed(TALK))
    wire = wire_session(timed(TALK))
    with Catalog.open(ours) as catalog:
        [summary] = catalog.sessions()
        session = catalog.session(chat.id)
    assert (summary.id, sorted(summary.witnesses)) == (chat.id, ["transcript", "wire"])
    assert session
    assert session.usage == wire.usage
    assert {it.joined_by for it in session.turns if "transcript" in it.witnesses} == {"order"}
    assert summary.exchanges == 2
    assert wire.usage != Usage()


def test_a_second_file_of_a_chat_is_not_a_second_session(home: Path, chat: Session) -> None:
    """A chat that is resumed in another minute goes on in another file, which has no answer at first."""
    [file] = FOLDER.joinpath("home").rglob("session-*.jsonl")
    copy = home / file.relative_to(FOLDER / "home")
    copy.parent.mkdir(parents=True)
    copy.write_bytes(file.read_bytes())
    again = copy.with_name(file.name.replace("T07-14", "T07-15"))
    again.write_bytes(file.read_bytes().split(b"\n")[0] + b"\n")
    with Catalog.open(home / ".agent-logger") as catalog:
        assert [it.id for it in catalog.sessions()] == [chat.id]


CHAIN = talk("claude-cli/1.0.3/resume_chain")  # four runs, a call each; every run but the first copies another's file
RUNS = {
    "3839c1c7-77ec-49b8-a376-a9dba7a6c9d4": 1,
    "0b4c9fa3-2de4-4ffd-9412-2f7a965ebe1d": 2,
    "ef5752db-9a09-477c-b914-89c8221d2127": 3,
    "8d170135-560f-44b6-8b1e-244afa75d7f7": 4,
}


def test_a_claude_code_log_is_identified_by_its_response_ids(home: Path) -> None:
    left_behind(DATA / CHAIN.name, home)
    ours = home / ".agent-logger"
    register_log_folder(ours, home / "logs")
    for call in RUNS.values():
        start, *called = timed(CHAIN.of(call))
        assert isinstance(start, WireStart)
        log = f"20261115-10000{call}-abcd"
        unnamed = replace(start, session=log, agent="claude-code", identity=None)
        write(home / "logs" / "anthropic", log, [unnamed, *called])
    with Catalog.open(ours) as catalog:
        told = {it.id: (sorted(it.witnesses), it.turns) for it in catalog.sessions()}
    assert told == dict.fromkeys(RUNS, (["transcript", "wire"], 1))
