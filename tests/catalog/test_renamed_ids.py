"""Session ids are names: renamed at random, in files, folders and logs, they change no tree and no sum."""

import json
import os
import re
import shutil
import sqlite3
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from random import Random
from typing import Any

import msgspec
import pytest
from hypothesis import HealthCheck, example, given, settings
from hypothesis import strategies as st

from agent_logger.catalog.catalog import Catalog
from agent_logger.home.facts import register_log_folder
from agent_logger.model.records import Fork, Record
from agent_logger.model.session import Session
from tests.agents.claude_code.claude_files import Fixture
from tests.agents.foreign import DATA
from tests.catalog.catalogs import ID, assistant, claude_file, user
from tests.catalog.witnesses import printed, timed
from tests.journal.wire_logs import write
from tests.logs.wire_log.wire_records import talks, ts

Prepare = Callable[[Path], None]
FORKS = "claude-cli/2.1.325/forks_go_on"
# Of that fixture, by the order in which the sessions began: which was forked from which, and after how many calls.
FORKED = {1: (0, 1), 2: (1, 2), 3: (0, 2)}


def client_files(scenario: str, folder: str) -> Prepare:
    def prepare(home: Path) -> None:
        shutil.copytree(DATA / scenario / "home" / folder, home / folder, dirs_exist_ok=True)

    return prepare


def wire_logs(scenario: str, *, forks: Mapping[int, tuple[int, int]] = {}) -> Prepare:
    """As the proxy would have written them."""

    def prepare(home: Path) -> None:
        spoken = [it for it in talks() if it.name == scenario and it.client_id]
        for number, it in enumerate(spoken):
            start, *records = timed(it)
            fork: list[Record] = []
            if number in forks:
                parent, seq = forks[number]
                name = f"20261115-0900{parent:02}-{parent:04x}"
                fork = [Fork(ts=ts(0), from_seq=seq, parent_session=name, reason="message_history_diverged")]
            log = f"20261115-0900{number:02}-{number:04x}"
            named = msgspec.structs.replace(start, session=log)
            write(home / "logs/anthropic", log, [named, *fork, *records])
        register_log_folder(home / ".agent-logger", home / "logs")

    return prepare


def sdk_logs(scenario: str) -> Prepare:
    def prepare(home: Path) -> None:
        folder = home / ".agent-logger/sessions"
        folder.mkdir(parents=True)
        list(printed(Fixture(DATA / scenario), folder))
        register_log_folder(home / ".agent-logger", folder)

    return prepare


def without(*began: int) -> Prepare:
    """The transcripts of sessions of `FORKS` are gone."""

    def prepare(home: Path) -> None:
        spoken = [it for it in talks() if it.name == FORKS and it.client_id]
        for number in began:
            next(home.glob(f".claude/projects/*/{spoken[number].client_id}.jsonl")).unlink()

    return prepare


def without_main_files(home: Path) -> None:
    for path in home.glob(".claude/projects/*/*.jsonl"):
        path.unlink()


def typed_forks(home: Path) -> None:
    """As the client leaves them when it keeps the terminal: copies alone stand before what is new, with their times."""
    trunk, fork, last = (ID.format(number) for number in (3, 2, 1))
    note = {"type": "last-prompt", "leafUuid": "u", "lastPrompt": "x"}
    mode = {"type": "mode", "mode": "normal"}
    copied = [
        user(1, "one", trunk),
        assistant(2, "a", trunk),
        user(3, "two", trunk),
        assistant(4, "b", trunk),
    ]
    claude_file(home, trunk, [mode, *copied[:2], note, *copied[2:], note])
    claude_file(home, trunk, [user(9, "trunk", trunk), assistant(10, "c", trunk), note])
    for name, at in ((fork, 5), (last, 7)):
        own = [user(at, name, name), assistant(at + 1, "d", name), note]
        claude_file(home, name, [mode, *({**it, "sessionId": name} for it in copied), *own])


def nothing_to_go_by(home: Path) -> None:
    """Two sessions that say the same in everything but one answer, at the same times."""
    for number in (1, 2):
        name = ID.format(number)
        lines = [
            user(1, "one", "x"),
            assistant(2, "a", "x"),
            user(3, "two", "x"),
            assistant(3 + number, "b", "x"),
        ]
        lines[-1]["timestamp"] = lines[-2]["timestamp"]
        claude_file(home, name, [{**it, "sessionId": name} for it in lines])


def ids_given_again(home: Path) -> None:
    """Answers of a server that gives its ids again after a restart: two forks have one, a third copies the latter."""
    trunk, one, two, last = (ID.format(number) for number in (4, 3, 2, 1))
    begun = [user(1, "one", trunk), assistant(2, "a", trunk)]
    first = [user(11, "b", one), assistant(12, "b", one, id="local-7")]
    second = [user(21, "c", two), assistant(22, "c", two, id="local-7")]
    own = [user(31, "d", last), assistant(32, "d", last)]
    files = {trunk: begun, one: begun + first, two: begun + second, last: begun + second + own}
    for name, lines in files.items():
        claude_file(home, name, [{**line, "sessionId": name} for line in lines])


def opencode_database(home: Path) -> None:
    folder = home / ".local/share/opencode"
    folder.mkdir(parents=True)
    shutil.copy(DATA / "opencode/1.18.33/agents_fork/opencode.sql", folder)


CORPORA: Mapping[str, Sequence[Prepare]] = {
    "forks": [client_files(FORKS, ".claude")],
    "forks and the proxy": [client_files(FORKS, ".claude"), wire_logs(FORKS, forks=FORKED)],
    "forks and the proxy, which saw no fork": [client_files(FORKS, ".claude"), wire_logs(FORKS)],
    "forks whose trunk is gone": [client_files(FORKS, ".claude"), without(0)],
    "forks whose trunk is gone but for the proxy": [
        client_files(FORKS, ".claude"),
        wire_logs(FORKS, forks=FORKED),
        without(0),
    ],
    "a fork is gone": [client_files(FORKS, ".claude"), without(1)],
    "the proxy alone": [wire_logs(FORKS, forks=FORKED)],
    "forks and what was printed": [client_files(FORKS, ".claude"), sdk_logs(FORKS)],
    "forks in the terminal": [typed_forks],
    "nothing to go by": [nothing_to_go_by],
    "ids that are given again": [ids_given_again],
    "a chain of 2.1.325": [client_files("claude-cli/2.1.325/resume_chain", ".claude")],
    "a chain of 2.1.197": [client_files("claude-cli/2.1.197/resume_chain", ".claude")],
    "a chain of 2.1.4": [client_files("claude-cli/2.1.4/resume_chain", ".claude")],
    "a chain of 1.0.3": [client_files("claude-cli/1.0.3/resume_chain", ".claude")],
    "sub-agents": [
        client_files("claude-cli/2.1.325/nested_subagents", ".claude"),
        wire_logs("claude-cli/2.1.325/nested_subagents"),
        sdk_logs("claude-cli/2.1.325/nested_subagents"),
    ],
    "sub-agents whose sessions are gone": [
        client_files("claude-cli/2.1.4/resume_chain", ".claude"),
        client_files("claude-cli/2.1.325/nested_subagents", ".claude"),
        without_main_files,
    ],
    "an SDK's program": [
        client_files("claude-agent-sdk/0.2.182/client_clear", ".claude"),
        wire_logs("claude-agent-sdk/0.2.182/client_clear"),
        sdk_logs("claude-agent-sdk/0.2.182/client_clear"),
    ],
    "Codex 0.118": [client_files("codex/0.118.0/app_server", ".codex")],
    "Codex 0.166": [client_files("codex/0.166.0/tools_fork_failure", ".codex")],
    "opencode": [opencode_database],
}

_UUID = r"[0-9a-f]{8}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{12}"
_NAME = re.compile(rf"{_UUID}|\d{{8}}-\d{{6}}-[0-9a-f]{{4}}")
_IN_SQL = re.compile(r"\bses_\w+")


def ids_in(corpus: Path) -> list[str]:
    """All that sessions are called by there; a log of ours is also called by how that begins."""
    files = [it for it in corpus.rglob("*") if ".agent-logger" not in it.parts]
    found = {name for path in files for name in _NAME.findall(path.name)}
    for path in corpus.rglob("*.sql"):
        found |= set(_IN_SQL.findall(path.read_text()))
    return sorted(found)


def renamed(name: str, random: Random) -> str:
    if not re.fullmatch(_UUID, name):
        head, digits = (name[:-4], 4) if name[0] == "2" else ("ses_", len(name) - 4)
        return head + "".join(random.choice("0123456789abcdef") for _ in range(digits))
    new = [it if it == "-" else random.choice("0123456789abcdef") for it in name]
    new[14], new[19] = name[14], name[19]
    return "".join(new)


def write_renamed(corpus: Path, home: Path, names: Mapping[str, str]) -> None:
    """A copy of all files, with other names wherever these stand; but for live files, which are about to go."""
    short = {f"_{old[:8]}": f"_{new[:8]}" for old, new in names.items() if re.fullmatch(_UUID, old)}
    every = {**names, **short}
    known = re.compile("|".join(map(re.escape, every)))

    def other(text: str) -> str:
        return known.sub(lambda found: every[found[0]], text)

    for path in sorted(it for it in corpus.rglob("*") if ".live" not in it.name and it.is_file()):
        new = home / other(str(path.relative_to(corpus)))
        new.parent.mkdir(parents=True, exist_ok=True)
        text = other(path.read_text()).replace(str(corpus), str(home))
        if new.suffix == ".sql":
            with sqlite3.connect(new.with_suffix(".db")) as database:
                database.executescript(text)
            database.close()
            new = new.with_suffix(".db")
        else:
            new.write_text(text)
        os.utime(new, (1_800_000_000, 1_800_000_000))


def told_of(home: Path, names: Mapping[str, str]) -> Any:
    """Trees, sums and lists, with the names that the sessions had first."""
    first = {new: old for old, new in names.items()}
    with Catalog.open(home / ".agent-logger") as catalog:
        sessions = catalog.sessions()
        found = {
            "trees": {it.id: catalog.tree(it.id) for it in sessions},
            "sessions": {
                it.id: (
                    it.parent,
                    it.title,
                    it.models,
                    it.exchanges,
                    it.turns,
                    it.usage,
                    it.cost,
                    it.witnesses,
                )
                for it in sessions
            },
            "spent": catalog.usage("session"),
            "elsewhere": {it.id: sorted(map(repr, catalog.counted_elsewhere(it.id))) for it in sessions},
            "inherited": {it.id: _inherited(catalog.session(it.id)) for it in sessions},
            "total": catalog.total(),
        }
    text = json.dumps(msgspec.to_builtins(found), indent=1)
    text = re.compile("|".join(map(re.escape, first))).sub(lambda it: first[it[0]], text)
    return _sorted(json.loads(text))


def _inherited(session: Session | None) -> Any:
    """Where each turn counts, and what came before the fork."""
    return session and ([turn.counted_in for turn in session.turns], session.inherited)


def _sorted(found: Any) -> Any:
    """Keys are in no order, but lists are. Dollars that clients told are summed up in any order."""
    if isinstance(found, float):
        return round(found, 9)
    if isinstance(found, dict):
        return {key: _sorted(found[key]) for key in sorted(found)}
    return [_sorted(it) for it in found] if isinstance(found, list) else found


@pytest.mark.parametrize("corpus", CORPORA)
@settings(max_examples=3, suppress_health_check=[HealthCheck.function_scoped_fixture])
@example(seed=1, order=[0, 1, 2, 3])
@example(seed=1, order=[3, 2, 1, 0])
@given(seed=st.integers(0, 1 << 32), order=st.permutations(range(4)))
def test_renamed_sessions_have_the_same_trees_and_totals(
    home: Path, corpus: str, seed: int, order: Sequence[int]
) -> None:
    made, kept = home.with_name("made"), home.with_name("told.json")
    if not made.exists():
        made.mkdir()
        for prepare in CORPORA[corpus]:
            prepare(made)
        shutil.rmtree(home)  # loggers have told it where they log
    ids = ids_in(made)
    if not kept.exists():
        write_renamed(made, home, same := {it: it for it in ids})
        kept.write_text(json.dumps(told_of(home, same)))
    random = Random(seed)
    new = sorted(renamed(it, random) for it in ids)
    ordered = [new[at] for at in sorted(range(len(new)), key=lambda at: (order[at % 4], at))]
    names: dict[str, str] = {}
    for old in ids:
        fitting = next(it for it in ordered if _shape(it) == _shape(old))
        ordered.remove(fitting)
        names[old] = fitting
    shutil.rmtree(home)
    write_renamed(made, home, names)
    assert told_of(home, names) == json.loads(kept.read_text())


def _shape(name: str) -> tuple[str, ...]:
    if re.fullmatch(_UUID, name):
        return "uuid", name[14], name[19]
    return name[:-4] if name[0] == "2" else "ses_", str(len(name))


def test_every_corpus_contains_sessions(tmp_path: Path) -> None:
    """A corpus in which nothing is forked, or that tells nothing, would prove nothing."""
    for name, prepared in CORPORA.items():
        folder = tmp_path / name
        folder.mkdir()
        for prepare in prepared:
            prepare(folder)
        assert ids_in(folder), name


def test_a_copied_response_counts_in_the_original_session(home: Path) -> None:
    ids_given_again(home)
    trunk, _, two, last = (ID.format(number) for number in (4, 3, 2, 1))
    with Catalog.open(home / ".agent-logger") as catalog:
        session = catalog.session(last)
        assert session and session.inherited
        assert [turn.counted_in for turn in session.turns] == [trunk, two, None]
        assert session.inherited.counted_in == [trunk, two]
        assert catalog.total().responses == 4
