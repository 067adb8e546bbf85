"""What an API needs in order to be scripted, and what is the same in all of them."""

import secrets
import string
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from typing import Any, Protocol

import msgspec

from agent_logger.demo.http import DemoRequest
from agent_logger.demo.script import Block, ScriptPrompt, ScriptToolUse, ScriptTurn

ALPHABET = string.ascii_letters + string.digits

Json = dict[str, Any]  # on its way out; nothing reads it again


@dataclass(frozen=True)
class DemoEvent:
    """An event of a streamed answer. Not every API names its events."""

    name: str
    data: bytes

    def sse(self) -> bytes:
        name = f"event: {self.name}\n".encode() if self.name else b""
        return b"%bdata: %b\n\n" % (name, self.data)


class Ask(Protocol):
    """A request to the model, already read, and one vendor's way to answer it, whole or streamed."""

    @property
    def prompt(self) -> ScriptPrompt: ...

    def whole(self, turn: ScriptTurn) -> Json: ...

    def stream(self, turn: ScriptTurn) -> Iterator[DemoEvent]: ...


Reader = Callable[[DemoRequest], Ask]  # raises ValueError for a body that is not the API's


class Piece(msgspec.Struct):
    """Any content block of a request; only its text counts here."""

    text: str = ""
    content: "str | list[Piece] | None" = None


def text_of(content: str | Sequence[Piece] | None) -> str:
    if content is None or isinstance(content, str):
        return content or ""
    texts = (piece.text or text_of(piece.content) for piece in content)
    return "\n".join(text for text in texts if text)


def event(name: str, /, **data: Any) -> DemoEvent:
    """An event whose data carries its name as `type`, as Anthropic's and OpenAI's do."""
    return DemoEvent(name, msgspec.json.encode({"type": name, **data}))


def new_id(prefix: str, length: int = 22) -> str:
    return prefix + "".join(secrets.choice(ALPHABET) for _ in range(length))


def with_ids(blocks: Sequence[Block], prefix: str) -> list[Block]:
    return [
        msgspec.structs.replace(block, id=new_id(prefix))
        if isinstance(block, ScriptToolUse) and not block.id
        else block
        for block in blocks
    ]


def cut(text: str, pieces: int) -> list[str]:
    """Split the text into about as many pieces of equal length; the empty text is one empty piece."""
    step = max(1, -(-len(text) // max(1, pieces)))
    return [text[i : i + step] for i in range(0, len(text), step)] or [""]
