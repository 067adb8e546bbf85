"""One table of (record, line) pairs drives encoding and decoding alike."""

import msgspec
import pytest
from hypothesis import given
from hypothesis import strategies as st

from agent_logger.model import records as r
from agent_logger.model.records import Kind, Record

PAIRS: list[tuple[Kind, Record, bytes]] = [
    (
        "exchange",
        r.SessionStart(
            session_id="1f320356",
            ts="2026-11-15T08:45:32.000Z",
            model="claude-haiku-4-5",
            cwd="/work",
            tools_available=["Bash"],
            permission_mode="default",
            witness="sdk",
            log="01a1",
            part="01a2",
            machine="9f86d081884c7d65",
            writer=r.Writer(pid=7, started="2026-11-15T08:45:31.000Z", version="0.1.0"),
            mac="v1:5e88",
        ),
        b'{"type":"session_start","v":1,"log":"01a1","part":"01a2","machine":"9f86d081884c7d65",'
        b'"writer":{"pid":7,"started":"2026-11-15T08:45:31.000Z","version":"0.1.0"},"mac":"v1:5e88",'
        b'"session_id":"1f320356","ts":"2026-11-15T08:45:32.000Z","model":"claude-haiku-4-5","cwd":"/work",'
        b'"tools_available":["Bash"],"permission_mode":"default","witness":"sdk"}',
    ),
    (
        "exchange",
        r.ExchangeRecord(
            session_id="1f320356",
            exchange=1,
            ts_start="a",
            ts_end="b",
            user_input="hi",
            messages=[
                r.Message(
                    source="assistant",
                    type="tool_use",
                    ts="a",
                    tool_use_id="t1",
                    name="Bash",
                    input=msgspec.Raw(b'{"z": 1, "a":2}'),
                )
            ],
            stats=r.ExchangeStats(
                num_turns=1,
                duration_ms=2,
                duration_api_ms=None,
                tokens_in=3,
                tokens_out=4,
                cache_creation=5,
                cache_read=6,
                cost_usd=0.5,
                reported_total_cost_usd=1.5,
            ),
            id="x",
            end_reason="result",
        ),
        b'{"type":"exchange","v":1,"session_id":"1f320356","exchange":1,"ts_start":"a","ts_end":"b",'
        b'"user_input":"hi","messages":[{"source":"assistant","type":"tool_use","ts":"a","tool_use_id":"t1",'
        b'"name":"Bash","input":{"z": 1, "a":2}}],"stats":{"num_turns":1,"duration_ms":2,'
        b'"duration_api_ms":null,"tokens_in":3,"tokens_out":4,"cache_creation":5,"cache_read":6,'
        b'"cost_usd":0.5,"reported_total_cost_usd":1.5},"id":"x","end_reason":"result"}',
    ),
    (
        "exchange",
        r.SessionEnd(
            session_id="1f320356",
            ts="c",
            total_exchanges=1,
            total_duration_ms=2,
            total_duration_api_ms=3,
            total_cost_usd=0.5,
            total_tokens=r.Tokens(input=1, output=2, cache_creation=3, cache_read=4),
            tools_used={"Bash": 1},
        ),
        b'{"type":"session_end","v":1,"session_id":"1f320356","ts":"c","total_exchanges":1,'
        b'"total_duration_ms":2,"total_duration_api_ms":3,"total_cost_usd":0.5,'
        b'"total_tokens":{"input":1,"output":2,"cache_creation":3,"cache_read":4},"tools_used":{"Bash":1}}',
    ),
    ("exchange", r.Resume(session_id="s", ts="t"), b'{"type":"resume","v":1,"session_id":"s","ts":"t"}'),
    (
        "live",
        r.LiveStart(id="x", session_id=None, exchange=2, ts_start="t", user_input="go"),
        b'{"type":"live_start","v":1,"id":"x","session_id":null,"exchange":2,"ts_start":"t","user_input":"go"}',
    ),
    (
        "live",
        r.LiveMessage(id="x", message=r.Message(source="assistant", type="text", ts="t", text="a")),
        b'{"type":"live_message","v":1,"id":"x","message":{"source":"assistant","type":"text","ts":"t","text":"a"}}',
    ),
    (
        "wire",
        r.WireStart(
            ts="t",
            provider="anthropic",
            upstream="api.anthropic.com",
            identity=r.Identity(id="1f", source="x-claude-code-session-id", confidence="certain"),
        ),
        b'{"type":"session_start","v":1,"ts":"t","provider":"anthropic","upstream":"api.anthropic.com",'
        b'"identity":{"id":"1f","source":"x-claude-code-session-id","confidence":"certain"}}',
    ),
    (
        "wire",
        r.WireStart(
            ts="t",
            provider="openai",
            upstream="api.openai.com",
            session="20261115-084532-a7f3_b1",
            identity=r.Identity(id=None, source="fingerprint", confidence="ambiguous", candidates=["a", "b"]),
            agent="codex",
        ),
        b'{"type":"session_start","v":1,"ts":"t","provider":"openai","upstream":"api.openai.com",'
        b'"session":"20261115-084532-a7f3_b1","identity":{"id":null,"source":"fingerprint",'
        b'"confidence":"ambiguous","candidates":["a","b"]},"agent":"codex"}',
    ),
    (
        "wire",
        r.Request(
            ts="t",
            seq=2,
            method="POST",
            path="/v1/messages",
            headers={},
            body=None,
            fingerprint="v1:ab",
            thread="main",
            kind="main",
            identity=r.Identity(id=None, source="fingerprint", confidence="likely"),
            retry_of=1,
        ),
        b'{"type":"request","v":1,"ts":"t","seq":2,"method":"POST","path":"/v1/messages","headers":{},"body":null,'
        b'"fingerprint":"v1:ab","thread":"main","kind":"main",'
        b'"identity":{"id":null,"source":"fingerprint","confidence":"likely"},"retry_of":1}',
    ),
    (
        "wire",
        r.Request(
            ts="t",
            seq=1,
            method="POST",
            path="/v1/messages",
            headers={"Host": "api.anthropic.com", "X-Dup": ["1", "2"]},
            body="{}",
            fingerprint="v1:ab",
            call="01a3",
            bytes=2,
            redactions=[r.Redaction(place="headers.x-api-key", offset=0, length=40, rule="credential")],
        ),
        b'{"type":"request","v":1,"ts":"t","seq":1,"method":"POST","path":"/v1/messages",'
        b'"headers":{"Host":"api.anthropic.com","X-Dup":["1","2"]},"body":"{}","fingerprint":"v1:ab",'
        b'"call":"01a3","bytes":2,'
        b'"redactions":[{"place":"headers.x-api-key","offset":0,"length":40,"rule":"credential"}]}',
    ),
    (
        "wire",
        r.Response(
            ts="t",
            seq=1,
            status=200,
            headers={"content-type": "text/event-stream"},
            timing=r.Timing(ttfb_ms=1.5, total_ms=2.5),
            chunks=[r.Chunk(ts="t", delta_ms=0.5, raw="data: {}\n\n")],
            complete=True,
        ),
        b'{"type":"response","v":1,"ts":"t","seq":1,"status":200,"headers":{"content-type":"text/event-stream"},'
        b'"timing":{"ttfb_ms":1.5,"total_ms":2.5},"chunks":[{"delta_ms":0.5,"ts":"t","raw":"data: {}\\n\\n"}],'
        b'"complete":true}',
    ),
    (
        "wire",
        r.Fork(ts="t", from_seq=3, parent_session="20260113-102345-a7f3", reason="message_history_diverged"),
        b'{"type":"fork","v":1,"ts":"t","from_seq":3,"parent_session":"20260113-102345-a7f3",'
        b'"reason":"message_history_diverged"}',
    ),
    (
        "wire",
        r.Refusals(ts="t", since="s", count=412, statuses={"403": 400, "421": 12}, frame="1f:7"),
        b'{"type":"refusals","v":1,"ts":"t","since":"s","count":412,"statuses":{"403":400,"421":12},"frame":"1f:7"}',
    ),
    (
        "wire",
        r.Rewrite(ts="t", seq=4, reason="compaction"),
        b'{"type":"rewrite","v":1,"ts":"t","seq":4,"reason":"compaction"}',
    ),
    (
        "transcript",
        r.SessionHeader(
            id="1f",
            created="t",
            cwd="/work",
            project_path="/work",
            git_branch=None,
            agent=None,
            model=None,
            version=None,
        ),
        b'{"type":"session_header","v":1,"id":"1f","created":"t","cwd":"/work","project_path":"/work",'
        b'"git_branch":null,"agent":null,"model":null,"version":null}',
    ),
    (
        "transcript",
        r.Verbatim(line='{"type":"gap"}'),
        b'{"type":"verbatim","v":1,"line":"{\\"type\\":\\"gap\\"}"}',
    ),
    (
        "wire",
        r.Part(ts="t", kind="wire", number=2, reason="full", after="01a2"),
        b'{"type":"part","v":1,"ts":"t","kind":"wire","number":2,"reason":"full","after":"01a2"}',
    ),
    (
        "wire",
        r.Gap(ts="t", lost=3, since="s", seconds=1.5, reason="No space left on device"),
        b'{"type":"gap","v":1,"ts":"t","lost":3,"since":"s","seconds":1.5,"reason":"No space left on device"}',
    ),
    ("exchange", r.Recovered(ts="t", torn_bytes=9), b'{"type":"recovered","v":1,"ts":"t","torn_bytes":9}'),
    (
        "transcript",
        r.Large(file="a.bodies/line", bytes=20_000_000),
        b'{"type":"large","v":1,"file":"a.bodies/line","bytes":20000000}',
    ),
    (
        "hook",
        r.Hook(ts="t", input=msgspec.Raw(b'{"session_id": "s"}')),
        b'{"type":"hook","v":1,"ts":"t","input":{"session_id": "s"}}',
    ),
]
IDS = [f"{kind}-{r.tag(record)}" for kind, record, _ in PAIRS]


@pytest.mark.parametrize(("kind", "record", "line"), PAIRS, ids=IDS)
def test_a_record_is_encoded_as_its_line_and_decoded_back(kind: Kind, record: Record, line: bytes) -> None:
    assert r.encode(record) == line
    assert r.decode(line, kind) == record


def test_every_record_type_has_a_line_in_the_table() -> None:
    assert {type(record) for _, record, _ in PAIRS} == {it for types in r.KINDS.values() for it in types}


@pytest.mark.parametrize(("kind", "record", "line"), PAIRS, ids=IDS)
def test_the_first_line_identifies_the_kind_of_log(kind: Kind, record: Record, line: bytes) -> None:
    if type(record) not in (r.Gap, r.Recovered, r.Large):  # they stand in every log, and first in none
        assert r.kind_of(line) == kind


UNKNOWN = [
    b'{"type": "invented_next_year",  "v":1, "a":[1, 2.50]}',
    b'{"type":"exchange","v":99,"shape":"new"}',
    b'{"no":"type"}',
    b'{"type":5}',
    b"[1,2]",
    b'"text"',
]


@pytest.mark.parametrize("line", UNKNOWN)
@pytest.mark.parametrize("kind", r.KINDS)
def test_unknown_records_round_trip_byte_for_byte(line: bytes, kind: Kind) -> None:
    assert r.encode(r.decode(line, kind)) == line


def test_a_transcript_line_is_not_decoded_as_a_wire_record() -> None:
    line = b'{"type":"request","uuid":"1"}'
    assert r.decode(line, "transcript") == r.Unknown(line)


BROKEN = [b'{"type":"gap","v":1}', b'{"type":"request","v":1,"seq":"one"}', b'{"type":"exchange"', b""]


@pytest.mark.parametrize("line", BROKEN)
def test_a_malformed_record_raises_an_error(line: bytes) -> None:
    with pytest.raises(msgspec.MsgspecError):
        r.decode(line, "wire" if b"request" in line else "exchange")


# The examples of the specification, as they stand there.
SEED_START = (
    b'{"type":"session_start","session_id":"1f320356-a178-418e-a692-69ce6e1e657c","ts":"2025-11-07T08:45:32Z",'
    b'"model":"claude-haiku-4-5-20251001","cwd":"/Users/gang","tools_available":["Bash","Read","Write"],'
    b'"permission_mode":"default"}'
)
SEED_EXCHANGE = (
    b'{"type":"exchange","session_id":"1f320356","exchange":1,"ts_start":"2025-11-07T08:45:35Z",'
    b'"ts_end":"2025-11-07T08:45:42Z","user_input":"help me write a poem","messages":[{"source":"assistant",'
    b'"type":"tool_use","tool_use_id":"toolu_017Mw","name":"Write","input":{"file_path":"poem.md"},'
    b'"ts":"2025-11-07T08:45:37Z"}],"stats":{"num_turns":2,"duration_ms":6901,"tokens_in":9,'
    b'"tokens_out":444,"cache_creation":11903,"cache_read":11530,"cost_usd":0.004965}}'
)
SEED_REQUEST = (
    b'{"type":"request","ts":"2026-01-13T10:23:45Z","seq":1,"method":"POST","path":"/v1/messages",'
    b'"headers":{},"body":"{}"}'
)


def test_records_of_format_version_0_are_upgraded() -> None:
    start = r.decode(SEED_START, "exchange")
    assert isinstance(start, r.SessionStart)
    assert (start.v, start.witness) == (r.VERSION, None)
    exchange = r.decode(SEED_EXCHANGE, "exchange")
    assert isinstance(exchange, r.ExchangeRecord)
    assert exchange.stats is not None
    assert exchange.stats.duration_api_ms is None
    assert exchange.stats.reported_total_cost_usd == exchange.stats.cost_usd == 0.004965
    request = r.decode(SEED_REQUEST, "wire")
    assert isinstance(request, r.Request)
    assert request.fingerprint is None


def test_every_older_version_has_an_upgrade() -> None:
    assert sorted(r.LIFTS) == list(range(r.VERSION))


@given(st.binary())
def test_any_bytes_round_trip_as_text(data: bytes) -> None:
    text, encoding = r.as_text(data)
    assert r.as_bytes(text, encoding) == data
    assert msgspec.json.decode(msgspec.json.encode(text)) == text


def test_a_lone_surrogate_is_written_unchanged_and_read_as_a_replacement_character() -> None:
    line = r.encode(r.Resume(session_id="a\ud800", ts="t"))
    assert line == b'{"type":"resume","v":1,"session_id":"a\\ud800","ts":"t"}'
    assert r.decode(line, "exchange") == r.Resume(session_id="a\ufffd", ts="t")


def test_a_lone_surrogate_beside_a_raw_value_is_written() -> None:
    message = r.Message(source="tool", type="result", ts="t", output="\udc00", input=msgspec.Raw(b'{"b": 1}'))
    line = r.encode(r.LiveMessage(id="x", message=message))
    assert b'"input":{"b":1}' in line
    assert b'"output":"\\udc00"' in line
