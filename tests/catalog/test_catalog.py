"""The catalog: right, whoever asks and whenever; and no more work than what has changed."""

import json
import os
import random
import shutil
import sys
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from datetime import UTC, datetime
from itertools import pairwise
from pathlib import Path
from typing import get_args

import pytest

from _corpus import Session as Made
from _corpus import fill, write
from agent_logger import Catalog, Filter
from agent_logger.agents.registry import located
from agent_logger.archive.layout import FOLDER_FILE, archive_path
from agent_logger.archive.run import archive_all
from agent_logger.catalog.ledger.metrics import count_tool_calls, metrics_of
from agent_logger.catalog.ledger.totals import By, total, totals
from agent_logger.catalog.queries import Order
from agent_logger.files import foreign
from agent_logger.files.parts import PartFile
from agent_logger.home.facts import register_log_folder
from agent_logger.journal.seal import seal
from agent_logger.model.session import Usage
from tests.archive.test_archive import TREES, database
from tests.catalog.catalogs import ID, all_of, assistant, claude_file, made_anew, tool, user
from tests.catalog.test_corpus import ccusage
from tests.journal.wire_logs import calls, own, start
from tests.journal.wire_logs import write as write_log

ONE, TWO = ID.format(1), ID.format(2)


@pytest.fixture
def kept(home: Path) -> Path:
    return home / ".agent-logger"


@pytest.fixture
def catalog(kept: Path) -> Catalog:
    return Catalog.open(kept)


def truth(sessions: list[Made]) -> Usage:
    unique = {it.message_id: it.usage for session in sessions for it in session.responses if it.usage}
    return sum(unique.values(), Usage())


# ---------------------------------------------------------------- numbers


@pytest.mark.parametrize("seed", [1, 2])
def test_totals_are_correct_cold_and_warm_for_every_grouping(home: Path, catalog: Catalog, seed: int) -> None:
    sessions = fill(home / ".claude", 2, seed)
    for asked in (catalog, catalog, Catalog.open(catalog.home)):
        assert asked.total().usage == truth(sessions)
        rows = list(asked.ledger())
        assert len(rows) == asked.total().responses == len({row.message_id for row in rows})
        for by in get_args(By):
            sums = asked.usage(by, zone=UTC)
            assert sum((it.usage for it in sums.values()), Usage()) == truth(sessions), by
            assert sum(it.cost.nano_usd or 0 for it in sums.values()) == asked.total().cost.nano_usd
            if by in ("machine", "person"):
                assert list(sums.values()) == list(totals(rows, by, UTC).values())
            elif by != "tool":
                assert list(sums.items()) == list(totals(rows, by, UTC).items())
        assert sum((it.usage for it in asked.sessions()), Usage()) == truth(sessions)
    assert total(rows) == catalog.total()


@pytest.mark.needs("ccusage")
def test_tokens_match_ccusage(home: Path, catalog: Catalog) -> None:
    fill(home / ".claude", 2, 3)
    theirs = ccusage(home / ".claude")
    for asked in (catalog, Catalog.open(catalog.home)):
        ours = asked.usage("model")
        for model in {model for _, model in theirs}:
            tokens = [
                sum(it) for it in zip(*(told for (_, it), (told, _) in theirs.items() if it == model), strict=True)
            ]
            usage = ours[model].usage
            assert tokens == [
                usage.input_tokens,
                usage.output_tokens,
                usage.cache_read_tokens,
                usage.cache_write_tokens,
            ]


def test_the_catalog_uses_the_configured_home(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("AGENT_LOGGER_HOME", str(tmp_path / "elsewhere"))
    with Catalog.open() as catalog:
        assert catalog.home == tmp_path / "elsewhere"


@pytest.mark.parametrize(("original", "copy"), [(ONE, TWO), (TWO, ONE)])
def test_a_fork_has_a_parent_and_counts_only_its_new_turns(
    home: Path, catalog: Catalog, original: str, copy: str
) -> None:
    """Whatever they are called: the copies have the times of what they were made of."""
    lines = [user(1, "begin", "x"), assistant(2, "yes", "x"), user(3, "more", "x"), assistant(4, "no", "x")]
    claude_file(home, original, [{**it, "sessionId": original} for it in lines])
    claude_file(home, copy, [{**it, "sessionId": copy} for it in lines] + [assistant(9, "other", copy)])
    fork, parent = catalog.sessions()
    assert (fork.id, fork.parent, fork.turns, fork.usage.output_tokens) == (copy, original, 1, 109)
    assert (parent.parent, parent.turns, parent.exchanges) == (None, 2, 2)
    assert [row.session for row in catalog.counted_elsewhere(copy)] == [original, original]
    (home / ".claude/projects/-p-shop" / f"{original}.jsonl").unlink()
    catalog.refresh()
    (left,) = catalog.sessions()
    assert (left.id, left.parent, left.turns) == (copy, None, 3), "what it had copied is its own now"


def test_a_session_recorded_by_wire_and_transcript_is_listed_once(home: Path, kept: Path, catalog: Catalog) -> None:
    from tests.logs.wire_log.wire_records import talk

    spoken = talk("claude-cli/2.1.325/multi_input_replay")
    folder = home / "logs" / "anthropic"
    write_log(folder, "log", spoken.records())
    register_log_folder(kept, home / "logs")
    (seen,) = catalog.sessions()
    assert seen.witnesses == {"wire"}
    assert seen.id == spoken.client_id
    data = Path(__file__).parents[1] / "data/claude-cli/2.1.325/multi_input_replay"
    (file,) = data.rglob(f"{spoken.client_id}.jsonl")
    path = home / ".claude" / "projects" / "-p" / file.name
    path.parent.mkdir(parents=True)
    shutil.copy(file, path)
    catalog.refresh()
    (both,) = catalog.sessions()
    assert both.witnesses == {"wire", "transcript"}
    assert set(both.paths) == {path, folder / "log.jsonl"}
    assert (both.usage, both.turns) == (seen.usage, seen.turns)
    session = catalog.session(seen.id)
    assert session and session.witnesses == {"wire", "transcript"}
    assert catalog.calls(seen.id)


def test_a_branch_without_a_client_session_id_is_a_session_with_a_parent(
    home: Path, kept: Path, catalog: Catalog
) -> None:
    folder = home / "logs" / "anthropic"
    write_log(folder, "log_b1", own("log_b1", "log", 1, 3))
    write_log(folder, "log", [start("log"), *calls(1, 2)])
    register_log_folder(kept, home / "logs")
    assert {it.id: (it.parent, it.turns) for it in catalog.sessions()} == {
        "log": (None, 2),
        "log_b1": ("log", 1),
    }
    before = all_of(catalog)
    assert seal(PartFile(folder, "log"))
    after = all_of(catalog)
    assert after.ledger == before.ledger
    assert [it.usage for it in after.sessions] == [it.usage for it in before.sessions]


def test_a_branch_indexed_before_its_parent_is_joined_to_the_parent_later(
    home: Path, kept: Path, catalog: Catalog, tmp_path: Path
) -> None:
    folder = home / "logs" / "anthropic"
    write_log(folder, "log_b2", own("log_b2", "log_b1", 3, 4))
    register_log_folder(kept, home / "logs")
    alone = all_of(catalog)
    write_log(folder, "log_b1", own("log_b1", "log", 1, 3))
    between = all_of(catalog)
    write_log(folder, "log", [start("log"), *calls(1, 2)])
    for _ in range(2):
        assert all_of(catalog) == all_of(made_anew(kept, tmp_path / "anew"))
    (folder / "log.jsonl").unlink()
    assert all_of(catalog).sessions == between.sessions
    (folder / "log_b1.jsonl").unlink()
    assert all_of(catalog).sessions == alone.sessions


def test_tool_call_counts_match_the_listed_tool_calls(home: Path, catalog: Catalog) -> None:
    fill(home / ".claude", 1, 4)
    claude_file(home, ONE, tool(1, ONE, "Bash", {"command": "ls"}, "no", failed=True))
    for it in catalog.sessions():
        session = catalog.session(it.id)
        assert session
        tools = metrics_of(session).tools
        assert count_tool_calls(session) == (sum(it.calls for it in tools), sum(it.errors for it in tools))
        assert count_tool_calls(session)[0] == len({call.id for call in session.tool_calls})
        assert (it.tool_calls, it.errors) == count_tool_calls(session)
    summary = catalog.summary(ONE)
    assert summary and summary.errors == 1


# ---------------------------------------------------------------- work


@contextmanager
def opened_below(folder: str) -> Iterator[list[str]]:
    """What this process opens there meanwhile, with whatever function."""
    opened: list[str] = []
    watching = True

    def watch(event: str, arguments: tuple[object, ...]) -> None:
        if watching and event in ("open", "sqlite3.connect") and folder in str(arguments[0]):
            opened.append(str(arguments[0]))

    sys.addaudithook(watch)
    try:
        yield opened
    finally:
        watching = False


def test_unchanged_files_are_not_opened(home: Path, catalog: Catalog) -> None:
    fill(home / ".claude", 2)
    first = catalog.refresh()
    assert first.changed == first.sources > 10
    assert first.bytes_read >= 2e6
    catalog.index()
    for asked in (catalog, Catalog.open(catalog.home)):
        done = asked.refresh()
        assert (done.changed, done.files_opened, done.bytes_read) == (0, 0, 0)
        assert asked.index()
        assert len(asked.sessions()) == first.sources
        assert asked.refresh().files_opened == 0


def test_unchanged_archived_files_are_not_opened(home: Path, catalog: Catalog) -> None:
    for tree in TREES:
        shutil.copytree(tree, home, dirs_exist_ok=True)
    database(home)
    archive_all(catalog.home)
    catalog.index()
    agents = {it.agent for it in catalog.sessions()}
    assert len(agents) > 8
    for _, location in located():
        for folder in location.default:
            shutil.rmtree(home / folder, ignore_errors=True)
    catalog.refresh()
    catalog.index()
    assert {it.agent for it in catalog.sessions()} == agents
    kept = str(archive_path(catalog.home))
    with opened_below(kept) as opened:
        done = catalog.refresh()
    assert (done.changed, done.files_opened) == (0, 0)
    assert {Path(path).name for path in opened} <= {FOLDER_FILE}
    grown = next(it for it in catalog.sessions() if it.agent == "codex").paths[0]
    with grown.open("ab") as file:
        file.write(b"{}\n")
    assert catalog.refresh().changed == 1


@pytest.mark.parametrize("folder", ["", f"{ONE}/subagents"], ids=["beside", "below"])
def test_a_subagent_archived_later_than_its_session_is_counted(home: Path, catalog: Catalog, folder: str) -> None:
    main = claude_file(home, ONE, [user(1, "go", ONE), assistant(2, "one", ONE)])
    archive_all(catalog.home)
    main.unlink()
    assert catalog.total().responses == 1
    agent = main.parent / folder / "agent-a1.jsonl"
    agent.parent.mkdir(parents=True, exist_ok=True)
    for number in (3, 4):
        with agent.open("a") as file:
            file.write(json.dumps(assistant(number, "a", ONE)) + "\n")
        archive_all(catalog.home)
        catalog.refresh()
        assert catalog.total().responses == number - 1


def test_only_the_bytes_of_a_new_line_are_read_from_a_long_file(home: Path, catalog: Catalog) -> None:
    long = [assistant(number, "word " * 400, ONE) for number in range(1, 800)]
    path = claude_file(home, ONE, long)
    fill(home / ".claude", 1)
    catalog.refresh()
    assert path.stat().st_size > 1_500_000
    line = [assistant(800, "one more", ONE)]
    claude_file(home, ONE, line)
    done = catalog.refresh()
    assert (done.changed, done.files_opened) == (1, 2)
    assert done.bytes_read <= len(json.dumps(line)) + 10
    summary = catalog.summary(ONE)
    assert summary and summary.turns == 800


def long_session(home: Path, megabytes: int) -> Path:
    text = "word" + "." * 22_000
    lines = [user(1, "one long task", ONE)]
    for number in range(2, 2 + megabytes * 90, 2):
        lines += tool(number, ONE, "Bash", {"command": f"run {number}"}, text)
    at = [{**line, "parentUuid": before["uuid"]} for before, line in pairwise(lines)]
    return claude_file(home, ONE, [lines[0], *at])


def test_indexing_a_new_line_of_a_long_session_reads_few_bytes(home: Path, catalog: Catalog) -> None:
    path = long_session(home, 50)
    assert path.stat().st_size > 45e6
    catalog.index()
    number = 4600
    for what in (
        [user(number, "and the zebra", ONE)],
        [assistant(number + 1, "zebra of mine", ONE)],
        tool(number + 2, ONE, "Bash", {"command": "zebra"}, "refused", failed=True),
    ):
        claude_file(home, ONE, what)
        before = (foreign.work.files, foreign.work.bytes)
        catalog.refresh()
        assert catalog.index()
        assert len(catalog.sessions()) == 1
        assert foreign.work.bytes - before[1] < 200_000, what
        assert foreign.work.files - before[0] < 20
    with made_anew(catalog.home, home / "other") as anew:
        assert all_of(catalog, ["zebra", "refused"]) == all_of(anew, ["zebra", "refused"])
    assert len(catalog.search("zebra")) == 3


@pytest.mark.parametrize("seed", range(4))
def test_files_read_in_pieces_give_the_same_catalog_as_files_read_at_once(
    home: Path, tmp_path: Path, seed: int
) -> None:
    """Cut anywhere, also within a line, and read in between."""
    rng = random.Random(seed)
    made = tmp_path / "made"
    fill(made, 0.3, seed)
    whole = {path: path.read_bytes() for path in sorted(made.rglob("*.jsonl"))}
    cuts = {path: [*sorted(rng.randrange(len(data)) for _ in range(4)), len(data)] for path, data in whole.items()}
    catalog = Catalog.open(home / ".agent-logger")
    for step in range(5):
        for path, data in whole.items():
            target = home / ".claude" / path.relative_to(made)
            target.parent.mkdir(parents=True, exist_ok=True)
            with target.open("ab") as file:
                file.write(data[cuts[path][step - 1] if step else 0 : cuts[path][step]])
        catalog.refresh()
        if step % 2:
            catalog.index()
    assert all_of(catalog) == all_of(made_anew(catalog.home, tmp_path / "anew"))


def test_a_rewritten_or_truncated_file_is_read_again(home: Path, catalog: Catalog) -> None:
    path = claude_file(home, ONE, [assistant(number, "one", ONE) for number in range(1, 9)])
    assert catalog.total().responses == 8
    lines = path.read_bytes().split(b"\n")
    path.write_bytes(b"\n".join(lines[:3]) + b"\n")
    catalog.refresh()
    assert catalog.total().responses == 3
    path.write_bytes(b"")
    claude_file(home, ONE, [assistant(number, "two", ONE) for number in range(20, 40)])
    catalog.refresh()
    assert {row.message_id for row in catalog.ledger()} == {f"msg_01{number:022d}" for number in range(20, 40)}


@pytest.mark.parametrize("folder", ["", f"{ONE}/subagents"], ids=["beside", "below"])
def test_turns_of_a_truncated_or_deleted_subagent_file_are_not_counted(
    home: Path, catalog: Catalog, folder: str
) -> None:
    main = claude_file(home, ONE, [user(1, "go", ONE), assistant(2, "one", ONE)])
    agent = main.parent / folder / "agent-a1.jsonl"
    agent.parent.mkdir(parents=True, exist_ok=True)
    lines = [json.dumps(it) for it in (user(3, "look", ONE), assistant(4, "a", ONE), assistant(5, "b", ONE))]
    agent.write_text("\n".join(lines) + "\n")
    assert catalog.total().responses == 3
    agent.write_text("\n".join(lines[:2]) + "\n")
    catalog.refresh()
    assert catalog.total().responses == 2
    agent.unlink()
    claude_file(home, ONE, [assistant(6, "two", ONE)])
    catalog.refresh()
    assert {it.thread for it in catalog.ledger()} == {"main"}


def test_tool_usage_follows_the_current_content_of_the_session(home: Path, catalog: Catalog) -> None:
    text, (call, _) = assistant(2, "one", ONE, stop_reason=None), tool(2, ONE, "Bash", {}, "")
    path = claude_file(home, ONE, [user(1, "go", ONE), text])
    cut = path.read_bytes()
    claude_file(home, ONE, [call])
    assert list(catalog.usage("tool")) == ["Bash"]
    claude_file(home, TWO, [user(1, "go", TWO), text | {"sessionId": TWO}])  # a fork that ends amid the turn
    catalog.refresh()
    assert list(catalog.usage("tool")) == ["Bash"]
    path.write_bytes(cut)
    catalog.refresh()
    assert list(catalog.usage("tool")) == [None]


def test_the_version_increases_only_after_a_change(home: Path, catalog: Catalog) -> None:
    claude_file(home, ONE, [assistant(1, "one", ONE)])
    catalog.sessions()
    version = catalog.version
    catalog.refresh()
    catalog.sessions()
    assert catalog.version == version
    claude_file(home, ONE, [assistant(2, "two", ONE)])
    with Catalog.open(catalog.home) as other:
        other.refresh()
    assert catalog.version > version


# ---------------------------------------------------------------- questions


FILTERS: list[tuple[Filter, set[str]]] = [
    (Filter(), {ONE, TWO}),
    (Filter(project="SHOP"), {ONE}),
    (Filter(model="haiku"), {ONE, TWO}),
    (Filter(model="opus"), set()),
    (Filter(title="timer"), {ONE}),
    (Filter(agent="codex"), set()),
    (Filter(agent="claude-code"), {ONE, TWO}),
    (Filter(agent="Claude"), {ONE, TWO}),
    (Filter(since=datetime(2026, 11, 15, 0, 1, tzinfo=UTC)), {TWO}),
    (Filter(until=datetime(2026, 11, 15, 0, 1, tzinfo=UTC)), {ONE}),
    (Filter(min_cost_usd=0.0007), {TWO}),
    (Filter(witness="wire"), set()),
    (Filter(witness="transcript"), {ONE, TWO}),
    (Filter(project="%"), set()),
    (Filter(title="' OR 1=1 --"), set()),
]


@pytest.mark.parametrize(("wanted", "found"), FILTERS)
def test_sessions_can_be_filtered(home: Path, catalog: Catalog, wanted: Filter, found: set[str]) -> None:
    claude_file(home, ONE, [user(1, "Fix the Timer", ONE), assistant(2, "yes", ONE)])
    claude_file(
        home,
        TWO,
        [{**user(100, "Größe", TWO), "cwd": "/p/other"}, {**assistant(101, "no", TWO), "cwd": "/p/other"}],
    )
    assert {it.id for it in catalog.sessions(wanted)} == found
    assert catalog.count(wanted) == len(found)


@pytest.mark.parametrize(("agent", "sessions"), [("claude-code", 1), ("claude", 1), ("codex", 0)])
def test_usage_knows_an_agent_by_each_of_its_names(home: Path, catalog: Catalog, agent: str, sessions: int) -> None:
    claude_file(home, ONE, [user(1, "Fix the Timer", ONE), assistant(2, "yes", ONE)])
    assert len(catalog.usage("session", Filter(agent=agent))) == sessions


def test_sessions_can_be_sorted_and_paged(home: Path, catalog: Catalog) -> None:
    fill(home / ".claude", 1)
    keys: dict[Order, Callable[..., float]] = {
        "cost": lambda it: it.cost.nano_usd or 0,
        "turns": lambda it: it.turns,
        "exchanges": lambda it: it.exchanges,
        "started": lambda it: it.started.timestamp(),
        "active": lambda it: it.ended.timestamp(),
    }
    for order, key in keys.items():
        values = [key(it) for it in catalog.sessions(order=order)]
        assert values == sorted(values, reverse=True), order
    every = [it.id for it in catalog.sessions()]
    assert [it.id for it in catalog.sessions(limit=3, offset=2)] == every[2:5]


def test_a_session_is_resolved_by_id_prefix_or_path(home: Path, catalog: Catalog) -> None:
    path = claude_file(home, ONE, [user(1, "one", ONE)])
    claude_file(home, TWO, [user(1, "two", TWO)])
    assert catalog.resolve(ONE) == catalog.resolve("00000001") == catalog.resolve(str(path)) == [ONE]
    assert sorted(catalog.resolve("0000000")) == [ONE, TWO]
    assert catalog.resolve("") == catalog.resolve("%") == catalog.resolve("nobody") == []
    session = catalog.session("00000001")
    assert session and session.id == ONE
    assert catalog.session("0000000") is None


def test_a_session_with_a_recent_last_event_is_live(home: Path, catalog: Catalog) -> None:
    now = datetime.now(UTC)
    claude_file(home, ONE, [user(1, "a copy of an old file", ONE)])
    claude_file(home, TWO, [{**user(1, "two", TWO), "timestamp": now.isoformat()}])
    assert [it.id for it in catalog.sessions(Filter(live=True))] == [TWO]


def test_readers_are_not_blocked_by_a_writer(home: Path, catalog: Catalog) -> None:
    fill(home / ".claude", 1)
    catalog.index()
    ended, failures = threading.Event(), []

    def ask() -> None:
        with Catalog.open(catalog.home) as other:
            while not ended.is_set():
                try:
                    assert other.sessions(limit=3)
                    other.search("and")
                except Exception as error:
                    failures.append(error)

    readers = [threading.Thread(target=ask) for _ in range(2)]
    for it in readers:
        it.start()
    for number in range(20):
        claude_file(home, ONE, [assistant(number + 1, "word " * 50, ONE)])
        catalog.refresh()
        catalog.index()
    ended.set()
    for it in readers:
        it.join()
    assert not failures
    assert catalog.problem is None


def test_totals_match_the_corpus_after_each_added_file(home: Path, catalog: Catalog) -> None:
    sessions = fill(home / "elsewhere", 1, 7)
    told = [it.message_id for session in sessions for it in session.responses]
    assert len(set(told)) < len(told), "there are forks, and they come later than what they copy"
    for count, session in enumerate(sessions, 1):
        write(session, home / ".claude")
        catalog.refresh()
        assert catalog.total().usage == truth(sessions[:count])


def test_files_with_names_that_are_not_unicode_are_listed(home: Path, catalog: Catalog) -> None:
    folder = os.fsencode(home / ".claude" / "projects") + b"/-p-\xff\xfe"
    os.makedirs(folder)
    path = folder + b"/" + ONE.encode() + b".jsonl"
    Path(os.fsdecode(path)).write_text(json.dumps({**assistant(1, "one", ONE), "cwd": "/p/\ud800"}) + "\n")
    (it,) = catalog.sessions()
    assert [os.fsencode(found) for found in it.paths] == [path]
    assert catalog.session(ONE)
    assert catalog.refresh().files_opened == 0
    assert catalog.resolve(os.fsdecode(path)) == [ONE]
    assert [hit.session for hit in catalog.search("one")] == [ONE]


def test_the_cost_reported_by_the_client_is_separate_from_the_computed_cost(home: Path, catalog: Catalog) -> None:
    claude_file(home, ONE, [assistant(1, "one", ONE)])
    claude_file(home, ONE, [{"type": "cost-state", "sessionId": ONE, "totalCostUSD": 1.25}])
    summary = catalog.summary(ONE)
    assert summary
    assert summary.reported_cost_usd == 1.25
    assert summary.cost.usd != 1.25


def test_the_first_list_has_the_same_order_as_later_lists(home: Path, catalog: Catalog) -> None:
    """Whose file was written to just now, though what it tells of was long ago, is not the newest."""
    claude_file(home, TWO, [assistant(50, "new", TWO)])
    claude_file(home, ONE, [user(1, "old", ONE)])
    os.utime(home / ".claude" / "projects" / "-p-shop" / f"{ONE}.jsonl", (2_000_000_000, 2_000_000_000))
    assert [it.id for it in catalog.sessions()] == [it.id for it in catalog.sessions()] == [TWO, ONE]
    assert [it.id for it in catalog.sessions(limit=1)] == [TWO]


def test_a_home_with_a_name_that_is_not_utf8_is_supported(home: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    odd = Path(os.fsdecode(os.fsencode(home) + b"-\xff\xfe"))
    monkeypatch.setenv("HOME", str(odd))
    main = claude_file(odd, ONE, [user(1, "go", ONE)])
    agents = main.with_suffix("") / "subagents"
    agents.mkdir(parents=True)
    line = {**assistant(2, "zebra", ONE), "isSidechain": True, "agentId": "a1"}
    (agents / "agent-a1.jsonl").write_text(json.dumps(line) + "\n")
    with Catalog.open(odd / ".agent-logger") as catalog:
        session = catalog.session(ONE)
        assert session and [turn.thread for turn in session.turns] == ["agent:a1"]
        assert catalog.search("zebra") and catalog.problem is None
