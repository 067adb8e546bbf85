"""Answers of Google's generateContent and streamGenerateContent.

A stream is a row of whole responses, each with the parts that are new: as server-sent events, or as one JSON array
that grows. Google's Code Assist puts each of them into an object of its own.
"""

import json
from collections import defaultdict
from typing import Any

import msgspec

from agent_logger.providers.answer import Answer, Assembler, failure
from agent_logger.providers.json_values import Json, fields_of, text_of
from agent_logger.providers.token_counts import usage_of


class _Content(msgspec.Struct):
    role: str | None = None
    parts: list[Json] | None = None


class _Candidate(msgspec.Struct, rename="camel"):
    index: int = 0
    content: _Content | None = None
    finish_reason: str | None = None


class _Chunk(msgspec.Struct, rename="camel"):
    candidates: list[_Candidate] | None = None
    usage_metadata: Any = None
    model_version: str | None = None
    response_id: str | None = None
    prompt_feedback: Any = None
    error: Any = None
    # Code Assist's; an error may be in it or beside it, and the id is often beside it alone.
    response: "_Chunk | None" = None
    trace_id: Any = None


_chunk = msgspec.json.Decoder(_Chunk)
_chunks = msgspec.json.Decoder(list[msgspec.Raw])
_value = json.JSONDecoder().raw_decode


class _Parts:
    """The parts of a candidate. Texts that follow each other are one, as they are where nothing is streamed."""

    __slots__ = ("_open", "finished", "joined", "role")

    def __init__(self) -> None:
        self.role: str | None = None
        self.finished: str | None = None
        self.joined: list[Json] = []
        self._open: list[str] = []  # pieces of the last one

    def add(self, part: Json) -> None:
        piece = part.get("text")
        if not isinstance(piece, str) or not part.keys() <= {"text", "thought", "thoughtSignature"}:
            self._close()
            self.joined.append(part)
            return
        if not self._open or self.joined[-1].get("thought") != part.get("thought"):
            self._close()
            self.joined.append({**part})
        self._open.append(piece)
        if "thoughtSignature" in part:  # it signs what came up to here
            self.joined[-1]["thoughtSignature"] = part["thoughtSignature"]
            self._close()

    def _close(self) -> None:
        if self._open:
            self.joined[-1]["text"] = "".join(self._open)
            self._open = []

    def message(self) -> Json:
        self._close()
        return {"role": self.role or "model", "parts": self.joined}


class GenerateContent(Assembler):
    def __init__(self) -> None:
        super().__init__()
        self._id: str | None = None
        self._model: str | None = None
        self._usage: Json | None = None
        self._candidates: dict[int, _Parts] = defaultdict(_Parts)
        self._blocked: str | None = None

    def event(self, data: bytes) -> None:
        chunk = self.read(_chunk, data)
        if chunk is None:
            return
        envelope, chunk = chunk, chunk.response or chunk
        for candidate in chunk.candidates or ():
            self._add(candidate)
        self._id = self._id or chunk.response_id or text_of(envelope.trace_id) or None
        self._model = self._model or chunk.model_version
        if isinstance(chunk.usage_metadata, dict):  # running totals, some of them only now and then
            self._usage = (self._usage or {}) | chunk.usage_metadata
        if chunk.prompt_feedback:
            self._blocked = text_of(fields_of(chunk.prompt_feedback).get("blockReason"))
        if error := chunk.error or envelope.error:
            self.fail(failure({"error": error}))

    def whole(self, data: bytes) -> None:
        if data.lstrip().startswith(b"["):
            for chunk in self._array(data):
                self.event(chunk)
        else:
            self.event(data)
            self.ended = not self.damaged
        if not (self._candidates or self._blocked or self.error):
            self.damaged = True

    def _array(self, data: bytes) -> list[bytes]:
        try:
            return [bytes(chunk) for chunk in _chunks.decode(data)]
        except (ValueError, RecursionError):
            chunks, rest = _before_the_cut(data)
            self.damaged = self.damaged or rest not in (("]",) if self.framed else ("]", ""))
            return chunks

    def assemble(self) -> Answer:
        first = min(self._candidates, default=0)
        candidate = self._candidates.get(first)
        if self._blocked or (self._candidates and all(candidate.finished for candidate in self._candidates.values())):
            self.ended = True
        return Answer(
            message=candidate.message() if candidate else None,
            message_id=self._id,
            model=self._model,
            stop_reason=(candidate.finished if candidate else None) or self._blocked,
            usage=usage_of(self._usage),
            raw_usage=self._usage,
        )

    def _add(self, candidate: _Candidate) -> None:
        parts = self._candidates[candidate.index]
        if candidate.content:
            parts.role = candidate.content.role or parts.role
            for part in candidate.content.parts or ():
                parts.add(part)
        parts.finished = candidate.finish_reason or parts.finished


def _before_the_cut(data: bytes) -> tuple[list[bytes], str]:
    """The whole objects of an array that continues past the end of the bytes, or is only odd; and what stands behind
    them."""
    text, end = data.decode("utf-8", "replace"), 0
    chunks: list[bytes] = []
    while (start := text.find("{", end)) >= 0:
        try:
            _, end = _value(text, start)
        except (ValueError, RecursionError):
            return chunks, text[start:]
        chunks.append(text[start:end].encode())
    return chunks, text[end:].strip()
