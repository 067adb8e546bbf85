"""The hosts whose traffic the forward door opens and records; all others are tunnelled unread.

They are the known providers, the back ends that the agents' descriptors name, and what the setting `record_hosts` adds.
The names of a run are those at its start: a client that runs has read a certificate that permits these and no others
(`certificates.py`), so a host that is added later must stay a tunnel for it.
"""

from collections.abc import Iterable
from dataclasses import dataclass
from functools import cached_property
from typing import Self

from agent_logger.agents.registry import AGENTS
from agent_logger.config import HostNameError, host_pattern
from agent_logger.proxy.relay.route import KNOWN_HOSTS

__all__ = ["SIGN_IN_HOSTS", "HostNameError", "RecordedHosts", "are_permitted", "default_hosts", "host_name", "reduced"]

# Hosts where people sign in. They are recorded only if the user names them: a wildcard does not cover them.
SIGN_IN_HOSTS = frozenset(
    {
        *("console.anthropic.com", "platform.claude.com", "claude.ai"),
        *("auth.openai.com", "auth0.openai.com"),
        *("accounts.google.com", "oauth2.googleapis.com"),
        *("github.com", "login.microsoftonline.com"),
    }
)


def default_hosts() -> tuple[str, ...]:
    """Return the hosts that are recorded without any setting."""
    of_agents = (host for agent in AGENTS for host in agent.model_hosts)
    return tuple(sorted({*KNOWN_HOSTS, *of_agents}))


def host_name(text: str) -> str:
    """Return a host as it is looked up: in lower case, without a final dot."""
    return text.lower().removesuffix(".")


@dataclass(frozen=True)
class RecordedHosts:
    """Names of hosts. `*.example.com` stands for every host below example.com, at any depth, but not for example.com.

    `RecordedHosts.parse(texts)` reads names; `RecordedHosts.configured(settings.record_hosts)` are those that apply.
    """

    # Parsed names, sorted.
    names: tuple[str, ...]

    @classmethod
    def parse(cls, texts: Iterable[str]) -> Self:
        """Read names. Raises `HostNameError`, which says what is wrong with which."""
        return cls(tuple(sorted(set(map(_parsed, texts)))))

    @classmethod
    def configured(cls, added: Iterable[str]) -> Self:
        """Return the default hosts and those that the user added."""
        return cls.parse((*default_hosts(), *added))

    def covers(self, host: str) -> bool:
        """Whether calls to a host, as a client wrote it, are recorded."""
        name = host_name(host)
        if name in self._exact:
            return True
        if name in SIGN_IN_HOSTS or not self._endings:
            return False
        return name.endswith(self._endings) and _is_host(name)

    @cached_property
    def _exact(self) -> frozenset[str]:
        return frozenset(name for name in self.names if not name.startswith("*."))

    @cached_property
    def _endings(self) -> tuple[str, ...]:
        return tuple(name[1:] for name in self.names if name.startswith("*."))

    @cached_property
    def subtrees(self) -> tuple[str, ...]:
        """The DNS names that a certificate must permit, none of them below another. A subtree is a name and all names
        below it."""
        return reduced(name.removeprefix("*.") for name in self.names)

    def __or__(self, other: "RecordedHosts") -> "RecordedHosts":
        return RecordedHosts(tuple(sorted({*self.names, *other.names})))


def reduced(subtrees: Iterable[str]) -> tuple[str, ...]:
    """Return the subtrees, sorted, without those that are below another."""
    bases = set(subtrees)
    return tuple(sorted(base for base in bases if bases.isdisjoint(_parents(base))))


def are_permitted(names: Iterable[str], subtrees: Iterable[str]) -> bool:
    """Whether a certificate with these subtrees permits all of the names."""
    permitted = set(subtrees)
    return all(not permitted.isdisjoint((name, *_parents(name))) for name in names)


def _parents(name: str) -> list[str]:
    labels = name.split(".")
    return [".".join(labels[place:]) for place in range(1, len(labels))]


def _parsed(text: str) -> str:
    try:
        return host_pattern(text)
    except HostNameError as error:
        raise HostNameError(f"{text}: {error}") from error


def _is_host(name: str) -> bool:
    try:
        return not host_pattern(name).startswith("*")
    except HostNameError:
        return False
