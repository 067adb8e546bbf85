"""What Claude Code passes to the command of its `statusLine` setting: JSON that says how the session stands."""

import math
from typing import Any

import msgspec

from agent_logger.providers.json_values import fields_of, text_of


class SessionStatus(msgspec.Struct, frozen=True, kw_only=True):
    """How a session stands. Versions of the client differ in what they pass, so anything may be missing."""

    model: str | None = None
    cost_usd: float | None = None  # of the session, as the client counts it
    context_percent: float | None = None  # of the context window that is in use
    limit_percent: float | None = None  # of what the plan allows in five hours; plans have this, keys do not


def read_status(data: bytes) -> SessionStatus:
    """Read what can be read; nothing of it is an error."""
    try:
        fields = fields_of(msgspec.json.decode(data))
    except (ValueError, RecursionError):
        fields = {}
    model, limits = fields_of(fields.get("model")), fields_of(fields.get("rate_limits"))
    return SessionStatus(
        model=text_of(model.get("display_name")) or text_of(model.get("id")) or text_of(fields.get("model")),
        cost_usd=_number(fields_of(fields.get("cost")).get("total_cost_usd")),
        context_percent=_context_percent(fields_of(fields.get("context_window"))),
        limit_percent=_number(fields_of(limits.get("five_hour")).get("used_percentage")),
    )


def _context_percent(window: dict[str, Any]) -> float | None:
    percent, size = _number(window.get("used_percentage")), _number(window.get("context_window_size"))
    usage = fields_of(window.get("current_usage"))
    if percent is not None or not size or not usage:
        return percent
    counts = ("input_tokens", "cache_creation_input_tokens", "cache_read_input_tokens")
    return sum(_number(usage.get(name)) or 0.0 for name in counts) / size * 100


def _number(value: Any) -> float | None:
    is_number = isinstance(value, int | float) and not isinstance(value, bool)
    return float(value) if is_number and math.isfinite(value) and value >= 0 else None
