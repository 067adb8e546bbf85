"""Which installation began a part of a log: `machine` and `mac` in the part's first record.

A mac shows that a program with this installation's key began the part. It says nothing about the other records, and
whoever can read a log can copy its first record.
"""

from functools import cache

from agent_logger import config, platform
from agent_logger.errors import AgentLoggerError
from agent_logger.home.layout import existing_key
from agent_logger.model.records import Record

MACHINE_DIGITS = 32


def origin_of_new_part(log: str, part: str) -> tuple[str | None, str | None]:
    """Return `machine` and `mac` for a part that this process begins. Both are `None` if there is no key that can be
    used: a part that cannot prove its origin is better than none."""
    try:
        key = existing_key(config.home())
    except AgentLoggerError:
        key = None
    if key is None:
        return None, None
    machine = machine_of(key)
    return machine, mac_of(key, log, part, machine)


def is_own(first: Record, key: bytes) -> bool:
    """Whether the installation with this key began the part with this first record."""
    return bool(first.mac) and first.mac == mac_of(key, first.log or "", first.part or "", first.machine or "")


@cache
def machine_of(key: bytes) -> str:
    """Return the id of this machine in the logs of one installation. It cannot be computed without the key, so it
    reveals neither the machine's name nor which logs of two installations are from one machine."""
    return _hmac(key, "machine", platform.machine_id())[:MACHINE_DIGITS]


def mac_of(key: bytes, log: str, part: str, machine: str) -> str:
    return "v1:" + _hmac(key, "part", log, part, machine)


def _hmac(key: bytes, *lines: str) -> str:
    """Return 256 bits in hex.

    They are of SHA-512, because logs are full of HMACs with SHA-256 under the same key, of texts that others chose:
    none of those can pass for one of these. `hmac.digest` would let other threads run meanwhile: if one of them forks,
    a lock of OpenSSL may never be released in the child.
    """
    import hmac  # takes longer to import than most modules of ours

    return hmac.new(key, "\n".join(lines).encode("utf-8", "surrogatepass"), "sha512").hexdigest()[:64]
