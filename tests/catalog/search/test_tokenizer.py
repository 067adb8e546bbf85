"""The words of a text are those that FTS5 finds in it."""

from collections.abc import Iterator
from contextlib import closing

import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from agent_logger.catalog.search.index import add_words, create_words
from agent_logger.catalog.search.texts import Text
from agent_logger.catalog.search.tokenizer import LONGEST_WORD, PIECE_END, PIECE_WORDS, fts5_text, pieces_of, words_of
from agent_logger.catalog.sqlite.database import SqliteDatabase, open_in_memory
from agent_logger.catalog.sqlite.schema import TEXT_INDEX

TEXTS = st.text(
    st.one_of(
        st.sampled_from("aZ_0 .\x00\n\u0301\u00e9\u1e0b\u0130\u6f22\u304b\u3099\ud55c\U0001f98a\U00020000\ue000\u2028"),
        st.characters(exclude_categories=["Cs"]),
    ),
    max_size=60,
)


def fts5_words(database: SqliteDatabase, *texts: str) -> list[str]:
    """Return the words of the index of these texts, in their order."""
    create_words(database, "main", "words")
    database.execute("CREATE VIRTUAL TABLE places USING fts5vocab(words, instance)")
    add_words(database, "words", [Text(1, 1, 1, 1, text=text) for text in texts], 1)
    words = [word for (word,) in database.execute("SELECT term FROM places ORDER BY doc, offset")]
    database.executescript("DROP TABLE places; DROP TABLE words")
    return words


@pytest.fixture(scope="module")
def database() -> Iterator[SqliteDatabase]:
    with closing(open_in_memory(TEXT_INDEX)) as database:
        yield database


@given(text=TEXTS)
@example(text="x" * (LONGEST_WORD - 1) + "\u00e9z rest")
@example(text="x" * LONGEST_WORD + "y rest")
def test_words_are_those_of_the_index(database: SqliteDatabase, text: str) -> None:
    assert [word.decode("utf-8", "replace") for word in words_of(text)] == fts5_words(database, text)


def test_every_character_is_spelled_as_in_the_index(database: SqliteDatabase) -> None:
    characters = [chr(number) for number in range(0x30000) if not 0xD800 <= number < 0xE000]
    texts = [f"q{character}q {character}" for character in characters]
    expected = [word.decode() for text in texts for word in words_of(text)]
    assert expected == fts5_words(database, *texts)


@pytest.mark.parametrize("filler", ["word ", "Ünd-", "漢"], ids=["ascii", "accents", "unspaced"])
@pytest.mark.parametrize("words", [PIECE_WORDS - 1, PIECE_WORDS, PIECE_WORDS + 1, 3 * PIECE_WORDS])
def test_pieces_end_at_the_same_words_in_both_indexes(database: SqliteDatabase, filler: str, words: int) -> None:
    text = filler * words
    pieces = [[word.decode() for word in piece] for piece in pieces_of(text)]
    assert [len(piece) for piece in pieces[:-1]] == [PIECE_WORDS] * (len(pieces) - 1)
    assert sum(map(len, pieces)) == words
    indexed = " ".join(fts5_words(database, text)).removesuffix(PIECE_END).split(PIECE_END)
    assert [piece.split() for piece in indexed] == pieces


def test_a_text_that_is_one_piece_is_indexed_as_it_is() -> None:
    text = "a;b " * (PIECE_WORDS // 4)
    assert fts5_text(text) is text
    assert PIECE_END in fts5_text(5 * text)
