"""The words of a text as PostgreSQL stores them, and the conditions of a query on them."""

from collections.abc import Iterable, Mapping, Sequence
from typing import NamedTuple

from agent_logger.catalog.search.query import Term
from agent_logger.catalog.search.texts import Text
from agent_logger.catalog.search.tokenizer import PIECE_WORDS, words_of

# Of a lexeme, which has at most 2,046 bytes. A longer word is a phrase of its chunks.
CHUNK = 500  # characters
MORE = "\x1f"  # begins a chunk that continues a word
PIECE_END = "\x1d"
MARKS: Mapping[str | None, str] = {None: "", "tool": "\x01", "file": "\x02"}
# Of all lexemes of a text, of which PostgreSQL takes a megabyte. The words of a larger one are looked through for each
# query.
MOST_BYTES = 1_000_000
IS_LARGE = "\x1e"

LEXEMES = f"""
    CASE WHEN octet_length(words) <= {MOST_BYTES} THEN array_to_tsvector(string_to_array(words, ' '))
        ELSE '''{IS_LARGE}'''::tsvector END
"""


def stored_words(text: Text) -> str:
    pieces = _pieces(text.text)
    for mark, value in ((MARKS["tool"], text.tool), (MARKS["file"], text.file)):
        if value:
            pieces += [*_pieces(value), *_pieces(value, mark)]
    return f" {PIECE_END} ".join(pieces)


def _pieces(text: str, mark: str = "") -> list[str]:
    words = words_of(text)
    starts = range(0, len(words), PIECE_WORDS)
    if not mark and (len(text) < CHUNK or max(map(len, words), default=0) < CHUNK):
        return [b" ".join(words[start : start + PIECE_WORDS]).decode("utf-8", "ignore") for start in starts]
    return [" ".join(_lexemes(words[start : start + PIECE_WORDS], mark)) for start in starts]


def _lexemes(words: Iterable[bytes], mark: str) -> Sequence[str]:
    """Return the chunks of words. Behind a whole chunk there is another one, which may be empty: so no word is equal to
    the beginning of another."""
    lexemes: list[str] = []
    for word in words:
        text = word.decode("utf-8", "ignore")
        lexemes.append(mark + text[:CHUNK])
        lexemes += [f"{mark}{MORE}{text[start : start + CHUNK]}" for start in range(CHUNK, len(text) + 1, CHUNK)]
    return lexemes


# ---------------------------------------------------------------- queries


class Phrase(NamedTuple):
    """A term, as lexemes that follow each other."""

    lexemes: tuple[str, ...]
    is_beginning: bool

    @property
    def has_order(self) -> bool:
        return len(self.lexemes) > 1

    @property
    def spelling(self) -> str:
        """What the words, with a blank before and after them, have in them."""
        return f" {' '.join(self.lexemes)}{'' if self.is_beginning else ' '}"


def phrases_of(terms: Sequence[Term]) -> list[Phrase] | None:
    """Return the phrases that a text must have; None if one of them has no words, and is in no text."""
    phrases = [
        Phrase(tuple(_lexemes(words_of(" ".join(term.words)), MARKS[term.field])), term.is_beginning) for term in terms
    ]
    return phrases if all(phrase.lexemes for phrase in phrases) else None


def gin_query(phrases: Sequence[Phrase]) -> str:
    """Return a tsquery for texts that have all lexemes, and for large ones. No lexeme has a quote or a backslash."""
    lexemes = [
        f"'{lexeme}'{':*' if phrase.is_beginning and number == len(phrase.lexemes) else ''}"
        for phrase in phrases
        for number, lexeme in enumerate(phrase.lexemes, 1)
    ]
    return f"{' & '.join(lexemes)} | '{IS_LARGE}'"
