"""The exchanges of a Claude Code session while its files are read, and what starts one."""

import re
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field
from datetime import datetime
from typing import Any

from agent_logger.agents.claude_code.transcript.records import InputOrigin, UserRecord
from agent_logger.agents.claude_code.transcript.subagents import AgentLines, Joins
from agent_logger.agents.claude_code.transcript.turns import TurnLines
from agent_logger.messages.human_input import is_interruption, typed
from agent_logger.model.session import SYNTHETIC, Block, Exchange, Turn
from agent_logger.providers.blocks.registry import IMAGE

_COMMAND = re.compile(r"<command-name>(.*?)</command-name>", re.DOTALL)
_ARGUMENTS = re.compile(r"<command-args>(.*?)</command-args>", re.DOTALL)


@dataclass(slots=True, eq=False)
class ExchangeLines:
    user_input: str | None
    origin: str | None
    started: datetime | None
    is_command: bool = False  # a command of the client, which has replaced it with a prompt of its own
    turns: list[TurnLines] = field(default_factory=list)
    interrupted: bool = False
    stopped: bool = False  # a limit stopped the exchange
    last: datetime | None = None

    def see(self, at: datetime | None) -> None:
        if at and (self.last is None or at > self.last):
            self.last = at

    def as_exchange(self, number: int, turns: Sequence[Turn], *, last: bool, left: bool) -> Exchange:
        times = [time for turn in turns for time in (turn.started, turn.ended) if time]
        complete, reason = self._ending(last=last)
        return Exchange(
            number=number,
            started=self.started,
            ended=max([*times, *filter(None, [self.started, self.last])], default=None),
            user_input=self.user_input,
            origin=self.origin,
            turns=turns,
            complete=complete,
            end_reason=reason,
            left=left,
        )

    def _ending(self, *, last: bool) -> tuple[bool, str | None]:
        """Whether the agent finished its work, and how it ended; the reason is None while it is still working."""
        turns = [turn for turn in self.turns if turn.failed or turn.model != SYNTHETIC]
        turn = turns[-1] if turns else None
        if self.interrupted or (turn and turn.aborted):
            return False, "cut"
        if turn and turn.failed:
            return False, "failed"
        if self.stopped or (turn and not turn.waits()):
            return True, "result"
        return False, None if last else "input"


# ---------------------------------------------------------------- what begins one


def prompt_of(record: UserRecord, blocks: Sequence[Block]) -> str | None:
    """Return what a person typed; None if the line is the client's. Texts beside tool results are the client's."""
    if record.is_meta or record.is_compact_summary:
        return None
    texts = [block.text for block in blocks if block.kind == "text"]
    if any(block.kind == "tool_result" for block in blocks) and not is_interruption(texts):
        return None
    if not texts and any(block.kind == "image" for block in blocks):
        return IMAGE
    return typed(texts)


def command_of(record: UserRecord, blocks: Sequence[Block]) -> str | None:
    """Return the client's command that a person typed, with its arguments."""
    text = blocks[0].text if len(blocks) == 1 and not record.is_meta else ""
    name = _COMMAND.search(text) if text.lstrip().startswith("<command-") else None
    if name is None:
        return None
    given = _ARGUMENTS.search(text)
    return f"{name[1].strip()} {given[1].strip() if given else ''}".strip()


def origin_of(record: UserRecord) -> str | None:
    """Return what began an exchange that a person did not begin: a task that ended, or a program through the SDK."""
    kind = record.origin.kind if isinstance(record.origin, InputOrigin) else record.origin
    if kind and kind != "human":
        return kind
    return "sdk" if record.prompt_source == "sdk" or (record.entrypoint or "").startswith("sdk") else None


def queued(prompt: Any) -> str | None:
    """Return what a person typed while the agent was working: a text, or blocks."""
    if isinstance(prompt, str):
        return typed([prompt])
    parts = prompt if isinstance(prompt, list) else []
    return typed([part["text"] for part in parts if isinstance(part, dict) and isinstance(part.get("text"), str)])


# ---------------------------------------------------------------- sub-agents in their place


def placed(exchanges: Sequence[ExchangeLines], agents: Iterable[AgentLines], joins: Joins) -> list[list[TurnLines]]:
    """Return the turns of each exchange. The turns of a sub-agent follow the turn that started it; if no turn did, they
    go to the end of the exchange in which the sub-agent began."""
    left = {agent.id: agent for agent in agents}
    turns = [_with_agents(exchange.turns, joins, left) for exchange in exchanges]
    for agent in list(left.values()) if exchanges else ():
        if left.pop(agent.id, None):
            turns[_at_the_time(agent, exchanges)] += _with_agents(agent.turns, joins, left)
    return turns


def _with_agents(turns: Iterable[TurnLines], joins: Joins, left: dict[str, AgentLines]) -> list[TurnLines]:
    """Insert the agents' turns. Takes the agents it places out of `left`, so none is placed twice, whatever their files
    say of each other."""
    if not left:
        return list(turns)
    placed: list[TurnLines] = []
    waiting = list(turns)[::-1]
    while waiting:
        turn = waiting.pop()
        placed.append(turn)
        started = [agent for block in turn.blocks if block.id for agent in joins.agents_of.get(block.id, ())]
        for agent in started[::-1]:
            if left.pop(agent.id, None):
                waiting.extend(agent.turns[::-1])
    return placed


def _at_the_time(agent: AgentLines, exchanges: Sequence[ExchangeLines]) -> int:
    began = next((turn.started for turn in agent.turns if turn.started), None)
    before = [at for at, exchange in enumerate(exchanges) if began and exchange.started and exchange.started <= began]
    return before[-1] if before else 0
