"""Remove keys from files that leave this machine."""

import hashlib
from collections.abc import Iterable, Iterator
from functools import cache
from pathlib import Path

from agent_logger.model.redaction import redactor
from agent_logger.model.redaction.redactor import hidden_bytes
from agent_logger.protocols.lines import lines_in
from agent_logger.views import hide
from agent_logger.views.hide import hidden_line

BLOCK_BYTES = 4 << 20  # of a text that is no lines of JSON, searched at once
PRIVATE_KEY_BYTES = 1 << 16  # that a key of several lines may have


@cache
def redaction_rules() -> str:
    """Return what identifies the rules by which keys are found: the hash of the code that finds them."""
    modules = sorted(Path(redactor.__file__).parent.glob("*.py"))
    digest = hashlib.sha256()
    for module in (*modules, Path(hide.__file__), Path(__file__)):
        digest.update(module.read_bytes())
    return digest.hexdigest()[:16]


def redacted_chunks(chunks: Iterable[bytes], *, is_of_lines: bool) -> Iterator[bytes]:
    """Yield a file without keys."""
    if is_of_lines:
        yield from map(redacted_lines, whole_lines(chunks))
    else:
        yield from map(hidden_bytes, _blocks(chunks))


def redacted_lines(portion: bytes) -> bytes:
    """Return lines without keys. The last may have no newline."""
    return b"".join(map(_redacted_line, lines_in(portion)))


def _redacted_line(line: bytes) -> bytes:
    return hidden_line(line[:-1]) + b"\n" if line.endswith(b"\n") else hidden_line(line)


def whole_lines(chunks: Iterable[bytes]) -> Iterator[bytes]:
    """Yield portions that end with a line; the last may not."""
    held: list[bytes] = []
    for chunk in chunks:
        end = chunk.rfind(b"\n") + 1
        if end:
            yield b"".join([*held, chunk[:end]])
            held = []
        held.append(chunk[end:])
    if rest := b"".join(held):
        yield rest


def _blocks(chunks: Iterable[bytes]) -> Iterator[bytes]:
    """Yield long portions, none of which ends inside a line or a private key, if there is a better place to end."""
    held = b""
    for chunk in chunks:
        held += chunk
        while len(held) >= BLOCK_BYTES + PRIVATE_KEY_BYTES:
            key = held.find(b"-----BEGIN", BLOCK_BYTES - PRIVATE_KEY_BYTES, BLOCK_BYTES)
            end = held.rfind(b"\n", 0, key if key > 0 else BLOCK_BYTES) + 1 or BLOCK_BYTES
            yield held[:end]
            held = held[end:]
    if held:
        yield held
