"""The search index finds the same texts in SQLite and in PostgreSQL."""

from collections.abc import Iterator, Sequence
from contextlib import closing
from dataclasses import dataclass

import pytest
from hypothesis import HealthCheck, example, given, settings
from hypothesis import strategies as st

from agent_logger.catalog.postgres.connection import PostgresDatabase
from agent_logger.catalog.postgres.migrations import migrate
from agent_logger.catalog.postgres.texts import PostgresTextIndex
from agent_logger.catalog.postgres.words import CHUNK
from agent_logger.catalog.search.index import SqliteTextIndex
from agent_logger.catalog.search.query import Term, read
from agent_logger.catalog.search.text_index import IndexedSession, Scope, TextIndex, TextPosition
from agent_logger.catalog.search.texts import INPUT, NO_TURN, TEXT, TOOL, Text
from agent_logger.catalog.search.tokenizer import PIECE_WORDS
from agent_logger.catalog.sqlite.database import open_in_memory
from agent_logger.catalog.sqlite.schema import TEXT_INDEX
from agent_logger.files.stored_text import storable
from tests.hostile import HOSTILE

pytestmark = pytest.mark.needs("postgresql")

EVERYWHERE = Scope()
FlatHit = tuple[TextPosition, int, int, int, bool, int]


@dataclass(frozen=True)
class Indexes:
    sqlite: SqliteTextIndex
    postgres: PostgresTextIndex

    def __iter__(self) -> Iterator[TextIndex]:
        return iter((self.sqlite, self.postgres))

    def fill(self, entries: Sequence[IndexedSession], gone: Sequence[str] = ()) -> None:
        for index in self:
            index.index(entries, gone)

    def clear(self) -> None:
        for index in self:
            index.index([], list(index.stamps()))

    def search(self, typed: str, scope: Scope = EVERYWHERE, limit: int = 1000) -> list[FlatHit]:
        """Return the places of hits, which are the same in both."""
        terms = read(typed).match
        sqlite, postgres = (_places(index, terms, scope, limit) for index in self)
        assert postgres == sqlite, typed
        return sqlite


def _places(index: TextIndex, terms: Sequence[Term], scope: Scope, limit: int) -> list[FlatHit]:
    hits = index.matches(terms, scope, limit) if terms else index.failed_calls(scope, limit)
    return sorted(
        (place, hit.kind, hit.at, hit.until, bool(hit.error), hit.hash) for hit in hits for place in hit.places
    )


@pytest.fixture
def indexes(postgres_url: str) -> Iterator[Indexes]:
    with closing(open_in_memory(TEXT_INDEX)) as sqlite, closing(PostgresDatabase(postgres_url)) as postgres:
        migrate(postgres)
        yield Indexes(SqliteTextIndex(sqlite), PostgresTextIndex(postgres))


def text(content: str, *, at: int = 1, turn: int = 0, tool: str = "", file: str = "", error: bool = False) -> Text:
    kind = TOOL if tool else INPUT if turn == NO_TURN else TEXT
    return Text(1, turn, kind, at, at + 1 if tool else 0, error, content, tool, file)


def session(name: str, *texts: Text, stamp: str = "1") -> IndexedSession:
    return IndexedSession(name, stamp, texts)


WORDS = ["a", "b", "ab", "the", "Größe", "grosse", "groSSe", "漢", "漢字", "かな", "한국", "\U0001f98a", "e\u0301", "É"]
WORDS += ["\x00", "_x", "x_1", "1", "1.5", "don't", "C++", "\u19b0", "\u3099", "\ue000", "q" * CHUNK, "q" * (CHUNK - 1)]
WORDS += ["q" * (CHUNK + 1), "q" * (2 * CHUNK), "İ", "ß", "\U00020000", "...", "\u2028", "'", "\\", "%", "&", "|", "!"]
words = st.lists(st.one_of(st.sampled_from(WORDS), st.text(max_size=4).map(storable)), max_size=12)
contents = st.builds(lambda words, between: between.join(words), words, st.sampled_from([" ", "", "-", "\n"]))
texts = st.builds(
    text,
    contents,
    at=st.integers(0, 3),
    turn=st.integers(NO_TURN, 2),
    tool=st.sampled_from(["", "", "Bash", "mcp__a__b", "漢"]),
    file=st.sampled_from(["", "/a/b.py", "src/login.py /a/the", "漢字.txt"]),
    error=st.booleans(),
)
terms = st.builds(
    lambda field, word, quoted, star: field + (f'"{word}"' if quoted else word) + star,
    st.sampled_from(["", "", "", "tool:", "file:"]),
    contents,
    st.booleans(),
    st.sampled_from(["", "", "*"]),
)
queries = st.lists(terms, max_size=3).map(" ".join)
scopes = st.builds(
    Scope,
    st.sampled_from([None, None, "[]", '["1"]', '["1", "2"]']),
    st.sampled_from([None, 0, 1, 2]),
    st.sampled_from([None, 0, 1, 3]),
    st.booleans(),
)


@settings(max_examples=150, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(st.lists(st.lists(texts, max_size=4), min_size=1, max_size=3), st.lists(queries, min_size=1, max_size=8), scopes)
@example([[text("of the, of")]], ['"of the of"', '"the of the"', '"of of"'], Scope())
def test_every_query_has_the_same_hits(
    indexes: Indexes, contents: list[list[Text]], typed: list[str], scope: Scope
) -> None:
    indexes.clear()
    indexes.fill([session(str(number), *texts) for number, texts in enumerate(contents, 1)])
    for query in typed:
        try:
            read(query)
        except ValueError:
            continue
        indexes.search(query, scope)


def test_hostile_texts_and_queries_have_the_same_hits(indexes: Indexes) -> None:
    indexes.fill([session(str(number), text(storable(content))) for number, content in enumerate(HOSTILE)])
    for typed in HOSTILE:
        try:
            read(typed)
        except ValueError:
            continue
        indexes.search(typed)


LONG = "word " * (PIECE_WORDS - 1)


@pytest.mark.parametrize(
    ("content", "typed", "hits"),
    [
        pytest.param(LONG + "edge over", '"edge over"', 0, id="a phrase does not cross pieces"),
        pytest.param(LONG + "edge over", "edge over", 1, id="words of two pieces"),
        pytest.param(LONG + "edge over", '"word edge"', 1, id="the end of a piece"),
        pytest.param("x y " + LONG + LONG + "edge over it", '"edge over it"', 1, id="a phrase in the last piece"),
        pytest.param("a b " * 3000 + "a c", '"a c"', 1, id="a word more than 256 times"),
        pytest.param("a b " * 3000, '"a c"', 0, id="no such phrase of a frequent word"),
        pytest.param("漢字" * 3000 + "字漢漢", '"字漢漢"', 1, id="unspaced, more than 256 times"),
        pytest.param("z" * 40_000 + "y", "z" * 40_000, 1, id="FTS5 has the beginning of a very long word"),
        pytest.param("z" * 32_768 + "y", "z" * 32_767, 0, id="a very long word and a shorter one"),
        pytest.param("z" * 30_000, "z" * 20_000 + "*", 1, id="the beginning of a long word"),
        pytest.param("z" * CHUNK + " y", f'"{"z" * CHUNK} y"', 1, id="a phrase with a long word"),
        pytest.param("z" * CHUNK + "a y", "z" * CHUNK, 0, id="not the beginning of a long word"),
    ],
)
def test_long_texts_have_the_same_hits(indexes: Indexes, content: str, typed: str, hits: int) -> None:
    indexes.fill([session("1", text(content))])
    assert len(indexes.search(typed)) == hits


def test_a_text_with_more_words_than_a_tsvector_takes_is_found(indexes: Indexes) -> None:
    content = " ".join(f"\U00010330{number:x}" for number in range(120_000))
    indexes.fill([session("1", text(content, tool="Bash")), session("2", text("other", tool="Bash"))])
    for typed, hits in [
        ("\U00010330abc", 1),
        ("\U00010330fffff", 0),
        ("\U00010330abc* tool:Bash", 1),
        ("tool:Bash", 2),
        ("tool:Read", 0),
        (f'"{chr(0x10330)}a {chr(0x10330)}b"', 1),
        (f'"{chr(0x10330)}a {chr(0x10330)}c"', 0),
        ("other", 1),
    ]:
        assert len(indexes.search(typed)) == hits, typed


# ---------------------------------------------------------------- changes


NAMES = ["1", "2", "3"]
versions = st.tuples(st.sampled_from(NAMES), st.lists(texts, max_size=5))
changes = st.one_of(versions, st.sampled_from(NAMES))  # texts of a session from now on; or one that is removed


@settings(max_examples=60, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(st.lists(changes, max_size=8), st.lists(queries, min_size=1, max_size=4))
@example([("1", [text("again")]), ("2", [text("again")]), ("1", [text("again"), text("again")])], ["again"])
def test_sessions_that_change_or_go_have_the_same_hits(
    indexes: Indexes, changes: list[tuple[str, list[Text]] | str], typed: list[str]
) -> None:
    indexes.clear()
    current: dict[str, list[Text]] = {}
    for change in changes:
        if isinstance(change, str):
            current.pop(change, None)
            for index in indexes:
                index.erase([change])
        else:
            name, texts = change
            current[name] = texts
            relatives = [other for other in NAMES if other != name]
            indexes.fill([IndexedSession(name, "1", texts, relatives)])
        for name in current.keys() - indexes.sqlite.stamps().keys():  # an erased session had words in their shard
            indexes.sqlite.index([session(name, *current[name])])
    assert indexes.postgres.stamps().keys() == current.keys()
    for query in typed:
        try:
            hits = indexes.search(query)
        except ValueError:
            continue
        assert {hit[0][0] for hit in hits} <= current.keys()


def test_a_session_that_grows_is_read_from_where_it_had_ended(indexes: Indexes) -> None:
    first, second, third = (text(f"one number{turn}", at=turn, turn=turn) for turn in range(3))
    others = [text(f"beside {number}") for number in range(10)]  # SQLite drops an index of which a fifth is dead
    indexes.fill([session("1", first, second), session("2", *others)])
    indexes.fill([IndexedSession("1", "2", [second, third], since=(1, 1), mark=b"here")])
    assert [hit[0].turn for hit in indexes.search("one")] == [0, 1, 2]
    assert indexes.postgres.marks() == indexes.sqlite.marks() == {"1": b"here"}
    assert indexes.postgres.stamps() == {"1": "2", "2": "1"}
    indexes.fill([IndexedSession("1", "3", [third], since=(1, 1))])
    assert [hit[0].turn for hit in indexes.search("one")] == [0, 2]
    assert indexes.postgres.first_turns("1", [1, 2]) == indexes.sqlite.first_turns("1", [1, 2]) == {1: 0}


def test_no_word_of_an_erased_session_is_left(indexes: Indexes) -> None:
    indexes.fill([session("1", text("secret"), text("other", at=2)), session("2", text("other"))])
    indexes.postgres.erase(["1"])
    connection = indexes.postgres.database.connection
    tables = [name for (name,) in connection.execute("SELECT relname FROM pg_class WHERE relname ~ '^texts_[0-9]+$'")]
    rows = [words for name in tables for (words,) in connection.execute(f"SELECT words FROM {name}".encode())]
    assert rows == ["other"]


def test_the_newest_hits_come_first_with_those_of_forks_in_one(indexes: Indexes) -> None:
    connection = indexes.postgres.database.connection
    connection.execute(
        """
        DO $$ DECLARE name text; BEGIN
            FOR name IN SELECT attname FROM pg_attribute WHERE attrelid = 'sessions'::regclass AND attnum > 0 LOOP
                IF name NOT IN ('id', 'family') THEN
                    EXECUTE format('ALTER TABLE sessions ALTER %I DROP NOT NULL', name);
                END IF;
            END LOOP;
        END $$
        """
    )
    forks = [str(number) for number in range(40)]
    for number, name in enumerate(forks):
        connection.execute("INSERT INTO sessions (id, family) VALUES (%s, 'family')", (name,))
        indexes.postgres.index([session(name, text("same", at=5), text("same", at=number, turn=1))])
    indexes.postgres.index([session("other", text("same", at=5))])
    hits = indexes.postgres.matches(read("same").match, Scope(), 3)
    assert [(hit.at, len(hit.places)) for hit in hits] == [(39, 1), (38, 1), (37, 1)]
    hits = indexes.postgres.matches(read("same").match, Scope(until=6), 3)
    assert [(hit.at, len(hit.places)) for hit in hits] == [(5, 41), (5, 1), (4, 1)]
