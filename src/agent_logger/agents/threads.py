"""The files of an agent that make one session: the file of a sub-agent names the thread that started it."""

from collections.abc import Mapping
from typing import NamedTuple, TypeVar

P = TypeVar("P")  # a file, or its path


class AgentThread(NamedTuple):
    id: str
    started_by: str | None  # none: a person


def families(threads: Mapping[P, AgentThread]) -> dict[P, list[P]]:
    """Return the main files, each with those of its sub-agents, at any depth. A sub-agent whose starter is gone is a
    main file."""
    ids = {thread.id for thread in threads.values()}
    started: dict[str | None, list[P]] = {}
    for path, thread in threads.items():
        started.setdefault(thread.started_by, []).append(path)

    def distance(path: P) -> tuple[bool, bool]:
        by = threads[path].started_by
        return by is not None, by in ids

    family_of: dict[P, list[P]] = {}
    placed: set[P] = set()
    for path in sorted(threads, key=distance):
        if path not in placed:
            below = _below(threads[path].id, started, threads)
            placed.add(path)
            family_of[path] = [other for other in below if other not in placed]
            placed.update(family_of[path])
    return family_of


def _below(name: str, started: Mapping[str | None, list[P]], threads: Mapping[P, AgentThread]) -> list[P]:
    members: dict[P, None] = {}
    names = [name]
    for below in names:  # grows meanwhile
        for path in started.get(below, ()):
            if path not in members:
                members[path] = None
                names.append(threads[path].id)
    return list(members)
