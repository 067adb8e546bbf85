"""Items as CSV, for spreadsheets: text that a spreadsheet would take for a formula is marked as text."""

import csv
import io
from collections.abc import Sequence
from datetime import datetime

import msgspec

from agent_logger.model.redaction.redactor import hidden
from agent_logger.views.printable import printable

# The wide forms are what a spreadsheet takes for the others where Japanese or Chinese is written.
FORMULA = ("=", "+", "-", "@", "\t", "\r", "\n", "＝", "＋", "－", "＠")


def csv_of(items: Sequence[msgspec.Struct], kind: type[msgspec.Struct]) -> str:
    """The items as CSV with a header line, also if there are none. Numbers are numbers, whatever they begin with."""
    names = kind.__struct_fields__
    text = io.StringIO()
    writer = csv.writer(text)
    writer.writerow(names)
    writer.writerows([_cell(getattr(item, name)) for name in names] for item in items)
    return text.getvalue()


def _cell(value: object) -> str | int | float:
    if value is None:
        return ""
    if isinstance(value, int | float) and not isinstance(value, bool):
        return value
    if isinstance(value, datetime):
        return value.isoformat()
    return escape_formula(value if isinstance(value, str) else _json(value))


def escape_formula(text: str) -> str:
    text = printable(hidden(text), lines=True)
    return f"'{text}" if text.startswith(FORMULA) else text


def _json(value: object) -> str:
    if isinstance(value, list) and all(isinstance(item, str) for item in value):
        return " ".join(value)
    try:
        return msgspec.json.encode(value, enc_hook=str).decode()
    except (UnicodeEncodeError, RecursionError):
        return str(value)
