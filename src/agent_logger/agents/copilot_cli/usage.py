"""The token counts of Copilot CLI: of single responses, of compactions, and the totals when a process ends."""

from datetime import datetime
from typing import Any

from agent_logger.agents.copilot_cli.lines import CopilotUsage, Shutdown
from agent_logger.model.session import ClientTotal, ModelTotal, Usage
from agent_logger.providers.json_values import fields_of
from agent_logger.providers.token_counts import TokenCounts, usage_of

NOTHING = Usage()


def response_usage(used: CopilotUsage) -> Usage | None:
    """Return the usage of a response, whose input includes what came from the cache or went into it."""
    return _usage(
        {"input": used.input, "output": used.output, "cache_read": used.cache_read, "cache_write": used.cache_write}
    )


def _usage(fields: Any) -> Usage | None:
    counts = TokenCounts(fields)
    read = counts("cache_read", "cache_read_tokens", "cached_input")
    write = counts("cache_write", "cache_write_tokens")
    given = counts("input", "input_tokens") - read - write
    return counts.usage(given, counts("output", "output_tokens"), read, write)


def compaction_usage(used: Any) -> Usage | None:
    """Return the usage of the call that wrote a summary."""
    return _usage(used)


def side_usage(used: Any) -> Usage | None:
    """Return the usage of a call outside of the conversation, which is given in the words of the chat API."""
    return usage_of(used)


def count_of(value: Any) -> int | None:
    if type(value) is float and value.is_integer():
        value = int(value)
    return value if type(value) is int and value >= 0 else None


class ProcessTotals:
    """The totals that a session's processes report, compared with the responses before them."""

    def __init__(self) -> None:
        self.reported: list[ClientTotal] = []  # those that the responses do not make up
        self._before: dict[str, Usage] = {}  # the newest snapshot
        self._ids: list[str] = []
        self._used = NOTHING
        self._started: datetime | None = None
        self._is_complete = True  # every response since the last shutdown has its usage
        self._spans: list[tuple[datetime, datetime]] = []

    def add(self, message_id: str | None, usage: Usage | None, at: datetime | None) -> None:
        """Note a response since the last shutdown. It may be noted twice, when its usage becomes known."""
        if message_id and message_id not in self._ids[-2:]:
            self._ids.append(message_id)
        if usage:
            self._used += usage
        self._started = min(self._started or at, at) if at else self._started

    def shut_down(self, shutdown: Shutdown, at: datetime | None) -> None:
        """Compare with the totals of a process. Newer versions restore them when a session is resumed: then the
        difference is what this process used."""
        counts = {name: usage for name, metrics in (shutdown.models or {}).items() if (usage := _model_usage(metrics))}
        process = counts
        if shutdown.snapshot is not None:
            process = _since(self._before, counts)
            self._before = counts
        total = sum(process.values(), NOTHING)
        if any(total.counts) and _exceeds(total, self._used):
            self.reported.append(
                ClientTotal(
                    witness="transcript",
                    models=tuple(ModelTotal(model=name, usage=usage) for name, usage in process.items()),
                    started=self._started,
                    ended=at,
                    message_ids=tuple(dict.fromkeys(self._ids)),
                )
            )
        if any(total.counts) and at:
            self._spans.append((self._started or at, at))
        self._ids, self._used, self._started = [], NOTHING, None

    def end(self) -> None:
        """Forget what no total covers."""
        self._ids, self._used = [], NOTHING

    def covers(self, at: datetime | None) -> bool:
        """Whether a total counts a response of this time."""
        return at is not None and any(start <= at <= end for start, end in self._spans)


def _model_usage(metrics: Any) -> Usage | None:
    return _usage(fields_of(metrics).get("usage"))


def _since(before: dict[str, Usage], now: dict[str, Usage]) -> dict[str, Usage]:
    """Return what was used since the last snapshot; everything, if the counts began again."""
    differences = {name: usage - before.get(name, NOTHING) for name, usage in now.items()}
    began_again = any(min(usage.counts) < 0 for usage in differences.values())
    return {name: usage for name, usage in (now if began_again else differences).items() if any(usage.counts)}


def _exceeds(total: Usage, used: Usage) -> bool:
    return any(reported > counted for reported, counted in zip(total.counts, used.counts, strict=True))
