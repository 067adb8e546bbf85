"""What recording inside somebody else's process needs of this installation: its key, and a note of the log folder.

A home that cannot be used is logged once; recording continues.
"""

import logging
import os
from functools import cache
from pathlib import Path

from agent_logger import config
from agent_logger.errors import AgentLoggerError
from agent_logger.home.facts import register_log_folder
from agent_logger.home.layout import KEY_BYTES, install_key
from agent_logger.home.machine import note_machine
from agent_logger.model.redaction.redactor import Redactor

log = logging.getLogger("agent_logger")


@cache
def key() -> bytes:
    """The key of this installation; if it cannot be read or made, a random one for this process."""
    try:
        return install_key(config.home())
    except AgentLoggerError as error:
        log.warning("%s", error)
        return os.urandom(KEY_BYTES)


@cache
def redactor() -> Redactor:
    return Redactor(key())


def hmac_of(text: bytes) -> str:
    import hmac  # takes longer to import than most modules of ours, and few programs need it

    return "v1:" + hmac.digest(key(), text, "sha256").hex()


@cache
def know(folder: Path) -> None:
    """Write down that a folder holds logs, so that other commands find them. Logs a warning if that fails."""
    try:
        home = config.home()
        note_machine(home)
        register_log_folder(home, folder)
    except AgentLoggerError as error:
        log.warning("%s", error)
