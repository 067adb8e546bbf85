"""Text as databases hold it: file names and foreign texts may contain lone surrogates."""

import re
from zlib import crc32


def storable(text: str) -> str:
    """The text with lone surrogates spelled out: file names and foreign texts may contain them, and no database takes
    them."""
    return text if text.isascii() else text.encode("utf-8", "backslashreplace").decode()


def restored(path: str) -> str:
    return _HALF.sub(lambda match: chr(int(match[1], 16)), path) if "\\ud" in path else path


_HALF = re.compile(r"\\u(d[89a-f][0-9a-f]{2})")


def hashed(text: str) -> int:
    """A number for a text, always the same one. Two texts that share a number by chance cost a little time."""
    data = text.encode("utf-8", "surrogatepass")
    return crc32(data) << 31 ^ crc32(data[::-1])
