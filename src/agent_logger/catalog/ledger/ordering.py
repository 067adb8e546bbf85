"""Responses that two witnesses of a session saw, where no id shows that they are the same."""

from collections.abc import Iterable, Sequence

from agent_logger.catalog.ledger.rows import LedgerEntry
from agent_logger.model.prices import canonical


def same_by_order(rows: Iterable[tuple[int, LedgerEntry, bool]]) -> dict[int, list[int]]:
    """Pair rows with the same session, model and tokens: the first of each witness is the first of the others, and so
    on.

    Takes number, entry, and whether the row has a unique id, which makes it differ from any other row with one.
    Returns, by a row's number, the numbers of those that are the same response.
    """
    groups: dict[tuple[str, str, tuple[int, ...]], list[tuple[int, LedgerEntry, bool]]] = {}
    for row in rows:
        _, entry, _ = row
        if entry.tokens is not None and any(entry.tokens):
            groups.setdefault((entry.place.session, _model(entry), entry.tokens), []).append(row)
    same: dict[int, list[int]] = {}
    for group in groups.values():
        if len({entry.witnesses for _, entry, _ in group}) > 1:
            same.update(_pair(group))
    return same


def _model(entry: LedgerEntry) -> str:
    model = entry.kind.model or ""
    return canonical(model) or model


class _Slot:
    """A response that is being put together."""

    __slots__ = ("rows", "unique", "witnesses")

    def __init__(self) -> None:
        self.rows: list[int] = []
        self.witnesses = 0
        self.unique = False

    def takes(self, entry: LedgerEntry, *, unique: bool) -> bool:
        return not self.witnesses & entry.witnesses and not (self.unique and unique)


def _pair(group: Sequence[tuple[int, LedgerEntry, bool]]) -> Iterable[tuple[int, list[int]]]:
    slots: list[_Slot] = []
    first: dict[tuple[int, bool], int] = {}  # a slot that refuses a kind of row once refuses it always
    for row, entry, unique in sorted(group, key=_order):
        at = first.get((entry.witnesses, unique), 0)
        while at < len(slots) and not slots[at].takes(entry, unique=unique):
            at += 1
        first[entry.witnesses, unique] = at
        if at == len(slots):
            slots.append(_Slot())
        slot = slots[at]
        slot.rows.append(row)
        slot.witnesses |= entry.witnesses
        slot.unique |= unique
    return ((slot.rows[0], slot.rows[1:]) for slot in slots if len(slot.rows) > 1)


def _order(row: tuple[int, LedgerEntry, bool]) -> tuple[object, ...]:
    """Return a key that sorts by witness, then by time, then by content."""
    _, entry, _ = row
    (family, model, tier), (_, project, agent, thread) = entry.kind, entry.place
    facts = (entry.message_id or "", family, model or "", tier or "", project or "", agent, thread)
    return (
        entry.witnesses,
        entry.at,
        *facts,
        entry.final,
        entry.reported,
        entry.copies,
        entry.joined,
    )
