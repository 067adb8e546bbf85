"""A row of the ledger, how two copies of a response are merged into one, and how times and witnesses are stored."""

from collections.abc import Callable, Iterable, Mapping
from datetime import UTC, datetime
from operator import attrgetter
from typing import TypeVar, get_args

from msgspec.structs import replace

from agent_logger.model.prices import Tokens, cost_of
from agent_logger.model.responses import EARLIEST, LATEST, ModelResponse, ResponseMatch, countable_time
from agent_logger.model.session import MAIN, Cost, Witness

WITNESSES: tuple[Witness, ...] = ("wire", "transcript", "sdk", "run", "hook")
BIT = {witness: 1 << number for number, witness in enumerate(WITNESSES)}
WITNESS_SETS = tuple(
    frozenset(witness for number, witness in enumerate(WITNESSES) if bits >> number & 1)
    for bits in range(1 << len(WITNESSES))
)
BITS = {witnesses: bits for bits, witnesses in enumerate(WITNESS_SETS)}
UNCERTAINTY: Mapping[ResponseMatch | None, int] = {
    match: number for number, match in enumerate((None, *get_args(ResponseMatch)))
}

EPOCH, DAY_SECONDS = datetime(1970, 1, 1, tzinfo=UTC), 86_400
NEVER = -1
NO_TOKENS = (0, 0, 0, 0, 0)
NO_PLACES: Mapping[str, int] = {}


LedgerPlace = tuple[str, str | None, str, str, str]
# Plain tuples, made by one call: each response has its place made several times.
place_of: Callable[[ModelResponse], LedgerPlace] = attrgetter("session", "project", "agent", "thread", "home")


class LedgerRow(ModelResponse, frozen=True, kw_only=True, gc=False):
    """A response that counts, merged from all copies of it, with its price."""

    nano_usd: int | str  # or the reason why it is unknown

    @property
    def partial(self) -> bool:
        """Whether it was cut, or seen by a witness that does not see the end; `usage` is as much as was reported."""
        return not self.final

    @property
    def cost(self) -> Cost:
        return cost_of(self.nano_usd)

    @property
    def why(self) -> str:
        """Return why this row counts, and counts once."""
        if self.joined_by == "result":
            return self._why_not_itemised
        sources = ", ".join(sorted(self.witnesses))
        if self.joined_by is None:
            sighting = f"seen once ({sources})"
        else:
            sighting = f"seen by {self.copies} sources ({sources}), matched by {REASONS[self.joined_by]}"
        if self.partial and self.usage is None:
            whole = "cut off before its usage was reported, counted as unknown"
        else:
            whole = "cut off, counted as far as it got" if self.partial else "counted once"
        unpriced = f"; cost unknown: {self.nano_usd}" if isinstance(self.nano_usd, str) else ""
        return f"{sighting}; {whole}{unpriced}"

    @property
    def is_response(self) -> bool:
        """Whether this is a response, and not what a client counts beyond all known responses."""
        return self.copies > 0

    @property
    def _why_not_itemised(self) -> str:
        witnesses = ", ".join(sorted(self.witnesses))
        if self.usage is None and self.is_response:
            return f"the response to this request was not recorded ({witnesses}); counted as unknown"
        by = f"the client's own total ({witnesses})"
        if self.usage is None:
            return f"not itemised: {by} includes earlier history, so the amount is unknown"
        what = "is more than all known responses" if not self.is_response else "is the only record"
        unpriced = f"; cost unknown: {self.nano_usd}" if isinstance(self.nano_usd, str) else ""
        return f"not itemised: {by} {what}; counted{unpriced}"


REASONS: dict[ResponseMatch, str] = {
    "message id": "message id",
    "request id": "message and request id",
    "time": "the same time in another session or home",
    "order": "session, model, tokens and order",
    "result": "the client's total",
}


def merge(
    one: ModelResponse,
    two: ModelResponse,
    joined_by: ResponseMatch | None,
    places: Mapping[str, int] = NO_PLACES,
) -> ModelResponse:
    """Merge two copies of a response: the counts of the more final one, the place of the first one. Their content alone
    decides which is which, so the order does not matter. `places`: the order of sessions in their families."""
    best = one if _finality(one) >= _finality(two) else two
    first = one if _earliness(one, places) <= _earliness(two, places) else two
    if one.owner != two.owner and one.claim and two.claim:
        best = first = one if one.claim < two.claim else two
    return replace(
        best,
        message_id=_earlier_id(one.message_id, two.message_id),
        request_id=None,
        at=first.at,
        session=first.session,
        project=first.project,
        agent=first.agent,
        thread=first.thread,
        home=first.home,
        owner=first.owner,
        claim=first.claim,
        reported_cost_usd=_later(one.reported_cost_usd, two.reported_cost_usd),
        witnesses=WITNESS_SETS[BITS[one.witnesses] | BITS[two.witnesses]],
        copies=one.copies + two.copies,
        joined_by=max(one.joined_by, two.joined_by, joined_by, key=UNCERTAINTY.__getitem__),
        last_at=_later(one.last_at or one.at, two.last_at or two.at),
    )


T = TypeVar("T", float, datetime)


def _later(one: T | None, two: T | None) -> T | None:
    if one is None or two is None:
        return one if two is None else two
    return max(one, two)


def _earlier_id(one: str | None, two: str | None) -> str | None:
    return min(one, two) if one and two else one or two or None


def _finality(response: ModelResponse) -> tuple[bool, bool, int, Tokens, str, str, str]:
    """Return a key that sorts the last copy of a response highest: it has most output; of equal ones the one that says
    more."""
    tokens = response.tokens
    return (
        response.final,
        tokens is not None,
        (tokens or NO_TOKENS)[1],
        tokens or NO_TOKENS,
        response.model or "",
        response.tier or "",
        response.family,
    )


def _earliness(response: ModelResponse, places: Mapping[str, int]) -> tuple[object, ...]:
    """Return a key that sorts the original first. A side thread may replay what the main one said, with its time. Of
    several homes, the own one is first. Names are the last resort."""
    session, project, agent, thread, home = place_of(response)
    family = places.get(session, 0)
    at = response.at
    return at is None, at or EPOCH, thread != MAIN, family, session, home, thread, project or "", agent


def bits_of(witnesses: Iterable[Witness]) -> int:
    return BITS[frozenset(witnesses)]


def time_of(micros: int) -> datetime | None:
    return None if micros == NEVER else datetime.fromtimestamp(micros / 1e6, UTC)


def micros_of(at: datetime | None) -> int:
    """Return microseconds since 1970, or `NEVER`."""
    if at is None or at.tzinfo is None or not EARLIEST <= at < LATEST:
        at = countable_time(at)
        if at is None:
            return NEVER
    since = at - EPOCH
    return (since.days * DAY_SECONDS + since.seconds) * 1_000_000 + since.microseconds
