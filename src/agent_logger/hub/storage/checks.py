"""Reads all of a store."""

from collections.abc import Iterator

import msgspec

from agent_logger.hub.storage.intake import unpacked_range
from agent_logger.hub.storage.store import ObjectStore


def damaged_objects(store: ObjectStore) -> Iterator[str]:
    """Yield the names of what cannot be read, or is not what its hash says."""
    for name in sorted(store.names("")):
        try:
            if name.endswith(".json"):
                msgspec.json.decode(store.read(name))
            else:
                unpacked_range(store.read(name))
        except (OSError, ValueError):
            yield name
