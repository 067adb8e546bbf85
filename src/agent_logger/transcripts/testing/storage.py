"""What must hold of every `SessionStorage`."""

import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

from agent_logger.transcripts.storage import SessionStorage

Make = Callable[[], SessionStorage]
Message = dict[str, Any]

LONG = "a long result \u2028 \N{PARTY POPPER}\n" * 5_000
HOSTILE = (
    "../../up",
    "/etc/passwd",
    "a/b",
    "",
    ".",
    "..",
    "a\0b",
    "a\nb",
    "x" * 500,
    "memory",
    "s.jsonl",
    "s.p2",
)


def run_storage_conformance(make_storage: Make) -> None:
    """Raise `AssertionError` if a contract is broken. `make_storage` returns an empty storage, and is called for each
    contract."""
    for contract in CONTRACTS:
        contract(make_storage())


def user(text: str, **more: Any) -> Message:
    return {"type": "user", "message": {"role": "user", "content": text}, **more}


def assistant(text: str, **more: Any) -> Message:
    content = [{"type": "text", "text": text}]
    return {"type": "assistant", "message": {"role": "assistant", "content": content}, **more}


def _loaded(storage: SessionStorage, session_id: str) -> list[Message]:
    messages = storage.load(session_id)
    assert messages is not None, f"{session_id!r} does not exist"
    return messages


def _says(line: Message, message: Message) -> bool:
    """Whether a line has all the fields of the message; it may have more."""
    return {name: line.get(name) for name in message} == message


# ---------------------------------------------------------------- append and load


def _messages_come_back_in_order(storage: SessionStorage) -> None:
    messages = [user("one"), assistant("two"), user("three"), {"type": "progress", "data": {"done": 0.5}}]
    for number, message in enumerate(messages, 1):
        assert storage.append("s", message), "a message was not accepted"
        assert len(_loaded(storage, "s")) == number, "a message cannot be read as soon as it is appended"
    assert all(map(_says, _loaded(storage, "s"), messages)), "an appended message was read back changed"


def _whatever_is_in_a_message_comes_back(storage: SessionStorage) -> None:
    odd = {
        "type": "some-new-type",
        "nested": [{"a": [1, 2.5, None, True]}],
        "big": 2**70,
        "half": "\ud800",
        "": "",
    }
    ours = {"type": "session_header", "v": 1, "id": "another"}
    for message in (odd, ours):
        storage.append("s", message)
    assert all(map(_says, _loaded(storage, "s"), (odd, ours))), "an unusual message was read back changed"


def _long_results_come_back_whole(storage: SessionStorage) -> None:
    blocks: list[Message] = [
        {"type": "tool_result", "tool_use_id": f"t{number}", "content": LONG} for number in (1, 2, 2)
    ]
    blocks.append({"type": "tool_result", "tool_use_id": "t3", "content": [{"type": "text", "text": LONG}]})
    messages: list[Message] = [
        {"type": "user", "message": {"role": "user", "content": blocks}, "toolUseResult": {"stdout": LONG}},
        {"type": "progress", "toolUseID": "t3", "data": {"lines": [LONG] * 3}},
    ]
    for message in messages:
        storage.append("s", message)
    assert all(map(_says, _loaded(storage, "s"), messages)), "a long result was not read back whole"


def _a_session_that_is_not_known_is_none(storage: SessionStorage) -> None:
    assert storage.load("s") is None, "a session that does not exist is not None"
    storage.append("s", user("one"))
    assert storage.load("t") is None, "a session that does not exist is not None"


def _what_was_given_and_got_is_nobody_else_s(storage: SessionStorage) -> None:
    message = user("one")
    storage.append("s", message)
    message["message"]["content"] = "changed"
    _loaded(storage, "s")[0]["message"]["content"] = "changed, too"
    assert _loaded(storage, "s")[0]["message"]["content"] == "one", "a message changed after it was appended"


# ---------------------------------------------------------------- what a line says beside its message


def _messages_are_a_chain(storage: SessionStorage) -> None:
    for text in ("one", "two", "three"):
        storage.append("s", user(text))
    lines = _loaded(storage, "s")
    ids = [line["uuid"] for line in lines]
    assert len(set(ids)) == 3, "two messages have one uuid"
    assert [line["parentUuid"] for line in lines] == [None, *ids[:2]], "parentUuid is not the previous message"


def _each_says_where_and_when(storage: SessionStorage) -> None:
    storage.append("s", user("one"))
    line = _loaded(storage, "s")[0]
    assert line["sessionId"] == "s", "sessionId is not the session's"
    assert line["timestamp"].endswith("Z") and line["timestamp"][10] == "T", "timestamp is not ISO 8601 in UTC"
    for name in ("cwd", "version", "permissionMode", "userType"):
        assert isinstance(line.get(name), str) and line[name], f"a message has no {name}"


def _what_a_message_says_itself_stands(storage: SessionStorage) -> None:
    given = {
        "uuid": "u9",
        "parentUuid": None,
        "timestamp": "2026-01-01T00:00:00.000Z",
        "cwd": "/other",
        "gitBranch": "b",
    }
    storage.append("s", user("one"))
    storage.append("s", user("two", **given, permissionMode="plan", sessionId="s"))
    storage.append("s", user("three"))
    _, second, third = _loaded(storage, "s")
    assert _says(second, given), "a field that the message had was changed"
    assert third["parentUuid"] == "u9", "parentUuid is not the previous message"
    assert third["permissionMode"] == "plan", "permissionMode does not carry over"


def _a_response_says_what_it_took(storage: SessionStorage) -> None:
    fields = {"model": "m-1", "usage": {"input_tokens": 3, "output_tokens": 4}, "stop_reason": "end_turn"}
    storage.append("s", assistant("one", **fields))
    storage.append("s", {"type": "assistant", "message": {"role": "assistant", "content": [], **fields}})
    for line in _loaded(storage, "s"):
        assert _says(line["message"], fields), "model, usage and stop_reason are not in the message"


def _a_message_of_another_session_is_refused(storage: SessionStorage) -> None:
    for message in (user("one", sessionId="t"), user("one", session_id="t"), {"no": "type"}, "text", None):
        try:
            storage.append("s", message)
        except ValueError:
            continue
        raise AssertionError(f"{message!r} was accepted")
    assert not storage.load("s"), "a refused message was stored"
    try:
        storage.append("\ud800", user("one"))
    except ValueError:
        return
    raise AssertionError("half a character was accepted as an id")


# ---------------------------------------------------------------- list and delete


def _sessions_are_listed(storage: SessionStorage) -> None:
    storage.append("a", user("The first\nprompt"))
    storage.append("a", assistant("Yes"))
    time.sleep(0.002)
    storage.append("b", user("Another"))
    storage.append("b", {"type": "ai-title", "aiTitle": "A title"})
    newest, oldest = storage.list()
    assert (newest.id, oldest.id) == ("b", "a"), "the list does not begin with the session last written to"
    assert (oldest.first_prompt, oldest.message_count) == ("The first prompt", 2), "a session is missing from the list"
    assert newest.summary == "A title", "the list has no title"
    assert oldest.created <= oldest.modified <= newest.modified, "the times of a list are wrong"


def _a_list_is_of_a_project(storage: SessionStorage) -> None:
    storage.append("a", user("one"))
    project = storage.list()[0].project_path
    assert project, "the list has no project"
    assert [session.id for session in storage.list(project)] == ["a"], "a session is not listed with its project"
    assert storage.list(Path(project) / "elsewhere") == [], "a session is listed with another project"


def _a_list_follows_what_is_appended_and_deleted(storage: SessionStorage) -> None:
    for number in range(1, 4):
        storage.append("a", user("one"))
        assert [session.message_count for session in storage.list()] == [number], "the list is not up to date"
    storage.delete("a")
    assert storage.list() == [], "a deleted session is listed"


def _delete_removes_one_session(storage: SessionStorage) -> None:
    storage.delete("never")
    for session_id in ("a", "b"):
        storage.append(session_id, user(session_id))
    storage.delete("a")
    assert storage.load("a") is None, "a deleted session still exists"
    assert len(_loaded(storage, "b")) == 1, "another session was also deleted"
    storage.append("a", user("again"))
    (line,) = _loaded(storage, "a")
    assert line["parentUuid"] is None, "a deleted session did not start empty"


def _any_text_can_be_an_id(storage: SessionStorage) -> None:
    for session_id in HOSTILE:
        storage.append(session_id, user(repr(session_id)))
    for session_id in HOSTILE:
        (line,) = _loaded(storage, session_id)
        assert line["message"]["content"] == repr(session_id), f"{session_id!r} is another session"
    assert sorted(session.id for session in storage.list()) == sorted(HOSTILE), "ids are listed differently"
    for session_id in HOSTILE[::2]:
        storage.delete(session_id)
    assert sorted(session.id for session in storage.list()) == sorted(HOSTILE[1::2]), "another session was deleted"


CONTRACTS = (
    _messages_come_back_in_order,
    _whatever_is_in_a_message_comes_back,
    _long_results_come_back_whole,
    _a_session_that_is_not_known_is_none,
    _what_was_given_and_got_is_nobody_else_s,
    _messages_are_a_chain,
    _each_says_where_and_when,
    _what_a_message_says_itself_stands,
    _a_response_says_what_it_took,
    _a_message_of_another_session_is_refused,
    _sessions_are_listed,
    _a_list_is_of_a_project,
    _a_list_follows_what_is_appended_and_deleted,
    _delete_removes_one_session,
    _any_text_can_be_an_id,
)
