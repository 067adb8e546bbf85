"""Which files of an agent make one session: that of a sub-agent names who started it."""

from collections.abc import Mapping
from typing import NamedTuple, TypeVar

P = TypeVar("P")  # what stands for a file: its path


class Thread(NamedTuple):
    id: str
    started_by: str | None  # none: a person


def families(threads: Mapping[P, Thread]) -> dict[P, list[P]]:
    """The main files, each with those of its sub-agents, however far down. One whose starter is gone is a main file."""
    ids = {it.id for it in threads.values()}
    started: dict[str | None, list[P]] = {}
    for path, thread in threads.items():
        started.setdefault(thread.started_by, []).append(path)

    def distance(path: P) -> tuple[bool, bool]:
        by = threads[path].started_by
        return by is not None, by in ids

    found: dict[P, list[P]] = {}
    placed: set[P] = set()
    for path in sorted(threads, key=distance):
        if path not in placed:
            found[path] = [it for it in _below(threads[path].id, started, threads) if it != path]
            placed.update(found[path])
    return found


def _below(name: str, started: Mapping[str | None, list[P]], threads: Mapping[P, Thread]) -> list[P]:
    found: dict[P, None] = {}
    names = [name]
    for it in names:  # grows meanwhile
        for path in started.get(it, ()):
            if path not in found:
                found[path] = None
                names.append(threads[path].id)
    return list(found)
