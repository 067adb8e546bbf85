"""The history of a request, read and fingerprinted. What an earlier request tells about it is not computed again."""

from collections.abc import Sequence
from dataclasses import dataclass

import msgspec

from agent_logger.providers.known_units import UnitPlaces, places_of, read_on
from agent_logger.providers.request_body import Api, RequestBody, read
from agent_logger.proxy.tracking.fingerprint import Fingerprints, Rolled


@dataclass(frozen=True, slots=True)
class KnownHistory:
    """The history of an earlier request: where its units stand, and its states from `base` on."""

    places: UnitPlaces
    base: bytes
    rolled: Rolled


class RequestHistory:
    """The history in the text of a request. The text is the same as that of an earlier one, which had the history
    `earlier`, for the first `common` bytes."""

    def __init__(self, text: bytes, earlier: KnownHistory | None = None, common: int = 0) -> None:
        self._text, self._earlier, self._common = text, earlier, common
        self._count = 0  # units that are known
        self._body: RequestBody | None = None
        self._places: UnitPlaces | None = None
        self._base, self._rolled = b"", Rolled([], None, [])

    def read(self, api: Api) -> RequestBody | None:
        earlier = self._earlier
        count = earlier.places.before(self._common) if earlier and earlier.places.api == api else 0
        if earlier and count and (news := read_on(self._text, earlier.places, count)):
            self._body, self._places = news
            self._count = count
            return self._body
        self._body = read(self._text, api) if self._text else None
        return self._body

    def roll(self, fingerprints: Fingerprints, api: Api, base: bytes, units: Sequence[msgspec.Raw]) -> Rolled:
        """Compute the states of the units that were read, from the state `base` on."""
        earlier = self._earlier if self._count else None
        states = earlier.rolled.first(self._count) if earlier and earlier.base == base else None
        self._base, self._rolled = base, fingerprints.roll(api, base, units, states)
        return self._rolled

    def learned(self, api: Api | None) -> KnownHistory | None:
        """Return this history, for the next request; `None` if nothing can be known of it."""
        if api is None or self._body is None or not self._rolled.states:
            return None
        places = self._places or places_of(self._text, api, self._body)
        return KnownHistory(places, self._base, self._rolled) if places else None
