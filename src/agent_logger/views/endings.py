"""How responses and exchanges ended, for a reader: nothing to say, a note, or a warning."""

from typing import NamedTuple

from agent_logger.model.session import LOST, Exchange, Turn

# Why models stopped, in the words of all APIs, in lower case.
NORMAL_STOPS = frozenset(
    {
        "completed",
        "end_turn",
        "eos",
        "finish_reason_stop",
        "finish_reason_unspecified",
        "function_call",
        "stop",
        "stop_sequence",
        "tool-calls",
        "tool_calls",
        "tool_use",
    }
)
BAD_STOPS = frozenset(
    {
        "blocklist",
        "cancelled",
        "content-filter",
        "content_filter",
        "error",
        "failed",
        "image_safety",
        "incomplete",
        "length",
        "malformed_function_call",
        "max_output_tokens",
        "max_tokens",
        "model_context_window_exceeded",
        "prohibited_content",
        "recitation",
        "refusal",
        "safety",
        "spii",
    }
)


class Ending(NamedTuple):
    text: str
    is_bad: bool


def turn_ending(turn: Turn) -> Ending | None:
    """How a response ended; `None` if it ended normally. An unknown stop reason is not a warning."""
    reason = turn.stop_reason or ""
    word = reason.lower()
    return None if not word or word in NORMAL_STOPS else Ending(reason, word in BAD_STOPS)


WELL = frozenset({None, "result", "input", "reset", "eof", "exit", "exit code 0", LOST})


def ended_well(reason: str | None) -> bool:
    """Whether an exchange with this end reason went well, as far as is known."""
    return reason in WELL


# Signals that ask a program to end, as the number of the signal and as the exit code of a shell: INT, TERM and HUP.
_STOPPED = {
    f"{word} {number}" for signal in (2, 15, 1) for word, number in (("signal", signal), ("exit code", 128 + signal))
}
_INTERRUPTIONS = frozenset({"interrupted", "cut", "recovered", *_STOPPED})
_UNSPECIFIC = frozenset({"failed", "other"})


def failure_text(reason: str | None) -> str | None:
    """Return what went wrong in a session whose last exchange ended for this reason; `None` if nothing did."""
    if ended_well(reason) or reason is None:
        return None
    if reason in _INTERRUPTIONS:
        return "interrupted"
    return "failed" if reason in _UNSPECIFIC else f"failed: {reason.replace('_', ' ')}"


# How an exchange may end without a result of its own although nothing went wrong.
QUIET_ENDS = {None: "in flight", "input": "ended by the next input", "reset": "reset"}


def exchange_ending(exchange: Exchange) -> Ending | None:
    """How an exchange ended; `None` if it is complete, or if nothing is known about its end."""
    reason = exchange.end_reason
    if exchange.complete or reason == LOST:
        return None
    return Ending(QUIET_ENDS.get(reason) or f"incomplete ({reason})", reason not in QUIET_ENDS)
