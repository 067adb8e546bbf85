"""Compares a store with the index, and with the hashes of its objects."""

from collections.abc import Iterator

import msgspec

from agent_logger.hub.storage.index import HubIndex
from agent_logger.hub.storage.intake import generation_name, range_name, unpacked_range
from agent_logger.hub.storage.store import ObjectStore


def damaged_objects(store: ObjectStore) -> Iterator[str]:
    """Yield the names of what cannot be read, or is not what its hash says."""
    for name in sorted(store.names("")):
        try:
            if name.endswith(".json"):
                msgspec.json.decode(store.read(name))
            else:
                unpacked_range(store.read(name))
        except FileNotFoundError:  # deleted since then
            continue
        except (OSError, ValueError):
            yield name


def missing_objects(index: HubIndex, store: ObjectStore) -> list[str]:
    """Return the names of what the index lists and the store does not have. A hub that runs changes both."""
    before = _listed(index)
    present = set(store.names(""))
    return sorted((before & _listed(index)) - present)


def contested_sessions(index: HubIndex) -> Iterator[tuple[str, list[str]]]:
    """Yield the sessions of which the hub has objects of several people, with the people, the first one first."""
    claims: dict[str, list[tuple[int, str]]] = {}
    for person in {sender.person for sender in index.senders()}:
        for session, number in index.claims(person).items():
            claims.setdefault(session, []).append((number, person))
    for session, numbered in sorted(claims.items()):
        people = [person for _, person in sorted(numbered) if len(numbered) > 1 and _has(index, person, session)]
        if len(people) > 1:
            yield session, people


def _has(index: HubIndex, person: str, session: str) -> bool:
    devices = (sender.device for sender in index.senders() if sender.person == person)
    return any(index.objects_of(device, session) for device in devices)


def _listed(index: HubIndex) -> set[str]:
    names = set()
    for sender in index.senders():
        for each in index.objects(sender.device):
            names.add(f"{generation_name(sender.device, each.object, each.generation)}/head.json")
            for stored in index.ranges(sender.device, each.object, each.generation):
                names.add(range_name(sender.device, each.object, each.generation, stored.offset))
    return names
