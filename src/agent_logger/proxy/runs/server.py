"""The proxy's socket for runs: takes their registrations, and tells them what was recorded.

Each connection has a thread, because the proxy has few of them and they mostly wait. What concerns the relay is done in
its event loop.
"""

import contextlib
import os
import socket
import tempfile
import threading
from collections import Counter
from collections.abc import Callable
from pathlib import Path

import msgspec

from agent_logger.config import Network, Origin
from agent_logger.proxy.call_lines import CallLine
from agent_logger.proxy.forward.traffic import RunTraffic
from agent_logger.proxy.relay.route import TOKEN, RegisteredRun
from agent_logger.proxy.relay.upstream import Way
from agent_logger.proxy.runs.leases import Leases
from agent_logger.proxy.runs.messages import (
    LONGEST_MESSAGE,
    AgentStarted,
    FinishRun,
    HoldForShell,
    OutputClosed,
    ProxyReply,
    RecordedRequest,
    RegisterRun,
    ReleaseShells,
    RunMessage,
    decode_message,
    encode,
)

# Time to wait for the records of a run's last calls: the disk or the machine may be slow.
FINISH_SECONDS = 10.0
MODEL_REQUESTS = ("main", "subagent", "side", "compact")
SHORT_PATH = 60  # of a folder, in which a socket still has room
LONGEST_PATH = 100  # bytes of a socket's path; systems take 104 or 108
MOST_PATHS = 20  # that are named, of calls that are not understood
MOST_FILES = 8  # descriptors that come with a message
_CLOSE_ON_EXEC = getattr(socket, "MSG_CMSG_CLOEXEC", 0)  # no child of ours may hold them open


class RunCalls:
    """The calls of registered runs, as the recorder reports them."""

    def __init__(self) -> None:
        self._requests: dict[str, list[RecordedRequest]] = {}
        self._not_understood: dict[str, Counter[str]] = {}  # calls to models, by run and path
        self._ended: dict[str, int] = {}  # how many relayed calls have ended, by run
        self._changed = threading.Condition()

    def begin(self, run: str) -> None:
        with self._changed:
            self._requests[run], self._ended[run], self._not_understood[run] = [], 0, Counter()

    def add(self, line: CallLine) -> None:
        with self._changed:
            if line.run not in self._requests:
                return
            if line.kind in MODEL_REQUESTS:
                request = RecordedRequest(
                    session=line.client_session or line.session,
                    model=line.model,
                    usage=line.usage,
                    tier=line.tier,
                    ts=line.ts,
                    message_id=line.message_id,
                )
                self._requests[line.run].append(request)
            if not line.is_understood:
                self._not_understood[line.run][line.path] += 1
            if not line.is_message:
                self._ended[line.run] += 1
                self._changed.notify_all()

    def wait(self, run: str, calls: int) -> ProxyReply:
        """Return the requests of a run, once so many of its calls are in the log."""
        with self._changed:
            if run not in self._ended:
                return ProxyReply()
            is_complete = self._changed.wait_for(lambda: self._ended[run] >= calls, FINISH_SECONDS)
            unread = self._not_understood[run]
            return ProxyReply(
                requests=tuple(self._requests[run]),
                is_complete=is_complete,
                not_understood=unread.total(),
                not_understood_paths=tuple(unread)[:MOST_PATHS],
            )

    def end(self, run: str) -> None:
        with self._changed:
            self._requests.pop(run, None)
            self._ended.pop(run, None)
            self._not_understood.pop(run, None)


class RunTable:
    """The registered runs, in all processes that relay."""

    def __init__(
        self,
        register: Callable[[RegisterRun], RegisteredRun],
        withdraw: Callable[[str], None],
        calls: RunCalls,
        traffic_of: Callable[[str], RunTraffic],
    ) -> None:
        """Set up the table. `register` and `withdraw` return when every relay has done so; `traffic_of`: what all
        relays have relayed with a token."""
        self._register, self._withdraw = register, withdraw
        self._runs: dict[str, RegisteredRun] = {}
        self._messages: dict[str, RegisterRun] = {}
        self._calls, self._traffic_of = calls, traffic_of

    def add(self, message: RegisterRun) -> RegisteredRun:
        """Register a run. Raises `ValueError` for what cannot be used."""
        if not TOKEN.fullmatch(message.token) or message.token in self._runs:
            raise ValueError("the token is not valid")
        for origin in message.origins:
            Origin.parse(origin)
        Way(message.network)
        outer = self._messages.get(message.within or "")
        origins = tuple(dict.fromkeys((*message.origins, *(outer.origins if outer else ()))))
        message = msgspec.structs.replace(message, origins=origins, network=self._network(message.network))
        run = self._register(message)
        if message.session is None:  # nobody asks for the requests of a shell, and it may make any number
            self._calls.begin(message.id)
        self._messages[message.token], self._runs[message.token] = message, run
        return run

    def _network(self, network: Network) -> Network:
        """The way of a run to upstreams. Where that leads through our own forward door, because the run was started
        within another one, it is the way of that other run: a request is to pass the proxy once."""
        match = TOKEN.search(network.https_proxy)
        outer = self._messages.get(match[0]) if match else None
        return outer.network if outer else network

    def remove(self, token: str) -> None:
        run = self._runs.pop(token, None)
        self._messages.pop(token, None)
        if run:
            self._withdraw(token)
            self._calls.end(run.id)

    def recorded(self, run: RegisteredRun) -> ProxyReply:
        """Return the requests of a run, once those that were made so far are in the log, and what it sent through the
        forward door."""
        traffic = self._traffic_of(run.token)
        return msgspec.structs.replace(self._calls.wait(run.id, traffic.calls), hosts=traffic.hosts)


class RunServer:
    """Listens for runs. Close it to remove the socket."""

    def __init__(self, home: Path, runs: RunTable, leases: Leases) -> None:
        self._runs, self._leases = runs, leases
        self._folder: tempfile.TemporaryDirectory[str] | None = None
        self.path = self._socket_path(home)
        self._socket = socket.socket(socket.AF_UNIX)
        with contextlib.suppress(FileNotFoundError):
            os.unlink(self.path)
        self._socket.bind(self.path)
        os.chmod(self.path, 0o600)
        self._socket.listen(128)
        threading.Thread(target=self._accept, name="agent-logger-runs", daemon=True).start()

    def _socket_path(self, home: Path) -> str:
        """Choose the path: in the home, unless it is too long for a socket there."""
        path = str(home / f"proxy-{os.getpid()}.sock")
        if len(os.fsencode(path)) <= LONGEST_PATH:
            return path
        # The folder for temporary files may have a long path, too.
        place = next(
            folder for folder in (tempfile.gettempdir(), "/tmp") if len(folder) < SHORT_PATH or folder == "/tmp"
        )
        self._folder = tempfile.TemporaryDirectory(prefix="agent-logger-", dir=place)  # 0700
        return f"{self._folder.name}/proxy.sock"

    def close(self) -> None:
        with contextlib.suppress(OSError):
            os.unlink(self.path)
        with contextlib.suppress(OSError):
            self._socket.shutdown(socket.SHUT_RDWR)  # ends `accept`
        self._socket.close()
        if self._folder:
            self._folder.cleanup()

    def _accept(self) -> None:
        while True:
            try:
                connection, _ = self._socket.accept()
            except OSError:
                return
            threading.Thread(target=_Connection(connection, self._runs, self._leases).serve, daemon=True).start()


class _Connection:
    """A connection of a run or of a shell."""

    def __init__(self, connection: socket.socket, runs: RunTable, leases: Leases) -> None:
        self._socket, self._runs, self._leases = connection, runs, leases
        self._run: RegisteredRun | None = None
        self._outputs: list[int] = []  # read ends of the agent's output pipes
        self._data = b""

    def serve(self) -> None:
        try:
            with contextlib.suppress(OSError):
                while line := self._line():
                    self._socket.sendall(encode(self._answer(line)) + b"\n")
        finally:
            self._socket.close()
            if self._run:
                self._leases.disconnected(self._run.token)
            for descriptor in self._outputs:  # the run was killed
                threading.Thread(target=_drain, args=[descriptor], daemon=True).start()

    def _line(self) -> bytes:
        """Read a line; nothing at the end of the connection."""
        while b"\n" not in self._data:
            data, files, _, _ = socket.recv_fds(self._socket, 1 << 16, MOST_FILES, _CLOSE_ON_EXEC)
            self._outputs += files
            if not data or len(self._data) > LONGEST_MESSAGE:
                return b""
            self._data += data
        line, _, self._data = self._data.partition(b"\n")
        return line

    def _answer(self, line: bytes) -> ProxyReply:
        try:
            return self._take(decode_message(line))
        except (ValueError, KeyError) as error:  # msgspec's errors are ValueErrors
            return ProxyReply(problem=str(error))

    def _take(self, message: RunMessage) -> ProxyReply:
        match message:
            case RegisterRun():
                return self._register(message)
            case AgentStarted() if self._run:
                self._leases.agent_started(self._run.token, message.pid)
                return ProxyReply()
            case OutputClosed():
                self._close_outputs()
                return ProxyReply()
            case FinishRun() if self._run:
                self._close_outputs()
                return self._runs.recorded(self._run)
            case HoldForShell():
                return ProxyReply(is_ending=not self._leases.add_shell(message.session))
            case ReleaseShells():
                return ProxyReply(released=self._leases.release_shells())
        raise ValueError("register a run first")

    def _register(self, message: RegisterRun) -> ProxyReply:
        if self._run:
            raise ValueError("this connection has a run already")
        if not self._leases.add_run(message.token, message.session):
            return ProxyReply(is_ending=True)
        try:
            self._run = self._runs.add(message)
        finally:
            if self._run is None:
                self._leases.disconnected(message.token)
        return ProxyReply()

    def _close_outputs(self) -> None:
        outputs, self._outputs = self._outputs, []
        for descriptor in outputs:
            os.close(descriptor)


def _drain(descriptor: int) -> None:
    """Read an agent's output that nobody else reads, so that the agent can continue."""
    with contextlib.suppress(OSError), open(descriptor, "rb", buffering=0) as stream:
        while stream.read(1 << 16):
            pass
