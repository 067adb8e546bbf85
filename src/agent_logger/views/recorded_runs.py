"""What was recorded of a run, and what was not, in words. `run`, `doctor` and the page say it in the same way."""

from collections.abc import Iterator, Sequence

from agent_logger.model.last_run import LastRun
from agent_logger.model.plurals import pluralize

MOST_NAMES = 3

NO_REQUESTS = {
    "other_base_url": "the agent's settings name another address",
    "login_ignores_base_url": "with this login the agent ignores its base URL",
    "not_trusted": "the agent does not trust the certificate of agent-logger",
    "proxy_not_started": "the proxy did not start",
    "none_made": "the agent made no model request",
}
WENT_AROUND = "the agent has answers that did not come through the proxy"


def no_requests_text(run: LastRun) -> str:
    """Why nothing was recorded."""
    if run.reason == "other_base_url" and run.door == "forward":
        return WENT_AROUND
    return NO_REQUESTS.get(run.reason or "", run.reason or "")


def captured_text(run: LastRun) -> str:
    """What was recorded, and by which door."""
    count = f"{pluralize(run.requests, 'request')} recorded"
    how = "through the forward door" if run.door == "forward" else "by its base URL"
    return f"{count} {how}" if run.requests else f"{count}: {no_requests_text(run)}"


def gaps(run: LastRun) -> Iterator[str]:
    """Yield what the run sent to models that was not recorded, or not understood."""
    if run.not_trusted:
        yield f"it does not trust the certificate of agent-logger: {names_text(run.not_trusted)}"
    if run.not_opened:
        yield f"it speaks another protocol than HTTP/1.1, which was not read: {names_text(run.not_opened)}"
    if run.missing:
        has = "has" if run.missing == 1 else "have"
        yield f"it went around the proxy: {pluralize(run.missing, 'answer')} in its session file {has} no request"
    if run.not_understood:
        calls, paths = pluralize(run.not_understood, "call"), names_text(run.not_understood_paths)
        yield f"{calls} to models not understood, kept as bytes, tokens not counted: {paths}"


def unread_text(run: LastRun) -> str | None:
    """Which other hosts were reached; they are not recorded."""
    if not run.unread:
        return None
    return f"{pluralize(run.unread, 'host')} reached unread: {names_text(run.unread_hosts, run.unread)}"


def names_text(names: Sequence[str], count: int | None = None) -> str:
    """Return the first names. `count`: how many there are, if that is more than are given."""
    more = (count or len(names)) - len(names[:MOST_NAMES])
    return ", ".join(names[:MOST_NAMES]) + (f" and {more:,} more" if more else "")
