"""Homes with the databases of recorded sessions."""

import shutil
import sqlite3
from contextlib import closing
from pathlib import Path

from tests.agents.foreign import DATA

DATABASES = {
    "opencode": ".local/share/opencode/opencode.db",
    "kilo": ".local/share/kilo/kilo.db",
    "goose": ".local/share/goose/sessions/sessions.db",
    "hermes": ".hermes/state.db",
    "openclaw": ".openclaw/agents/main/agent/openclaw-agent.sqlite",
}


def recorded_database(agent: str, scenario: str, home: Path) -> Path:
    """Put the database of a recording into a home: as the agent left it, else from its dump."""
    folder, path = DATA / agent / scenario, home / DATABASES[agent]
    if (folder / "home").is_dir():
        shutil.copytree(folder / "home", home, dirs_exist_ok=True)
        return path
    path.parent.mkdir(parents=True, exist_ok=True)
    with closing(sqlite3.connect(path)) as database, database:
        database.executescript((folder / f"{agent}.sql").read_text())
    return path
