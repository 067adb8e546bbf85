"""The context of a session: read for a program that asks for it, and reduced to what a log may hold."""

import logging
import os
from pathlib import Path

import msgspec
from msgspec import UNSET

from agent_logger.agents.claude_code.context import Context, InstructionFile, read_context
from agent_logger.home.install import hmac_of, redactor
from agent_logger.model.records import Json

log = logging.getLogger("agent_logger")


class NotedFile(msgspec.Struct, frozen=True):
    path: str
    hmac: str | None


class Noted(msgspec.Struct, frozen=True, kw_only=True):
    """What a log says about a session's context: paths and HMACs, no text."""

    cwd: str
    git_root: str | None
    instructions: list[InstructionFile]
    settings: list[NotedFile]
    variables: dict[str, str]


def context(cwd: str | os.PathLike[str] = ".") -> Context:
    """Return the instructions, settings and variables that apply to a session of Claude Code in this folder."""
    return read_context(Path(cwd), hmac_of)


def noted_context(cwd: str | os.PathLike[str] | None) -> Json:
    """The context to put into a record; unset if the folder is unknown, is not on this machine, or its context cannot
    be read. A failure is logged as a warning and does not stop the recording."""
    if not cwd or not Path(cwd).is_dir():
        return UNSET
    try:
        return msgspec.Raw(redactor().redact(msgspec.json.encode(_noted(context(cwd))), "context").data)
    except Exception as error:  # it is read inside somebody else's program
        log.warning("cannot record the context of %s: %r", cwd, error)
        return UNSET


def _noted(context: Context) -> Noted:
    return Noted(
        cwd=context.cwd,
        git_root=context.git_root,
        instructions=context.instructions,
        settings=[NotedFile(file.path, file.hmac) for file in context.settings_files if file.is_there and file.applies],
        variables=context.variables,
    )
