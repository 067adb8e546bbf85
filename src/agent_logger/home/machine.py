"""The machine that records into a home: `<home>/machine.json`, written when something is first recorded.

A person may change the name in it. The file leaves the machine only with the home itself: exports leave it out.
"""

import os
from contextlib import suppress
from pathlib import Path

import msgspec

from agent_logger import platform
from agent_logger.home.small_files import read_small_file

FORM = 1
LONGEST_NAME = 64  # characters
MOST_BYTES = 64 << 10


class HomeOrigin(msgspec.Struct, frozen=True):
    """Where a home was written."""

    machine: str | None = None  # the machine's name
    home: str | None = None  # the path that the home had there
    person: str | None = None  # whose machine it is, on a hub
    v: int = FORM

    @property
    def is_newer(self) -> bool:
        """Whether a newer version of agent-logger wrote it."""
        return self.v > FORM


class _Form(msgspec.Struct, frozen=True):
    v: int = FORM


_decode = msgspec.json.Decoder(HomeOrigin).decode
_form = msgspec.json.Decoder(_Form).decode


def note_machine(home: Path) -> None:
    """Write down the name of this machine, unless the home has one. A home that cannot be written to gets none."""
    path = _path(home)
    if os.path.lexists(path):
        return
    with suppress(OSError):
        platform.make_folder(home)
        place = os.fsencode(home.resolve()).decode("utf-8", "replace")
        origin = {"machine": host_name(), "home": place, "v": FORM}  # the person is known on a hub only
        platform.replace_file(path, msgspec.json.encode(origin) + b"\n")


def origin_of(home: Path) -> HomeOrigin:
    """Return what the file says; nothing but the version if a newer one wrote it, and nothing if it cannot be read."""
    try:
        text = read_small_file(_path(home), MOST_BYTES)
        version = _form(text).v
        origin = HomeOrigin(v=version) if version > FORM else _decode(text)
    except (ValueError, RecursionError):
        return HomeOrigin()
    return HomeOrigin(usable_name(origin.machine or ""), origin.home, usable_name(origin.person or ""), origin.v)


def host_name() -> str:
    """Return the name of this host, without its domain."""
    return usable_name(os.uname().nodename.partition(".")[0]) or "this machine"


def usable_name(text: str) -> str | None:
    """Return the text as the name of a machine: one short line of characters that can be printed."""
    name = " ".join(text.split())[:LONGEST_NAME].strip()
    return name if name and name.isprintable() else None


def _path(home: Path) -> Path:
    return home / "machine.json"
