"""The calls of Claude Code: sessions in `metadata.user_id`, and the shapes of its calls outside a conversation."""

import re
from collections.abc import Sequence

import msgspec

from agent_logger.agents.contracts import CallShapes
from agent_logger.model.records import Identity
from agent_logger.providers.request_body import RequestBody, named_id, only_text, text, value

WARM_UP = "Warmup"
_IN_USER_ID = re.compile(r"user_[^_]*_account_.*?_session_(.+)", re.DOTALL)


class ClaudeCalls(CallShapes):
    def is_side(self, body: RequestBody, units: Sequence[msgspec.Raw], *, has_id: bool) -> bool:
        if len(units) == 1 and len(units[0]) < 400 and only_text(units[0]) == WARM_UP:
            return True
        if body.has_tools:
            return False
        # Titles and shell commands, before 2.0.
        if len(units) == 1 and bytes(body.temperature) in (b"0", b"0.0"):
            return True
        return _has_schema(body) or _stops_at_block(body) or _is_old_side(body, units, has_id)

    def session_in(self, body: RequestBody) -> Identity | None:
        session = _session_in(body.metadata) if len(body.metadata) else None
        return Identity(id=session, source="metadata.user_id", confidence="certain") if session else None


def _has_schema(body: RequestBody) -> bool:
    config = value(body.output_config)
    return isinstance(config, dict) and bool(config.get("format"))


def _stops_at_block(body: RequestBody) -> bool:
    stops = value(body.stop_sequences)
    return isinstance(stops, list) and "</block>" in stops


def _is_old_side(body: RequestBody, units: Sequence[msgspec.Raw], has_id: bool) -> bool:
    """Whether a call of 1.0.3 is a side call. It names no session; its calls around shell commands go to the small
    model, one message each."""
    return not has_id and len(units) == 1 and "haiku" in (text(body.model) or "")


def _session_in(raw: msgspec.Raw) -> str | None:
    """Return the session in `user_id`, which is a JSON object in a string, or `user_<hash>_account_<a>_session_<id>`,
    or only a device."""
    metadata = value(raw)
    user_id = metadata.get("user_id") if isinstance(metadata, dict) else None
    if not isinstance(user_id, str):
        return None
    if user_id.startswith("{"):
        try:
            inner = msgspec.json.decode(user_id)
        except (ValueError, RecursionError):
            return None
        return named_id(inner.get("session_id")) if isinstance(inner, dict) else None
    match = _IN_USER_ID.fullmatch(user_id)
    return named_id(match[1]) if match else None


CALLS = ClaudeCalls()
