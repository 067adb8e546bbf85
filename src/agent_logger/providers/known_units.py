"""A request body whose history begins as that of an earlier request: only what follows is read.

Agents send their whole history again with every call, so nearly all of its units (messages, items, contents) are those
of the request before. Instead of them a mark is read, which stands for all known units; it shows that the history goes
on where they end. Nothing is assumed of the order of the fields, of blanks, or of what comes after the history.
"""

import re
import secrets
from bisect import bisect_left
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import overload

import msgspec

from agent_logger.providers.request_body import Api, RequestBody, read_strictly

_MARK = f'"{secrets.token_hex(16)}"'.encode()  # nobody else can know it
_BETWEEN = re.compile(rb"[ \t\r\n]*,[ \t\r\n]*")
_MOST_TRIES = 4  # places where a history may begin


@dataclass(frozen=True, slots=True)
class UnitPlaces:
    """Where the units of a history stand in the text of their request."""

    api: Api
    starts: list[int]
    ends: list[int]

    def before(self, end: int) -> int:
        """Return how many units end before this byte. With the byte behind it, a unit is certain to be whole."""
        return bisect_left(self.ends, end)


class Units(Sequence[msgspec.Raw]):
    """The units at some places of a text. None is made before it is asked for."""

    def __init__(self, text: bytes, places: UnitPlaces) -> None:
        self._text, self._places = memoryview(text), places

    def __len__(self) -> int:
        return len(self._places.ends)

    @overload
    def __getitem__(self, index: int) -> msgspec.Raw: ...
    @overload
    def __getitem__(self, index: slice) -> list[msgspec.Raw]: ...
    def __getitem__(self, index: int | slice) -> msgspec.Raw | list[msgspec.Raw]:
        if isinstance(index, slice):
            return [self[at] for at in range(*index.indices(len(self)))]
        return msgspec.Raw(self._text[self._places.starts[index] : self._places.ends[index]])

    def __iter__(self) -> Iterator[msgspec.Raw]:
        return map(self.__getitem__, range(len(self)))


def places_of(text: bytes, api: Api, body: RequestBody) -> UnitPlaces | None:
    """Find the units of a body that was read from this text; `None` if it is not certain where they stand."""
    units = body.units(api)
    if not units:
        return None
    first, at = bytes(units[0]), -1
    for _ in range(_MOST_TRIES):
        at = text.find(first, at + 1)
        if at < 0:
            return None
        places = _follow(text, UnitPlaces(api, [at], [at + len(first)]), units[1:])
        if places and read_on(text, places, len(units)):
            return places
    return None


def read_on(text: bytes, places: UnitPlaces, count: int) -> tuple[RequestBody, UnitPlaces] | None:
    """Read a request that is the same as an earlier one up to the end of its unit number `count`, and a byte further.
    `places`: those of the earlier request. `None` if it has to be read as a whole."""
    body = read_strictly(text[: places.starts[0]] + _MARK + text[places.ends[count - 1] :], places.api)
    units = body.units(places.api) if body else ()
    if not body or not units or bytes(units[0]) != _MARK:
        return None
    known_places = UnitPlaces(places.api, places.starts[:count], places.ends[:count])
    whole = _follow(text, known_places, units[1:])
    if whole is None:
        return None
    body.set_units(places.api, Units(text, whole))
    return body, whole


def _follow(text: bytes, places: UnitPlaces, units: Sequence[msgspec.Raw]) -> UnitPlaces | None:
    """Add the places of the units that follow, which are as they were read; `None` if others stand there."""
    end = places.ends[-1]
    for unit in units:
        between = _BETWEEN.match(text, end)
        if between is None or not text.startswith(memoryview(unit), between.end()):
            return None
        end = between.end() + len(unit)
        places.starts.append(between.end())
        places.ends.append(end)
    return places
