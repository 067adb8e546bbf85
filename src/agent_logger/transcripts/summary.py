"""A summary by the user's command: the conversation is its standard input, the summary its output."""

import logging
import os
import shlex
import signal
import subprocess

from agent_logger.model.redaction.redactor import Redactor

SECONDS = 60
MOST_CHARACTERS = 2_000

log = logging.getLogger("agent_logger.store")


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
        start_new_session=True,  # so that its children end with it
    ) as process:
        try:
            printed, _ = process.communicate(text.encode("utf-8", "replace"), timeout=SECONDS)
        except BaseException:
            os.killpg(process.pid, signal.SIGKILL)
            raise
    if process.returncode:
        raise ValueError(f"it ended with {process.returncode}")
    return printed.decode("utf-8", "replace")
