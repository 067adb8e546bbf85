"""Files whose names are no UTF-8: they are read, and so is what lies beside them."""

import json
import os
from pathlib import Path

import pytest

from agent_logger.catalog.catalog import Catalog
from tests.agents.foreign import DATA
from tests.catalog.catalogs import ID, assistant, user

ROLLOUT = min(DATA.glob("codex/*/*/home/.codex/sessions/*/*/*/*.jsonl")).read_bytes()
CHAT = min(DATA.glob("gemini-cli/*/*/home/**/session-*.jsonl")).read_bytes()
MESSAGE = b'{"role": "assistant", "tokens": {"input": 3, "output": 4}}'
CLAUDE = b".claude/projects/-p/" + ID.format(7).encode()
HELPED = {**assistant(3, "helped", ID.format(7)), "isSidechain": True, "agentId": "a1"}

FILES = {
    "codex": {b".codex/sessions/2026/11/15/rollout-\xff-01a1df72-07e2-7120-8571-37165afd3811.jsonl": ROLLOUT},
    "gemini-cli": {b".gemini/tmp/p\xff/chats/session-\xff-1.jsonl": CHAT},
    "opencode": {
        b".local/share/opencode/storage/session/p\xff/ses_\xff.json": b"{}",
        b".local/share/opencode/storage/message/ses_\xff/msg_\xff.json": MESSAGE,
    },
    "claude-code": {
        CLAUDE + b".jsonl": json.dumps(assistant(2, "gone", ID.format(7))).encode() + b"\n",
        CLAUDE + b"/subagents/agent-\xff.jsonl": json.dumps(HELPED).encode() + b"\n",
    },
}


@pytest.mark.parametrize("agent", FILES)
def test_a_file_name_that_is_not_utf8_is_read_with_its_neighbours(home: Path, agent: str) -> None:
    session = ID.format(1)
    beside = home / f".claude/projects/-q/{session}.jsonl"
    beside.parent.mkdir(parents=True)
    lines = [user(1, "go", session), assistant(2, "gone", session)]
    beside.write_text("".join(json.dumps(line) + "\n" for line in lines))
    for name, data in FILES[agent].items():
        path = home / os.fsdecode(name)
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_bytes(data)
    with Catalog.open(home / ".agent-logger") as catalog:
        for _ in range(2):
            catalog.refresh()
            told = {it.id: it for it in catalog.sessions()}
            assert len(told) == 2
            [other] = told.keys() - {session}
            assert told[other].agent == agent
            assert told[other].usage.output_tokens > 0
        assert catalog.index()
        assert catalog.session(other)
