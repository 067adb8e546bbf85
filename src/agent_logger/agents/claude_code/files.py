"""The files of Claude Code's sessions, in all layouts that it ever had or was said to have.

`projects/<folder of the project>/<id>.jsonl`, and `projects/<id>.jsonl` and `sessions/<id>.jsonl` of old descriptions.
Sub-agents have files in `<session>/subagents/`, and in older layouts in `subagents/` of the project or beside the
session: these name their session in the first line. Nothing here follows a link, or opens what is not a plain file.
"""

import os
import re
from collections.abc import Container, Iterable, Iterator, Mapping, Sequence
from functools import partial
from pathlib import Path

import msgspec

from agent_logger.agents.base import Agent
from agent_logger.agents.claude_code import AGENT
from agent_logger.agents.claude_code.naming import is_id, project_folders
from agent_logger.agents.qwen_code.files import begins_session as is_qwen_code
from agent_logger.agents.source_files import SourceFiles
from agent_logger.files import foreign
from agent_logger.files.foreign import SEALED
from agent_logger.files.sources import (
    FIRST_BYTES,
    NO_MAIN_FILE,
    FileStamps,
    Source,
    StampCache,
    entries_in,
    first_line_stamp,
    stamped,
    stat_of,
)

Entry = os.DirEntry[str]
_AGENT_FILE = re.compile(rf"agent-[^/]+\.jsonl(?:{re.escape(SEALED)})?")


def discover(
    agent: Agent, folders: Sequence[Path], cache: StampCache, skip: Container[str] = ()
) -> Iterator[Source]:
    for root in folders:
        for folder, entries in _session_folders(str(root)):
            yield from _sessions_in(folder, entries, cache, skip)


def open_session(source: Source) -> SourceFiles:
    from agent_logger.agents.claude_code.opener import claude_source

    path = Path(source.path)
    others = source.others
    return claude_source(path, others and [os.path.relpath(other, path.parent) for other in others])


def find(roots: Sequence[Path], session: str, repo_root: Path | None = None) -> list[Source]:
    """Every file of that session, those of the repository first, then the newest. `ValueError`: not an id."""
    if not is_id(session):
        raise ValueError(f"{session!r} is not a session id")
    sources = discover(AGENT, roots, StampCache())
    hits = {source.path: source for source in sources if source.name == session and not source.main_missing}
    own = project_folders(repo_root) if repo_root else ()
    return sorted(
        hits.values(),
        key=lambda source: (Path(source.path).parent.name not in own, -source.modified, source.path),
    )


# ---------------------------------------------------------------- how a file begins


class _Line(msgspec.Struct, gc=False):
    type: str


_line = msgspec.json.Decoder(_Line).decode


def begins_session(first: bytes) -> bool:
    """An empty file is one too: some versions leave one per resume."""
    lines = first.split(b"\n")
    return not is_qwen_code(first) and (first == b"" or any(map(_has_type, lines)) or len(lines) == 1)


def _has_type(line: bytes) -> bool:
    try:
        return bool(_line(line).type)
    except (ValueError, RecursionError):
        return False


# ---------------------------------------------------------------- looking around


def _session_folders(root: str) -> Iterator[tuple[str, list[Entry]]]:
    yield f"{root}/sessions", entries_in(f"{root}/sessions")
    projects = entries_in(f"{root}/projects")
    yield f"{root}/projects", projects
    for project in projects:
        if project.is_dir(follow_symlinks=False):
            yield project.path, entries_in(project.path)


def _sessions_in(
    folder: str, entries: list[Entry], cache: StampCache, skip: Container[str]
) -> Iterator[Source]:
    mains: dict[str, Entry] = {}
    folders: dict[str, str] = {}
    loose: list[Entry] = []
    for entry in entries:
        name = entry.name
        if name.endswith((".jsonl", f".jsonl{SEALED}")):
            stem = name.removesuffix(SEALED)[:-6]
            if _AGENT_FILE.fullmatch(name):
                loose.append(entry)
            elif is_id(stem) and stem not in skip and (stem not in mains or name[-6:] == ".jsonl"):
                mains[stem] = entry
        elif name in mains or entry.is_dir(follow_symlinks=False):
            folders[name] = entry.path
    if "subagents" in folders:
        loose += [item for item in entries_in(folders["subagents"]) if _AGENT_FILE.fullmatch(item.name)]
    owned = _owned(loose, cache) if loose else {}
    with_agents: dict[str, Source] = {}
    alone: dict[str, tuple[str, os.stat_result]] = {}
    for name, entry in mains.items():
        if name in folders or name in owned:
            if source := _with_agents(folder, name, entry, folders.get(name), owned.get(name, ())):
                with_agents[name] = source
        elif stamp_and_stat := stamped(entry):
            alone[name] = stamp_and_stat
    missing = (name for name in (*folders, *filter(None, owned)) if name not in mains and name not in skip)
    left = list(_without_main(folder, missing, folders, owned))
    stamps = [
        *(with_agent.stamp for with_agent in with_agents.values()),
        *(stamp for stamp, _ in alone.values()),
    ]
    stamps += [f"{source.name}/{source.stamp}" for source in left]
    if cache.is_as_it_was(folder, stamps, AGENT.name, [*with_agents, *alone]):
        return
    yield from with_agents.values()
    yield from left
    for name, (stamp, stat) in alone.items():
        path = f"{folder}/{name}.jsonl"
        yield Source(path, AGENT.name, path, name, stat.st_mtime, stat.st_size, stamp, ())


def _without_main(
    folder: str,
    names: Iterable[str],
    folders: Mapping[str, str],
    owned: Mapping[str | None, list[Entry]],
) -> Iterator[Source]:
    """Sessions whose main file was deleted, and the files of their sub-agents were not."""
    for name in filter(is_id, dict.fromkeys(names)):
        files = FileStamps()
        below = _agents_below(folders[name]) if name in folders else []
        others = [_plain(entry) for entry in (*below, *owned.get(name, ())) if files.add(entry, entry.name)]
        if others:
            path, stamp = f"{folder}/{name}.jsonl", NO_MAIN_FILE + files.stamp
            yield Source(path, AGENT.name, path, name, files.modified, files.size, stamp, tuple(others))


def _with_agents(
    folder: str, name: str, entry: Entry, own_folder: str | None, owned: Iterable[Entry]
) -> Source | None:
    files = FileStamps()
    if not files.add(entry):
        return None
    agents = (*(_agents_below(own_folder) if own_folder else ()), *owned)
    others = [_plain(agent) for agent in agents if files.add(agent, agent.name)]
    path, others = f"{folder}/{name}.jsonl", list(dict.fromkeys(others))
    return Source(path, AGENT.name, path, name, files.modified, files.size, files.stamp, tuple(others))


def _agents_below(folder: str) -> list[Entry]:
    agents = f"{folder}/subagents"
    entries = [entry for entry in entries_in(agents) if _AGENT_FILE.fullmatch(entry.name)]
    return [] if entries and os.path.islink(agents) else sorted(entries, key=lambda entry: entry.name)


def _plain(entry: Entry) -> str:
    return entry.path.removesuffix(SEALED)


def _owned(loose: list[Entry], cache: StampCache) -> dict[str | None, list[Entry]]:
    """Agents that lie with those of other sessions, by the session that their first line names."""
    owned: dict[str | None, list[Entry]] = {}
    for entry in sorted(loose, key=lambda loose_entry: loose_entry.path):
        if entry.is_file(follow_symlinks=False) and (stat := stat_of(entry.path)):
            owner = cache.cached(entry.path, first_line_stamp(stat), partial(_owner, _plain(entry)))
            owned.setdefault(owner, []).append(entry)
    return owned


def _owner(path: str) -> str | None:
    from agent_logger.agents.claude_code.transcript.lines import (
        session_of_line,  # readers are not needed to look around
    )

    return session_of_line(next(foreign.chunks(Path(path)), b"")[:FIRST_BYTES].partition(b"\n")[0])
