"""Search: what is there is found, at its place; what is not there is not; whatever is typed."""

import json
import random
import re
import time
from contextlib import closing
from datetime import UTC, datetime, timedelta
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from agent_logger import Catalog, Filter, Hit
from agent_logger.catalog import background
from agent_logger.catalog.search import index
from agent_logger.catalog.search.index_lock import indexing
from agent_logger.catalog.search.query import EXAMPLES, read
from agent_logger.catalog.search.snippets import in_files
from agent_logger.catalog.search.text_index import IndexHit, TextPosition
from agent_logger.catalog.sqlite.database import open_database
from agent_logger.catalog.sqlite.schema import TEXT_INDEX
from agent_logger.files import foreign
from agent_logger.home.facts import register_log_folder
from tests.catalog.catalogs import ID, assistant, claude_file, made_anew, sqlite_of, tool, user
from tests.hostile import HOSTILE
from tests.journal.wire_logs import calls, start
from tests.journal.wire_logs import write as write_log

ONE, TWO = ID.format(1), ID.format(2)
KEY = "sk-ant-api03-" + "Qz7" * 20


@pytest.fixture
def catalog(home: Path) -> Catalog:
    claude_file(
        home,
        ONE,
        [
            user(1, "Fix the login timer, please", ONE),
            *tool(2, ONE, "Bash", {"command": "pytest -k timer"}, "connection refused by host", failed=True),
            *tool(4, ONE, "Read", {"file_path": "/p/shop/src/login.py"}, "def login(user): pass"),
            assistant(6, "The timer was never started. Größe café", ONE),
        ],
    )
    claude_file(
        home,
        TWO,
        [
            {**user(50, f"host of the other shop, the key is {KEY}", TWO), "cwd": "/p/other"},
            {**assistant(51, "refused: connection to host", TWO), "cwd": "/p/other"},
        ],
        "-p-other",
    )
    return Catalog.open(home / ".agent-logger")


def found(catalog: Catalog, typed: str) -> list[tuple[str, int | None]]:
    return sorted({(it.session[7], it.turn) for it in catalog.search(typed)}, key=str)


QUERIES = [
    ("timer", [("1", 0), ("1", 2), ("1", None)]),
    ("TIMER", [("1", 0), ("1", 2), ("1", None)]),
    ("timer login", [("1", None)]),
    ('"connection refused"', [("1", 0)]),
    ("connection refused", [("1", 0), ("2", 0)]),
    ("start*", [("1", 2)]),
    ("start", []),
    ("timer tool:Bash", [("1", 0)]),
    ("tool:bash", [("1", 0)]),
    ("tool:Read timer", []),
    ("file:login.py", [("1", 1)]),
    ("file:src/login.py", [("1", 1)]),
    ("file:logout.py", []),
    ("is:error", [("1", 0)]),
    ("is:error refused", [("1", 0)]),
    ("is:error timer project:other", []),
    ("host project:other", [("2", 0), ("2", None)]),
    ("host agent:codex", []),
    ("host agent:Claude-Code", [("1", 0), ("2", 0), ("2", None)]),
    ("größe", [("1", 2)]),
    ("cafe", [("1", 2)]),
    ("nothing-of-this", []),
    ("timer AND login", []),
    ('"connection refused', [("1", 0)]),
    ('timer "login', [("1", None)]),
    ('tool:"Bash', [("1", 0)]),
    ("", []),
]


@pytest.mark.parametrize(("typed", "places"), QUERIES)
def test_queries_find_the_expected_places(catalog: Catalog, typed: str, places: list[tuple[str, int | None]]) -> None:
    assert found(catalog, typed) == places


def test_a_hit_has_its_place_a_snippet_and_marked_words(catalog: Catalog) -> None:
    (hit,) = catalog.search('"connection refused"')
    assert (hit.session, hit.title, hit.exchange, hit.turn) == (ONE, "Fix the login timer, please", 1, 0)
    session = catalog.session(hit.session)
    assert session and hit.turn is not None
    assert "connection refused by host" in [block.text for block in session.turns[hit.turn].blocks]
    assert [hit.snippet[low:high] for low, high in hit.marks] == ["connection refused"]
    typed = next(it for it in catalog.search("login timer") if it.turn is None)
    assert (typed.kind, typed.snippet) == ("input", "Fix the login timer, please")
    assert [typed.snippet[low:high] for low, high in typed.marks] == ["login", "timer"]


@pytest.mark.parametrize("typed", ["tool:", "timer file:", 'project:""', "agent:", "tool:**", 'file:"', "is:"])
def test_a_field_without_a_value_is_an_error_with_an_example(catalog: Catalog, typed: str) -> None:
    with pytest.raises(ValueError, match=r"^[a-z]+: needs a value, for example [a-z]+:[A-Za-z.-]+$"):
        catalog.search(typed)


def test_an_unknown_value_of_the_is_field_is_an_error(catalog: Catalog) -> None:
    with pytest.raises(ValueError, match="unknown filter is:warning"):
        catalog.search("is:warning")


def test_a_hit_without_search_words_shows_the_tool_input(home: Path, catalog: Catalog) -> None:
    lines = "def total(cart):\n    return {}\n"
    edit = {
        "file_path": "/p/cart.py",
        "old_string": lines.format("0"),
        "new_string": lines.format("sum(cart)"),
    }
    claude_file(home, ONE, tool(20, ONE, "Edit", {**edit, "replace_all": False}, "The file was updated."))
    (hit,) = catalog.search("tool:Edit")
    assert hit.snippet == "/p/cart.py return sum(cart) The file was updated."
    (hit,) = catalog.search("is:error")
    assert hit.snippet == "pytest -k timer connection refused by host"
    (hit,) = catalog.search("file:login.py")
    assert hit.snippet == "/p/shop/src/login.py def login(user): pass"


UNSPACED = [
    ("登录", ["登录"]),
    ("超时", ["超时"]),
    ("录超", ["录超"]),
    ("时超", []),
    ("登*", ["登"]),
    ('"登录超时"', ["登录超时"]),
    ("超时 login", ["超时", "login"]),
    ("login登录", []),
    ("timer", ["timer"]),
    ("サーバー", ["サーバー"]),
    ("バー", ["バー"]),
    ("서버", ["서버"]),
    ("file:登录.py", []),
]


@pytest.mark.parametrize(("typed", "marked"), UNSPACED)
def test_words_are_found_in_text_without_spaces(home: Path, catalog: Catalog, typed: str, marked: list[str]) -> None:
    said = "用户登录超时了 (login), サーバーが遅い。 웹서버가 느려요 𠀀 用timer时"
    claude_file(home, ONE, [assistant(30, said, ONE)])
    hits = [hit for hit in catalog.search(typed) if hit.at and hit.at.second == 30]
    assert [hit.snippet[low:high] for hit in hits for low, high in hit.marks] == marked
    assert all(hit.snippet == said for hit in hits)


def test_keys_are_neither_indexed_nor_shown(catalog: Catalog) -> None:
    assert catalog.search("Qz7Qz7*") == catalog.search(KEY) == []
    (hit,) = catalog.search('"the key is"')
    assert "Qz7Qz7" not in hit.snippet
    assert KEY.encode() not in (catalog.home / "catalog-text.db").read_bytes()
    for path in catalog.home.glob("catalog*"):
        assert b"qz7qz7" not in path.read_bytes().lower(), path


def test_arbitrary_input_is_searched_as_words(catalog: Catalog) -> None:
    assert len(set(HOSTILE)) >= 200
    every = {(it.session, it.turn, it.kind) for it in _all(catalog)}
    for typed in HOSTILE:
        try:
            hits = catalog.search(typed, limit=1000)
        except ValueError as error:
            assert "needs a value" in str(error) or "unknown filter" in str(error), typed
            continue
        assert {(it.session, it.turn, it.kind) for it in hits} <= every, typed
        words = [it.words[0].lower() for it in read(typed).match if not it.field]
        for hit in hits:  # no extra row: each has every word that was asked for
            text = _text_of(catalog, hit).lower()
            assert all(word in text for word in words if word.isascii()), typed
        for wanted in (Filter(title=typed), Filter(project=typed), Filter(model=typed), Filter(agent=typed)):
            assert len(catalog.sessions(wanted)) <= 2
        assert catalog.resolve(typed) == [] or typed == "0"
    assert len(catalog.sessions()) == 2


def _all(catalog: Catalog) -> list[Hit]:
    return [hit for word in ("timer", "host", "refused", "login") for hit in catalog.search(word, limit=1000)]


def _text_of(catalog: Catalog, hit: Hit) -> str:
    session = catalog.session(hit.session)
    assert session
    if hit.turn is None:
        return session.exchanges[hit.exchange - 1].user_input or ""
    return " ".join(f"{it.text} {it.input}" for it in session.turns[hit.turn].blocks)


@given(st.text())
def test_a_parsed_query_is_always_valid_for_the_index(typed: str) -> None:
    try:
        asked = read(typed)
    except ValueError as error:
        assert any(f"{name}:" in str(error) for name in EXAMPLES)
        return
    assert all(it.words and '"' not in "".join(it.words) for it in asked.match)
    assert "\0" not in "".join(word for it in asked.match for word in it.words)


def test_a_new_text_is_added_without_indexing_the_others_again(home: Path, catalog: Catalog) -> None:
    catalog.index()
    rows = sqlite_of(catalog).text_database().execute("SELECT index_row, hash FROM texts ORDER BY index_row").fetchall()
    claude_file(home, ONE, [assistant(9, "and a zebra", ONE)])
    catalog.refresh()
    assert found(catalog, "zebra") == [("1", 3)]
    after = (
        sqlite_of(catalog).text_database().execute("SELECT index_row, hash FROM texts ORDER BY index_row").fetchall()
    )
    assert after[: len(rows)] == rows
    assert len(after) == len(rows) + 1


def test_deleted_texts_are_not_found_and_their_shard_is_rebuilt(home: Path, catalog: Catalog) -> None:
    assert found(catalog, "host")
    (home / ".claude/projects/-p-other" / f"{TWO}.jsonl").unlink()
    catalog.refresh()
    assert found(catalog, "shop project:other") == found(catalog, '"other shop"') == []
    assert found(catalog, "timer") == [("1", 0), ("1", 2), ("1", None)]
    shards = sqlite_of(catalog).text_database().execute("SELECT rows, dead_rows FROM shards").fetchall()
    assert shards == [(4, 0)]


def test_many_shards_are_searched_as_one(catalog: Catalog, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(index, "SHARD_TEXT_BYTES", 10)
    monkeypatch.setattr("agent_logger.catalog.search.search.BATCH_BYTES", 1)
    catalog.index()
    assert len(sqlite_of(catalog).text_database().execute("SELECT id FROM shards").fetchall()) == 2
    for typed, places in QUERIES:
        assert found(catalog, typed) == places, typed


def test_newer_hits_come_first_among_equals(home: Path, catalog: Catalog) -> None:
    lines = [assistant(number, "the same zebra", ID.format(9)) for number in (60, 7000, 3600)]
    claude_file(home, ID.format(9), lines)
    times = [hit.at for hit in catalog.search("zebra") if hit.at]
    assert len(times) == 3
    assert times == sorted(times, reverse=True)


def test_sessions_recorded_only_on_the_wire_are_found(home: Path, catalog: Catalog) -> None:
    write_log(home / "logs" / "anthropic", "log", [start("log"), *calls(1, 2)])
    register_log_folder(catalog.home, home / "logs")
    (hit,) = [it for it in catalog.search("banana") if it.kind == "input"]
    assert hit.session == "log"
    assert "BANANA" in hit.snippet


def test_the_files_of_a_session_are_read_once_for_all_its_hits(home: Path, catalog: Catalog) -> None:
    write_log(home / "logs" / "anthropic", "log", [start("log"), *calls(1, 2, 3)])
    register_log_folder(catalog.home, home / "logs")
    catalog.index()
    read = []
    for words, count in (("still", 1), ("banana", 4)):
        before = foreign.work.bytes
        assert len(catalog.search(words)) == count
        read.append(foreign.work.bytes - before)
    assert read[0] == read[1] > 0


def test_coverage_is_reported_and_a_running_indexer_is_not_duplicated(home: Path, catalog: Catalog) -> None:
    catalog.refresh()
    assert catalog.coverage.done == 0 < catalog.coverage.total
    with indexing(catalog.home) as mine:
        assert mine
        assert not catalog.index()
        assert catalog.search("timer") == []
        assert catalog.coverage.done == 0
    assert catalog.index()
    assert catalog.coverage.is_whole
    assert found(catalog, "timer")
    claude_file(home, TWO, [assistant(60, "more", TWO)], "-p-other")
    catalog.refresh()
    assert catalog.coverage.done < catalog.coverage.total


def test_the_index_is_filled_by_a_background_process(catalog: Catalog) -> None:
    catalog.refresh()
    assert background.start(catalog.homes, None)
    until = time.monotonic() + 60
    while not catalog.coverage.is_whole and time.monotonic() < until:
        time.sleep(0.05)
    assert catalog.coverage.is_whole


def test_indexing_stops_at_its_time_limit(home: Path, catalog: Catalog) -> None:
    for number in range(20, 60):
        claude_file(home, ID.format(number), [assistant(number, "word " * 1000, ID.format(number))])
    catalog.refresh()
    assert not catalog.index(seconds=0)
    assert 0 < catalog.coverage.done < catalog.coverage.total
    assert catalog.index()


def test_an_index_with_an_unreleased_schema_is_rebuilt(catalog: Catalog) -> None:
    catalog.refresh()
    catalog.close()
    with closing(open_database(catalog.home / "catalog-text.db", TEXT_INDEX)) as database:
        database.execute("CREATE VIRTUAL TABLE words_1 USING fts5 (text, tool, file, content = '')")
        database.execute("INSERT INTO words_1 (rowid, text) VALUES (1, 'zebra')")
        database.execute("INSERT INTO shards VALUES (1, 1, 0, 5, 2)")
        database.execute("INSERT INTO indexed_sessions VALUES (1, ?, 'stamp', NULL)", (ONE,))
        database.execute("DROP TABLE texts")
        database.execute("CREATE TABLE texts (id INTEGER PRIMARY KEY, session INTEGER)")
    assert found(catalog, "zebra") == []
    assert found(catalog, '"connection refused"') == [("1", 0)]
    assert catalog.problem is None
    assert sqlite_of(catalog).text_database().execute("SELECT id, dead_rows FROM shards").fetchall() == [(1, 0)]


def test_lines_are_found_by_time_in_sorted_and_unsorted_files(tmp_path: Path) -> None:
    path, numbers = tmp_path / "a.jsonl", [*range(600), 5, 7]
    random.Random(3).shuffle(numbers)
    times = [datetime(2026, 11, 15, tzinfo=UTC) + timedelta(seconds=it) for it in numbers]
    lines = [
        {"timestamp": f"{time:%Y-%m-%dT%H:%M:%S}.000Z", "text": f"word{number} {'x' * 900}"}
        for number, time in zip(numbers, times, strict=True)
    ]
    for ordered in (lines, sorted(lines, key=lambda it: it["timestamp"])):
        path.write_text("".join(json.dumps(it, separators=(",", ":")) + "\n" for it in ordered))
        for number in (0, 5, 299, 599):
            at = 1000 * round(datetime(2026, 11, 15, tzinfo=UTC).timestamp() + number)
            hit = IndexHit((TextPosition("s", 1, 0),), kind=1, at=at, until=0, error=False, hash=0, rank=0.0)
            found = in_files(hit, [path], [re.compile(f"word{number}")])
            assert found and found.text.startswith(f"word{number} ")


def test_text_copied_by_a_fork_is_found_once_in_the_original_session(home: Path, catalog: Catalog) -> None:
    first, fork = ID.format(5), ID.format(3)
    said = [user(1, "count the zebras", first), assistant(2, "nine zebras", first)]
    claude_file(home, first, said)
    claude_file(home, fork, [*({**line, "sessionId": fork} for line in said), assistant(9, "a zebra", fork)])
    for asked in (catalog, made_anew(catalog.home, home / "other")):
        hits = {(it.session, it.turn): it.forks for it in asked.search("zebra*")}
        assert hits == {(first, None): (fork,), (first, 0): (fork,), (fork, 1): ()}
        assert [it.snippet for it in asked.search("nine")] == ["nine zebras"]
        assert [it.session for it in asked.search("is:error")] == [ONE]
    rows = (
        sqlite_of(catalog).text_database().execute("SELECT count(*), count(DISTINCT index_row) FROM texts").fetchone()
    )
    assert rows[0] - rows[1] == 2


def test_text_copied_by_a_fork_is_found_in_the_fork_after_the_original_is_gone(home: Path, catalog: Catalog) -> None:
    fork = ID.format(3)
    lines = [user(1, "count the zebras", ID.format(4)), assistant(2, "nine zebras", ID.format(4))]
    path = claude_file(home, ID.format(4), lines)
    claude_file(home, fork, [{**line, "sessionId": fork} for line in lines])
    (hit,) = catalog.search("nine")
    assert {hit.session, *hit.forks} == {ID.format(4), fork}
    path.unlink()
    catalog.refresh()
    (hit,) = catalog.search("nine")
    assert (hit.session, hit.forks, hit.snippet) == (fork, (), "nine zebras")
    catalog.remove(fork)
    assert catalog.search("nine") == []


def test_a_third_shard_follows_the_second(home: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Whatever the number of texts in each."""
    for number in range(1, 6):
        lines = [
            assistant(10 * number + at, f"zebra {at} " + "word " * 2000, ID.format(number)) for at in range(9 - number)
        ]
        claude_file(home, ID.format(number), lines)
    monkeypatch.setattr(index, "SHARD_TEXT_BYTES", 10)
    monkeypatch.setattr("agent_logger.catalog.search.search.BATCH_BYTES", 1)
    with Catalog.open(home / ".agent-logger") as catalog:
        assert catalog.index()
        shards = [
            number for (number,) in sqlite_of(catalog).text_database().execute("SELECT id FROM shards ORDER BY id")
        ]
        assert shards == [1, 2, 3, 4, 5]
        assert len(catalog.search("zebra", limit=100)) == sum(9 - number for number in range(1, 6))


def test_reading_details_reports_how_far_it_has_come(catalog: Catalog) -> None:
    told: list[tuple[int, int]] = []
    catalog.refresh()
    assert catalog.read_details(progress=lambda done, total: told.append((done, total)))
    assert told and told[-1][0] == told[-1][1] > 0
    assert not catalog.read_details(progress=lambda done, total: told.append((done, total)))
