"""How a call goes on from what was before."""

from itertools import count
from typing import Any

import pytest

from agent_logger.model.records import Fork, Identity, Record, Rewrite, WireStart, decode
from agent_logger.proxy.tracking.tracker import Decision, TrackedRequest
from tests.proxy.tracking.captures import new_tracker
from tests.proxy.tracking.conversation import Recorder, history, said, user
from tests.proxy.tracking.test_classify import asked


@pytest.fixture
def recorder() -> Recorder:
    return Recorder()


named = pytest.mark.parametrize("session", ["s", None], ids=["named", "unnamed"])


@named
def test_a_call_that_extends_the_last_answer_is_a_continuation(recorder: Recorder, session: str | None) -> None:
    first = recorder.talk("a", "A", session=session)
    second = recorder.talk("a", "A", "b", "B", session=session)
    third = recorder.talk("a", "A", "b", "B", "c", "C", session=session)
    assert [it.link for it in (first, second, third)] == ["start", "continuation", "continuation"]
    assert {it.session for it in (first, second, third)} == {first.session}
    assert [it.seq for it in (first, second, third)] == [1, 2, 3]
    assert [it.begins for it in (first, second, third)] == [True, False, False]
    source = "x-session-id" if session else "fingerprint"
    assert [it.identity.source for it in (second, third)] == [source, source]


@named
def test_a_call_that_extends_an_earlier_answer_is_a_fork(recorder: Recorder, session: str | None) -> None:
    first = recorder.talk("a", "A", session=session)
    recorder.talk("a", "A", "b", "B", session=session)
    recorder.talk("a", "A", "b", "B", "c", "C", session=session)
    fork = recorder.talk("a", "A", "other", "O", session=session)
    assert (fork.link, fork.begins, fork.session) == ("fork", True, f"{first.session}_b1")
    assert fork.fork
    assert (fork.fork.parent, fork.fork.from_seq) == (first.session, 1)
    again = recorder.talk("a", "A", "b", "B", "third", "T", session=session)
    assert again.fork
    assert (again.session, again.fork.parent, again.fork.from_seq) == (
        f"{first.session}_b2",
        first.session,
        2,
    )
    deeper = recorder.talk("a", "A", "other", "O", "x", "X", session=session)
    assert (deeper.link, deeper.session) == ("continuation", fork.session)
    deepest = recorder.talk("a", "A", "other", "O", "y", "Y", session=session)
    assert deepest.fork  # numbered after the session, however deep
    assert (deepest.session, deepest.fork.parent) == (f"{first.session}_b3", fork.session)


@named
def test_a_call_goes_to_the_branch_whose_state_it_extends(recorder: Recorder, session: str | None) -> None:
    main = recorder.talk("a", "A", session=session)
    recorder.talk("a", "A", "b", "B", session=session)
    branch = recorder.talk("a", "A", "c", "C", session=session)
    assert recorder.talk("a", "A", "b", "B", "d", "D", session=session).session == main.session
    assert recorder.talk("a", "A", "c", "C", "d", "D", session=session).session == branch.session


def test_a_side_call_goes_to_the_most_recently_active_branch(recorder: Recorder) -> None:
    main = recorder.talk("a", "A", session="s")
    recorder.talk("a", "A", "b", "B", session="s")
    branch = recorder.talk("a", "A", "c", "C", session="s")

    def side() -> str | None:
        decision = recorder.ask([user("title?")], "s", body={"tools": []})
        recorder.answer(decision, "a title")
        assert (decision.kind, decision.link, decision.begins) == ("side", None, False)
        return decision.session

    assert side() == branch.session
    assert recorder.talk("a", "A", "b", "B", "d", "D", session="s").session == main.session
    assert side() == main.session
    assert recorder.talk("a", "A", "c", "C", "e", "E", session="s").link == "continuation"  # it moved nothing


def test_the_most_recently_active_branch_does_not_depend_on_the_clock(recorder: Recorder) -> None:
    recorder.clock = count(1000)
    main = recorder.talk("a", "A", session="s")
    recorder.talk("a", "A", "b", "B", session="s")
    recorder.clock = count(0)  # it was set back
    branch = recorder.talk("a", "A", "c", "C", session="s")
    assert recorder.ask([user("title?")], "s", body={"tools": []}).session == branch.session
    assert recorder.talk("a", "A", "b", "B", "d", "D", session="s").session == main.session
    assert recorder.ask([user("another?")], "s", body={"tools": []}).session == main.session


FAILURES: list[Any] = [
    pytest.param({"status": 529}, id="an error"),
    pytest.param({"status": None, "complete": False}, id="no answer"),
    pytest.param({"status": 200, "complete": False}, id="a cut"),
]


@named
@pytest.mark.parametrize("failure", FAILURES)
def test_the_same_messages_after_a_failure_are_a_retry(
    recorder: Recorder, session: str | None, failure: dict[str, Any]
) -> None:
    first = recorder.ask(history("a"), session)
    recorder.end(first, **failure)
    second = recorder.ask(history("a"), session, body={"stream": False, "max_tokens": 7})
    recorder.end(second, **failure)
    third = recorder.talk("a", "A", session=session)
    assert [it.retry_of for it in (first, second, third)] == [None, 1, 1]
    assert [it.link for it in (second, third)] == ["retry", "retry"]
    assert {it.session for it in (first, second, third)} == {first.session}
    assert recorder.talk("a", "A", "b", "B", session=session).link == "continuation"


def test_the_same_messages_during_an_open_named_call_are_a_retry(recorder: Recorder) -> None:
    first = recorder.ask(history("a"), "s")
    assert recorder.ask(history("a"), "s").retry_of == first.seq


def test_the_same_messages_during_an_open_unnamed_call_are_a_new_session(recorder: Recorder) -> None:
    first = recorder.ask(history("a"))
    second = recorder.ask(history("a"))
    assert (second.link, second.begins, second.retry_of) == ("start", True, None)
    assert first.session != second.session


def test_an_unnamed_call_with_a_retry_count_is_a_retry(recorder: Recorder) -> None:
    first = recorder.talk("a", "A")
    counted = recorder.ask(history("a"), x_stainless_retry_count="1")
    assert (counted.link, counted.retry_of, counted.session) == ("retry", 1, first.session)
    assert recorder.ask(history("a"), x_stainless_retry_count="0").link == "start"
    assert recorder.ask(history("never asked"), x_stainless_retry_count="2").link == "start"


def test_an_unnamed_first_message_starts_a_new_session(recorder: Recorder) -> None:
    first = recorder.talk("a", "A")
    assert recorder.talk("a", "A").session != first.session
    assert recorder.talk("b", "B").session != first.session


def test_the_same_messages_after_an_answer_are_a_fork(recorder: Recorder) -> None:
    first = recorder.talk("a", "A", session="s")
    second = recorder.talk("a", "A2", session="s")
    assert second.fork
    assert (second.link, second.fork.parent, second.fork.from_seq) == ("fork", first.session, 0)
    third = recorder.talk("a", "A", "b", "B", session="s")
    again = recorder.talk("a", "A", "b", "B2", session="s")
    assert (third.link, third.session) == ("continuation", first.session)
    assert again.fork
    assert (again.link, again.fork.parent, again.fork.from_seq) == ("fork", first.session, 1)
    assert recorder.talk("a", "A", "b", "B2", "c", "C", session="s").session == again.session


def test_a_retry_after_another_retry_was_answered_is_a_fork(recorder: Recorder) -> None:
    recorder.end(recorder.ask(history("a"), "s"), status=500)
    recorder.talk("a", "A", session="s")
    assert recorder.ask(history("a"), "s").link == "fork"


def test_an_unknown_history_is_a_rewrite_of_the_same_session(recorder: Recorder) -> None:
    first = recorder.talk("a", "A", session="s")
    second = recorder.talk("summary", "ok", "b", "B", session="s")
    assert (second.link, second.session, second.begins) == ("rewrite", first.session, False)
    assert recorder.talk("summary", "ok", "b", "B", "c", "C", session="s").link == "continuation"
    old = recorder.talk("a", "A", "c", "C", session="s")  # a rewind to before it
    assert old.fork
    assert old.fork.from_seq == 1


def test_a_compaction_does_not_move_the_state_of_the_main_thread(recorder: Recorder) -> None:
    agent = {"user_agent": "claude-cli/2.1.325 (external, cli)"}
    recorder.talk("a", "A", session="s", **agent)
    recorder.talk("a", "A", "b", "B", session="s", **agent)
    words = "CRITICAL: Respond with TEXT ONLY"
    compact = recorder.talk("a", "A", words, "a summary", session="s", **agent)
    assert (compact.kind, compact.thread, compact.link) == ("compact", "main", "continuation")
    assert recorder.talk("a", "A", "b", "B", "c", "C", session="s", **agent).link == "continuation"
    assert recorder.talk("summary", "ok", "d", "D", session="s", **agent).link == "rewrite"


@named
@pytest.mark.parametrize("failure", FAILURES)
def test_a_call_after_a_failure_continues_with_or_without_the_failed_message(
    recorder: Recorder, session: str | None, failure: dict[str, Any]
) -> None:
    first = recorder.talk("a", "A", session=session)
    recorder.end(recorder.ask(history("a", "A", "b"), session), **failure)
    without = recorder.talk("a", "A", "c", "C", session=session)
    assert (without.link, without.session) == ("continuation", first.session)
    recorder.end(recorder.ask(history("a", "A", "c", "C", "d"), session), **failure)
    withal = recorder.ask([*history("a", "A", "c", "C", "d"), said("I was cut"), user("go on")], session)
    assert (withal.link, withal.session) == ("continuation", first.session)


@named
def test_a_history_with_a_changed_last_answer_is_a_continuation(recorder: Recorder, session: str | None) -> None:
    first = recorder.talk("a", "A", session=session)
    recorder.talk("a", "A", "b", "B", session=session)
    changed = recorder.talk("a", "A", "b", "B, trimmed", "c", "C", session=session)
    assert (changed.link, changed.session) == ("continuation", first.session)
    asked_anew = recorder.ask([*history("a", "A", "b", "B, trimmed", "c"), user("and d")], session)
    assert asked_anew.link == "fork"  # the answer is gone from the history


def test_a_new_session_id_with_a_known_history_is_a_fork(recorder: Recorder) -> None:
    recorder.talk("a", "A", session="one")
    parent = recorder.talk("a", "A", "b", "B", session="one")
    fork = recorder.talk("a", "A", "b", "B", "c", "C", session="two")
    assert fork.fork
    assert (fork.link, fork.begins, fork.session) == ("fork", True, f"{parent.session}_b1")
    assert (fork.fork.parent, fork.fork.from_seq) == (parent.session, 2)
    assert fork.identity == Identity(id="two", source="x-session-id", confidence="certain")
    assert recorder.talk("a", "A", "b", "B", "d", "D", session="one").session == parent.session
    assert recorder.talk("a", "A", "b", "B", "c", "C", "e", "E", session="two").session == fork.session


def test_an_unnamed_call_with_a_different_answer_is_a_new_session(recorder: Recorder) -> None:
    first = recorder.ask(history("Weather?"))
    recorder.answer(first, "Sunny.")
    assert recorder.ask(history("Weather?", "Rain.", "Thanks")).link == "start"
    assert recorder.ask(history("Weather?", "Sunny.", "Thanks")).session == first.session


def test_a_new_session_id_with_only_a_known_prompt_is_a_new_session(recorder: Recorder) -> None:
    recorder.talk("a", "A", session="one")
    assert recorder.ask([user("a"), user("b")], "two").link == "start"


def test_a_fork_after_its_own_side_call_is_recognized(recorder: Recorder) -> None:
    parent = recorder.talk("a", "A", session="one")
    agent = {"user_agent": "claude-cli/2.1.325"}
    side = recorder.ask(history("t"), "two", body={"tools": [], "output_config": {"format": {}}}, **agent)
    assert (side.kind, side.begins) == ("main", True)  # an empty format is none
    title = {"tools": [], "output_config": {"format": {"type": "json_schema"}}}
    side = recorder.ask(history("t"), "three", body=title, **agent)
    assert (side.kind, side.begins) == ("side", True)
    fork = recorder.ask(history("a", "A", "b"), "three", user_agent="claude-cli/2.1.325")
    assert fork.fork
    assert (fork.link, fork.begins, fork.session) == ("fork", False, side.session)
    assert (fork.fork.parent, fork.fork.from_seq) == (parent.session, 1)


def test_threads_of_a_session_continue_independently(recorder: Recorder) -> None:
    main = recorder.talk("a", "A", session="s")
    one = recorder.talk("task", "T", session="s", x_claude_code_agent_id="1")
    two = recorder.talk("task", "T", session="s", x_claude_code_agent_id="2")
    more = recorder.talk("task", "T", "more", "M", session="s", x_claude_code_agent_id="1")
    assert [it.link for it in (one, two, more)] == ["start", "start", "continuation"]
    assert recorder.talk("task", "T", "more", "M", session="s", x_claude_code_agent_id="2").link == "continuation"
    assert recorder.talk("a", "A", "b", "B", session="s").link == "continuation"
    assert {it.session for it in (one, two, more)} == {main.session}
    assert recorder.talk("task", "T", "x", "X", session="s").link == "rewrite"  # not the main thread's history


def test_ambiguous_calls_go_to_the_most_recently_active_candidate_and_list_all(recorder: Recorder) -> None:
    one = recorder.talk("a", "A")
    two = recorder.talk("a", "A")
    third = recorder.talk("a", "A", "b", "B")
    assert (third.link, third.session) == ("continuation", two.session)
    assert third.identity == Identity(
        id=None,
        source="fingerprint",
        confidence="ambiguous",
        candidates=[two.session or "", one.session or ""],
    )
    assert third.of_request == third.identity
    fourth = recorder.talk("a", "A", "b", "B")  # the other one has come so far as well
    assert (fourth.link, fourth.session) == ("continuation", one.session)


def test_a_call_is_linked_by_its_previous_response_id(recorder: Recorder) -> None:
    def respond(text: str, follows: str | None, answers: str, **headers: str) -> Any:
        body = {"input": text, **({"previous_response_id": follows} if follows else {})}
        decision = recorder.request("/v1/responses", body, headers)
        output = {"id": answers, "output": [{"type": "message", "role": "assistant", "content": answers}]}
        recorder.end(decision, message=output, message_id=answers)
        return decision

    first = respond("a", None, "resp_1")
    second = respond("b", "resp_1", "resp_2")
    assert (second.link, second.session, second.identity.source) == (
        "continuation",
        first.session,
        "previous_response_id",
    )
    fork = respond("c", "resp_1", "resp_3")
    assert fork.fork
    assert (fork.link, fork.fork.parent, fork.fork.from_seq) == ("fork", first.session, 1)
    assert respond("d", "resp_3", "resp_4").session == fork.session
    assert respond("e", "resp_2", "resp_5").session == first.session
    unknown = respond("f", "resp_of_long_ago", "resp_6")
    assert (unknown.link, unknown.begins) == ("start", True)
    assert respond("g", "resp_6", "resp_7").session == unknown.session
    whole = [user("f"), {"role": "assistant", "content": "resp_6"}]
    assert recorder.request("/v1/responses", {"input": [*whole, user("h")]}, {}).link == "start"


TOOLS_AS_ITEM = {"type": "additional_tools", "id": "at_1", "role": "developer", "tools": [{"name": "exec"}]}


@pytest.mark.parametrize("tools", [[{"name": "exec"}], None], ids=["tools in the body", "tools as an item"])
def test_codex_continues_one_session_from_warm_up_over_websocket_to_http(
    recorder: Recorder, tools: list[Any] | None
) -> None:
    headers = {"user-agent": "codex_exec/0.166.0", "session-id": "s", "thread-id": "s"}
    given = [] if tools else [TOOLS_AS_ITEM]

    def respond(items: list[Any], answers: str, *, http: bool = False, **more: Any) -> Any:
        body = {"type": "response.create", "input": items, **({"tools": tools} if tools else {}), **more}
        decision = recorder.request("/v1/responses", body, headers, message=not http)
        output = [] if "generate" in more else [{"type": "message", "role": "assistant", "content": answers}]
        recorder.end(decision, message={"output": output}, message_id=answers)
        return decision

    warm = respond([*given, {"role": "developer", "content": "be"}], "resp_0", generate=False)
    first = respond([user("a")], "resp_1", previous_response_id="resp_0")
    second = respond([user("b")], "resp_2", previous_response_id="resp_1")
    assert [it.kind for it in (warm, first, second)] == ["side", "main", "main"]
    assert [it.link for it in (warm, first, second)] == [None, "start", "continuation"]
    whole = [
        *given,
        {"role": "developer", "content": "be"},
        user("a"),
        {"role": "assistant", "content": "resp_1"},
        user("b"),
    ]
    whole += [{"role": "assistant", "content": "resp_2"}, user("c")]
    third = respond(whole, "resp_3", http=True)
    assert (third.link, third.session, third.seq) == ("continuation", warm.session, 4)


def test_a_call_with_tools_as_a_history_item_is_a_main_call(recorder: Recorder) -> None:
    headers = {"user-agent": "codex_exec/0.166.0", "session-id": "s", "thread-id": "s"}
    recorder.end(recorder.request("/v1/responses", {"input": [], "generate": False}, headers), message={})
    asked = {"input": [TOOLS_AS_ITEM, user("a")]}
    assert recorder.request("/v1/responses", asked, headers).kind == "main"


def test_records_contain_the_tracking_decision(recorder: Recorder) -> None:
    def before(decision: Any) -> list[Any]:
        asked = TrackedRequest(
            provider="anthropic",
            upstream="u",
            method="POST",
            path="/",
            headers={},
            ts="2026-11-15T10:15:00.000Z",
        )
        return list(decision.before(asked))

    first = recorder.talk("a", "A", session="s", user_agent="claude-cli/2")
    own = Identity(id="s", source="x-session-id", confidence="certain")
    assert before(first) == [
        WireStart(
            ts="2026-11-15T10:15:00.000Z",
            provider="anthropic",
            upstream="u",
            session=first.session,
            identity=own,
            agent="claude-code",
        )
    ]
    assert first.of_request is None
    rewrite = recorder.talk("x", "X", "b", "B", session="s")
    assert before(rewrite) == [Rewrite(ts="2026-11-15T10:15:00.000Z", seq=2, reason="history_replaced")]
    recorder.talk("x", "X", "CRITICAL: Respond with TEXT ONLY", "S", session="s", user_agent="claude-cli/2")
    compacted = recorder.talk("S", "ok", "b", "B", session="s")
    assert before(compacted) == [Rewrite(ts="2026-11-15T10:15:00.000Z", seq=4, reason="compaction")]
    assert rewrite.of_request is None
    start, fork = before(recorder.talk("a", "A", "c", "C", session="s"))
    assert (start.session, start.identity) == (f"{first.session}_b1", own)
    assert fork == Fork(
        ts="2026-11-15T10:15:00.000Z",
        from_seq=1,
        parent_session=first.session or "",
        reason="message_history_diverged",
    )
    assert before(recorder.talk("S", "ok", "b", "B", "c", "C", session="s")) == []


def test_a_session_id_that_contains_a_secret_is_written_as_an_hmac() -> None:
    tracker = new_tracker()

    def ask(name: str, agent: str = "") -> Decision:
        headers = {"x-session-id": name, **({"x-claude-code-agent-id": agent} if agent else {})}
        it = asked(body={"messages": [user("a")], "tools": [{}]}, headers=headers)
        it.redact = lambda text: text.replace("sk-secret", "...")
        return tracker.request(it)

    one, two = ask("sk-secret-1"), ask("sk-secret-2")
    assert one.identity.id
    assert one.identity.id.startswith("hmac:")
    assert (one.begins, two.begins, one.identity.id != two.identity.id) == (True, True, True)
    assert ask("sk-secret-1").session == one.session
    assert ask("plain").identity.id == "plain"
    assert ask("sk-secret-1", "sk-secret").thread.startswith("agent:hmac:")


def test_a_codex_compaction_that_keeps_the_prompts_is_a_rewrite(recorder: Recorder) -> None:
    headers = {"user-agent": "codex_exec/0.166.0", "session-id": "s", "thread-id": "s"}

    def respond(*texts: str) -> Any:
        """The last text is the answer."""
        items = [said(it) if it.isupper() else user(it) for it in texts[:-1]]
        body = {"input": items, "tools": [{"name": "exec"}]}
        decision = recorder.request("/v1/responses", body, headers)
        recorder.end(decision, message={"output": [{"type": "message", **said(texts[-1])}]})
        return decision

    ask = "You are performing a CONTEXT CHECKPOINT COMPACTION."
    first = respond("a", "A")
    compact = respond("a", "A", ask, "SUMMARY")
    after = respond("a", "Another model says: SUMMARY", "B")
    assert [it.link for it in (first, compact, after)] == ["start", "continuation", "rewrite"]
    assert (after.session, after.reason) == (first.session, "compaction")
    assert respond("a", "Another model says: SUMMARY", "B", "c", "C").link == "continuation"
    assert respond("a", "A", "b", "B").link == "fork"  # it went back to what was before


@pytest.mark.parametrize("later", ["incrementally", "from the logs"])
def test_a_repeated_call_after_a_failed_response_is_a_retry(recorder: Recorder, later: str) -> None:
    headers = {"user-agent": "codex_exec/0.166.0", "session-id": "s", "thread-id": "s"}
    body = {"input": [user("a")], "tools": [{"name": "exec"}]}
    first = recorder.request("/v1/responses", body, headers)
    recorder.end(first, message={"status": "failed", "output": []}, stop_reason="failed")
    if later == "from the logs":
        recorder.start()
        for (provider, name), lines in recorder.logs.items():
            for line in lines:
                record = decode(line, "wire")
                assert isinstance(record, Record)
                recorder.tracker.learn(provider, name, record)
    again = recorder.request("/v1/responses", body, headers)
    assert (again.link, again.retry_of, again.session) == ("retry", 1, first.session)


def test_a_code_assist_session_with_a_sub_agent_is_one_log_also_after_a_resume(recorder: Recorder) -> None:
    """As Gemini CLI 0.61 sends it: after a resume, thoughts are texts with a mark, and results are there twice."""

    def ask(*contents: tuple[str, list[dict[str, Any]]], by: str = "s") -> Decision:
        said = [{"role": role, "parts": parts} for role, parts in contents]
        inner = {"contents": said, "tools": [{"functionDeclarations": [{"name": "ls"}]}], "session_id": "s"}
        body = {"model": "m", "project": "p", "user_prompt_id": by, "request": inner}
        return recorder.request("/v1internal:streamGenerateContent?alt=sse", body, {"user-agent": "GeminiCLI-tui/0.61"})

    def answer(decision: Decision, *parts: dict[str, Any]) -> None:
        recorder.end(decision, message={"role": "model", "parts": list(parts)}, stop_reason="STOP")

    thought, call = {"text": "Hm.", "thought": True}, {"functionCall": {"name": "invoke_agent", "args": {}}}
    named = {"functionCall": {**call["functionCall"], "id": "invoke_agent_1_0"}}
    result = {"functionResponse": {"name": "invoke_agent", "response": {"output": "x"}, "id": "invoke_agent_1_0"}}
    asked: tuple[str, list[dict[str, Any]]] = ("user", [{"text": "go"}])
    first = ask(asked)
    answer(first, thought, call)
    task: tuple[str, list[dict[str, Any]]] = ("user", [{"text": "look around"}])
    agents = "be18182f-7ac3-478b-8815-670ff6e14f0d"
    inner = [ask(task, by=f"{agents}#0")]
    answer(inner[0], {"text": "Found."})
    inner.append(ask(task, ("model", [{"text": "Found."}]), ("user", [{"text": "sure?"}]), by=f"{agents}#1"))
    answer(inner[1], {"text": "Yes."})
    second = ask(asked, ("model", [named]), ("user", [result]))
    answer(second, {"text": "Done."})
    marked = {"text": "Hm.\n[Thought: true]"}
    done: tuple[str, list[dict[str, Any]]] = ("model", [{"text": "Done."}])
    resumed = ask(asked, ("model", [marked, named]), ("user", [result, result]), done, ("user", [{"text": "more"}]))
    decided = [first, *inner, second, resumed]
    assert {decision.session for decision in decided} == {first.session}
    assert [decision.link for decision in decided] == ["start", "start", "continuation", "continuation", "continuation"]
    threads = ["main", f"agent:{agents}", f"agent:{agents}", "main", "main"]
    assert [decision.thread for decision in decided] == threads
