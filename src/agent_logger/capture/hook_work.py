"""What is done after a hook, in a process that nobody waits for: the transcript is kept."""

from pathlib import Path
from typing import Any

from agent_logger.store.archiving import keep_session


def follow_up(home: Path, _record: Path, told: dict[str, Any]) -> None:
    """`told` comes from outside: a name in it is taken for what it is only if it leads below an agent's folder."""
    transcript = told.get("transcript_path")
    if isinstance(transcript, str) and transcript and "\0" not in transcript:
        keep_session(home, Path(transcript).expanduser())
