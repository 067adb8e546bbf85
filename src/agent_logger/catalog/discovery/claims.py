"""Which person of a hub was the first to push a session: `claims.json` in the home of a machine.

A response that several people have pushed counts as the first of them pushed it: what somebody else says of it later
changes nothing.
"""

import os
from functools import lru_cache
from pathlib import Path

import msgspec
from msgspec.structs import replace

from agent_logger.files.stored_text import restored
from agent_logger.home.small_files import read_small_file
from agent_logger.model.responses import ModelResponse

FILE = "claims.json"
MOST_BYTES = 256 << 20


class Claims(msgspec.Struct, frozen=True):
    """The sessions that a person has pushed, each with its place in the order in which people pushed sessions."""

    person: str
    sessions: dict[str, int]


def claimed(home: str, responses: list[ModelResponse]) -> list[ModelResponse]:
    """Return the responses of a session with the order of the claim that the owner of the home has to it."""
    if not home or not responses:
        return responses
    path = Path(restored(home)) / FILE
    try:
        changed = os.lstat(path).st_mtime_ns
    except OSError:  # a home that is not on a hub
        return responses
    claims = _claims(path, changed)
    claim = claims.sessions.get(responses[0].session)
    if claim is None:
        return responses
    return [replace(response, owner=claims.person, claim=claim) for response in responses]


@lru_cache(maxsize=16)
def _claims(path: Path, _changed: int) -> Claims:
    try:
        return msgspec.json.decode(read_small_file(path, MOST_BYTES), type=Claims)
    except (ValueError, RecursionError):
        return Claims("", {})
