"""The width of the terminal and of a text on it; ids and times in few columns."""

import os
import re
import sys
from datetime import datetime

from agent_logger.config import variable

PLAIN_COLUMNS = 80  # without a terminal
PLAIN_LINES = 24


def is_terminal() -> bool:
    return sys.stdout is not None and sys.stdout.isatty()


def columns() -> int:
    """The width to fill: the terminal's. Determined by hand, because `shutil` is slow to import."""
    setting = variable("COLUMNS") or ""
    if setting.isdecimal() and int(setting):
        return int(setting)
    try:
        return os.get_terminal_size(1).columns or PLAIN_COLUMNS
    except OSError:
        return PLAIN_COLUMNS


def lines() -> int:
    """The height of the terminal."""
    try:
        return os.get_terminal_size(1).lines or PLAIN_LINES
    except OSError:
        return PLAIN_LINES


NARROW = {ord("…"): None, ord("└"): None}


def width(text: str) -> int:
    """The columns that `text` takes: wide characters take two, combining ones none."""
    if text.isascii() or text.translate(NARROW).isascii():  # what we cut and indent with ourselves
        return len(text)
    from rich.cells import cell_len

    return cell_len(text)


_LOG_NAME = re.compile(r"(\d{8}[-_]\d{6})[-_]")  # fewer characters say nothing


# Ids that begin with the time in milliseconds.
_TIMED = re.compile(r"[0-9a-f]{8}-[0-9a-f]{4}(?=-7)|ses_[0-9a-f]{12}")


def date_of_log(session: str) -> str:
    """The date and time at the beginning of a log's name; empty if the name is an id."""
    match = _LOG_NAME.match(session)
    return match[1] if match else ""


def short_id(session: str) -> str:
    """A short id for when the other sessions are unknown: the beginning of a client's id, or the whole name of a
    log."""
    if date_of_log(session):
        return session
    timed = _TIMED.match(session)
    return timed[0] if timed else session[:8]


def day_and_time(at: datetime) -> str:
    """A time in eleven columns: day and time in this year, the date with the year in another one."""
    local = at.astimezone()
    this_year = datetime.now().astimezone().year
    return f"{local:%m-%d %H:%M}" if local.year == this_year else f"{local:%Y-%m-%d}"


def cut(text: str, room: int) -> str:
    """Shorten `text` to at most `room` columns."""
    if width(text) <= room:
        return text
    return f"{beginning(text, room - 1)}…" if room > 0 else ""


def beginning(text: str, room: int) -> str:
    """The first characters of the text, as many as fit into `room` columns."""
    if text.isascii():
        return text[: max(0, room)]
    taken = 0
    for number, character in enumerate(text):
        taken += width(character)
        if taken > room:
            return text[:number]
    return text
