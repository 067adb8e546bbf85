"""Bundles that a test makes by hand, as anybody could."""

import io
import json
import tarfile
from collections.abc import Callable, Iterable
from pathlib import Path
from typing import Any

from agent_logger.files.sealed import zstd

ID = "0e000000-1111-4111-8111-111111111111"
TRANSCRIPT = f"{ID}/agents/claude-code/claude-00000000/projects/-p/{ID}.jsonl"
HEAD = f"{ID}/session.json"


def head(session: str = ID, **more: Any) -> bytes:
    told = {"form": "agent-logger bundle", "v": 1, "session": session, "agent_logger": "0.1.0", **more}
    return json.dumps(told).encode()


def line(number: int, session: str = ID, **more: Any) -> bytes:
    """A response of a transcript."""
    message = {
        "id": f"msg_{number:020}",
        "role": "assistant",
        "model": "claude-opus-4-5",
        "content": [{"type": "text", "text": f"answer {number}"}],
        "usage": {"input_tokens": 1000, "output_tokens": 1000},
        **more,
    }
    told = {
        "type": "assistant",
        "uuid": f"{number:08x}-2222-4222-8222-222222222222",
        "parentUuid": None,
        "sessionId": session,
        "cwd": "/p",
        "timestamp": f"2026-11-15T12:00:{number:02}.000Z",
        "requestId": f"req_{number:020}",
        "message": message,
    }
    return json.dumps(told).encode() + b"\n"


def entry(name: str, data: bytes = b"", **fields: Any) -> tuple[tarfile.TarInfo, bytes]:
    info = tarfile.TarInfo(name)
    info.size = len(data)
    for field, value in fields.items():
        setattr(info, field, value)
    return info, data


def tar(entries: Iterable[tuple[tarfile.TarInfo, bytes]]) -> bytes:
    return b"".join(
        info.tobuf(tarfile.USTAR_FORMAT, "utf-8", "surrogateescape") + data + bytes(-len(data) % 512)
        for info, data in entries
    )


def pack(data: bytes) -> bytes:
    return zstd.compress(data)


def whole(*more: tuple[tarfile.TarInfo, bytes]) -> list[tuple[tarfile.TarInfo, bytes]]:
    """The entries of a small bundle, and further ones."""
    return [entry(HEAD, head()), entry(TRANSCRIPT, line(1)), *more]


def write(path: Path, data: bytes) -> Path:
    path.write_bytes(data)
    return path


Make = Callable[[], bytes]


def with_checksum(block: bytearray) -> bytes:
    block[148:156] = b" " * 8
    block[148:156] = b"%06o\0 " % sum(block)
    return bytes(block)


def zeros(size: int) -> bytes:
    """A frame with so many zeros, made in little memory."""
    compressor, packed = zstd.ZstdCompressor(), io.BytesIO()
    for _ in range(size >> 20):
        packed.write(compressor.compress(bytes(1 << 20)))
    packed.write(compressor.flush())
    return packed.getvalue()
