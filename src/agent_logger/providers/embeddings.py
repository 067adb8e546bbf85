"""Answers of endpoints that turn texts into vectors: they contain no text, but are billed."""

from typing import Any

import msgspec

from agent_logger.providers.answer import Answer, Assembler, failure
from agent_logger.providers.token_counts import usage_of


class _Body(msgspec.Struct):
    """The body without its vectors, which are most of it and are skipped."""

    model: str | None = None
    usage: dict[str, Any] | None = None
    error: Any = None


_body = msgspec.json.Decoder(_Body)


class Embeddings(Assembler):
    def __init__(self) -> None:
        super().__init__()
        self._body = _Body()

    def event(self, data: bytes) -> None:
        self.whole(data)

    def whole(self, data: bytes) -> None:
        body = self.read(_body, data)
        if body is not None:
            self.ended, self._body = True, body
            self.fail(failure({"error": body.error}))

    def assemble(self) -> Answer:
        usage = self._body.usage
        return Answer(
            message={"object": "embeddings"} if usage else None,
            model=self._body.model,
            usage=usage_of(usage),
            raw_usage=usage,
        )
