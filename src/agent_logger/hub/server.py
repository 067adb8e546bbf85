"""The hub's process: a socket, the page, and the requests of devices. `hub work` runs beside it."""

import json
import logging
import socket
import sys
from collections.abc import Callable
from typing import NamedTuple

import uvicorn

from agent_logger import __version__
from agent_logger.clock import CLOCK
from agent_logger.errors import ConfigError, StoreError
from agent_logger.hub.access import AccessOptions, Network
from agent_logger.hub.api import PushApi
from agent_logger.hub.app import hub_app
from agent_logger.hub.work import HubParts, changing, homes_of_hub, serving
from agent_logger.web.catalog_pool import CatalogPool
from agent_logger.web.server import SignalledServer

SHUTDOWN_SECONDS = 5
MOST_CONNECTIONS = 1000
IDLE_SECONDS = 75
LOOPBACK = ("127.0.0.1", "::1", "localhost")


class HubAddress(NamedTuple):
    """Where a hub listens."""

    host: str
    port: int
    certificate: str | None = None
    certificate_key: str | None = None
    behind_proxy: bool = False
    trusted_header: str | None = None  # names the person, if it comes from one of these networks
    trusted_networks: tuple[Network, ...] = ()

    @property
    def access(self) -> AccessOptions:
        return AccessOptions(
            trusted_header=self.trusted_header.lower() if self.trusted_header else None,
            trusted_networks=self.trusted_networks,
            behind_proxy=self.behind_proxy,
            is_secure=bool(self.certificate) or self.behind_proxy,
        )

    @property
    def url(self) -> str:
        host = f"[{self.host}]" if ":" in self.host else self.host
        return f"{'https' if self.certificate else 'http'}://{host}:{self.port}"

    def check(self) -> None:
        """Raise `ConfigError` if what is sent could be read on the way."""
        if bool(self.certificate) != bool(self.certificate_key):
            raise ConfigError("--tls-cert and --tls-key belong together")
        if bool(self.trusted_header) != bool(self.trusted_networks):
            raise ConfigError("--trust-header and --from belong together")
        if self.host not in LOOPBACK and not self.certificate and not self.behind_proxy:
            raise ConfigError(
                f"--host {self.host} without TLS: give --tls-cert and --tls-key, or --behind-proxy if a proxy on this"
                " machine or in front of it does TLS"
            )


def serve(parts: HubParts, address: HubAddress, ready: Callable[[str], None]) -> None:
    """Serve until SIGTERM or SIGINT. Calls `ready` with the address. Raises `StoreError` if the port is taken,
    `HubBusyError` if another process serves, and `ConfigError`."""
    address.check()
    with serving(parts):
        _serve(parts, address, ready)


def _serve(parts: HubParts, address: HubAddress, ready: Callable[[str], None]) -> None:
    listener = _listen(address)
    bound = address._replace(port=listener.getsockname()[1])
    with changing(parts.folder):
        intake = parts.intake(__version__)
    api = PushApi(intake, parts.people, lambda: changing(parts.folder))
    pool = CatalogPool(homes_of_hub(parts.folder), reads_files=False)
    app = hub_app(pool, parts.people, address.access, api.routes())
    log_as_json()
    logging.getLogger("uvicorn.error").setLevel(logging.ERROR)
    config = uvicorn.Config(
        app,
        log_config=None,
        access_log=False,
        server_header=False,
        http="h11",
        ws="none",
        loop="uvloop",
        limit_concurrency=MOST_CONNECTIONS,
        timeout_keep_alive=IDLE_SECONDS,
        timeout_graceful_shutdown=SHUTDOWN_SECONDS,
        ssl_certfile=address.certificate,
        ssl_keyfile=address.certificate_key,
        proxy_headers=False,
    )
    try:
        SignalledServer(config, lambda: ready(bound.url)).run(sockets=[listener])
    finally:
        pool.close()
        listener.close()


def _listen(address: HubAddress) -> socket.socket:
    family = socket.AF_INET6 if ":" in address.host else socket.AF_INET
    try:
        return socket.create_server((address.host, address.port), family=family)
    except OSError as error:
        raise StoreError(
            f"cannot listen on {address.host}:{address.port}: {error.strerror}; choose another --port"
        ) from error


class _JsonLines(logging.Formatter):
    def format(self, record: logging.LogRecord) -> str:
        entry = getattr(record, "entry", None) or {"event": record.name, "message": record.getMessage()}
        return json.dumps({"ts": CLOCK.now(), "level": record.levelname.lower(), **entry})


def log_as_json() -> None:
    """Write the log of the hub to stderr, a line of JSON for each event."""
    handler = logging.StreamHandler(sys.stderr)
    handler.setFormatter(_JsonLines())
    logger = logging.getLogger("agent_logger.hub")
    logger.addHandler(handler)
    logger.setLevel(logging.INFO)
    logger.propagate = False
