"""Joins what all witnesses saw of a session: the wire, an SDK's or a run's log, the agent's own files, hooks.

No witness is complete. The one that knows the conversation best gives its exchanges and their order; what others saw in
addition is placed among them, by cause and then by time. A turn is there once, with all its witnesses.

Nothing depends on the order of the given sessions, because they are ranked by their content.
"""

from bisect import bisect_left
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from datetime import datetime

from msgspec.structs import replace

from agent_logger.catalog.joining.match import Copy, Joined, Same, rank_of
from agent_logger.catalog.joining.merge import KNOW_THE_END, agent_of, exchange_of, first, turn_of
from agent_logger.model.remainders import with_remainders
from agent_logger.model.responses import utc
from agent_logger.model.session import AGENT_PREFIX, Compaction, Exchange, Session, SubAgent, Turn


def join(sessions: Sequence[Session]) -> Session:
    """Return the session that all of these describe. Raises `ValueError` if there are none."""
    ranked = _rank_sessions(sessions)
    if len(ranked) < 2:
        return ranked[0]
    ranked = _drop_sums(ranked)
    joining, responses = _Joining(), _times_of_responses(ranked)
    for source, session in enumerate(ranked):
        joining.take(source, _drop_pieces(session, responses))
    return joining.session(ranked)


def _drop_sums(sessions: list[Session]) -> list[Session]:
    """Take the sum of an exchange out of its turn, where another witness knows the usage of responses: what the sum has
    beyond them is not itemised."""
    if not any(
        turn.is_billed and turn.usage and turn.witnesses & {"wire", "transcript"}
        for session in sessions
        for turn in session.turns
    ):
        return sessions
    return [
        _drop_session_sums(session) if any(turn.is_sum for turn in session.turns) else session for session in sessions
    ]


def _drop_session_sums(session: Session) -> Session:
    def without(turns: Sequence[Turn]) -> list[Turn]:
        bare = (replace(turn, usage=None, cost=None, is_sum=False) if turn.is_sum else turn for turn in turns)
        return [turn for turn in bare if turn.blocks or turn.usage]

    exchanges = [replace(exchange, turns=without(exchange.turns)) for exchange in session.exchanges]
    return replace(session, exchanges=exchanges)


def _rank_sessions(sessions: Iterable[Session]) -> list[Session]:
    """Return each session once, the best witness first."""
    different: list[Session] = []
    for session in sessions:
        if session not in different:
            different.append(session)
    if not different:
        raise ValueError("no session to join")
    return sorted(different, key=_rank) if len(different) > 1 else different


def _times_of_responses(sessions: Iterable[Session]) -> list[float]:
    turns = (turn for session in sessions for turn in session.turns if not _is_piece(turn))
    return sorted(utc(turn.started).timestamp() for turn in turns if turn.started)


def _drop_pieces(session: Session, responses: Sequence[float]) -> Session:
    """Drop pieces of responses. Some agents (Codex) print pieces of responses under other names, without an id and
    usage. Where another witness saw the responses themselves, the pieces would repeat them."""
    if not any(map(_is_piece, session.turns)):
        return session
    return replace(session, exchanges=[_keep_responses(exchange, responses) for exchange in session.exchanges])


def _keep_responses(exchange: Exchange, responses: Sequence[float]) -> Exchange:
    if not (exchange.started and exchange.ended):
        return exchange
    at = bisect_left(responses, utc(exchange.started).timestamp())
    if at == len(responses) or responses[at] > utc(exchange.ended).timestamp():
        return exchange
    return replace(exchange, turns=[turn for turn in exchange.turns if not _is_piece(turn)])


def _is_piece(turn: Turn) -> bool:
    return turn.witnesses <= {"run", "sdk"} and not (turn.message_id or turn.request_id or turn.usage)


@dataclass(frozen=True)
class _Text:
    """The last criterion, and the slowest: all that is said."""

    session: Session

    def __lt__(self, other: "_Text") -> bool:
        return repr(self.session) < repr(other.session)


def _rank(session: Session) -> tuple[object, ...]:
    turns = session.turns
    began = utc(session.started).timestamp() if session.started else 0.0
    ids = tuple(turn.message_id or "" for turn in turns)
    return rank_of(session.witnesses), -len(turns), began, ids, _Text(session)


@dataclass(slots=True, eq=False)
class _Exchange:
    """An exchange that is being built."""

    versions: list[tuple[int, int, Exchange]]  # number and rank of the session that has it
    turns: list[Joined] = field(default_factory=list)

    def tells(self, source: int) -> bool:
        return any(witness == source for witness, _, _ in self.versions)

    @property
    def user_input(self) -> str | None:
        return first(exchange.user_input for _, _, exchange in self.versions)

    @property
    def began(self) -> float | None:
        return _start_of(self.versions[0][2])


class _Joining:
    def __init__(self) -> None:
        self._same = Same()
        self._exchanges: list[_Exchange] = []
        self._aside: list[Joined] = []
        self._home: dict[Joined, list[Joined]] = {}  # the list that contains a turn
        self._host: dict[int, _Exchange] = {}  # the exchange that has this list, by the id of the list

    def take(self, source: int, session: Session) -> None:
        copies = list(_copies(source, session))
        responses = self._same.take(copies)
        rank = rank_of(session.witnesses)
        own: dict[int | None, list[Joined]] = {}
        for joined, copy in zip(responses, copies, strict=True):
            own.setdefault(copy.exchange, []).append(joined)
        previous = -1  # the place of the exchange that matches the session's last one
        for number, exchange in enumerate(session.exchanges):
            previous = self._take_exchange(source, rank, exchange, own.get(number, ()), previous)
        for joined in own.get(None, ()):
            if joined not in self._home:
                self._put(joined, self._aside, len(self._aside))

    def _take_exchange(self, source: int, rank: int, exchange: Exchange, turns: Sequence[Joined], previous: int) -> int:
        at = self._existing(source, exchange, turns, previous)
        if at is None:
            at = self._place(source, exchange, previous)
            self._exchanges.insert(at, new := _Exchange([]))
            self._host[id(new.turns)] = new
        self._exchanges[at].versions.append((source, rank, exchange))
        for number, joined in enumerate(turns):
            if joined not in self._home:
                self._put_beside(source, joined, turns, number, self._exchanges[at].turns)
        return max(at, previous)

    # ------------------------------------------------------------ where an exchange belongs

    def _existing(self, source: int, exchange: Exchange, turns: Sequence[Joined], previous: int) -> int | None:
        """Return the exchange that has a turn of this one; else one after the last that has the same input, or none, at
        the time."""
        hosts = (self._host.get(id(self._home[joined])) for joined in turns if joined in self._home)
        if host := next(filter(None, hosts), None):
            return self._exchanges.index(host)
        for at, other in enumerate(self._exchanges):
            if at > previous and not other.tells(source) and _is_same(other, exchange):
                return at
        return None

    def _place(self, source: int, exchange: Exchange, previous: int) -> int:
        """Return the place after the session's last exchange, and after those that the session does not have and that
        began before."""
        at, began = previous + 1, _start_of(exchange)
        while at < len(self._exchanges):
            placed = self._exchanges[at]
            if placed.tells(source) or began is None or (placed.began or began) > began:
                break
            at += 1
        return at

    # ------------------------------------------------------------ where a turn belongs

    def _put_beside(
        self, source: int, joined: Joined, turns: Sequence[Joined], number: int, home: list[Joined]
    ) -> None:
        """Insert a turn after the one before it in its thread; else before the one after it in its thread; else beside
        its neighbour in any thread, by preference after the one before it. Turns that this session does not have are
        ordered by time."""
        before = [turn for turn in turns[:number] if turn in self._home]
        behind = [turn for turn in turns[number + 1 :] if turn in self._home]
        own_before, own_behind = _same_thread(before, joined), _same_thread(behind, joined)
        if behind and not own_before and (own_behind or not before):
            neighbour = (own_behind or behind)[0]
            home = self._home[neighbour]
            at = home.index(neighbour)
            while at > 0 and (home[at - 1] in behind or _is_later(home[at - 1], joined, source)):
                at -= 1
        else:
            neighbours = own_before or before
            home = self._home[neighbours[-1]] if neighbours else home
            at = home.index(neighbours[-1]) + 1 if neighbours else 0
            while at < len(home) and (home[at] in before or _is_earlier(home[at], joined, source)):
                at += 1
        self._put(joined, home, at)

    def _put(self, joined: Joined, home: list[Joined], at: int) -> None:
        home.insert(at, joined)
        self._home[joined] = home

    # ------------------------------------------------------------ the session

    def session(self, ranked: Sequence[Session]) -> Session:
        threads = _threads(ranked, self._home)
        numbers = {
            (source, version.number): number
            for number, exchange in enumerate(self._exchanges, 1)
            for source, _, version in exchange.versions
        }
        totals = [
            replace(total, exchange=numbers.get((source, total.exchange or 0)))
            for source, session in enumerate(ranked)
            for total in session.totals
        ]
        turns = {joined: turn_of(joined) for joined in self._home}
        turns |= {
            joined: replace(turn, thread=threads[turn.thread])
            for joined, turn in turns.items()
            if turn.thread in threads
        }
        started = [utc(session.started) for session in ranked if session.started]
        ended = [utc(session.ended) for session in ranked if session.ended]
        joined = Session(
            id=ranked[0].id,
            agent=first(session.agent for session in ranked),
            title=first(session.title for session in ranked),
            project=first(session.project for session in ranked),
            started=min(started, default=None),
            ended=max(ended, default=None),
            exchanges=[
                exchange_of(
                    [version[1:] for version in exchange.versions],
                    [turns[turn] for turn in exchange.turns],
                    number,
                )
                for number, exchange in enumerate(self._exchanges, 1)
            ],
            side_turns=[
                turns[joined_turn]
                for joined_turn in sorted(self._aside, key=lambda joined_turn: joined_turn.first.at or 0.0)
            ],
            parent=first(session.parent for session in ranked),
            agents=_agents(ranked, threads),
            main_missing=any(session.main_missing for session in ranked) and all(map(_lacks_main, ranked)),
            reported_cost_usd=first(session.reported_cost_usd for session in ranked),
            compactions=_compactions(ranked, threads),
            context_files=next((session.context_files for session in ranked if session.context_files), ()),
            totals=totals,
            unread_calls=sum(session.unread_calls for session in ranked),
        )
        if not totals:
            return joined
        times = {id(turns[joined_turn]): _span(joined_turn) for joined_turn in self._home}
        return with_remainders(joined, [times[id(turn)] for turn in joined.turns])


def _span(joined: Joined) -> tuple[datetime | None, datetime | None]:
    """Return the earliest and the latest time that a witness gives."""
    times = [utc(time) for copy in joined.copies if (time := copy.turn.started or copy.turn.ended)]
    return (min(times), max(times)) if times else (None, None)


def _lacks_main(session: Session) -> bool:
    """Whether the session does not come from the agent's own main file."""
    return session.main_missing or session.prompts_only or "transcript" not in session.witnesses


def _copies(source: int, session: Session) -> Iterable[Copy]:
    for number, exchange in enumerate(session.exchanges):
        yield from (Copy(turn, session, source, number) for turn in exchange.turns)
    yield from (Copy(turn, session, source, None) for turn in session.side_turns)


def _same_thread(turns: Iterable[Joined], joined: Joined) -> list[Joined]:
    return [turn for turn in turns if turn.first.turn.thread == joined.first.turn.thread]


def _is_earlier(earlier: Joined, joined: Joined, source: int) -> bool:
    one, two = earlier.first.at, joined.first.at
    return not earlier.tells(source) and one is not None and two is not None and one <= two


def _is_later(later: Joined, joined: Joined, source: int) -> bool:
    one, two = later.first.at, joined.first.at
    return not later.tells(source) and one is not None and two is not None and one > two


def _start_of(exchange: Exchange) -> float | None:
    times = [exchange.started, *(turn.started for turn in exchange.turns)]
    return next((utc(time).timestamp() for time in times if time), None)


def _is_same(existing: _Exchange, exchange: Exchange) -> bool:
    """Whether two exchanges that share no turn are the same."""
    one, two = existing.user_input, exchange.user_input
    if one is not None and two is not None:
        return _words_of(one) == _words_of(two)
    return any(_overlap(version, exchange) for _, _, version in existing.versions)


def _words_of(text: str) -> str:
    """Return a prompt without blanks, and without the quotes that some clients put around it."""
    words = "".join(text.split())
    return words[1:-1] if len(words) > 1 and words[0] == words[-1] == '"' else words


def _overlap(one: Exchange, two: Exchange) -> bool:
    if not (one.started and one.ended and two.started and two.ended):
        return False
    return utc(one.started) <= utc(two.ended) and utc(two.started) <= utc(one.ended)


# ---------------------------------------------------------------- sub-agents


def _threads(ranked: Iterable[Session], responses: Iterable[Joined]) -> Mapping[str, str]:
    """Map the names that sub-agents have elsewhere to their own: an SDK knows only the tool call that started one."""
    names: dict[str, str] = {}
    for session in ranked:
        for agent in session.agents:
            if agent.tool_use_id:
                names.setdefault(f"{AGENT_PREFIX}{agent.tool_use_id}", agent.thread)
    for joined in responses:
        turns = [copy.turn for copy in joined.copies if copy.turn.thread.startswith(AGENT_PREFIX)]
        own = [version.thread for version in turns if version.witnesses & KNOW_THE_END]
        for turn in turns if own else ():
            if not turn.witnesses & KNOW_THE_END:
                names[turn.thread] = own[0]
    return {name: own for name, own in names.items() if name != own}


def _compactions(ranked: Iterable[Session], threads: Mapping[str, str]) -> list[Compaction]:
    """Return the compactions of the first session that has any; times alone could not tell two compactions from two
    records of one."""
    compactions = next((session.compactions for session in ranked if session.compactions), ())
    return [replace(compaction, thread=threads.get(compaction.thread, compaction.thread)) for compaction in compactions]


def _agents(ranked: Iterable[Session], threads: Mapping[str, str]) -> list[SubAgent]:
    by_thread: dict[str, list[SubAgent]] = {}
    for agent in (agent for session in ranked for agent in session.agents):
        thread, parent = (threads.get(name, name) for name in (agent.thread, agent.parent_thread))
        by_thread.setdefault(thread, []).append(replace(agent, thread=thread, parent_thread=parent))
    return [agent_of(them) for them in by_thread.values()]
