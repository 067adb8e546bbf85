"""A long session with a thousand branches."""

import random
import time
from pathlib import Path

import pytest

from agent_logger.proxy.tracking.memory import Memory
from agent_logger.proxy.tracking.table import Table
from tests.proxy.tracking.conversation import Recorder, history

BRANCHES, TURNS = 1000, 120


@pytest.mark.parametrize("session", ["s", None], ids=["named", "unnamed"])
def test_a_thousand_branches_of_a_long_session_are_found_quickly(tmp_path: Path, session: str | None) -> None:
    recorder = Recorder()
    recorder.start(known := Memory(Table(tmp_path / "sessions.db"), recorder.all_logs))
    chosen = random.Random(4)
    texts = ["q0"]
    for turn in range(TURNS):
        decision = recorder.ask(history(*texts), session)
        recorder.answer(decision, f"a{turn}")
        texts += [f"a{turn}", f"q{turn + 1}"]
    root = decision.session
    assert root
    tips = {root: texts[:-1]}  # each branch's history, up to its last answer
    lengths = {root: TURNS}  # and how many calls its log has
    starts = {root: 0}  # after how many answers it begins
    parents: dict[str, tuple[str, int]] = {}
    took = []
    for number in range(BRANCHES):
        parent = chosen.choice(list(tips)) if number % 3 else root
        own = lengths[parent]
        if own < 2:  # it has no earlier state of its own
            parent, own = root, lengths[root]
        at = chosen.randrange(1, own)  # the call that it goes on from
        shared = tips[parent][: 2 * (starts[parent] + at)]
        began = time.process_time()
        decision = recorder.ask(history(*shared, f"branch {number}"), session)
        took.append(time.process_time() - began)
        recorder.answer(decision, f"answer {number}")
        name = decision.session
        assert name
        assert decision.fork
        parents[name] = decision.fork.parent, decision.fork.from_seq
        assert parents[name] == (parent, at)
        tips[name], lengths[name], starts[name] = (
            [*shared, f"branch {number}", f"answer {number}"],
            1,
            starts[parent] + at,
        )
        for turn in range(chosen.choice([0, 0, 2])):  # some branches go on
            more = recorder.ask(history(*tips[name], f"more {number} {turn}"), session)
            recorder.answer(more, f"then {turn}")
            assert (more.link, more.session) == ("continuation", name)
            tips[name] += [f"more {number} {turn}", f"then {turn}"]
            lengths[name] += 1
        if number % 50 == 0:
            known.commit(float(number), at_once=True)
    assert len(parents) == BRANCHES
    assert sorted(took)[int(len(took) * 0.99)] < 0.020
    known.commit(1e6, at_once=True)
    known.close()
    recorder.start(Memory(Table(tmp_path / "sessions.db"), recorder.all_logs))
    for name in chosen.sample(sorted(tips), 50):
        assert recorder.ask(history(*tips[name], "after a restart"), session).session == name
