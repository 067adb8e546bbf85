"""Several homes that are read together: each response counts once, and nothing is written to a home of others."""

import json
import os
import shutil
import signal
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from random import Random
from typing import NamedTuple

import pytest
from hypothesis import given
from hypothesis import strategies as st
from msgspec.structs import replace

from agent_logger import Catalog, Filter, SessionLogger
from agent_logger.archive.collect import ArchiveReport
from agent_logger.archive.run import archive_all, seal_archive
from agent_logger.catalog.discovery.unidentified import own_name
from agent_logger.catalog.ledger.ledger import Ledger
from agent_logger.catalog.live.tail import Tail
from agent_logger.demo.recorded import record_demo
from agent_logger.errors import ConfigError, StoreError
from agent_logger.home.facts import bury, register_log_folder
from agent_logger.home.homes import Homes, folders_inside, folders_outside, homes_of
from agent_logger.home.machine import note_machine
from agent_logger.home.marks import change_marks, label_session
from agent_logger.imports.run import run_import
from agent_logger.logs.hook_files import file_of, hooks_path
from agent_logger.model.responses import ModelResponse
from tests.catalog.catalogs import ID, assistant, claude_file, tool, user
from tests.catalog.rows import PLAIN

DATA = Path(__file__).parents[1] / "data"
# Of each agent the first recording that has files.
TREES = list({tree.parts[-4]: tree for tree in sorted(DATA.glob("*/*/*/home")) if any(tree.rglob("*.json*"))}.values())


class Machine(NamedTuple):
    """A machine of somebody else: the folders of its agents, and its home."""

    folder: Path

    @property
    def home(self) -> Path:
        return self.folder / ".agent-logger"

    def archive(self, monkeypatch: pytest.MonkeyPatch) -> "Machine":
        with monkeypatch.context() as there:
            there.setenv("HOME", str(self.folder))
            report = archive_all(self.home)
        assert not report.failed
        (self.home / "machine.json").write_text(json.dumps({"machine": self.folder.name, "home": str(self.home)}))
        return self


@pytest.fixture
def machine(tmp_path: Path) -> Callable[[str], Machine]:
    def make(name: str) -> Machine:
        folder = tmp_path / name
        folder.mkdir()
        return Machine(folder)

    return make


@pytest.fixture
def own(home: Path) -> Path:
    return home / ".agent-logger"


def read(own: Path, *homes: Path) -> Catalog:
    return Catalog.open(own, homes=homes)


def contents(catalog: Catalog) -> tuple[list[str], list[str]]:
    """All rows of the ledger and all sessions, without the places where they were found."""
    rows = (replace(row, copies=1, joined_by=None, home="", last_at=None) for row in catalog.ledger())
    sessions = (replace(session, paths=(), machines=(), damaged_lines=0) for session in catalog.sessions())
    return sorted(map(repr, rows)), sorted(map(repr, sessions))


def state(folder: Path) -> dict[str, tuple[int, int, bytes]]:
    """All that is below a folder: when it was changed, how, and what is in it."""
    return {
        str(path.relative_to(folder)): (
            path.lstat().st_mtime_ns,
            path.lstat().st_ctime_ns,
            path.read_bytes() if path.is_file() else b"",
        )
        for path in [folder, *folder.rglob("*")]
    }


def recorded(folder: Path) -> None:
    """Record the demo, and wait until the files of exchanges in flight are gone."""
    record_demo(folder, pace=0.0)
    give_up = time.monotonic() + 20
    while list(folder.rglob("*.live*")) and time.monotonic() < give_up:
        time.sleep(0.01)


def session_on(machine: Machine, number: int, first: int = 1, last: int = 3) -> str:
    """Write a session into the folder of an agent on a machine. Returns its id."""
    name = ID.format(number)
    lines = [user(100 * number, f"Prompt {number}", name)]
    lines += [assistant(100 * number + each, f"Answer {each}", name) for each in range(first, last + 1)]
    claude_file(machine.folder, name, lines)
    return name


# ---------------------------------------------------------------- what counts


@pytest.mark.parametrize("tree", TREES, ids=lambda tree: tree.parts[-4])
def test_a_home_and_a_copy_of_it_are_the_same_as_the_home(
    tree: Path, machine: Callable[[str], Machine], own: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    there = machine("laptop")
    shutil.copytree(tree, there.folder, dirs_exist_ok=True, symlinks=True)
    there.archive(monkeypatch)
    copied = tmp_path / "copy"
    shutil.copytree(there.home, copied)
    seal_archive(copied, 0, ArchiveReport())
    assert contents(read(own, there.home, copied)) == contents(read(own, there.home))


def test_two_homes_are_their_union(
    machine: Callable[[str], Machine], own: Path, home: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    laptop, desk, here = machine("laptop"), machine("desk"), Machine(home)
    session_on(laptop, 1)
    session_on(laptop, 2)
    session_on(desk, 2)  # it was continued there
    session_on(desk, 2, first=4, last=5)
    session_on(desk, 3)
    session_on(here, 4)
    laptop.archive(monkeypatch)
    desk.archive(monkeypatch)
    catalog = read(own, own, desk.home, laptop.home)
    ids = [row.message_id for row in catalog.ledger()]
    assert len(ids) == len(set(ids)) == 3 + 5 + 3 + 3
    assert {session.id: session.turns for session in catalog.sessions()} == {
        ID.format(1): 3,
        ID.format(2): 5,
        ID.format(3): 3,
        ID.format(4): 3,
    }
    whole = catalog.session(ID.format(2))
    assert whole and len(whole.turns) == 5


def test_a_fork_on_another_machine_counts_what_came_after_it(
    machine: Callable[[str], Machine], own: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    laptop, desk = machine("laptop"), machine("desk")
    one, two = ID.format(1), ID.format(2)
    lines = [user(1, "Hello", one), assistant(2, "Hi", one), assistant(3, "Well", one)]
    claude_file(laptop.folder, one, lines)
    copied = [{**line, "sessionId": two} for line in lines]
    claude_file(desk.folder, two, [*copied, user(10, "In a fork", two), assistant(11, "Yes", two)])
    catalog = read(own, laptop.archive(monkeypatch).home, desk.archive(monkeypatch).home)
    assert {session.id: session.turns for session in catalog.sessions()} == {one: 2, two: 1}
    assert catalog.total().responses == 3
    assert {name: total.responses for name, total in catalog.usage("machine").items()} == {"laptop": 2, "desk": 1}


def test_logs_and_hooks_of_a_copy_are_read_once(own: Path, tmp_path: Path) -> None:
    laptop, copied = tmp_path / "laptop", tmp_path / "copy"
    recorded(laptop / "sessions")
    for folder in (laptop / "sessions", laptop / "sessions/logs"):
        register_log_folder(laptop, folder)
    (laptop / "machine.json").write_text(json.dumps({"machine": "laptop", "home": str(laptop)}))
    session = read(own, laptop).sessions()[0].id
    hooked = file_of(hooks_path(laptop), 1_795_000_000.0, session)
    hooked.parent.mkdir(parents=True)
    hook = {"session_id": session, "hook_event_name": "Notification", "message": "It waits."}
    hooked.write_text(json.dumps({"v": 1, "type": "hook", "ts": "2026-11-18T11:06:40.000Z", "input": hook}))
    shutil.copytree(laptop, copied)
    wire = max((copied / "sessions/logs").glob("*/*.jsonl"), key=lambda path: path.stat().st_size)
    lines = wire.read_bytes().splitlines(keepends=True)
    wire.write_bytes(b"".join(lines[:-1]))  # an older copy
    one, both = read(own, laptop), read(own, laptop, copied)
    assert len(both.sources(session)) == 2 * len(one.sources(session)) == 6
    assert contents(both) == contents(one)
    assert [call.call for call in both.calls(session)] == [call.call for call in one.calls(session)]
    assert all(call.status for call in both.calls(session))
    whole, same = one.session(session), both.session(session)
    assert whole and same and [turn.blocks for turn in same.turns] == [turn.blocks for turn in whole.turns]


def test_events_of_hooks_that_two_homes_have_happened_once(own: Path, tmp_path: Path) -> None:
    laptop, copied = tmp_path / "laptop", tmp_path / "copy"
    for seconds, event in enumerate(("SessionStart", "UserPromptSubmit", "Stop", "UserPromptSubmit")):
        path = file_of(hooks_path(laptop), 1_795_000_000.0 + seconds, ID.format(1))
        path.parent.mkdir(parents=True, exist_ok=True)
        hook = {"session_id": ID.format(1), "hook_event_name": event, "prompt": "Again"}
        record = {"v": 1, "type": "hook", "ts": f"2026-11-18T11:06:4{seconds}.000Z", "input": hook}
        path.write_text(json.dumps(record))
    shutil.copytree(laptop, copied)
    one, both = read(own, laptop).session(ID.format(1)), read(own, laptop, copied).session(ID.format(1))
    assert one and len(one.exchanges) == 2 and both == one


def test_a_log_without_a_client_id_gets_it_from_the_archive_beside_it(
    machine: Callable[[str], Machine], own: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    laptop = machine("laptop")
    name = session_on(laptop, 1)
    laptop.archive(monkeypatch)
    session = read(own, laptop.home).session(name)
    assert session
    recorded_calls = replace(session, id="log")
    assert own_name(recorded_calls, "log", str(laptop.home)) == name
    assert own_name(recorded_calls, "log") is None


def test_a_session_of_two_homes_keeps_both_sources_when_one_of_them_changes(
    machine: Callable[[str], Machine], own: Path, home: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    laptop = machine("laptop")
    for there in (laptop, Machine(home)):
        session_on(there, 1)
    laptop.archive(monkeypatch)
    own.mkdir()
    catalog = read(own, own, laptop.home)
    for changed in (2, 0):
        assert catalog.refresh()[1:3] == (changed, 0)
    session_on(laptop, 2)
    laptop.archive(monkeypatch)
    assert catalog.refresh()[1:3] == (1, 0)
    assert [source.home for source in catalog.sources(ID.format(1))] == ["", str(laptop.home)]


HOMES = ("", "/one", "/two")
RESPONSES = st.lists(
    st.builds(
        lambda home, session, output, timed: replace(
            PLAIN,
            home=home,
            session=session,
            message_id=None,
            request_id=None,
            at=PLAIN.at if timed else None,
            usage=replace(PLAIN.usage, output_tokens=output) if PLAIN.usage else None,
        ),
        st.sampled_from(HOMES),
        st.sampled_from("ab"),
        st.integers(1, 2),
        st.booleans(),
    ),
    max_size=8,
)


@given(RESPONSES, st.randoms(use_true_random=False))
def test_responses_without_an_id_count_as_often_as_the_home_with_most_of_them_has_them(
    responses: list[ModelResponse], random: Random
) -> None:
    def content(response: ModelResponse) -> tuple[object, ...]:
        # Of two sessions one may be a fork of the other, if there is a time to tell.
        session = response.session if response.at is None else None
        return session, response.at, response.usage

    def often(response: ModelResponse) -> int:
        same = [other for other in responses if content(other) == content(response)]
        holders = {(other.session, other.home) for other in same}
        return max(sum((other.session, other.home) == holder for other in same) for holder in holders)

    expected = sum({content(response): often(response) for response in responses}.values())
    shuffled = list(responses)
    random.shuffle(shuffled)
    for order in (responses, shuffled):
        ledger = Ledger()
        ledger.add(order)
        rows = list(ledger.rows())
        assert len(rows) == expected
        assert sorted(row.home for row in rows) == sorted(row.home for row in _rows(responses))


def _rows(responses: list[ModelResponse]) -> list[ModelResponse]:
    ledger = Ledger()
    ledger.add(responses)
    return list(ledger.rows())


# ---------------------------------------------------------------- machines


def test_usage_by_machine_adds_up_and_the_own_machine_has_what_several_have(
    machine: Callable[[str], Machine], own: Path, home: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    laptop = machine("laptop")
    session_on(laptop, 1)
    session_on(laptop, 2)
    session_on(Machine(home), 2)
    laptop.archive(monkeypatch)
    own.mkdir()
    (own / "machine.json").write_text('{"machine": "here"}')
    catalog = read(own, laptop.home, own)
    assert list(catalog.machines.values()) == ["here", "laptop"]
    by_machine = catalog.usage("machine")
    assert {name: total.responses for name, total in by_machine.items()} == {"here": 3, "laptop": 3}
    assert sum(total.cost.nano_usd or 0 for total in by_machine.values()) == catalog.total().cost.nano_usd
    for name, total in by_machine.items():
        assert catalog.total(Filter(machine=name.upper() if name else None)) == total
    assert {session.id: session.machines for session in catalog.sessions()} == {
        ID.format(1): ("laptop",),
        ID.format(2): ("here", "laptop"),
    }
    of_laptop = catalog.sessions(Filter(machine="laptop"))
    assert {session.id for session in of_laptop} == {ID.format(1), ID.format(2)}
    assert catalog.sessions(Filter(machine="nobody")) == [] and catalog.total(Filter(machine="nobody")).responses == 0
    over_time = catalog.usage_over_time("day", "machine")
    assert {name for totals in over_time.values() for name in totals} == {"here", "laptop"}
    assert catalog.choices().machines == ("here", "laptop")


def test_an_imported_session_counts_for_the_machine_that_it_is_from(
    machine: Callable[[str], Machine], own: Path, home: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    laptop, desk = machine("laptop"), machine("desk")
    for number, there in enumerate((laptop, desk), 1):
        session_on(there, number)
    session_on(Machine(home), 3)
    session_on(Machine(home), 2)  # here, too
    laptop.archive(monkeypatch)
    run_import(own, laptop.home)
    (folder,) = desk.folder.glob(".claude/projects/*")
    run_import(own, folder)
    (own / "machine.json").write_text('{"machine": "here"}')
    unnamed = "imported"
    with Catalog.open(own) as catalog:
        by_machine = {name: total.responses for name, total in catalog.usage("machine").items()}
        assert by_machine == {"here": 6, "laptop": 3}
        session_on(desk, 4)
        run_import(own, folder)
        catalog.refresh()
        by_machine = {name: total.responses for name, total in catalog.usage("machine").items()}
        assert by_machine == {"here": 6, "laptop": 3, unnamed: 3}
        for name, number in by_machine.items():
            assert catalog.total(Filter(machine=name)).responses == number
        assert {session.id: session.machines for session in catalog.sessions()} == {
            ID.format(1): ("laptop",),
            ID.format(2): ("here",),
            ID.format(3): ("here",),
            ID.format(4): (unnamed,),
        }
        assert [session.id for session in catalog.sessions(Filter(machine="Laptop"))] == [ID.format(1)]
        (own / "machine.json").write_text('{"machine": "Laptop"}')
    with Catalog.open(own) as catalog:
        assert set(catalog.usage("machine")) == {"Laptop", "laptop (imported)", unnamed}
    done = subprocess.run(
        [sys.executable, "-m", "agent_logger", "usage", "machine", "--json"],
        env={"PATH": os.environ["PATH"], "HOME": str(home)},
        capture_output=True,
        check=True,
    )
    assert {row["key"] for row in json.loads(done.stdout)["rows"]} == {"Laptop", "laptop (imported)", unnamed}


def test_a_search_finds_the_sessions_of_a_machine(
    machine: Callable[[str], Machine], own: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    laptop, desk = machine("laptop"), machine("desk")
    session_on(laptop, 1)
    session_on(desk, 2)
    laptop.archive(monkeypatch)
    desk.archive(monkeypatch)
    label_session(desk.home, ID.format(2), "prompt")
    catalog = read(own, laptop.home, desk.home)
    assert {hit.session for hit in catalog.search("prompt")} == {ID.format(1), ID.format(2)}
    assert {hit.session for hit in catalog.search("prompt machine:Desk")} == {ID.format(2)}
    assert {hit.session for hit in catalog.search("prompt machine:laptop")} == {ID.format(1)}


def test_machines_with_one_name_get_different_names_from_their_folders(tmp_path: Path, own: Path) -> None:
    for name in ("alice", "bob", "bob/more/bob"):
        (tmp_path / name / ".agent-logger/logs").mkdir(parents=True)
        (tmp_path / name / ".agent-logger/machine.json").write_text('{"machine": "Build\\u0007 host"}')
    (tmp_path / "plain/logs").mkdir(parents=True)
    given = [tmp_path / name / ".agent-logger" for name in ("alice", "bob", "bob/more/bob")]
    assert list(homes_of(own, given[:1]).machines.values()) == ["alice"]  # it cannot be printed
    for folder in given:
        (folder / "machine.json").write_text('{"machine": "host"}')
    names = list(homes_of(own, [*given, tmp_path / "plain"]).machines.values())
    assert names == ["host (alice)", f"host (bob) ({given[1]})", f"host (bob) ({given[2]})", "plain"]


def test_the_name_of_the_machine_is_written_once(own: Path) -> None:
    note_machine(own)
    assert homes_of(own, []).machines == {"": os.uname().nodename.partition(".")[0]}
    (own / "machine.json").write_text('{"machine": "mine"}')
    note_machine(own)
    assert homes_of(own, []).machines == {"": "mine"}
    (own / "machine.json").write_text('{"machine": ["mine"], "v": 2}')  # what a newer version may write
    assert homes_of(own, []).machines == {"": os.uname().nodename.partition(".")[0]}


def test_recording_notes_the_machine(own: Path, tmp_path: Path) -> None:
    with SessionLogger(tmp_path) as logger:
        logger.log_user_input("Hello")
    assert json.loads((own / "machine.json").read_bytes()) == {
        "machine": os.uname().nodename.partition(".")[0],
        "home": str(own),
        "v": 1,
    }


# ---------------------------------------------------------------- what is read of another home


def test_folders_of_agents_are_read_for_the_own_home_alone(
    machine: Callable[[str], Machine], own: Path, home: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    session_on(Machine(home), 1)
    laptop = machine("laptop")
    session_on(laptop, 2)
    laptop.archive(monkeypatch)
    own.mkdir()
    assert [session.id for session in read(own, laptop.home).sessions()] == [ID.format(2)]
    assert [session.id for session in read(own, own).sessions()] == [ID.format(1)]


def test_paths_in_the_facts_of_another_home_lead_nowhere_else(tmp_path: Path, own: Path) -> None:
    """On this machine they may be the folders of somebody else's, or the user's own."""
    laptop, project = tmp_path / "laptop", tmp_path / "project"
    (laptop / "logs").mkdir(parents=True)
    (laptop / "more/logs").mkdir(parents=True)
    recorded(project)
    (laptop / "machine.json").write_text('{"machine": "laptop", "home": "/home/alice/data"}')
    (laptop / "sessions").symlink_to(project)
    outside = [str(project), "/home/alice/work/logs", "/home/alice/data/../work"]
    inside = ["/home/alice/data/more/logs", "/home/alice/data/sessions", "/x/.agent-logger/logs"]
    facts = [{"type": "log_folder", "path": path, "ts": ""} for path in [*outside, *inside]]
    (laptop / "facts.jsonl").write_text("".join(json.dumps(fact) + "\n" for fact in facts))
    assert folders_inside(laptop) == [laptop / "logs", laptop / "more/logs"]
    (laptop / "archive").symlink_to(project)
    assert list(map(str, folders_outside(laptop))) == [*outside, str(laptop / "sessions"), str(laptop / "archive")]
    assert read(own, laptop).sessions() == []


def test_a_session_that_was_removed_from_one_home_is_in_the_other(
    machine: Callable[[str], Machine], own: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    laptop, desk = machine("laptop"), machine("desk")
    for there in (laptop, desk):
        session_on(there, 1)
        there.archive(monkeypatch)
    bury(laptop.home, ID.format(1), [])
    assert read(own, laptop.home).sessions() == []
    catalog = read(own, laptop.home, desk.home)
    assert [session.machines for session in catalog.sessions()] == [("desk",)]
    bury(desk.home, ID.format(1), [])
    catalog.refresh()
    assert catalog.sessions() == [] and catalog.total().responses == 0


def test_marks_of_all_homes_are_shown(
    machine: Callable[[str], Machine], own: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    laptop = machine("laptop")
    name = session_on(laptop, 1)
    laptop.archive(monkeypatch)
    change_marks(laptop.home, [name], labels=["theirs"], note="their note")
    change_marks(own, [name], labels=["mine"], pinned=True)
    catalog = read(own, laptop.home)
    (session,) = catalog.sessions(Filter(label="theirs"))
    assert (session.labels, session.pinned, session.note) == (("mine", "theirs"), True, "their note")
    before = state(laptop.home)
    catalog.mark(name, note="my note")
    assert catalog.marks()[name].note == "my note"
    assert catalog.resolve("theirs") == catalog.resolve("mine") == [name]
    assert state(laptop.home) == before


# ---------------------------------------------------------------- nothing is written


def test_nothing_is_written_to_other_homes(
    machine: Callable[[str], Machine], own: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    laptop = machine("laptop")
    for tree in TREES:
        shutil.copytree(tree, laptop.folder, dirs_exist_ok=True, symlinks=True)
    laptop.archive(monkeypatch)
    recorded(laptop.home / "sessions")
    register_log_folder(laptop.home, laptop.home / "sessions")
    before = state(laptop.home)
    monkeypatch.setattr("agent_logger.platform.is_locked", lambda path: pytest.fail(f"a lock of {path} was tried"))
    catalog = read(own, laptop.home)
    catalog.refresh()
    assert len(catalog.sessions()) > len(TREES) // 2 and catalog.index() and catalog.search("timer")
    for session in catalog.sessions(Filter(live=True)):
        assert catalog.session(session.id)
    for session in catalog.sessions():
        assert catalog.session(session.id) and catalog.tree(session.id) and catalog.damaged_files(session.id) == {}
    assert Tail(catalog.homes, catalog.sessions()[0].id).poll()
    assert not catalog.is_sealing_due(0) and catalog.seal(0) == 0
    with pytest.raises(StoreError, match="several homes"):
        catalog.remove(catalog.sessions()[0].id)
    assert state(laptop.home) == before
    assert {path.name for path in own.iterdir()} == {"catalogs"}


def test_a_read_only_home_is_read(
    machine: Callable[[str], Machine], own: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    laptop, mounted = machine("laptop"), tmp_path / "mounted"
    session_on(laptop, 1)
    laptop.archive(monkeypatch)
    mounted.mkdir()
    if subprocess.run(["mount", "--bind", laptop.home, mounted], capture_output=True, check=False).returncode:
        pytest.skip("only root can mount")
    try:
        subprocess.run(["mount", "-o", "remount,bind,ro", mounted], check=True)
        with pytest.raises(OSError):
            (mounted / "file").touch()
        assert [session.id for session in read(own, mounted).sessions()] == [ID.format(1)]
    finally:
        subprocess.run(["umount", mounted], check=True)


def test_removing_a_session_deletes_the_texts_in_catalogs_of_several_homes(
    machine: Callable[[str], Machine], own: Path, home: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    name = ID.format(1)
    secret = tool(2, name, "Bash", {"command": "echo swordfish"}, "swordfish")
    claude_file(home, name, [user(1, "Say it", name), *secret])
    laptop = machine("laptop")
    session_on(laptop, 2)
    laptop.archive(monkeypatch)
    own.mkdir()
    both = read(own, own, laptop.home)
    assert both.index() and both.search("swordfish") and (own / "catalogs").exists()
    with Catalog.open(own) as catalog:
        catalog.remove(name)
    assert not (own / "catalogs").exists()
    both.refresh()
    assert [session.id for session in both.sessions()] == [ID.format(2)] and not both.search("swordfish")


def test_a_set_of_homes_has_one_catalog_in_any_order_which_is_deleted_after_a_month(
    machine: Callable[[str], Machine], own: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    homes = [machine(name) for name in ("laptop", "desk")]
    for number, there in enumerate(homes):
        session_on(there, number)
        there.archive(monkeypatch)
    one, two = homes[0].home, homes[1].home
    assert read(own, one, two).refresh().changed == 2
    assert read(own, two, one).refresh().changed == 0
    (folder,) = (own / "catalogs").iterdir()
    os.utime(folder, (0, 0))
    read(own, one).refresh()
    assert folder not in (own / "catalogs").iterdir()


# ---------------------------------------------------------------- what is no home


def test_a_folder_that_is_no_home_is_an_error_with_the_reason(tmp_path: Path, own: Path) -> None:
    laptop = tmp_path / "laptop/.agent-logger"
    for name in ("logs", "archive/laptop/logs"):
        (laptop / name).mkdir(parents=True)
    (tmp_path / "file").touch()
    (tmp_path / "link").symlink_to(laptop)
    (tmp_path / "loop").symlink_to(tmp_path / "loop")
    newer = tmp_path / "newer"
    newer.mkdir()
    (newer / "machine.json").write_text('{"v": 2, "machine": {"name": "laptop"}}')
    wrong = {
        (tmp_path / "nothing",): "cannot read this folder: No such file or directory",
        (tmp_path / "file",): "cannot read this folder: Not a directory",
        (tmp_path / "loop",): "Symlink loop|Too many levels",
        (tmp_path,): "is not a home of agent-logger: it has no logs, sessions",
        (laptop.parent,): f"did you mean {laptop}",
        (laptop, laptop): "is the same home as --home",
        (laptop, tmp_path / "link"): "is the same home as --home",
        (laptop, laptop / "archive/laptop"): "is inside --home",
        (newer,): "newer version of agent-logger; update agent-logger",
    }
    for folders, reason in wrong.items():
        with pytest.raises(ConfigError, match=reason):
            homes_of(own, folders)
    assert homes_of(own, [tmp_path / "link"]) == Homes(own, has_own=False, others=(laptop,))
    assert homes_of(own, [own]) == homes_of(own, []) == Homes(own)


# ---------------------------------------------------------------- homes that somebody made


def put_fifo(path: Path) -> None:
    os.mkfifo(path)


def put_nested(path: Path) -> None:
    lines = (f'{{"type":"{kind}","x":{"[" * 100_000}\n' for kind in ("log_folder", "tombstone", "label"))
    path.write_text("".join(lines))


@contextmanager
def seconds(most: float) -> Iterator[None]:
    def fail(*_: object) -> None:
        pytest.fail(f"it took more than {most} seconds")

    before = signal.signal(signal.SIGALRM, fail)
    signal.setitimer(signal.ITIMER_REAL, most)
    try:
        yield
    finally:
        signal.setitimer(signal.ITIMER_REAL, 0)
        signal.signal(signal.SIGALRM, before)


@pytest.mark.parametrize("put", [put_fifo, put_nested])
def test_no_file_of_another_home_stops_a_command(
    put: Callable[[Path], None],
    machine: Callable[[str], Machine],
    own: Path,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    laptop = machine("laptop")
    session_on(laptop, 1)
    laptop.archive(monkeypatch)
    session_on(Machine(tmp_path), 2)
    run_import(laptop.home, tmp_path / ".claude")
    recorded(laptop.home / "sessions")
    register_log_folder(laptop.home, laptop.home / "sessions")
    change_marks(laptop.home, [ID.format(1)], labels=["theirs"])
    event = file_of(hooks_path(laptop.home), time.time(), ID.format(1))
    event.parent.mkdir(parents=True)
    event.write_text("{}")
    files = [path for path in laptop.home.rglob("*") if path.is_file()]
    assert {path.name for path in files} >= {"facts.jsonl", "machine.json", "origin.json", ".folder", event.name}
    for path in files:
        aside = path.rename(tmp_path / "aside")
        put(path)
        with seconds(30), read(own, laptop.home) as catalog:
            assert catalog.machines and catalog.sessions() and catalog.marks() is not None
            for session in catalog.sessions():
                catalog.session(session.id)
        path.unlink()
        aside.rename(path)
