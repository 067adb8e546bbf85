"""Names of Claude Code: the ids of sessions, and the folders of projects. Folder names are lossy: only `cwd` in a
session's records says which project it belongs to."""

import base64
import os
import re
import unicodedata
from collections.abc import Iterable
from pathlib import Path

LONGEST_FOLDER = 200  # longer names are cut by the client, with a hash appended
_ID = re.compile(r"[A-Za-z0-9][A-Za-z0-9_-]{0,127}")
_DIGITS = "0123456789abcdefghijklmnopqrstuvwxyz"


def is_id(text: str) -> bool:
    """Whether the text can name a session: never a path, never a sub-agent."""
    return _ID.fullmatch(text) is not None and not text.startswith("agent-")


def project_folders(cwd: Path) -> tuple[str, ...]:
    """Return the names that a project's folder may have: by the client's rule, and by older rules."""
    real = unicodedata.normalize("NFC", os.path.realpath(cwd))
    dashed = re.sub(r"[/.]", "-", real)
    encoded = base64.urlsafe_b64encode(real.encode("utf-8", "surrogateescape")).decode().rstrip("=")
    return tuple(dict.fromkeys((folder_name(real), dashed, dashed.removeprefix("-"), encoded)))


def folder_name(path: str) -> str:
    """Return the folder name by the client's own rule; `path` is real and normalised."""
    units = path.encode("utf-16-le", "surrogatepass")
    codes = [int.from_bytes(units[at : at + 2], "little") for at in range(0, len(units), 2)]
    name = "".join(chr(code) if code < 128 and chr(code).isalnum() else "-" for code in codes)
    if len(name) <= LONGEST_FOLDER:
        return name
    return f"{name[:LONGEST_FOLDER]}-{_base36(_hash(codes))}"


def _hash(codes: Iterable[int]) -> int:
    """Hash as Java hashes a string, without the sign."""
    value = 0
    for code in codes:
        value = (31 * value + code) & 0xFFFFFFFF
    return (1 << 32) - value if value >> 31 else value


def _base36(number: int) -> str:
    digits = ""
    while number:
        number, digit = divmod(number, 36)
        digits = _DIGITS[digit] + digits
    return digits or "0"
