"""Which sessions are one family, which of them was forked from which, and where a response occurred first."""

from collections.abc import Iterable, Mapping, Sequence
from datetime import datetime

from agent_logger.agents.claude_code.transcript.tree import Lineage, Relatives
from agent_logger.agents.claude_code.transcript.turns import is_unique
from agent_logger.catalog.ledger.rows import micros_of
from agent_logger.catalog.refresh.session_sources import BilledSource, SessionSources
from agent_logger.model.responses import ModelResponse
from agent_logger.model.session import MAIN


def families_of(gathered: Mapping[str, SessionSources]) -> dict[str, str]:
    """Return the family of each session: the least name of those that it is connected with, directly or not. Sessions
    are connected if they have a response in common, or one names the other as its parent."""
    above = {name: name for name in gathered}

    def top(name: str) -> str:
        while above[name] != name:
            above[name] = name = above[above[name]]
        return name

    def join(name: str, other: str) -> None:
        one, two = top(name), top(other)
        above[max(one, two)] = min(one, two)

    first: dict[int, str] = {}
    for name, group in gathered.items():
        for source in group.sources:
            if source.parent and source.parent in gathered:
                join(name, source.parent)
            for key in source.billed.keys:
                if (other := first.setdefault(key, name)) != name:
                    join(name, other)
    return {name: top(name) for name in gathered}


class Descent:
    """The parent of each forked session, and the place of each in its family, parents first."""

    def __init__(self, gathered: Mapping[str, SessionSources], families: Mapping[str, str]) -> None:
        self.parents: dict[str, str] = {}
        self.places: dict[str, int] = {}
        members: dict[str, list[str]] = {}
        for name, family in families.items():
            members.setdefault(family, []).append(name)
        for names in members.values():
            if len(names) > 1 or any(source.parent for source in gathered[names[0]].sources):
                self._add_family(gathered, names)

    def _add_family(self, gathered: Mapping[str, SessionSources], names: Sequence[str]) -> None:
        """Add a family. What was imported comes last, and changes nothing for the others."""
        own = [name for name in names if not gathered[name].is_imported]
        places: dict[str, int] = {}
        for members in [own, names] if len(own) < len(names) else [names]:
            relatives = Relatives(_lineage(name, gathered[name]) for name in members)
            parents = relatives.parents()
            new = [name for name in relatives.in_order(parents) if name not in places]
            places |= {name: place for place, name in enumerate(new, len(places))}
            self.parents |= {name: parents[name] for name in new if name in parents}
        self.places |= places


class ResponseOrigins:
    """Where a response occurred first: copies may keep its time, so that the ledger cannot tell, but a fork has what
    its parent had. What was imported did not occur on this machine."""

    def __init__(self, gathered: Mapping[str, SessionSources], parents: Mapping[str, str]) -> None:
        self._parents = {
            name: parent
            for name, parent in parents.items()
            if parent in gathered and (gathered[parent].is_imported or not gathered[name].is_imported)
        }
        related = set(parents) | set(parents.values())
        self._keys_by_session = {
            name: {response_key(row) for source in group.sources for row in source.responses}
            for name, group in gathered.items()
            if name in related
        }

    def session_of(self, response: ModelResponse) -> str:
        session = response.session
        if session not in self._parents:
            return session
        key, sessions = response_key(response), {session}
        while (
            (parent := self._parents.get(session))
            and parent not in sessions
            and key in self._keys_by_session.get(parent, ())
        ):
            session = parent
            sessions.add(session)
        return session


def response_key(response: ModelResponse) -> str | datetime | None:
    return response.at if response.message_id is None else response.message_id


def _lineage(name: str, group: SessionSources) -> Lineage:
    best = group.best
    main = [row for row in best.responses if row.thread == MAIN]
    return Lineage(
        session=name,
        message_ids=list(dict.fromkeys(row.message_id for row in main if row.message_id and is_unique(row.message_id))),
        began=min((row.at for row in main if row.at), default=None),
        forked_from=_named_parent(name, (source for source in group.sources if source.agent)),
        recorded_parent=_named_parent(name, (source for source in group.sources if source.agent is None)),
        first_written=best.beginning.first_written,
        own_line_after=best.beginning.own_line_after,
        responses=len(main),
        ended=max((row.at for row in main if row.at), default=None),
    )


def _named_parent(name: str, sources: Iterable[BilledSource]) -> str | None:
    """Return the parent that the source names which began first: there may be several logs of ours."""
    named = [source for source in sources if source.parent and source.parent != name]
    return min(named, key=_first_response).parent if named else None


def _first_response(source: BilledSource) -> tuple[int, str]:
    return min(
        (micros_of(response.at) for response in source.responses if response.at), default=micros_of(None)
    ), source.stamp
