"""The frames of a write-ahead log: a header of 32 bytes, then pages, each with a header of 24 bytes.

https://www.sqlite.org/fileformat2.html#walformat
"""

import os
from pathlib import Path
from typing import NamedTuple

HEADER_BYTES, FRAME_HEADER_BYTES = 32, 24
MAGIC = (b"\x37\x7f\x06\x82", b"\x37\x7f\x06\x83")
MOST_PAGE_BYTES = 65_536
MOST_RESTARTS = 1 << 24  # of a log


class LogFrames(NamedTuple):
    # The number of the last frame that ends a change, as its header says, from 1; 0: none. What follows was not
    # finished.
    last_change: int
    is_damaged: bool  # whether the log ends within a frame, or has something else in the place of one


def prepare(copy: Path) -> LogFrames:
    """Look at the log of a copied database. If the database itself is empty, or missing, give it the size of one page:
    SQLite would delete the log."""
    try:
        with open(f"{copy}-wal", "rb") as log:
            header = log.read(HEADER_BYTES)
            page_bytes = int.from_bytes(header[8:12], "big")
            if header[:4] not in MAGIC or not 512 <= page_bytes <= MOST_PAGE_BYTES:
                return LogFrames(0, is_damaged=False)
            if not copy.exists() or not copy.stat().st_size:
                copy.write_bytes(bytes(page_bytes))
            return _frames(log.fileno(), header[16:24], FRAME_HEADER_BYTES + page_bytes)
    except FileNotFoundError:
        return LogFrames(0, is_damaged=False)


def _frames(log: int, salts: bytes, frame_bytes: int) -> LogFrames:
    whole, rest = divmod(os.fstat(log).st_size - HEADER_BYTES, frame_bytes)
    last_change = 0
    for number in range(whole):
        frame = os.pread(log, FRAME_HEADER_BYTES, HEADER_BYTES + number * frame_bytes)
        if frame[8:16] != salts:
            return LogFrames(last_change, is_damaged=rest > 0 or not _is_older(frame[8:12], salts[:4]))
        if any(frame[4:8]):
            last_change = number + 1
    return LogFrames(last_change, is_damaged=rest > 0)


def _is_older(salt: bytes, newest: bytes) -> bool:
    """Whether a frame was left over from before the log was begun again, which adds 1 to this number."""
    return 0 < (int.from_bytes(newest, "big") - int.from_bytes(salt, "big")) % (1 << 32) <= MOST_RESTARTS
