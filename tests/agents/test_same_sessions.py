"""The same sessions in the files of every agent, as the benchmarks write them, are read as what was written."""

from pathlib import Path

import pytest

from _agent_homes import WRITERS
from _conversations import NAMED_FOLDER, Conversation, conversations, write_claude
from agent_logger import Catalog
from agent_logger.agents.registry import AGENTS

SESSIONS, LINES = 2, 60
WITHOUT_TOKENS, WITHOUT_TOOLS = "aider", "aider"


@pytest.fixture(scope="module")
def written(tmp_path_factory: pytest.TempPathFactory) -> list[Conversation]:
    folder = tmp_path_factory.mktemp("claude")
    write_claude(folder, SESSIONS, LINES)
    return list(conversations(folder))


@pytest.mark.parametrize("agent", WRITERS)
def test_sessions_are_the_same_in_the_files_of_every_agent(
    agent: str, written: list[Conversation], home: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("AGENT_LOGGER_AGENT_FOLDERS", str(home / NAMED_FOLDER))
    WRITERS[agent](home, written)
    with Catalog.open() as catalog:
        counted = sum(sum(total.usage.counts[:4]) for total in catalog.usage().values())
        sessions = [session for row in catalog.sessions() if (session := catalog.session(row.id))]
    prompts = sorted(prompt.text for talk in written for prompt in talk.prompts)
    responses = [each for talk in written for each in talk.responses]
    exchanges = [exchange for session in sessions for exchange in session.exchanges]
    turns = [turn for exchange in exchanges for turn in exchange.turns]
    assert sorted(exchange.user_input or "" for exchange in exchanges) == prompts
    assert len(sessions) == len(written)
    assert len(turns) == len(responses)
    results = [block.text for turn in turns for block in turn.blocks if block.kind == "tool_result"]
    calls = [each for each in responses if each.call and agent != WITHOUT_TOOLS]
    assert sum(block.kind == "tool_use" for turn in turns for block in turn.blocks) == len(calls) == len(results)
    assert all(any(each.result in result for result in results) for each in calls)
    assert counted == (0 if agent == WITHOUT_TOKENS else sum(each.tokens for each in responses))


def test_there_is_a_writer_for_every_agent_that_has_files_of_its_own() -> None:
    names = {agent.name for agent in AGENTS if agent.location and agent.reader}
    of_pi, of_gemini = {"omp", "prime-agent"}, {"qwen-code", "gemini-cli"}  # whose lines are the same
    assert names - of_pi - of_gemini - {"claude-code"} <= WRITERS.keys()
