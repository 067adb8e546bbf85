"""The order in which the witnesses of a session become known changes nothing of what the catalog says in the end."""

import json
import os
import shutil
from datetime import datetime
from functools import cache
from itertools import chain, groupby
from pathlib import Path
from typing import Any, NamedTuple
from uuid import uuid4

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from agent_logger.agents.registry import agent_called
from agent_logger.catalog.catalog import Catalog
from agent_logger.home.facts import register_log_folder
from agent_logger.model.responses import utc
from agent_logger.model.session import Session
from tests.catalog.catalogs import made_anew
from tests.catalog.session_calls import WireRecord, records_of
from tests.catalog.test_all_agents import Recording, recordings
from tests.commands import run_command
from tests.journal.wire_logs import write

# Recordings of agents in whose files sessions of logs are looked up, by agent.
LOOKED_UP = {
    name: list(same)
    for name, same in groupby(recordings(), key=lambda recording: recording.agent.name)
    if (agent := agent_called(name)) and (agent.wire.match_files_by or agent.sub_agent_ids)
}
TIMED_BY_FILES = ("continue-cli",)  # agents of whose sessions only the file's own time says when they ended
SUFFIXES = ("-wal", "-shm")  # files that a database has beside it


class Recorded(NamedTuple):
    """What is left of a recording: the files of the agent below its home, and the logs of its calls."""

    home: Path
    files: list[tuple[Path, ...]]  # those that are written together
    logs: dict[str, list[WireRecord]]

    @property
    def witnesses(self) -> list[str | tuple[Path, ...]]:
        return [*self.logs, *self.files]


@cache
def recorded(recording: Recording, folder: Path) -> Recorded:
    """Return a recording, with a log of the calls of each session, and of each sub-agent that has a session of its own
    on the wire."""
    home = folder / recording.name.replace("/", "-")
    recording.copy(home)
    sessions = sessions_in(home, folder / "catalog")
    for session, path in sessions:  # as if the last answer had just come
        if session.started and session.ended:
            begun, ended = utc(session.started).timestamp(), utc(session.ended).timestamp()
            at = min(ended, begun + 60) if recording.agent.name in TIMED_BY_FILES else ended
            os.utime(path, (at, at))
    sessions = sessions_in(home, folder / "catalog")
    logs: dict[str, list[WireRecord]] = {}
    for session, thread in ((each, thread) for each, _ in sessions for thread in threads_of(each)):
        log = f"20261115-{len(logs):06}-abcd"
        client_id = thread.removeprefix("agent:") if thread != "main" else None
        if recording.agent.sub_agent_ids and not client_id:
            client_id = session.id
        calls = records_of(session, log, client_id=client_id, thread=thread)
        if len(calls) > 1:
            logs[log] = calls
    paths = sorted(path.relative_to(home) for path in home.rglob("*") if path.is_file())
    alone = [path for path in paths if not path.name.endswith(SUFFIXES)]
    files = [tuple(each for each in paths if each == path or str(each) in beside(path)) for path in alone]
    return Recorded(home, files, logs)


def sessions_in(home: Path, catalog_folder: Path) -> list[tuple[Session, Path]]:
    with pytest.MonkeyPatch.context() as patch:
        use_home(patch, home)
        with Catalog.open(catalog_folder) as catalog:
            summaries = catalog.sessions()
            return [(session, each.paths[0]) for each in summaries if (session := catalog.session(each.id))]


def threads_of(session: Session) -> set[str]:
    threads = {turn.thread for turn in session.turns}
    return {"main", *(thread for thread in threads if session.agent == "goose" and thread.startswith("agent:"))}


def beside(path: Path) -> set[str]:
    return {f"{path}{suffix}" for suffix in SUFFIXES}


def use_home(patch: pytest.MonkeyPatch, home: Path) -> None:
    patch.setenv("HOME", str(home))
    patch.setenv("AGENT_LOGGER_HOME", str(home / ".agent-logger"))
    patch.setenv("AGENT_LOGGER_AGENT_FOLDERS", f"{home},{home / 'project'}")


def contents(catalog: Catalog) -> Any:
    """All that the catalog says of sessions and their costs."""
    sessions = sorted(catalog.sessions(), key=lambda session: session.id)
    return {
        "sessions": sessions,
        "whole": [catalog.session(session.id) for session in sessions],
        "trees": [catalog.tree(session.id) for session in sessions],
        "usage": {by: catalog.usage(by) for by in ("agent", "model", "day", "session")},
        "ledger": sorted(map(repr, catalog.ledger())),
    }


def arrive(each: str | tuple[Path, ...], there: Recorded, home: Path) -> None:
    if isinstance(each, str):
        path = write(home / "logs/anthropic", each, there.logs[each])
        at = datetime.fromisoformat(there.logs[each][-1].ts).timestamp()
        os.utime(path, (at, at))
        return
    for name in each:
        (home / name).parent.mkdir(parents=True, exist_ok=True)
        shutil.copy2(there.home / name, home / name)


def arrivals(there: Recorded) -> st.SearchStrategy[list[list[str | tuple[Path, ...]]]]:
    """Return all that is there, in some order, some of it at once."""
    count = len(there.witnesses)
    orders = st.permutations(there.witnesses)
    cuts = st.lists(st.booleans(), min_size=count, max_size=count)
    return st.builds(in_groups, orders, cuts)


def in_groups(order: list[str | tuple[Path, ...]], cuts: list[bool]) -> list[list[str | tuple[Path, ...]]]:
    groups: list[list[str | tuple[Path, ...]]] = [[]]
    for each, cut in zip(order, cuts, strict=True):
        groups[-1].append(each)
        if cut:
            groups.append([])
    return [group for group in groups if group]


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return tmp_path_factory.mktemp("recordings")


@pytest.mark.parametrize("agent", LOOKED_UP)
@settings(max_examples=8, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(st.data())
def test_the_order_in_which_witnesses_become_known_changes_nothing(
    agent: str, folder: Path, tmp_path: Path, data: st.DataObject
) -> None:
    there = recorded(data.draw(st.sampled_from(LOOKED_UP[agent])), folder)
    groups = data.draw(arrivals(there))
    home = tmp_path / uuid4().hex
    ours = home / ".agent-logger"
    with pytest.MonkeyPatch.context() as patch:
        use_home(patch, home)
        register_log_folder(ours, home / "logs")
        with Catalog.open(ours) as catalog:
            for group in groups:
                for each in group:
                    arrive(each, there, home)
                catalog.refresh()
            at_last = contents(catalog)
        with made_anew(ours, tmp_path / "anew") as catalog:
            assert contents(catalog) == at_last


@pytest.mark.parametrize("recording", list(chain(*LOOKED_UP.values())), ids=lambda recording: recording.name)
def test_calls_and_files_are_one_session(recording: Recording, folder: Path, tmp_path: Path) -> None:
    there = recorded(recording, folder)
    with pytest.MonkeyPatch.context() as patch:
        use_home(patch, tmp_path)
        register_log_folder(tmp_path / ".agent-logger", tmp_path / "logs")
        for each in there.witnesses:
            arrive(each, there, tmp_path)
        with Catalog.open(tmp_path / ".agent-logger") as catalog:
            assert not there.logs.keys() & {session.id for session in catalog.sessions()}


def test_a_folder_that_is_named_later_adds_its_sessions_to_their_calls(folder: Path, tmp_path: Path) -> None:
    """And what a person said of the calls, when they were a session of their own, is said of that session."""
    there = recorded(LOOKED_UP["aider"][0], folder)
    for each in there.witnesses:
        arrive(each, there, tmp_path)
    register_log_folder(tmp_path / ".agent-logger", tmp_path / "logs")
    environment = {"PATH": os.environ["PATH"], "HOME": str(tmp_path)}
    named = {**environment, "AGENT_LOGGER_AGENT_FOLDERS": str(tmp_path)}

    def ids(variables: dict[str, str], *more: str) -> list[str]:
        done = run_command(["ls", "--all", "--json", *more], variables)
        assert done.returncode == 0, done.stderr
        return sorted(row["id"] for row in json.loads(done.stdout))

    log, *_ = before = ids(environment)
    assert before == sorted(there.logs)
    assert run_command(["tag", log, "first"], environment).returncode == 0
    sessions = ids(named)
    assert len(sessions) == len(before) and not set(sessions) & set(before)
    assert len(ids(named, "--label", "first")) == 1
