"""Responses that two witnesses of a session saw, where no id shows that they are the same."""

from collections.abc import Iterable, Sequence

from agent_logger.catalog.ledger.rows import BITS, NEVER, UNCERTAINTY, micros_of
from agent_logger.model.prices import canonical
from agent_logger.model.responses import ModelResponse
from agent_logger.model.session import Witness


def same_by_order(rows: Iterable[tuple[int, ModelResponse, bool]]) -> dict[int, list[int]]:
    """Pair rows with the same session, model and tokens: the first of each witness is the first of the others, and so
    on.

    Takes number, response, and whether the row has a unique id, which makes it differ from any other row with one.
    Returns, by a row's number, the numbers of those that are the same response.
    """
    groups: dict[tuple[str, str, tuple[int, ...]], list[tuple[int, ModelResponse, bool]]] = {}
    for row in rows:
        _, response, _ = row
        tokens = response.tokens
        if tokens and any(tokens):
            groups.setdefault((response.session, _model(response), tokens), []).append(row)
    same: dict[int, list[int]] = {}
    for group in groups.values():
        if len({response.witnesses for _, response, _ in group}) > 1:
            same.update(_pair(group))
    return same


def _model(response: ModelResponse) -> str:
    model = response.model or ""
    return canonical(model) or model


class _Slot:
    """A response that is being put together."""

    __slots__ = ("rows", "unique", "witnesses")

    def __init__(self) -> None:
        self.rows: list[int] = []
        self.witnesses: frozenset[Witness] = frozenset()
        self.unique = False

    def takes(self, response: ModelResponse, *, unique: bool) -> bool:
        return not self.witnesses & response.witnesses and not (self.unique and unique)


def _pair(group: Sequence[tuple[int, ModelResponse, bool]]) -> Iterable[tuple[int, list[int]]]:
    slots: list[_Slot] = []
    first: dict[tuple[frozenset[Witness], bool], int] = {}  # a slot that refuses a kind of row once refuses it always
    for row, response, unique in sorted(group, key=_order):
        at = first.get((response.witnesses, unique), 0)
        while at < len(slots) and not slots[at].takes(response, unique=unique):
            at += 1
        first[response.witnesses, unique] = at
        if at == len(slots):
            slots.append(_Slot())
        slot = slots[at]
        slot.rows.append(row)
        slot.witnesses |= response.witnesses
        slot.unique |= unique
    return ((slot.rows[0], slot.rows[1:]) for slot in slots if len(slot.rows) > 1)


def _order(row: tuple[int, ModelResponse, bool]) -> tuple[object, ...]:
    """Return a key that sorts by witness, then by time, then by content."""
    _, response, _ = row
    reported = response.reported_cost_usd
    return (
        BITS[response.witnesses],
        micros_of(response.at),
        response.message_id or "",
        response.family,
        response.model or "",
        response.tier or "",
        response.project or "",
        response.agent,
        response.thread,
        response.final,
        NEVER if reported is None else reported,
        response.copies,
        UNCERTAINTY[response.joined_by],
    )
