"""The two doors of the proxy: the changes to a command that send it through one of them, and what the run registers.

By the base-URL door, the agent calls the proxy instead of its API. By the forward door it calls its API through the
proxy, and trusts a certificate of ours. Which door an agent needs depends on its login and its settings.
"""

import os
import re
import shutil
import subprocess
from collections.abc import Collection, Iterator, Mapping
from dataclasses import dataclass
from functools import cached_property
from typing import Literal, NamedTuple

from agent_logger import config
from agent_logger.agents.base import Agent, ProxySetup
from agent_logger.agents.contracts import ChildCommand, ChildSetup, Door
from agent_logger.agents.registry import child_setups
from agent_logger.clock import CLOCK
from agent_logger.model.plurals import pluralize
from agent_logger.proxy.base_urls import BASE_URLS, ProxyAddress
from agent_logger.proxy.forward.hosts import RecordedHosts
from agent_logger.proxy.forward.variables import ForwardAccess, forward_variables, upstream_network
from agent_logger.proxy.relay.route import TOKEN
from agent_logger.proxy.runs.messages import RegisterRun, new_token
from agent_logger.proxy.runs.urls import RunUrls, base_url_changes

DoorChoice = Literal["auto", "base-url", "forward"]
NODE_SECONDS = 5.0
# Before this version the variable that makes it use a proxy prints a warning, or has no effect.
NODE_WITH_PROXY = 24


class SentCommand(NamedTuple):
    """A command that goes through the proxy."""

    child: ChildCommand
    registration: RegisterRun
    door: Door
    # Why its calls cannot be recorded although it is sent there, for people.
    notice: str | None = None


@dataclass
class OutgoingCommand:
    """A command that is to be sent through the proxy."""

    child: ChildCommand
    agent: Agent | None

    @cached_property
    def setups(self) -> list[tuple[Agent, ChildSetup]]:
        return list(child_setups())

    @cached_property
    def own(self) -> ChildSetup | None:
        return next((setup for agent, setup in self.setups if agent is self.agent), None)

    @cached_property
    def effective(self) -> ChildCommand:
        """The command with the variables as the agent sees them: its settings may replace some."""
        replaced = self.own.settings_environment(self.child) if self.own else {}
        return self.child._replace(environment={**self.child.environment, **replaced})

    @property
    def setup(self) -> ProxySetup:
        return self.agent.setup or ProxySetup() if self.agent else ProxySetup()

    def door(self, choice: DoorChoice) -> Door:
        """Return the door for this command. Base URLs are set for a command of which nothing is known: most programs
        that call a model have one of those."""
        if choice != "auto":
            return choice
        if self.own:
            return self.own.door(self.effective)
        return "base-url" if self.agent is None or self.setup.takes_base_url else "forward"

    def sent(self, door: Door, port: int, allowed: Mapping[int, Collection[str]]) -> SentCommand:
        """Change the command, for a proxy on this port. `allowed`: the origins that the proxies of this home may call.
        Raises `StoreError` if the certificates cannot be written."""
        token = new_token()
        urls = RunUrls(port, token, allowed)
        return self._by_forward_door(port, token, urls) if door == "forward" else self._by_base_url(token, urls)

    # ------------------------------------------------------------ base URLs

    def _by_base_url(self, token: str, urls: RunUrls) -> SentCommand:
        child = self._with_base_urls(urls)
        registration = RegisterRun(
            id=CLOCK.uuid7(),
            token=token,
            origins=tuple(urls.origins),
            network=config.network(self.effective.environment),
            within=urls.within,
        )
        return SentCommand(child, registration, "base-url")

    def _with_base_urls(self, urls: RunUrls) -> ChildCommand:
        changes: dict[str, str | None] = {**base_url_changes(self.effective.environment, urls)}
        for _, setup in self.setups:
            changes |= setup.variables(self.effective, urls.through, is_own=setup is self.own)
        variables = {name: value for name, value in changes.items() if value is not None}
        child = self.child._replace(environment={**self.child.environment, **variables})
        return child._replace(argv=self.own.arguments(child, urls.through)) if self.own else child

    # ------------------------------------------------------------ the forward door

    def _by_forward_door(self, port: int, token: str, urls: RunUrls) -> SentCommand:
        from agent_logger.proxy.forward.bundle import write_trust_files
        from agent_logger.proxy.forward.certificates import Authority

        self._with_base_urls(urls)  # notes the origins of gateways, which are recorded, too
        hosts = RecordedHosts.configured(config.load().record_hosts) | RecordedHosts(tuple(_gateways(urls.origins)))
        certificates = Authority(config.home(), hosts).certificates()
        files = write_trust_files(config.home(), certificates, self.effective.environment)
        is_trusting = files.is_complete or self.setup.reads_extra_certificates
        access = ForwardAccess(port, token, str(files.extra), str(files.bundle) if files.is_complete else None)
        variables = forward_variables(
            self.effective.environment, access, hosts.names, node_proxy=self._needs_node_proxy()
        )
        environment = {**_without_our_urls(self.child.environment), **variables}
        child = self.child._replace(environment=environment)
        if self.own:
            child = child._replace(argv=self.own.forward_arguments(child, variables))
        registration = RegisterRun(
            id=CLOCK.uuid7(),
            token=token,
            origins=tuple(urls.origins),
            network=upstream_network(self.effective.environment),
            within=urls.within or _token_in(self.effective.environment),
            record_hosts=hosts.names if is_trusting else (),
        )
        notice = (
            None
            if is_trusting
            else f"{pluralize(files.roots, 'root certificate')} on this system: too few for a file of its own"
        )
        return SentCommand(child, registration, "forward", notice)

    def _needs_node_proxy(self) -> bool:
        """Whether Node's `fetch` is to use the proxy. For a command of which nothing is known, the version of Node
        decides that it would start."""
        if self.agent:
            return self.setup.needs_node_proxy
        name = self.child.argv[0]
        is_node = os.path.basename(name) == "node"
        path = str(self.child.folder / name) if is_node and os.path.dirname(name) else shutil.which("node")
        return path is not None and _node_version(path) >= NODE_WITH_PROXY


def _gateways(origins: Collection[str]) -> Iterator[str]:
    """Yield the hosts that need a certificate of ours. An address cannot have one."""
    for origin in origins:
        place = config.Origin.parse(origin)
        if place.scheme == "https":
            try:
                yield config.host_pattern(place.host)
            except config.HostNameError:
                continue


def _without_our_urls(environment: Mapping[str, str]) -> dict[str, str]:
    """Return the variables without base URLs of our proxies: the forward door leads to the place itself."""
    direct = dict(environment)
    for name, place in BASE_URLS.items():
        address = ProxyAddress.parse(environment.get(name, ""))
        if address is None:
            continue
        if f"{address.provider}/{address.host}{address.path}" == place:
            del direct[name]
        else:
            direct[name] = address.direct()
    return direct


def _token_in(environment: Mapping[str, str]) -> str | None:
    """Return the token of the run that this one was started in, if that uses the forward door."""
    match = TOKEN.search(config.network(environment).https_proxy)
    return match[0] if match else None


def _node_version(path: str) -> int:
    try:
        done = subprocess.run(
            [path, "--version"], capture_output=True, text=True, stdin=subprocess.DEVNULL, timeout=NODE_SECONDS
        )
    except (OSError, subprocess.SubprocessError, UnicodeDecodeError):
        return 0
    match = re.match(r"v(\d+)\.", done.stdout)
    return int(match[1]) if match else 0
