"""Reads the small files of a home, which every command looks at. The home may be that of another machine: so they are
opened as files of others are."""

import os
from contextlib import suppress
from pathlib import Path

from agent_logger.errors import SourceError
from agent_logger.files import foreign

READ_BYTES = 1 << 20


def read_small_file(path: Path, most_bytes: int) -> bytes:
    """Return the bytes of a file; none if it cannot be read, is no regular file, or has more than so many."""
    read = bytearray()
    with suppress(SourceError, OSError), foreign.opened_uncounted(path) as fd:
        while piece := os.read(fd, READ_BYTES):
            read += piece
            if len(read) > most_bytes:
                return b""
    return bytes(read)
