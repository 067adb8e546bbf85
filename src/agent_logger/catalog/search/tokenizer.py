"""The words of the search index.

They are what SQLite's FTS5 makes of a text: letters, digits and `_`, in lower case, Latin letters without accents.
Chinese and Japanese have no blanks between words, and Korean joins others to them. There each character is a word of
its own, in the index as in a query, and a word of several is a phrase.

A long text is cut into pieces, and a phrase does not extend over two of them: other databases can tell the places of so
many words in one piece, and no more.
"""

import re
import sqlite3
from collections.abc import Iterator, Sequence
from contextlib import closing

PIECE_WORDS = 8_000
LONGEST_WORD = 32_768  # bytes; FTS5 drops the rest

# Kana, ideographs (also the rare ones), Hangul, and the half and full forms of these.
_RANGES = (
    "\u3005-\u3007\u3040-\u30ff\u31f0-\u31ff\u3400-\u4dbf\u4e00-\u9fff\uac00-\ud7a3\uf900-\ufaff\uff66-\uff9d"
    "\U00020000-\U0003ffff"
)
UNSPACED = re.compile(f"[{_RANGES}]")
BEGIN, END = rf"(?<![^\W{_RANGES}])", rf"(?![^\W{_RANGES}])"  # the edges of a word of other scripts, as `\b` is for all


def space_words(text: str) -> str:
    """Put blanks around each such character."""
    if text.isascii() or not text.encode("utf-8", "replace").translate(None, _BEFORE):
        return text
    return UNSPACED.sub(r" \g<0> ", text)


# These characters begin with higher bytes: a dash or a tick must not cost a search.
_BEFORE = bytes(range(0xE3))


# ---------------------------------------------------------------- words and pieces


def words_of(text: str) -> list[bytes]:
    """Return the words in UTF-8, as they are in the index."""
    if not text.isascii():
        text = _NOT_ASCII.sub(lambda run: run[0].translate(_characters), text)
    words = text.encode("utf-8", "replace").translate(_LOWER).split()
    return words if len(text) < LONGEST_WORD else [word[:LONGEST_WORD] for word in words]


def pieces_of(text: str) -> list[list[bytes]]:
    """Return the words of each piece."""
    words = words_of(text)
    return [words[start : start + PIECE_WORDS] for start in range(0, len(words), PIECE_WORDS)]


def fts5_text(text: str) -> str:
    """Return what FTS5 finds the same words in, and no phrase that extends over two pieces."""
    if _most_words(text) <= PIECE_WORDS:
        return space_words(text)
    if text.isascii():
        pieces = list(_cut(text))
    else:
        pieces = [b" ".join(words).decode("utf-8", "replace") for words in pieces_of(text)]
    return f" {PIECE_END} ".join(pieces)


def _cut(text: str) -> Iterator[str]:
    """Cut a text of ASCII, which is quicker than to cut its words."""
    words, start = text.encode().translate(_LOWER), 0
    while len(piece := words.split(None, PIECE_WORDS)) > PIECE_WORDS:
        words = piece[-1]
        end = len(text) - len(words)
        yield text[start:end]
        start = end
    yield text[start:]


# A character for private use, which FTS5 takes for a word, and nobody can search for.
PIECE_END = "\U0010fffd"


def _most_words(text: str) -> int:
    """Return a number that the text does not have more words than. To count them takes as long as to index them."""
    if len(text) <= PIECE_WORDS:
        return len(text)
    return len(text.encode("utf-8", "replace").translate(None, _OF_WORDS)) + 1


_NOT_ASCII = re.compile("[^\x00-\x7f]+")
_OF_WORDS = b"0123456789ABCDEFGHIJKLMNOPQRSTUVWXYZ_abcdefghijklmnopqrstuvwxyz"
_LOWER = bytes(byte if byte > 0x7F else ord(chr(byte).lower()) if byte in _OF_WORDS else 0x20 for byte in range(256))


class _Characters(dict[int, str]):
    """What FTS5 makes of each character that is not ASCII. SQLite is asked about 256 of them at a time."""

    def __missing__(self, number: int) -> str:
        first = number & ~0xFF
        self |= _spellings(range(first, first + 0x100))
        return self[number]


_characters = _Characters()

FTS5_TOKENIZER = "unicode61 tokenchars '_'"


def _spellings(numbers: Sequence[int]) -> dict[int, str]:
    characters = {number: chr(number) for number in numbers if not 0xD800 <= number < 0xE000}
    with closing(sqlite3.connect(":memory:")) as database:
        database.execute(
            f"""CREATE VIRTUAL TABLE words USING fts5(text, content = '', tokenize = "{FTS5_TOKENIZER}")"""
        )
        database.execute("CREATE VIRTUAL TABLE places USING fts5vocab(words, instance)")
        texts = [(number, f"q{character}q {character}") for number, character in characters.items()]
        database.executemany("INSERT INTO words (rowid, text) VALUES (?, ?)", texts)
        rows = database.execute("SELECT doc, term FROM places ORDER BY doc, offset").fetchall()
    words: dict[int, list[str]] = {number: [] for number in numbers}
    for number, word in rows:
        words[number].append(word)
    return {number: _spelling(number, of_number) for number, of_number in words.items()}


def _spelling(number: int, words: Sequence[str]) -> str:
    match words:
        case [_]:
            return ""  # an accent of its own
        case [_, word] if words[0] == f"q{word}q":
            return f" {word} " if UNSPACED.match(chr(number)) else word
        case _:
            return " "
