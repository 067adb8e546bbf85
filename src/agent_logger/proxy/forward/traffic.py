"""What went through the forward door: counts by host, for each run and for the whole proxy."""

from collections.abc import Iterable

import msgspec

# Hosts that are counted by name; those beyond are counted together. A run may reach any number.
MOST_HOSTS = 200
OTHER_HOSTS = "other hosts"


class HostTraffic(msgspec.Struct, kw_only=True, omit_defaults=True):
    """The traffic with one host. A connection is counted once: as opened, as broken off, as failed, or as a tunnel."""

    host: str  # with the port unless it is 443
    calls: int = 0  # requests that were relayed and recorded
    opened: int = 0  # connections that were opened, with our certificate or as plain HTTP
    # Connections that the client broke off on seeing our certificate, or right after that: it does not trust us.
    not_trusted: int = 0
    # Connections on which the client and we found no form of TLS in common.
    no_handshake: int = 0
    unreachable: int = 0  # connections and requests for which the host could not be reached, or may not be
    tunnels: int = 0  # connections that were passed on unread
    # Tunnels among those to hosts that are recorded: the client speaks another protocol, or did not trust us before.
    tunnels_unopened: int = 0
    sent_bytes: int = 0  # in tunnels, by the client
    received_bytes: int = 0  # in tunnels, by the host
    plain_requests: int = 0  # requests for `http://` URLs that were relayed and not recorded

    def add(self, other: "HostTraffic") -> None:
        for name in _COUNTS:
            setattr(self, name, getattr(self, name) + getattr(other, name))


_COUNTS = tuple(name for name in HostTraffic.__struct_fields__ if name != "host")


class Traffic:
    """The traffic by host, in the order in which the hosts came."""

    def __init__(self, most_hosts: int = MOST_HOSTS) -> None:
        self._hosts: dict[str, HostTraffic] = {}
        self._most_hosts = most_hosts

    def of(self, host: str) -> HostTraffic:
        """The counts of a host, to be increased."""
        if host not in self._hosts and len(self._hosts) >= self._most_hosts:
            host = OTHER_HOSTS
        return self._hosts.setdefault(host, HostTraffic(host=host))

    def hosts(self) -> tuple[HostTraffic, ...]:
        """Return a copy of the counts."""
        return tuple(msgspec.structs.replace(host) for host in list(self._hosts.values()))

    def add(self, hosts: Iterable[HostTraffic]) -> None:
        for host in hosts:
            self.of(host.host).add(host)


class RunTraffic(msgspec.Struct, frozen=True, kw_only=True):
    """What was relayed of a registered run."""

    calls: int = 0  # calls that are recorded, by either door
    hosts: tuple[HostTraffic, ...] = ()  # through the forward door
    connections: int = 0  # of that door, that are open

    @classmethod
    def sum(cls, parts: Iterable["RunTraffic"]) -> "RunTraffic":
        parts = list(parts)
        return cls(
            calls=sum(part.calls for part in parts),
            hosts=_merged(part.hosts for part in parts),
            connections=sum(part.connections for part in parts),
        )


def _merged(parts: Iterable[Iterable[HostTraffic]]) -> tuple[HostTraffic, ...]:
    total = Traffic()
    for hosts in parts:
        total.add(hosts)
    return total.hosts()


class ForwardStatus(msgspec.Struct, frozen=True, kw_only=True):
    """What the forward door of a relay, or of a proxy, has done since it began."""

    open_tunnels: int = 0
    without_token: int = 0  # requests that were asked for a token
    certificate_problem: str | None = None  # why no host can be opened: all are tunnels
    hosts: tuple[HostTraffic, ...] = ()

    @classmethod
    def sum(cls, statuses: Iterable["ForwardStatus"]) -> "ForwardStatus":
        statuses = list(statuses)
        return cls(
            open_tunnels=sum(status.open_tunnels for status in statuses),
            without_token=sum(status.without_token for status in statuses),
            certificate_problem=next((problem for status in statuses if (problem := status.certificate_problem)), None),
            hosts=_merged(status.hosts for status in statuses),
        )
