"""The shared proxy: one per home, started by the first run or shell that needs it, ended when the last has ended.

A run uses the newest proxy of its home that takes registrations, whoever started it and wherever it logs. If there is
none, it starts one, which logs to `<home>/logs`. The process is detached: it continues if the run is killed.
"""

import contextlib
import os
import re
import select
import socket
import subprocess
import time
from collections.abc import Iterator, Sequence
from pathlib import Path
from types import TracebackType
from typing import Self

import msgspec

from agent_logger import config, platform
from agent_logger.errors import StoreError
from agent_logger.proxy.relay.route import TOKEN, TOKEN_USER
from agent_logger.proxy.runs.messages import ProxyReply, RunMessage, decode_reply, encode
from agent_logger.proxy.state import ProxyState, running

START_SECONDS = 20.0  # time for a proxy to start, or for another process to start one
WAIT_SECONDS = 0.01  # between looks whether another process has started one
REPLY_SECONDS = 15.0
_TOKEN_IN_VALUE = re.compile(rf"/{TOKEN.pattern}/")
_OUR_PROXY = re.compile(rf"http://{TOKEN_USER}:{TOKEN.pattern}@[^\s,]*")


class _Started(msgspec.Struct, frozen=True, kw_only=True):
    """The line that a shared proxy prints when it listens, or when it cannot."""

    pid: int
    problem: str | None = None


class ProxyConnection:
    """A connection to the socket of a running proxy."""

    def __init__(self, state: ProxyState) -> None:
        """Connect. Raises `OSError` if the proxy is gone."""
        self.state = state
        self._socket = socket.socket(socket.AF_UNIX)
        try:
            self._socket.settimeout(REPLY_SECONDS)
            self._socket.connect(state.socket or "")
        except BaseException:
            self._socket.close()
            raise
        self._data = b""

    def ask(self, message: RunMessage, files: Sequence[int] = ()) -> ProxyReply:
        """Send a message, and return the reply. Raises `OSError` if the proxy is gone, `StoreError` if it refuses."""
        data = encode(message) + b"\n"
        if files:
            data = data[socket.send_fds(self._socket, [data], list(files)) :]
        self._socket.sendall(data)
        while b"\n" not in self._data:
            data = self._socket.recv(1 << 16)
            if not data:
                raise ConnectionError("the proxy closed the connection")
            self._data += data
        line, _, self._data = self._data.partition(b"\n")
        try:
            reply = decode_reply(line)
        except ValueError as error:  # it is of another version
            raise StoreError(f"cannot read the proxy's reply: {error}") from error
        if reply.problem:
            raise StoreError(reply.problem)
        return reply

    def close(self) -> None:
        self._socket.close()

    def __enter__(self) -> Self:
        return self

    def __exit__(self, kind: type[BaseException] | None, _: object, __: TracebackType | None) -> None:
        self.close()


def connections(home: Path, log_dir: Path | None, *, forward: bool = False) -> Iterator[ProxyConnection]:
    """Yield connections to proxies that take registrations, the newest first; only to those that log to `log_dir`, if
    one is given, and that have the forward door, if it is needed. If there is none, one is started. Close what is not
    used. Raises `StoreError`."""
    give_up = time.monotonic() + START_SECONDS
    while time.monotonic() < give_up:
        yield from _open_connections(home, log_dir, forward=forward)
        with _start_lock(home) as is_ours:
            if is_ours and not _is_reachable(home, log_dir, forward=forward):
                start(home, log_dir or _free_folder(home))
        if not is_ours:
            time.sleep(WAIT_SECONDS)
    raise StoreError("no proxy could be started")


def _open_connections(home: Path, log_dir: Path | None, *, forward: bool) -> Iterator[ProxyConnection]:
    for state in sorted(running(home), key=lambda state: state.started, reverse=True):
        is_chosen = log_dir is None or Path(state.log_dir) == log_dir
        if state.socket and is_chosen and (state.has_forward_door or not forward):
            with contextlib.suppress(OSError):
                yield ProxyConnection(state)


def _is_reachable(home: Path, log_dir: Path | None, *, forward: bool) -> bool:
    for connection in _open_connections(home, log_dir, forward=forward):
        connection.close()
        return True
    return False


@contextlib.contextmanager
def _start_lock(home: Path) -> Iterator[bool]:
    """Hold the right to start a proxy; `False` if another process or thread has it."""
    platform.make_folder(home)
    with platform.open_or_create(home / ".proxy-start") as held:
        try:
            yield platform.lock(held)
        except platform.NoLocksError:
            yield True


def _free_folder(home: Path) -> Path:
    """Choose where a new proxy logs to: `<home>/logs`, or a folder below it if a proxy that takes no registrations has
    that one."""
    usual = home / "logs"
    if all(Path(state.log_dir) != usual for state in running(home)):
        return usual
    return usual / time.strftime("%Y%m%d-%H%M%S")


def start(home: Path, log_dir: Path, allow: Sequence[str] = ()) -> None:
    """Start a shared proxy, and wait until it listens. Raises `StoreError`."""
    words = ["--log-dir", str(log_dir), *(word for origin in allow for word in ("--allow-upstream", origin))]
    process = subprocess.Popen(
        platform.module_command(__name__, *words),
        env=_environment(home),
        cwd="/",
        stdin=subprocess.DEVNULL,
        stdout=subprocess.PIPE,
        stderr=subprocess.DEVNULL,
        start_new_session=True,  # a Ctrl-C in the terminal is not meant for it
    )
    assert process.stdout
    with process.stdout as stdout:
        ready, _, _ = select.select([stdout], [], [], START_SECONDS)
        line = stdout.readline() if ready else b""
    process.wait()  # the process has left the work to a child of its own
    try:
        started = msgspec.json.decode(line, type=_Started)
    except ValueError:
        raise StoreError("the proxy did not start") from None
    if started.problem:
        raise StoreError(started.problem)


def _environment(home: Path) -> dict[str, str]:
    """Our environment without the tokens of runs, by which the processes of a run are recognised, and without a proxy
    that is ours: the new one would be its own."""
    variables = config.child_environment(AGENT_LOGGER_HOME=str(home))
    return {name: _TOKEN_IN_VALUE.sub("/", _OUR_PROXY.sub("", value)) for name, value in variables.items()}


# ---------------------------------------------------------------- the process


def main() -> None:
    """Run a shared proxy. Its first line of output says that it listens, or why it does not."""
    import argparse

    parser = argparse.ArgumentParser(description="A shared proxy; `agent-logger run` starts it.")
    parser.add_argument("--log-dir", required=True)
    parser.add_argument("--allow-upstream", action="append", default=[])
    options = parser.parse_args()
    if os.fork():  # nobody has to wait for the proxy's end
        os._exit(0)
    try:
        _serve(config.load({"log_dir": options.log_dir, "port": "0", "allow_upstream": options.allow_upstream}))
    except Exception as error:  # the top of the process: its starter reports it
        _report(str(error))


def _serve(settings: config.Configuration) -> None:
    from agent_logger.proxy.relay_process import RelayOptions
    from agent_logger.proxy.server import run

    options = RelayOptions(
        port=0,
        port_is_chosen=True,
        log_dir=settings.log_dir,
        home=settings.home,
        allow=settings.allow_upstream,
        patterns=settings.redact == "all",
        seal_after_seconds=settings.seal_after,
        workers=settings.workers,
        network=config.network(),
        ends_unused=True,
    )
    run(options, lambda _port: _report())


def _report(problem: str | None = None) -> None:
    with contextlib.suppress(OSError):  # nobody waits any more
        os.write(1, msgspec.json.encode(_Started(pid=os.getpid(), problem=problem)) + b"\n")
    with open(os.devnull, "wb") as nothing:
        os.dup2(nothing.fileno(), 1)


if __name__ == "__main__":
    main()
