"""The selection of sessions: read from a query string, passed to the catalog, and written into links."""

import math
from collections.abc import Mapping
from dataclasses import dataclass, fields, replace
from datetime import date, datetime, timedelta
from typing import Literal, get_args
from urllib.parse import urlencode

from agent_logger.catalog.summary import Filter
from agent_logger.model.session import Witness

PAGE = 100  # rows
MOST = 1000
Order = Literal["active", "started", "cost", "tokens", "turns"]  # those that need no session to be read


@dataclass(frozen=True, slots=True, kw_only=True)
class PageQuery:
    """The query of a page as text, without values that make no sense."""

    agent: str = ""
    project: str = ""
    model: str = ""
    title: str = ""
    since: str = ""  # a day, and the first one that counts
    until: str = ""  # a day, and the last one that counts
    min_cost: str = ""
    witness: str = ""
    live: str = ""
    order: Order = "active"
    offset: int = 0
    limit: int = PAGE

    @classmethod
    def of(cls, query: Mapping[str, str]) -> "PageQuery":
        texts = {name: query.get(name, "").strip()[:200] for name in TEXTS}
        texts["since"], texts["until"] = _day(texts["since"]), _day(texts["until"])
        texts["min_cost"] = texts["min_cost"] if _number(texts["min_cost"]) is not None else ""
        texts["witness"] = texts["witness"] if texts["witness"] in get_args(Witness) else ""
        texts["live"] = "1" if texts["live"] not in ("", "0") else ""
        return cls(
            **texts,
            order=next((choice for choice in get_args(Order) if choice == query.get("order")), "active"),
            offset=_whole(query.get("offset"), 0, 10**9) or 0,
            limit=_whole(query.get("limit"), 1, MOST) or PAGE,
        )

    def filter(self) -> Filter:
        witness: Witness | None = next(
            (choice for choice in get_args(Witness) if choice == self.witness), None
        )
        return Filter(
            agent=self.agent or None,
            project=self.project or None,
            model=self.model or None,
            title=self.title or None,
            since=_midnight(self.since, 0),
            until=_midnight(self.until, 1),
            min_cost_usd=_number(self.min_cost),
            witness=witness,
            live=bool(self.live),
        )

    def query_string(self, **changes: str | int) -> str:
        """The query string `?agent=codex&since=2026-11-15`, without unset fields; empty for all sessions."""
        query = replace(self, **({"offset": 0} | changes))  # type: ignore[arg-type] # names of fields
        parameters = {
            field.name: value
            for field in fields(PageQuery)
            if (value := getattr(query, field.name)) != field.default
        }
        return f"?{urlencode(parameters)}" if parameters else ""

    @property
    def conditions(self) -> dict[str, str]:
        """The conditions that narrow the selection, by name."""
        return {name: value for name in TEXTS if (value := getattr(self, name))}


TEXTS = ("agent", "project", "model", "title", "since", "until", "min_cost", "witness", "live")


def _day(text: str) -> str:
    try:
        return date.fromisoformat(text).isoformat()
    except ValueError:
        return ""


def _midnight(day: str, more_days: int) -> datetime | None:
    """The start of the day on this machine. The last days of the calendar have no next one."""
    try:
        return datetime.combine(
            date.fromisoformat(day) + timedelta(days=more_days), datetime.min.time()
        ).astimezone()
    except (ValueError, OverflowError):
        return None


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
