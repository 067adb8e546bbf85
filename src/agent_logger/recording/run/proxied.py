"""Record the requests of a run: its agent is sent through the shared proxy, and the run waits for their records.

Only the agent's environment and arguments send it there; its files stay as they are. Nothing here raises: an agent that
cannot be sent through the proxy runs without it, and the run says so.
"""

import contextlib
import os
import shutil
from collections import Counter
from collections.abc import Callable, Collection, Iterator, Sequence
from datetime import datetime
from pathlib import Path
from typing import TYPE_CHECKING, NamedTuple

from msgspec import structs

from agent_logger import config
from agent_logger.agents.base import Agent
from agent_logger.agents.contracts import ChildCommand, ChildSetup, Door
from agent_logger.clock import CLOCK
from agent_logger.errors import AgentLoggerError
from agent_logger.home.last_runs import note_last_run
from agent_logger.messages.outcome import NoRequests, RunMetadata
from agent_logger.model.last_run import MOST_HOSTS, LastRun
from agent_logger.model.session import Cost
from agent_logger.proxy.forward.traffic import HostTraffic
from agent_logger.proxy.runs.messages import (
    AgentStarted,
    FinishRun,
    OutputClosed,
    ProxyReply,
    RecordedRequest,
)
from agent_logger.proxy.runs.shared import ProxyConnection, connections
from agent_logger.proxy.state import running
from agent_logger.recording.run.child import Child

if TYPE_CHECKING:
    from agent_logger.recording.run.doors import DoorChoice, SentCommand


class RequestSummary(NamedTuple):
    """The requests of a run that were recorded."""

    requests: int = 0
    is_complete: bool = False  # all that were made are in the log
    cost: Cost = Cost(nano_usd=None)
    session: str | None = None  # that most of them belong to
    log_dir: Path | None = None
    reason: NoRequests | None = None  # if there are none
    problem: str | None = None  # why there is no proxy, or why it cannot read what the agent sends
    hosts: tuple[HostTraffic, ...] = ()  # that were reached through the forward door
    missing: int = 0  # answers in the session file that no request has
    not_understood: int = 0  # calls to models that are kept as bytes
    not_understood_paths: tuple[str, ...] = ()  # of some of them
    last_run: LastRun = LastRun()


class ProxiedRun:
    """A run that goes through the proxy, or that cannot: then `problem` says why."""

    def __init__(
        self,
        child: ChildCommand,
        *,
        agent: Agent | None = None,
        setup: ChildSetup | None = None,
        connection: ProxyConnection | None = None,
        problem: str | None = None,
        sent: "SentCommand | None" = None,
        off: bool = False,
    ) -> None:
        self.child, self.problem = child, problem
        self._agent, self._setup, self._sent = agent, setup, sent
        self._connection, self._is_off = connection, off

    def attach(self, child: Child) -> None:
        """Tell the proxy which process the agent is. It gets the read ends of the agent's output pipes, too, and closes
        them when we do."""
        if self._ask(AgentStarted(pid=child.pid), child.outputs):
            child.on_output_closed = self._output_closed

    def _output_closed(self) -> None:
        self._ask(OutputClosed())

    def finish(
        self, *, has_answers: Callable[[], bool], answers_of: Callable[[str], Collection[str]] = lambda _session: ()
    ) -> RequestSummary | None:
        """Wait for the records of the requests, when the agent has ended; `None` if they were not to be recorded.
        `has_answers`: whether the agent's output or session file has an answer of a model; `answers_of`: the ids of the
        answers that the file of a session has got."""
        if self._is_off:
            return None
        reply = self._ask(FinishRun())
        if reply is None or self._connection is None:
            summary = RequestSummary(reason="proxy_not_started", problem=self.problem)
        else:
            sessions = Counter(request.session for request in reply.requests if request.session)
            session = sessions.most_common(1)[0][0] if sessions else None
            summary = RequestSummary(
                requests=len(reply.requests),
                is_complete=reply.is_complete,
                cost=_cost(reply.requests),
                session=session,
                log_dir=Path(self._connection.state.log_dir),
                reason=self._reason(reply, has_answers) if reply.is_complete and not reply.requests else None,
                problem=self._sent.notice if self._sent else None,
                hosts=reply.hosts,
                not_understood=reply.not_understood,
                not_understood_paths=reply.not_understood_paths,
                missing=_missing(answers_of(session), reply.requests) if session and reply.is_complete else 0,
            )
        last_run = self._last_run(summary)
        note_last_run(config.home(), last_run)
        return summary._replace(last_run=last_run)

    def _last_run(self, summary: RequestSummary) -> LastRun:
        """Return what was recorded, and what was not."""
        unread = [host.host for host in summary.hosts if host.tunnels > host.tunnels_unopened]
        not_trusted = tuple(host.host for host in summary.hosts if host.not_trusted)
        not_opened = (host.host for host in summary.hosts if host.tunnels_unopened or host.no_handshake)
        return LastRun(
            agent=self._agent.name if self._agent else None,
            ended=CLOCK.now(),
            door=self._door,
            requests=summary.requests,
            reason=summary.reason,
            not_trusted=not_trusted,
            not_opened=tuple(host for host in not_opened if host not in not_trusted),
            missing=summary.missing,
            not_understood=summary.not_understood,
            not_understood_paths=summary.not_understood_paths,
            unread=len(unread),
            unread_hosts=tuple(unread[:MOST_HOSTS]),
        )

    @property
    def _door(self) -> Door:
        return self._sent.door if self._sent else "base-url"

    def _reason(self, reply: ProxyReply, has_answers: Callable[[], bool]) -> NoRequests:
        if (self._sent and self._sent.notice) or any(host.not_trusted for host in reply.hosts):
            return "not_trusted"
        if self._door == "base-url" and self._setup and self._setup.ignores_base_url(self.child):
            return "login_ignores_base_url"
        return "other_base_url" if has_answers() else "none_made"

    def _ask(self, message: AgentStarted | OutputClosed | FinishRun, files: Sequence[int] = ()) -> ProxyReply | None:
        if self._connection is None:
            return None
        try:
            return self._connection.ask(message, files)
        except (AgentLoggerError, OSError) as error:
            self.problem = str(error)
            return None


@contextlib.contextmanager
def proxied(
    argv: Sequence[str],
    folder: Path,
    agent: Agent | None,
    *,
    log_dir: Path | None = None,
    door: "DoorChoice" = "auto",
    off: bool = False,
) -> Iterator[ProxiedRun]:
    """Send a command through the proxy, unless that is `off`. `log_dir`: the folder that the user chose, if any."""
    child = ChildCommand(tuple(argv), config.child_environment(), folder)
    with contextlib.ExitStack() as stack:
        if off or not _can_start(argv[0], folder):
            yield ProxiedRun(child, off=True)
            return
        try:
            run = _registered(child, agent, log_dir, door, stack)
        except (AgentLoggerError, OSError) as error:
            run = ProxiedRun(child, agent=agent, problem=str(error))
        yield run


def _can_start(command: str, folder: Path) -> bool:
    return os.access(folder / command, os.X_OK) if os.path.dirname(command) else shutil.which(command) is not None


def _registered(
    child: ChildCommand, agent: Agent | None, log_dir: Path | None, choice: "DoorChoice", stack: contextlib.ExitStack
) -> ProxiedRun:
    from agent_logger.recording.run.doors import OutgoingCommand

    home = config.home()
    outgoing = OutgoingCommand(child, agent)
    door = outgoing.door(choice)
    for connection in connections(home, log_dir, forward=door == "forward"):
        stack.callback(connection.close)
        sent = outgoing.sent(door, connection.state.port, _allowed(home))
        with contextlib.suppress(OSError):  # it has just ended: another one is started
            if not connection.ask(sent.registration).is_ending:
                return ProxiedRun(sent.child, agent=agent, setup=outgoing.own, sent=sent, connection=connection)
    raise AssertionError  # `connections` raises when it gives up


def _missing(answers: Collection[str], requests: Sequence[RecordedRequest]) -> int:
    """Return how many answers no request has. A request whose answer could not be read may have any of them."""
    ids = {request.message_id for request in requests}
    without_id = sum(request.message_id is None for request in requests)
    return max(0, len(set(answers) - ids) - without_id)


def _allowed(home: Path) -> dict[int, Collection[str]]:
    return {state.port: state.allow_upstream for state in running(home)}


def _cost(requests: Sequence[RecordedRequest]) -> Cost:
    from agent_logger.model.prices import price

    costs = [
        price(request.usage, request.model, datetime.fromisoformat(request.ts) if request.ts else None, request.tier)
        for request in requests
        if request.usage
    ]
    return Cost.total(costs)


def with_requests(metadata: RunMetadata, requests: RequestSummary | None) -> RunMetadata:
    """Return the metadata with the number of the requests."""
    if requests is None:
        return metadata
    session = metadata.session_id or requests.session
    return structs.replace(metadata, session_id=session, requests=requests.requests, no_requests=requests.reason)
