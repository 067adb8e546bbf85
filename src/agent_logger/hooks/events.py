"""What Claude Code and others hand to their hooks on stdin."""

from collections.abc import Mapping
from typing import Any

import msgspec

FIELDS = ("session_id", "transcript_path", "cwd", "permission_mode", "hook_event_name", "reason")


class HookInput(msgspec.Struct, frozen=True, kw_only=True):
    """What every event tells, and `rest`, what only some do: a prompt, a tool's name, its input, its result.

    Hooks may report an id that the session had before it was forked: the transcript knows better.
    """

    session_id: str | None = None
    transcript_path: str | None = None
    cwd: str | None = None
    permission_mode: str | None = None
    hook_event_name: str | None = None
    reason: str | None = None  # why a session ended
    rest: dict[str, Any] = {}

    @classmethod
    def of(cls, told: Mapping[str, Any]) -> "HookInput":
        """A field that is no text stays in `rest`."""
        known = {name: told[name] for name in FIELDS if isinstance(told.get(name), str)}
        return cls(**known, rest={name: it for name, it in told.items() if name not in known})
