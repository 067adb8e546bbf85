"""The settings that send an agent through the proxy: the variables it reads its base URL from, and what undoes their
effects.

A base URL that somebody chose is never replaced by another place: it stays, or it is reached by way of a proxy that may
call it. A base URL of a proxy of ours that ended is recognised by its path (`/<provider>/<host>`), and replaced by the
place it led to.
"""

import json
import re
import socket
from collections.abc import Callable, Collection, Mapping
from dataclasses import dataclass

from agent_logger.config import Origin
from agent_logger.proxy.relay.route import KNOWN_HOSTS, PROVIDERS, TOKEN

LOOPBACK = "127.0.0.1,localhost"  # the value for NO_PROXY: hosts on this machine are reached without a proxy

# Provider, host and path behind it, by the name of the variable.
BASE_URLS: Mapping[str, str] = {
    "ANTHROPIC_BASE_URL": "anthropic/api.anthropic.com",
    "OPENAI_BASE_URL": "openai/api.openai.com/v1",
    "GOOGLE_GEMINI_BASE_URL": "gemini/generativelanguage.googleapis.com",
}
OPENCODE = "OPENCODE_CONFIG_CONTENT"
ANTHROPIC = "ANTHROPIC_BASE_URL"
# Claude Code turns tool search off for a base URL that is not Anthropic's, unless a variable says to keep it.
BESIDE: Mapping[str, str] = {"ENABLE_TOOL_SEARCH": "true"}
CONNECT_SECONDS = 0.5

# A name with a domain, or anything with a port; a gateway's path may continue with `v1`.
_HOST = r"(?:[a-z0-9_-]+\.)+[a-z]{2,}(?::\d+)?|[a-z0-9._-]+:\d+|\[[0-9a-f:.]+\](?::\d+)?"
_OURS = re.compile(
    rf"http://127\.0\.0\.1:(\d{{1,5}})(?:/({TOKEN.pattern}))?/({'|'.join(PROVIDERS)})/({_HOST})(/.*)?", re.ASCII
)
# Clients resolve it in any path.
_UPWARDS = re.compile(r"(?:^|[/\\])(?:\.|%2e){1,2}(?:[/\\?#]|$)", re.IGNORECASE)


def base_urls(port: int) -> dict[str, str]:
    """The base URLs of a proxy, by variable. opencode needs a path with the version, and reads its own variable before
    the others."""
    urls = {name: f"http://127.0.0.1:{port}/{path}" for name, path in BASE_URLS.items()}
    provider = {"anthropic": {"options": {"baseURL": f"{urls[ANTHROPIC]}/v1"}}}
    return {**urls, OPENCODE: json.dumps({"provider": provider}, separators=(",", ":"))}


@dataclass(frozen=True, slots=True)
class ProxyAddress:
    """A URL that has the form of ours: by way of a proxy on this port to a host."""

    port: int
    provider: str
    host: str  # host as in the path: with the port unless it is 443
    path: str
    token: str | None = None  # the token of a run

    @classmethod
    def parse(cls, url: str) -> "ProxyAddress | None":
        match = _OURS.fullmatch(url)
        return cls(int(match[1]), match[3], match[4], match[5] or "", match[2]) if match else None

    def at(self, port: int) -> str:
        """The same place, by way of another proxy."""
        return f"http://127.0.0.1:{port}/{self.provider}/{self.host}{self.path}"

    def direct(self, allowed: Collection[str] = ()) -> str:
        """The same place without a proxy. A host with a port may be http or https: one of the `allowed` origins
        decides, and on this machine it is http."""
        if f"http://{self.host}" in allowed:
            return f"http://{self.host}{self.path}"
        name = self.host.rpartition(":")[0] if re.search(r":\d+\Z", self.host) else ""
        on_this_machine = name in ("localhost", "[::1]") or name.startswith("127.")
        return f"{'http' if on_this_machine else 'https'}://{self.host}{self.path}"


@dataclass(frozen=True, slots=True)
class Chosen:
    """A base URL that somebody set already, and the place it leads to."""

    variable: str
    origin: Origin
    path: str

    def through(self, port: int) -> str:
        """The same place, by way of the proxy."""
        provider = BASE_URLS[self.variable].partition("/")[0]
        return f"http://127.0.0.1:{port}/{provider}/{self.place}"

    @property
    def place(self) -> str:
        """The place as it is spelled in the path of a proxy's URL."""
        return f"{str(self.origin).partition('://')[2]}{self.path}"


def chosen(variable: str, url: str) -> Chosen | None:
    """Read a base URL that somebody set; `None` if it cannot be understood. The base URL of a proxy of ours that ended
    counts as the place it led to."""
    ours = ProxyAddress.parse(url)
    if ours and (ours.host in KNOWN_HOSTS or not is_listening(ours.port)):
        url = ours.direct()
    scheme, separator, rest = url.partition("://")
    host, slash, path = rest.partition("/")
    if _UPWARDS.search(f"{slash}{path}"):
        return None  # behind the proxy it would lead to another host
    try:
        return Chosen(variable, Origin.parse(f"{scheme}{separator}{host}"), f"{slash}{path}")
    except ValueError:
        return None


def is_listening(port: int) -> bool:
    """Whether anything on this machine accepts connections on the port."""
    try:
        with socket.create_connection(("127.0.0.1", port), CONNECT_SECONDS):
            return True
    except TimeoutError:
        return True  # the proxy may be slow
    except OSError:
        return False


def _opencode_is_ours(environment: Mapping[str, str]) -> bool:
    settings = environment.get(OPENCODE, "")
    match = re.search(r'"baseURL":"([^"]*)"', settings)
    ours = ProxyAddress.parse(match[1]) if match else None
    return ours is not None and settings == base_urls(ours.port)[OPENCODE]


def without_upstream_proxy(environment: Mapping[str, str]) -> dict[str, str]:
    """Settings that reach the proxy on this machine without another proxy. Programs read one of two variables, and not
    all the same one."""
    lower = environment.get("no_proxy", "")
    exceptions = {"NO_PROXY": environment.get("NO_PROXY", lower)} | (
        {"no_proxy": lower} if "no_proxy" in environment else {}
    )
    hosts = {name: [host.strip() for host in value.split(",") if host.strip()] for name, value in exceptions.items()}
    there = LOOPBACK.partition(",")[0]
    return {
        name: ",".join([*listed, *(() if there in listed else LOOPBACK.split(","))]) for name, listed in hosts.items()
    }


# ---------------------------------------------------------------- for a shell, where others set variables too


@dataclass(frozen=True, slots=True)
class Variable:
    """A variable of a shell: its value now, while the proxy runs, and while it does not."""

    name: str
    now: str
    with_proxy: str  # "": to be unset
    without_proxy: str  # "": to be unset

    @property
    def stays(self) -> bool:
        """Whether somebody else set the variable, and it is left alone."""
        return self.now == self.with_proxy == self.without_proxy


def shell_variables(
    environment: Mapping[str, str],
    port: int,
    allowed: Collection[str] = (),
    other_ports: Collection[int] = (),
    is_listening: Callable[[int], bool] = is_listening,
) -> list[Variable]:
    """The variables of a shell for a proxy on `port` that was started with the `allowed` origins. A base URL that is
    not ours stays, unless its origin is one of those; on `other_ports` further proxies of ours listen."""
    urls = base_urls(port)
    spelled = {origin.partition("://")[2] for origin in allowed}

    def decided(name: str) -> Variable:
        now = environment.get(name, "")
        ours = ProxyAddress.parse(now)
        if not now:
            return Variable(name, now, urls[name], "")
        # No other program has a known provider's host in its path. Any other host may be a part of a gateway's path.
        if ours and (ours.host in KNOWN_HOSTS or ours.host in spelled):
            return Variable(name, now, ours.at(port), "" if ours.at(port) == urls[name] else ours.direct(allowed))
        if ours and ours.port != port and ours.port not in other_ports and not is_listening(ours.port):
            return Variable(name, now, ours.direct(), ours.direct())
        theirs = chosen(name, now) if not ours else None
        if theirs and str(theirs.origin) in allowed:
            return Variable(name, now, theirs.through(port), now)
        return Variable(name, now, now, now)

    variables = [decided(name) for name in BASE_URLS]
    if variables[0].with_proxy == urls[ANTHROPIC]:
        variables += _for_anthropic(environment, urls[OPENCODE])
    elif _opencode_is_ours(environment):
        variables.append(Variable(OPENCODE, environment[OPENCODE], "", ""))
    if any(ProxyAddress.parse(variable.with_proxy) for variable in variables):
        changes = without_upstream_proxy(environment).items()
        values = [(name, environment.get(name, ""), value) for name, value in changes]
        variables += [Variable(name, now, value, value) for name, now, value in values if now != value]
    return variables


def _for_anthropic(environment: Mapping[str, str], opencode: str) -> list[Variable]:
    """The variables that belong to a base URL of Anthropic's; beside another one they would send agents elsewhere."""
    settings = environment.get(OPENCODE, "")
    if settings and not _opencode_is_ours(environment):
        variables = [Variable(OPENCODE, settings, settings, settings)]
    else:
        variables = [Variable(OPENCODE, settings, opencode, "")]
    unset = ((name, value) for name, value in BESIDE.items() if not environment.get(name))
    return variables + [Variable(name, "", value, "") for name, value in unset]
