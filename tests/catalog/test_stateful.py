"""A catalog that has followed every change is the one that is made anew, whatever the changes were."""

import json
import shutil
import tempfile
from itertools import count
from pathlib import Path
from typing import Any

import pytest
from hypothesis import HealthCheck, settings
from hypothesis import strategies as st
from hypothesis.stateful import (
    Bundle,
    RuleBasedStateMachine,
    consumes,
    initialize,
    invariant,
    rule,
    run_state_machine_as_test,
)

from agent_logger import Catalog
from agent_logger.catalog.refresh import incremental
from agent_logger.files.parts import PartFile
from agent_logger.home.facts import register_log_folder, tombstones
from agent_logger.journal.seal import seal
from tests.catalog.catalogs import ID, all_of, assistant, made_anew, tool, user
from tests.journal.wire_logs import calls, own, start
from tests.journal.wire_logs import write as write_log

WORDS = ("zebra", "timer", "login", "refused")
Lines = list[dict[str, Any]]


class Followed(RuleBasedStateMachine):
    """Claude Code's files grow, are forked, torn, cut, deleted; our logs grow, branch, are sealed; sessions are
    removed for good."""

    sessions = Bundle("sessions")
    logs = Bundle("logs")

    @initialize(marked=st.booleans(), moved=st.booleans())
    def begin(self, marked: bool, moved: bool) -> None:
        self.root = Path(tempfile.mkdtemp())
        self.patched = pytest.MonkeyPatch()
        if marked:  # short sessions are read on, too
            self.patched.setattr(incremental, "LONG_BYTES", 0)
            self.patched.setattr(incremental, "TAIL_BYTES", 0 if moved else 1000)
        self.patched.setenv("HOME", str(self.root))
        self.home = self.root / ".agent-logger"
        self.catalog = Catalog.open(self.home)
        self.numbers, self.names = count(1), count(1)
        self.changed = True
        self.waiting: Lines = []
        register_log_folder(self.home, self.root / "logs")
        (self.root / "logs" / "anthropic").mkdir(parents=True)

    def teardown(self) -> None:
        self.catalog.close()
        self.patched.undo()
        shutil.rmtree(self.root)

    # ------------------------------------------------------------ Claude Code

    @rule(target=sessions, agent=st.booleans())
    def new_session(self, agent: bool) -> Path:
        name = ID.format(next(self.names))
        path = self.root / ".claude" / "projects" / "-p" / f"{name}.jsonl"
        self._write(
            path,
            [user(next(self.numbers), "fix the timer", name), assistant(next(self.numbers), "yes", name)],
        )
        if agent:
            below = path.with_suffix("") / "subagents" / "agent-a1.jsonl"
            self._write(
                below,
                [{**assistant(next(self.numbers), "login", name), "isSidechain": True, "agentId": "a1"}],
            )
        return path

    @rule(
        path=sessions,
        what=st.sampled_from(["input", "answer", "tool", "split", "call", "result", "again", "rewind", "title", "old"]),
        word=st.sampled_from(WORDS),
    )
    def append(self, path: Path, what: str, word: str) -> None:
        name, number = path.stem, next(self.numbers)
        next(self.numbers)
        call, result = tool(number, name, "Bash", {"command": word}, "refused", failed=True)
        if what == "call":
            self.waiting.append(result)
        lines: dict[str, Lines] = {
            "call": [call],
            "result": [self.waiting.pop(0) if self.waiting else result],
            "again": [assistant(2, word, name)],  # the first response goes on
            "rewind": [{**user(number, word, name), "parentUuid": f"u1-{name[:8]}"}],
            "title": [{"type": "ai-title", "aiTitle": word, "sessionId": name}],
            "old": [{**user(number, word, name), "timestamp": "2026-11-14T08:00:00.000Z"}],
            "input": [user(number, word, name)],
            "answer": [assistant(number, word, name)],
            "tool": tool(number, name, "Bash", {"command": word}, "refused", failed=True),
            "split": [assistant(number, word, name, stop_reason=None), assistant(number, "and more", name)],
        }
        self._write(path, [{**it, "uuid": f"{number}-{at}"} for at, it in enumerate(lines[what])])

    @rule(path=sessions)
    def write_half_a_line_and_the_rest_later(self, path: Path) -> None:
        data = json.dumps(assistant(next(self.numbers), "zebra", path.stem)).encode() + b"\n"
        self._append(path, data[:40])
        if len(data) % 2:
            self.catalog.refresh()
        self._append(path, data[40:])

    @rule(path=sessions)
    def kill_while_a_line_is_written(self, path: Path) -> None:
        self._append(path, b'{"type":"assistant","message":{"id":"msg_0')

    @rule(target=sessions, path=sessions, renamed=st.booleans())
    def fork(self, path: Path, renamed: bool) -> Path:
        name = ID.format(next(self.names) if not renamed else 0xFFFFFFFF - next(self.names))
        copy = path.with_name(f"{name}.jsonl")
        data = path.read_bytes() if path.exists() else b""
        self._append(copy, data.replace(path.stem.encode(), name.encode()))
        return copy

    @rule(path=sessions)
    def cut_off_the_end(self, path: Path) -> None:
        if path.exists():
            path.write_bytes(path.read_bytes()[: path.stat().st_size // 2])
        self.changed = True

    @rule(path=consumes(sessions))
    def delete(self, path: Path) -> None:
        path.unlink(missing_ok=True)
        self.changed = True

    # ------------------------------------------------------------ our own logs

    @rule(target=logs)
    def new_log(self) -> str:
        name = f"2026-log-{next(self.names)}"
        write_log(self.root / "logs" / "anthropic", name, [start(name), *calls(1)])
        self.changed = True
        return name

    @rule(name=logs, seq=st.sampled_from([2, 3]))
    def a_call_more(self, name: str, seq: int) -> None:
        if (self.root / "logs" / "anthropic" / f"{name}.jsonl").exists():
            write_log(self.root / "logs" / "anthropic", name, calls(seq))
            self.changed = True

    @rule(target=logs, parent=logs)
    def branch(self, parent: str) -> str:
        name = f"{parent}_b{next(self.names)}"
        write_log(self.root / "logs" / "anthropic", name, own(name, parent, 1, 3))
        self.changed = True
        return name

    @rule(name=logs)
    def seal(self, name: str) -> None:
        seal(PartFile(self.root / "logs" / "anthropic", name))
        self.changed = True

    # ------------------------------------------------------------ asking

    @rule(which=st.integers(0, 20))
    def remove(self, which: int) -> None:
        there = self.catalog.sessions()
        if there:
            name = there[which % len(there)].id
            self.catalog.remove(name, *self.catalog.branches(name))
            self.changed = True

    @rule()
    def look(self) -> None:
        self.catalog.refresh()

    @rule()
    def index(self) -> None:
        self.catalog.refresh()
        self.catalog.index()

    @rule()
    def open_again(self) -> None:
        self.catalog.close()
        self.catalog = Catalog.open(self.home)

    @invariant()
    def is_the_one_that_is_made_anew(self) -> None:
        if not self.changed:
            return
        self.changed = False
        with made_anew(self.home, self.root / "anew") as anew:
            assert all_of(self.catalog, WORDS) == all_of(anew, WORDS)
        removed = tombstones(self.home).keys()
        assert not removed & {it.id for it in self.catalog.sessions()}
        assert self.catalog.refresh().files_opened == 0

    # ------------------------------------------------------------ writing

    def _write(self, path: Path, lines: Lines) -> None:
        self._append(path, b"".join(json.dumps(line, separators=(",", ":")).encode() + b"\n" for line in lines))

    def _append(self, path: Path, data: bytes) -> None:
        path.parent.mkdir(parents=True, exist_ok=True)
        with path.open("ab") as file:
            file.write(data)
        self.changed = True


TestFollowed = Followed.TestCase
TestFollowed.settings = settings(
    max_examples=10, stateful_step_count=12, deadline=None, suppress_health_check=list(HealthCheck)
)


@pytest.mark.long
@pytest.mark.timeout(1800)
def test_the_catalog_matches_a_rebuilt_catalog_in_a_long_run() -> None:
    run_state_machine_as_test(
        Followed,
        settings=settings(
            max_examples=300, stateful_step_count=30, deadline=None, suppress_health_check=list(HealthCheck)
        ),
    )
