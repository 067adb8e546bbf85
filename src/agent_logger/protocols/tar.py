"""Archives in the form of `tar`, as bundles have it: regular files and nothing else.

An archive may come from anybody. So what reads it knows one kind of entry, a regular file, with the one extension that
long names need (POSIX.1-2001, `path`); whatever else `tar` can express is an error.
"""

import re
import tarfile
from collections.abc import Callable, Iterator
from typing import NamedTuple

BLOCK_BYTES = 512
READ_BYTES = 1 << 18
MOST_EXTENSION_BYTES = 8192
_NO_BLOCK = bytes(BLOCK_BYTES)
_OCTAL = re.compile(rb" *([0-7]{1,11})[ \0]*")
_RECORD = re.compile(rb"([0-9]{1,5}) path=(.+)\n", re.DOTALL)
_MODE = 0o600
_CHECKSUM = slice(148, 156)

Read = Callable[[int], bytes]


class TarError(ValueError):
    """The archive is cut, damaged, or has something other than regular files."""


class TarMember(NamedTuple):
    """A file of an archive. `chunks` must be read to the end before the next member."""

    name: str
    size: int
    modified: int  # seconds since 1970
    chunks: Iterator[bytes]


def header(name: str, size: int, modified: int) -> bytes:
    """Return what precedes the bytes of a file."""
    entry = tarfile.TarInfo(name)
    entry.size, entry.mtime, entry.mode = size, max(0, modified), _MODE
    return entry.tobuf(tarfile.PAX_FORMAT, "utf-8", "strict")


def padding(size: int) -> bytes:
    """Return what follows the bytes of a file."""
    return bytes(-size % BLOCK_BYTES)


def members(read: Read) -> Iterator[TarMember]:
    """Yield the files of an archive. `read` returns as many bytes as it is asked for, and fewer only at the end. Raises
    `TarError`."""
    long_name: bytes | None = None
    while (block := read(BLOCK_BYTES)) and block != _NO_BLOCK:
        if len(block) < BLOCK_BYTES:
            raise TarError("it is cut")
        size, kind = _checked(block), block[156:157]
        if kind == b"x":
            if long_name is not None or size > MOST_EXTENSION_BYTES:
                raise TarError("an extension of the form that bundles do not have")
            long_name = _path_in(b"".join(_contents(read, size)))
            continue
        name = long_name or _name_in(block)
        long_name = None
        if kind not in (b"0", b"\0"):
            raise TarError(f"{_printable(name)}: not a regular file")
        contents = _contents(read, size)
        yield TarMember(_decoded(name), size, _number(block[136:148]), contents)
        if next(contents, None) is not None:
            raise ValueError("a member was not read to its end")
    if long_name is not None:
        raise TarError("it is cut")


def _checked(block: bytes) -> int:
    """Return the size of an entry. Raises `TarError` if the block is no header."""
    if block[257:265] != b"ustar\x0000" or sum(block) - sum(block[_CHECKSUM]) + 8 * 32 != _number(block[_CHECKSUM]):
        raise TarError("it is damaged, or not an archive")
    return _number(block[124:136])


def _number(field: bytes) -> int:
    match = _OCTAL.fullmatch(field)
    if match is None:
        raise TarError("a number of the form that bundles do not have")
    return int(match[1], 8)


def _name_in(block: bytes) -> bytes:
    name, prefix = (field.partition(b"\0")[0] for field in (block[:100], block[345:500]))
    return prefix + b"/" + name if prefix else name


def _path_in(extension: bytes) -> bytes:
    match = _RECORD.fullmatch(extension)
    if match is None or int(match[1]) != len(extension):
        raise TarError("an extension of the form that bundles do not have")
    return match[2]


def _decoded(name: bytes) -> str:
    try:
        return name.decode()
    except UnicodeDecodeError as error:
        raise TarError(f"{_printable(name)}: the name is not UTF-8") from error


def _printable(name: bytes) -> str:
    return name[:200].decode("utf-8", "replace")


def _contents(read: Read, size: int) -> Iterator[bytes]:
    left = size
    while left:
        chunk = read(min(READ_BYTES, left))
        if not chunk:
            raise TarError("it is cut")
        left -= len(chunk)
        yield chunk
    if len(read(-size % BLOCK_BYTES)) < -size % BLOCK_BYTES:
        raise TarError("it is cut")
