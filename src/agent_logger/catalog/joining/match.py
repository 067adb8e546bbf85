"""Finds the turns of a session that several witnesses saw.

Evidence, from the most certain to the least: the message id, the request id, the id of a tool call that is in both.
Where there is no such id: what was said and what was billed, in order; that is a guess, and the joined turn says so.
"""

from collections.abc import Callable, Hashable, Iterable, Iterator, Sequence
from dataclasses import dataclass, field

from agent_logger.agents.registry import AGENTS
from agent_logger.catalog.ledger.ledger import LONG_REQUEST_ID, is_unique_id
from agent_logger.catalog.ledger.session_responses import family_of
from agent_logger.model.ids import UUID
from agent_logger.model.prices import canonical
from agent_logger.model.redaction import redactor
from agent_logger.model.session import JoinedBy, Session, Turn, Witness

LONG_TOOL_ID = 16  # characters; servers that count repeat shorter ones in every answer
FAR_SECONDS = 3600.0  # turns that are further apart are not joined, unless an id says so

# Witnesses, from the one that knows a conversation best, whose order and words count.
RANK: tuple[Witness, ...] = ("transcript", "sdk", "run", "wire", "hook")

JOINED: tuple[JoinedBy, ...] = ("message id", "request id", "tool call", "order")  # the weakest last

# Agents whose files have response ids that the client made.
CLIENT_IDS = {agent.name for agent in AGENTS if agent.response_ids == "client"}


@dataclass(slots=True, eq=False)
class Copy:
    """A turn as one session has it."""

    turn: Turn
    session: Session
    source: int  # the session's number
    exchange: int | None  # the place of its exchange there; none: it is outside of exchanges

    @property
    def rank(self) -> int:
        return rank_of(self.turn.witnesses)

    @property
    def at(self) -> float | None:
        time = self.turn.started or self.turn.ended
        return time.timestamp() if time else None


@dataclass(slots=True, eq=False)
class Joined:
    """A response, and all copies of it."""

    copies: list[Copy]
    joined: set[JoinedBy] = field(default_factory=set)

    @property
    def first(self) -> Copy:
        return self.copies[0]

    def take(self, copy: Copy, by: JoinedBy) -> None:
        self.copies.append(copy)
        self.joined.add(by)

    def tells(self, source: int) -> bool:
        return any(copy.source == source for copy in self.copies)


def rank_of(witnesses: Iterable[Witness]) -> int:
    return min((RANK.index(witness) for witness in witnesses), default=len(RANK))


class Same:
    """The responses that are known so far. Sessions are added one by one."""

    def __init__(self) -> None:
        self._all: list[Joined] = []
        self._by_id: dict[Hashable, Joined] = {}

    def take(self, copies: Sequence[Copy]) -> list[Joined]:
        """Return the response of each of a session's copies: a known one, or a new one."""
        joined_at: dict[int, Joined] = {}
        for at, copy in enumerate(copies):
            if joined_before := self._find_joined(copy):
                joined_before[0].take(copy, joined_before[1])
                joined_at[at] = joined_before[0]
        for key in (_content_key, _billing_key, _words):
            self._pair(copies, joined_at, key)
        joined_turns = [joined_at.get(at) or self._add(copy) for at, copy in enumerate(copies)]
        for joined in joined_turns:
            for _, name in _match_keys(joined.copies[-1]):
                self._by_id.setdefault(name, joined)
        return joined_turns

    def _find_joined(self, copy: Copy) -> tuple[Joined, JoinedBy] | None:
        for by, name in _match_keys(copy):
            joined = self._by_id.get(name)
            if (
                joined
                and not joined.tells(copy.source)
                and not (by == "tool call" and _have_different_ids(joined, copy))
            ):
                return joined, by
        return None

    def _add(self, copy: Copy) -> Joined:
        self._all.append(Joined([copy]))
        return self._all[-1]

    # ------------------------------------------------------------ without an id

    def _pair(self, copies: Sequence[Copy], joined_at: dict[int, Joined], key: Callable[[Copy], Hashable]) -> None:
        left = [at for at in range(len(copies)) if at not in joined_at] if self._all else []
        keys = {at: name for at in left if (name := key(copies[at])) is not None}
        joined_by_key: dict[Hashable, list[Joined]] = {name: [] for name in keys.values()}
        for joined in self._all if keys else ():
            for name in {key(copy) for copy in joined.copies} & joined_by_key.keys():
                joined_by_key[name].append(joined)
        for at, name in keys.items():
            fitting = [joined_turn for joined_turn in joined_by_key[name] if _fits(joined_turn, copies[at])]
            if fitting:
                joined_at[at] = _nearest(fitting, copies[at])
                joined_at[at].take(copies[at], "order")


def _nearest(fitting: Sequence[Joined], copy: Copy) -> Joined:
    """Return the nearest in time; of equal ones the first, so that the first there is the first here."""
    return min(fitting, key=lambda candidate: round(abs((candidate.first.at or 0.0) - (copy.at or 0.0)), 3))


def _fits(joined: Joined, copy: Copy) -> bool:
    """Whether a copy may be of this response. A session has no response twice; for one witness two times are two
    responses; copies more than an hour apart are not joined; nor are those that differ in what was said or billed."""
    if joined.tells(copy.source) or _have_different_ids(joined, copy):
        return False
    if any(other.rank == copy.rank and other.at != copy.at for other in joined.copies):
        return False
    one, two = joined.first.at, copy.at
    if one is not None and two is not None and abs(one - two) > FAR_SECONDS:
        return False
    words, others = _words(copy), [words for words in map(_words, joined.copies) if words]
    usage, usages = copy.turn.usage, {other.turn.usage for other in joined.copies}
    return (usage is None or usage in usages or usages == {None}) and (
        not words or not others or any(_may_match(other, words) for other in others)
    )


def _may_match(one: tuple[str, ...], two: tuple[str, ...]) -> bool:
    """Whether words and tools are the same, as far as both have them: old files of Gemini CLI add tools to the response
    before."""
    return all(a == b for a, b in zip(one, two, strict=False))


def _have_different_ids(joined: Joined, copy: Copy) -> bool:
    """Whether both have an id of a vendor: these are two responses."""
    return bool(_vendor_id(copy) and any(_vendor_id(other) for other in joined.copies))


# ---------------------------------------------------------------- what a turn is known by


def _match_keys(copy: Copy) -> Iterator[tuple[JoinedBy, Hashable]]:
    turn = copy.turn
    message_id, request_id = turn.message_id, turn.request_id
    if message_id and (_vendor_id(copy) or UUID.fullmatch(message_id)):
        yield "message id", message_id
    elif request_id and len(request_id) >= LONG_REQUEST_ID:
        yield "request id", (message_id, request_id)
    for block in turn.blocks:
        if block.kind == "tool_use" and block.id and len(block.id) >= LONG_TOOL_ID and "#" not in block.id:
            yield "tool call", (block.kind, block.id)


def _vendor_id(copy: Copy) -> str | None:
    """Return the message id, if no other response can have it."""
    turn = copy.turn
    if not turn.message_id or (copy.session.agent in CLIENT_IDS and "wire" not in turn.witnesses):
        return None
    return turn.message_id if is_unique_id(family_of(copy.session, turn), turn.message_id) else None


def _content_key(copy: Copy) -> Hashable:
    words, billed = _words(copy), copy.turn.usage
    return (words, billed) if words and billed else None


def _billing_key(copy: Copy) -> Hashable:
    model, usage = copy.turn.model or "", copy.turn.usage
    if not usage or not (usage.context_tokens or usage.output_tokens):
        return None
    return canonical(model) or model, usage


def _words(copy: Copy) -> tuple[str, ...] | None:
    words = said_in(copy.turn, hidden=True)
    return words if any(words) else None


def said_in(turn: Turn, *, hidden: bool = False) -> tuple[str, ...]:
    """Return the words, and the tools that were called; without blanks, which clients trim. `hidden`: without keys,
    which some witnesses hide."""
    text = "".join(block.text for block in turn.blocks if block.kind == "text")
    text = redactor.hidden(text) if hidden else text
    return ("".join(text.split()), *(block.name or "" for block in turn.blocks if block.kind == "tool_use"))
