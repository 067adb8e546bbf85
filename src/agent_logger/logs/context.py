"""What a log or a hook notes of the instructions and settings that applied when its session began."""

import msgspec
from msgspec import Raw, UnsetType
from msgspec.structs import asdict

from agent_logger.model.session import ContextFile


class _File(msgspec.Struct, frozen=True):
    path: str
    bytes: int | None = None
    hmac: str | None = None


class _Noted(msgspec.Struct, frozen=True):
    instructions: list[_File] = []
    settings: list[_File] = []


_decode = msgspec.json.Decoder(_Noted).decode


def context_files(noted: Raw | UnsetType) -> list[ContextFile]:
    """Return the files in the order noted. Empty where nothing was noted, or in an unknown form."""
    try:
        noted_files = _decode(noted) if isinstance(noted, Raw) else _Noted()
    except (ValueError, RecursionError):
        return []
    return [ContextFile(kind="instructions", **asdict(file)) for file in noted_files.instructions] + [
        ContextFile(kind="settings", **asdict(file)) for file in noted_files.settings
    ]
