"""The summary of a session: the client's own, one by the user's command, or one made here.

The conversation is the standard input of the command, the summary its output.
"""

import logging
import os
import shlex
import signal
import subprocess
from collections.abc import Sequence

from agent_logger.logs.transcript.lines import Message
from agent_logger.model.redaction.redactor import Redactor
from agent_logger.model.session import Session
from agent_logger.transcripts import messages as transcript

SECONDS = 60
MOST_CHARACTERS = 2_000

log = logging.getLogger("agent_logger.transcripts")


def summary_of(messages: Sequence[Message], session: Session, command: str) -> tuple[str | None, str]:
    """The client's own title, the output of the user's command, or a summary made here; and which of the three it is.
    `session` is what the messages make."""
    if title := transcript.title_of(messages):
        return title, "client"
    if command and (text := by_command(command, transcript.text_of(session))):
        return text, "command"
    return transcript.default_summary(session), "agent-logger"


def by_command(command: str, text: str) -> str | None:
    """The summary that the command prints; `None` if it fails, takes too long, or prints nothing. Its input is
    redacted, for it may send it anywhere."""
    redacted = Redactor(os.urandom(32)).redact_text(text, "summary").data
    try:
        printed = _run(shlex.split(command), redacted)
    except (OSError, ValueError, subprocess.SubprocessError) as error:
        log.warning("summary_command: %s", error)
        return None
    return " ".join(printed.split())[:MOST_CHARACTERS] or None


def _run(command: list[str], text: str) -> str:
    with subprocess.Popen(
        command,
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        stderr=subprocess.DEVNULL,
        start_new_session=True,  # so that its children are stopped with it
    ) as process:
        try:
            printed, _ = process.communicate(text.encode("utf-8", "replace"), timeout=SECONDS)
        except BaseException:
            os.killpg(process.pid, signal.SIGKILL)
            raise
    if process.returncode:
        raise ValueError(f"it exited with {process.returncode}")
    return printed.decode("utf-8", "replace")
