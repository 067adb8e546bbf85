"""The selection of sessions: read from a query string, passed to the catalog, and written into links."""

import math
from collections.abc import Mapping
from dataclasses import dataclass, fields, replace
from datetime import datetime, timedelta
from typing import Literal, NamedTuple, get_args
from urllib.parse import urlencode

from agent_logger.catalog.catalog import Catalog
from agent_logger.catalog.summary import Filter, SessionSummary
from agent_logger.model.session import Witness
from agent_logger.model.times import read_span, since_time, until_time

PAGE = 100  # rows
MOST = 1000
Order = Literal["active", "started", "cost", "tokens", "turns"]  # those that need no session to be read


class NamedPeriod(NamedTuple):
    """A time that is picked by its name."""

    label: str
    since: str = ""
    until: str = ""


PERIODS = {
    "any": NamedPeriod("Any time"),
    "today": NamedPeriod("Today", "today"),
    "yesterday": NamedPeriod("Yesterday", "yesterday", "yesterday"),
    "7d": NamedPeriod("Last 7 days", "7d"),
    "30d": NamedPeriod("Last 30 days", "30d"),
    "this-month": NamedPeriod("This month", "this month"),
    "last-month": NamedPeriod("Last month", "last month", "last month"),
    "this-year": NamedPeriod("This year", "this year"),
}


@dataclass(frozen=True, slots=True, kw_only=True)
class PageQuery:
    """The query of a page as text, without values that make no sense."""

    agent: str = ""
    project: str = ""
    model: str = ""
    machine: str = ""
    person: str = ""
    label: str = ""
    title: str = ""
    since: str = ""  # the first day that counts, or a time, in anybody's words
    until: str = ""  # the last day that counts, or a time that no longer counts
    min_cost: str = ""
    witness: str = ""
    live: str = ""
    pinned: str = ""
    order: Order = "active"
    offset: int = 0
    limit: int = PAGE

    @classmethod
    def of(cls, query: Mapping[str, str]) -> "PageQuery":
        texts = {name: query.get(name, "").strip()[:200] for name in TEXTS}
        if period := PERIODS.get(query.get("period", "")):
            texts["since"], texts["until"] = period.since, period.until
        texts["since"], texts["until"] = _time_text(texts["since"]), _time_text(texts["until"])
        texts["min_cost"] = texts["min_cost"] if _number(texts["min_cost"]) is not None else ""
        texts["witness"] = texts["witness"] if texts["witness"] in get_args(Witness) else ""
        texts |= {name: "1" if texts[name] not in ("", "0") else "" for name in ("live", "pinned")}
        return cls(
            **texts,
            order=next((choice for choice in get_args(Order) if choice == query.get("order")), "active"),
            offset=_whole(query.get("offset"), 0, 10**9) or 0,
            limit=_whole(query.get("limit"), 1, MOST) or PAGE,
        )

    def filter(self) -> Filter:
        witness: Witness | None = next((choice for choice in get_args(Witness) if choice == self.witness), None)
        return Filter(
            agent=self.agent or None,
            project=self.project or None,
            model=self.model or None,
            machine=self.machine or None,
            person=self.person or None,
            title=self.title or None,
            since=since_time(self.since, datetime.now().astimezone()),
            until=until_time(self.until, datetime.now().astimezone()),
            min_cost_usd=_number(self.min_cost),
            witness=witness,
            live=bool(self.live),
            label=self.label or None,
            pinned=bool(self.pinned),
        )

    @property
    def first_day(self) -> str:
        """The first day that counts, for a field that shows no words."""
        span = read_span(self.since, datetime.now().astimezone())
        return span.start.date().isoformat() if span else ""

    @property
    def last_day(self) -> str:
        span = read_span(self.until, datetime.now().astimezone())
        return max(span.start, span.end - timedelta(microseconds=1)).date().isoformat() if span else ""

    @property
    def period(self) -> str | None:
        """The name of the period; none for one that has no name."""
        times = (self.since, self.until)
        return next((name for name, period in PERIODS.items() if (period.since, period.until) == times), None)

    def page_of(self, catalog: Catalog) -> list[SessionSummary]:
        """The sessions of the page, and one more if more follow."""
        return catalog.sessions(self.filter(), limit=self.limit + 1, offset=self.offset, order=self.order)

    def query_string(self, **changes: str | int) -> str:
        """The query string `?agent=codex&since=2026-11-15`, without unset fields; empty for all sessions."""
        query = replace(self, **({"offset": 0} | changes))  # type: ignore[arg-type] # names of fields
        parameters = {
            field.name: value for field in fields(PageQuery) if (value := getattr(query, field.name)) != field.default
        }
        return f"?{urlencode(parameters)}" if parameters else ""

    @property
    def conditions(self) -> dict[str, str]:
        """The conditions that narrow the selection, by name."""
        return {name: value for name in TEXTS if (value := getattr(self, name))}


TEXTS = (
    "agent",
    "project",
    "model",
    "machine",
    "person",
    "label",
    "title",
    "since",
    "until",
    "min_cost",
    "witness",
    "live",
    "pinned",
)


def _time_text(text: str) -> str:
    return text if read_span(text, datetime.now().astimezone()) else ""


def _number(text: str) -> float | None:
    try:
        number = float(text)
    except ValueError:
        return None
    return number if math.isfinite(number) else None


def _whole(text: str | None, low: int, high: int) -> int | None:
    if not text or not text.isascii() or not text.isdigit() or len(text) > 9:
        return None
    return min(max(int(text), low), high)
