"""How often a peer may present a wrong token.

Nobody guesses 256 bits; what this limits is the load and the size of the audit. A token that was right in this process
before is looked up whatever its peer does, so that one machine with a revoked token does not lock out the others
behind the same address.
"""

import ipaddress
import threading
import time
from collections import OrderedDict
from collections.abc import Callable

FAILURES = 20  # within a minute
SECONDS = 60.0
MOST_PEERS = 10_000
MOST_HASHES = 10_000


class Throttle:
    def __init__(self, clock: Callable[[], float] = time.monotonic) -> None:
        self._clock = clock
        self._failures: OrderedDict[str, list[float]] = OrderedDict()  # of a peer: times
        self._valid_hashes: OrderedDict[str, None] = OrderedDict()
        self._lock = threading.Lock()

    def admits(self, peer: str, token_hash: str = "") -> bool:
        """Whether a token of this peer is to be looked up."""
        with self._lock:
            return token_hash in self._valid_hashes or len(self._recent(_network(peer))) < FAILURES

    def note_failure(self, peer: str) -> None:
        with self._lock:
            network = _network(peer)
            self._failures[network] = [*self._recent(network), self._clock()][-FAILURES:]
            self._failures.move_to_end(network)
            while len(self._failures) > MOST_PEERS:
                self._failures.popitem(last=False)

    def note_success(self, token_hash: str) -> None:
        with self._lock:
            self._valid_hashes[token_hash] = None
            self._valid_hashes.move_to_end(token_hash)
            while len(self._valid_hashes) > MOST_HASHES:
                self._valid_hashes.popitem(last=False)

    def _recent(self, network: str) -> list[float]:
        start = self._clock() - SECONDS
        return [failure for failure in self._failures.get(network, ()) if failure > start]


def _network(peer: str) -> str:
    """The address, of IPv6 the /64 that one customer has."""
    try:
        address = ipaddress.ip_address(peer)
    except ValueError:
        return peer
    return str(ipaddress.ip_network((address, 64), strict=False)) if address.version == 6 else peer
