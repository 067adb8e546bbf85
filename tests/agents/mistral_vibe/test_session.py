"""Mistral Vibe's sessions: what the recordings of the real client say, and what is left of damaged copies."""

import json
import shutil
from collections.abc import Callable
from pathlib import Path

import msgspec
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from agent_logger.agents import registry
from agent_logger.agents.mistral_vibe import AGENT
from agent_logger.agents.mistral_vibe.files import recognises
from agent_logger.files.sources import Source, StampCache, source_at
from agent_logger.model.responses import ModelResponse, ReportedTotal
from agent_logger.model.session import MAIN, SIDE, Session, Usage
from agent_logger.protocols.jsonl import Damage
from tests.agents.foreign import DATA, shown
from tests.agents.recorded import RecordedUsage, recording

VERSION_3, VERSION_2 = DATA / "mistral-vibe/3.0.2", DATA / "mistral-vibe/2.26.1"
SCENARIOS = sorted(path.parent for path in (DATA / "mistral-vibe").glob("*/*/manifest.json"))


class ExpectedSession(msgspec.Struct):
    id: str
    kind: str
    new_exchanges: list[str]
    new_responses: list[str]
    new_tool_calls: int
    totals: RecordedUsage
    title: str | None = None
    parent: str | None = None
    fork_of: str | None = None

    @property
    def usage(self) -> Usage:
        """The tokens as Vibe counts them: what was written into the cache is part of the input."""
        counts = self.totals
        return Usage(
            input_tokens=counts.input + counts.cache_write,
            output_tokens=counts.output,
            cache_read_tokens=counts.cache_read,
        )


def expected(scenario: Path) -> dict[str, ExpectedSession]:
    manifest = json.loads((scenario / "manifest.json").read_bytes())
    sessions = msgspec.convert(manifest["expected_sessions"], list[ExpectedSession])
    return {session.id: session for session in sessions}


Billed = tuple[Session, list[ModelResponse], list[ReportedTotal]]


def billed(home: Path) -> dict[str, Billed]:
    read = {}
    for source in AGENT.discover([home / ".vibe"], StampCache()):
        responses, totals = AGENT.billed_of(AGENT.open_session(source))
        read[source.name] = AGENT.session_of(AGENT.open_session(source)), responses, totals
    return read


def only(home: Path) -> Session:
    [(session, _, _)] = billed(home).values()
    return session


def total_of(totals: list[ReportedTotal]) -> Usage:
    models = (model for total in totals for model in total.total.models)
    return sum((model.usage for model in models if model.usage), Usage())


def damages_of(home: Path) -> list[str]:
    sources = (AGENT.open_session(source) for source in AGENT.discover([home / ".vibe"], StampCache()))
    files = (file for source in sources for file in (source.main, *source.others))
    return [entry.reason for file in files for entry in file.entries if isinstance(entry, Damage)]


@pytest.fixture
def copy(tmp_path: Path) -> Callable[[Path], Path]:
    def copied(scenario: Path) -> Path:
        return Path(shutil.copytree(scenario / "home", tmp_path / "home", dirs_exist_ok=True))

    return copied


@pytest.mark.parametrize("scenario", SCENARIOS, ids=lambda path: f"{path.parent.name}-{path.name}")
def test_every_session_is_as_its_recording_says(scenario: Path) -> None:
    read, sessions = billed(scenario / "home"), expected(scenario)
    assert set(read) == {name for name, session in sessions.items() if session.kind != "subagent"}
    for name, (session, responses, totals) in read.items():
        agents = [other for other in sessions.values() if other.parent == name]
        assert session.id == name
        assert (
            session.parent == sessions[name].fork_of == AGENT.parent_of(AGENT.open_session(source_of(scenario, name)))
        )
        assert session.title == sessions[name].title or sessions[name].title is None
        assert session.project == "/home/user/project"
        assert [exchange.user_input for exchange in session.exchanges] == sessions[name].new_exchanges
        assert total_of(totals) == sum((each.usage for each in (sessions[name], *agents)), Usage())
        left = sum((item.usage for item in session.not_itemised if item.usage), Usage())
        itemised = sum((response.usage for response in responses if response.usage), Usage())
        assert left + itemised == total_of(totals)
        calls = sum(len(turn.tool_calls) for turn in session.turns)
        assert calls == sum(each.new_tool_calls for each in (sessions[name], *agents))
        assert {agent.thread for agent in session.agents} == {f"agent:{agent.id}" for agent in agents}


def source_of(scenario: Path, name: str) -> Source:
    return next(source for source in AGENT.discover([scenario / "home/.vibe"], StampCache()) if source.name == name)


@pytest.mark.parametrize("scenario", SCENARIOS, ids=lambda path: f"{path.parent.name}-{path.name}")
def test_turns_are_the_responses_that_ended_with_the_ids_of_their_tool_calls(scenario: Path) -> None:
    complete = recording(scenario).of({"main", "subagent"})
    sessions = [session for session, _, _ in billed(scenario / "home").values()]
    turns = [turn for session in sessions for turn in session.turns if turn.thread != SIDE and not turn.error]
    # What came of a cut answer: version 2 does not mark it.
    cut = 1 if scenario in (VERSION_2 / "failures", VERSION_3 / "interrupted") else 0
    assert len(turns) == len(complete) + cut
    manifest = json.loads((scenario / "manifest.json").read_bytes())
    called = {call["id"] for response in manifest["responses"] for call in response.get("tool_calls", ())}
    read = {call.id for turn in turns for call in turn.tool_calls}
    # Before a compaction, ids are known only as far as the journal goes.
    assert read == called or (scenario == VERSION_3 / "compact" and len(read & called) == 1)


def test_the_tokens_of_responses_that_the_journal_has_are_known() -> None:
    for scenario, thread, usage in (
        ("tools", MAIN, (555, 290, 4096, 0, 0)),
        ("compact", SIDE, (9200, 60, 2560, 0, 0)),  # the summary
        ("compact", MAIN, (2100, 70, 1024, 0, 0)),
    ):
        counted = {
            (response.thread, response.usage.counts)
            for _, responses, _ in billed(VERSION_3 / scenario / "home").values()
            for response in responses
            if response.usage
        }
        assert (thread, usage) in counted


def test_a_conversation_is_read_with_its_tools_and_times() -> None:
    session = only(VERSION_3 / "tools/home")
    assert shown(session) == [
        ("List the files", [["I will look.", ">bash", ">read_file", "<", "<"], [">read_file", "<failed"], TWO_FILES]),
        ("What is the function called?", [["The function is greet."]]),
    ]
    assert [exchange.end_reason for exchange in session.exchanges] == ["result", "result"]
    assert [turn.model for turn in session.turns] == ["gpt-fake-1"] * 4
    first = session.turns[0]
    assert first.started and first.ended
    assert (first.ended - first.started).total_seconds() == 0.1  # to the end of its tools
    assert all(block.at for turn in session.turns for block in turn.blocks)


TWO_FILES = ["Two files; missing.txt is not there."]


def test_sub_agents_are_threads_of_the_program_that_started_them() -> None:
    session = only(VERSION_3 / "subagents/home")
    [program] = [call for turn in session.turns for call in turn.tool_calls if call.name == "run_typescript"]
    assert [(agent.description, agent.tool_use_id) for agent in session.agents] == [
        ("reader", program.id),
        ("lister", program.id),
    ]
    first, second = session.exchanges
    assert {turn.thread for turn in first.turns} == {MAIN, *(agent.thread for agent in session.agents)}
    assert [turn.thread for turn in second.turns] == [MAIN]


def test_a_sub_agent_of_version_2_belongs_to_the_call_of_its_task() -> None:
    session = only(VERSION_2 / "subagents/home")
    [task] = [call for turn in session.turns for call in turn.tool_calls if call.name == "task"]
    [agent] = session.agents
    assert (agent.tool_use_id, agent.kind, agent.description) == (
        task.id,
        "explore",
        "Read hello.py and say what it does.",
    )


def test_a_sub_agent_whose_starter_is_gone_is_a_session(copy: Callable[[Path], Path]) -> None:
    home = copy(VERSION_3 / "subagents")
    [main] = [session for session in expected(VERSION_3 / "subagents").values() if session.kind == "main"]
    [folder] = home.rglob(main.id)
    shutil.rmtree(folder)
    agents = {name for name, session in expected(VERSION_3 / "subagents").items() if session.kind == "subagent"}
    assert set(billed(home)) == agents


def test_failed_tools_and_prompts_are_marked() -> None:
    session = only(VERSION_3 / "failures/home")
    assert [call.is_error for turn in session.turns for call in turn.tool_calls] == [True]  # exit code 3
    assert [exchange.end_reason for exchange in session.exchanges] == ["result", "result", "result", "failed"]
    last = session.turns[-1]
    assert not last.complete
    assert not last.is_billed
    assert "400 Bad Request" in (last.error or "")
    calls = [call for turn in only(VERSION_2 / "failures/home").turns for call in turn.tool_calls]
    assert [call.is_error for call in calls] == [True]


def test_compactions_are_noted() -> None:
    for scenario, trigger in ((VERSION_3 / "compact", "auto"), (VERSION_2 / "compact", None)):
        assert [compaction.trigger for compaction in only(scenario / "home").compactions] == [trigger]


def test_thinking_is_read() -> None:
    session = only(VERSION_3 / "anthropic/home")
    assert shown(session) == [
        ("Look", [["(Let me see.)", "I look.", ">bash", "<"], ["(It greets.)", "It\u2028greets."]]),
    ]


def test_the_work_before_a_kill_is_read_from_the_journal() -> None:
    killed = VERSION_3 / "killed"
    session = only(killed / "home_after_kill")
    assert shown(session) == [("Start", [["First.", ">bash", "<"]])]
    assert [exchange.end_reason for exchange in session.exchanges] == [None]
    [usage] = [model.usage for total in session.totals for model in total.models]
    assert session.turns[0].usage == usage
    assert [exchange.end_reason for exchange in only(killed / "home").exchanges] == ["input", "result"]


def test_an_interrupted_answer_is_kept_as_far_as_it_came() -> None:
    session = only(VERSION_3 / "interrupted/home")
    assert [exchange.end_reason for exchange in session.exchanges] == ["cut", "result"]
    _, cut, _ = session.turns
    assert [block.text for block in cut.blocks] == ["A long answer that stalls before its end comes"]
    assert not cut.complete
    assert not cut.is_billed


# ---------------------------------------------------------------- damage and change


def test_a_damaged_name_of_the_generation_leads_to_the_newest(copy: Callable[[Path], Path]) -> None:
    home = copy(VERSION_3 / "tools")
    [current] = home.rglob("CURRENT")
    current.write_bytes(b"\0" * 200)
    assert shown(only(home)) == shown(only(VERSION_3 / "tools/home"))
    assert len(damages_of(home)) == 1


def test_a_missing_chunk_is_counted_as_damage_and_the_rest_is_read(copy: Callable[[Path], Path]) -> None:
    home = copy(VERSION_3 / "tools")
    [current] = home.rglob("CURRENT")
    generation = json.loads(current.read_bytes())["generation"]
    manifest = json.loads((current.parent / "generations" / generation / "manifest.json").read_bytes())
    [context] = manifest["checkpoint"]["chunks"]
    (current.parent / f"chunks/{context}.json").unlink()
    session, whole = only(home), only(VERSION_3 / "tools/home")
    assert [exchange.user_input for exchange in session.exchanges] == ["List the files", "What is the function called?"]
    names = [[call.name for call in turn.tool_calls] for turn in session.turns]
    assert names == [[call.name for call in turn.tool_calls] for turn in whole.turns]
    assert session.totals[0].models == whole.totals[0].models
    assert damages_of(home) == [f"chunks/{context}.json is missing"]


@pytest.mark.parametrize("kind", ["cut", "NUL"])
def test_of_a_damaged_chunk_the_entries_that_are_whole_are_read(kind: str, copy: Callable[[Path], Path]) -> None:
    home, whole = copy(VERSION_3 / "tools"), shown(only(VERSION_3 / "tools/home"))
    damaged = 0
    for path in home.rglob("chunks/*.json"):
        data = path.read_bytes()
        if (at := data.rfind(b'{"content":')) > 0 and b"generationStatus" in data:
            path.chmod(0o600)
            path.write_bytes(data[: at + 20] if kind == "cut" else data[:at] + b"\0" * 20 + data[at + 20 :])
            damaged += 1
    assert damaged
    read = shown(only(home))
    assert [read[0], read[1][0]] == [whole[0], whole[1][0]]  # only the answer to the second prompt is lost
    assert len(damages_of(home)) == 1


def test_a_lost_total_is_taken_from_the_journal_or_is_unknown(copy: Callable[[Path], Path]) -> None:
    home = copy(VERSION_3 / "tools")
    for path in home.rglob("projection-state.json"):
        path.write_bytes(b"{")
    [(session, _, totals)] = billed(home).values()
    assert total_of(totals) == total_of(billed(VERSION_3 / "tools/home").popitem()[1][2])
    assert [exchange.user_input for exchange in session.exchanges] == ["List the files", "What is the function called?"]
    assert [call.name for call in session.tool_calls] == ["bash", "read_file", "read_file"]
    for path in home.rglob("journal/*.jsonl"):
        path.unlink()
    [(session, responses, totals)] = billed(home).values()
    assert totals == []
    assert [response.usage for response in responses] == [None] * len(session.turns) == [None] * 4


def test_names_in_a_manifest_lead_nowhere_else(copy: Callable[[Path], Path]) -> None:
    home = copy(VERSION_3 / "tools")
    for path in home.rglob("manifest.json"):
        entry = {"id": "assistant-x", "type": "message", "role": "assistant", "content": "secret"}
        (path.parents[2] / "secret.json").write_text(json.dumps(entry))
        manifest = json.loads(path.read_bytes())
        manifest["projection_state"] = {"path": "../../secret.json", "chunks": ["../secret"]}
        path.write_text(json.dumps(manifest))
    assert "secret" not in repr(only(home))


@settings(max_examples=40, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(data=st.data())
def test_damage_anywhere_loses_at_most_what_is_damaged(data: st.DataObject, tmp_path: Path) -> None:
    home = tmp_path / "home"
    shutil.rmtree(home, ignore_errors=True)
    shutil.copytree(VERSION_3 / "tools/home", home)
    paths = sorted(path for path in home.rglob("*") if path.is_file())
    path = data.draw(st.sampled_from(paths), label="file")
    whole = path.read_bytes()
    at = data.draw(st.integers(0, len(whole)), label="at")
    kind = data.draw(st.sampled_from(["cut", "NUL", "line", "gone"]), label="damage")
    match kind:
        case "cut":
            path.write_bytes(whole[:at])
        case "NUL":
            path.write_bytes(whole[:at] + b"\0" * len(whole[at : at + 50]) + whole[at + 50 :])
        case "line":
            path.write_bytes(whole[:at] + b"\xe2\x80\xa8\n{" + whole[at:])
        case _:
            path.unlink()
    truth = total_of(billed(VERSION_3 / "tools/home").popitem()[1][2])
    for session, responses, totals in billed(home).values():
        assert {exchange.user_input for exchange in session.exchanges} <= {
            None,
            "List the files",
            "What is the function called?",
        } or kind in ("NUL", "line")
        counted = total_of(totals) if totals else sum((item.usage for item in responses if item.usage), Usage())
        # Nothing is counted that was not there, unless the damage is in the numbers themselves.
        assert kind in ("NUL", "line") or all(one <= two for one, two in zip(counted.counts, truth.counts, strict=True))


def test_lines_that_are_there_again_say_nothing_new(copy: Callable[[Path], Path]) -> None:
    for scenario in (VERSION_2 / "tools", VERSION_3 / "killed"):
        home = copy(scenario)
        for path in home.rglob("*.jsonl"):
            path.write_bytes(path.read_bytes() * 2)
        assert shown(only(home)) == shown(only(scenario / "home"))
        shutil.rmtree(home)


# ---------------------------------------------------------------- finding


def test_a_new_record_changes_the_stamp_of_the_session_and_of_no_other(copy: Callable[[Path], Path]) -> None:
    home = copy(VERSION_3 / "fork")
    before = {source.name: source.stamp for source in AGENT.discover([home / ".vibe"], StampCache())}
    [folder] = (path for path in home.rglob("unified/*") if path.name == min(before))
    with max((folder / "journal").iterdir()).open("ab") as journal:
        journal.write(b"{}\n")
    after = {source.name: source.stamp for source in AGENT.discover([home / ".vibe"], StampCache())}
    assert {name for name in before if before[name] != after[name]} == {min(before)}


def test_a_session_is_opened_by_its_main_file_alone() -> None:
    for scenario in (VERSION_3 / "subagents", VERSION_2 / "subagents"):
        home = scenario / "home"
        [source] = AGENT.discover([home / ".vibe"], StampCache())
        alone = AGENT.session_of(AGENT.open_session(source_at(AGENT.name, Path(source.path))))
        assert alone == only(home)


def test_main_files_are_recognised_by_their_content() -> None:
    for path in [*VERSION_3.rglob("CURRENT"), *VERSION_2.rglob("session_*/messages.jsonl")]:
        first = path.read_bytes()[:4096]
        assert recognises(first)
        assert registry.recognise("renamed.jsonl", first) is AGENT
        assert registry.recognise(str(path), first) is AGENT


def test_vibe_is_resumed_by_the_id_of_its_session() -> None:
    name = "79075b6e-cb2c-6491-0dd3-510c7eb7db76"
    assert registry.resume_command("mistral-vibe", name) == ["vibe", "--resume", name]
    assert registry.canonical_name("vibe") == "mistral-vibe"
