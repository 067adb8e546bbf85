"""The words of the search index.

Chinese and Japanese have no blanks between words, and Korean joins others to them. There each character is a word of
its own, in the index as in a query, and a word of several is a phrase.
"""

import re

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
