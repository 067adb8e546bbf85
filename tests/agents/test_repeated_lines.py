"""Lines that are in a file twice, as after a careless restore, count once."""

import shutil
from pathlib import Path

import pytest

from agent_logger.agents.registry import readable_agent
from agent_logger.model.session import Usage
from tests.agents.foreign import DATA, shown
from tests.agents.recorded import read_home

SCENARIOS = {
    "copilot-cli": "copilot-cli/1.0.102/tools",
    "droid": "droid/0.225.2/fork",
    "gptme": "gptme/0.35.1/tools",
    "grok-build": "grok-build/1.0.41/tools",
    "kimi-code": "kimi-code/2.1.0/subagents",
    "pi": "pi/0.74.2/tools",
}


@pytest.mark.parametrize("scenario", SCENARIOS.values(), ids=SCENARIOS)
@pytest.mark.parametrize("whole", [False, True], ids=["each line", "the whole file"])
def test_a_line_that_is_there_twice_counts_once(scenario: str, whole: bool, tmp_path: Path) -> None:
    agent = readable_agent(next(name for name, of in SCENARIOS.items() if of == scenario))
    assert agent
    home = shutil.copytree(DATA / scenario / "home", tmp_path / "recorded")
    before = read_home(agent, home)
    for path in home.rglob("*.jsonl"):
        lines = path.read_bytes().splitlines(keepends=True)
        path.write_bytes(b"".join(lines) * 2 if whole else b"".join(line * 2 for line in lines))
    after = read_home(agent, home)
    assert after.keys() == before.keys()
    for name, (session, responses) in before.items():
        repeated, repeated_responses = after[name]
        assert shown(repeated) == shown(session)
        assert repeated.usage == session.usage
        usages = [sum((it.usage for it in each if it.usage), Usage()) for each in (responses, repeated_responses)]
        assert usages[0] == usages[1]
