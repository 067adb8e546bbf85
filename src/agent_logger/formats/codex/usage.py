"""What each response took, out of the counters that Codex keeps in its rollouts.

They tell it in two ways. `token_usage_record` (2026 on) is exact: one line a response, with its id. `token_count` is a
running total, told again whenever anything about limits changes; it begins at the parent's total in a fork, and in
versions before 0.77 at nothing after a resume. Where both stand in a file, the second repeats the first.
"""

from agent_logger.formats.codex.lines import Info, Tokens
from agent_logger.session import Usage

MOST = 1 << 62  # tokens: a counter beyond is none


class Meter:
    """Reads the counters of one rollout, in order."""

    def __init__(self) -> None:
        self._total: Tokens | None = None
        self._recorded = False  # the next new total repeats what a record has told

    def record(self, used: Tokens | None) -> Usage | None:
        """The usage that a `token_usage_record` tells."""
        self._recorded = True
        return _usage(used) if used else None

    def counted(self, info: Info | None) -> Usage | None:
        """What came since the last total; none if that was told before, or nothing came."""
        if info is None or info.total_token_usage is None or info.total_token_usage == self._total:
            return None
        before, self._total = self._total, info.total_token_usage
        if self._recorded:
            self._recorded = False
            return None
        used = _usage(_since(before, self._total, info.last_token_usage))
        return used if used.context_tokens or used.output_tokens else None


def _since(before: Tokens | None, total: Tokens, last: Tokens | None) -> Tokens:
    if before is not None:
        used = Tokens(
            total.input_tokens - before.input_tokens,
            total.cached_input_tokens - before.cached_input_tokens,
            total.cache_write_input_tokens - before.cache_write_input_tokens,
            total.output_tokens - before.output_tokens,
        )
        if used.input_tokens >= 0 and used.cached_input_tokens >= 0 and used.output_tokens >= 0:
            return used
    return last or total  # the counter has begun anew, here or before this file


def _usage(told: Tokens) -> Usage:
    cached, written = _sane(told.cached_input_tokens), _sane(told.cache_write_input_tokens)
    return Usage(
        input_tokens=_sane(told.input_tokens - cached - written),
        output_tokens=_sane(told.output_tokens),
        cache_read_tokens=cached,
        cache_write_tokens=written,
    )


def _sane(tokens: int) -> int:
    return tokens if 0 <= tokens <= MOST else 0
