"""Names that any client may send: they join no sessions that have nothing to do with each other."""

from collections.abc import Mapping
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from agent_logger.agents.registry import AGENTS
from agent_logger.proxy.tracking.identity import GATEWAYS, GENERIC_HEADERS
from agent_logger.proxy.tracking.memory import Memory
from agent_logger.proxy.tracking.table import Table
from agent_logger.proxy.tracking.tracker import Decision
from tests.hostile import ODD_VALUES
from tests.proxy.tracking.conversation import Messages, Recorder, history
from tests.proxy.tracking.test_classify import decide

KEY = {"prompt_cache_key": "my-app"}


def keyed(recorder: Recorder, *texts: str, key: Mapping[str, Any] = KEY, **headers: str) -> Decision:
    """One answered call with a cache key and without tools: the last text is the answer."""
    body = {"tools": [], **key}
    decision = recorder.ask(history(*texts[:-1]), body=body, **headers)
    recorder.answer(decision, texts[-1])
    return decision


# ---------------------------------------------------------------- prompt_cache_key


def test_conversations_with_one_cache_key_are_sessions_of_their_own() -> None:
    recorder = Recorder()
    one, two = keyed(recorder, "a", "A"), keyed(recorder, "b", "B")
    assert one.session != two.session
    assert keyed(recorder, "a", "A", "c", "C").session == one.session
    assert keyed(recorder, "b", "B", "d", "D").session == two.session
    assert (one.identity.id, one.identity.source, one.identity.confidence) == (
        "my-app",
        *("prompt_cache_key", "ambiguous"),
    )
    assert one.identity.session is None


def test_the_same_first_prompt_with_one_cache_key_begins_a_session_each_time() -> None:
    recorder = Recorder()
    first = recorder.ask(history("a"), body=KEY)
    second = recorder.ask(history("a"), body=KEY)  # while the first waits for its answer
    recorder.answer(first, "A")
    third = recorder.ask(history("a"), body=KEY)
    assert len({call.session for call in (first, second, third)}) == 3
    assert [call.link for call in (first, second, third)] == ["start"] * 3


def test_a_failed_call_with_a_cache_key_is_retried_in_its_session() -> None:
    recorder = Recorder()
    first = recorder.ask(history("a"), body=KEY)
    recorder.end(first, status=529, complete=True)
    again = recorder.ask(history("a"), body=KEY)
    assert (again.session, again.link, again.retry_of) == (first.session, "retry", first.seq)


def test_conversations_with_equal_texts_are_separated_by_their_cache_keys() -> None:
    recorder = Recorder()
    keys = [{"prompt_cache_key": name} for name in "xy"]
    firsts = [keyed(recorder, "a", "A", key=key) for key in keys]
    seconds = [keyed(recorder, "a", "A", "b", "B", key=key) for key in keys]
    assert [call.session for call in firsts] == [call.session for call in seconds]
    assert [call.link for call in seconds] == ["continuation"] * 2


def test_a_conversation_with_a_cache_key_continues_after_a_restart(tmp_path: Path) -> None:
    recorder = Recorder()
    recorder.start(Memory(Table(tmp_path / "sessions.db")))
    calls = [keyed(recorder, text, text.upper()) for text in "ab"]
    recorder.tracker.memory.commit(10.0, at_once=True)
    recorder.tracker.memory.close()
    recorder.start(Memory(Table(tmp_path / "sessions.db"), most_rows=1))  # nothing fits: both are read when needed
    for call, text in zip(calls, "ab", strict=True):
        assert keyed(recorder, text, text.upper(), "c", "C").session == call.session


def test_an_agent_that_claims_the_cache_key_keeps_one_session_when_its_history_is_replaced() -> None:
    recorder = Recorder()
    codex = {"originator": "codex_exec"}
    one, two = (recorder.ask(history(text), body=KEY, **codex) for text in ("a", "summary"))
    assert (two.session, two.link) == (one.session, "rewrite")
    assert (two.identity.confidence, two.identity.session) == ("likely", "my-app")


# ---------------------------------------------------------------- headers

OF_ONE_AGENT = {name for agent in AGENTS for name in agent.wire.headers}  # the agent is known by this name alone
GENERIC = [name for name in (*GENERIC_HEADERS, *GATEWAYS) if name not in OF_ONE_AGENT]
TWO_AGENTS = ({"user_agent": "GeminiCLI/0.61.0"}, {"user_agent": "QwenCode/0.24.4"})
TWO_ACCOUNTS = ({"authorization": "Bearer one"}, {"authorization": "Bearer two"})


@pytest.mark.parametrize("header", GENERIC)
@pytest.mark.parametrize("clients", [TWO_AGENTS, TWO_ACCOUNTS], ids=["agents", "accounts"])
def test_one_name_from_two_clients_is_two_sessions(header: str, clients: tuple[dict[str, str], ...]) -> None:
    recorder, name = Recorder(), {header.replace("-", "_"): "s"}
    for texts in (("a",), ("a", "A", "b")):
        calls = [
            recorder.ask(history(*(text + str(at) for text in texts)), body=None, **client, **name)
            for at, client in enumerate(clients)
        ]
        for at, call in enumerate(calls):
            recorder.answer(call, f"{'AB'[len(texts) // 2]}{at}")
        assert calls[0].session != calls[1].session
        assert [call.identity.session for call in calls] == ["s", None]
    assert [call.link for call in calls] == ["continuation"] * 2


def test_a_name_that_two_agents_claim_is_two_sessions() -> None:
    claims = [(agent, agent.wire.session_headers[0]) for agent in AGENTS if agent.wire.session_headers][:2]
    recorder = Recorder()
    calls = [
        recorder.talk(f"a{at}", "A", user_agent=agent.wire.user_agents[0], **{header.replace("-", "_"): "s"})
        for at, (agent, header) in enumerate(claims)
    ]
    assert len({call.session for call in calls}) == 2


def test_a_session_continues_with_a_renewed_credential() -> None:
    recorder = Recorder()
    first = recorder.talk("a", "A", x_affinity="s", authorization="Bearer one")
    second = recorder.talk("a", "A", "b", "B", x_affinity="s", authorization="Bearer two")
    third = recorder.talk("summary", "C", x_affinity="s", authorization="Bearer two")
    assert {second.session, third.session} == {first.session}
    assert [second.link, third.link] == ["continuation", "rewrite"]


def test_calls_without_a_credential_belong_to_the_session_of_their_header() -> None:
    recorder = Recorder()
    first = recorder.talk("a", "A", x_affinity="s", authorization="Bearer one")
    second = recorder.talk("summary", "B", x_affinity="s")
    assert (second.session, second.link) == (first.session, "rewrite")


def test_a_masked_credential_does_not_separate_accounts() -> None:
    recorder = Recorder()
    first = recorder.talk("a", "A", x_affinity="s", authorization="Bearer one")
    second = recorder.talk("summary", "B", x_affinity="s", authorization="Bearer [redacted]")
    assert second.session == first.session


# ---------------------------------------------------------------- any input


@settings(max_examples=60, deadline=None)
@given(order=st.lists(st.integers(0, 4), min_size=2, max_size=20))
def test_interleaved_conversations_with_one_cache_key_stay_apart(order: list[int]) -> None:
    recorder, sessions, said = Recorder(), dict[int, str | None](), dict[int, list[str]]()
    for number in order:
        texts = said.setdefault(number, [])
        texts += [f"{number} asks {len(texts)}", f"{number} answers {len(texts)}"]
        call = keyed(recorder, *texts)
        assert sessions.setdefault(number, call.session) == call.session
    assert len(set(sessions.values())) == len(sessions)


def _is_name(value: object) -> bool:
    return isinstance(value, str) and 0 < len(value) <= 256 and value.isprintable() and bool(value.strip())


@settings(max_examples=200, deadline=None)
@given(
    headers=st.dictionaries(
        st.sampled_from(GENERIC),
        st.one_of(st.text(max_size=8), st.sampled_from(["s", "", " ", "\x00", "x" * 257, "a\r\nb", "é", "\u2028"])),
    ),
    key=st.one_of(st.text(max_size=4), st.sampled_from(ODD_VALUES)),
)
def test_the_first_usable_name_in_the_table_counts(headers: dict[str, str], key: Any) -> None:
    messages: Messages = history("a")
    sent = key.encode("utf-8", "backslashreplace").decode() if isinstance(key, str) else key
    names = [(name, headers[name]) for name in GENERIC if _is_name(headers.get(name))]
    expected = names[0] if names else ("prompt_cache_key", sent) if _is_name(sent) else ("none", None)
    headers = {**headers, "user-agent": "claude-cli/2"}  # which claims none of these names
    try:
        said = decide(body={"messages": messages, "prompt_cache_key": key}, headers=headers).identity
    except (TypeError, ValueError):  # the value cannot stand in a JSON document
        return
    assert (said.source, said.id) == expected
