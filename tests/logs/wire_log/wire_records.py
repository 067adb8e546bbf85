"""The real clients' calls of `tests/data` as the records that the recorder writes of them."""

import json
from collections.abc import Iterable, Iterator
from dataclasses import dataclass, replace
from functools import cache
from typing import Any

import msgspec

from agent_logger.model.records import Chunk, Identity, Record, Request, Response, Timing, WireStart
from tests.providers.captures import Capture, captures

THREADS = {"main": "main", "compact": "main"}
STREAM_PIECE = 700  # bytes of a chunk


@dataclass(frozen=True)
class Talk:
    """One session of one scenario. Without an id of the client's: all calls of the scenario that have none."""

    name: str
    client_id: str | None
    calls: tuple[Capture, ...]

    def records(self, *, rejoined: bool = True) -> list[Record]:
        """`rejoined`: with the message and all that is known of it, as newer logs have it."""
        start = WireStart(
            ts=ts(0),
            provider=self.calls[0].provider,
            upstream="api.example.com",
            session=self.name.replace("/", "-"),
            identity=Identity(id=self.client_id, source="header", confidence="certain"),
            agent=self.name.split("/")[0],
        )
        return [start, *self.called(rejoined=rejoined)]

    def called(self, *, rejoined: bool = True) -> Iterator[Record]:
        first_tries: dict[str, int] = {}
        for number, call in enumerate(self.calls, 1):
            asked = f"{thread(call)} {json.dumps((call.asked or {}).get('messages'))}"
            again = first_tries.get(asked) if call.asked else None
            yield request(call, number, retry_of=again)
            yield response(call, number, rejoined=rejoined)
            if call.truth["status"] != 200 or not call.truth["complete"]:
                first_tries.setdefault(asked, number)

    def of(self, *seqs: int) -> "Talk":
        return replace(self, calls=tuple(it for it in self.calls if it.truth["seq"] in seqs))


@cache
def talks() -> tuple[Talk, ...]:
    found: dict[tuple[str, str | None], list[Capture]] = {}
    for call in captures():
        name = call.name.rpartition("/")[0]
        if call.truth["session_id"] or call.truth["kind"] != "probe":
            found.setdefault((name, call.truth["session_id"]), []).append(call)
    return tuple(Talk(name, client_id, tuple(calls)) for (name, client_id), calls in found.items())


def talk(name: str, number: int = 0) -> Talk:
    return [it for it in talks() if it.name.endswith(name)][number]


def thread(call: Capture) -> str:
    if call.truth["kind"] == "subagent":
        return f"agent:{call.truth['agent_id']}"
    return THREADS.get(call.truth["kind"], "side")


def ts(second: float) -> str:
    return f"2026-11-15T08:{int(second) // 60:02}:{second % 60:06.3f}Z"


def request(call: Capture, seq: int, **more: Any) -> Request:
    kind = "side" if call.truth["kind"] == "warmup" else call.truth["kind"]
    return Request(
        ts=ts(seq),
        seq=seq,
        method=call.truth["method"],
        path=call.path,
        headers={"content-type": "application/json"},
        body=call.request_body.decode(),
        fingerprint=None,
        thread=thread(call),
        kind=kind,
        **more,
    )


def response(call: Capture, seq: int, *, rejoined: bool = True, **more: Any) -> Response:
    text = call.body.decode()
    pieces = [text[at : at + STREAM_PIECE] for at in range(0, len(text), STREAM_PIECE)]
    body: dict[str, Any] = {"chunks": [Chunk(delta_ms=0, raw=it) for it in pieces]} if call.streamed else {"body": text}
    if rejoined and call.dialect:
        body |= told(call)
    return Response(
        ts=ts(seq + 0.5),
        seq=seq,
        status=call.truth["status"],
        headers={},
        timing=Timing(ttfb_ms=1, total_ms=2),
        complete=call.truth["complete"] or b"event: error" in call.body,
        request_id=f"req_{seq}",
        **body | more,
    )


def told(call: Capture) -> dict[str, Any]:
    assert call.dialect
    answer = call.dialect.read(call.body)
    known = {
        "message": _raw(answer.message),
        "message_id": answer.message_id,
        "model": answer.model,
        "stop_reason": answer.stop_reason,
        "usage": _raw(answer.raw_usage),
    }
    return known if answer.message is not None else {}


def _raw(value: Any) -> msgspec.Raw | msgspec.UnsetType:
    return msgspec.UNSET if value is None else msgspec.Raw(msgspec.json.encode(value))


def shuffled(records: Iterable[Record]) -> list[Record]:
    """With every answer behind the next request, as when several are open at once."""
    kept = list(records)
    for at in range(len(kept) - 1):
        if isinstance(kept[at], Response) and isinstance(kept[at + 1], Request):
            kept[at], kept[at + 1] = kept[at + 1], kept[at]
    return kept
