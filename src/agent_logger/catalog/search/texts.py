"""The searchable texts of a session: what was typed, said and thought, and each call of a tool with its result."""

import re
from collections.abc import Mapping
from datetime import datetime
from typing import Any
from zlib import crc32

import msgspec
from msgspec.structs import replace

from agent_logger.catalog.ledger.rows import NEVER, micros_of
from agent_logger.model.redaction.redactor import hidden
from agent_logger.model.session import Block, Session, Turn, paths_in

INPUT, TEXT, THINKING, TOOL = range(4)
KINDS: Mapping[str, int] = {"text": TEXT, "thinking": THINKING}
NO_TURN = -1

MOST_CHARACTERS = 1 << 20  # characters of one text that are indexed; the rest of a longer text is not found
DEEPEST = 50  # levels of a tool's input
# Escapes of a terminal end with a letter, which would become the beginning of the next word.
COLOURS = re.compile(r"\x1b\[[0-?]*[ -/]*[@-~]")


class Text(msgspec.Struct, frozen=True, gc=False):  # faster to make than a named tuple
    """A redacted text. Times are milliseconds, and serve to find its lines again; 0 where they are not known."""

    exchange: int
    turn: int  # the place in `Session.turns`; -1 for a person's input
    kind: int
    at: int
    until: int = 0  # the end of a tool's result
    error: bool = False
    text: str = ""
    tool: str = ""
    file: str = ""

    @property
    def hash(self) -> int:
        """A number that equal texts have in common."""
        return crc32(self.text.encode(), self.kind) << 24 ^ len(self.text)


def texts_of(session: Session) -> list[Text]:
    texts = _texts(session)
    together = BORDER.join([piece for text in texts for piece in (text.text, text.tool, text.file)])
    redacted = hidden(COLOURS.sub("", together) if "\x1b" in together else together)
    if redacted is together and _replace_surrogates(redacted) is redacted:
        return texts  # nearly always: nothing to hide, and no halves of characters
    pieces = iter(_split(_replace_surrogates(redacted), texts))
    return [replace(text, text=next(pieces), tool=next(pieces), file=next(pieces)) for text in texts]


def _split(redacted: str, texts: list[Text]) -> list[str]:
    """Split the texts again, redacting one by one if something hidden seems to extend over two of them."""
    parts = redacted.split(BORDER)
    if len(parts) == 3 * len(texts):
        return parts
    return [_replace_surrogates(hidden(piece)) for text in texts for piece in (text.text, text.tool, text.file)]


BORDER = "\n\x00\x1e\x00\n"


def _texts(session: Session) -> list[Text]:
    texts: list[Text] = []
    number = 0
    for exchange in session.exchanges:
        for kind, text in ((INPUT, exchange.user_input), (TEXT, exchange.printed)):
            if text:
                at, beginning = _milliseconds(exchange.started), text[:MOST_CHARACTERS]
                texts.append(Text(exchange.number, NO_TURN, kind, at, text=beginning))
        for turn in exchange.turns:
            texts += _turn_texts(exchange.number, number, turn)
            number += 1
    for turn in session.side_turns:
        texts += _turn_texts(0, number, turn)
        number += 1
    return texts


def _turn_texts(exchange: int, number: int, turn: Turn) -> list[Text]:
    results = {block.id: block for block in turn.blocks if block.kind == "tool_result" and block.id}
    texts: list[Text] = []
    for block in turn.blocks:
        if block.kind == "tool_use":
            texts.append(_tool_text(exchange, number, block, results.pop(block.id or "", None)))
        elif block.text and (kind := KINDS.get(block.kind)):
            at = _milliseconds(block.at or turn.started)
            texts.append(Text(exchange, number, kind, at, text=block.text[:MOST_CHARACTERS]))
    texts += [_tool_text(exchange, number, None, result) for result in results.values()]
    return texts


def _tool_text(exchange: int, number: int, use: Block | None, result: Block | None) -> Text:
    given = use.input if use else None
    strings = strings_in(given)
    if result:
        strings.append(result.text)
    end = _milliseconds(result.at) if result else 0
    return Text(
        exchange,
        number,
        TOOL,
        (_milliseconds(use.at) if use else 0) or end,
        end,
        bool(result and result.is_error),
        "\n".join(strings)[:MOST_CHARACTERS],
        (use.name or "") if use else "",
        " ".join(paths_in(given)),
    )


def _milliseconds(at: datetime | None) -> int:
    micros = micros_of(at)
    return 0 if micros == NEVER else micros // 1000


def _replace_surrogates(text: str) -> str:
    """Replace halves of characters: some files have them, and no database can. Returns the same object if there are
    none."""
    if text.isascii():
        return text
    try:
        text.encode()
    except UnicodeEncodeError:
        return text.encode("utf-8", "replace").decode()
    return text


def strings_in(value: Any, depth: int = 0) -> list[str]:
    if isinstance(value, str):
        return [value]
    inner = value.values() if isinstance(value, Mapping) else value if isinstance(value, list) else ()
    strings: list[str] = []
    for part in inner if depth < DEEPEST else ():
        if isinstance(part, str):
            strings.append(part)
        else:
            strings += strings_in(part, depth + 1)
    return strings
