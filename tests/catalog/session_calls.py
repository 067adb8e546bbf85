"""A wire log of the calls that an agent made, from what its own files say of them."""

from collections.abc import Iterable, Iterator, Sequence
from datetime import datetime, timedelta
from typing import Any

import msgspec

from agent_logger.model.records import Identity, Request, Response, Timing, WireStart
from agent_logger.model.responses import utc
from agent_logger.model.session import Block, Exchange, Session, Turn, Usage

WireRecord = WireStart | Request | Response
MESSAGES = "/v1/messages"
ANSWER_SECONDS = 0.5


def records_of(
    session: Session, log: str, *, client: str | None = None, client_id: str | None = None, thread: str = "main"
) -> list[WireRecord]:
    """Return the records of a log with the session's calls of one thread. `client`: as whose the calls were recognised;
    `client_id`: the id that they had."""
    calls = list(_calls(session.exchanges, thread))
    start = WireStart(
        ts=_text(calls[0][1] if calls else session.started),
        provider="anthropic",
        upstream="api.example.com",
        session=log,
        identity=Identity(id=client_id, source="header", confidence="certain") if client_id else None,
        agent=client or session.agent,
    )
    records: list[WireRecord] = [start]
    for seq, (messages, at, turn) in enumerate(calls, 1):
        records += [_request(seq, at, messages, turn.model), _response(seq, at, turn)]
    return records


def _calls(exchanges: Iterable[Exchange], thread: str) -> Iterator[tuple[list[dict[str, Any]], datetime, Turn]]:
    """Yield each answer with the messages that were sent before it, and when it came."""
    messages: list[dict[str, Any]] = []
    for exchange in exchanges:
        asked = exchange.user_input
        for turn in exchange.turns:
            at = turn.ended or turn.started or exchange.started
            if turn.thread != thread or at is None or turn.is_synthetic or not turn.complete:
                continue
            if asked is not None:
                messages.append({"role": "user", "content": asked})
                asked = None
            if turn.counted_in is None:  # else its call was made in the session that this is a fork of
                yield list(messages), utc(at), turn
            messages.append({"role": "assistant", "content": _content(turn.blocks)})
            if results := [block for block in turn.blocks if block.kind == "tool_result"]:
                messages.append({"role": "user", "content": [_result(block) for block in results]})


def _content(blocks: Sequence[Block]) -> list[dict[str, Any]]:
    content: list[dict[str, Any]] = []
    for at, block in enumerate(blocks):
        if block.kind == "text":
            content.append({"type": "text", "text": block.text})
        elif block.kind == "tool_use":
            content.append({"type": "tool_use", "id": block.id or f"call_{at}", "name": block.name, "input": {}})
    return content


def _result(block: Block) -> dict[str, Any]:
    return {"type": "tool_result", "tool_use_id": block.id or "", "content": block.text}


def _request(seq: int, at: datetime, messages: list[dict[str, Any]], model: str | None) -> Request:
    return Request(
        ts=_text(at - timedelta(seconds=ANSWER_SECONDS)),
        seq=seq,
        method="POST",
        path=MESSAGES,
        headers={"content-type": "application/json"},
        body=msgspec.json.encode({"model": model, "messages": messages}).decode(),
        fingerprint=None,
        thread="main",
        kind="main",
    )


def _response(seq: int, at: datetime, turn: Turn) -> Response:
    stop_reason = "tool_use" if any(block.kind == "tool_use" for block in turn.blocks) else "end_turn"
    answer = {
        "id": turn.message_id,
        "type": "message",
        "role": "assistant",
        "model": turn.model,
        "content": _content(turn.blocks),
        "stop_reason": stop_reason,
        "usage": _usage(turn.usage),
    }
    return Response(
        ts=_text(at),
        seq=seq,
        status=200,
        headers={"content-type": "application/json"},
        body=msgspec.json.encode(answer).decode(),
        timing=Timing(ttfb_ms=1, total_ms=500),
        complete=True,
        message=msgspec.Raw(msgspec.json.encode({"role": "assistant", "content": answer["content"]})),
        message_id=turn.message_id,
        model=turn.model,
        stop_reason=stop_reason,
        usage=msgspec.Raw(msgspec.json.encode(answer["usage"])),
    )


def _usage(usage: Usage | None) -> dict[str, int]:
    usage = usage or Usage(input_tokens=7, output_tokens=3)
    return {
        "input_tokens": usage.input_tokens,
        "output_tokens": usage.output_tokens,
        "cache_read_input_tokens": usage.cache_read_tokens,
        "cache_creation_input_tokens": usage.cache_write_tokens,
    }


def _text(at: datetime | None) -> str:
    return at.isoformat() if at else "2026-11-15T08:00:00+00:00"
