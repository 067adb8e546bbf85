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


# How an exchange may end without a result of its own although nothing went wrong.
QUIET_ENDS = {None: "in flight", "input": "ended by the next input", "reset": "reset"}


def exchange_ending(exchange: Exchange) -> Ending | None:
    """How an exchange ended; `None` if it is complete, or if nothing is known about its end."""
    reason = exchange.end_reason
    if exchange.complete or reason == LOST:
        return None
    return Ending(QUIET_ENDS.get(reason) or f"{reason}: not complete", reason not in QUIET_ENDS)
