"""Which log a call goes to, and with which number: what tracking decides, made into files.

Calls that belong to no session go to the provider's `unattributed`; what we refused goes to `refused`.
"""

from collections import Counter, OrderedDict
from functools import cache

from agent_logger.home.layout import safe_name
from agent_logger.model.records import Record
from agent_logger.proxy.recorder.history import wire_logs
from agent_logger.proxy.recorder.logs import LogName, Logs, last_seq
from agent_logger.proxy.spool.frames import RequestHead
from agent_logger.proxy.tracking.fingerprint import Fingerprints
from agent_logger.proxy.tracking.memory import Known
from agent_logger.proxy.tracking.table import Table
from agent_logger.proxy.tracking.tracker import Answered, Asked, Decision, Tracker

REFUSED = LogName("", "refused")
MOST_NUMBERS = 4096  # logs whose last number is at hand


@cache
def unattributed(provider: str) -> LogName:
    return LogName(safe_name(provider), "unattributed")


class Filing:
    """`anew`: what sessions.db says is not to be believed."""

    def __init__(self, logs: Logs, key: bytes, *, anew: bool = False) -> None:
        self._logs = logs
        path = logs.log_dir / "sessions.db"
        if anew:
            path.unlink(missing_ok=True)
        self._known = Known(Table(path), lambda: wire_logs(logs.log_dir), fingerprints=Fingerprints(key))
        self._tracker = Tracker(key, self._begin, self._number, self._known)
        self.numbers: OrderedDict[LogName, int] = OrderedDict()  # of the last call
        self.seen: dict[str, str] = {}  # the agent of each session that had a call

    def file(self, asked: Asked) -> tuple[Decision, LogName, int]:
        """The log of a request, and its number there. What `Decision.before` gives is to be written first."""
        decision = self._tracker.request(asked)
        if decision.session is None:
            log = unattributed(asked.provider)
            return decision, log, self.next_number(log)
        if decision.begins or decision.session not in self.seen:
            branch = self._known.branch(decision.session)
            self.seen[decision.session] = (branch and branch.agent) or "other"
        return decision, LogName(safe_name(asked.provider), decision.session), decision.seq

    def found(self, log: LogName, seq: int, head: RequestHead, *, message: bool) -> Decision:
        """For a request that is in its log already."""
        method, path = method_and_path(head)
        return self._tracker.resumed(log.name, seq, method=method, path=path, message=message)

    def answered(self, decision: Decision, answer: Answered) -> str | None:
        return self._tracker.answered(decision, answer)

    def upstream(self, decision: Decision) -> str | None:
        """That of the log."""
        return decision.branch.upstream if decision.branch else None

    def agents(self) -> dict[str, int]:
        """How many sessions of each agent had calls."""
        return dict(Counter(self.seen.values()))

    def next_number(self, log: LogName) -> int:
        known = self.numbers.pop(log, None)
        if known is None:
            known = last_seq(self._logs.log_dir, log)
        self.numbers[log] = known + 1
        if len(self.numbers) > MOST_NUMBERS:
            self.numbers.popitem(last=False)
        return known + 1

    def learn(self, log: LogName, record: Record) -> None:
        """A record that was written before a crash."""
        if log.folder and log.name != "unattributed":
            self._tracker.learn(log.folder, log.name, record)

    def commit(self, now: float, *, at_once: bool = False) -> bool:
        """After what was decided is in the logs. Whether all of it would be known again at the next start."""
        self._tracker.commit(now, at_once=at_once)
        return not at_once or self._known.is_committed

    def close(self) -> None:
        self._known.close()

    def _begin(self, asked: Asked, root: str | None, number: int) -> str:
        folder = safe_name(asked.provider)
        log = (
            self._logs.begin_branch(folder, root, number)
            if root
            else self._logs.begin_session(folder, asked.ts)
        )
        self.numbers[log] = 0
        return log.name

    def _number(self, provider: str, session: str) -> int:
        return self.next_number(LogName(safe_name(provider), session))


def method_and_path(head: RequestHead) -> tuple[str, str]:
    return head.head.partition(b" ")[0].decode("latin-1"), head.path.decode("latin-1")
