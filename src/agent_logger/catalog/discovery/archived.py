"""Finds the copies that we keep of agents' files."""

from collections.abc import Iterable, Iterator
from pathlib import Path

from agent_logger.files.sources import Source, StampCache


def archived_sources(
    home: Path, present: Iterable[tuple[str | None, str]], cache: StampCache
) -> Iterator[Source]:
    """Find what we have kept of agents and they no longer have, each once. `present`: agents and names of what they
    have."""
    if not (home / "archive").is_dir():
        return
    from agent_logger.archive.layout import folders
    from agent_logger.archive.sessions import archived_in

    present = set(present)
    for folder in folders(home):
        present |= cache.passed_over
        names = {name for agent, name in present if agent == folder.agent}
        for session in archived_in(folder, cache, names):
            if (folder.agent, session.id) not in present:
                present.add((folder.agent, session.id))
                yield session.source
