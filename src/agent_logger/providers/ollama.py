"""Answers of Ollama's own API: `/api/chat` and `/api/generate`, one JSON object per line; the last one has the token
counts.

Nothing has an id here. `prompt_eval_count` leaves out the part of the prompt that is still cached from before.
"""

from typing import Any

import msgspec

from agent_logger.providers.answer import Answer, Assembler, failure
from agent_logger.providers.json_values import Json, fields_of, text_of
from agent_logger.providers.token_counts import usage_of

_COUNTS = ("prompt_eval_count", "eval_count")


class _Piece(msgspec.Struct):
    model: str | None = None
    message: Json | None = None  # of a chat
    response: str | None = None  # of a text that is gone on with
    thinking: str | None = None
    done: bool = False
    done_reason: Any = None
    prompt_eval_count: Any = None
    eval_count: Any = None
    error: Any = None


_piece = msgspec.json.Decoder(_Piece)


class Ollama(Assembler):
    def __init__(self) -> None:
        super().__init__()
        self._model: str | None = None
        self._stop_reason: str | None = None
        self._usage: Json | None = None
        self._texts: dict[str, list[str]] = {}  # by field
        self._calls: list[Any] = []
        self._begun = False

    def event(self, data: bytes) -> None:
        piece = self.read(_piece, data)
        if piece is None:
            return
        self._model = self._model or piece.model
        if piece.error:
            self.fail(failure({"error": piece.error}))
        fields = {"content": piece.response, "thinking": piece.thinking, **fields_of(piece.message)}
        self._begun = self._begun or piece.message is not None or piece.response is not None
        for name in ("thinking", "content"):
            if text := text_of(fields.get(name)):
                self._texts.setdefault(name, []).append(text)
        calls = fields.get("tool_calls")
        self._calls += calls if isinstance(calls, list) else ()
        if piece.done:
            self.ended = True
            self._stop_reason = text_of(piece.done_reason)
            counts = {name: getattr(piece, name) for name in _COUNTS}
            self._usage = {name: count for name, count in counts.items() if count is not None} or None

    def whole(self, data: bytes) -> None:
        """Take a line, or all of a stream: both begin as an object does."""
        for line in data.split(b"\n"):
            if line.strip():
                self.event(line)
        self.ended = self.ended or self.error is not None

    def assemble(self) -> Answer:
        message: Json = {"role": "assistant", "content": ""}
        message |= {name: "".join(pieces) for name, pieces in self._texts.items()}
        if self._calls:
            message["tool_calls"] = self._calls
        return Answer(
            message=message if self._begun else None,
            model=self._model,
            stop_reason=self._stop_reason,
            usage=usage_of(self._usage),
            raw_usage=self._usage,
        )
