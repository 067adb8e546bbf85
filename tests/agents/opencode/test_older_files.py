"""opencode's sessions before it had a database: files that one reader reads as rows."""

import json
import os
import sqlite3
from contextlib import closing
from pathlib import Path
from typing import Any

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from agent_logger.catalog.catalog import Catalog
from agent_logger.catalog.discovery.sessions import SessionLocation, discover
from agent_logger.logs.reader import read_session
from agent_logger.model.session import Session, Usage
from tests.agents.foreign import DATA, manifest, shown
from tests.hostile import ODD_VALUES

OLDER, OLDEST = DATA / "opencode/1.1.53/agents_fork", DATA / "opencode/0.5.29/agents"
MAIN, CHILD, FORK = (
    "ses_e1eb88048ffemWIc5vVRgb4rQM",
    "ses_e1eb87f05ffeljgTsU0mwMelSL",
    "ses_e1eb86d52ffecVhZZDs9JbK6eb",
)


def left_behind(dump: Path, home: Path) -> Path:
    """The files as opencode left them."""
    folder = home / ".local/share/opencode"
    for line in (dump / "storage.jsonl").read_text().splitlines():
        file = json.loads(line)
        write(folder / file["path"], file["content"])
    return folder


def write(path: Path, content: Any) -> None:
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(json.dumps(content, indent=2))


def change(path: Path, fields: dict[str, Any]) -> None:
    write(path, {**json.loads(path.read_text()), **fields})


def found() -> dict[str, SessionLocation]:
    return {place.name: place for place in discover()}


def usage_of(kinds: dict[str, dict[str, int]]) -> Usage:
    told = [kinds[kind] for kind in kinds if kind != "side"]
    return Usage(
        input_tokens=sum(it["input_tokens"] for it in told),
        output_tokens=sum(it["output_tokens"] for it in told),
        cache_read_tokens=sum(it["cache_read_input_tokens"] for it in told),
        cache_write_tokens=sum(it["cache_creation_input_tokens"] for it in told),
    )


@pytest.mark.parametrize("dump", [OLDER, OLDEST], ids=["1.1.53", "0.5.29"])
def test_session_usage_matches_the_usage_billed_by_the_server(dump: Path, home: Path) -> None:
    left_behind(dump, home)
    truth = manifest(dump).truth
    places = found()
    assert places.keys() == truth.keys()
    for name, kinds in truth.items():
        session = places[name].read()
        assert session.usage == usage_of(kinds)
        assert session.project == "/home/user/project"
        assert sum((it.usage for it in places[name].responses() if it.usage), Usage()) == session.usage
    with Catalog.open(home / ".agent-logger") as catalog:
        catalog.refresh()
        assert {it.id for it in catalog.sessions()} == truth.keys()
        assert catalog.total().usage.output_tokens == sum(usage_of(it).output_tokens for it in truth.values())


CONVERSATION = [
    ["(A helper should count.)", "I ask a helper.", ">task", "<"],
    ["And I read one that is not there.", ">read", "<failed"],
    ["One file."],
    ["I look.", ">bash", "<"],
    ["There is 1 file."],
]


def test_the_conversation_matches_the_scripted_scenario(home: Path) -> None:
    left_behind(OLDER, home)
    session = found()[MAIN].read()
    assert shown(session) == [
        ('"How many files?"', CONVERSATION),  # the client quotes what has blanks in it
        ('"And then?"', [["Original goes on."]]),
        ('"Fail please"', []),
        ("After?", [["Summary of the work."]]),
    ]
    assert session.threads == ["main", f"agent:{CHILD}"]
    [agent] = session.agents
    [task] = (call for call in session.tool_calls if call.name == "task")
    assert (agent.thread, agent.tool_use_id, agent.kind) == (f"agent:{CHILD}", task.id, "general")
    assert [it.end_reason for it in session.exchanges] == ["result", "result", "failed", "result"]


def test_one_message_can_contain_several_responses(home: Path) -> None:
    left_behind(OLDEST, home)
    [place] = found().values()
    asked, turns = shown(place.read())[0]
    assert (asked, turns) == ("How many files?", CONVERSATION)


def test_a_fork_has_its_own_turns_and_names_its_parent(home: Path) -> None:
    left_behind(OLDER, home)
    fork = found()[FORK].read()
    assert (fork.parent, shown(fork)) == (MAIN, [('"In a fork?"', [["Forked answer."]])])


def test_sessions_migrated_to_the_database_are_listed_once(home: Path) -> None:
    folder = left_behind(OLDER, home)
    with closing(sqlite3.connect(folder / "opencode.db")) as new:
        new.executescript((DATA / "opencode/1.18.33/agents_fork/opencode.sql").read_text())
        new.execute(
            "INSERT INTO session (id, project_id, slug, directory, title, version, time_created, time_updated)"
            " VALUES (?, 'global', 's', '/p', 'Copied', '1', 1, 1)",
            (MAIN,),
        )
        new.commit()
    names = [place.name for place in discover()]
    assert sorted(names) == sorted({*names})
    assert CHILD not in names
    assert found()[MAIN].read().title == "Copied"
    assert FORK in names


def test_a_session_in_both_file_layouts_is_listed_once(home: Path) -> None:
    folder = left_behind(OLDEST, home)
    [place] = found().values()
    for file in place.path.parent.iterdir():
        copy = json.loads(file.read_text())
        write(folder / "storage/session/global" / file.name, {**copy, "title": "Taken over"})
    [place] = discover()
    assert (place.read().title, place.read().turns) == ("Taken over", [])


def test_cyclic_parent_sessions_are_listed(home: Path) -> None:
    folder = left_behind(OLDER, home) / "storage/session/global"
    change(folder / f"{FORK}.json", {"parentID": FORK})
    change(folder / f"{MAIN}.json", {"parentID": CHILD})
    told = [place.read() for place in discover()]
    assert sum(len(it.turns) for it in told) == 8


def test_a_message_is_read_again_when_it_is_finished(home: Path) -> None:
    folder = left_behind(OLDER, home)
    with Catalog.open(home / ".agent-logger") as catalog:
        catalog.refresh()
        before = catalog.total().usage.output_tokens
        message = "msg_1e14999990014yfyBpPuTwU2Rc"
        write(folder / f"storage/message/{MAIN}/{message}.json", {"role": "assistant"})
        catalog.refresh()
        assert catalog.total().usage.output_tokens == before
        finish = {"type": "step-finish", "tokens": {"input": 1, "output": 5}}
        write(folder / f"storage/part/{message}/prt_1.json", finish)
        change(folder / f"storage/message/{MAIN}/{message}.json", {"time": {"created": 1794780999999}})
        catalog.refresh()
        assert catalog.total().usage.output_tokens == before + 5


def test_a_session_can_be_read_by_its_file_path(home: Path) -> None:
    folder = left_behind(OLDER, home)
    session = read_session(folder / f"storage/session/global/{MAIN}.json")
    assert (session.id, len(session.turns)) == (MAIN, 7)


def test_links_and_pipes_in_the_storage_folder_are_not_read(home: Path, tmp_path: Path) -> None:
    folder = left_behind(OLDER, home)
    outside = tmp_path / "outside"
    os.rename(folder / f"storage/message/{FORK}", outside)
    (folder / f"storage/message/{FORK}").symlink_to(outside)
    os.mkfifo(folder / f"storage/message/{MAIN}/msg_0.json")
    os.mkfifo(folder / "storage/session/global/ses_0.json")
    assert found().keys() == {MAIN, FORK}
    assert not found()[FORK].read().turns
    assert len(found()[MAIN].read().turns) == 7


FILES = [json.loads(line) for line in (OLDER / "storage.jsonl").read_text().splitlines()]
KEYS = (
    "id",
    "time",
    "role",
    "tokens",
    "parentID",
    "title",
    "directory",
    "path",
    "state",
    "type",
    "error",
    "text",
)
TEXTS = (
    "",
    "{",
    "[" * 3_000,
    "null",
    "\0",
    '{"time":{"created":"x"}}',
    '{"text":"\\ud800"}',
    '{"a":1}{"b":2}',
)


@settings(max_examples=30, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(
    changes=st.lists(st.tuples(st.sampled_from(FILES), st.sampled_from(KEYS), st.sampled_from(ODD_VALUES)), max_size=4),
    damaged=st.sampled_from(FILES),
    text=st.sampled_from(TEXTS),
)
def test_reading_malformed_files_never_raises(
    home: Path, changes: list[tuple[Any, str, Any]], damaged: Any, text: str
) -> None:
    folder = home / ".local/share/opencode"
    if not folder.exists():
        left_behind(OLDER, home)
    for file, key, value in changes:
        write(folder / file["path"], {**file["content"], key: value})
    (folder / damaged["path"]).write_text(text)
    for place in discover():
        session: Session = place.read()
        assert sum((it.usage for it in place.responses() if it.usage), Usage()) == session.usage
    for file in (damaged, *(file for file, _, _ in changes)):
        write(folder / file["path"], file["content"])
