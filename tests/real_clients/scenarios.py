"""What the real clients are made to do: the scenarios of `tests/data`, run again.

A fixture is its own script. Its manifest says which commands were run and what is true of each call, `scenario.json`
what the API answers. What a manifest cannot say, that a call goes on from another or repeats it, is in the table below.
"""

import json
import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from pathlib import Path
from typing import Any

from tests.clients import QUIET_CLAUDE

DATA = Path(__file__).parents[1] / "data"
PRINTED_ID = re.compile(r'"(?:session_id|thread_id|sessionID)": ?"([^"]+)"')


def printed_id(stdout: str) -> str | None:
    """The client's own name for its session."""
    found = PRINTED_ID.search(stdout)
    return found[1] if found else None


@dataclass(frozen=True)
class Step:
    """One start of the client. `{01}` in an argument is the session that the step of this label printed."""

    label: str
    arguments: tuple[str, ...]
    exit_code: int = 0


@dataclass(frozen=True)
class Told:
    """What is true of one call."""

    kind: str
    status: int
    complete: bool
    usage: Mapping[str, int] = field(default_factory=dict)


Threads = Mapping[str, Sequence[Told]]  # by thread: main, side, and one per sub-agent


@dataclass(frozen=True)
class Forked:
    """A log (from 0, in the order in which they began) goes on from a call of another one."""

    log: int
    parent: int
    from_seq: int


@dataclass(frozen=True, kw_only=True)
class Scenario:
    client: str  # a row of `running.CLIENTS`
    fixture: str  # under tests/data
    environment: Mapping[str, str] = field(default_factory=dict)
    stdin: str = ""
    forks: tuple[Forked, ...] = ()
    retries: tuple[tuple[int, int], ...] = ()  # in the first log: a call's number and that of the first attempt
    rewrites: tuple[tuple[int, str], ...] = ()  # in the first log: a call's number and the reason
    logs: tuple[int, ...] = ()  # of clients that name no session: how many calls are in each, in the order they began
    beside: int = 0  # calls that the fixture does not have: upgrades, and what warms a WebSocket up
    parallel: bool = False  # sub-agents run at once: who says what first is chance
    long: bool = False

    @property
    def id(self) -> str:
        return f"{self.client}-{self.fixture.rpartition('/')[2]}"

    @property
    def script(self) -> Path:
        return DATA / self.fixture / "scenario.json"

    def played(self) -> dict[str, Any]:
        """Paths are told in one piece, so that what is recorded of them can be made alike."""
        script: dict[str, Any] = json.loads(self.script.read_text())
        for turn in (turn for lane in script["lanes"] for turn in lane["turns"]):
            if "{{CWD}}" in json.dumps(turn):
                turn["pieces"] = 1
        return script

    @cached_property
    def manifest(self) -> dict[str, Any]:
        found: dict[str, Any] = json.loads((DATA / self.fixture / "manifest.json").read_text())
        return found

    def steps(self) -> list[Step]:
        steps: list[Step] = []
        labels: dict[str, str] = {}  # of the step that first printed an id
        for command in self.manifest["commands"]:
            arguments = tuple(f"{{{labels[it]}}}" if it in labels else it for it in command["args"])
            steps.append(Step(command["label"], arguments, command["exit_code"]))
            printed = DATA / self.fixture / str(command["stdout"])
            if printed.is_file() and (found := printed_id(printed.read_text())) and found not in arguments:
                labels.setdefault(found, command["label"])
        return steps


CLAUDE = "claude-cli/2.1.325"
AGENT_SDK = "claude-agent-sdk/0.2.182"
CODEX = "codex/0.166.0"

FORKS_GO_ON = Scenario(
    client="claude-cli",
    fixture=f"{CLAUDE}/forks_go_on",
    forks=(Forked(1, 0, 1), Forked(2, 1, 2), Forked(3, 0, 2)),
)
SCENARIOS = [
    Scenario(client="claude-cli", fixture=f"{CLAUDE}/hello_json"),
    Scenario(client="claude-cli", fixture=f"{CLAUDE}/tools_stream"),
    Scenario(client="claude-cli", fixture=f"{CLAUDE}/tool_results_file", long=True),
    Scenario(client="claude-cli", fixture=f"{CLAUDE}/permission_denied", long=True),
    Scenario(client="claude-cli", fixture=f"{CLAUDE}/limits", long=True),
    Scenario(client="claude-cli", fixture=f"{CLAUDE}/subagents", parallel=True),
    Scenario(client="claude-cli", fixture=f"{CLAUDE}/nested_subagents"),
    Scenario(client="claude-cli", fixture=f"{CLAUDE}/resume_chain", forks=(Forked(1, 0, 3), Forked(3, 0, 3))),
    FORKS_GO_ON,
    Scenario(client="claude-cli", fixture=f"{CLAUDE}/retry_then_ok", retries=((2, 1), (3, 1))),
    Scenario(
        client="claude-cli",
        fixture=f"{CLAUDE}/api_error_529",
        environment={"CLAUDE_CODE_MAX_RETRIES": "2"},
        retries=((2, 1), (3, 1)),
        long=True,
    ),
    Scenario(  # from the fourth on, the system's message is among the user's
        client="claude-cli",
        fixture=f"{CLAUDE}/api_error_400",
        retries=((2, 1), (3, 1), (5, 4), (6, 4)),
        rewrites=((4, "history_replaced"),),
        long=True,
    ),
    Scenario(client="claude-cli", fixture=f"{CLAUDE}/disconnect_midstream", retries=((2, 1),)),
    Scenario(client="claude-cli", fixture=f"{CLAUDE}/sse_error_event", retries=((2, 1),)),
    Scenario(  # without its flags it has one more tool to count the tokens of
        client="claude-cli",
        fixture=f"{CLAUDE}/compact_and_slash",
        environment=dict.fromkeys(QUIET_CLAUDE, ""),
        rewrites=((5, "compaction"),),
    ),
    Scenario(client="claude-agent-sdk", fixture=f"{AGENT_SDK}/client_clear"),
    Scenario(client="codex", fixture=f"{CODEX}/exec_resume"),
    Scenario(client="codex", fixture=f"{CODEX}/responses_lite"),
    Scenario(client="codex", fixture=f"{CODEX}/retry", retries=((2, 1),)),
    Scenario(client="codex", fixture=f"{CODEX}/cut", retries=((2, 1),)),
    Scenario(client="codex", fixture=f"{CODEX}/compact", rewrites=((3, "compaction"),)),
    Scenario(client="codex-websocket", fixture=f"{CODEX}/exec_resume", beside=6),
    Scenario(client="codex-websocket", fixture=f"{CODEX}/responses_lite", beside=2),
    Scenario(client="codex-websocket", fixture=f"{CODEX}/retry", beside=3, retries=((5, 3),)),
    Scenario(client="codex-websocket", fixture=f"{CODEX}/cut", beside=3, retries=((5, 3),)),
    Scenario(  # the second question is asked twice
        client="anthropic-python",
        fixture="anthropic-python/2.8.0/create_and_stream",
        logs=(2, 1, 1, 2),
        forks=(Forked(1, 0, 1),),
    ),
    Scenario(
        client="anthropic-python",
        fixture="anthropic-python/2.8.0/conversation",
        logs=(4, 1, 2),
        retries=((3, 2),),
        forks=(Forked(1, 0, 3),),
    ),
    Scenario(
        client="openai-python",
        fixture="openai-python/3.49.0/chat_and_responses",
        logs=(1, 2, 1, 2, 1, 2),
        forks=(Forked(1, 0, 1),),
    ),
    Scenario(
        client="openai-python",
        fixture="openai-python/3.49.0/conversation",
        logs=(4, 1, 2),
        retries=((3, 2),),
        forks=(Forked(1, 0, 3),),
    ),
    Scenario(client="gemini-cli", fixture="gemini-cli/0.61.0/exec_resume", long=True),
    Scenario(client="opencode", fixture="opencode/1.18.33/run_anthropic", long=True),
    Scenario(client="opencode-openai", fixture="opencode/1.18.33/run_openai_compatible", long=True),
]
