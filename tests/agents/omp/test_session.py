"""OhMyPi's sessions: pi's lines in another folder, with a title before the header, and sub-agents in files below."""

import json
from pathlib import Path
from typing import Any

from agent_logger.agents.omp import session as omp
from agent_logger.agents.registry import recognise, resume_command
from agent_logger.catalog.catalog import Catalog
from agent_logger.model.session import Usage
from tests.agents.foreign import lines, shown, sources_of, total

NAME = "01a1e2ba-ccde-7457-b2d1-48282ed1a8f0"
STEM = f"2026-11-16T05-00-55-390Z_{NAME}"
TIME = "2026-11-16T05:00:{:02}.000Z"


def head(name: str, **more: Any) -> dict[str, Any]:
    return {"type": "session", "version": 3, "id": name, "timestamp": TIME.format(0), "cwd": "/p", **more}


def said(name: str, parent: str | None, at: int, message: dict[str, Any]) -> dict[str, Any]:
    return {"type": "message", "id": name, "parentId": parent, "timestamp": TIME.format(at), "message": message}


def answer(text: str, response: str, tokens: int) -> dict[str, Any]:
    content = [{"type": "text", "text": text}]
    head = {"role": "assistant", "content": content, "api": "openai-completions", "model": "m", "stopReason": "stop"}
    return {**head, "responseId": response, "usage": {"input": tokens, "output": 1}}


MAIN = lines(
    {"type": "title", "title": "A title"},
    head(NAME),
    said("u", None, 1, {"role": "user", "content": "Go"}),
    said("a", "u", 2, answer("Done", "chatcmpl-1", 10)),
)
AGENT = lines(
    head("01a1e2ba-0000-7457-b2d1-48282ed1a8f0"),
    said("u", None, 1, {"role": "user", "content": "Look"}),
    said("a", "u", 2, answer("Looked", "chatcmpl-2", 20)),
)


def write(home: Path) -> Path:
    path = home / ".omp/agent/sessions/--p--" / f"{STEM}.jsonl"
    below = path.with_suffix("") / "0-Explore.jsonl"
    below.parent.mkdir(parents=True)
    path.write_bytes(MAIN)
    below.write_bytes(AGENT)
    (below.parent / "0-Explore.md").write_text("no session")
    return path


def test_sub_agents_are_threads_of_the_session_above_them(tmp_path: Path) -> None:
    path = write(tmp_path / "home")
    [files] = sources_of("omp", tmp_path)
    session, responses = omp.session_of(files), list(omp.responses_of(files))
    assert shown(session) == [("Go", [["Done"], ["Looked"]])]
    assert (session.id, session.agent, session.title) == (NAME, "omp", "A title")
    [agent] = session.agents
    assert (agent.thread, agent.description) == ("agent:01a1e2ba-0000-7457-b2d1-48282ed1a8f0", "0-Explore")
    assert [(response.session, response.agent, response.thread) for response in responses] == [
        (NAME, "omp", "main"),
        (NAME, "omp", agent.thread),
    ]
    assert total(response.usage for response in responses) == Usage(input_tokens=30, output_tokens=2)
    found = recognise(str(path), MAIN)
    assert found and found.name == "omp"
    assert resume_command("omp", NAME) == ["omp", "--session", NAME]


def test_a_sub_agent_is_no_row_and_counts(home: Path) -> None:
    write(home)
    with Catalog.open(home / ".agent-logger") as catalog:
        [row] = catalog.sessions()
    assert (row.id, row.agent, row.exchanges, row.usage) == (NAME, "omp", 1, Usage(input_tokens=30, output_tokens=2))


def test_a_branch_names_its_parent(tmp_path: Path) -> None:
    path = write(tmp_path / "home")
    branch = path.with_name(path.name.replace("01a1e2ba-ccde", "01a1e2ba-dddd"))
    header = head("01a1e2ba-dddd-7457-b2d1-48282ed1a8f0", parentSession=str(path))
    branch.write_bytes(json.dumps(header).encode() + b"\n" + MAIN.split(b"\n", 2)[2])
    assert {omp.parent_of(files) for files in sources_of("omp", tmp_path)} == {None, NAME}
