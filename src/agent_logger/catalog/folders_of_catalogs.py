"""Where a catalog lies: that of the own home in the home, that of several homes below it, one for each set of homes.

Other homes are never written to. A catalog of several homes that was not used for a month is deleted. Homes that come
and go have one catalog, in the own home.
"""

import hashlib
import os
import shutil
import time
from contextlib import suppress
from pathlib import Path

from agent_logger.home.homes import Homes

UNUSED_SECONDS = 30 * 86_400.0
NAME_DIGITS = 16
NAME = "catalogs"


def catalog_folder(homes: Homes) -> Path:
    if homes.are_own_alone or homes.below:
        return homes.own
    paths = b"\0".join(os.fsencode(key) for key in homes.folders)
    return _catalogs(homes.own) / hashlib.sha256(paths).hexdigest()[:NAME_DIGITS]


def mark_used(folder: Path) -> None:
    """Note that a catalog of several homes is used now, and delete those that were not used for a month."""
    now = time.time()
    if folder.parent.name != NAME:
        return
    with suppress(OSError):
        os.utime(folder)
        for other in folder.parent.iterdir():
            if now - other.stat().st_mtime > UNUSED_SECONDS:
                shutil.rmtree(other, ignore_errors=True)


def delete_catalogs_of_several_homes(own: Path) -> None:
    """Delete them all: they have texts of a session that was just removed."""
    shutil.rmtree(_catalogs(own), ignore_errors=True)


def _catalogs(own: Path) -> Path:
    return own / NAME
