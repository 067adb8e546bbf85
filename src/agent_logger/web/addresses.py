"""The addresses of sessions: short ids, as commands print them, where a short one is unique."""

from collections.abc import Mapping
from urllib.parse import quote


def session_url(session_id: str, rest: str = "") -> str:
    """The address of a session, or of one of its views, by its id as it is given."""
    return f"/sessions/{quote(session_id, safe='')}{rest}"


class SessionAddresses:
    """The short ids of all sessions, as they were at one moment."""

    def __init__(self, short_ids: Mapping[str, str]) -> None:
        self._short_ids = short_ids
        self._ids = {short: session_id for session_id, short in short_ids.items()}

    def url(self, session_id: str, rest: str = "") -> str:
        return session_url(self._short_ids.get(session_id, session_id), rest)

    def short_id(self, session_id: str) -> str:
        return self._short_ids.get(session_id, session_id)

    def id_of(self, short_id: str) -> str | None:
        """The id of the session with this short id."""
        return self._ids.get(short_id)
