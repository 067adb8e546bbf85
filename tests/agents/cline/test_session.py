"""Cline's sessions: a folder of documents each, with one for every sub-agent."""

import json
import shutil
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from agent_logger.agents.cline import AGENT, document
from agent_logger.agents.source_files import File, SourceFiles
from agent_logger.files.sources import Source, StampCache
from agent_logger.model.responses import ModelResponse
from agent_logger.model.session import Session, Usage
from agent_logger.protocols.jsonl import Damage, JsonEntry
from tests.agents.foreign import DATA, scenarios, total
from tests.hostile import ODD_VALUES

FOLDERS = scenarios("cline")
TOOLS = next(folder for folder in FOLDERS if folder.name == "tools")


def sources_below(home: Path) -> list[Source]:
    return list(AGENT.discover([home / ".cline/data"], StampCache()))


def read_all(home: Path) -> tuple[list[Session], list[ModelResponse]]:
    sources = sources_below(home)
    sessions = [AGENT.session_of(AGENT.open_session(source)) for source in sources]
    assert [session.id for session in sessions] == [source.name for source in sources]
    return sessions, [each for source in sources for each in AGENT.responses_of(AGENT.open_session(source))]


def scenario(name: str) -> Session:
    sessions, _ = read_all(DATA / "cline/3.0.65" / name / "home")
    return sessions[0]


def document_of(*messages: Any, **fields: Any) -> bytes:
    return json.dumps({"version": 1, "sessionId": "s", **fields, "messages": messages}, indent=2).encode()


def said(text: str, **fields: Any) -> dict[str, Any]:
    metrics = {"inputTokens": 15, "outputTokens": 2, "cacheReadTokens": 4, "cacheWriteTokens": 1}
    content = [{"type": "text", "text": text}]
    return {"id": f"msg_{text}", "role": "assistant", "content": content, "ts": 1, "metrics": metrics, **fields}


def asked(text: str) -> dict[str, Any]:
    content = [{"type": "text", "text": f'<user_input mode="act">{text}</user_input>'}]
    return {"id": f"u_{text}", "role": "user", "content": content, "ts": 1}


def opened(data: bytes, *agents: bytes) -> SourceFiles:
    others = [File(f"agent_{at}.messages.json", list(document.entries_of(each))) for at, each in enumerate(agents)]
    return SourceFiles(File("s.messages.json", list(document.entries_of(data))), others)


def read(data: bytes, *agents: bytes) -> Session:
    return AGENT.session_of(opened(data, *agents))


# ---------------------------------------------------------------- real files


@pytest.mark.parametrize("folder", FOLDERS, ids=lambda folder: folder.name)
def test_billed_tokens_match_the_manifest(folder: Path) -> None:
    _, responses = read_all(folder / "home")
    truths = json.loads((folder / "manifest.json").read_text())["truth_usage_of_complete_responses"]
    for kind, thread in (("main", "main"), ("subagent", "agent:")):
        truth = truths.get(kind, dict.fromkeys(("input", "output", "cache_read", "cache_write"), 0))
        usages = [response.usage for response in responses if response.thread.startswith(thread)]
        assert total(usages) == Usage(
            input_tokens=truth["input"],
            output_tokens=truth["output"],
            cache_read_tokens=truth["cache_read"],
            cache_write_tokens=truth["cache_write"],
        )


@pytest.mark.parametrize("folder", FOLDERS, ids=lambda folder: folder.name)
def test_responses_match_the_billed_turns_of_the_session(folder: Path) -> None:
    sessions, responses = read_all(folder / "home")
    billed = [(session.id, turn) for session in sessions for turn in session.turns if turn.is_billed]
    assert sorted(
        (each.session, each.thread, str(each.at), str(each.usage), each.model) for each in responses
    ) == sorted((name, turn.thread, str(turn.started), str(turn.usage), turn.model) for name, turn in billed)
    assert {response.message_id for response in responses} == {None}  # Cline's ids are not the vendor's


@pytest.mark.parametrize("folder", FOLDERS, ids=lambda folder: folder.name)
def test_tool_calls_of_all_threads_match_the_manifest(folder: Path) -> None:
    sessions, _ = read_all(folder / "home")
    manifest = json.loads((folder / "manifest.json").read_text())
    expected = [call["id"] for response in manifest["responses"] for call in response.get("tool_calls", ())]
    calls = [call for session in sessions for turn in session.turns for call in turn.tool_calls]
    assert sorted(str(call.id) for call in calls) == sorted(expected)
    assert all(call.result is not None for call in calls)


def test_a_session_has_the_exchanges_of_all_its_runs() -> None:
    session = scenario("tools")
    assert [exchange.user_input for exchange in session.exchanges] == ["List the files", "What is the function called?"]
    assert [exchange.end_reason for exchange in session.exchanges] == ["result", "result"]
    assert (session.title, session.project) == ("List the files", "/home/user/project")
    assert session.agent == "cline"


def test_a_tool_call_with_one_failure_among_its_results_failed() -> None:
    calls = {call.id: call for turn in scenario("tools").turns for call in turn.tool_calls}
    shell = calls["call_tMHwUN6hrqAGiVRtgdFnNsTb"]
    assert shell.is_error
    assert shell.kind == "shell"
    assert shell.result is not None
    assert "README.md" in shell.result
    assert "No such file" in shell.result
    assert not calls["call_U6Vb1AmmFf3LGN426ZSDaf8Z"].is_error


def test_a_call_of_an_unknown_tool_failed() -> None:
    failed = [call.id for turn in scenario("parallel").turns for call in turn.tool_calls if call.is_error]
    assert failed == ["call_b", "call_d"]


def test_a_sub_agent_is_a_thread_of_its_parent() -> None:
    session = scenario("subagent")
    assert [exchange.user_input for exchange in session.exchanges] == [
        "Ask a helper to count the lines of the file",
        "Anything more to say?",
    ]
    [agent] = session.agents
    assert (agent.thread, agent.parent_thread, agent.tool_use_id) == (
        "agent:agent_1795031393580_8e8ijx",
        "main",
        "call_m1",
    )
    assert [turn.thread for turn in session.exchanges[0].turns].count(agent.thread) == 2


def test_a_cut_response_has_its_text_and_no_usage() -> None:
    sessions, responses = read_all(DATA / "cline/3.0.65/errors/home")
    cut = next(session for session in sessions if session.title == "Say something cut")
    [turn] = cut.turns
    assert (turn.complete, turn.usage, turn.unread_usage) == (False, None, False)
    assert turn.error is not None
    assert "socket connection was closed" in turn.error
    assert [exchange.end_reason for exchange in cut.exchanges] == ["failed"]
    assert cut.id not in {response.session for response in responses}


# ---------------------------------------------------------------- finding


def test_a_session_is_found_once_with_all_its_documents(tmp_path: Path) -> None:
    shutil.copytree(DATA / "cline/3.0.65/subagent/home", tmp_path / "copy")
    [source] = sources_below(tmp_path / "copy")
    assert source.path.endswith(f"/{source.name}.messages.json")
    assert len(source.others or ()) == 2
    agent = next(Path(path) for path in source.others or () if "agent_" in path)
    agent.write_bytes(agent.read_bytes() + b"\n")
    assert [again.stamp != source.stamp for again in sources_below(tmp_path / "copy")] == [True]


def test_a_folder_of_a_sub_agent_beside_its_parent_is_no_session(tmp_path: Path) -> None:
    shutil.copytree(DATA / "cline/3.0.65/subagent/home", tmp_path / "copy")
    [source] = sources_below(tmp_path / "copy")
    folder = tmp_path / "copy/.cline/data/sessions" / f"{source.name}__agent_1_x"
    folder.mkdir()
    (folder / f"{folder.name}.json").write_text("{}")
    assert [each.name for each in sources_below(tmp_path / "copy")] == [source.name]


@pytest.mark.parametrize("missing", [".json", ".messages.json"])
def test_a_session_is_read_without_one_of_its_documents(tmp_path: Path, missing: str) -> None:
    shutil.copytree(TOOLS / "home", tmp_path / "copy")
    [source] = sources_below(tmp_path / "copy")
    (Path(source.path).parent / f"{source.name}{missing}").unlink()
    [session], responses = read_all(tmp_path / "copy")
    assert session.title == "List the files"
    assert len(responses) == (4 if missing == ".json" else 0)
    assert [exchange.user_input for exchange in session.exchanges][:1] == ["List the files"]


def test_main_files_are_recognised_by_their_content() -> None:
    [source] = sources_below(DATA / "cline/3.0.65/subagent/home")
    firsts = {Path(path).name: Path(path).read_bytes() for path in (source.path, *(source.others or ()))}
    assert {name: AGENT.recognises(first) for name, first in firsts.items()} == {
        name: not name.startswith("agent_") for name in firsts
    }


# ---------------------------------------------------------------- damage


def damage_of(data: bytes) -> list[Damage]:
    return [entry for entry in document.entries_of(data) if isinstance(entry, Damage)]


REAL = Path(sources_below(TOOLS / "home")[0].path).read_bytes()
MESSAGES = [entry.value for entry in document.entries_of(REAL) if isinstance(entry, JsonEntry)][1:]


def salvaged(data: bytes) -> list[Any]:
    return [entry.value for entry in document.entries_of(data) if isinstance(entry, JsonEntry)][1:]


@given(st.integers(0, len(REAL) - 1))
def test_a_cut_document_has_all_messages_before_the_cut(length: int) -> None:
    messages, whole = salvaged(REAL[:length]), REAL[:length].count(b"\n    },\n") + REAL[:length].count(b"\n    }\n  ]")
    assert messages == MESSAGES[: len(messages)]
    assert len(messages) >= whole
    assert damage_of(REAL[:length]) or length >= len(REAL.rstrip())


@given(st.integers(0, len(REAL) - 1), st.integers(1, 600))
def test_overwritten_bytes_lose_only_the_messages_they_are_in(start: int, length: int) -> None:
    data = REAL[:start] + b"\0" * min(length, len(REAL) - start) + REAL[start + length :]
    assert damage_of(data)
    messages = salvaged(data)
    assert [message for message in messages if message not in MESSAGES] == []
    touched = [
        message
        for message in MESSAGES
        if (at := REAL.find(json.dumps(message["id"]).encode())) - 20 < start + length
        and start < REAL.find(b'"ts"', at) + 400
    ]
    assert len(messages) >= len(MESSAGES) - len(touched) - 1


def test_a_document_without_its_beginning_has_its_last_messages() -> None:
    data = REAL[len(REAL) // 2 :]
    messages = salvaged(data)
    assert messages == MESSAGES[-len(messages) :]
    assert damage_of(data)
    assert read(data).turns


def test_a_lone_half_of_a_character_is_no_damage() -> None:
    data = document_of(asked("a"), said("b")).replace(b">a<", rb">\ud83d<")
    assert damage_of(data) == []
    assert [exchange.user_input for exchange in read(data).exchanges] == ["\ufffd"]


def test_counts_that_are_none_are_unknown() -> None:
    for metrics in ({"inputTokens": "5", "outputTokens": 1}, {"inputTokens": -1, "outputTokens": 1}):
        data = document_of(asked("a"), said("b", metrics=metrics))
        [turn] = read(data).turns
        assert (turn.usage, turn.unread_usage) == (None, True)
        assert [response.usage for response in AGENT.responses_of(opened(data))] == [None]


def test_a_compaction_begins_no_exchange() -> None:
    summary = {**asked("summary"), "metadata": {"kind": "compaction_summary", "displayRole": "system"}}
    session = read(document_of(asked("a"), said("b"), summary, said("c")))
    assert [exchange.user_input for exchange in session.exchanges] == ["a"]
    assert len(session.compactions) == 1


def test_the_cost_is_the_one_that_the_agent_reports() -> None:
    data = document_of(asked("a"), said("b", metrics={"inputTokens": 1, "outputTokens": 1, "cost": 0.25}))
    assert [response.reported_cost_usd for response in AGENT.responses_of(opened(data))] == [0.25]


PARTS = st.recursive(
    st.sampled_from(ODD_VALUES),
    lambda inner: (
        st.dictionaries(
            st.sampled_from(
                ["type", "text", "id", "name", "input", "content", "tool_use_id", "success", "thinking", "task"]
            ),
            inner | st.sampled_from(["text", "tool_use", "tool_result", "thinking", "image", "spawn_agent"]),
            max_size=5,
        )
        | st.lists(inner, max_size=3)
    ),
    max_leaves=8,
)


@settings(max_examples=150, deadline=None)
@given(
    st.lists(
        st.dictionaries(
            st.sampled_from(["id", "role", "content", "ts", "modelInfo", "metrics", "metadata"]),
            PARTS | st.sampled_from(["user", "assistant"]),
        )
        | PARTS,
        max_size=5,
    )
)
def test_any_messages_can_be_read_and_counted_alike(messages: list[Any]) -> None:
    try:
        data = document_of(*messages)
    except (ValueError, RecursionError):
        return
    session, responses = read(data, data), list(AGENT.responses_of(opened(data, data)))
    assert len([turn for turn in session.turns if turn.is_billed]) == len(responses)
