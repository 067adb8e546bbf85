"""The recorded sessions of all agents in one home: each under its own agent, and no exchange and no token lost or
counted twice.

Recordings of one agent may have the same files, sessions or response ids: those stand in homes of their own, each with
recordings of all other agents. An agent that is added to the registry is in here when it has recordings.
"""

import json
import shutil
from collections import Counter
from collections.abc import Iterator
from dataclasses import dataclass, field
from itertools import chain, combinations
from pathlib import Path
from typing import Any, NamedTuple, Self

import pytest

from agent_logger.agents.base import Agent
from agent_logger.agents.registry import AGENTS
from agent_logger.catalog.catalog import Catalog
from agent_logger.model.session import Usage
from tests.agents.databases.recorded import DATABASES, recorded_database
from tests.agents.foreign import DATA

FOLDERS = {"claude-code": "claude-cli"}  # where recordings are not in a folder of the agent's name
# What the names in the manifests count: tokens that the model was given, in the cache or not, and those it wrote.
GIVEN = {
    *("input", "cache_read", "cache_write"),
    *("input_tokens", "cache_read_input_tokens", "cache_creation_input_tokens"),
    *("prompt_tokens", "promptTokenCount"),
}
WRITTEN = {"output", "output_tokens", "completion_tokens", "candidatesTokenCount"}
# Recordings whose files count otherwise than the server, and why.
DIFFERENT = {
    "claude-cli/2.1.325/odd_cwds": "two of its sessions left no file",
    "claude-cli/2.1.4/resume_chain": "sessions share some of their warm-ups",
    "openhands/1.16.0/failures": "a process that was killed had not saved the tokens of its last response",
    "pi/0.74.2/failures": "of answers that were cut, the server counts more output than came",
}
WITHOUT_TOKENS = {"aider"}  # agents that write rounded counts, which are not read


@dataclass(frozen=True)
class Tokens:
    given: int = 0
    written: int = 0

    def __add__(self, other: "Tokens") -> "Tokens":
        return Tokens(self.given + other.given, self.written + other.written)


def counted(usage: dict[str, Any] | None) -> Tokens:
    counts = (usage or {}).items()
    return Tokens(
        sum(number for name, number in counts if name in GIVEN),
        sum(number for name, number in counts if name in WRITTEN),
    )


class Recording(NamedTuple):
    agent: Agent
    folder: Path

    @property
    def name(self) -> str:
        return str(self.folder.relative_to(DATA))

    def copy(self, home: Path) -> None:
        if self.agent.name in DATABASES:
            recorded_database(self.agent.name, str(self.folder.relative_to(DATA / self.agent.name)), home)
        else:
            shutil.copytree(self.folder / "home", home, dirs_exist_ok=True)

    def possible_sums(self) -> set[Tokens]:
        """What its files may hold: the main conversation, with or without each other kind of call, and what came of
        answers that were cut."""
        if self.agent.name in WITHOUT_TOKENS:
            return {Tokens()}
        manifest = json.loads((self.folder / "manifest.json").read_bytes())
        calls = manifest.get("requests") or manifest.get("responses") or []
        truth = manifest.get("truth_usage_of_complete_responses")
        kinds = _sums_of_kinds(truth) if truth else _sums_of_calls(calls)
        kinds.pop("all", None)
        main = kinds.pop("main", Tokens())
        cut = [counted(call.get("usage")) for call in calls if call.get("complete") is False and call.get("usage")]
        return {sum(some, main) for some in _subsets([*kinds.values(), *cut])}

    def exchanges(self) -> dict[str, int]:
        """What was asked in each session that the manifest describes."""
        manifest = json.loads((self.folder / "manifest.json").read_bytes())
        return {it["id"]: len(it["new_exchanges"]) for it in manifest.get("expected_sessions", ())}


def _sums_of_kinds(truth: dict[str, Any]) -> dict[str, Tokens]:
    """The sums by kind of call, which may stand below each session."""
    sums: dict[str, Tokens] = {}
    for name, counts in truth.items():
        is_session = any(isinstance(value, dict) for value in counts.values())
        for kind, usage in counts.items() if is_session else [(name, counts)]:
            sums[kind] = sums.get(kind, Tokens()) + counted(usage)
    return sums


def _sums_of_calls(calls: list[dict[str, Any]]) -> dict[str, Tokens]:
    """The sums of the calls that were answered whole, by kind, for a manifest without sums."""
    sums: dict[str, Tokens] = {}
    for call in calls:
        if call.get("complete"):
            kind = call.get("kind") or "main"
            sums[kind] = sums.get(kind, Tokens()) + counted(call.get("usage"))
    return sums


def _subsets(items: list[Tokens]) -> Iterator[tuple[Tokens, ...]]:
    return chain.from_iterable(combinations(items, number) for number in range(len(items) + 1))


def recordings() -> Iterator[Recording]:
    for agent in AGENTS:
        if agent.reader and agent.location:
            folder = DATA / FOLDERS.get(agent.name, agent.name)
            homes = chain(folder.glob("*/*/home"), folder.glob(f"*/*/{agent.name}.sql"))
            yield from (Recording(agent, folder) for folder in sorted({home.parent for home in homes}))


def files(home: Path) -> set[object]:
    return {path.relative_to(home) for path in home.rglob("*") if path.is_file()}


@dataclass
class Contents:
    """What a catalog says of a home."""

    sessions: Counter[tuple[str | None, str]] = field(default_factory=Counter)  # by agent and id
    exchanges: Counter[tuple[str | None, str]] = field(default_factory=Counter)  # by agent and id, too
    tokens: dict[str | None, Tokens] = field(default_factory=dict)  # by agent
    response_ids: set[str] = field(default_factory=set)

    @classmethod
    def of(cls, home: Path, monkeypatch: pytest.MonkeyPatch) -> Self:
        monkeypatch.setenv("HOME", str(home))
        # Folders that the user names may be one inside another, and have the files of other agents.
        monkeypatch.setenv("AGENT_LOGGER_AGENT_FOLDERS", f"{home},{home / 'project'}")
        with Catalog.open(home / ".agent-logger") as catalog:
            usage, sessions = catalog.usage("agent"), catalog.sessions()
            assert sum((it.usage for it in usage.values()), Usage()) == sum((it.usage for it in sessions), Usage())
            agents_of = {(path, it.agent) for it in sessions for path in it.paths}
            assert len(agents_of) == len({path for path, _ in agents_of}), "two agents claim a file"
            return cls(
                Counter((session.agent, session.id) for session in sessions),
                Counter({(session.agent, session.id): session.exchanges for session in sessions}),
                {
                    agent: Tokens(each.usage.context_tokens, each.usage.output_tokens)
                    for agent, each in usage.items()
                    if each.usage.context_tokens or each.usage.output_tokens
                },
                {row.message_id for row in catalog.ledger() if row.message_id},
            )

    def add(self, other: Self) -> None:
        self.sessions += other.sessions
        self.exchanges += other.exchanges
        for agent, tokens in other.tokens.items():
            self.tokens[agent] = self.tokens.get(agent, Tokens()) + tokens
        self.response_ids |= other.response_ids


def test_each_session_is_its_own_agents_and_nothing_is_counted_twice(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    homes: list[tuple[Path, set[object], Contents]] = []
    for number, recording in enumerate(recordings()):
        recording.copy(alone := tmp_path / f"alone-{number}")
        claims = files(alone)
        contents = Contents.of(alone, monkeypatch)
        assert contents.sessions, f"{recording.name} has no session"
        assert {agent for agent, _ in contents.sessions} == {recording.agent.name}, recording.name
        got = contents.tokens.get(recording.agent.name, Tokens())
        assert got in recording.possible_sums() or recording.name in DIFFERENT, (recording.name, got)
        for name, number in recording.exchanges().items():
            if (of_session := (recording.agent.name, name)) in contents.sessions:  # sub-agents are none
                assert contents.exchanges[of_session] == number, (recording.name, name)
        claims |= {name for _, name in contents.sessions} | contents.response_ids
        home = next((home for home in homes if claims.isdisjoint(home[1])), None)
        if home is None:
            homes.append(home := (tmp_path / f"home-{len(homes)}", set(), Contents()))
        folder, taken, expected = home
        recording.copy(folder)
        taken |= claims
        expected.add(contents)
    assert len({agent for agent, _ in homes[0][2].sessions}) > 5
    for folder, _, expected in homes:
        together = Contents.of(folder, monkeypatch)
        assert together.sessions == expected.sessions
        assert +together.exchanges == +expected.exchanges
        assert together.tokens == expected.tokens
