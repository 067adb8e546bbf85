"""SQLite's SQL, in which the catalog's statements are written, as PostgreSQL's.

Functions of SQLite that PostgreSQL lacks are made by the migrations (`migrations.py`). What else differs is in this
module; the statements avoid whatever else would.
"""

import re
from functools import lru_cache

# The items of a JSON list, as text; sorted as SQLite sorts.
_ITEMS = r'LATERAL (SELECT json_items(\1) COLLATE "C" AS value) items'
_REPLACEMENTS = [
    (re.compile(pattern), replacement)
    for pattern, replacement in (
        (r"%", "%%"),
        (r"\?(\d+)", r"%(p\1)s"),
        (r"\?", "%s"),
        (r"(?<![:\w]):(\w+)", r"%(\1)s"),
        (r"\bIS NOT (?!NULL\b|DISTINCT\b)", "IS DISTINCT FROM "),
        (r"\bIS (?!NULL\b|NOT\b|DISTINCT\b)", "IS NOT DISTINCT FROM "),
        (r"\bvalue \+ 0\b", "value::bigint"),
        (r"\bjson_each\(([^()]+|%\(\w+\)s)\)", _ITEMS),
        (r"\bNOT witnesses & 1\b", "witnesses & 1 = 0"),
        (r"\bmax\(coalesce\(", "later(coalesce("),
        (r"\bhashed\(message_id\)", "ledger.message_key"),
    )
]


@lru_cache(maxsize=1024)
def translate(sql: str) -> str:
    """Return a statement as PostgreSQL and psycopg take it: `?` becomes `%s`, `?1` becomes `%(p1)s`, `:name` becomes
    `%(name)s`."""
    for pattern, replacement in _REPLACEMENTS:
        sql = pattern.sub(replacement, sql)
    return sql


@lru_cache(maxsize=1024)
def has_numbers(sql: str) -> bool:
    """Whether a statement numbers its parameters."""
    return re.search(r"\?\d", sql) is not None
