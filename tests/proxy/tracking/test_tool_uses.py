"""A history that its client has changed is known again by the ids of the tool calls in it."""

from pathlib import Path
from typing import Any

import pytest

from agent_logger.proxy.tracking.memory import Memory
from agent_logger.proxy.tracking.table import Table
from agent_logger.proxy.tracking.tool_uses import MOST_USES
from tests.proxy.tracking.conversation import Messages, Recorder, history, said, user

CALL = "toolu_01RwafgNP7AuU9cKgjxxQKU5"


def calling(name: str = CALL) -> dict[str, Any]:
    return {"role": "assistant", "content": [{"type": "tool_use", "id": name, "name": "Bash", "input": {}}]}


def result(name: str = CALL) -> dict[str, Any]:
    return {"role": "user", "content": [{"type": "tool_result", "tool_use_id": name, "content": "a b"}]}


def talk(recorder: Recorder, session: str | None, name: str = CALL) -> tuple[str, Messages]:
    """Its log, and its messages: four calls, the first of which was answered with a call of a tool."""
    messages: Messages = [user("<reminder>Skills</reminder> How many?")]
    for answer, then in (
        (calling(name), result(name)),
        (said("Two."), user("And now?")),
        (said("Three."), user("Well?")),
        (said("Four."), user("More?")),
    ):
        decision = recorder.ask(messages, session)
        recorder.end(decision, message=answer)
        messages = [*messages, answer, then]
    assert decision.session
    return decision.session, messages


def changed(messages: Messages, length: int, text: str) -> Messages:
    """As Claude Code sends it when it takes a session up again: reminders stand elsewhere."""
    return [user("How many?"), *messages[1:length], user(f"<reminder>Skills</reminder> {text}")]


@pytest.mark.parametrize("names", [("one", "two"), (None, None)], ids=["named", "unnamed"])
@pytest.mark.parametrize(("length", "seq"), [(2, 1), (4, 2), (6, 3), (8, 4)])
def test_a_fork_of_a_changed_history_is_recognized_by_tool_call_ids(
    names: tuple[str | None, str | None], length: int, seq: int
) -> None:
    recorder = Recorder()
    log, messages = talk(recorder, names[0])
    fork = recorder.ask(changed(messages, length, "Otherwise?"), names[1])
    assert (fork.link, fork.session) == ("fork", f"{log}_b1")
    assert fork.fork and (fork.fork.parent, fork.fork.from_seq) == (log, seq)
    recorder.answer(fork, "So.")
    first = changed(messages, length, "Otherwise?")
    then = recorder.ask([*first, said("So."), user("On?")], names[1])
    assert (then.link, then.session) == ("continuation", fork.session)
    assert recorder.ask(messages, names[0]).link == "continuation"  # the other one goes on where it stood


def test_a_history_without_its_first_message_is_a_branch() -> None:
    recorder = Recorder()
    log, messages = talk(recorder, None)
    cut = recorder.ask(messages[1:])
    assert cut.fork and (cut.fork.parent, cut.fork.from_seq) == (log, 4)


@pytest.mark.parametrize("name", ["call_1", "functions.Bash:0", "0", "toolu_1", "", "x" * 40])
def test_tool_call_ids_that_are_not_unique_are_ignored(name: str) -> None:
    recorder = Recorder()
    _, messages = talk(recorder, "one", name)
    assert recorder.ask(changed(messages, 8, "Otherwise?"), "two").link == "start"


def test_equal_message_texts_do_not_identify_a_fork() -> None:
    recorder = Recorder()
    first = recorder.ask(history("<reminder> hi"), "one")
    recorder.answer(first, "Hello.")
    assert recorder.ask(history("hi", "Hello.", "And?"), "two").link == "start"


@pytest.mark.parametrize("lost", [False, True], ids=["restarted", "table lost"])
def test_tool_call_ids_are_recognized_after_a_restart(tmp_path: Path, lost: bool) -> None:
    recorder, path = Recorder(), tmp_path / "sessions.db"
    recorder.start(known := Memory(Table(path), recorder.all_logs))
    log, messages = talk(recorder, "one")
    known.commit(10.0, at_once=True)
    known.close()
    if lost:
        path.unlink()
    recorder.start(known := Memory(Table(path), recorder.all_logs))
    for second in range(20, 25):  # logs are read piece by piece
        known.commit(float(second), at_once=True)
    fork = recorder.ask(changed(messages, 6, "Otherwise?"), "two")
    assert (fork.link, fork.session) == ("fork", f"{log}_b1")
    assert fork.fork and (fork.fork.parent, fork.fork.from_seq) == (log, 3)


def test_the_table_stores_only_the_most_recent_tool_call_ids(tmp_path: Path) -> None:
    recorder, table = Recorder(), Table(tmp_path / "sessions.db")
    recorder.start(known := Memory(table, recorder.all_logs))
    for turn in range(3):
        ids = [f"toolu_{turn}{number:020}" for number in range(MOST_USES // 2)]
        uses = [{"type": "tool_use", "id": it, "name": "Bash"} for it in ids]
        recorder.end(recorder.ask([user(f"{turn}")], "s"), message={"role": "assistant", "content": uses})
        known.commit(10.0 * (turn + 1), at_once=True)
    assert [len(table.uses()), *{it.seq for it in table.uses().values()}] == [MOST_USES, 2, 3]


def test_only_the_most_recent_tool_call_ids_are_remembered() -> None:
    recorder = Recorder()
    _, messages = talk(recorder, "one")
    many = [{"type": "tool_use", "id": f"toolu_{number:020}", "name": "Bash"} for number in range(MOST_USES)]
    recorder.end(recorder.ask([user("many")], "three"), message={"role": "assistant", "content": many})
    assert recorder.ask(changed(messages, 8, "Otherwise?"), "two").link == "start"


@pytest.mark.parametrize(
    ("path", "answer", "kept"),
    [
        (
            "/v1/chat/completions",
            {
                "role": "assistant",
                "tool_calls": [{"id": "call_abcdefghijklmnop", "function": {"name": "ls"}}],
            },
            "messages",
        ),
        (
            "/v1/responses",
            {"output": [{"type": "function_call", "call_id": "call_abcdefghijklmnop", "name": "ls"}]},
            "input",
        ),
    ],
    ids=["chat", "responses"],
)
def test_tool_call_ids_are_read_from_every_api(path: str, answer: dict[str, Any], kept: str) -> None:
    recorder = Recorder()
    first = recorder.request(path, {kept: [user("<reminder> go")]}, {})
    recorder.end(first, message=answer)
    back = answer.get("output") or [answer]
    second = recorder.request(path, {kept: [user("go"), *back, user("on")]}, {})
    assert second.fork and (second.fork.parent, second.fork.from_seq) == (first.session, 1)


def test_a_memory_extraction_call_is_a_side_call_of_its_session() -> None:
    recorder = Recorder()
    call = {"id": "call_abcdefghijklmnop", "function": {"name": "ls"}}
    calling = {"role": "assistant", "tool_calls": [call]}
    agent = {"user_agent": "QwenCode/0.24.4 (linux; x64)"}
    system = {"role": "system", "content": "You are Qwen Code."}
    first = recorder.request("/v1/chat/completions", {"messages": [system, user("go")]}, agent)
    recorder.end(first, message=calling)
    keeper = {"role": "system", "content": "You are now acting as the managed memory extraction subagent"}
    told = [keeper, user("go"), calling, user("Scan the recent conversation")]
    aside = recorder.request("/v1/chat/completions", {"messages": told}, agent)
    assert (aside.kind, aside.thread, aside.session) == ("side", "side", first.session)
