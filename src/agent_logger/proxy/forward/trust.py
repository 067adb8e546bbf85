"""Which clients of a run do not trust our certificate: their next connection is passed on, for an agent must work
whether it can be recorded or not.

Clients are told apart by the host and the fingerprint of their TLS. One that trusted us once is never taken for one
that does not: a connection may end early for many reasons.
"""

from typing import Final

from agent_logger.proxy.forward.tls import Outcome

HostClient = tuple[str, bytes]

_MOST_CLIENTS = 256
# What is enough: one word of the client that says so, or two connections that it left in silence.
_ENOUGH = 2
_WEIGHTS: Final[dict[Outcome, int]] = {"not_trusted": _ENOUGH, "left": 1}


class ClientTrust:
    def __init__(self) -> None:
        self._signs: dict[HostClient, int] = {}  # of distrust
        self._trusting: set[HostClient] = set()

    def note(self, client: HostClient, outcome: Outcome) -> None:
        if max(len(self._signs), len(self._trusting)) >= _MOST_CLIENTS:
            return
        if outcome == "opened":
            self._trusting.add(client)
        elif outcome in _WEIGHTS:
            self._signs[client] = self._signs.get(client, 0) + _WEIGHTS[outcome]

    def is_missing(self, client: HostClient) -> bool:
        """Whether the client does not trust us."""
        return self._signs.get(client, 0) >= _ENOUGH and client not in self._trusting
