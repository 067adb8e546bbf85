"""The variables that send a program and its children through the forward door, and make them trust its certificates.

Which program reads which variable was measured: `docs/doors.md`. What the user had set is honoured: an `HTTPS_PROXY` is
the way on from our proxy (the run registers it), hosts in `NO_PROXY` are still reached directly unless they are
recorded, and the certificate files that the variables name are in the bundle.
"""

from collections.abc import Collection, Mapping
from typing import NamedTuple

from agent_logger.config import Network, network

USER = "agent-logger"
PROXY_VARIABLES = ("HTTPS_PROXY", "https_proxy")
EXCEPTIONS = ("NO_PROXY", "no_proxy")
LOOPBACK = ("localhost", "127.0.0.1", "::1")
# Certificates to trust besides the program's own; the others replace these.
EXTRA_CERTIFICATES = "NODE_EXTRA_CA_CERTS"
BUNDLES = (
    "SSL_CERT_FILE",
    "REQUESTS_CA_BUNDLE",
    "CURL_CA_BUNDLE",
    "CODEX_CA_CERTIFICATE",
    "GIT_SSL_CAINFO",
    "CARGO_HTTP_CAINFO",
    "DENO_CERT",
)
NODE_PROXY = "NODE_USE_ENV_PROXY"
# Some clients use these for https, too, if there is no `HTTPS_PROXY`.
OTHER_PROXIES = ("all_proxy", "ALL_PROXY", "http_proxy", "HTTP_PROXY")


class ForwardAccess(NamedTuple):
    """What a child needs to use the forward door of a proxy."""

    port: int
    token: str
    certificates: str  # the file with our certificate, and those that the user adds to a program's own
    # The file with all certificates; `None`: too few roots were found to replace a program's own with.
    bundle: str | None

    @property
    def proxy_url(self) -> str:
        """The URL of the proxy. Some clients send nothing for a user without a password."""
        return f"http://{USER}:{self.token}@127.0.0.1:{self.port}"


def forward_variables(
    environment: Mapping[str, str],
    access: ForwardAccess,
    recorded: Collection[str] = (),
    *,
    node_proxy: bool = False,
) -> dict[str, str]:
    """Return the changes to an environment. `recorded`: the hosts that must not be reached directly, as
    `example.com` or `*.example.com`. `node_proxy`: Node's own `fetch` is to use the proxy, too."""
    exceptions = without_proxy(environment, recorded)
    return {
        **dict.fromkeys(PROXY_VARIABLES, access.proxy_url),
        **dict.fromkeys(EXCEPTIONS, exceptions),
        EXTRA_CERTIFICATES: access.certificates,
        **(dict.fromkeys(BUNDLES, access.bundle) if access.bundle else {}),
        **({NODE_PROXY: "1"} if node_proxy else {}),
    }


def upstream_network(environment: Mapping[str, str]) -> Network:
    """Return the way from our proxy to the hosts. A child that has our proxy in `HTTPS_PROXY` uses no other, so those
    of the other variables are reached from ours."""
    others = (value for name in OTHER_PROXIES if (value := environment.get(name)))
    way = network(environment)
    return way if way.https_proxy else way._replace(https_proxy=next(others, ""))


def without_proxy(environment: Mapping[str, str], recorded: Collection[str] = ()) -> str:
    """Return the hosts that the child reaches without a proxy: those of the user, except for recorded ones, and this
    machine. Our proxy knows the user's list, and reaches the recorded ones as it says."""
    written = next((value for name in reversed(EXCEPTIONS) if (value := environment.get(name))), "")
    items = [item for item in (part.strip() for part in written.replace(" ", ",").split(",")) if item]
    direct = [item for item in items if not any(_covers(item, host) for host in recorded)]
    return ",".join(dict.fromkeys((*direct, *LOOPBACK)))


def _covers(item: str, host: str) -> bool:
    """Whether a client that has this item in its list would reach a recorded host directly, or a host that a recorded
    wildcard stands for."""
    if item == "*":
        return True
    name = item.lower().removeprefix("*").lstrip(".").partition(":")[0]
    base = host.removeprefix("*.")
    is_below = base == name or base.endswith(f".{name}")
    return bool(name) and (is_below or (host != base and name.endswith(f".{base}")))
