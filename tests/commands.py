"""`agent-logger`, run to its end in a process of its own that need not import anything first.

A Python that starts and imports a command takes longer than most commands do. So one process imports them
all, and forks for each: the child has its own arguments, environment, folder and descriptors, as any other.
"""

import atexit
import gc
import json
import os
import pkgutil
import socket
import subprocess
import sys
import time
from collections.abc import Mapping
from concurrent.futures import ThreadPoolExecutor
from contextlib import suppress
from functools import cache
from importlib import import_module
from pathlib import Path

import agent_logger

ORDER_BYTES = 1 << 20  # arguments, environment and folder of one command


def run_command(
    arguments: list[str], environment: Mapping[str, str], *, folder: Path | None = None, said: str = ""
) -> subprocess.CompletedProcess[str]:
    """As `subprocess.run` of `python -m agent_logger`, with what it prints captured as text."""
    pipes = [os.pipe() for _ in range(3)]
    theirs = [pipes[0][0], pipes[1][1], pipes[2][1]]
    order = json.dumps([arguments, dict(environment), str(folder or Path.cwd())])
    socket.send_fds(_forker(), [order.encode()], theirs)
    for descriptor in theirs:
        os.close(descriptor)
    with ThreadPoolExecutor(2) as readers:
        printed = [readers.submit(_all, ours) for ours, _ in pipes[1:]]
        with suppress(BrokenPipeError), open(pipes[0][1], "w") as stdin:
            stdin.write(said)
        stdout, stderr = (it.result() for it in printed)
    ended = int(_forker().recv(ORDER_BYTES))
    return subprocess.CompletedProcess(arguments, ended, stdout, stderr)


def _all(descriptor: int) -> str:
    with open(descriptor, "rb") as file:
        return file.read().decode(errors="replace")


@cache
def _forker() -> socket.socket:
    ours, theirs = socket.socketpair(socket.AF_UNIX, socket.SOCK_SEQPACKET)
    pipe = subprocess.PIPE  # as a command has them: Python asks once, when it starts, whether it can seek in them
    process = subprocess.Popen(
        [sys.executable, "-m", "tests.commands", str(theirs.fileno())],
        cwd=Path(__file__).parents[1],
        env={"PATH": os.environ["PATH"]},
        stdin=pipe,
        stdout=pipe,
        stderr=pipe,
        pass_fds=[theirs.fileno()],
    )
    theirs.close()
    atexit.register(process.communicate)
    atexit.register(ours.close)  # the first of the two to be called: it ends with our end
    return ours


def _import_all() -> None:
    for module in pkgutil.walk_packages(agent_logger.__path__, "agent_logger."):
        with suppress(ImportError):  # an adapter of what is not installed
            import_module(module.name)


def _serve(orders: socket.socket) -> None:
    """Fork for each order and tell how it ended. Returns in the children alone."""
    while True:
        order, descriptors, _, _ = socket.recv_fds(orders, ORDER_BYTES, 3)
        if not order:
            os._exit(0)
        if not (child := os.fork()):
            break
        for descriptor in descriptors:
            os.close(descriptor)
        orders.send(str(os.waitstatus_to_exitcode(os.waitpid(child, 0)[1])).encode())
    orders.close()
    for at, descriptor in enumerate(descriptors):
        os.dup2(descriptor, at)
        os.close(descriptor)
    arguments, environment, folder = json.loads(order)
    sys.argv[1:] = arguments
    os.environ.clear()
    os.environ.update(environment)
    time.tzset()
    os.chdir(folder)


if __name__ == "__main__":
    _import_all()
    gc.freeze()  # what is there is shared with all children, who do not touch it
    _serve(socket.socket(fileno=int(sys.argv[1])))
    try:
        import_module("agent_logger.__main__").main()
    except SystemExit as ended:
        atexit._run_exitfuncs()
        sys.stdout.flush()
        sys.stderr.flush()
        os._exit(ended.code if isinstance(ended.code, int) else 0)  # to tidy up what is imported takes long
