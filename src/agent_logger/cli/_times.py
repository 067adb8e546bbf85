"""Times as people write them: `2026-11-01`, `today`, `2 days ago`."""

import re
from datetime import datetime, timedelta

import click

_AGO = re.compile(r"(\d{1,5})\s*(minute|hour|day|week|month)s?(?:\s+ago)?")
_DAYS = {"day": 1, "week": 7, "month": 30}


class When(click.ParamType[datetime]):
    name = "time"

    def convert(self, value: object, param: click.Parameter | None, ctx: click.Context | None) -> datetime:
        if isinstance(value, datetime):
            return value
        time = moment(str(value), datetime.now().astimezone())
        if time is None:
            self.fail(f"cannot read {value!r} as a time; try 2026-11-01, today, or '2 days ago'", param, ctx)
        return time


def moment(text: str, now: datetime) -> datetime | None:
    """The time that the text means, in the zone of `now`; days begin at midnight."""
    text = text.strip().lower()
    midnight = now.replace(hour=0, minute=0, second=0, microsecond=0)
    if text in ("today", "yesterday"):
        return midnight - timedelta(days=text == "yesterday")
    if ago := _AGO.fullmatch(text):
        return _time_ago(int(ago[1]), ago[2], now, midnight)
    try:
        time = datetime.fromisoformat(text)
    except ValueError:
        return None
    return time if time.tzinfo else time.replace(tzinfo=now.tzinfo)


def _time_ago(number: int, unit: str, now: datetime, midnight: datetime) -> datetime:
    if unit in _DAYS:
        return midnight - timedelta(days=number * _DAYS[unit])
    return now - timedelta(minutes=number * (60 if unit == "hour" else 1))
