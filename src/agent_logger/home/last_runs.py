"""How the last run of each agent was recorded: `<home>/last-runs.json`. Doctor and the page show it.

Only the run itself knows which connections its agent broke off, and what its session file had then; no log says so.
"""

from contextlib import suppress
from pathlib import Path

import msgspec

from agent_logger import platform
from agent_logger.model.last_run import LastRun

FILE_NAME = "last-runs.json"
MOST_AGENTS = 100


def note_last_run(home: Path, run: LastRun) -> None:
    """Replace what is known of the agent's last run. If that cannot be written, nothing happens."""
    if run.agent is None:
        return
    with suppress(OSError), platform.exclusive_in(home):
        others = [other for other in last_runs(home) if other.agent != run.agent]
        runs = [*others, run][-MOST_AGENTS:]
        platform.replace_file(home / FILE_NAME, msgspec.json.encode(runs), top=home)


def last_runs(home: Path) -> list[LastRun]:
    """Return the last run of each agent, the newest last."""
    try:
        return msgspec.json.decode((home / FILE_NAME).read_bytes(), type=list[LastRun])
    except (OSError, ValueError):
        return []
