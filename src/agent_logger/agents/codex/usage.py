"""What each response used, from the counters that Codex keeps in its rollouts.

There are two kinds. `token_usage_record` (2026 on) is exact: one line per response, with its id. `token_count` is a
running total, repeated whenever anything about limits changes; it starts at the parent's total in a fork, and in
versions before 0.77 at zero after a resume. Where both are in a file, the second repeats the first.
"""

from typing import NamedTuple

from agent_logger.agents.codex.lines import Info
from agent_logger.model.session import Usage
from agent_logger.providers.json_values import Json
from agent_logger.providers.token_counts import usage_of


class ResponseUsage(NamedTuple):
    """The usage of one response."""

    usage: Usage | None  # none: the count was not understood


class Meter:
    """Reads the counters of one rollout, in order."""

    def __init__(self) -> None:
        self._total: Json | None = None
        self._recorded = False  # the next new total repeats a record

    def record(self, used: Json | None) -> ResponseUsage | None:
        """Return the usage in a `token_usage_record`."""
        self._recorded = True
        return ResponseUsage(usage_of(used)) if used is not None else None

    def counted(self, info: Info | None) -> ResponseUsage | None:
        """Return what was used since the last total; None if this total was reported before, or nothing was used."""
        if info is None or info.total_token_usage is None or info.total_token_usage == self._total:
            return None
        before, self._total = self._total, info.total_token_usage
        if self._recorded:
            self._recorded = False
            return None
        used = _since(usage_of(before), usage_of(self._total), usage_of(info.last_token_usage))
        return ResponseUsage(used) if used is None or any(used.counts) else None


def _since(before: Usage | None, total: Usage | None, last: Usage | None) -> Usage | None:
    if before is not None and total is not None:
        used = total - before
        if min(used.counts) >= 0:
            return used
    return last or total  # the counter was reset, here or before this file
