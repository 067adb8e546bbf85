"""The recorder's status file."""

import msgspec

FILE_NAME = "recorder.json"


class RecorderStatus(msgspec.Struct, frozen=True, kw_only=True):
    """The content of `recorder.json`, rewritten every second."""

    pid: int
    ts: str
    calls: int  # ended, since this process began
    open: int
    written: int  # records
    lost: int  # frames that relays had to drop, and calls that could not be made records of
    lag_ms: float  # the age of the oldest frame that was not taken, at its highest within the last second
    backlog_bytes: int
    degraded_since: str | None = None
    problem: str | None = None
    checkpoints: int = 0
    sessions: int = 0  # sessions with a call since this process began
    not_understood: int = 0  # calls to models that are kept as bytes alone
    agents: dict[str, int] = msgspec.field(default_factory=dict)  # the number of sessions by agent
