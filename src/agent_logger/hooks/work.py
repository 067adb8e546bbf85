"""The work after a hook, in a detached process: copy the transcript, and for a session that begins, record
the instructions and settings that apply to it."""

from contextlib import suppress
from pathlib import Path
from typing import Any

from agent_logger import platform
from agent_logger.archive.collect import keep_session


def follow_up(home: Path, record: Path, fields: dict[str, Any]) -> None:
    """Do the work after a hook. `fields` come from outside: a path in them is used only if it is below an agent's
    folder."""
    if fields.get("hook_event_name") == "SessionStart" and isinstance(fields.get("cwd"), str):
        with suppress(OSError):
            _add_context(record, fields["cwd"])
    transcript = fields.get("transcript_path")
    if isinstance(transcript, str) and transcript and "\0" not in transcript:
        keep_session(home, Path(transcript).expanduser())


def _add_context(record: Path, cwd: str) -> None:
    """Add the context to the record. The record is replaced as a whole."""
    from agent_logger.recording.context import noted_context  # most events do not need what this imports

    if noted := noted_context(cwd):
        line = record.read_bytes().removesuffix(b"}\n")
        platform.replace_file(record, line + b',"context":' + bytes(noted) + b"}\n")
