"""Which session, branch and thread a call belongs to, and how it continues what was before.

The order of evidence: the agent's own name for the session; the generic names that any client may send (`identity`);
the longest known beginning of its history, which must hold an answer of the model; else the session is new. The
response that the call says it follows comes before the names that are meant for gateways and caches. Within a session,
`Tracker._place_named` has the table of what a call is by its history. A fork is a branch, with a log of its own.

For each call the recorder calls `Tracker.request`, and appends `decision.before(request)` and the request's record.
When the answer ends it calls `Tracker.answered`, and writes the fingerprint that this returns. `Memory.commit` follows
each batch. After a crash the records in the logs go to `Tracker.learn`, in their order; the answer to a request that is
in the log already goes through `Tracker.resumed`.
"""

from collections.abc import Callable, Collection, Sequence
from dataclasses import dataclass, field, replace
from typing import Any, Literal, NamedTuple

import msgspec

from agent_logger.agents.registry import agent_called, wire_of
from agent_logger.model.records import Fork, Identity, Record, Request, Response, Rewrite, WireStart
from agent_logger.model.session import AGENT_PREFIX
from agent_logger.providers.request_body import Api, RequestBody, asks_model, text, value
from agent_logger.proxy.tracking import classify, identity
from agent_logger.proxy.tracking.fingerprint import Fingerprints, Rolled, hex_text
from agent_logger.proxy.tracking.index import Branch, CallOutcome, CallRow, outcome_of
from agent_logger.proxy.tracking.known_history import RequestHistory
from agent_logger.proxy.tracking.memory import Memory
from agent_logger.proxy.tracking.search import (
    FAILED,
    Continues,
    ForkPoint,
    HistoryMatch,
    HistorySearch,
    NothingBefore,
    Repeats,
    Unrelated,
    last_active,
)
from agent_logger.proxy.tracking.unnamed_agents import UnnamedAgents, is_unnamed

Link = Literal["start", "continuation", "fork", "retry", "rewrite"]
DIVERGED = "message_history_diverged"
FOLLOWS = "previous_response_id"
BY_FINGERPRINT = Identity(id=None, source="fingerprint", confidence="likely")


class UnfinishedCall(NamedTuple):
    """A call that has not ended. `read_answer` returns its answer if the last event of it has arrived."""

    decision: "Decision"
    read_answer: "Callable[[], TrackedAnswer | None]"


@dataclass(slots=True, kw_only=True)
class TrackedRequest:
    provider: str
    upstream: str
    method: str
    path: str
    headers: identity.Headers  # names are in lower case; on a WebSocket, the headers of the upgrade
    body: bytes = b""  # decoded, before redaction
    history: RequestHistory | None = None  # the history in that body, if something is known of it
    ts: str  # the request record's
    message: bool = False  # whether it is a message of a WebSocket
    redact: Callable[[str], str] | None = None  # removes from a name what must not be written
    unfinished: Sequence[UnfinishedCall] = ()  # other calls that are in flight
    # The sub-agent that makes the call, as the client names it; the tracker sets it.
    sub_agent: str | None = None


@dataclass(slots=True, kw_only=True)
class TrackedAnswer:
    ts: str  # the response record's
    status: int | None
    complete: bool
    message: dict[str, Any] | None = None  # the message in the form that the API gives it without streaming
    message_id: str | None = None  # the id of the message; in the responses API, of the response
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
    link: Link | None = None  # set for calls that are tracked
    fork: ForkPoint | None = None
    retry_of: int | None = None
    reason: str = ""  # the reason of a rewrite
    fingerprint: str | None = None
    identity: Identity = identity.NEW
    agent: str | None = None
    api: Api | None = None
    branch: Branch | None = field(default=None, repr=False)
    is_unread: bool = False  # a request to a model whose body, or whose endpoint, has the form of no API

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
        self._starters: dict[tuple[str, str], Identity] = {}  # sessions that started others, by provider and session

    # ------------------------------------------------------------ a call

    def request(self, tracked: TrackedRequest) -> Decision:
        api = classify.api_of(tracked.method, tracked.path, message=tracked.message)
        history = tracked.history or RequestHistory(tracked.body)
        body = history.read(api) if api else None
        agent = identity.agent_of(tracked.headers, body, api)
        headers = tracked.headers
        named = self._written(tracked, identity.own_name(headers, body, agent) or identity.generic_header(headers))
        if api and body and (units := body.units(api)):
            tracked.sub_agent = identity.agent_id(headers, body, agent)
            if named and wire_of(agent).agents_have_sessions:
                named = self._starter(tracked, named, units)
            return self._tracked(tracked, agent, api, body, units, history, named)
        kind = "other" if api else classify.untracked_kind(tracked.method, tracked.path)
        is_unread = not (body and body.has_content) if api else _asks_model(tracked, kind)
        decision = Decision(kind, "side", agent=agent, is_unread=is_unread)
        named = named or self._written(tracked, identity.of_gateway(headers))
        if named:
            self._attach(tracked, decision, *self._bearers(tracked, named, agent))
        return self._numbered(tracked, decision, None)

    def answered(self, decision: Decision, answer: TrackedAnswer) -> str | None:
        """Note an answer. Returns the fingerprint of the state after it."""
        branch = self.memory.branch(decision.session) if decision.session else None
        if branch is None:
            return None
        row = branch.rows.get(decision.seq)
        if answer.message and _starts_agents(branch.agent):
            self._unnamed.note(branch.root, answer.message)
        outcome = outcome_of(answer.status, answer.stop_reason, complete=answer.complete)
        if row and row.after and row.outcome is outcome is CallOutcome.COMPLETE:
            return hex_text(row.after)  # it was noted before its call ended
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
            if branch and _starts_agents(branch.agent) and isinstance(message, dict):
                self._unnamed.note(branch.root, message)
        elif isinstance(record, Request) and branch and branch.identity and wire_of(branch.agent).agents_have_sessions:
            thread = record.thread or ""
            if thread.startswith(AGENT_PREFIX):
                self._starters[provider, thread.removeprefix(AGENT_PREFIX)] = branch.identity

    def resumed(self, session: str, seq: int, *, method: str, path: str, message: bool = False) -> Decision:
        """What `answered` needs for a call whose request is in the log already."""
        return Decision("other", "side", session, seq, api=classify.api_of(method, path, message=message))

    def _tracked(
        self,
        request: TrackedRequest,
        agent: str | None,
        api: Api,
        body: RequestBody,
        units: Sequence[msgspec.Raw],
        history: RequestHistory,
        named: Identity | None,
    ) -> Decision:
        follows = text(body.previous_response_id)
        origin = self.memory.call_of_response(follows) if follows else None
        if named is None and origin:
            own = origin.branch.identity or identity.NEW
            confidence = "ambiguous" if own.confidence == "ambiguous" else "certain"
            named = Identity(id=own.id, source=FOLLOWS, confidence=confidence)
        named = named or self._written(request, identity.of_gateway(request.headers) or identity.of_cache_key(body))
        base = (origin.after or origin.state) if origin else self._fingerprints.start(api, follows)
        rolled = history.roll(self._fingerprints, api, base, units)
        self._note_early_answers(request, rolled)
        search = HistorySearch(self.memory.index, request.provider, rolled, units, origin)
        group: Collection[Branch] = ()
        if named:
            named, group = self._bearers(request, named, agent, search)
        decision = Decision("main", "main", agent=agent, api=api, fingerprint=hex_text(rolled.states[-1]))
        if (thread := self._thread(request)) != "main":
            decision.kind, decision.thread = "subagent", thread
        elif call := self._unnamed_agent(group, units, search):
            decision.kind, decision.thread = "subagent", AGENT_PREFIX + call
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

    def _note_early_answers(self, request: TrackedRequest, rolled: Rolled) -> None:
        """Note answers that this history may continue, though their calls have not ended. A client continues after the
        last event of an answer; the end of the body may come later."""
        states = set(rolled.states) if request.unfinished else ()
        for call in request.unfinished:
            branch = self.memory.branch(call.decision.session) if call.decision.session else None
            row = branch.rows.get(call.decision.seq) if branch else None
            if row and row.outcome is CallOutcome.OPEN and row.state in states and (answer := call.read_answer()):
                self.answered(call.decision, answer)

    def _starter(self, request: TrackedRequest, named: Identity, units: Sequence[msgspec.Raw]) -> Identity:
        """The session that started the one which a call names, if that is a sub-agent's; else the one it names."""
        key = request.provider, named.id or ""
        if key not in self._starters and not self.memory.branches_of_client(key):
            root = self._unnamed.root_that_started(units)
            branch = self.memory.branch(root) if root else None
            if branch and branch.provider == request.provider and branch.identity and branch.identity.id:
                self._starters[key] = branch.identity
        starter = self._starters.get(key)
        if starter is None:
            return named
        request.sub_agent = named.id  # it has a session of its own
        return starter

    def _unnamed_agent(
        self, group: Collection[Branch], units: Sequence[msgspec.Raw], search: HistorySearch
    ) -> str | None:
        """The tool call that started the sub-agent that sends the request, if the request does not name it.

        A person's prompt may be passed on word for word. So the known history of the conversation, once it was
        answered, is better evidence than its prompt.
        """
        own = [branch for branch in group if wire_of(branch.agent).matches_agents_by_prompt]
        calls = (self._unnamed.call_that_sent(root, units) for root in {branch.root for branch in own})
        call = next(filter(None, calls), None)
        if call is None and not any(is_unnamed(thread) for branch in own for thread in branch.threads):
            return None
        match, main = (search.longest(group, thread, need_answer=True) for thread in (None, "main"))
        if match and main and main.units >= match.units:
            return None
        return match.row.thread.removeprefix(AGENT_PREFIX) if match and is_unnamed(match.row.thread) else call

    # ------------------------------------------------------------ with a name

    def _place_named(
        self,
        request: TrackedRequest,
        decision: Decision,
        identity: Identity,
        group: Collection[Branch],
        search: HistorySearch,
    ) -> None:
        decision.identity = identity
        match search.relation(group, decision.thread), decision.kind:
            case Repeats(call, is_answered=False), _:
                _retry(decision, call)
            case _, "side":
                self._attach(request, decision, identity, group)
            case NothingBefore(), _:
                self._start_thread(request, decision, group, search)
            case (Continues(state, is_tip=True), _) | (Continues(state), "compact"):
                decision.link, decision.branch = "continuation", state.row.branch
            case (Continues(state) | Repeats(state), _):
                self._fork(request, decision, state, search)
            case Unrelated(last), "compact":
                decision.link, decision.branch = "continuation", last.branch
            case Unrelated(last), _:
                decision.link, decision.branch = "rewrite", last.branch
                decision.reason = "compaction" if last.kind == "compact" else "history_replaced"

    def _start_thread(
        self, request: TrackedRequest, decision: Decision, group: Collection[Branch], search: HistorySearch
    ) -> None:
        """Start a thread of a session that is new, or had other threads only. It may have begun as a fork of
        another."""
        self.memory.fetch(search.rolled)
        decision.link, decision.branch = "start", last_active(group) if group else None
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
        thread, outcomes = decision.thread, _retried(request)
        self.memory.fetch(search.rolled, any_outcome=outcomes is not FAILED)
        attempt = search.attempt(None, thread, outcomes) if thread != "side" else None
        match = search.longest(None, "main" if thread == "side" else thread, need_answer=True)
        if attempt:
            match = search.among(attempt, match)
        if match:
            decision.identity = _among(BY_FINGERPRINT, match)
            if attempt and match.units == attempt.units:
                _retry(decision, match)
            else:
                self._continue(request, decision, match, search)
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
        rows = [row for row in branch.threads.get("main", ()) if row.leads and row.outcome is CallOutcome.COMPLETE]
        behind = [row.seq for row in rows if row.seq > seq]
        return ForkPoint(session, behind[min(later, len(behind)) - 1] if later and behind else seq)

    def _continue(
        self, request: TrackedRequest, decision: Decision, match: HistoryMatch, search: HistorySearch
    ) -> None:
        if decision.kind == "side":
            decision.branch = match.row.branch
        elif decision.kind == "compact" or search.is_at_tip(match):
            decision.link, decision.branch = "continuation", match.row.branch
        else:
            self._fork(request, decision, match, search)

    def _fork(self, request: TrackedRequest, decision: Decision, match: HistoryMatch, search: HistorySearch) -> None:
        decision.link, decision.fork = "fork", search.fork_point(match)
        self._start_log(request, decision)

    def _attach(self, request: TrackedRequest, decision: Decision, name: Identity, group: Collection[Branch]) -> None:
        """Attach the call by its name alone, to the branch last active. The first call with a name begins its log."""
        decision.identity = name
        if group:
            decision.branch = last_active(group)
        elif name.id and name.source != identity.CACHE_KEY:
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
        if account := identity.account_of(request.headers):
            branch.accounts.add(account)
        decision.session = branch.name
        decision.seq = self._number(branch.provider, branch.name)
        row = None
        if state:
            row = CallRow(branch, decision.seq, decision.thread, decision.kind, state, retry_of=decision.retry_of)
        self.memory.note_request(branch, decision.seq, row, request.ts)
        return decision

    def _written(self, request: TrackedRequest, identity: Identity | None) -> Identity | None:
        """The identity as it is written to the log: a name with a secret in it is replaced by its HMAC."""
        if identity is None or identity.id is None or self.memory.index.of_client((request.provider, identity.id)):
            return identity
        return msgspec.structs.replace(identity, id=self._name(request, identity.id))

    def _name(self, request: TrackedRequest, name: str) -> str:
        if request.redact is None or request.redact(name) == name:
            return name
        return f"hmac:{self._fingerprints.of_name(name)}"

    # ------------------------------------------------------------ the sessions of a name

    def _bearers(
        self, request: TrackedRequest, name: Identity, agent: str | None, search: HistorySearch | None = None
    ) -> tuple[Identity, Collection[Branch]]:
        """The branches of this name that the call can belong to. The name is ambiguous if other sessions have it,
        too."""
        if (
            search
            and search.origin
            and name.source == FOLLOWS
            and (name.id is None or identity.may_be_shared(name, agent))
        ):
            return name, self._of_root(search.origin.branch.root, name)
        if name.id is None:
            return name, ()
        if name.source == identity.CACHE_KEY and identity.may_be_shared(name, agent):
            return name, self._continued(request, name, search) if search else ()
        bearers = self.memory.branches_of_client((request.provider, name.id))
        group = dict.fromkeys(branch for branch in bearers if not _are_apart(branch.agent, agent))
        if identity.may_be_shared(name, agent):
            group = self._of_account(request, group, search)
        is_shared = any(branch.identity and branch.identity.confidence == "ambiguous" for branch in group)
        if is_shared or (bearers and not group):
            name = msgspec.structs.replace(name, confidence="ambiguous")
        return name, group

    def _of_account(
        self, request: TrackedRequest, group: dict[Branch, None], search: HistorySearch | None
    ) -> dict[Branch, None]:
        """The branches that had calls with the request's credential; if there are none, those that its history
        continues, because credentials are renewed. A branch without a known credential counts as any account's."""
        account = identity.account_of(request.headers)
        own = {branch: None for branch in group if account is None or not branch.accounts or account in branch.accounts}
        if own or not group or search is None:
            return own
        roots = search.continued(group, self._thread(request), _retried(request))
        return {branch: None for branch in group if branch.root in roots}

    def _continued(self, request: TrackedRequest, name: Identity, search: HistorySearch) -> Collection[Branch]:
        """The branches with a name that many sessions may have, of sessions that the history continues."""
        outcomes = _retried(request)
        self.memory.fetch(search.rolled, any_outcome=outcomes is not FAILED)
        client = request.provider, name.id or ""
        roots = replace(search, client=client).continued(None, self._thread(request), outcomes)
        return [branch for root in sorted(roots) for branch in self._of_root(root, name)]

    def _of_root(self, root: str, name: Identity) -> Collection[Branch]:
        branches = self.memory.index.roots[root].branches.values()
        return [branch for branch in branches if (branch.identity.id if branch.identity else None) == name.id]

    def _thread(self, request: TrackedRequest) -> str:
        """The thread that the client says the request belongs to."""
        return AGENT_PREFIX + self._name(request, request.sub_agent) if request.sub_agent else "main"


def _asks_model(request: TrackedRequest, kind: classify.Kind) -> bool:
    """Whether a request to no known endpoint of a model is for a model nevertheless."""
    return kind == "other" and request.method == "POST" and asks_model(request.body, request.path)


def _retried(request: TrackedRequest) -> Collection[CallOutcome]:
    """The ends of a call that the request may repeat. A client that counts its retries may repeat any."""
    return tuple(CallOutcome) if identity.retries(request.headers) else FAILED


def _starts_agents(agent: str | None) -> bool:
    """Whether the agent's sub-agents are recognised by their prompts."""
    wire = wire_of(agent)
    return wire.matches_agents_by_prompt or wire.agents_have_sessions


def _are_apart(one: str | None, two: str | None) -> bool:
    """Whether the two are different agents. Clients whose name is not an agent's may be part of any."""
    return one != two and agent_called(one) is not None and agent_called(two) is not None


def _retry(decision: Decision, attempt: HistoryMatch) -> None:
    decision.link, decision.branch = "retry", attempt.row.branch
    decision.retry_of = attempt.row.retry_of or attempt.row.seq


def _among(identity: Identity, match: HistoryMatch) -> Identity:
    """The identity with the other branches that fit as well; if the client named none, the choice is a guess."""
    if not match.others:
        return identity
    candidates = [match.row.branch.name, *sorted(row.branch.name for row in match.others)]
    confidence = identity.confidence if identity.id else "ambiguous"
    return msgspec.structs.replace(identity, confidence=confidence, candidates=candidates)
