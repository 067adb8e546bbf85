"""Which session, branch and thread a call belongs to, and how it goes on from what was before.

The order of evidence: the client's own name for the session; the response that the call says it follows; the longest
known beginning of its history, which must hold an answer of the model; else the session is new. Within a session:

| the call's history | it is |
|---|---|
| goes on from where the thread stands | continuation |
| goes on from an earlier state | fork: a branch, a log of its own |
| is that of an earlier call which failed, was cut, or is not answered yet | retry |
| is not known | rewrite (compaction), or the start of a thread |

The thread stands at its last call that was answered or is being answered. A call that failed or was cut moves nothing,
but clients go on from it too, with or without what it asked.
"""

from collections.abc import Callable, Collection, Sequence
from dataclasses import dataclass, field
from typing import Any, Literal

import msgspec

from agent_logger.model.records import Fork, Identity, Record, Response, Rewrite, WireStart
from agent_logger.proxy.tracking import classify, identity
from agent_logger.proxy.tracking.body import Api, Body, read, text, value
from agent_logger.proxy.tracking.fingerprint import Fingerprints, shown
from agent_logger.proxy.tracking.index import Branch, Outcome, Row, outcome_of
from agent_logger.proxy.tracking.memory import Known
from agent_logger.proxy.tracking.search import ForkPoint, Match, Search
from agent_logger.proxy.tracking.unnamed_agents import AGENT, UnnamedAgents, is_unnamed

Link = Literal["start", "continuation", "fork", "retry", "rewrite"]
DIVERGED = "message_history_diverged"
FAILED = (Outcome.FAILED, Outcome.CUT)
UNANSWERED = (*FAILED, Outcome.OPEN)
BY_FINGERPRINT = Identity(id=None, source="fingerprint", confidence="likely")


@dataclass(slots=True, kw_only=True)
class Asked:
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
class Answered:
    ts: str  # the response record's
    status: int | None
    complete: bool
    message: dict[str, Any] | None = None  # as the API gives it when it does not stream
    message_id: str | None = None  # of the responses API: the response's
    stop_reason: str | None = None


@dataclass(slots=True)
class Decision:
    """`session`: the name of its log, None for the provider's `unattributed`, which has no numbers from here."""

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

    def before(self, asked: Asked) -> list[Record]:
        """The records to append ahead of the request's."""
        records: list[Record] = []
        if self.begins:
            records.append(
                WireStart(
                    ts=asked.ts,
                    provider=asked.provider,
                    upstream=asked.upstream,
                    session=self.session,
                    identity=self.identity,
                    agent=self.agent,
                )
            )
        if self.fork:
            records.append(
                Fork(
                    ts=asked.ts,
                    from_seq=self.fork.from_seq,
                    parent_session=self.fork.parent,
                    reason=DIVERGED,
                )
            )
        if self.link == "rewrite":
            records.append(Rewrite(ts=asked.ts, seq=self.seq, reason=self.reason))
        return records

    @property
    def of_request(self) -> Identity | None:
        """What the request's record says of its identity: nothing where `session_start` says the same."""
        own = self.branch.identity if self.branch else None
        return None if self.begins or self.session is None or self.identity == own else self.identity


Begin = Callable[[Asked, str | None, int], str]
Number = Callable[[str, str], int]


class Tracker:
    """`begin(asked, root, number)` names a log that is not there yet: a new session's, or with `root` its branch of
    this number or a higher one. `number(provider, session)` is the number of the log's next call."""

    def __init__(self, key: bytes, begin: Begin, number: Number, known: Known | None = None) -> None:
        self.known = known or Known()
        self._fingerprints = Fingerprints(key)
        self._begin, self._number = begin, number
        self._unnamed = UnnamedAgents()

    # ------------------------------------------------------------ a call

    def request(self, asked: Asked) -> Decision:
        agent = identity.agent_of(asked.headers)
        api = classify.api_of(asked.method, asked.path, message=asked.message)
        body = read(asked.body) if api and asked.body else None
        said = self._written(asked, identity.identify(asked.headers, body, agent))
        if api and body and (units := body.units(api)):
            return self._tracked(asked, agent, api, body, units, said)
        kind = "other" if api else classify.untracked_kind(asked.method, asked.path)
        decision = Decision(kind, "side", agent=agent)
        self._attach(asked, decision, said or self._written(asked, identity.of_gateway(asked.headers)))
        return self._numbered(asked, decision, None)

    def answered(self, decision: Decision, answer: Answered) -> str | None:
        """The fingerprint of the state after it."""
        branch = self.known.branch(decision.session) if decision.session else None
        if branch is None:
            return None
        row = branch.rows.get(decision.seq)
        if answer.message and branch.agent == "claude-code":
            self._unnamed.note(branch.root, answer.message)
        outcome = outcome_of(answer.status, answer.stop_reason, complete=answer.complete)
        after = None
        if row and decision.api and answer.message and outcome is Outcome.COMPLETE:
            after = self._fingerprints.after(decision.api, row.state, answer.message)
            self.known.uses.note(branch.name, row.seq, answer.message)
        self.known.note_answer(branch, row, outcome, after, answer.message_id, answer.ts)
        return shown(after) if after else None

    def learn(self, provider: str, session: str, record: Record) -> None:
        """A record that was found in a log. To learn it twice changes nothing."""
        self.known.learn(provider, session, record)
        branch = self.known.branch(session)
        if isinstance(record, Response) and isinstance(record.message, msgspec.Raw):
            message = value(record.message)
            if branch and branch.agent == "claude-code" and isinstance(message, dict):
                self._unnamed.note(branch.root, message)

    def resumed(self, session: str, seq: int, *, method: str, path: str, message: bool = False) -> Decision:
        """What `answered` needs for a call whose request is in the log already."""
        return Decision("other", "side", session, seq, api=classify.api_of(method, path, message=message))

    def commit(self, now: float, *, at_once: bool = False) -> None:
        """After a batch; `now` in seconds, monotonic. `at_once` before a checkpoint. Never raises."""
        self.known.commit(now, at_once=at_once)

    def _tracked(
        self,
        asked: Asked,
        agent: str | None,
        api: Api,
        body: Body,
        units: Sequence[msgspec.Raw],
        said: Identity | None,
    ) -> Decision:
        follows = text(body.previous_response_id)
        origin = self.known.answered_as(follows) if follows else None
        if said is None and origin:
            own = origin.branch.identity
            said = Identity(id=own.id if own else None, source="previous_response_id", confidence="certain")
        said = said or self._written(asked, identity.of_gateway(asked.headers))
        base = (origin.after or origin.state) if origin else self._fingerprints.start(api, follows)
        rolled = self._fingerprints.roll(api, base, units)
        search = Search(self.known.index, asked.provider, rolled, units, origin)
        group = self._group(asked.provider, said, origin)
        decision = Decision("main", "main", agent=agent, api=api, fingerprint=shown(rolled.states[-1]))
        if name := identity.agent_id(asked.headers):
            decision.kind, decision.thread = "subagent", AGENT + self._name(asked, name)
        elif call := self._unnamed_agent(group, units, search):
            decision.kind, decision.thread = "subagent", AGENT + call
        elif classify.is_side(agent, body, units, has_id=said is not None):
            decision.kind, decision.thread = "side", "side"
        elif classify.is_compaction(agent, units):
            decision.kind = "compact"
        elif group and not (body.has_tools or origin) and not search.is_known(group, "main"):
            decision.kind, decision.thread = "side", "side"
        if said:
            self._place_named(asked, decision, said, group, search)
        else:
            self._place_unnamed(asked, decision, search)
        return self._numbered(asked, decision, rolled.states[-1])

    def _unnamed_agent(
        self, group: Collection[Branch], units: Sequence[msgspec.Raw], search: Search
    ) -> str | None:
        """The tool call that started the sub-agent that asks, if it does not say so.

        A person's prompt may be passed on word for word. So what is known of the conversation, once it was answered,
        says more than its prompt.
        """
        own = [branch for branch in group if branch.agent == "claude-code"]
        calls = (self._unnamed.asking(root, units) for root in {branch.root for branch in own})
        call = next(filter(None, calls), None)
        if call is None and not any(is_unnamed(thread) for branch in own for thread in branch.threads):
            return None
        known, main = (search.longest(group, thread, need_answer=True) for thread in (None, "main"))
        if known and main and main.units >= known.units:
            return None
        return known.row.thread.removeprefix(AGENT) if known and is_unnamed(known.row.thread) else call

    # ------------------------------------------------------------ with a name

    def _place_named(
        self, asked: Asked, decision: Decision, said: Identity, group: Collection[Branch], search: Search
    ) -> None:
        decision.identity, thread = said, decision.thread
        there = [branch for branch in group if thread in branch.threads]
        last = _last_active(there).threads[thread][-1] if there else None
        # Warm-ups ask the same of several models at once; that is no retry.
        if attempt := search.attempt(group, thread, FAILED if thread == "side" else UNANSWERED):
            _retry(decision, attempt)
        elif thread == "side":
            self._attach(asked, decision, said)
        elif last is None:
            self._start_thread(asked, decision, group, search)
        elif (match := search.longest(group, thread, need_answer=False)) and (
            last.kind != "compact" or search.has_answer(match)
        ):
            self._go_on(asked, decision, match, search)
        elif match := search.attempt(group, thread, (Outcome.COMPLETE,)):
            self._fork(asked, decision, match, search)
        else:
            decision.branch = last.branch
            decision.link = "continuation" if decision.kind == "compact" else "rewrite"
            decision.reason = _why_rewritten(last)

    def _start_thread(
        self, asked: Asked, decision: Decision, group: Collection[Branch], search: Search
    ) -> None:
        """Of a session that is new, or had other threads only. It may have begun as a fork of another."""
        self.known.fetch(search.rolled)
        decision.link, decision.branch = "start", _last_active(group) if group else None
        if decision.kind == "main" and (match := search.longest(None, "main", need_answer=True)):
            decision.link, decision.fork = "fork", search.fork_point(match)
            if match.others:
                decision.identity = _among(decision.identity, match)
        elif decision.kind == "main" and (origin := self._came_from(asked, search)):
            decision.link, decision.fork = "fork", origin
        if decision.branch is None:
            self._start_log(asked, decision)
        elif decision.fork:
            decision.branch.parent, decision.branch.from_seq = decision.fork.parent, decision.fork.from_seq

    # ------------------------------------------------------------ without one

    def _place_unnamed(self, asked: Asked, decision: Decision, search: Search) -> None:
        thread, retried = decision.thread, identity.retries(asked.headers) > 0
        self.known.fetch(search.rolled, any_outcome=retried)
        outcomes = tuple(Outcome) if retried else FAILED
        attempt = search.attempt(None, thread, outcomes) if thread != "side" else None
        match = search.longest(None, "main" if thread == "side" else thread, need_answer=True)
        if attempt:
            match = search.among(attempt, match)
        if match:
            decision.identity = _among(BY_FINGERPRINT, match)
            if attempt and match.units == attempt.units:
                _retry(decision, match)
            else:
                self._go_on(asked, decision, match, search)
        elif thread != "side":
            decision.fork = self._came_from(asked, search)
            decision.link = "fork" if decision.fork else "start"
            self._start_log(asked, decision)
        elif origin := self._came_from(asked, search):
            decision.branch = self.known.branch(origin.parent)

    # ------------------------------------------------------------ both

    def _came_from(self, asked: Asked, search: Search) -> ForkPoint | None:
        """Where a history began that nobody knows as it is, by the ids of the tool calls in it."""
        if search.rolled.first_answer is None or (found := self.known.uses.last_in(search.units)) is None:
            return None
        (session, seq), later = found
        branch = self.known.branch(session)
        if branch is None or branch.provider != asked.provider:
            return None
        rows = [it for it in branch.threads.get("main", ()) if it.leads and it.outcome is Outcome.COMPLETE]
        behind = [it.seq for it in rows if it.seq > seq]
        return ForkPoint(session, behind[min(later, len(behind)) - 1] if later and behind else seq)

    def _go_on(self, asked: Asked, decision: Decision, match: Match, search: Search) -> None:
        if decision.kind == "side":
            decision.branch = match.row.branch
        elif decision.kind == "compact" or search.goes_on(match):
            decision.link, decision.branch = "continuation", match.row.branch
        else:
            self._fork(asked, decision, match, search)

    def _fork(self, asked: Asked, decision: Decision, match: Match, search: Search) -> None:
        decision.link, decision.fork = "fork", search.fork_point(match)
        self._start_log(asked, decision)

    def _attach(self, asked: Asked, decision: Decision, said: Identity | None) -> None:
        """By its name alone, to the branch last active. The first call with a name begins its log."""
        if said is None:
            return
        decision.identity = said
        group = self._group(asked.provider, said, None)
        if group:
            decision.branch = _last_active(group)
        elif said.id:
            self._start_log(asked, decision)

    def _start_log(self, asked: Asked, decision: Decision) -> None:
        root, number, fork = None, 1, decision.fork
        if fork and (parent := self.known.branch(fork.parent)):
            root = parent.root
            number = len(self.known.index.roots[root].branches)
        name = self._begin(asked, root, number)
        decision.begins = True
        decision.branch = Branch(
            name=name,
            provider=asked.provider,
            upstream=asked.upstream,
            root=root or name,
            created_at=asked.ts,
            last_activity=asked.ts,
            identity=decision.identity,
            agent=decision.agent,
            parent=fork.parent if fork else None,
            from_seq=fork.from_seq if fork else None,
        )
        self.known.begin(decision.branch)

    def _numbered(self, asked: Asked, decision: Decision, state: bytes | None) -> Decision:
        branch = decision.branch
        if branch is None:
            return decision
        decision.session = branch.name
        decision.seq = self._number(branch.provider, branch.name)
        row = None
        if state:
            row = Row(branch, decision.seq, decision.thread, decision.kind, state, retry_of=decision.retry_of)
        self.known.note_request(branch, decision.seq, row, asked.ts)
        return decision

    def _written(self, asked: Asked, said: Identity | None) -> Identity | None:
        """Names are written down; one with a secret in it goes by its HMAC."""
        if said is None or said.id is None or self.known.index.of_client((asked.provider, said.id)):
            return said
        name = self._name(asked, said.id)
        return said if name == said.id else Identity(id=name, source=said.source, confidence=said.confidence)

    def _name(self, asked: Asked, name: str) -> str:
        if asked.redact is None or asked.redact(name) == name:
            return name
        return f"hmac:{self._fingerprints.of_name(name)}"

    def _group(self, provider: str, said: Identity | None, origin: Row | None) -> Collection[Branch]:
        """The branches that go by this name."""
        if said and said.id:
            return self.known.branches_of_client((provider, said.id))
        if origin:  # they have none: all that share the root
            branches = self.known.index.roots[origin.branch.root].branches.values()
            return [branch for branch in branches if branch.client is None]
        return ()


def _why_rewritten(last: Row) -> str:
    return "compaction" if last.kind == "compact" else "history_replaced"


def _retry(decision: Decision, attempt: Match) -> None:
    decision.link, decision.branch = "retry", attempt.row.branch
    decision.retry_of = attempt.row.retry_of or attempt.row.seq


def _last_active(branches: Collection[Branch]) -> Branch:
    return max(branches, key=lambda branch: branch.active)


def _among(said: Identity, match: Match) -> Identity:
    """Where others fit as well, they are named; without the client's word it is a guess which one it is."""
    if not match.others:
        return said
    candidates = [match.row.branch.name, *sorted(row.branch.name for row in match.others)]
    confidence = said.confidence if said.id else "ambiguous"
    return Identity(id=said.id, source=said.source, confidence=confidence, candidates=candidates)
