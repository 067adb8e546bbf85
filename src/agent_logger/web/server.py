"""The page's process: a socket on loopback, and its state file."""

import logging
import os
import signal
import socket
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

import uvicorn
from starlette.types import ASGIApp

from agent_logger import __version__, platform
from agent_logger.clock import CLOCK
from agent_logger.errors import StoreError
from agent_logger.home.homes import Homes
from agent_logger.home.layout import install_key
from agent_logger.proxy.state import Announcement, PageState, running, running_pages
from agent_logger.web.app import page_app
from agent_logger.web.catalog_pool import CatalogPool
from agent_logger.web.tokens import PageTokens

log = logging.getLogger("agent_logger.web")

PORTS_TO_TRY = 20
PROXY_NICENESS = 10  # lower priority than the recording, but not so low that a compiler starves the page
SHUTDOWN_SECONDS = 1  # event streams would never end


@dataclass(frozen=True, kw_only=True)
class PageOptions:
    port: int
    port_is_chosen: bool  # by the user; then no other port is used
    homes: Homes
    seal_after_seconds: float | None  # none: never


def run(options: PageOptions, ready: Callable[[str], None]) -> None:
    """Serve the page until SIGTERM or SIGINT. Calls `ready` with a link that works once. Raises `StoreError` if the
    port is taken."""
    home = options.homes.own
    if running(home):
        platform.give_way(PROXY_NICENESS)
    key = install_key(home)
    listener = _listen(options.port, is_chosen=options.port_is_chosen)
    port = listener.getsockname()[1]
    state = PageState(
        pid=os.getpid(), started=CLOCK.now(), port=port, version=__version__, homes=_home_keys(options.homes)
    )
    tokens = _tokens(key, state)
    pool = CatalogPool(options.homes, options.seal_after_seconds)
    try:
        with _announcement(home, state):
            _serve(page_app(pool, tokens, port), listener, lambda: ready(tokens.link()))
    finally:
        pool.close()
        listener.close()


def link_to_running(homes: Homes) -> str | None:
    """A link to a page of this user that runs already, and shows these homes."""
    pages = [page for page in running_pages(homes.own) if page.homes == _home_keys(homes)]
    newest = max(pages, key=lambda page: page.started, default=None)
    return _tokens(install_key(homes.own), newest).link() if newest else None


def _home_keys(homes: Homes) -> tuple[str, ...]:
    """What the state file says of homes: nothing of the own one alone. A database is named without its password."""
    if homes.database:
        from agent_logger.catalog.postgres.connection import describe

        return (f"database {describe(homes.database)}",)
    return () if homes.are_own_alone else tuple(homes.folders)


def _tokens(key: bytes, state: PageState) -> PageTokens:
    return PageTokens(key, state.port, f"{state.pid} {state.started}")


@contextmanager
def _announcement(home: Path, state: PageState) -> Iterator[None]:
    """Write the state file. On a full disk no other command can find the page; it is served all the same."""
    try:
        announcement = Announcement(home, state)
    except OSError as error:
        log.warning("other commands cannot find this page, because its state file was not written: %s", error)
        yield
        return
    try:
        yield
    finally:
        announcement.close()


def _serve(app: ASGIApp, listener: socket.socket, ready: Callable[[], None]) -> None:
    logging.getLogger("uvicorn.error").setLevel(logging.ERROR)
    config = uvicorn.Config(
        app,
        log_config=None,
        access_log=False,
        server_header=False,
        http="h11",
        ws="none",
        loop="uvloop",
        timeout_graceful_shutdown=SHUTDOWN_SECONDS,
    )
    SignalledServer(config, ready).run(sockets=[listener])


class SignalledServer(uvicorn.Server):
    """A server that exits when a signal asks it to; uvicorn's own would then die of that signal."""

    def __init__(self, config: uvicorn.Config, ready: Callable[[], None]) -> None:
        super().__init__(config)
        self._ready = ready

    async def startup(self, sockets: list[socket.socket] | None = None) -> None:
        await super().startup(sockets)
        self._ready()

    @contextmanager
    def capture_signals(self) -> Iterator[None]:
        for number in (signal.SIGINT, signal.SIGTERM):
            signal.signal(number, self.handle_exit)
        yield


def _listen(port: int, *, is_chosen: bool) -> socket.socket:
    ports = [port] if is_chosen or not port else range(port, min(port + PORTS_TO_TRY, 65536))
    problem = None
    for candidate_port in ports:
        try:
            return socket.create_server(("127.0.0.1", candidate_port))
        except OSError as error:
            problem = error
    reason = os.strerror(problem.errno or 0) if problem else "no such port"
    raise StoreError(f"cannot listen on 127.0.0.1:{port}: {reason}; choose another --page-port")
