"""Measure what a client does behind a proxy: `python -m tests.real_clients.measure_doors [CLIENT ...]`.

Each client is started once for each question, in a home of its own, with the test internet as its proxy: which variable
makes it trust a certificate, which one names its proxy, how it sends a user and password, what a 407 does, which hosts
it excepts, what it offers in TLS. Prints an object of JSON for each client; `docs/doors.md` is written from these.
"""

import contextlib
import json
import os
import signal
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from tests.clients import Sandbox
from tests.fakeapi import answers
from tests.internet import Internet, Site, Tunnel
from tests.internet.packages import PUBLISHED
from tests.internet.vendors import VendorHosts

from .forward_clients import ANSWER, CLIENTS, TOOLS, ForwardClient

CERTIFICATES = (
    *("NODE_EXTRA_CA_CERTS", "SSL_CERT_FILE", "REQUESTS_CA_BUNDLE", "CURL_CA_BUNDLE", "CODEX_CA_CERTIFICATE"),
    *("GIT_SSL_CAINFO", "CARGO_HTTP_CAINFO", "DENO_CERT", "PIP_CERT"),
)
PROXIES = ("HTTPS_PROXY", "https_proxy", "HTTP_PROXY", "ALL_PROXY")
ROOTS = Path("/etc/ssl/certs/ca-certificates.crt")
SLOWEST_START = 20  # seconds until a client makes its first request, on a busy machine
LOOK_SECONDS, GRACE_SECONDS = 0.05, 0.7
USER, PASSWORD = "agent-logger", "alr_abcdefghijklmnopqrstuvwxyz012345"


@dataclass(frozen=True)
class Place:
    """What the environment of an attempt is made from."""

    internet: Internet
    bundle: Path

    def proxy(self, *names: str, url: str | None = None) -> dict[str, str]:
        return dict.fromkeys(names or ("HTTPS_PROXY", "https_proxy"), url or self.internet.url)

    def certificates(self, *names: str) -> dict[str, str]:
        own = str(self.internet.ca_file)
        return {name: own if name == "NODE_EXTRA_CA_CERTS" else str(self.bundle) for name in names or CERTIFICATES}


@dataclass(frozen=True)
class Attempt:
    client: ForwardClient
    exit_code: int | None  # `None`: it was ended
    output: str
    tunnels: list[Tunnel]
    calls: list[Any]

    @property
    def own(self) -> list[Tunnel]:
        """The tunnels to the host that counts."""
        return [tunnel for tunnel in self.tunnels if tunnel.host == self.client.model_host]

    @property
    def is_done(self) -> bool:
        return self.exit_code == 0 and self.client.prints in self.output

    @property
    def trust(self) -> str:
        """Whether it took the certificate: yes, no, some connections, or none was made."""
        answers_given = {tunnel.is_trusted for tunnel in self.own if tunnel.is_trusted is not None}
        return {(): "none", (True,): "yes", (False,): "no"}.get(tuple(sorted(answers_given)), "some")

    def credentials(self) -> list[tuple[int, str | None]]:
        return [(tunnel.status, tunnel.credentials) for tunnel in self.tunnels[:6]]


Until = Callable[[list[Tunnel], list[Tunnel]], object]  # of the tunnels to the host that counts, and of all


def attempt(
    client: ForwardClient,
    environment: Callable[[Place], Mapping[str, str]],
    *,
    until: Until = lambda own, every: False,
    seconds: float = 40,
    websocket_status: int = 101,
    **internet_options: Any,
) -> Attempt:
    """Start a client, and end it when `until` holds or the time is over."""
    with contextlib.ExitStack() as stack:
        # Not below /tmp, where Codex does not want its home.
        folder = Path(stack.enter_context(tempfile.TemporaryDirectory(dir="/var/tmp", ignore_cleanup_errors=True)))
        sites = dict(_sites(client, folder / "sites", stack))
        api = stack.enter_context(
            VendorHosts(answers({"text": ANSWER}, repeat=True), websocket_status=websocket_status)
        )
        internet = stack.enter_context(Internet(folder / "internet", api.port, sites, **internet_options))
        bundle = folder / "bundle.pem"
        bundle.write_bytes(ROOTS.read_bytes() + internet.ca_file.read_bytes())
        sandbox = Sandbox(folder)
        client.prepare(sandbox)
        basic = {"HOME": str(sandbox.home), "PATH": os.environ["PATH"], "LANG": "C.UTF-8", "TERM": "xterm-256color"}
        variables = {**basic, **client.environment, **environment(Place(internet, bundle))}
        output = folder / "output"
        with output.open("wb") as file:
            process = subprocess.Popen(
                client.command(),
                cwd=sandbox.project,
                env=variables,
                stdin=subprocess.DEVNULL,
                stdout=file,
                stderr=subprocess.STDOUT,
                start_new_session=True,
            )
        exit_code = _wait(process, client, internet, until, seconds)
        return Attempt(client, exit_code, output.read_text(errors="replace"), list(internet.tunnels), list(api.calls))


def _sites(client: ForwardClient, folder: Path, stack: contextlib.ExitStack) -> Iterator[tuple[str, int]]:
    if client.model_host in PUBLISHED:
        PUBLISHED[client.model_host](folder)
        yield client.model_host, stack.enter_context(Site(folder)).port


def _wait(
    process: subprocess.Popen[bytes], client: ForwardClient, internet: Internet, until: Until, seconds: float
) -> int | None:
    give_up = time.monotonic() + seconds
    while process.poll() is None and time.monotonic() < give_up:
        time.sleep(LOOK_SECONDS)
        every = list(internet.tunnels)
        if until([tunnel for tunnel in every if tunnel.host == client.model_host], every):
            give_up = min(give_up, time.monotonic() + GRACE_SECONDS)
    code = process.poll()
    if code is None:
        os.killpg(process.pid, signal.SIGKILL)
        process.wait()
    return code


def _is_decided(own: list[Tunnel], every: list[Tunnel]) -> bool:
    return any(tunnel.is_trusted is not None for tunnel in own)


def measure(client: ForwardClient) -> dict[str, Any]:
    """Answer all questions about a client."""
    node = {"NODE_USE_ENV_PROXY": "1"} if client.name in ("node22", "node24") else {}
    suffix = f".{client.model_host.partition('.')[2]}"

    def trust(*names: str) -> str:
        one = attempt(
            client,
            lambda place: {**place.proxy(), **node, **(place.certificates(*names) if names else {})},
            until=_is_decided,
            seconds=15,
        )
        return one.trust

    def with_all(place: Place, **changes: str) -> dict[str, str]:
        return {**place.proxy(), **place.certificates(), **node, **changes}

    def uses_proxy(name: str) -> bool:
        one = attempt(
            client,
            lambda place: {**place.proxy(name), **place.certificates(), **node},
            until=lambda own, every: own,
            seconds=SLOWEST_START,
        )
        return bool(one.own)

    def is_excepted(value: str) -> bool:
        one = attempt(
            client,
            lambda place: with_all(place, NO_PROXY=value, no_proxy=value),
            until=lambda own, every: own,
            seconds=SLOWEST_START,
        )
        return not one.own

    def credentials(user: str, *, is_sent: bool = True) -> list[tuple[int, str | None]]:
        one = attempt(
            client,
            lambda place: {
                **with_all(place),
                **({} if is_sent else place.proxy(url=f"http://127.0.0.1:{place.internet.proxy_port}")),
            },
            until=lambda own, every: len(every) >= 6 or _is_decided(own, every),
            seconds=15,
            credentials=user,
        )
        return one.credentials()

    whole = attempt(client, with_all)
    return {
        "client": client.name,
        "trust": {"none": trust(), **{name: trust(name) for name in CERTIFICATES}},
        "proxy": {name: uses_proxy(name) for name in PROXIES},
        "user and password": credentials(f"{USER}:{PASSWORD}"),
        "user alone": credentials(f"{PASSWORD}:"),
        "no user": credentials(f"{USER}:{PASSWORD}", is_sent=False),
        "excepted": {value: is_excepted(value) for value in (client.model_host, suffix, "*")},
        "TLS 1.2": attempt(client, with_all, is_tls_12=True).is_done,
        "whole": {
            "exit": whole.exit_code,
            "done": whole.is_done,
            "offers": sorted({str((tunnel.hello.alpn, tunnel.hello.versions)) for tunnel in whole.own if tunnel.hello}),
            "other hosts": sorted({tunnel.host for tunnel in whole.tunnels} - {client.model_host}),
            "calls": [(call.transport, call.method, call.path.partition("?")[0], call.status) for call in whole.calls],
        },
    }


def main() -> None:
    every = {**CLIENTS, **TOOLS}
    for name in sys.argv[1:] or every:
        print(json.dumps(measure(every[name])), flush=True)


if __name__ == "__main__":
    main()
