"""The messages of gptme's files. Tool calls are in their texts: `@shell(call_1): {"command": "ls"}`, or a block of code
with the tool's name."""

import json
import re
from bisect import bisect_left, bisect_right
from collections.abc import Iterable, Iterator, Mapping
from datetime import datetime
from typing import Any, NamedTuple

import msgspec

from agent_logger.agents.objects import local_time_of, objects_of
from agent_logger.agents.source_files import File
from agent_logger.model.session import Block, Usage
from agent_logger.providers.blocks import base
from agent_logger.providers.json_values import Json
from agent_logger.providers.lenient import REFUSED, fitting
from agent_logger.providers.token_counts import TokenCounts

CONVERSATION, CONFIG, META = "conversation.jsonl", "config.toml", "subagent-meta.json"

# The names of blocks of code that are tool calls.
TOOLS = frozenset(
    {"append", "choice", "clarify", "complete", "computer", "elicit", "form", "gh", "hashline_edit", "ipython", "mcp"}
    | {"memory", "morph", "patch", "patch_many", "progress", "py", "python", "read", "request_tool_change", "restart"}
    | {"save", "shell", "sh", "bash", "subagent", "tmux", "todo", "todoread", "todowrite", "vent", "watch", "browser"}
    | {"chats", "rag", "screenshot", "vision", "gptme"}
)
# The names under which gptme itself counts the time of such a call.
_SAME = {"py": "ipython", "python": "ipython", "sh": "shell", "bash": "shell"}

_CALL = re.compile(r"^@([^\r\n(]+?)\(([\w\-:.]+)\):\s*(?=\{)", re.MULTILINE)
_FENCE = re.compile(r"^(`{3,})([^\n`]*)$\n?", re.MULTILINE)  # a line that begins or ends a block of code
_XML = re.compile(r"<tool-use>\s*<(\w+)((?:\s[^<>]*)?)>")
_XML_END = re.compile(r"</(\w+)>\s*</tool-use>")
_THOUGHT = re.compile(r"\A\s*<(think|thinking)>\n?(.*?)\n?</\1>\n*", re.DOTALL)
_RETURN_CODE = re.compile(r"^Return code: (-?\d+)$", re.MULTILINE)
_FAILURE = re.compile(
    r"Error(?: [a-z ]+)?(?: '[^'\n]*')?: |Tool '[^'\n]*' is not available|Command (?:timed out|killed|interrupted)\b"
    r"|(?:File not found|Permission denied|Read denied): |Cannot (?:read|save|append) "
    r"|[A-Z][a-z]+(?: [a-z]+)? aborted: "
)
_UNREAD = re.compile(rb"\s*")  # lines that are skipped
_decoder = msgspec.json.Decoder()
_scanner = json.JSONDecoder(strict=False)  # finds the end of an object; what is in it, the other one decides


class GptmeTimings(msgspec.Struct, gc=False):
    tools: dict[str, Any] | None = msgspec.field(name="tool_ms_by_name", default=None)


class GptmeMetadata(msgspec.Struct, gc=False):
    model: str | None = None  # with the provider in front
    served_model: str | None = None  # as the provider calls it
    tool: str | None = None  # which has this result
    error: bool = False
    compaction_artifact: str | None = None  # what a compaction wrote this message for
    timings: GptmeTimings | None = None

    @property
    def begins_summary(self) -> bool:
        """Whether the message after one of the system with this is the summary that a compaction put in the place of
        others."""
        return self.compaction_artifact == "intro"


class GptmeMessage(msgspec.Struct, gc=False):
    role: str = ""
    content: str = ""
    timestamp: Any = None  # local, without a zone
    call_id: str | None = None
    hide: bool = False
    metadata: Any = None

    @property
    def at(self) -> datetime | None:
        return local_time_of(self.timestamp)

    @property
    def key(self) -> tuple[str, str]:
        """What is the same in all copies: a compaction changes the content, and keeps the time."""
        return self.role, str(self.timestamp or self.content)

    @property
    def about(self) -> GptmeMetadata:
        return fitting(GptmeMetadata, self.metadata if type(self.metadata) is dict else {})

    def usage(self) -> Usage | None:
        """Return the tokens; None if they were not counted. Older versions have no object for them."""
        metadata: Json = self.metadata if type(self.metadata) is dict else {}
        counts = TokenCounts(metadata.get("usage", metadata))
        if not counts.has("input_tokens", "output_tokens"):
            return None
        read, written = counts("cache_read_tokens"), counts("cache_creation_tokens")
        return counts.usage(counts("input_tokens"), counts("output_tokens"), read, written)


class SubAgentMeta(msgspec.Struct, gc=False):
    """`subagent-meta.json`."""

    agent_id: str | None = None
    prompt: str | None = None
    workdir: str | None = None
    parent_logdir: str | None = None

    @property
    def parent(self) -> str:
        """The name of the conversation that started the sub-agent."""
        return (self.parent_logdir or "").replace("\\", "/").rstrip("/").rpartition("/")[2]


def messages_of(file: File) -> Iterator[GptmeMessage]:
    identities: set[tuple[str, str, str | None, str]] = set()
    for value in objects_of(file, _UNREAD):
        if type(value.get("role")) is str and type(value.get("content")) is str:
            message = fitting(GptmeMessage, value)
            identity = (message.role, str(message.timestamp), message.call_id, message.content)
            if message.timestamp is None or identity not in identities:  # a line may be there twice
                identities.add(identity)
                yield message


# ---------------------------------------------------------------- what a model said


def blocks_of(message: GptmeMessage, about: GptmeMetadata) -> list[Block]:
    """Return the thoughts, the texts and the tool calls of an answer. A call in a block of code stays in the text, too,
    because the model wrote it as such."""
    text, blocks = message.content, []
    if thought := _THOUGHT.match(text):
        blocks.append(base.thinking(thought[2]))
        text = text[thought.end() :]
    end = 0
    fences = _fences(text)
    starts = [fence.start for fence in fences]
    for match in _calls_in(text):
        fence = bisect_right(starts, match.start()) - 1
        if match.start() < end or (fence >= 0 and match.start() < fences[fence].end):
            continue
        given, after = _object_at(text, match.end())
        if words := text[end : match.start()].strip():
            blocks.append(base.text(words))
        blocks.append(base.use(match[2], match[1], given))
        end = after
    if words := text[end:].strip():
        blocks.append(base.text(words))
    if any(block.kind == "tool_use" for block in blocks):
        return blocks
    written = enumerate(_written_calls(message, about))
    return blocks + [base.use(f"{message.timestamp}#{at}", *call) for at, call in written]


def _calls_in(text: str) -> Iterator[re.Match[str]]:
    """Yield the beginnings of tool calls. Each begins a line: finding these first is faster than trying every place."""
    at = 0 if text.startswith("@") else text.find("\n@") + 1 or len(text)
    while at < len(text):
        match = _CALL.match(text, at)
        if match:
            yield match
        at = text.find("\n@", match.end() if match else at) + 1 or len(text)


def _object_at(text: str, start: int) -> tuple[Any, int]:
    """Return the JSON object that begins here, and where it ends; of one that is cut, or is not JSON, its text."""
    try:
        _, end = _scanner.raw_decode(text, start)
    except (ValueError, RecursionError):
        end = _end_of_object(text, start)
    try:
        return _decoder.decode(text[start:end]), end
    except REFUSED:
        return text[start:end], end


# Of a string that is cut, the rest of the text.
_BRACE_OR_STRING = re.compile(r'"(?:[^"\\]|\\.|(?!))*+"?|[{}]', re.DOTALL)


def _end_of_object(text: str, start: int) -> int:
    depth = 0
    for match in _BRACE_OR_STRING.finditer(text, start):
        depth += {"{": 1, "}": -1}.get(match[0], 0)
        if depth == 0:
            return match.end()
    return len(text)


class _Written(NamedTuple):
    """A block of code, or an element of XML."""

    start: int
    end: int
    words: list[str]  # the tool and its arguments, or the language
    content: str


def _fences(text: str) -> list[_Written]:
    """Return the blocks of code: each ends at the next line with as many marks and nothing else."""
    if "```" not in text:
        return []
    lines = list(_FENCE.finditer(text))
    ends = _by_name(line for line in lines if not line[2].strip(" \t"))
    return list(_paired(text, ((line, line[2].split(), line[1]) for line in lines), ends))


def _elements(text: str) -> list[_Written]:
    """Return the tool calls in XML: `<tool-use><shell>ls</shell></tool-use>`."""
    if "<tool-use>" not in text:
        return []
    starts = ((match, [match[1], *match[2].split()], match[1]) for match in _XML.finditer(text))
    return list(_paired(text, starts, _by_name(_XML_END.finditer(text))))


def _by_name(matches: Iterable[re.Match[str]]) -> dict[str, list[re.Match[str]]]:
    by_name: dict[str, list[re.Match[str]]] = {}
    for match in matches:
        by_name.setdefault(match[1], []).append(match)
    return by_name


def _paired(
    text: str, starts: Iterable[tuple[re.Match[str], list[str], str]], ends: Mapping[str, list[re.Match[str]]]
) -> Iterator[_Written]:
    """Yield what is between each start and the next end of the same name, without those inside another. Every position
    is looked at a few times only, however many starts have no end."""
    after = 0
    for start, words, name in starts:
        of_name = ends.get(name, [])
        place = bisect_left(of_name, start.end(), key=re.Match.start)
        if start.start() >= after and place < len(of_name):
            end = of_name[place]
            yield _Written(start.start(), end.end(), words, text[start.end() : end.start()])
            after = end.end()


def _written_calls(message: GptmeMessage, about: GptmeMetadata) -> Iterator[tuple[str, Any]]:
    """Yield the calls that are blocks of code, or XML, each as name and input. gptme says which tools it ran; in older
    files, every block with a tool's name counts."""
    timings = about.timings
    ran = set(timings.tools) if timings and timings.tools else None
    if timings and ran is None:
        return
    for _, _, words, content in (*_fences(message.content), *_elements(message.content)):
        name = words[0] if words else ""
        if (name in TOOLS) if ran is None else (_SAME.get(name, name) in ran):
            yield _SAME.get(name, name), {"arguments": words[1:], "content": content} if words[1:] else content


def is_failure(text: str) -> bool:
    """Whether a tool failed: the result says so in words only, those of a command behind what the command printed."""
    codes = _RETURN_CODE.findall(text.rpartition("```")[2])
    return bool(codes and codes[-1] != "0") or _FAILURE.match(text) is not None
