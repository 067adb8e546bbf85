"""Machines push to a hub over HTTP."""

import shutil
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest
from msgspec.structs import replace

from agent_logger import Catalog
from agent_logger.archive.run import archive_all
from agent_logger.demo.recorded import record_demo
from agent_logger.home.facts import register_log_folder
from agent_logger.hub.storage.intake import unpacked_range
from agent_logger.hub.work import HubParts
from agent_logger.push.machine import membership, note_membership, status_of
from agent_logger.push.run import PushError, withdraw
from tests.catalog.catalogs import ID, assistant, claude_file, tool, user
from tests.hub.hubs import Hub, catalog_of, push, running_hub, stored

DATA = Path(__file__).parents[1] / "data"
# Of each agent the first recording that has files.
TREES = list({tree.parts[-4]: tree for tree in sorted(DATA.glob("*/*/*/home")) if any(tree.rglob("*.json*"))}.values())
Machine = Callable[[str], Path]


@pytest.fixture
def hub(tmp_path: Path) -> Iterator[Hub]:
    with running_hub(tmp_path / "hub") as hub:
        yield hub


@pytest.fixture
def machine(tmp_path: Path, hub: Hub, monkeypatch: pytest.MonkeyPatch) -> Machine:
    """Makes a machine that has joined. After it was made, the agents' folders are those of this machine."""

    def make(name: str) -> Path:
        folder = tmp_path / name
        monkeypatch.setenv("HOME", str(folder))
        home = folder / ".agent-logger"
        if not home.exists():
            hub.join(home, name.partition("-")[0], name)
        return home

    return make


def contents(catalog: Catalog, *words: str) -> dict[str, list[str]]:
    """Totals, sessions and hits, without the places where they were found."""
    catalog.refresh()
    assert catalog.index()
    rows = (replace(row, copies=1, joined_by=None, home="", last_at=None) for row in catalog.ledger())
    sessions = (replace(session, paths=(), machines=(), people=(), damaged_lines=0) for session in catalog.sessions())
    hits = (hit for word in words for hit in catalog.search(word, limit=1000))
    return {
        "totals": sorted(map(repr, rows)),
        "sessions": sorted(map(repr, sessions)),
        "hits": sorted(map(repr, hits)),
    }


def test_three_homes_that_were_pushed_are_their_union(hub: Hub, machine: Machine, tmp_path: Path) -> None:
    homes = []
    for number, name in enumerate(("ann-laptop", "ann-desktop", "ann-server")):
        home = machine(name)
        homes.append(home)
        for tree in TREES[number::3]:
            shutil.copytree(tree, home.parent, dirs_exist_ok=True)
        both = ID.format(7)
        claude_file(home.parent, both, [user(1, "the same everywhere", both), assistant(2, "really", both)])
        own = ID.format(100 + number)
        claude_file(
            home.parent, own, [user(10 * number, f"zebra {number}", own), assistant(10 * number + 1, "ok", own)]
        )
        assert not archive_all(home).failed
        assert push(home).refused == []
    words = ("zebra", "file", "the")
    with Catalog.open(tmp_path / "reader", homes=homes) as union, catalog_of(hub.folder) as pushed:
        expected, got = contents(union, *words), contents(pushed, *words)
        assert got["totals"] == expected["totals"]
        assert got["sessions"] == expected["sessions"]
        assert got["hits"] == expected["hits"]
        assert len(expected["sessions"]) > len(TREES)
    for home in homes:
        machine(home.parent.name)
        assert (push(home).ranges, push(home).objects) == (0, 0), "the same again sends no object"


def test_a_session_of_two_people_counts_once(hub: Hub, machine: Machine) -> None:
    both = ID.format(7)
    for name in ("ann-laptop", "ben-laptop"):
        home = machine(name)
        claude_file(home.parent, both, [user(1, "the same", both), assistant(2, "really", both)])
        push(home)
    with catalog_of(hub.folder) as catalog:
        (row,) = catalog.ledger()
        assert (row.usage.output_tokens if row.usage else None, row.copies) == (102, 2)
        assert [sorted(session.people) for session in catalog.sessions()] == [["ann", "ben"]]


def test_a_withdrawn_session_does_not_come_back(hub: Hub, session: tuple[Path, str], machine: Machine) -> None:
    home, name = session
    other = machine("ann-desktop")
    shutil.copytree(home.parent / ".claude", other.parent / ".claude")
    push(other)
    machine("ann-laptop")
    push(home)
    assert withdraw(home, name) == (2, ())
    with catalog_of(hub.folder) as catalog:
        assert catalog.sessions() == []
    assert push(home).objects == 0
    machine("ann-desktop")
    claude_file(other.parent, name, [user(20, "canaryprompt", name)], project="-home-canaryhost-canaryfolder")
    assert push(other).withdrawn == [name]
    rebuild(hub)
    with catalog_of(hub.folder) as catalog:
        assert catalog.sessions() == []
    assert found_in(hub) == set()


def rebuild(hub: Hub) -> None:
    parts = HubParts(hub.folder)
    assert parts.intake("test").rebuild() == 0
    parts.assembly.clear()
    parts.close()


def test_a_hub_that_was_rebuilt_from_its_store_is_the_same(hub: Hub, session: tuple[Path, str]) -> None:
    home, _ = session
    push(home)
    with catalog_of(hub.folder) as catalog:
        before = contents(catalog, "canaryprompt")
    rebuild(hub)
    with catalog_of(hub.folder) as catalog:
        assert contents(catalog, "canaryprompt") == before
    assert push(home).ranges == 0


def test_a_week_offline_is_caught_up(hub: Hub, machine: Machine) -> None:
    home, name = machine("ann-laptop"), ID.format(8)
    claude_file(home.parent, name, [user(1, "before", name), assistant(2, "ok", name)])
    push(home)
    member = membership(home)
    assert member
    note_membership(home, replace(member, url="http://127.0.0.1:1"))
    for day in range(7):
        claude_file(home.parent, name, [user(10 * day + 10, f"day {day}", name), assistant(10 * day + 11, "ok", name)])
        with pytest.raises(PushError, match="no answer"):
            push(home)
    assert status_of(home).error
    note_membership(home, member)
    push(home)
    assert status_of(home).error is None
    with catalog_of(hub.folder) as catalog:
        assert catalog.sessions()[0].turns == 8


def test_recordings_of_the_proxy_are_pushed(hub: Hub, machine: Machine, tmp_path: Path) -> None:
    home = machine("ann-laptop")
    record_demo(home / "logs", pace=0.0)
    register_log_folder(home, home / "logs")
    push(home)
    with Catalog.open(tmp_path / "reader", homes=[home]) as local, catalog_of(hub.folder) as pushed:
        expected = contents(local, "the")
        assert expected["totals"]
        assert contents(pushed, "the") == expected


# ---------------------------------------------------------------- levels

CANARIES = ("canaryprompt", "canarytitle", "canaryfolder", "canaryfile", "canaryoutput", "canarybranch", "canaryhost")


@pytest.fixture
def session(machine: Machine) -> tuple[Path, str]:
    """A session with a word of its own in everything that is not a number."""
    home, name = machine("ann-laptop"), ID.format(5)
    lines = [
        user(1, "canaryprompt", name, gitBranch="canarybranch", cwd="/home/canaryhost/canaryfolder"),
        *tool(2, name, "Edit", {"file_path": "/x/canaryfolder/canaryfile.py"}, "canaryoutput"),
        assistant(5, "done", name),
        {"type": "summary", "summary": "canarytitle", "leafUuid": f"u5-{name[:8]}"},
    ]
    lines = [{**line, "cwd": "/home/canaryhost/canaryfolder"} for line in lines]
    claude_file(home.parent, name, lines, project="-home-canaryhost-canaryfolder")
    return home, name


def found_in(hub: Hub) -> set[str]:
    """The canaries that are anywhere in the hub's files, or packed in its store, or in its log."""
    files = {**stored(hub.folder), "log": hub.log.read_bytes()}
    unpacked = [
        unpacked_range(data)[1]
        for name, data in files.items()
        if name.startswith("store/devices/") and "/objects/" in name and not name.endswith(".json")
    ]
    everything = b"\n".join([*files.values(), *unpacked, *(name.encode() for name in files)])
    return {canary for canary in CANARIES if canary.encode() in everything}


def test_numbers_say_nothing_but_numbers(hub: Hub, session: tuple[Path, str]) -> None:
    home, name = session
    push(home, "numbers")
    with catalog_of(hub.folder) as catalog:
        (summary,) = catalog.sessions()
        assert (summary.id, summary.turns, summary.usage.output_tokens) == (name, 2, 100 + 2 + 100 + 5)
        assert summary.title is None
        assert summary.project is not None
        assert summary.project.startswith("project-")
        assert summary.agent == "claude-code"
        assert catalog.session(name)
        assert catalog.index()
    assert found_in(hub) == set()


def test_titles_are_titles_and_names(hub: Hub, session: tuple[Path, str]) -> None:
    home, name = session
    push(home, "titles")
    with catalog_of(hub.folder) as catalog:
        read = catalog.session(name)
        assert read
        assert (read.title, [call.name for call in read.tool_calls]) == ("canarytitle", ["Edit"])
        assert read.files == ["canaryfile.py"]
    assert found_in(hub) == {"canarytitle", "canaryfile"}


def test_a_lower_level_deletes_what_is_above_it(hub: Hub, session: tuple[Path, str]) -> None:
    home, _ = session
    push(home, "contents")
    with catalog_of(hub.folder) as catalog:
        assert catalog.index()
        assert catalog.search("canaryoutput")
        contents_usage = catalog.sessions()[0].usage
    assert found_in(hub) == set(CANARIES)
    push(home, "numbers")
    with catalog_of(hub.folder) as catalog:
        assert catalog.sessions()[0].usage == contents_usage
    assert found_in(hub) == set()
    push(home, "none")
    with catalog_of(hub.folder) as catalog:
        assert catalog.sessions() == []
    push(home, "contents")
    with catalog_of(hub.folder) as catalog:
        assert catalog.sessions()[0].usage == contents_usage


def test_numbers_and_contents_of_one_session_count_once(hub: Hub, session: tuple[Path, str], machine: Machine) -> None:
    home, _ = session
    push(home, "numbers")
    other = machine("ben-laptop")
    shutil.copytree(home.parent / ".claude", other.parent / ".claude")
    push(other, "contents")
    with catalog_of(hub.folder) as catalog:
        assert sum(total.usage.output_tokens for total in catalog.usage("session").values()) == 207


def test_keys_in_files_that_are_kept_word_for_word_are_removed(hub: Hub, machine: Machine) -> None:
    home, name = machine("ann-laptop"), ID.format(6)
    key = "sk-ant-api03-" + "Ab3" * 31 + "AA"
    claude_file(home.parent, name, [user(1, f"my key is {key}", name), assistant(2, "thanks", name)])
    archive_all(home)
    push(home, "contents")
    with catalog_of(hub.folder) as catalog:
        assert catalog.session(name)
    for file, data in stored(hub.folder).items():
        plain = unpacked_range(data)[1] if "/objects/" in file and not file.endswith(".json") else data
        assert key.encode() not in plain, file
