"""Conversations, as several agents would have them: those of `_claude_corpus`, read from the files that it writes."""

import json
from collections.abc import Iterator
from dataclasses import dataclass, field
from datetime import datetime
from pathlib import Path
from typing import Any

from _claude_corpus import Corpus

LINES = 330  # of Claude Code in a session: about 100 responses
MODEL = "gpt-5.2"
NAMED_FOLDER = "named"  # in a home: what the user names, for agents without a folder of their own
FILLER = "A text of the vendor, as long as its own, which is the same in all sessions of the agent at hand. \n"  # 100


@dataclass
class Response:
    id: str
    at: datetime
    counts: dict[str, int]
    thinking: str = ""
    text: str = ""
    call: dict[str, Any] | None = None
    result: str = ""

    @property
    def ms(self) -> int:
        return int(self.at.timestamp() * 1000)

    @property
    def read(self) -> int:
        return self.counts["cache_read_input_tokens"]

    @property
    def given(self) -> int:
        return self.counts["input_tokens"] + self.counts["cache_creation_input_tokens"]

    @property
    def output(self) -> int:
        return self.counts["output_tokens"]

    @property
    def tokens(self) -> int:
        return self.given + self.read + self.output


@dataclass
class Prompt:
    text: str
    at: datetime
    responses: list[Response] = field(default_factory=list)

    @property
    def ms(self) -> int:
        return int(self.at.timestamp() * 1000)


@dataclass
class Conversation:
    id: str  # a UUID
    project: str
    prompts: list[Prompt] = field(default_factory=list)

    @property
    def responses(self) -> list[Response]:
        return [response for prompt in self.prompts for response in prompt.responses]

    @property
    def given(self) -> int:
        return sum(each.given for each in self.responses)

    @property
    def read(self) -> int:
        return sum(each.read for each in self.responses)

    @property
    def output(self) -> int:
        return sum(each.output for each in self.responses)


def write_claude(home: Path, sessions: int, lines: int = LINES) -> None:
    corpus = Corpus()
    for number in range(sessions):
        corpus.write_long(home / ".claude", lines, f"/home/user/dev/proj{number % 40}")


def conversations(claude: Path) -> Iterator[Conversation]:
    """Yield the sessions of Claude Code's that were written into this home."""
    for path in sorted(claude.rglob("*.jsonl")):
        lines = [json.loads(line) for line in path.read_text("utf-8").splitlines()]
        conversation = Conversation(path.stem, lines[0]["cwd"])
        for line in lines:
            _take(conversation, line)
        yield conversation


def _take(conversation: Conversation, line: dict[str, Any]) -> None:
    message, at = line["message"], datetime.fromisoformat(line["timestamp"])
    content = message["content"]
    if isinstance(content, str):
        conversation.prompts.append(Prompt(content, at))
        return
    responses = conversation.prompts[-1].responses
    if message["role"] == "assistant" and not (responses and responses[-1].id == message["id"]):
        responses.append(Response(message["id"], at, message["usage"]))
    response, block = responses[-1], content[0]
    match block["type"]:
        case "thinking":
            response.thinking = block["thinking"]
        case "text":
            response.text = block["text"]
        case "tool_use":
            response.call = block
        case "tool_result":
            response.result = block["content"]


def encoded(value: object) -> str:
    return json.dumps(value, separators=(",", ":"))


def time_text(at: datetime) -> str:
    return at.isoformat(timespec="milliseconds").replace("+00:00", "Z")


def local_time(at: datetime) -> str:
    """Return a time of this machine, without a zone."""
    return at.astimezone().replace(tzinfo=None).isoformat(timespec="microseconds")


def write_lines(path: Path, lines: list[dict[str, Any]]) -> None:
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text("".join(encoded(line) + "\n" for line in lines), "utf-8")
