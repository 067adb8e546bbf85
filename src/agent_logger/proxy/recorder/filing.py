"""Which log a call goes to, and with which number: the decisions of tracking, made into files.

Calls that belong to no session go to the provider's `unattributed`; requests that we refused go to `refused`.
"""

from collections import Counter, OrderedDict
from functools import cache

from agent_logger.home.layout import safe_name
from agent_logger.model.records import Record
from agent_logger.proxy.recorder.calls.recorded_call import RequestStart
from agent_logger.proxy.recorder.history import wire_logs
from agent_logger.proxy.recorder.logs import LogName, Logs, last_seq
from agent_logger.proxy.tracking.fingerprint import Fingerprints
from agent_logger.proxy.tracking.memory import Memory
from agent_logger.proxy.tracking.table import Table
from agent_logger.proxy.tracking.tracker import Decision, TrackedAnswer, TrackedRequest, Tracker

REFUSED = LogName("", "refused")
MOST_NUMBERS = 4096  # logs whose last number is at hand


@cache
def unattributed(provider: str) -> LogName:
    return LogName(safe_name(provider), "unattributed")


class Filing:
    """The filing of calls. `rebuild`: the content of sessions.db cannot be trusted, so it is rebuilt."""

    def __init__(self, logs: Logs, key: bytes, *, rebuild: bool = False) -> None:
        self._logs = logs
        path = logs.log_dir / "sessions.db"
        if rebuild:
            path.unlink(missing_ok=True)
        self._memory = Memory(Table(path), lambda: wire_logs(logs.log_dir), fingerprints=Fingerprints(key))
        self._tracker = Tracker(key, self._begin, self._number, self._memory)
        self.numbers: OrderedDict[LogName, int] = OrderedDict()  # the number of the last call, by log
        self.agents_by_session: dict[str, str] = {}  # the agent of each session that had a call

    def file(self, request: TrackedRequest) -> tuple[Decision, LogName, int]:
        """The log of a request, and its number there. Write what `Decision.before` returns first."""
        decision = self._tracker.request(request)
        if decision.session is None:
            log = unattributed(request.provider)
            return decision, log, self.next_number(log)
        if decision.begins or decision.session not in self.agents_by_session:
            branch = self._memory.branch(decision.session)
            self.agents_by_session[decision.session] = (branch and branch.agent) or "other"
        return decision, LogName(safe_name(request.provider), decision.session), decision.seq

    def logged_decision(self, log: LogName, seq: int, request: RequestStart, *, message: bool) -> Decision:
        """The decision for a request that is in its log already."""
        method, path = request.head.method, request.tracked_path
        return self._tracker.resumed(log.name, seq, method=method, path=path, message=message)

    def answered(self, decision: Decision, answer: TrackedAnswer) -> str | None:
        return self._tracker.answered(decision, answer)

    def upstream(self, decision: Decision) -> str | None:
        """The upstream of the log."""
        return decision.branch.upstream if decision.branch else None

    def agents(self) -> dict[str, int]:
        """How many sessions of each agent had calls."""
        return dict(Counter(self.agents_by_session.values()))

    def next_number(self, log: LogName) -> int:
        number = self.numbers.pop(log, None)
        if number is None:
            number = last_seq(self._logs.log_dir, log)
        self.numbers[log] = number + 1
        if len(self.numbers) > MOST_NUMBERS:
            self.numbers.popitem(last=False)
        return number + 1

    def learn(self, log: LogName, record: Record) -> None:
        """Learn from a record that was written before a crash."""
        if log.folder and log.name != "unattributed":
            self._tracker.learn(log.folder, log.name, record)

    def commit(self, now: float, *, at_once: bool = False) -> bool:
        """Commit the decisions, once their records are in the logs. Returns whether all of them would be known at the
        next start."""
        self._memory.commit(now, at_once=at_once)
        return not at_once or self._memory.is_committed

    def close(self) -> None:
        self._memory.close()

    def _begin(self, request: TrackedRequest, root: str | None, number: int) -> str:
        folder = safe_name(request.provider)
        log = self._logs.begin_branch(folder, root, number) if root else self._logs.begin_session(folder, request.ts)
        self.numbers[log] = 0
        return log.name

    def _number(self, provider: str, session: str) -> int:
        return self.next_number(LogName(safe_name(provider), session))
