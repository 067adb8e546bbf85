"""Prime Agent's sessions: pi's lines in one folder, where sub-agents have sessions of their own."""

from pathlib import Path
from typing import Any

import pytest

from agent_logger.agents.prime_agent import session as prime_agent
from agent_logger.catalog.catalog import Catalog
from agent_logger.model.session import Usage
from tests.agents.foreign import lines, shown, sources_of, total
from tests.agents.omp.test_session import answer, head, said

NAME = "019c1234-0000-7000-8000-000000000001"
CHILD = "019c1234-0000-7000-8000-000000000002"
FORK = "019c1234-0000-7000-8000-000000000003"
PARENT_PATH = "/home/user/.prime/agent/sessions/{}.jsonl"
SPENT = {"input": 20, "output": 1}
BOTH = {"input": 30, "output": 2}


def attributed() -> dict[str, Any]:
    entry = {"type": "child_usage_attributed", "id": "c", "parentId": "a", "targetId": "a"}
    return {**entry, "childUsage": SPENT, "aggregateUsage": BOTH}


FILES = {
    "019c0000-file": lines(
        head(NAME, rlmDepth=0),
        said("u", None, 1, {"role": "user", "content": "Go"}),
        said("a", "u", 2, answer("Done", "chatcmpl-1", 10)),
        attributed(),
    ),
    CHILD: lines(
        head(CHILD, rlmDepth=1, parentSession=PARENT_PATH.format("019c0000-file")),
        said("u", None, 1, {"role": "user", "content": "Look"}),
        said("a", "u", 2, answer("Looked", "chatcmpl-2", 20)),
    ),
    FORK: lines(
        head(FORK, parentSession=PARENT_PATH.format(NAME)),
        said("u", None, 1, {"role": "user", "content": "Go"}),
        said("a", "u", 2, answer("Done", "chatcmpl-1", 10)),
        said("u2", "a", 3, {"role": "user", "content": "On"}),
        said("a2", "u2", 4, answer("More", "chatcmpl-3", 5)),
    ),
}


def write(folder: Path) -> None:
    folder.mkdir(parents=True)
    for name, data in FILES.items():
        (folder / f"{name}.jsonl").write_bytes(data)


def test_sub_agents_are_threads_and_forks_are_sessions(tmp_path: Path) -> None:
    write(tmp_path / "home/.prime/agent/sessions")
    sessions = {session.id: session for session in map(prime_agent.session_of, sources_of("prime-agent", tmp_path))}
    assert set(sessions) == {NAME, FORK}
    assert shown(sessions[NAME]) == [("Go", [["Done"], ["Looked"]])]
    assert [agent.thread for agent in sessions[NAME].agents] == [f"agent:{CHILD}"]
    assert (sessions[NAME].parent, sessions[FORK].parent) == (None, NAME)


def test_usage_attributed_to_a_message_counts_once(tmp_path: Path) -> None:
    write(tmp_path / "home/.prime/agent/sessions")
    [files] = [files for files in sources_of("prime-agent", tmp_path) if prime_agent.session_of(files).id == NAME]
    usage = total(response.usage for response in prime_agent.responses_of(files))
    assert usage == Usage(input_tokens=30, output_tokens=2)
    assert usage == prime_agent.session_of(files).usage


def test_the_folder_of_the_environment_is_listed(home: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    write(home / "mine")
    monkeypatch.setenv("PRIME_AGENT_SESSION_DIR", str(home / "mine"))
    with Catalog.open(home / ".agent-logger") as catalog:
        rows = catalog.sessions()
    assert {row.id for row in rows} == {NAME, FORK}
    assert total(row.usage for row in rows) == Usage(input_tokens=35, output_tokens=3)
