"""Sessions that a client does not name on the wire: recognised in its own files by what was said and billed, and when.

Gemini CLI and Qwen Code send no id, nor did Claude Code in its first months, whose files have the ids of responses.
Without this their sessions would be listed twice, and count twice.
"""

from collections.abc import Callable, Iterable, Iterator
from contextlib import suppress
from typing import TypeVar

from agent_logger.agents.base import Agent
from agent_logger.agents.registry import AGENTS, readable_agent
from agent_logger.agents.source_files import SourceFiles
from agent_logger.catalog.discovery.agent_files import sessions_of
from agent_logger.catalog.discovery.in_archive import sessions_in_archive
from agent_logger.catalog.joining.match import said_in
from agent_logger.catalog.ledger.ledger import is_unique_id
from agent_logger.errors import SourceError
from agent_logger.files.sources import StampCache
from agent_logger.model.responses import utc
from agent_logger.model.session import SIDE, Session, Usage

NEAR_SECONDS = 60.0  # a file may be begun before the first call, and ended after the last

T = TypeVar("T")
Utterance = tuple[tuple[str, ...], Usage | None]


def own_name(session: Session, log: str, home: str = "") -> str | None:
    """Return the client's id of a session that has only its log's name; None if that is not known. `home`: the key of
    the other home that the log is in."""
    if session.started is None:
        return None
    since = utc(session.started).timestamp() - NEAR_SECONDS
    names = {name for agent in possible_agents(session, log) if (name := _name_in(session, agent, since, home))}
    return names.pop() if len(names) == 1 else None


def possible_agents(session: Session, log: str) -> Iterator[Agent]:
    """Yield the agents in whose files the id of the session may be found: the agent that made the calls, or those that
    use the SDK, if the calls only name an SDK. None if the session has an id."""
    if session.id != log:
        return
    agent = readable_agent(session.agent)
    for candidate in [agent] if agent else AGENTS:
        if candidate.wire.match_files_by and (agent or session.agent in candidate.wire.sdk_clients):
            yield candidate


def _name_in(session: Session, agent: Agent, since: float, home: str) -> str | None:
    """Return the id of the session in the files of an agent. Where the files have ids of responses, a library may have
    made them up."""
    if agent.wire.match_files_by == "response_ids" and (name := _name_by_ids(session, agent, since, home)):
        return name
    return name_among(session, (other for _, other in _read_recent(agent, since, home, agent.session_of)))


def name_among(session: Session, others: Iterable[Session]) -> str | None:
    """Return the id of the session that says the same; of several, the one whose answers came at the same time, and the
    shortest of those: a fork has a copy of it and more."""
    ranks: dict[str, tuple[float, int]] = {}
    for other in others:
        if is_told_by(session, other):
            rank = (_apart(session, other), len(other.turns))
            ranks[other.id] = min(rank, ranks.get(other.id, rank))
    return _least((rank, name) for name, rank in ranks.items())


def _least(ranked: Iterable[tuple[tuple[float, int], str]]) -> str | None:
    """Return the name with the lowest rank; None if two have it."""
    first, second = (*sorted(ranked)[:2], None, None)[:2]
    return first[1] if first and (second is None or first[0] < second[0]) else None


def _apart(one: Session, two: Session) -> float:
    """Return the seconds between the first answers of the two sessions."""
    times = [
        next((turn.ended for turn in session.turns if turn.thread != SIDE and turn.ended), None)
        for session in (one, two)
    ]
    return abs((utc(times[0]) - utc(times[1])).total_seconds()) if times[0] and times[1] else NEAR_SECONDS


def is_told_by(session: Session, other: Session) -> bool:
    """Whether all answers are in the other session, in this order, at the time; or all words are, because before 0.40 a
    response without words was added to the one before it."""
    return _meet(session, other) and any(
        _stand_in(list(words_of(session)), words_of(other)) for words_of in (_utterances, _worded)
    )


def _stand_in(words: list[Utterance], others: Iterator[Utterance]) -> bool:
    """Whether all utterances are among the others, in order. The last may be missing: it is written down later."""
    # `any` consumes what comes before an utterance, too
    fitting_words = [entry for entry in words if any(_is_same(entry, other) for other in others)]
    return bool(fitting_words) and fitting_words == words[: len(fitting_words)] and len(words) - len(fitting_words) <= 1


def _is_same(utterance: Utterance, other: Utterance) -> bool:
    """Whether the two are the same. The files of some agents do not say what a response took."""
    return utterance[0] == other[0] and other[1] in (None, utterance[1])


def _utterances(session: Session) -> Iterator[Utterance]:
    for turn in session.turns:
        words = said_in(turn, hidden=True)
        if turn.thread != SIDE and turn.complete and any(words):
            yield words, turn.usage


def _worded(session: Session) -> Iterator[Utterance]:
    return ((words[:1], usage) for words, usage in _utterances(session) if words[0])


def _meet(one: Session, two: Session) -> bool:
    if not (one.started and one.ended and two.started and two.ended):
        return False
    begun = max(utc(one.started), utc(two.started)).timestamp()
    return begun - min(utc(one.ended), utc(two.ended)).timestamp() < NEAR_SECONDS


def _read_recent(agent: Agent, since: float, home: str, read: Callable[[SourceFiles], T]) -> Iterator[tuple[str, T]]:
    """Read the agent's sessions that were written to since then, each with its name."""
    sources = sessions_in_archive(home, agent) if home else sessions_of(agent, StampCache())
    for source in sources:
        if source.modified > since:
            with suppress(SourceError, OSError):
                yield source.name, read(agent.open_session(source))


# ---------------------------------------------------------------- by the ids of responses


def _name_by_ids(session: Session, agent: Agent, since: float, home: str) -> str | None:
    """Return the session whose files have these response ids. The last may be missing. A session that continues another
    has a copy of it and more, so the one with the fewest ids is chosen."""
    ids = {
        turn.message_id
        for turn in session.turns
        if turn.message_id and turn.thread != SIDE and turn.complete and is_unique_id("", turn.message_id)
    }

    def ids_in(files: SourceFiles) -> set[str]:
        return {response.message_id for response in agent.responses_of(files) if response.message_id}

    return _least(
        ((float(len(ids - response_ids)), len(response_ids)), name)
        for name, response_ids in _read_recent(agent, since, home, ids_in)
        if ids & response_ids and len(ids - response_ids) <= (len(ids) > 1)
    )
