"""Messages in any order: nothing is lost, nothing is said twice, and what is written can be read."""

import tempfile
from pathlib import Path
from typing import Any

from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from agent_logger import SessionLogger
from agent_logger.logs.log_records import read_log
from agent_logger.model.records import ExchangeRecord, Record
from tests.recording.test_sdk_logger import OTHER, SESSION, init, result, said

SESSIONS = st.sampled_from([SESSION, OTHER])
TEXTS = st.integers(0, 999_999).map(str)
MODELS = st.sampled_from([{}, {"modelUsage": {"m": {"inputTokens": 9, "outputTokens": 4, "costUSD": 1}}}])
ORIGINS = st.sampled_from([{}, {"origin": {"kind": "task-notification"}}, {"origin": {"kind": "human"}}])
HAPPENINGS = st.one_of(
    TEXTS.map(lambda it: f"input {it}"),
    SESSIONS.map(init),
    st.builds(said, TEXTS, SESSIONS),
    st.builds(
        lambda cost, session, more, origin: result(cost, session, **more, **origin),
        st.floats(0, 10), SESSIONS, MODELS, ORIGINS,
    ),
    st.builds(lambda it: {"type": "conversation_reset", "session_id": it}, SESSIONS),
    st.just({"type": "system", "subtype": "status"}),
    st.just("close"),
    st.dictionaries(st.text(max_size=5), st.none() | st.integers() | st.text(max_size=5), max_size=3),
)  # fmt: skip


def asked(exchange: ExchangeRecord) -> list[str]:
    return exchange.user_inputs or ([] if exchange.user_input is None else [exchange.user_input])


@settings(max_examples=60, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(st.lists(HAPPENINGS, max_size=25))
def test_inputs_and_messages_in_any_order_are_logged_once(happenings: list[Any]) -> None:
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        with SessionLogger(folder, strict=True) as logger:
            for it in happenings:
                if it == "close":
                    logger.close()
                elif isinstance(it, str):
                    logger.log_user_input(it)
                else:
                    logger.log(it)
        exchanges = []
        for path in folder.glob("*.jsonl"):
            found = [item.value for item in read_log(folder, path.stem)]
            assert all(isinstance(it, Record) for it in found)
            own = [it for it in found if isinstance(it, ExchangeRecord)]
            assert [it.exchange for it in own] == list(range(1, len(own) + 1))
            exchanges += own
        inputs = [text for it in exchanges for text in asked(it)]
        assert sorted(inputs) == sorted(it for it in happenings if isinstance(it, str) and it != "close")
        texts = [entry.text for it in exchanges for entry in it.messages if entry.type == "text"]
        wanted = [it for it in happenings if isinstance(it, dict) and it.get("type") == "assistant"]
        assert sorted(map(str, texts)) == sorted(it["message"]["content"][0]["text"] for it in wanted)
        results = [it for it in happenings if isinstance(it, dict) and it.get("type") == "result"]
        assert len([it for it in exchanges if it.stats]) == len(results)
        costs = [it.stats.cost_usd for it in exchanges if it.stats]
        assert all(it is None or it >= 0 for it in costs)
