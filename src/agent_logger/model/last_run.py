"""What was recorded of a run of an agent, and what was not."""

from typing import Literal

import msgspec

MOST_HOSTS = 20  # that are named


class LastRun(msgspec.Struct, frozen=True, kw_only=True, omit_defaults=True):
    """What was recorded of a run, and what was not."""

    agent: str | None = None
    ended: str | None = None
    door: Literal["base-url", "forward"] = "base-url"
    requests: int = 0  # model requests that were recorded
    reason: str | None = None  # why there are none
    # Recorded hosts of which connections could not be read: the agent does not trust our certificate, or speaks another
    # protocol than HTTP/1.1 there.
    not_trusted: tuple[str, ...] = ()
    not_opened: tuple[str, ...] = ()
    missing: int = 0  # answers in its session file that no recorded request has
    not_understood: int = 0  # recorded calls to models that are kept as bytes
    not_understood_paths: tuple[str, ...] = ()  # of some of them, each once
    unread: int = 0  # hosts that were reached unread, as they are not recorded
    unread_hosts: tuple[str, ...] = ()  # some of them
