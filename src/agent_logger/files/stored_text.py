"""Texts as databases hold them: names of files and foreign texts may have halves of characters."""

import re
from zlib import crc32


def storable(text: str) -> str:
    """With halves of characters, which names of files and foreign texts may have and no database, spelled out."""
    return text if text.isascii() else text.encode("utf-8", "backslashreplace").decode()


def restored(path: str) -> str:
    return _HALF.sub(lambda match: chr(int(match[1], 16)), path) if "\\ud" in path else path


_HALF = re.compile(r"\\u(d[89a-f][0-9a-f]{2})")


def hashed(text: str) -> int:
    """A number for a text, the same always. Where two texts have the same by chance, it costs a little time."""
    data = text.encode("utf-8", "surrogatepass")
    return crc32(data) << 31 ^ crc32(data[::-1])
