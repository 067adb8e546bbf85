"""What the prompts of a session took, each token once.

A prompt's total includes the sub-agents that ended since the prompt before it; their files have the same tokens again.
It says how many requests it covers, so it is known how many are not the agent's own. Sub-agents that ran in the
background until the end are in no total.
"""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from datetime import datetime, timedelta

from agent_logger.agents.grok_build.updates import TurnUsage
from agent_logger.model.session import Usage

SLACK = timedelta(seconds=1)  # between what a sub-agent notes and what the agent that started it does


@dataclass(slots=True, eq=False)
class PromptTotal:
    usage: TurnUsage
    own_calls: int  # requests of the agent itself
    started: datetime | None
    ended: datetime | None

    def includes(self, other: "PromptTotal", left: int) -> bool:
        """Whether this may include another one, a sub-agent's. `left`: requests in this that are not explained yet."""
        if other.usage.calls > left or not self._ended_after(other.ended):
            return False
        mine = {model.model: model.usage for model in self.usage.models}
        return all(_fits(model.usage, mine.get(model.model)) for model in other.usage.models)

    def _ended_after(self, at: datetime | None) -> bool:
        return at is None or self.ended is None or at <= self.ended + SLACK


def _fits(part: Usage | None, whole: Usage | None) -> bool:
    if part is None or whole is None:
        return part is None
    return all(one <= two for one, two in zip(part.counts, whole.counts, strict=True))


def uncounted(own: Iterable[PromptTotal], others: Sequence[PromptTotal]) -> list[PromptTotal]:
    """Return those totals of sub-agents that no total of the agent includes."""
    left = sorted(others, key=lambda total: (total.ended is None, total.ended))
    for total in own:
        calls = total.usage.calls - total.own_calls
        for other in list(left):
            if calls > 0 and total.includes(other, calls):
                calls -= other.usage.calls
                left.remove(other)
    return left
