"""The total that Claude Code writes into a session's file when it ends: what the whole session used, by model.

The total counts calls that the file does not show: compactions, titles. It continues over processes, and includes what
a fork copied. After a kill it restarts from a lower value, and then has nothing beyond the responses.
"""

from collections.abc import Iterable, Mapping, Sequence
from datetime import datetime
from typing import NamedTuple

from agent_logger.model.session import MAIN, SYNTHETIC, ClientTotal, ModelTotal, Usage


class BilledAnswer(NamedTuple):
    """A response in the files of a session."""

    message_id: str | None
    thread: str
    model: str | None
    at: datetime | None


def total_of(
    models: Mapping[str, Usage], before: Iterable[BilledAnswer], others: Iterable[BilledAnswer]
) -> ClientTotal | None:
    """Return the client's total. `before`: the responses before it in its file; `others`: those in the files of
    sub-agents."""
    counted = [ModelTotal(model=name, usage=usage) for name, usage in models.items()]
    covered = _billed(before)
    times = [answer.at for answer in covered if answer.at]
    if not times or not any(any(total.usage.counts) for total in counted if total.usage):
        return None
    started, ended = min(times), max(times)
    covered += [answer for answer in _billed(others) if answer.thread != MAIN and answer.at and answer.at <= ended]
    return ClientTotal(
        witness="transcript",
        models=tuple(counted),
        started=started,
        ended=ended,
        message_ids=tuple(dict.fromkeys(answer.message_id for answer in covered if answer.message_id)),
    )


def _billed(answers: Iterable[BilledAnswer]) -> list[BilledAnswer]:
    return [answer for answer in answers if answer.model != SYNTHETIC]


def covered_by(total: ClientTotal | None, answers: Sequence[BilledAnswer]) -> int:
    """Return how many of these answers precede the total that an earlier reading found."""
    ids = set(total.message_ids) if total else set()
    return max((at + 1 for at, answer in enumerate(answers) if answer.message_id in ids), default=0)
