"""Histories of aider: what the recordings of the real client say, in folders that the user names."""

import json
import os
import shutil
from datetime import timedelta
from pathlib import Path

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from msgspec.structs import replace

from agent_logger.agents.aider import AGENT
from agent_logger.agents.aider import session as aider
from agent_logger.agents.aider.files import lines_of
from agent_logger.agents.objects import local_time_of
from agent_logger.agents.registry import recognise, resume_command
from agent_logger.agents.source_files import File, SourceFiles
from agent_logger.catalog.discovery.unidentified import own_name
from agent_logger.catalog.ledger.ledger import Ledger
from agent_logger.files.sources import StampCache
from agent_logger.logs.reader import read_session
from agent_logger.model.responses import ModelResponse
from agent_logger.model.session import Session, Usage
from agent_logger.protocols.jsonl import JsonEntry
from tests.agents.foreign import DATA, scenarios, shown
from tests.agents.recorded import recording
from tests.commands import run_command

FOLDERS = scenarios("aider")
RECORDED = DATA / "aider/0.86.2"
HISTORY = "home/project/.aider.chat.history.md"
ANSWERED = "> Tokens: 10 sent, 2 received.  \n"


def read_recorded(scenario: str) -> Session:
    [source] = AGENT.discover([RECORDED / scenario / "home"], StampCache())
    session = AGENT.session_of(AGENT.open_session(source))
    assert session.id == source.name
    return session


def opened(data: bytes) -> SourceFiles:
    about = File("about", [JsonEntry(1, 0, {"modified": 1795095337330}, b"")])
    return SourceFiles(File(".aider.chat.history.md", list(lines_of(data))), [about])


def read(*parts: str) -> Session:
    return aider.session_of(opened("".join(("\n# aider chat started at 2026-11-19 13:53:33\n\n", *parts)).encode()))


# ---------------------------------------------------------------- real files


@pytest.mark.parametrize("folder", FOLDERS, ids=lambda folder: folder.relative_to(DATA).as_posix())
def test_each_complete_answer_counts_once_with_unknown_tokens(folder: Path) -> None:
    [source] = AGENT.discover([folder / "home"], StampCache())
    responses, totals = AGENT.billed_of(AGENT.open_session(source))
    ledger = Ledger()
    ledger.add(responses)
    ledger.add_totals(totals)
    rows = list(ledger.rows())
    manifest = json.loads((folder / "manifest.json").read_bytes())
    commits = sum(response["model"] == "gpt-fake-1" and not response["stream"] for response in manifest["responses"])
    # Only here the message of a commit has the kind of an answer.
    expected = len(recording(folder).of(["main"])) - (commits if folder.name == "tools" else 0)
    assert (len(rows), {row.usage for row in rows}) == (expected, {None})
    assert [rest.usage for rest in read_recorded(folder.name).not_itemised] == [None] * expected


def test_prompts_and_answers_match_the_scripted_scenario() -> None:
    session = read_recorded("tools")
    (first, [[edit]]), second = shown(session)
    assert first == "Change the greeting to Hi"
    assert edit.startswith("I will change greet.\n\nhello.py\n```\n<<<<<<< SEARCH\n")
    assert second == ("What is the function called?", [["It is called greet."]])
    assert (session.title, session.turns[0].model) == ("Change the greeting to Hi", "gpt-fake-1")
    times = [exchange.started for exchange in session.exchanges]
    assert times == [local_time_of("2026-11-16 05:09:30.873970"), local_time_of("2026-11-16 05:09:38.122493")]


def test_texts_arrive_as_they_were_typed_and_said() -> None:
    assert shown(read_recorded("texts")) == [
        (
            "First line\n\nthird line\nfourth",
            [["# A heading\n\n#### A smaller one\n\n> a quotation\n> of two lines\n\nThe end.\u2028Really."]],
        ),
        ("Without a stream", [["#### Only a heading"]]),
        ("#### a prompt like a prompt", [["> Only a quotation"]]),
        ("With a price", [["Priced."]]),
    ]


def test_failures_and_answers_are_distinguished() -> None:
    session = read_recorded("failures")
    assert [
        (exchange.user_input, exchange.end_reason, [turn.complete for turn in exchange.turns])
        for exchange in session.exchanges
    ] == [
        ("Change the greeting", "result", [True, True]),
        ("Cut it", "result", [False, True]),
        ("Refuse it", "failed", []),
        ("Repeat it", "result", [True]),
    ]


def test_a_process_that_was_killed_leaves_its_prompt() -> None:
    assert [exchange.end_reason for exchange in read_recorded("killed").exchanges] == ["cut", "result"]


def test_commands_to_aider_are_no_prompts() -> None:
    session = read_recorded("commands")
    assert [exchange.user_input for exchange in session.exchanges] == ["What does it do?", "How many files?", "Say bye"]
    asked = read("\n#### /architect Do it  \n", "\nDone.\n\n", ANSWERED, "\n#### /exit  \n")
    assert shown(asked) == [("/architect Do it", [["Done."]])]


# ---------------------------------------------------------------- finding


def run(home: Path, *arguments: str) -> str:
    variables = {"PATH": os.environ["PATH"], "HOME": str(home), "AGENT_LOGGER_AGENT_FOLDERS": str(home / "work")}
    done = run_command(list(arguments), variables)
    assert done.returncode == 0, done.stderr
    return done.stdout


@pytest.fixture
def place(tmp_path: Path) -> Path:
    """A home with all recorded histories in a folder that is named, and one in a folder that is not."""
    for folder in FOLDERS:
        shutil.copytree(folder / "home/project", tmp_path / "place/work" / folder.name)
    (tmp_path / "place/work/tools/.git").mkdir()
    shutil.copytree(FOLDERS[0] / "home/project", tmp_path / "place/elsewhere")
    return tmp_path / "place"


def test_a_history_is_one_session_in_folders_that_are_named(place: Path) -> None:
    rows = {row["title"]: row for row in json.loads(run(place, "ls", "--all", "--json"))}
    assert len(rows) == len(FOLDERS)
    assert {row["agent"] for row in rows.values()} == {"aider"}
    row = rows["Change the greeting to Hi"]
    assert (row["exchanges"], row["turns"], row["cost_usd"]) == (2, 2, None)
    assert row["project"] == str(place / "work/tools")
    assert rows["First line"]["project"] is None  # the folder is no repository
    [used] = json.loads(run(place, "usage", "--by", "agent", "--json"))["rows"]
    counts = ("input_tokens", "output_tokens", "cache_read_tokens", "cache_write_tokens")
    assert (used["key"], used["unknown_usage"]) == ("aider", 14)
    assert [row[name] for row in (used, *rows.values()) for name in counts] == [None] * 4 * (1 + len(rows))


def test_an_archived_history_is_restored(place: Path) -> None:
    path = place / "work/texts/.aider.chat.history.md"
    before = path.read_bytes()
    run(place, "archive")
    [row] = [row for row in json.loads(run(place, "ls", "--all", "--json")) if row["title"] == "First line"]
    path.unlink()
    assert "Without a stream" in run(place, "show", row["id"])
    run(place, "archive", "--restore", row["id"], "--yes")
    assert path.read_bytes() == before


def test_a_history_in_which_nothing_was_asked_is_no_session(tmp_path: Path) -> None:
    path = tmp_path / ".aider.chat.history.md"
    for content in (b"", b"# Notes\n", (RECORDED / "tools" / HISTORY).read_bytes().partition(b"\n#### ")[0]):
        path.write_bytes(content)
        assert list(AGENT.discover([tmp_path], StampCache())) == []


def test_the_id_stays_while_a_history_grows() -> None:
    data = (RECORDED / "failures" / HISTORY).read_bytes()
    ends = [at for at in range(0, len(data), 97) if b"\n#### Change the greeting" in data[:at]]
    assert len(ends) > 10
    assert len({aider.session_of(opened(data[:end])).id for end in ends}) == 1


def test_a_copy_is_recognised_by_its_content(tmp_path: Path) -> None:
    for folder in FOLDERS:
        copy = tmp_path / "notes.md"
        copy.write_bytes((folder / HISTORY).read_bytes())
        assert recognise(copy.as_posix(), copy.read_bytes()[:65536]) is AGENT
        assert read_session(copy).exchanges
    assert resume_command("aider", read_session(copy).id) is None


# ---------------------------------------------------------------- together with calls


def test_tokens_that_the_proxy_saw_take_the_place_of_unknown_ones() -> None:
    [source] = AGENT.discover([RECORDED / "failures/home"], StampCache())
    _, totals = AGENT.billed_of(AGENT.open_session(source))
    ledger = Ledger()
    ledger.add_totals(totals)
    seen = [
        ModelResponse(
            family="openai",
            message_id=f"chatcmpl-{number:029}",
            model="gpt-fake-1",
            usage=Usage(input_tokens=number, output_tokens=1),
            at=total.total.started + timedelta(seconds=1),
            session=source.name,
            project=None,
            agent="aider",
            thread="main",
            witnesses=frozenset({"wire"}),
        )
        for number, total in enumerate(totals[:2], 1)
        if total.total.started
    ]
    ledger.add(seen)
    rows = list(ledger.rows())
    assert sorted(row.usage.input_tokens if row.usage else 0 for row in rows) == [0, 0, 1, 2]


def test_calls_are_found_in_the_history_that_says_the_same(home: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    shutil.copytree(RECORDED / "tools/home", home, dirs_exist_ok=True)
    monkeypatch.setenv("AGENT_LOGGER_AGENT_FOLDERS", str(home))
    [source] = AGENT.discover([home], StampCache())
    session = AGENT.session_of(AGENT.open_session(source))
    assert own_name(replace(session, id="log"), "log") == session.id
    assert own_name(replace(session, id="log", agent="openai-python"), "log") is None


# ---------------------------------------------------------------- damage


def test_damage_loses_only_what_is_damaged_and_is_counted(tmp_path: Path) -> None:
    data = (RECORDED / "tools" / HISTORY).read_bytes()
    start = data.index(b"It is called greet")
    path = tmp_path / "work/.aider.chat.history.md"
    path.parent.mkdir()
    path.write_bytes(data[:start] + b"\0\xff" + data[start + 2 :])
    [row] = json.loads(run(tmp_path, "ls", "--all", "--json"))
    assert (row["damaged_lines"], row["exchanges"], row["turns"]) == (1, 2, 2)


@settings(max_examples=150, deadline=None, suppress_health_check=[HealthCheck.too_slow])
@given(
    st.sampled_from(FOLDERS),
    st.lists(st.tuples(st.integers(0, 4000), st.integers(0, 300), st.binary(max_size=12)), max_size=3),
)
def test_reading_damaged_files_never_raises(folder: Path, cuts: list[tuple[int, int, bytes]]) -> None:
    data = (folder / HISTORY).read_bytes()
    for start, length, put in cuts:
        data = data[: start % (len(data) + 1)] + put + data[start % (len(data) + 1) + length :]
    session = aider.session_of(opened(data))
    ledger = Ledger()
    ledger.add_totals(aider.billed_of(opened(data))[1])
    assert len(list(ledger.rows())) == sum(turn.complete for turn in session.turns)
    repr(session).encode()
