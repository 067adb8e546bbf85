"""What a command-line run prints, as messages: objects, arrays and lines of JSON, and any text between them.

Every byte ends up in a message. Lines that cannot be read become messages of type `unknown`, adjacent ones together in
one message; they are also the run's `warnings`. Nothing here raises.
"""

import re
from collections.abc import Iterator
from typing import Any

import msgspec
from msgspec import Raw

from agent_logger.agents.base import module
from agent_logger.agents.contracts import OutputReader
from agent_logger.agents.registry import AGENTS, agent_called
from agent_logger.messages import sdk
from agent_logger.messages.sdk import STDERR, UNKNOWN, SdkMessage
from agent_logger.protocols import jsonl
from agent_logger.protocols.json_text import in_utf8
from agent_logger.protocols.jsonl import JsonEntry
from agent_logger.protocols.lines import Line

LINE_BYTES = 16 << 20  # a longer line is read in pieces, as text
MOST_WARNINGS, WARNING_CHARACTERS = 100, 1000


# A newline of its own belongs to it.
_MAY_BE_JSON = re.compile(rb"^[ \t\r]*(?:\xef\xbb\xbf)?[{\[][^\n]*\n?", re.MULTILINE)


class _SdkOutput:
    """The output of an agent that prints what the Agent SDK does."""

    @staticmethod
    def recognises(first: dict[str, Any]) -> bool:
        return isinstance(first.get("type"), str)

    def read(self, line: bytes) -> list[SdkMessage]:
        message = sdk.read(line)
        return [] if message.is_text else [message]


def output_reader(name: str | None) -> OutputReader:
    """The reader of an agent's output. An unknown agent is read as one that prints what the Agent SDK does."""
    agent = agent_called(name)
    if agent is None or agent.run is None or agent.run.output is None:
        return _SdkOutput()
    reader: OutputReader = module(agent.run.output).OUTPUT()
    return reader


def agent_printing(output: bytes) -> str | None:
    """Return the agent that prints what begins like this; `None` if it is what the Agent SDK does, or nothing known."""
    first = _first_object(output)
    names = (agent.name for agent in AGENTS if agent.run and agent.run.output)
    return next((name for name in names if output_reader(name).recognises(first)), None)


def _first_object(output: bytes) -> dict[str, Any]:
    """Return the first JSON object: the output itself, the first in its array, or that of a line."""
    for text in (output.strip().removeprefix(jsonl.BOM), *(line[0] for line in _MAY_BE_JSON.finditer(output))):
        try:
            value = msgspec.json.decode(in_utf8(text.strip()))
        except (ValueError, RecursionError):
            continue
        first = next(iter(value), None) if isinstance(value, list) else value
        if isinstance(first, dict):
            return first
    return {}


def prints_sdk_messages(agent: str | None) -> bool:
    return isinstance(output_reader(agent), _SdkOutput)


class RunOutput:
    """The standard output of one run, in whatever pieces it arrives."""

    def __init__(self, agent: str | None = None) -> None:
        self.warnings: list[str] = []
        self._more_warnings = 0
        self._reader = output_reader(agent)
        self._held = bytearray()  # what follows the last newline
        self._strange: list[bytes] = []  # lines of text, to become one message
        self._document: bytearray | None = bytearray()  # all of them, as long as it can be one JSON text

    def feed(self, chunk: bytes) -> list[SdkMessage]:
        before, newline, rest = chunk.rpartition(b"\n")
        if not newline:
            self._held += rest
            return self._pieces()
        text = bytes(self._held + before) + newline
        self._held = bytearray(rest)
        return [*self._lines(text), *self._strangers(), *self._pieces()]

    def end(self) -> list[SdkMessage]:
        """The messages that are left: a line without its end, and a JSON text that took several lines."""
        last, self._held = bytes(self._held), bytearray()
        messages = [*self._lines(last), *self._strangers()]
        if self._more_warnings:
            self.warnings.append(f"({self._more_warnings} more)")
        document, self._document = bytes(self._document or b""), None
        if whole := self._messages(in_one_line(document)):
            self.warnings.clear()  # its lines
        return [*messages, *whole]

    # ------------------------------------------------------------ lines

    def _lines(self, text: bytes) -> Iterator[SdkMessage]:
        """The messages in complete lines. Only lines that may be JSON are read one by one: a run can print a GB of
        others."""
        at = 0
        for line in _MAY_BE_JSON.finditer(text):
            if messages := self._messages(line[0]):
                self._note(text[at : line.start()])
                at = line.end()
                yield from [*self._strangers(), *messages]
        self._note(text[at:])

    def _note(self, text: bytes) -> None:
        if text.strip():
            self._strange.append(text)
            self._warn(text)

    def _messages(self, line: bytes) -> list[SdkMessage]:
        text = in_utf8(line.strip().removeprefix(jsonl.BOM))
        if text.startswith(b"["):
            return [message for element in _elements(text) for message in self._reader.read(bytes(element))]
        if not text.startswith(b"{"):
            return []
        if messages := self._reader.read(text):
            return messages
        entries = jsonl.decode(Line(1, 0, len(text), text))
        objects = [entry for entry in entries if isinstance(entry, JsonEntry) and isinstance(entry.value, dict)]
        if len(objects) < 2 or len(objects) < len(entries):  # two objects in one line, and nothing else
            return []
        return [message for entry in objects for message in self._reader.read(entry.raw)]

    def _pieces(self) -> list[SdkMessage]:
        if len(self._held) <= LINE_BYTES:
            return []
        piece, self._held = bytes(self._held), bytearray()
        self._strange.append(piece)
        self._warn(piece)
        return self._strangers()

    def _strangers(self) -> list[SdkMessage]:
        if not self._strange:
            return []
        text = b"".join(self._strange)
        self._strange.clear()
        self._keep(text)
        return [SdkMessage(text.removesuffix(b"\n"), UNKNOWN)]

    def _keep(self, text: bytes) -> None:
        if self._document is None:
            return
        self._document += text
        if len(self._document) > LINE_BYTES or not self._document.lstrip().startswith((b"{", b"[")):
            self._document = None

    def _warn(self, text: bytes) -> None:
        room = MOST_WARNINGS - len(self.warnings)
        lines = [line for line in text.split(b"\n", room)[:room] if line.strip()]
        texts = (line[: 4 * WARNING_CHARACTERS].decode("utf-8", "replace") for line in lines)
        self.warnings += [text[:WARNING_CHARACTERS].rstrip("\r") for text in texts]
        self._more_warnings += max(0, text.count(b"\n") - room)


def in_one_line(text: bytes) -> bytes:
    """A JSON text of several lines as one line, which a record needs. Empty if it is not JSON, or has one line
    already."""
    try:
        return msgspec.json.format(text.strip(), indent=-1) if text.strip().count(b"\n") else b""
    except (ValueError, RecursionError):
        return b""


def _elements(text: bytes) -> list[Raw]:
    try:
        return msgspec.json.decode(text, type=list[Raw])
    except (ValueError, RecursionError):
        return []


class ErrorOutput:
    """The standard error of a run, as text. Keeps the end of it, which often says why the run failed."""

    KEPT_BYTES = 8 << 10

    def __init__(self) -> None:
        self._held = bytearray()
        self._last = bytearray()

    @property
    def last(self) -> str:
        return self._last.decode("utf-8", "replace").strip()

    def feed(self, chunk: bytes) -> list[SdkMessage]:
        self._last += chunk
        del self._last[: -self.KEPT_BYTES]
        before, newline, rest = chunk.rpartition(b"\n")
        if not newline and len(self._held) + len(rest) <= LINE_BYTES:
            self._held += rest
            return []
        text = bytes(self._held + (before if newline else rest))
        self._held = bytearray(rest if newline else b"")
        return [SdkMessage(text, STDERR)]

    def end(self) -> list[SdkMessage]:
        text, self._held = bytes(self._held), bytearray()
        return [SdkMessage(text, STDERR)] if text else []
