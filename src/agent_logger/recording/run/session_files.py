"""The session files that an agent writes while it runs, for an agent whose output does not name its session."""

from pathlib import Path

from agent_logger import platform
from agent_logger.agents.base import Agent, module
from agent_logger.agents.claude_code.naming import is_id
from agent_logger.agents.folders import agent_files
from agent_logger.clock import CLOCK
from agent_logger.protocols.json_text import encode
from agent_logger.recording.run.recording import RunRecording


class SessionFiles:
    """The files of an agent that change while it runs in a folder."""

    def __init__(self, agent: Agent, cwd: Path) -> None:
        self._agent = agent
        # None: the agent does not name folders by project.
        self._folders: tuple[str, ...] | None = (
            module(agent.naming).project_folders(cwd) if agent.naming else None
        )
        self._since = CLOCK.wall() - 1  # file systems round

    def note(self, recording: RunRecording) -> None:
        """Record the paths of the changed files. If only one file changed and its name is an id, record that id as the
        session's."""
        paths = self.changed()
        for path in paths:
            fact = {"type": "system", "subtype": "session_file", "path": str(path)}
            if self._folders and len(paths) == 1 and is_id(path.stem):
                fact["session_id"] = path.stem
            recording.note(encode(fact))

    def changed(self) -> list[Path]:
        paths = [path for path in agent_files(self._agent) if self._is_of_this_folder(path)]
        changed = [path for path in paths if platform.modified_at(path) >= self._since]
        return sorted(changed, key=platform.modified_at)

    def _is_of_this_folder(self, path: Path) -> bool:
        return self._folders is None or path.parent.name in self._folders
