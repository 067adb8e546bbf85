"""What Claude Code and others hand to their hooks on stdin."""

from collections.abc import Mapping
from typing import Any

import msgspec

FIELDS = ("session_id", "transcript_path", "cwd", "permission_mode", "hook_event_name", "reason")


class HookInput(msgspec.Struct, frozen=True, kw_only=True):
    """The fields of every event, and `rest`, which only some have: a prompt, a tool's name, its input, its result.

    Hooks may report an id that the session had before it was forked; the transcript has the right one.
    """

    session_id: str | None = None
    transcript_path: str | None = None
    cwd: str | None = None
    permission_mode: str | None = None
    hook_event_name: str | None = None
    reason: str | None = None  # why a session ended
    rest: dict[str, Any] = {}

    @classmethod
    def of(cls, values: Mapping[str, Any]) -> "HookInput":
        """Read the fields. One that is not text stays in `rest`."""
        strings = {name: values[name] for name in FIELDS if isinstance(values.get(name), str)}
        return cls(**strings, rest={name: value for name, value in values.items() if name not in strings})
