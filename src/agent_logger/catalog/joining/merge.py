"""Merges what several witnesses say of one turn, one exchange, one sub-agent: nothing is averaged.

Copies are ordered by how well their witnesses know a conversation; the first that has a value is believed. There are
three exceptions. What was billed follows the ledger's rule, the times of a turn are the wire's, and a turn's blocks are
those of the copy that has most of them.
"""

from collections.abc import Iterable, Iterator, Sequence
from functools import reduce
from typing import TypeVar

from msgspec.structs import replace

from agent_logger.catalog.joining.match import JOINED, RANK, Joined, said_in
from agent_logger.catalog.ledger.rows import merge
from agent_logger.messages.outcome import Failure
from agent_logger.model.prices import priced
from agent_logger.model.responses import ModelResponse, countable_usage, utc
from agent_logger.model.session import Block, Difference, Exchange, SubAgent, Turn, Usage, Witness

T = TypeVar("T")
KNOW_THE_END = {"wire", "transcript"}  # the others see a response before it is complete
NO_END = (None, "input")  # an exchange of which no end was seen
LIMITS = (Failure.MAX_TURNS, Failure.BUDGET)


def first(values: Iterable[T | None]) -> T | None:
    return next((value for value in values if value is not None), None)


# ---------------------------------------------------------------- turns


def turn_of(joined: Joined) -> Turn:
    turns = [copy.turn for copy in joined.copies]
    if all(turn == turns[0] for turn in turns):
        return turns[0]
    billed = _billed(turns)
    timed = [turn for turn in turns if "wire" in turn.witnesses] or turns
    fullest = _fullest(turns)
    turn = Turn(
        message_id=first(turn.message_id for turn in turns),
        request_id=first(turn.request_id for turn in turns),
        thread=turns[0].thread,
        model=billed.model or first(turn.model for turn in turns),
        service_tier=billed.tier or first(turn.service_tier for turn in turns),
        stop_reason=first(turn.stop_reason for turn in turns),
        blocks=[*fullest.blocks, *_other_results(fullest, turns)],
        usage=billed.usage,
        unread_usage=billed.usage is None and any(turn.unread_usage for turn in turns),
        started=first(turn.started for turn in timed) or first(turn.started for turn in turns),
        ended=first(turn.ended for turn in timed) or first(turn.ended for turn in turns),
        witnesses=frozenset().union(*(turn.witnesses for turn in turns)),
        complete=billed.final,
        error=None if billed.final else first(turn.error for turn in turns),
        joined_by=max(joined.joined, key=JOINED.index, default=None),
    )
    return priced(replace(turn, differences=_differences(turn, turns)))


def _billed(turns: Sequence[Turn]) -> ModelResponse:
    """Merge the copies as the ledger does."""
    knowing = [turn for turn in turns if turn.witnesses & KNOW_THE_END]
    copies = (_response(turn, final=turn.complete and (not knowing or turn in knowing)) for turn in turns)
    return reduce(lambda best, copy: merge(best, copy, None), copies)


def _response(turn: Turn, *, final: bool) -> ModelResponse:
    """Make a response with only what decides between copies."""
    return ModelResponse(
        family="",
        message_id=turn.message_id,
        model=turn.model,
        usage=countable_usage(turn.usage),
        tier=turn.service_tier,
        at=None,
        session="",
        project=None,
        agent="",
        thread=turn.thread,
        final=final,
    )


def _fullest(turns: Sequence[Turn]) -> Turn:
    """Return the turn with most pieces, of the complete ones if there are any; of incomplete ones the longest."""
    whole = [turn for turn in turns if turn.complete] or turns
    return max(
        whole,
        key=lambda candidate: (
            _pieces(candidate),
            0 if candidate.complete else len("".join(said_in(candidate))),
        ),
    )


def _pieces(turn: Turn) -> int:
    pieces = [block for block in turn.blocks if block.kind in ("text", "thinking") and block.text.strip()]
    return len(pieces) + sum(block.kind in ("tool_use", "image") for block in turn.blocks)


def _other_results(fullest: Turn, turns: Sequence[Turn]) -> Iterator[Block]:
    """Yield the results of tools that the turn called, and that only others saw."""
    used = {block.id for block in fullest.blocks if block.kind == "tool_use" and block.id}
    missing = used - {block.id for block in fullest.blocks if block.kind == "tool_result"}
    for block in (block for turn in turns for block in turn.blocks):
        if block.kind == "tool_result" and block.id in missing:
            missing.discard(block.id)
            yield block


def _differences(joined: Turn, turns: Sequence[Turn]) -> list[Difference]:
    differences: dict[Difference, None] = {}
    for turn in turns:
        witness = min(turn.witnesses, key=RANK.index, default=None)
        for difference in turn.differences:
            differences[difference] = None
        if witness:
            differences |= dict.fromkeys(_differences_of(joined, turn, witness))
    return list(differences)


def _differences_of(joined: Turn, turn: Turn, witness: Witness) -> Iterator[Difference]:
    """Yield what differs. What a witness does not know is no difference."""
    if turn.usage and joined.usage and _comparable_usage(turn.usage, joined.usage) != joined.usage:
        yield Difference(field="usage", witness=witness, value=turn.usage)
    if turn.model and turn.model != joined.model:
        yield Difference(field="model", witness=witness, value=turn.model)
    if said_in(turn)[0] and _texts_differ(turn, joined):
        text = "\n".join(block.text for block in turn.blocks if block.kind == "text")
        yield Difference(field="text", witness=witness, value=text)


def _texts_differ(one: Turn, two: Turn) -> bool:
    """Whether the words differ; that some witnesses hide keys is no difference."""
    return (
        one.blocks is not two.blocks
        and said_in(one)[0] != said_in(two)[0]
        and said_in(one, hidden=True)[0] != said_in(two, hidden=True)[0]
    )


def _comparable_usage(usage: Usage, joined: Usage) -> Usage:
    """Fill in how long the cache was written for, which not every witness knows."""
    return usage if usage.cache_write_1h_tokens else replace(usage, cache_write_1h_tokens=joined.cache_write_1h_tokens)


# ---------------------------------------------------------------- exchanges


def exchange_of(versions: Sequence[tuple[int, Exchange]], turns: Sequence[Turn], number: int) -> Exchange:
    """Merge the versions of an exchange, each with the rank of its witness."""
    them = [exchange for _, exchange in versions]
    complete, reason = _ending(versions)
    started = [
        utc(time) for time in (first(exchange.started for exchange in them), *(turn.started for turn in turns)) if time
    ]
    ended = [
        utc(time) for time in (first(exchange.ended for exchange in them), *(turn.ended for turn in turns)) if time
    ]
    return Exchange(
        number=number,
        started=min(started, default=None),
        ended=max(ended, default=None),
        user_input=first(exchange.user_input for exchange in them),
        origin=first(exchange.origin for exchange in them),
        turns=turns,
        complete=complete,
        end_reason=reason,
        printed=None if turns else first(exchange.printed for exchange in them),
        left=any(exchange.left for exchange in them),
    )


def _ending(versions: Sequence[tuple[int, Exchange]]) -> tuple[bool, str | None]:
    """Return the end that the first version has which saw one. Only the client's own result says that a limit was
    reached, and only its exit that the run failed although the conversation looks whole."""
    ranked = [(rank, exchange) for rank, exchange in versions if exchange.end_reason not in NO_END] or list(versions)
    if limited := next((exchange for _, exchange in ranked if exchange.end_reason in LIMITS), None):
        return limited.complete, limited.end_reason
    knowing = [exchange for rank, exchange in ranked if RANK[rank:][:1] not in (("sdk",), ("run",))]
    best = next(iter(knowing or [exchange for _, exchange in ranked]))
    if best.complete:
        best = next((exchange for _, exchange in ranked if _is_failed_run(exchange)), best)
    return best.complete, best.end_reason


def _is_failed_run(exchange: Exchange) -> bool:
    """Whether a run of one prompt says that it failed: by its result, or by its exit if it has none. The exit of an
    agent in a terminal, of which no input is known, says nothing about a single exchange."""
    reason = exchange.end_reason or ""
    is_failure = reason in set(Failure) or reason.startswith(("exit code ", "signal "))
    return is_failure and not exchange.complete and exchange.user_input is not None


# ---------------------------------------------------------------- sub-agents


def agent_of(agents: Sequence[SubAgent]) -> SubAgent:
    parents = [agent.parent_thread for agent in agents if agent.tool_use_id] or [
        agent.parent_thread for agent in agents
    ]
    return SubAgent(
        thread=agents[0].thread,
        parent_thread=parents[0],
        tool_use_id=first(agent.tool_use_id for agent in agents),
        kind=first(agent.kind for agent in agents),
        description=first(agent.description for agent in agents),
    )
