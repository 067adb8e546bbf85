"""Conversations for programs: chat messages and ATIF, over recorded sessions of every agent and over hostile ones."""

import json
import re
from pathlib import Path
from typing import Any

import pytest
from msgspec.structs import replace

from agent_logger.catalog.discovery.sessions import discover
from agent_logger.exports.base import ExportContext, ExportedSession
from agent_logger.exports.formats import FORMATS, pieces_of
from agent_logger.exports.masks.mask import KINDS, Machine, Pseudonyms, SessionMask
from agent_logger.files.parts import PartFile
from agent_logger.logs.reader import read_session
from agent_logger.model.records import Request, WireStart
from agent_logger.model.session import MAIN, SIDE, Session
from tests.hostile import SHORT
from tests.journal.wire_logs import calls, start, write
from tests.views.sessions import all_hostile, hostile, with_agents

DATA = Path(__file__).parents[1] / "data"
HOMES = sorted(DATA.glob("*/*/*/home"))
SUB_AGENTS = next(DATA.glob("claude-cli/2.1.325/subagents/home/.claude/projects/*/*.jsonl"))
KEY = "sk-ant-api03-" + "Qz7" * 20

FUNCTION_NAME = r"[A-Za-z0-9_-]{1,64}"  # all that OpenAI's API takes

Json = dict[str, Any]


def exported(form: str, session: Session, context: ExportContext | None = None, logs: tuple[PartFile, ...] = ()) -> str:
    given = ExportedSession(session.id, read=lambda: session, wire_logs=lambda: logs)
    pieces = pieces_of(FORMATS[form], given, context or ExportContext())
    return b"".join(piece.data for piece in pieces).decode()


def trajectory(session: Session) -> Json:
    read: Json = json.loads(exported("atif", session))
    return read


def all_trajectories(root: Json) -> list[Json]:
    return [root, *root.get("subagent_trajectories", [])]


def check_trajectory(root: Json) -> None:
    """Check the rules of the format that its validator checks, too."""
    assert root["schema_version"] == "ATIF-v1.7"
    ids = [sub["trajectory_id"] for sub in root.get("subagent_trajectories", [])]
    assert len(set(ids)) == len(ids)
    for part in all_trajectories(root):
        assert [step["step_id"] for step in part["steps"]] == list(range(1, len(part["steps"]) + 1))
        assert part["steps"]
        assert part["final_metrics"]["total_steps"] == len(part["steps"])
        for step in part["steps"]:
            names = {call["tool_call_id"] for call in step.get("tool_calls", [])}
            results = step.get("observation", {"results": []})["results"]
            assert {result["source_call_id"] for result in results if "source_call_id" in result} <= names
            refs = [ref["trajectory_id"] for result in results for ref in result.get("subagent_trajectory_ref", [])]
            assert set(refs) <= set(ids)
            if step["source"] != "agent":
                assert not step.keys() & {"model_name", "tool_calls", "metrics", "reasoning_content"}


def check_messages(text: str) -> list[Json]:
    lines: list[Json] = [json.loads(line) for line in text.split("\n")[:-1]]
    for line in lines:
        open_calls: list[str] = []
        for message in line["messages"]:
            if message["role"] == "tool":
                open_calls.remove(message["tool_call_id"])
                continue
            assert open_calls == [], "the API takes an answer for each call, before anything else"
            for call in message.get("tool_calls", []):
                assert isinstance(json.loads(call["function"]["arguments"]), dict)
                assert re.fullmatch(FUNCTION_NAME, call["function"]["name"])
                assert call["id"] and call["id"] not in open_calls
                open_calls.append(call["id"])
        assert open_calls == []
        assert any(message["role"] == "assistant" for message in line["messages"])
        assert all(re.fullmatch(FUNCTION_NAME, tool["function"]["name"]) for tool in line.get("tools", []))
    return lines


@pytest.mark.parametrize("home", HOMES, ids=lambda home: "/".join(home.parts[-4:-1]))
def test_recorded_sessions_follow_the_rules_of_both_formats(home: Path) -> None:
    for place in discover(home):
        session = place.read()
        root = trajectory(session)
        check_trajectory(root)
        check_messages(exported("messages", session))
        agent_steps = [step for part in all_trajectories(root) for step in part["steps"] if step["source"] == "agent"]
        turns = [turn for turn in session.turns if turn.thread != SIDE]
        assert len(agent_steps) == len(turns)
        calls_by_format = sum(len(step.get("tool_calls", [])) for step in agent_steps)
        assert calls_by_format == sum(block.kind == "tool_use" for turn in turns for block in turn.blocks)
        main = [turn.usage for turn in turns if turn.thread == MAIN and turn.usage and turn.counted_in is None]
        if len({turn.message_id for turn in turns}) == len(turns):
            total = root["final_metrics"]["total_completion_tokens"]
            assert total == sum(usage.output_tokens for usage in main)


def test_sub_agents_are_embedded_and_referred_to() -> None:
    root = trajectory(read_session(SUB_AGENTS))
    subs = root["subagent_trajectories"]
    refs = [
        ref["trajectory_id"]
        for step in root["steps"]
        for result in step.get("observation", {"results": []})["results"]
        for ref in result.get("subagent_trajectory_ref", [])
    ]
    assert len(subs) == 2
    assert sorted(refs) == sorted(sub["trajectory_id"] for sub in subs)
    assert all(sub["steps"][0]["source"] == "user" for sub in subs)
    conversations = check_messages(exported("messages", read_session(SUB_AGENTS)))
    assert len(conversations) == 3


def test_copied_turns_are_marked_and_left_out_of_the_sums() -> None:
    session = read_session(SUB_AGENTS)
    (exchange,) = session.exchanges
    copied = replace(
        session, exchanges=[replace(exchange, turns=[replace(it, counted_in="parent") for it in exchange.turns])]
    )
    root = trajectory(copied)
    assert all(step["is_copied_context"] for step in root["steps"])
    assert root["final_metrics"]["total_completion_tokens"] == 0


@pytest.mark.parametrize(
    "session", [all_hostile(SHORT), with_agents(), hostile(f"say {KEY} now")], ids=["hostile", "agents", "key"]
)
def test_hostile_sessions_are_valid_and_have_no_key(session: Session) -> None:
    check_trajectory(trajectory(session))
    text = exported("messages", session)
    check_messages(text)
    assert "Qz7Qz7" not in text + exported("atif", session)


BODY = {
    "model": "claude-opus-4-5",
    "system": [{"type": "text", "text": f"You work in /home/bob/x. {KEY}"}],
    "tools": [
        {
            "name": "Bash",
            "description": "run",
            "input_schema": {"type": "object", "properties": {"command": {"type": "string"}}},
        }
    ],
    "messages": [{"role": "user", "content": "hello"}],
}


@pytest.fixture
def logs(tmp_path: Path) -> tuple[PartFile, ...]:
    request, response = calls(1)
    assert isinstance(request, Request)
    asked = replace(request, path="/v1/messages", body=json.dumps(BODY), kind="main")
    first = start("log")
    assert isinstance(first, WireStart)
    write(tmp_path, "log", [replace(first, provider="anthropic"), asked, response])
    return (PartFile(tmp_path, "log"),)


def test_the_system_prompt_and_the_tools_come_from_the_wire(logs: tuple[PartFile, ...]) -> None:
    session = read_session(SUB_AGENTS)
    line = check_messages(exported("messages", session, logs=logs))[0]
    assert line["messages"][0]["content"].startswith("You work in /home/bob/x.")
    assert line["tools"][0]["function"]["name"] == "Bash"
    assert line["tools"][0]["function"]["parameters"] == BODY["tools"][0]["input_schema"]  # type: ignore[index]
    root = json.loads(exported("atif", session, logs=logs))
    check_trajectory(root)
    assert root["steps"][0]["source"] == "system"
    assert root["agent"]["tool_definitions"] == line["tools"]


@pytest.mark.parametrize("form", ["messages", "atif"])
def test_the_context_of_the_wire_is_redacted_and_masked(form: str, logs: tuple[PartFile, ...]) -> None:
    mask = SessionMask(frozenset(KINDS), Pseudonyms(bytes(32)), Machine())
    text = exported(form, read_session(SUB_AGENTS), ExportContext(mask), logs)
    assert "bob" not in text and "Qz7Qz7" not in text and "/home/user/" not in text
