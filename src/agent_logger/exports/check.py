"""The check of a finished export: what was written is scanned once more, with stricter rules than redaction has.

Redaction must not spoil a session, so it removes only what is a key beyond doubt. The check changes nothing and may be
wrong: it also decodes escapes, URLs and base64 before it looks, and it reports assignments of passwords and tokens
whatever their form, and everything that a mask should have replaced.
"""

import base64
import binascii
import html
import math
import re
from collections import Counter
from collections.abc import Iterable, Iterator
from typing import NamedTuple
from urllib.parse import unquote_to_bytes

from agent_logger.exports.masks.mask import SessionMask
from agent_logger.exports.report import CheckHit
from agent_logger.model.redaction.redactor import Redactor

BLOCK_BYTES = 1 << 20
OVERLAP_BYTES = 1 << 16  # the longest private key
MOST_CUT = 1 << 14  # bytes of a word that a stretch may cut
MOST_HITS = 200
LEAST_BITS = 2.5  # of entropy for each character of an assigned value: below that it is a word or a filler

_NAMES = (
    rb"pass(?:word|wd|phrase)?|pwd|secret|api[_-]?key|apikey|access[_-]?key(?:[_-]?id)?|auth[_-]?token|access[_-]?token"
    rb"|refresh[_-]?token|id[_-]?token|private[_-]?key|client[_-]?secret|credentials?|session[_-]?token|bearer[_-]?token"
)
_ASSIGNMENT = re.compile(
    rb"(?i)(?<![A-Za-z0-9])(?:[A-Za-z0-9]{1,32}[_-]){0,4}(?:%b)[\"'\\]{0,8}\s{0,4}(?::=|=>|[:=])\s{0,4}[\"'\\]{0,8}"
    rb"(?P<value>[A-Za-z0-9+/_.~!@#%%^*-]{8,200})(?=[\"'\\\s,;&)}\]]|$)" % _NAMES
)
_BASE64 = re.compile(rb"[A-Za-z0-9+/]{40,}={0,2}|[A-Za-z0-9_-]{40,}={0,2}")
_BREAK = re.compile(rb"[\s\"]")
_ESCAPE = re.compile(rb'\\u00([0-7][0-9A-Fa-f])|\\(["\\/])')
MOST_BASE64 = 1 << 16  # characters that are decoded of each run


class OutputWindow(NamedTuple):
    """A stretch of the output. What begins before `start` was looked at with the stretch before."""

    data: bytes
    start: int
    line: int  # the number of its first line
    is_last: bool = False

    def words(self) -> str:
        """Return the text without words that may be cut at its beginning and its end; the next stretches have them."""
        start = next((match.end() for match in _BREAK.finditer(self.data, 0, MOST_CUT)), 0) if self.start else 0
        ends = [match.start() for match in _BREAK.finditer(self.data, max(0, len(self.data) - MOST_CUT))]
        end = len(self.data) if self.is_last or not ends else ends[-1]
        return self.data[start:end].decode("utf-8", "replace")


def check(chunks: Iterable[bytes], file: str | None = None, masks: Iterable[SessionMask] = ()) -> Iterator[CheckHit]:
    """Yield what the strictest rules find in a finished file, at most `MOST_HITS`."""
    masks, count = [mask for mask in masks if mask.kinds], 0
    for window in windows(chunks):
        hits = Counter((rule, window.line + window.data[:at].count(b"\n")) for rule, at in _hits(window, masks))
        for (rule, line), times in sorted(hits.items(), key=lambda item: item[0][1]):
            yield CheckHit(rule=rule, file=file, line=line, count=times)
            count += 1
            if count >= MOST_HITS:
                return


def windows(chunks: Iterable[bytes]) -> Iterator[OutputWindow]:
    """Cut a stream into stretches that overlap, so that no key is cut in two."""
    held, fresh, line = b"", 0, 1
    for chunk in chunks:
        held += chunk
        if len(held) - fresh >= BLOCK_BYTES:
            yield OutputWindow(held, fresh, line)
            cut = len(held) - OVERLAP_BYTES
            line += held[:cut].count(b"\n")
            held, fresh = held[cut:], OVERLAP_BYTES
    if len(held) > fresh or not fresh:
        yield OutputWindow(held, fresh, line, is_last=True)


def _hits(window: OutputWindow, masks: Iterable[SessionMask]) -> Iterator[tuple[str, int]]:
    for rule, at, end in _all_hits(window, masks):
        if end > window.start:
            yield rule, at


def _all_hits(window: OutputWindow, masks: Iterable[SessionMask]) -> Iterator[tuple[str, int, int]]:
    data = window.data
    yield from _keys(data)
    plain = _ESCAPE.sub(lambda match: bytes([int(match[1], 16)]) if match[1] else match[2], data)
    for form in (plain, html.unescape(data.decode("latin-1")).encode("latin-1", "replace"), unquote_to_bytes(data)):
        if form != data:
            # Positions in a decoded form are those of nothing: the end of the window counts.
            yield from ((rule, min(at, len(data)), len(data) + 1) for rule, at, _ in _keys(form))
    yield from _assignments(data)
    yield from _in_base64(data)
    text = window.words() if masks else ""
    yield from (("mask", 0, len(data) + 1) for mask in masks if mask.finds_left(text))


def _keys(data: bytes) -> Iterator[tuple[str, int, int]]:
    for redaction in _redactor.redact(data, "").redactions:
        yield redaction.rule, redaction.offset, redaction.offset + redaction.length


def _assignments(data: bytes) -> Iterator[tuple[str, int, int]]:
    for match in _ASSIGNMENT.finditer(data):
        value = match["value"]
        if _is_secret(value):
            yield "assignment", match.start(), match.end()


def _is_secret(value: bytes) -> bool:
    """Whether an assigned value may be a password: letters and digits mixed as in no word, name or expression."""
    if b"..." in value or b"redacted" in value.lower() or value.startswith((b"$", b"%", b"name-", b"p-")):
        return False
    if not re.search(rb"[0-9]", value) or not re.search(rb"[A-Za-z]", value):
        return False
    return _bits(value) >= LEAST_BITS


def _bits(value: bytes) -> float:
    counts = Counter(value).values()
    return -sum(count / len(value) * math.log2(count / len(value)) for count in counts)


def _in_base64(data: bytes) -> Iterator[tuple[str, int, int]]:
    for match in _BASE64.finditer(data):
        text = match[0][:MOST_BASE64].rstrip(b"=")
        try:
            plain = base64.b64decode(
                text[: len(text) // 4 * 4], altchars=b"-_" if b"-" in text or b"_" in text else None
            )
        except binascii.Error:
            continue
        if _redactor.finds(plain):
            yield "key in base64", match.start(), match.end()


_redactor = Redactor(bytes(32))
