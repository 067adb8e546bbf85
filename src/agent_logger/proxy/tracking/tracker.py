"""Which session, branch and thread a call belongs to, and how it continues what was before.

The order of evidence: the client's own name for the session; the response that the call says it follows; the longest
known beginning of its history, which must hold an answer of the model; else the session is new. Within a session:

| the call's history | it is |
|---|---|
| continues where the thread stands | continuation |
| continues an earlier state | fork: a branch, a log of its own |
| is that of an earlier call which failed, was cut, or is not answered yet | retry |
| is not known | rewrite (compaction), or the start of a thread |

The thread stands at its last call that was answered or is being answered. A call that failed or was cut does not move
it, but clients continue from such a call too, with or without what it asked.

For each call the recorder calls `Tracker.request`, and appends `decision.before(request)` and the request's record.
When the answer ends it calls `Tracker.answered`, and writes the fingerprint that this returns. `Tracker.commit` follows
each batch. After a crash the records in the logs go to `Tracker.learn`, in their order; the answer to a request that is
in the log already goes through `Tracker.resumed`.
"""

from collections.abc import Callable, Collection, Sequence
from dataclasses import dataclass, field
from typing import Any, Literal

import msgspec

from agent_logger.agents.registry import wire_of
from agent_logger.model.records import Fork, Identity, Record, Response, Rewrite, WireStart
from agent_logger.providers.request_body import Api, RequestBody, read, text, value
from agent_logger.proxy.tracking import classify, identity
from agent_logger.proxy.tracking.fingerprint import Fingerprints, hex_text
from agent_logger.proxy.tracking.index import Branch, CallOutcome, CallRow, outcome_of
from agent_logger.proxy.tracking.memory import Memory
from agent_logger.proxy.tracking.search import ForkPoint, HistoryMatch, HistorySearch
from agent_logger.proxy.tracking.unnamed_agents import AGENT, UnnamedAgents, is_unnamed

Link = Literal["start", "continuation", "fork", "retry", "rewrite"]
DIVERGED = "message_history_diverged"
FAILED = (CallOutcome.FAILED, CallOutcome.CUT)
UNANSWERED = (*FAILED, CallOutcome.OPEN)
BY_FINGERPRINT = Identity(id=None, source="fingerprint", confidence="likely")


@dataclass(slots=True, kw_only=True)
class TrackedRequest:
    provider: str
    upstream: str
    method: str
    path: str
    headers: identity.Headers  # by name in lower case; on a WebSocket those of the upgrade
    body: bytes = b""  # decoded, before redaction
    ts: str  # the request record's
    message: bool = False  # of a WebSocket
    redact: Callable[[str], str] | None = None  # what a name may hold that must not be written


@dataclass(slots=True, kw_only=True)
class TrackedAnswer:
    ts: str  # the response record's
    status: int | None
    complete: bool
    message: dict[str, Any] | None = None  # as the API gives it when it does not stream
    message_id: str | None = None  # of the responses API: the response's
    stop_reason: str | None = None


@dataclass(slots=True)
class Decision:
    """The place of a call. `session`: the name of its log, `None` for the provider's `unattributed`, whose calls are
    not numbered here."""

    kind: classify.Kind
    thread: str
    session: str | None = None
    seq: int = 0
    begins: bool = False  # the log does with this call
    link: Link | None = None  # of calls that are tracked
    fork: ForkPoint | None = None
    retry_of: int | None = None
    reason: str = ""  # of a rewrite
    fingerprint: str | None = None
    identity: Identity = identity.NEW
    agent: str | None = None
    api: Api | None = None
    branch: Branch | None = field(default=None, repr=False)

    def before(self, request: TrackedRequest) -> list[Record]:
        """The records to append ahead of the request's."""
        records: list[Record] = []
        if self.begins:
            records.append(
                WireStart(
                    ts=request.ts,
                    provider=request.provider,
                    upstream=request.upstream,
                    session=self.session,
                    identity=self.identity,
                    agent=self.agent,
                )
            )
        if self.fork:
            records.append(
                Fork(
                    ts=request.ts,
                    from_seq=self.fork.from_seq,
                    parent_session=self.fork.parent,
                    reason=DIVERGED,
                )
            )
        if self.link == "rewrite":
            records.append(Rewrite(ts=request.ts, seq=self.seq, reason=self.reason))
        return records

    @property
    def of_request(self) -> Identity | None:
        """The identity in the request's record: `None` where `session_start` says the same."""
        own = self.branch.identity if self.branch else None
        return None if self.begins or self.session is None or self.identity == own else self.identity


Begin = Callable[[TrackedRequest, str | None, int], str]
Number = Callable[[str, str], int]


class Tracker:
    """The tracker of sessions. `begin(request, root, number)` names a log that does not exist yet: a new session's, or
    with `root` its branch of this number or a higher one. `number(provider, session)` is the number of the log's next
    call."""

    def __init__(self, key: bytes, begin: Begin, number: Number, memory: Memory | None = None) -> None:
        self.memory = memory or Memory()
        self._fingerprints = Fingerprints(key)
        self._begin, self._number = begin, number
        self._unnamed = UnnamedAgents()

    # ------------------------------------------------------------ a call

    def request(self, tracked: TrackedRequest) -> Decision:
        agent = identity.agent_of(tracked.headers)
        api = classify.api_of(tracked.method, tracked.path, message=tracked.message)
        body = read(tracked.body) if api and tracked.body else None
        named = self._written(tracked, identity.identify(tracked.headers, body, agent))
        if api and body and (units := body.units(api)):
            return self._tracked(tracked, agent, api, body, units, named)
        kind = "other" if api else classify.untracked_kind(tracked.method, tracked.path)
        decision = Decision(kind, "side", agent=agent)
        self._attach(tracked, decision, named or self._written(tracked, identity.of_gateway(tracked.headers)))
        return self._numbered(tracked, decision, None)

    def answered(self, decision: Decision, answer: TrackedAnswer) -> str | None:
        """Note an answer. Returns the fingerprint of the state after it."""
        branch = self.memory.branch(decision.session) if decision.session else None
        if branch is None:
            return None
        row = branch.rows.get(decision.seq)
        if answer.message and wire_of(branch.agent).matches_agents_by_prompt:
            self._unnamed.note(branch.root, answer.message)
        outcome = outcome_of(answer.status, answer.stop_reason, complete=answer.complete)
        after = None
        if row and decision.api and answer.message and outcome is CallOutcome.COMPLETE:
            after = self._fingerprints.after(decision.api, row.state, answer.message)
            self.memory.uses.note(branch.name, row.seq, answer.message)
        self.memory.note_answer(branch, row, outcome, after, answer.message_id, answer.ts)
        return hex_text(after) if after else None

    def learn(self, provider: str, session: str, record: Record) -> None:
        """Learn from a record that was found in a log. Learning it twice changes nothing."""
        self.memory.learn(provider, session, record)
        branch = self.memory.branch(session)
        if isinstance(record, Response) and isinstance(record.message, msgspec.Raw):
            message = value(record.message)
            if branch and wire_of(branch.agent).matches_agents_by_prompt and isinstance(message, dict):
                self._unnamed.note(branch.root, message)

    def resumed(self, session: str, seq: int, *, method: str, path: str, message: bool = False) -> Decision:
        """What `answered` needs for a call whose request is in the log already."""
        return Decision("other", "side", session, seq, api=classify.api_of(method, path, message=message))

    def commit(self, now: float, *, at_once: bool = False) -> None:
        """Commit a batch. `now` is in seconds, monotonic; `at_once` before a checkpoint. Never raises."""
        self.memory.commit(now, at_once=at_once)

    def _tracked(
        self,
        request: TrackedRequest,
        agent: str | None,
        api: Api,
        body: RequestBody,
        units: Sequence[msgspec.Raw],
        named: Identity | None,
    ) -> Decision:
        follows = text(body.previous_response_id)
        origin = self.memory.answered_as(follows) if follows else None
        if named is None and origin:
            own = origin.branch.identity
            named = Identity(id=own.id if own else None, source="previous_response_id", confidence="certain")
        named = named or self._written(request, identity.of_gateway(request.headers))
        base = (origin.after or origin.state) if origin else self._fingerprints.start(api, follows)
        rolled = self._fingerprints.roll(api, base, units)
        search = HistorySearch(self.memory.index, request.provider, rolled, units, origin)
        group = self._group(request.provider, named, origin)
        decision = Decision("main", "main", agent=agent, api=api, fingerprint=hex_text(rolled.states[-1]))
        if name := identity.agent_id(request.headers):
            decision.kind, decision.thread = "subagent", AGENT + self._name(request, name)
        elif call := self._unnamed_agent(group, units, search):
            decision.kind, decision.thread = "subagent", AGENT + call
        elif classify.is_side(agent, body, units, has_id=named is not None):
            decision.kind, decision.thread = "side", "side"
        elif classify.is_compaction(agent, units):
            decision.kind = "compact"
        elif group and not (body.has_tools or origin) and not search.is_known(group, "main"):
            decision.kind, decision.thread = "side", "side"
        if named:
            self._place_named(request, decision, named, group, search)
        else:
            self._place_unnamed(request, decision, search)
        return self._numbered(request, decision, rolled.states[-1])

    def _unnamed_agent(
        self, group: Collection[Branch], units: Sequence[msgspec.Raw], search: HistorySearch
    ) -> str | None:
        """The tool call that started the sub-agent that sends the request, if the request does not name it.

        A person's prompt may be passed on word for word. So the known history of the conversation, once it was
        answered, is better evidence than its prompt.
        """
        own = [branch for branch in group if wire_of(branch.agent).matches_agents_by_prompt]
        calls = (self._unnamed.asking(root, units) for root in {branch.root for branch in own})
        call = next(filter(None, calls), None)
        if call is None and not any(is_unnamed(thread) for branch in own for thread in branch.threads):
            return None
        match, main = (search.longest(group, thread, need_answer=True) for thread in (None, "main"))
        if match and main and main.units >= match.units:
            return None
        return match.row.thread.removeprefix(AGENT) if match and is_unnamed(match.row.thread) else call

    # ------------------------------------------------------------ with a name

    def _place_named(
        self,
        request: TrackedRequest,
        decision: Decision,
        identity: Identity,
        group: Collection[Branch],
        search: HistorySearch,
    ) -> None:
        decision.identity, thread = identity, decision.thread
        there = [branch for branch in group if thread in branch.threads]
        last = _last_active(there).threads[thread][-1] if there else None
        # Warm-ups ask the same of several models at once; that is no retry.
        if attempt := search.attempt(group, thread, FAILED if thread == "side" else UNANSWERED):
            _retry(decision, attempt)
        elif thread == "side":
            self._attach(request, decision, identity)
        elif last is None:
            self._start_thread(request, decision, group, search)
        elif (match := search.longest(group, thread, need_answer=False)) and (
            last.kind != "compact" or search.has_answer(match)
        ):
            self._go_on(request, decision, match, search)
        elif match := search.attempt(group, thread, (CallOutcome.COMPLETE,)):
            self._fork(request, decision, match, search)
        else:
            decision.branch = last.branch
            decision.link = "continuation" if decision.kind == "compact" else "rewrite"
            decision.reason = _why_rewritten(last)

    def _start_thread(
        self, request: TrackedRequest, decision: Decision, group: Collection[Branch], search: HistorySearch
    ) -> None:
        """Start a thread of a session that is new, or had other threads only. It may have begun as a fork of
        another."""
        self.memory.fetch(search.rolled)
        decision.link, decision.branch = "start", _last_active(group) if group else None
        if decision.kind == "main" and (match := search.longest(None, "main", need_answer=True)):
            decision.link, decision.fork = "fork", search.fork_point(match)
            if match.others:
                decision.identity = _among(decision.identity, match)
        elif decision.kind == "main" and (origin := self._came_from(request, search)):
            decision.link, decision.fork = "fork", origin
        if decision.branch is None:
            self._start_log(request, decision)
        elif decision.fork:
            decision.branch.parent, decision.branch.from_seq = decision.fork.parent, decision.fork.from_seq

    # ------------------------------------------------------------ without one

    def _place_unnamed(self, request: TrackedRequest, decision: Decision, search: HistorySearch) -> None:
        thread, retried = decision.thread, identity.retries(request.headers) > 0
        self.memory.fetch(search.rolled, any_outcome=retried)
        outcomes = tuple(CallOutcome) if retried else FAILED
        attempt = search.attempt(None, thread, outcomes) if thread != "side" else None
        match = search.longest(None, "main" if thread == "side" else thread, need_answer=True)
        if attempt:
            match = search.among(attempt, match)
        if match:
            decision.identity = _among(BY_FINGERPRINT, match)
            if attempt and match.units == attempt.units:
                _retry(decision, match)
            else:
                self._go_on(request, decision, match, search)
        elif thread != "side":
            decision.fork = self._came_from(request, search)
            decision.link = "fork" if decision.fork else "start"
            self._start_log(request, decision)
        elif origin := self._came_from(request, search):
            decision.branch = self.memory.branch(origin.parent)

    # ------------------------------------------------------------ both

    def _came_from(self, request: TrackedRequest, search: HistorySearch) -> ForkPoint | None:
        """The origin of a history that is not known as it is, found by the ids of the tool calls in it."""
        if search.rolled.first_answer is None or (use := self.memory.uses.last_in(search.units)) is None:
            return None
        (session, seq), later = use
        branch = self.memory.branch(session)
        if branch is None or branch.provider != request.provider:
            return None
        rows = [
            row for row in branch.threads.get("main", ()) if row.leads and row.outcome is CallOutcome.COMPLETE
        ]
        behind = [row.seq for row in rows if row.seq > seq]
        return ForkPoint(session, behind[min(later, len(behind)) - 1] if later and behind else seq)

    def _go_on(
        self, request: TrackedRequest, decision: Decision, match: HistoryMatch, search: HistorySearch
    ) -> None:
        if decision.kind == "side":
            decision.branch = match.row.branch
        elif decision.kind == "compact" or search.goes_on(match):
            decision.link, decision.branch = "continuation", match.row.branch
        else:
            self._fork(request, decision, match, search)

    def _fork(
        self, request: TrackedRequest, decision: Decision, match: HistoryMatch, search: HistorySearch
    ) -> None:
        decision.link, decision.fork = "fork", search.fork_point(match)
        self._start_log(request, decision)

    def _attach(self, request: TrackedRequest, decision: Decision, identity: Identity | None) -> None:
        """Attach the call by its name alone, to the branch last active. The first call with a name begins its log."""
        if identity is None:
            return
        decision.identity = identity
        group = self._group(request.provider, identity, None)
        if group:
            decision.branch = _last_active(group)
        elif identity.id:
            self._start_log(request, decision)

    def _start_log(self, request: TrackedRequest, decision: Decision) -> None:
        root, number, fork = None, 1, decision.fork
        if fork and (parent := self.memory.branch(fork.parent)):
            root = parent.root
            number = len(self.memory.index.roots[root].branches)
        name = self._begin(request, root, number)
        decision.begins = True
        decision.branch = Branch(
            name=name,
            provider=request.provider,
            upstream=request.upstream,
            root=root or name,
            created_at=request.ts,
            last_activity=request.ts,
            identity=decision.identity,
            agent=decision.agent,
            parent=fork.parent if fork else None,
            from_seq=fork.from_seq if fork else None,
        )
        self.memory.begin(decision.branch)

    def _numbered(self, request: TrackedRequest, decision: Decision, state: bytes | None) -> Decision:
        branch = decision.branch
        if branch is None:
            return decision
        decision.session = branch.name
        decision.seq = self._number(branch.provider, branch.name)
        row = None
        if state:
            row = CallRow(
                branch, decision.seq, decision.thread, decision.kind, state, retry_of=decision.retry_of
            )
        self.memory.note_request(branch, decision.seq, row, request.ts)
        return decision

    def _written(self, request: TrackedRequest, identity: Identity | None) -> Identity | None:
        """The identity as it is written to the log: a name with a secret in it is replaced by its HMAC."""
        if (
            identity is None
            or identity.id is None
            or self.memory.index.of_client((request.provider, identity.id))
        ):
            return identity
        name = self._name(request, identity.id)
        return (
            identity
            if name == identity.id
            else Identity(id=name, source=identity.source, confidence=identity.confidence)
        )

    def _name(self, request: TrackedRequest, name: str) -> str:
        if request.redact is None or request.redact(name) == name:
            return name
        return f"hmac:{self._fingerprints.of_name(name)}"

    def _group(self, provider: str, identity: Identity | None, origin: CallRow | None) -> Collection[Branch]:
        """The branches that have this name."""
        if identity and identity.id:
            return self.memory.branches_of_client((provider, identity.id))
        if origin:  # they have none: all that share the root
            branches = self.memory.index.roots[origin.branch.root].branches.values()
            return [branch for branch in branches if branch.client is None]
        return ()


def _why_rewritten(last: CallRow) -> str:
    return "compaction" if last.kind == "compact" else "history_replaced"


def _retry(decision: Decision, attempt: HistoryMatch) -> None:
    decision.link, decision.branch = "retry", attempt.row.branch
    decision.retry_of = attempt.row.retry_of or attempt.row.seq


def _last_active(branches: Collection[Branch]) -> Branch:
    return max(branches, key=lambda branch: branch.active)


def _among(identity: Identity, match: HistoryMatch) -> Identity:
    """The identity with the other branches that fit as well; if the client named none, the choice is a guess."""
    if not match.others:
        return identity
    candidates = [match.row.branch.name, *sorted(row.branch.name for row in match.others)]
    confidence = identity.confidence if identity.id else "ambiguous"
    return Identity(id=identity.id, source=identity.source, confidence=confidence, candidates=candidates)
