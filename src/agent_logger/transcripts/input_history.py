"""What people typed, in all sessions: `history.jsonl`, in the form of Claude Code's own."""

import logging
from pathlib import Path

from agent_logger.clock import Clock
from agent_logger.files.append import append_shared
from agent_logger.logs.transcript.lines import Message
from agent_logger.protocols.json_text import encode
from agent_logger.transcripts.messages import prompt_in

FILE = "history.jsonl"

log = logging.getLogger("agent_logger.transcripts")


def remember(root: Path, line: Message, clock: Clock) -> None:
    """Append the line's prompt to the history, if a person typed it. Raises nothing: the message itself is safe."""
    prompt = prompt_in(line)
    if prompt is None:
        return
    record = {
        "display": prompt,
        "pastedContents": {},
        "timestamp": int(clock.wall() * 1000),
        "project": line["cwd"],
        "sessionId": line["sessionId"],
    }
    try:
        append_shared(root / FILE, encode(record))
    except OSError as error:
        log.warning("%s: %s", root / FILE, error)
