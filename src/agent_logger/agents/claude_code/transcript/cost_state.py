"""The total that Claude Code writes into a session's file when it ends: what all of the session took, by model.

It counts what the file does not tell of: compactions, titles. It goes on over processes, and holds what a fork took
along. After a kill it begins again from less, and then has nothing beyond the responses.
"""

from collections.abc import Iterable, Mapping, Sequence
from datetime import datetime
from typing import NamedTuple

from agent_logger.messages.result_usage import Counted
from agent_logger.model.session import MAIN, SYNTHETIC, ClientTotal, ModelTotal


class Answer(NamedTuple):
    """A response in the files of a session."""

    message_id: str | None
    thread: str
    model: str | None
    at: datetime | None


def total_of(
    models: Mapping[str, Counted], before: Iterable[Answer], others: Iterable[Answer]
) -> ClientTotal | None:
    """`before`: the responses before it in its file; `others`: in the files of sub-agents."""
    counted = [ModelTotal(model=name, usage=it.usage) for name, it in models.items()]
    covered = _billed(before)
    times = [it.at for it in covered if it.at]
    if not times or not any(any(it.usage.counts) for it in counted if it.usage):
        return None
    started, ended = min(times), max(times)
    covered += [it for it in _billed(others) if it.thread != MAIN and it.at and it.at <= ended]
    return ClientTotal(
        witness="transcript",
        models=tuple(counted),
        started=started,
        ended=ended,
        message_ids=tuple(dict.fromkeys(it.message_id for it in covered if it.message_id)),
    )


def _billed(answers: Iterable[Answer]) -> list[Answer]:
    return [it for it in answers if it.model != SYNTHETIC]


def covered_by(total: ClientTotal | None, answers: Sequence[Answer]) -> int:
    """How many of these stood before the total that an earlier reading found."""
    ids = set(total.message_ids) if total else set()
    return max((at + 1 for at, it in enumerate(answers) if it.message_id in ids), default=0)
