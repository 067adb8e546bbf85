"""Sessions whose file is gone, as far as the agent's own history of prompts shows them."""

import os
from functools import lru_cache, partial
from pathlib import Path
from typing import cast

from agent_logger.agents import prompt_history
from agent_logger.agents.base import Agent, module
from agent_logger.agents.claude_code.naming import is_id
from agent_logger.agents.contracts import PromptReader
from agent_logger.agents.prompt_history import Prompt
from agent_logger.agents.source_files import File
from agent_logger.errors import SourceError
from agent_logger.files import foreign
from agent_logger.model.session import Session


def prompts_in(agent: Agent, path: Path) -> dict[str, list[Prompt]]:
    """Return the prompts by session. Empty if the file does not exist."""
    try:
        status = os.lstat(path)
    except OSError:
        return {}
    return _prompts_in(agent, path, status.st_ino, status.st_size, status.st_mtime_ns)


@lru_cache(maxsize=4)  # each session of a history asks for it
def _prompts_in(agent: Agent, path: Path, *_stamp: int) -> dict[str, list[Prompt]]:
    reader = cast("PromptReader", module(agent.prompt_reader or ""))
    by_session = prompt_history.prompts_of(reader, File(path.name, (), chunks=partial(foreign.chunks, path)))
    return {name: prompts for name, prompts in by_session.items() if is_id(name)}


def session_in(agent: Agent, path: Path, name: str) -> Session:
    """Return the session. Raises `SourceError` if the history does not have it any more."""
    prompts = prompts_in(agent, path).get(name)
    if prompts is None:
        raise SourceError(f"{path}: no files of session {name} are left")
    return prompt_history.session_of(agent.name, name, prompts)
