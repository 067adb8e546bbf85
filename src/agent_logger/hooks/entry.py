"""What an agent's hooks call: store their input, then the transcript, and let the agent continue.

The agent waits for this process, so it does one thing, redact and write, and imports next to nothing for it: much of
what the rest of the program is built on takes longer to import than this takes to run. What can be done later is done
in a child that nobody waits for. Nothing is ever printed: what a `SessionStart` hook prints goes into the prompt.
"""

import json
import os
import select
import time
from typing import TYPE_CHECKING, Any

from agent_logger import config, platform
from agent_logger.logs.hook_files import file_of, hooks_path, session_named
from agent_logger.model.redaction.environment import environment_credentials
from agent_logger.model.redaction.redactor import Redactor

if TYPE_CHECKING:
    from pathlib import Path

    from agent_logger.model.redaction.redactor import Redacted

MOST_BYTES = 16 << 20  # of input that are stored
BEGIN_SECONDS = 10.0  # to wait for the first byte of input
SILENCE_SECONDS = 2.0  # of silence that end the input, even if stdin stays open
ANY_KEY = bytes(32)


def keep_input() -> None:
    """Do everything a hook does. The caller then ends the process; what goes wrong here must not reach the agent."""
    data, length = _read_input()
    home = config.home()
    record, fields = record_of(data, length, home)
    path = _write(home, record, session_named(fields.get("session_id"), fields.get("transcript_path")))
    if fields and os.fork() == 0:
        _detach()
        from agent_logger.hooks.work import follow_up

        follow_up(home, path, fields)


def _read_input() -> tuple[bytes, int]:
    """The part of stdin that is stored, and how many bytes came."""
    pieces: list[bytes] = []
    length = 0
    patience = BEGIN_SECONDS
    while select.select([0], [], [], patience)[0] and (piece := os.read(0, 1 << 20)):
        patience = SILENCE_SECONDS
        if length < MOST_BYTES:
            pieces.append(piece)
        length += len(piece)
    return b"".join(pieces)[:MOST_BYTES], length


def record_of(data: bytes, length: int, home: "Path") -> tuple[bytes, dict[str, Any]]:
    """The line of a `records.Hook`, made by hand, and the agent's input if it can be read."""
    redacted = _redacted(data, home)
    values = _object(redacted.data)
    fields: dict[str, Any] = {"type": "hook", "v": 1, "ts": _timestamp(time.time())}
    if length > len(data):
        fields["bytes"] = length
    if redacted.redactions:
        import msgspec

        fields["redactions"] = msgspec.to_builtins(redacted.redactions)
    if values is None:
        fields |= _raw(redacted.data)
        return _json(fields), {}
    # As received: between JSON values, a newline is white space.
    return _json(fields)[:-1] + b',"input":' + redacted.data.strip().replace(b"\n", b" ") + b"}", values


def _redacted(data: bytes, home: "Path") -> "Redacted[bytes]":
    """The data without secrets. Nearly always there is nothing to redact, and the key is not needed. We have the
    agent's environment."""
    credentials = environment_credentials(config.child_environment())
    redacted = Redactor(ANY_KEY, credentials).redact(data, "input")
    if not redacted.redactions:
        return redacted
    from agent_logger.home.layout import install_key

    return Redactor(install_key(home), credentials).redact(data, "input")


def _object(data: bytes) -> dict[str, Any] | None:
    try:
        value = json.loads(data.decode("utf-8"), parse_constant=_refuse)
    except (ValueError, RecursionError):
        return None
    return value if isinstance(value, dict) else None


def _refuse(constant: str) -> None:
    raise ValueError(constant)  # NaN is no JSON


def _raw(data: bytes) -> dict[str, str]:
    from agent_logger.model.records import as_text

    text, encoding = as_text(data)
    return {"raw": text, "raw_encoding": encoding} if encoding else {"raw": text}


def _json(fields: dict[str, Any]) -> bytes:
    return json.dumps(fields, ensure_ascii=False, separators=(",", ":")).encode()


def _timestamp(seconds: float) -> str:
    """The time as `agent_logger.clock` writes it, without importing `datetime`."""
    return time.strftime("%Y-%m-%dT%H:%M:%S", time.gmtime(seconds)) + f".{int(seconds * 1000) % 1000:03}Z"


def _write(home: "Path", record: bytes, session: str | None) -> "Path":
    """Write the record whole or not at all: the file gets its name after it is written."""
    path = file_of(hooks_path(home), time.time(), session)
    platform.make_folder(path.parent)
    platform.replace_file(path, record + b"\n")
    return path


def _detach() -> None:
    """Detach this process from its input and outputs, and lower its priority."""
    os.setsid()
    nothing = os.open(os.devnull, os.O_RDWR)
    for descriptor in (0, 1, 2):
        os.dup2(nothing, descriptor)
    os.nice(10)
