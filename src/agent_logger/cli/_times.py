"""Options that take a time as people write it: `2026-11-01`, `7d`, `last week`."""

from collections.abc import Callable
from datetime import datetime
from typing import Any

import click

from agent_logger.model.times import EXAMPLES, since_time, until_time


class _When(click.ParamType[datetime]):
    name = "time"

    def __init__(self, time_of: Callable[[str, datetime], datetime | None]) -> None:
        self._time_of = time_of

    def convert(self, value: object, param: click.Parameter | None, ctx: click.Context | None) -> datetime:
        if isinstance(value, datetime):
            return value
        time = self._time_of(str(value), datetime.now().astimezone())
        if time is None:
            self.fail(f"cannot read {value!r} as a time; try {EXAMPLES}", param, ctx)
        return time


def time_options(what: str, *, since: str = "since", until: str = "until") -> Callable[[Any], Any]:
    """Add `--since` and `--until`. `what` is selected, for example "responses"."""

    def add(command: Any) -> Any:
        last = click.option(
            "--until", type=_When(until_time), help=f"Only {what} {until} this time; a day is included."
        )
        first = click.option("--since", type=_When(since_time), help=f"Only {what} {since} this time: {EXAMPLES}.")
        return first(last(command))

    return add
