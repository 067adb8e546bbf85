"""Homes with sessions in them: real, scrubbed files of all agents, the demo as recorded, ten thousand messages."""

import shutil
from pathlib import Path

from _claude_corpus import Corpus
from agent_logger.demo.recorded import record_demo
from agent_logger.home.facts import register_log_folder

DATA = Path(__file__).parents[1] / "data"
SUB_AGENTS = "8dba5ee3-f846-43a2-ba00-364128d3bee5"
FORKED = "01a1df70-a457-7112-afca-47b8aed3a986"
FORK = "01a1df70-b8b7-7090-9c2d-de7e1c164a59"


def real_sessions(home: Path) -> None:
    """Of every agent, as its files lie in a home."""
    for folder in sorted(DATA.glob("*/*/*/home")):
        if folder.parts[-3] in ("2.1.325", "0.166.0", "0.61.0"):
            shutil.copytree(folder, home, dirs_exist_ok=True)


def demo(home: Path, pace: float = 0.05) -> str:
    """Recorded by both witnesses. The beginning of its id."""
    folder = home / "demo"
    log = record_demo(folder, pace=pace)
    for it in (folder, folder / "logs"):
        register_log_folder(home / ".agent-logger", it)
    return log.stem.rpartition("_")[2]


def long_session(home: Path, messages: int) -> str:
    return Corpus().write_long(home / ".claude", messages)
