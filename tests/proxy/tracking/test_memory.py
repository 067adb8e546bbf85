"""What is known survives: a restart, the loss of the table, too little memory."""

import sqlite3
from collections.abc import Callable, Iterator
from contextlib import closing
from functools import partial
from itertools import count
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from agent_logger.model.records import Fork, Record, Request, Response, WireStart, decode
from agent_logger.proxy.tracking.memory import Memory
from agent_logger.proxy.tracking.table import VERSION, Table, TableLost
from tests.proxy.tracking.conversation import Recorder, history

seconds: Iterator[int] = count(1)


def commit(known: Memory) -> None:
    known.commit(float(next(seconds) * 10), at_once=True)


def open_known(recorder: Recorder, path: Path, **more: Any) -> Memory:
    """A table, as whoever starts finds it."""
    known = Memory(Table(path), recorder.all_logs, **more)
    commit(known)
    return known


def content(path: Path) -> tuple[list[Any], list[Any]]:
    with closing(sqlite3.connect(path)) as connection:
        return tuple(  # type: ignore[return-value] # there are two
            sorted(connection.execute(f"SELECT * FROM {table}").fetchall(), key=repr)
            for table in ("sessions", "fingerprints")
        )


def talk_much(recorder: Recorder) -> None:
    recorder.talk("a", "A", session="s", user_agent="claude-cli/2")
    recorder.talk("a", "A", "b", "B", session="s")
    recorder.talk("a", "A", "c", "C", session="s")
    recorder.end(recorder.ask(history("a", "A", "b", "B", "d"), "s"), status=500)
    recorder.talk("a", "A", "b", "B", "d", "D", session="s")
    recorder.talk("summary", "ok", "e", "E", session="s")
    recorder.talk("x", "X")
    recorder.talk("x", "X")
    recorder.talk("x", "X", "y", "Y")
    recorder.end(recorder.request("/v1/messages/count_tokens", {}, {"x-session-id": "s"}))
    recorder.talk("x", "X", "y", "Y", "z", "Z")
    recorder.ask(history("open"), "t")


def test_the_table_has_the_columns_of_the_specification(tmp_path: Path) -> None:
    recorder = Recorder()
    known = open_known(recorder, tmp_path / "sessions.db")
    recorder.start(known)
    first = recorder.talk("a", "A", session="s", user_agent="claude-cli/2")
    recorder.talk("a", "A", "b", "B", session="s")
    fork = recorder.talk("a", "A", "c", "C", session="s")
    commit(known)
    with closing(sqlite3.connect(tmp_path / "sessions.db")) as connection:
        connection.row_factory = sqlite3.Row
        one, two = map(dict, connection.execute("SELECT * FROM sessions ORDER BY id"))
        states = [dict(row) for row in connection.execute("SELECT * FROM fingerprints WHERE seq = 2 ORDER BY part")]
        assert connection.execute("PRAGMA journal_mode").fetchone()[0] == "wal"
    assert (one["id"], one["provider"], one["upstream"]) == (first.session, "anthropic", "api.anthropic.com")
    assert (one["created_at"], one["last_activity"]) == (
        "2026-11-14T23:46:40.000Z",
        "2026-11-14T23:46:43.000Z",
    )
    assert (one["last_seq"], one["file_path"]) == (2, f"anthropic/{first.session}.jsonl")
    assert one["last_fingerprint"] == states[1]["fingerprint"]
    assert (one["client_id"], one["id_source"], one["id_confidence"]) == ("s", "x-session-id", "certain")
    assert (one["agent"], one["root"], one["parent_session"]) == ("claude-code", first.session, None)
    assert (two["id"], two["root"], two["parent_session"], two["from_seq"]) == (
        fork.session,
        first.session,
        first.session,
        1,
    )
    assert [(it["part"], it["outcome"], it["thread"], it["kind"]) for it in states] == [
        ("request", "complete", "main", "main"),
        ("response", "complete", "main", "main"),
    ]
    assert (tmp_path / "sessions.db").stat().st_mode & 0o777 == 0o600


def test_a_restart_continues_sessions_in_their_logs(tmp_path: Path) -> None:
    recorder = Recorder()
    recorder.start(known := open_known(recorder, tmp_path / "sessions.db"))
    named = recorder.talk("a", "A", session="s")
    unnamed = recorder.talk("b", "B")
    failed = recorder.ask(history("c"), "t")
    recorder.end(failed, status=529)
    commit(known)
    known.close()
    recorder.start(open_known(recorder, tmp_path / "sessions.db"))
    assert recorder.talk("a", "A", "a2", "A2", session="s").session == named.session
    assert recorder.talk("b", "B", "b2", "B2").session == unnamed.session
    assert recorder.talk("c", "C", session="t").retry_of == failed.seq
    fork = recorder.talk("a", "A", "a3", "A3", session="s")
    assert fork.session == f"{named.session}_b1"


class DamagedTable(Table):
    """A table of which a part cannot be read, while the rest can be read and written."""

    is_damaged = False
    times_created = 0

    def roots_of_client(self, client: tuple[str, str]) -> list[str]:
        if self.is_damaged:
            raise TableLost("the database disk image is malformed")
        return super().roots_of_client(client)

    def create(self) -> None:
        self.times_created += 1
        self.is_damaged = False
        super().create()


def test_a_table_that_cannot_be_read_is_rebuilt_even_if_it_can_be_written(tmp_path: Path) -> None:
    recorder = Recorder()
    table = DamagedTable(tmp_path / "sessions.db")
    recorder.start(known := Memory(table, recorder.all_logs, 2))
    first = recorder.talk("a", "A", session="s")
    for number in range(10):
        recorder.talk(f"x{number}", "X", session=f"t{number}")
        commit(known)
    table.is_damaged, before = True, table.times_created
    recorder.talk("b", "B", session="u")
    for _ in range(5):
        commit(known)
    assert table.times_created == before + 1
    assert recorder.talk("a", "A", "a2", "A2", session="s").session == first.session


def test_sub_agents_without_an_id_are_recognized_after_a_restart(tmp_path: Path) -> None:
    """One that was answered by its history, one that has just been started by the tails of the logs."""
    recorder = Recorder()
    recorder.start(known := open_known(recorder, tmp_path / "sessions.db"))
    starts = [{"type": "tool_use", "id": f"toolu_{it}", "name": "Task", "input": {"prompt": f"Do {it}"}} for it in "ab"]
    ask = partial(recorder.ask, session="s", user_agent="claude-cli/2.1.100")
    main = ask(history("q"))
    recorder.end(main, message={"role": "assistant", "content": starts})
    first = ask(history("Do a"))
    recorder.answer(first, "On it.")
    commit(known)
    known.close()
    recorder.start(open_known(recorder, tmp_path / "sessions.db"))
    again = ask(history("Do a", "On it.", "go on"))
    assert (again.thread, again.link, again.session) == ("agent:toolu_a", "continuation", main.session)
    assert main.session
    for line in recorder.logs["anthropic", main.session]:
        record = decode(line, "wire")
        assert isinstance(record, Record)
        recorder.tracker.learn("anthropic", main.session, record)
    assert ask(history("Do b")).thread == "agent:toolu_b"
    on = ask([*history("q"), {"role": "assistant", "content": starts}, *history("results")])
    assert (on.thread, on.link) == ("main", "continuation")


def test_a_call_open_at_a_crash_can_be_answered_after_a_restart(tmp_path: Path) -> None:
    recorder = Recorder()
    recorder.start(known := open_known(recorder, tmp_path / "sessions.db"))
    recorder.talk("a", "A", session="s")
    commit(known)
    asked = recorder.ask(history("a", "A", "b"), "s")  # in the log, and not in the table
    assert asked.session
    known.close()
    recorder.start(open_known(recorder, tmp_path / "sessions.db"))
    for line in recorder.logs["anthropic", asked.session] * 2:
        record = decode(line, "wire")
        assert isinstance(record, (WireStart, Request, Response, Fork))
        recorder.tracker.learn("anthropic", asked.session, record)
    resumed = recorder.tracker.resumed(asked.session, asked.seq, method="POST", path="/v1/messages")
    after = recorder.answer(resumed, "B")
    assert after
    more = recorder.talk("a", "A", "b", "B", "c", "C", session="s")
    assert (more.link, more.session, more.seq) == ("continuation", asked.session, 3)


def test_learning_a_log_twice_changes_nothing(tmp_path: Path) -> None:
    recorder = Recorder()
    recorder.start(known := open_known(recorder, tmp_path / "sessions.db"))
    talk_much(recorder)
    commit(known)

    def counts() -> list[Any]:
        branches = known.index.branches.values()
        states = [len(rows) for root in known.index.roots.values() for rows in root.states.values()]
        return [
            [(it.name, it.last_seq, it.last_activity, it.active, len(it.rows)) for it in branches],
            states,
        ]

    before = counts()
    for provider, name, lines in recorder.all_logs():
        for line in lines:
            record = decode(line, "wire")
            assert isinstance(record, Record)
            recorder.tracker.learn(provider, name, record)
    assert counts() == before


def damage_delete(path: Path) -> None:
    path.unlink()


def damage_zero(path: Path) -> None:
    path.write_bytes(bytes(path.stat().st_size))


def damage_truncate(path: Path) -> None:
    path.write_bytes(b"")


def damage_middle(path: Path) -> None:
    data = bytearray(path.read_bytes())
    data[100:] = b"x" * (len(data) - 100)
    path.write_bytes(data)


def set_version(version: int) -> Callable[[Path], None]:
    def put(path: Path) -> None:
        path.unlink()
        for ending in ("-wal", "-shm"):
            path.with_name(path.name + ending).unlink(missing_ok=True)
        with closing(sqlite3.connect(path)) as connection:
            connection.executescript(f"CREATE TABLE sessions (other); PRAGMA user_version = {version};")

    return put


DAMAGES = [
    pytest.param(damage_delete, id="deleted"),
    pytest.param(damage_zero, id="zeroed"),
    pytest.param(damage_truncate, id="emptied"),
    pytest.param(damage_middle, id="overwritten"),
    pytest.param(set_version(VERSION - 1), id="older"),
    pytest.param(set_version(VERSION + 1), id="newer"),
]


@pytest.mark.parametrize("most_rows", [100_000, 2], ids=["all in memory", "little in memory"])
@pytest.mark.parametrize("damage", [it for it in DAMAGES if it.id != "overwritten"])  # nobody reads those pages again
def test_a_table_lost_while_running_is_recreated(
    tmp_path: Path, damage: Callable[[Path], None], most_rows: int
) -> None:
    path = tmp_path / "sessions.db"
    recorder = Recorder()
    recorder.start(known := open_known(recorder, path, most_rows=most_rows))
    talk_much(recorder)
    commit(known)
    before = content(path)
    damage(path)
    now = 10_000.0
    recorder.talk("meanwhile", "M", session="m")
    for _ in range(20):  # ten seconds
        now += 0.5
        known.commit(now)
    one, two = content(path)
    assert len(one) == len(before[0]) + 1
    assert set(before[1]) < set(two)
    assert known.is_committed
    assert recorder.talk("meanwhile", "M", "n", "N", session="m").link == "continuation"
    assert recorder.talk("summary", "ok", "e", "E", "f", "F", session="s").link == "continuation"


@pytest.mark.parametrize("damage", DAMAGES)
def test_a_table_lost_between_two_runs_is_rebuilt_from_the_logs(tmp_path: Path, damage: Callable[[Path], None]) -> None:
    path = tmp_path / "sessions.db"
    recorder = Recorder()
    recorder.start(known := open_known(recorder, path))
    talk_much(recorder)
    commit(known)
    known.close()
    before = content(path)
    damage(path)
    open_known(recorder, path).close()
    assert content(path) == before


def test_an_unfinished_table_is_rebuilt(tmp_path: Path) -> None:
    path = tmp_path / "sessions.db"
    recorder = Recorder()
    talk_much(recorder)
    Table(path).create()  # and the power went
    recorder.start(open_known(recorder, path))
    assert recorder.talk("summary", "ok", "e", "E", "f", "F", session="s").link == "continuation"


def test_a_locked_table_delays_no_call(tmp_path: Path) -> None:
    path = tmp_path / "sessions.db"
    recorder = Recorder()
    recorder.start(known := open_known(recorder, path))
    recorder.talk("a", "A", session="s")
    commit(known)
    now = 10_000.0
    with closing(sqlite3.connect(path, isolation_level=None)) as other:
        other.execute("BEGIN EXCLUSIVE")
        for number in range(60):  # thirty seconds
            now += 0.5
            recorder.talk(f"m{number}", "M", session=f"m{number}")
            known.commit(now)
        waits = not known.is_committed
        assert waits
        assert recorder.talk("a", "A", "b", "B", session="s").link == "continuation"
    known.commit(now + 0.5)
    healed: bool = known.is_committed
    assert healed
    known.close()
    assert len(content(path)[0]) == 61
    rebuilt = tmp_path / "rebuilt.db"
    open_known(recorder, rebuilt).close()
    assert content(rebuilt) == content(path)


def test_tracking_works_without_a_writable_folder(tmp_path: Path) -> None:
    recorder = Recorder()
    recorder.start(known := open_known(recorder, tmp_path / "missing" / "sessions.db"))
    assert recorder.talk("a", "A", session="s").begins
    commit(known)
    assert recorder.talk("a", "A", "b", "B", session="s").link == "continuation"


def test_memory_is_bounded_and_evicted_sessions_are_found_again(tmp_path: Path) -> None:
    recorder = Recorder()
    recorder.start(known := open_known(recorder, tmp_path / "sessions.db", most_rows=50))
    sessions = {}
    for number in range(100):
        sessions[number] = recorder.talk(f"q{number}", "A", session=f"s{number}" if number % 2 else None).session
        commit(known)
        assert known.index.weight <= 53
    for number in (0, 1, 50, 51, 99):
        more = recorder.talk(f"q{number}", "A", "b", "B", session=f"s{number}" if number % 2 else None)
        assert (more.link, more.session) == ("continuation", sessions[number])


def test_calls_continue_both_logs_of_a_session_that_was_started_twice(tmp_path: Path) -> None:
    recorder = Recorder()
    old = recorder.talk("a", "A", session="s")
    recorder.start()  # knows nothing yet
    new = recorder.talk("a", "A", "b", "B", session="s")
    assert new.session != old.session
    recorder.start(open_known(recorder, tmp_path / "sessions.db"))
    assert recorder.talk("a", "A", "b", "B", "c", "C", session="s").session == new.session
    assert recorder.talk("a", "A", "d", "D", session="s").session == old.session


def test_memory_is_bounded_while_nothing_can_be_written(tmp_path: Path) -> None:
    path = tmp_path / "sessions.db"
    recorder = Recorder()
    recorder.start(known := open_known(recorder, path, most_rows=50))
    with closing(sqlite3.connect(path, isolation_level=None)) as other:
        other.execute("BEGIN EXCLUSIVE")
        for number in range(200):
            recorder.talk(f"q{number}", "A", session=f"s{number}")
            commit(known)
            assert known.index.weight <= 210
    for _ in range(3):
        commit(known)
    known.close()
    assert len(content(path)[0]) == 200
    recorder.start(open_known(recorder, path))
    assert recorder.talk("q0", "A", "b", "B", session="s0").link == "continuation"


# ---------------------------------------------------------------- random conversations

STEP = st.tuples(
    st.sampled_from(["new", "on", "on", "on", "earlier", "again", "rewrite", "side", "restart", "lose", "commit"]),
    st.integers(0, 7),
    st.sampled_from(["answer", "answer", "answer", "fail", "cut", "open"]),
)


class Run:
    """Some conversations, step by step: what each call was decided to be."""

    def __init__(self, path: Path, most_rows: int | None) -> None:
        self.path, self.most_rows = path, most_rows
        self.recorder = Recorder()
        self.talks: list[tuple[str | None, list[str]]] = []
        self.decided: list[Any] = []
        self.open()

    def open(self) -> None:
        if self.most_rows is None:
            self.known = Memory()
        else:
            self.known = Memory(Table(self.path), self.recorder.all_logs, self.most_rows)
            while not self.known._is_whole:
                commit(self.known)
        self.recorder.start(self.known)

    def step(self, what: str, which: int, outcome: str, number: int) -> None:
        if what in ("restart", "lose", "commit"):
            if self.most_rows is not None:
                commit(self.known)
                if what != "commit":
                    self.known.close()
                if what == "lose":
                    self.path.unlink()
                if what != "commit":
                    self.open()
            return
        name = f"s{which % 3}" if which % 2 else None
        texts = ["hello"]
        if self.talks and what != "new":
            name, known = self.talks[which % len(self.talks)]
            texts = {
                "on": [*known, f"q{number}"],
                "earlier": [*known[: max(2, len(known) - 2)], f"q{number}"],
                "again": known[:-1] or ["hello"],
                "rewrite": ["summary", f"ok {number}", f"q{number}"],
                "side": ["title?"],
            }[what]
        body: dict[str, Any] = {"tools": []} if what == "side" else {}
        it = self.recorder.ask(history(*texts), name, body=body)
        fork = it.fork and (it.fork.parent, it.fork.from_seq)
        self.decided.append((it.session, it.seq, it.kind, it.link, fork, it.retry_of, it.identity, it.begins))
        if outcome == "answer":
            self.recorder.answer(it, f"a{number % 3}")
            self.talks.append((name, [*texts, f"a{number % 3}"]))
        elif outcome != "open":
            self.recorder.end(it, status=500 if outcome == "fail" else 200, complete=outcome == "fail")


@settings(max_examples=60, deadline=None)
@given(st.lists(STEP, max_size=25))
def test_a_rebuilt_table_equals_an_incrementally_written_table(
    steps: list[tuple[str, int, str]],
) -> None:
    with TemporaryDirectory() as folder:
        runs = [Run(Path(folder) / f"{most}.db", most) for most in (None, 100_000, 5)]
        for run in runs:
            for number, (what, which, outcome) in enumerate(steps):
                run.step(what, which, outcome, number)
            if run.most_rows is not None:
                commit(run.known)
                run.known.close()
        memory, table, little = runs
        assert table.decided == memory.decided
        assert little.decided == memory.decided
        rebuilt = Path(folder) / "rebuilt.db"
        open_known(memory.recorder, rebuilt).close()
        assert content(rebuilt) == content(table.path) == content(little.path)
