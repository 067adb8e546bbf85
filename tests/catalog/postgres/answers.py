"""The answers of a catalog to every question it can be asked, in a form that two catalogs can be compared by."""

from collections.abc import Iterable, Iterator
from datetime import UTC, datetime
from itertools import product
from pathlib import Path
from typing import Any, get_args

import msgspec

from agent_logger import Catalog, Filter
from agent_logger.catalog.ledger.totals import By
from agent_logger.catalog.postgres.engine import PostgresEngine
from agent_logger.catalog.queries import ORDERS
from agent_logger.home.homes import Homes

PAGES: tuple[tuple[int | None, int], ...] = ((None, 0), (2, 0), (2, 1))
STEPS: tuple[By, ...] = ("day", "week", "month")
KINDS: tuple[By, ...] = ("model", "project", "agent", "machine")

FEW = (Filter(), Filter(project="SHOP"), Filter(live=True), Filter(since=datetime(2026, 11, 15, 0, 0, 4, tzinfo=UTC)))


def indexed(home: Path | Homes, url: str) -> Catalog:
    """A catalog in PostgreSQL that takes in what is in the homes."""
    homes = home if isinstance(home, Homes) else Homes(home)
    return Catalog(homes, float("inf"), PostgresEngine(url, homes))


def read_only(home: Path | Homes, url: str) -> Catalog:
    return Catalog(home, float("inf"), PostgresEngine(url))


def filters(catalog: Catalog) -> Iterator[Filter]:
    """Yield filters that some sessions match, and some that none do."""
    sessions = catalog.sessions()
    yield Filter()
    for agent in {session.agent for session in sessions if session.agent} | {"claude", "nobody"}:
        yield Filter(agent=agent)
    for project in {session.project for session in sessions if session.project} | {"SHOP", "%", "_", "ß"}:
        yield Filter(project=project)
    for model in {model for session in sessions for model in session.models} | {"HAIKU", "h_iku", "no such"}:
        yield Filter(model=model)
    for title in {(session.title or "")[:5].upper() for session in sessions} | {"TIMER", "İ"}:
        yield Filter(title=title)
    times = sorted(session.ended for session in sessions if session.ended)
    for moment in {*times[:: max(1, len(times) // 3)], datetime(2026, 11, 15, tzinfo=UTC)}:
        yield Filter(since=moment)
        yield Filter(until=moment)
        yield Filter(since=moment.date(), until=moment.date())
    for cost in (0.0, 0.0001, 1e6):
        yield Filter(min_cost_usd=cost)
    for witness in ("wire", "transcript", "sdk", "run", "hook"):
        yield Filter(witness=witness)
    yield Filter(live=True)
    yield Filter(pinned=True)
    yield Filter(label="Later")
    for machine in (*catalog.machines.values(), "no such machine"):
        yield Filter(machine=machine)
    yield Filter(sessions=frozenset(session.id for session in sessions[::2]))
    yield Filter(sessions=frozenset())


def answers(catalog: Catalog, conditions: Iterable[Filter]) -> dict[str, Any]:
    """Return every answer, by its question."""
    told: dict[str, Any] = {}
    for where in conditions:
        asked = repr(where)
        told[f"count {asked}"] = catalog.count(where)
        told[f"total {asked}"] = catalog.total(where)
        told[f"ledger {asked}"] = sorted(catalog.ledger(where), key=repr)
        told[f"unpriced {asked}"] = catalog.unpriced_models(where)
        told[f"unlisted {asked}"] = catalog.sessions_with_unlisted_calls(where)
        told[f"blocks {asked}"] = catalog.usage_blocks(where)
        told[f"sessions {asked}"] = catalog.sessions(where)
        told[f"usage {asked}"] = list(catalog.usage("model", where).items())
    for order, (limit, offset) in product(ORDERS, PAGES):
        told[f"sessions {order} {limit} {offset}"] = catalog.sessions(order=order, limit=limit, offset=offset)
    for by in get_args(By):
        told[f"usage by {by}"] = list(catalog.usage(by, zone=UTC).items())
    for step, by in product(STEPS, KINDS):
        told[f"usage by {step} and {by}"] = catalog.usage_over_time(step, by, zone=UTC)
    told["choices"], told["stamps"] = catalog.choices(), catalog.stamps()
    told["one choice"] = catalog.choices(1)
    told["short ids"] = catalog.short_ids()
    told["marks"] = catalog.marks()
    told["block"] = catalog.active_block(datetime(2026, 11, 15, 9, tzinfo=UTC))
    for words in ("fix timer", "SHOP", "11111111-1111", "'", "%"):
        told[f"matching {words}"] = catalog.matching(words, limit=3)
    ids = sorted(catalog.stamps())
    told["headings"] = catalog.headings(ids)
    told["some short ids"] = catalog.short_ids(ids)
    told["damaged files"] = catalog.damaged_files(*ids)
    told["branches"] = catalog.branches(*ids[:1])
    for name in (*ids, "no such", "", "last"):
        told[f"resolve {name}"] = [catalog.resolve(name), sorted(catalog.resolve(name[:3]))]
        told[f"summary {name}"] = catalog.summary(name)
        told[f"sources {name}"] = catalog.sources(name)
        told[f"read {name}"] = catalog.read(name)
        told[f"tree {name}"] = catalog.tree(name)
        told[f"forks {name}"] = catalog.forks(name)
        told[f"elsewhere {name}"] = sorted(catalog.counted_elsewhere(name), key=repr)
        told[f"rows {name}"] = sorted(catalog.ledger(session=name), key=repr)
        told[f"files {name}"] = catalog.files_of_ours(name)
        told[f"beside {name}"] = catalog.titles_beside(name)
    return {asked: comparable(answer) for asked, answer in told.items()}


def comparable(value: Any) -> Any:
    """Return a value with fractions as exact as their sums are in any order."""
    if isinstance(value, float):
        return round(value, 9)
    if isinstance(value, msgspec.Struct):
        return type(value).__name__, comparable(msgspec.structs.asdict(value))
    if isinstance(value, dict):
        return {key: comparable(item) for key, item in value.items()}
    if isinstance(value, list | tuple):
        return [comparable(item) for item in value]
    return value


def assert_equal(one: Catalog, other: Catalog, conditions: Iterable[Filter] = FEW) -> None:
    """Assert that both give the same answers."""
    conditions = list(conditions)
    expected, given = answers(one, conditions), answers(other, conditions)
    for asked, answer in expected.items():
        same = given.get(asked) == answer
        assert same, "\n".join([asked, *difference(given.get(asked), answer)])
    assert given.keys() == expected.keys()


def difference(given: Any, expected: Any, place: str = "") -> Iterator[str]:
    """Yield the places in which two comparable values differ: pytest would print both, and they are long."""
    if isinstance(given, list | tuple) and isinstance(expected, list | tuple) and len(given) == len(expected):
        for number, (one, other) in enumerate(zip(given, expected, strict=True)):
            yield from difference(one, other, f"{place}[{number}]")
    elif isinstance(given, dict) and isinstance(expected, dict):
        for key in sorted({*given, *expected}, key=repr):
            yield from difference(given.get(key), expected.get(key), f"{place}[{key!r}]")
    elif given != expected:
        yield f"{place}: {given!r:.300} is not {expected!r:.300}"
