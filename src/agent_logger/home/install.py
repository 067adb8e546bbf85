"""What recording inside somebody else's process needs of this installation: its key, and that the folder is known.

A home that cannot be used is said once; recording goes on.
"""

import hmac
import logging
import os
from functools import cache
from pathlib import Path

from agent_logger import config
from agent_logger.errors import AgentLoggerError
from agent_logger.home.facts import register_log_folder
from agent_logger.home.layout import KEY_BYTES, install_key
from agent_logger.model.redaction.redactor import Redactor

log = logging.getLogger("agent_logger")


@cache
def key() -> bytes:
    """The install's; if there can be none, one of our own."""
    try:
        return install_key(config.home())
    except AgentLoggerError as error:
        log.warning("%s", error)
        return os.urandom(KEY_BYTES)


@cache
def redactor() -> Redactor:
    return Redactor(key())


def hmac_of(text: bytes) -> str:
    return "v1:" + hmac.digest(key(), text, "sha256").hex()


@cache
def know(folder: Path) -> None:
    """So that other commands find the logs in it."""
    try:
        register_log_folder(config.home(), folder)
    except AgentLoggerError as error:
        log.warning("%s", error)
