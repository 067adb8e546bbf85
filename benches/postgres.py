"""A catalog in PostgreSQL, with a hundred thousand sessions: how long lists, the home page and a search take.

    ./dev bench postgres [--sessions COUNT] [--responses COUNT]

Sessions are made as rows of the catalog. The questions read these rows and nothing else, so they take as long as over
sessions that were indexed; to write and read so many files would take hours. Few sessions have thousands of responses,
most have some ten; the newest are of the last hour, half of them of the last four months. A response has one text. How
often a word comes is as in a language: the first is in most texts, half of all words in very few.

The server is one of its own, with the settings that are written below. Times are by the clock, the 95th of a hundred:
that is right on a quiet machine only.
"""

import sys
import time
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from datetime import UTC, datetime, timedelta
from functools import partial
from pathlib import Path
from statistics import quantiles
from typing import Any

from psycopg import Connection

from _figures import Figures, arguments_parser
from agent_logger.catalog.catalog import Catalog
from agent_logger.catalog.postgres.connection import PostgresDatabase
from agent_logger.catalog.postgres.engine import PostgresEngine
from agent_logger.catalog.postgres.migrations import migrate
from agent_logger.catalog.postgres.tables import SUM_QUARTERS
from agent_logger.catalog.postgres.texts import PostgresTextIndex
from agent_logger.catalog.refresh.changes import state
from agent_logger.catalog.summary import Filter
from agent_logger.web.pages.home import home as home_page

sys.path.insert(0, str(Path(__file__).parents[1]))
from tests.postgres import PostgresServer, running_server

SETTINGS = {"shared_buffers": "1GB", "effective_cache_size": "4GB", "random_page_cost": "1.1", "max_wal_size": "4GB"}
RUNS = 100
WORDS, VOCABULARY = 30, 200_000
SHARD_TEXTS = 120_000  # as many as an indexer adds at once
YEAR = 365 * 86_400

MADE = """
CREATE TEMPORARY TABLE made AS
SELECT number, md5(number::text)::uuid::text AS id, '/home/user/projects/' || number %% 300 AS project,
    (%(now)s - %(year)s * ((number - 1)::float8 / %(sessions)s) ^ 1.5)::bigint * 1000000 AS ended,
    (50 / (0.002 + random()) ^ 0.9)::integer AS responses, number %% 7 AS model
FROM generate_series(1, %(sessions)s) number;
UPDATE made SET responses = greatest(1, responses::bigint * %(responses)s / (SELECT sum(responses) FROM made))
"""
CATALOG = """
INSERT INTO sessions (id, family, family_position, agent, models, side_models, responses, inherited_hash, input_tokens,
    output_tokens, cache_read_tokens, cache_write_tokens, cache_write_1h_tokens, nano_usd, unpriced_responses,
    has_unlisted_calls, context_tokens, peak_context_tokens, response_project, first_response, last_response,
    last_active, witnesses, modified, size, stamp, details_stamp, title, project, started, ended, exchanges, turns,
    tool_calls)
SELECT id, id, 0, 'claude-code', '["model-' || model || '"]', '[]', responses, 0, responses * 900, responses * 400,
    responses * 60000, responses * 2000, 0, responses * 30000000::bigint, 0, 0, 60000, 90000, project,
    ended - responses * 30000000::bigint, ended, ended, 1, ended / 1e6, responses * 4000, '1', '1',
    'Mend the timer of the login, part ' || number, project, ended - responses * 30000000::bigint, ended,
    1 + responses / 12, responses, responses
FROM made;
INSERT INTO sources (key, path, agent, home, name, session, witnesses, size, modified, stamp, damaged_lines,
    damage_stamp, closed_stamp)
SELECT path, path, 'claude-code', '', id, id, 1, size, modified, '1', 0, '1', '1'
FROM (SELECT '/home/user/.claude/projects/' || md5(project) || '/' || id || '.jsonl' AS path, * FROM sessions) session;
INSERT INTO model_tiers (vendor, model) SELECT 'anthropic', 'model-' || number FROM generate_series(0, 6) number;
INSERT INTO ledger_places (session, project, agent, thread, home)
SELECT id, project, 'claude-code', 'main', '' FROM made ORDER BY number;
INSERT INTO ledger (place, model_tier, at, message_id, message_key, input_tokens, output_tokens, cache_read_tokens,
    cache_write_tokens, cache_write_1h_tokens, nano_usd, witnesses, copies, partial)
SELECT ledger_places.id, model_tiers.id, ended - turn * 30000000::bigint, 'msg_' || made.number || '_' || turn,
    hashtextextended(made.id, turn), 900, 400, 60000, 2000, 0, 30000000, 1, 1, 0
FROM made JOIN ledger_places ON session = made.id JOIN model_tiers ON model_tiers.model = 'model-' || made.model,
    generate_series(1, made.responses) turn;
INSERT INTO indexed_sessions (session, stamp) SELECT id, '1' FROM made ORDER BY number
"""
TEXTS = f"""
INSERT INTO {{table}}
SELECT indexed_sessions.id, 1 + turn / 12, turn, 1 + turn %% 3, at, at, (turn %% 40 = 0)::integer, at, words
FROM made JOIN indexed_sessions ON session = made.id, generate_series(1, responses) turn,
    LATERAL (SELECT made.ended / 1000 - turn * 30000 AS at) time, LATERAL (
        SELECT string_agg('w' || to_hex(power({VOCABULARY}, random())::integer), ' ') AS words
        FROM generate_series(1, {WORDS} + turn %% 2)
    ) texts
WHERE number BETWEEN %(first)s AND %(last)s
"""


def fill(database: PostgresDatabase, sessions: int, responses: int) -> None:
    connection, index = database.connection, PostgresTextIndex(database)
    values = {"sessions": sessions, "responses": responses, "now": time.time(), "year": YEAR}
    for statement in MADE.split(";\n"):
        connection.execute(statement.encode(), values if "%(" in statement else None)
    connection.execute(CATALOG.encode())
    connection.execute(SUM_QUARTERS.format(where="").encode())
    for first, last in divide(connection.execute("SELECT number, responses FROM made ORDER BY number").fetchall()):
        with connection.transaction():
            shard = index.add_shard(partial(fill_shard, connection, first, last))
            connection.execute(
                f"""
                UPDATE text_shards SET bytes = 24000000, newest = (SELECT max(at) FROM texts_{shard})
                WHERE id = {shard};
                UPDATE indexed_sessions SET shards = '{{{shard}}}'
                WHERE session IN (SELECT id FROM made WHERE number BETWEEN {first} AND {last})
                """.encode()
            )
        print(".", end="", flush=True)
    connection.execute("DROP TABLE made")
    connection.execute("VACUUM ANALYZE")
    index.store_complete_state(state(database))


def fill_shard(connection: Connection[Any], first: int, last: int, table: str) -> None:
    connection.execute(TEXTS.format(table=table).encode(), {"first": first, "last": last})


def word_of(number: int) -> str:
    """Return the word that is so many times rarer than the first."""
    return f"w{number:x}"


def divide(rows: list[tuple[int, int]]) -> Iterator[tuple[int, int]]:
    first, texts = 1, 0
    for number, responses in rows:
        texts += responses
        if texts >= SHARD_TEXTS or number == len(rows):
            yield first, number
            first, texts = number + 1, 0


# ---------------------------------------------------------------- questions

NOW = datetime.now(UTC)
Question = Callable[[Catalog], object]
LISTS: Mapping[str, Question] = {
    "newest": lambda catalog: catalog.sessions(limit=50),
    "last page": lambda catalog: catalog.sessions(limit=50, offset=90_000),
    "most expensive": lambda catalog: catalog.sessions(limit=50, order="cost"),
    "of a project": lambda catalog: catalog.sessions(Filter(project="/home/user/projects/17"), limit=50),
    "part of a project": lambda catalog: catalog.sessions(Filter(project="projects/29"), limit=50),
    "of a model": lambda catalog: catalog.sessions(Filter(model="model-3"), limit=50),
    "of a week": lambda catalog: catalog.sessions(
        Filter(since=NOW - timedelta(days=37), until=NOW - timedelta(days=30)), limit=50
    ),
    "with a title": lambda catalog: catalog.sessions(Filter(title="part 4711"), limit=50),
    "count": lambda catalog: catalog.count(Filter(project="projects/29")),
    "choices": lambda catalog: catalog.choices(),
}
HOME: Mapping[str, Question] = {
    "home": lambda catalog: home_page._read_home(catalog, NOW.astimezone(), helps_setup=False),
    "costs of 30 days": lambda catalog: home_page._read_selected(catalog, NOW.date(), 30, "model"),
}
SEARCHES = {
    "in most texts": word_of(1),
    "two in most texts": f"{word_of(1)} {word_of(2)}",
    "in every hundredth": word_of(300),
    "in every ten thousandth": word_of(30_000),
    "in few": word_of(199_000),
    "in none": "nowhere",
    "four words": " ".join(map(word_of, (3, 50, 700, 9_000))),
    "phrase of frequent words": f'"{word_of(1)} {word_of(3)}"',
    "phrase of rare words": f'"{word_of(900)} {word_of(4_000)}"',
    "beginning": f"{word_of(5_000)[:3]}*",
    "in a project": f"{word_of(300)} project:projects/29",
    "failed calls": "is:error",
    "failed calls with a word": f"is:error {word_of(2_000)}",
}


def search(words: str, catalog: Catalog) -> object:
    return catalog.search(words)


def milliseconds(question: Question, catalog: Catalog, runs: int) -> list[float]:
    times = []
    for _ in range(runs):
        start = time.perf_counter()
        question(catalog)
        times.append((time.perf_counter() - start) * 1000)
    return times


def measure(figures: Figures, name: str, questions: Mapping[str, Question], catalog: Catalog) -> None:
    every: list[float] = []
    for kind, question in questions.items():
        question(catalog)
        times = milliseconds(question, catalog, max(5, RUNS // len(questions)))
        print(f"{name}: {kind:28} {sorted(times)[len(times) // 2]:8.1f} ms, most {max(times):8.1f}", flush=True)
        every += times
    figures.add(f"{name}, p95", quantiles(every, n=20)[-1], "ms", at_most=300)


@contextmanager
def filled(server: PostgresServer, sessions: int, responses: int) -> Iterator[Catalog]:
    with server.new_database() as name:
        database = PostgresDatabase(server.url(name))
        migrate(database)
        fill(database, sessions, responses)
        (size,) = database.execute("SELECT pg_database_size(current_database())").fetchone()
        print(f"\n{sessions:,} sessions, {responses:,} responses: {size / 1e9:.2f} GB")
        database.close()
        with Catalog(Path("/nowhere"), engine=PostgresEngine(server.url(name))) as catalog:
            yield catalog


def main() -> int:
    parser = arguments_parser(__doc__)
    parser.add_argument("--sessions", type=int, default=100_000)
    parser.add_argument("--responses", type=int, default=5_000_000)
    arguments = parser.parse_args()
    figures = Figures("postgres")
    with running_server(SETTINGS) as server, filled(server, arguments.sessions, arguments.responses) as catalog:
        measure(figures, "list", LISTS, catalog)
        measure(figures, "home", HOME, catalog)
        measure(figures, "search", {kind: partial(search, words) for kind, words in SEARCHES.items()}, catalog)
    return figures.finish(write=arguments.write)


if __name__ == "__main__":
    sys.exit(main())
