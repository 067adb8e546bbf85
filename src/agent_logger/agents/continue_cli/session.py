"""Turns a session of Continue into ours, and into its billed responses.

- The results of tools are beside the answer that called them, with a status.
- No message has a time. The session was created at a time, and its document was last written at another: then the last
  exchange ended.
- The session counts what its calls took in all: also those of which no message is kept, because the run was killed, or
  because they made a summary. What that is beyond the messages is reported as a total.
- A fork repeats the messages of its source, and does not say that it is one. Its total counts its own calls alone, so
  the messages that it has no room for are copies. They are left out.
"""

from collections.abc import Iterator
from datetime import datetime
from itertools import accumulate
from pathlib import PurePosixPath
from typing import Any, NamedTuple

import msgspec

from agent_logger.agents.conversation import Conversation, OpenTurn
from agent_logger.agents.objects import time_of_ms
from agent_logger.agents.source_files import SourceFiles
from agent_logger.model.remainders import with_remainders
from agent_logger.model.responses import ModelResponse, ReportedTotal
from agent_logger.model.session import MAIN, ClientTotal, Compaction, ModelTotal, Session, Usage
from agent_logger.protocols.jsonl import JsonEntry
from agent_logger.providers.blocks import base
from agent_logger.providers.json_values import Json, fields_of, text_of
from agent_logger.providers.lenient import fitting
from agent_logger.providers.token_counts import TokenCounts

AGENT_NAME = "continue-cli"
FAMILY = "unknown"  # of response ids: there are none
LIST = "sessions.json"
NO_TITLES = ("Untitled Session", "New Session")
FAILED = ("errored", "canceled")  # the status of a tool
IMAGE = "[image]"


class ToolState(msgspec.Struct, gc=False):
    id: str | None = msgspec.field(name="toolCallId", default=None)
    status: str | None = None
    output: Any = None


class HistoryMessage(msgspec.Struct, gc=False):
    role: str | None = None
    content: Any = None
    tool_calls: Any = msgspec.field(name="toolCalls", default=None)
    tool_call: str | None = msgspec.field(name="toolCallId", default=None)
    usage: Json | None = None


class HistoryItem(msgspec.Struct, gc=False):
    message: HistoryMessage = msgspec.field(default_factory=HistoryMessage)
    states: list[ToolState] = msgspec.field(name="toolCallStates", default_factory=list)
    summary: str | None = msgspec.field(name="conversationSummary", default=None)

    @property
    def is_response(self) -> bool:
        return self.message.role == "assistant" and self.summary is None


class SessionHead(msgspec.Struct, gc=False):
    """The document without its history."""

    title: str | None = None
    project: str | None = msgspec.field(name="workspaceDirectory", default=None)
    usage: Json | None = None


class SessionTimes(msgspec.Struct, gc=False):
    """What is known of a session beside its document, in milliseconds since 1970."""

    created: float | None = None
    modified: float | None = None


class ContinueCounts(NamedTuple):
    """Tokens as Continue adds them up. Whether the prompt includes the cache depends on the API."""

    prompt: int = 0
    output: int = 0
    read: int = 0  # as far as the total of a session counts it
    write: int = 0

    def fits(self, total: "ContinueCounts") -> bool:
        return self.prompt <= total.prompt and self.output <= total.output

    def plus(self, other: "ContinueCounts") -> "ContinueCounts":
        return ContinueCounts(*map(sum, zip(self, other, strict=True)))


NO_TOKENS = ContinueCounts()


def session_of(source: SourceFiles) -> Session:
    """Read a session. Nothing is raised, whatever is in the document."""
    document = _Document(source)
    conversation = document.conversation()
    title = document.head.title
    session = Session(
        id=document.id,
        agent=AGENT_NAME,
        title=(title if title not in NO_TITLES else None) or conversation.title() or title,
        project=document.head.project or None,
        started=conversation.started,
        ended=conversation.ended,
        exchanges=conversation.as_exchanges(),
        compactions=conversation.compactions,
        totals=document.totals(),
    )
    return with_remainders(session)


def responses_of(source: SourceFiles) -> Iterator[ModelResponse]:
    """Yield the responses that have messages."""
    yield from billed_of(source)[0]


def billed_of(source: SourceFiles) -> tuple[list[ModelResponse], list[ReportedTotal]]:
    document = _Document(source)
    project = document.head.project or None
    responses = [
        ModelResponse(
            family=FAMILY,
            message_id=name,
            model=_model(item),
            usage=_usage(item.message.usage),
            at=document.created,
            session=document.id,
            project=project,
            agent=AGENT_NAME,
            thread=MAIN,
        )
        for name, item in document.responses()
    ]
    totals = [
        ReportedTotal(session=document.id, project=project, agent=AGENT_NAME, family=FAMILY, total=total)
        for total in document.totals()
    ]
    return responses, totals


class _Document:
    """A document, without the messages that a fork has copied."""

    def __init__(self, source: SourceFiles) -> None:
        values = [fields_of(entry.value) for entry in source.main.entries if isinstance(entry, JsonEntry)]
        listed = (entry.value for file in source.others for entry in file.entries if isinstance(entry, JsonEntry))
        times = fitting(SessionTimes, next(listed, {}))
        self.id = PurePosixPath(source.main.name).name.removesuffix(".json")
        self.head = fitting(SessionHead, values[0] if values else {})
        self.modified = time_of_ms(times.modified)
        self.created = time_of_ms(times.created) or self.modified
        self._total = _total(self.head.usage)
        items = [fitting(HistoryItem, value) for value in values[1:]]
        counts = [_counts(item.message.usage) for item in items]
        copied = _copied(items, counts, self._total)
        self.items, self._counts = items[copied:], counts[copied:]

    def responses(self) -> Iterator[tuple[str, HistoryItem]]:
        """Yield the responses, each with a name in this session: they have no ids."""
        for at, item in enumerate(self.items):
            if item.is_response:
                yield self._name(at), item

    def _name(self, at: int) -> str:
        return f"{self.id}#{at}"

    def conversation(self) -> Conversation:
        conversation = Conversation()
        thoughts: list[str] = []
        for at, item in enumerate(self.items):
            message = item.message
            if item.summary is not None:
                conversation.compactions.append(Compaction(at=None, thread=MAIN))
            elif message.role == "user":
                conversation.ask(_typed(message.content), self.created)
            elif message.role == "thinking":
                thoughts.append(base.joined_text(message.content))
            elif message.role == "assistant":
                _answer(conversation, self._name(at), item, thoughts, self.created)
                thoughts = []
            elif message.role == "tool":
                conversation.result(base.result(message.tool_call, message.content), self.created)
        for time in (self.created, self.modified):
            conversation.see(time)
        if conversation.exchanges:
            conversation.exchanges[-1].see(self.modified)
        return conversation

    def totals(self) -> list[ClientTotal]:
        """Return what the session used beyond its messages, as a total of all."""
        if self._total is None:
            return []
        itemised = _sum(self._counts)
        left = ContinueCounts(*(max(0, all_of - part) for all_of, part in zip(self._total, itemised, strict=True)))
        if not any(left):
            return []
        sums: dict[str | None, Usage] = {}
        names = []
        for name, item in self.responses():
            names.append(name)
            if usage := _usage(item.message.usage):
                sums[_model(item)] = sums.get(_model(item), Usage()) + usage
        is_within = not any(map(_has_cache_beside, (item.message.usage for item in self.items)))
        rest = Usage(
            input_tokens=max(0, left.prompt - left.read - left.write) if is_within else left.prompt,
            output_tokens=left.output,
            cache_read_tokens=left.read,
            cache_write_tokens=left.write,
        )
        model = next(iter(sums)) if len(sums) == 1 else None
        sums[model] = sums.get(model, Usage()) + rest
        models = tuple(ModelTotal(model=model_name, usage=usage) for model_name, usage in sums.items())
        return [
            ClientTotal(
                witness="transcript",
                models=models,
                started=self.created,
                ended=max(filter(None, (self.created, self.modified)), default=None),
                message_ids=tuple(names),
                is_session=True,
            )
        ]


def _copied(items: list[HistoryItem], counts: list[ContinueCounts], total: ContinueCounts | None) -> int:
    """Return how many items were copied from another session. A copy ends before a prompt."""
    if total is None or _sum(counts).fits(total):
        return 0
    rests = list(accumulate(reversed(counts), ContinueCounts.plus, initial=NO_TOKENS))
    rests.reverse()
    starts = [at for at, item in enumerate(items) if item.message.role == "user"] + [len(items)]
    exact = (at for at in starts if rests[at][:2] == total[:2])
    return next(exact, None) or next(at for at in starts if rests[at].fits(total))


def _answer(conversation: Conversation, name: str, item: HistoryItem, thoughts: list[str], at: datetime | None) -> None:
    turn = OpenTurn(model=_model(item))
    turn.count(_usage(item.message.usage), name)
    turn.see(at)
    conversation.add(turn)
    for thought in thoughts:
        conversation.put(turn, base.thinking(thought), at)
    if text := base.joined_text(item.message.content):
        conversation.put(turn, base.text(text), at)
    names: dict[str | None, str | None] = {}
    for call in base.parts_of(item.message.tool_calls):
        function, call_id = fields_of(call.get("function")), text_of(call.get("id"))
        names[call_id] = text_of(function.get("name"))
        given = base.arguments(function.get("arguments"))
        conversation.put(turn, base.use(call_id, names[call_id], given), at)
    for state in item.states:
        if state.output is not None:
            text = "\n".join(text_of(part.get("content")) or "" for part in base.parts_of(state.output))
            failed = state.status in FAILED
            conversation.result(base.result(state.id, text, name=names.get(state.id), is_error=failed), at)


def _typed(content: Any) -> str:
    """Return the text of a prompt, or a mark for images alone."""
    return base.joined_text(content) or (IMAGE if any(base.parts_of(content)) else "")


def _model(item: HistoryItem) -> str | None:
    return text_of(fields_of(item.message.usage).get("model"))


# ---------------------------------------------------------------- tokens


def _has_cache_beside(usage: Json | None) -> bool:
    """Whether the prompt does not include what was read from the cache, or written into it. With Anthropic's API it
    does not, and the details begin with what was written."""
    details = fields_of(fields_of(usage).get("prompt_tokens_details"))
    return next(iter(details), None) == "cache_write_tokens"


def _usage(usage: Json | None) -> Usage | None:
    counts = TokenCounts(usage)
    details = counts.inner("prompt_tokens_details")
    prompt, output = counts("prompt_tokens"), counts("completion_tokens")
    read, write = details("cached_tokens", "cache_read_tokens"), details("cache_write_tokens")
    return counts.usage(prompt if _has_cache_beside(usage) else prompt - read - write, output, read, write)


def _counts(usage: Json | None) -> ContinueCounts:
    """Return the tokens of a message as the session adds them up: it does not know OpenAI's name for the cache."""
    if usage is None:
        return NO_TOKENS
    counts = TokenCounts(usage)
    details = counts.inner("prompt_tokens_details")
    return ContinueCounts(
        counts("prompt_tokens"),
        counts("completion_tokens"),
        details("cache_read_tokens"),
        details("cache_write_tokens"),
    )


def _total(usage: Json | None) -> ContinueCounts | None:
    """Return the total of a session; None if there is none: older versions had only a cost."""
    counts = TokenCounts(usage)
    if not counts.has("prompt_tokens", "completion_tokens"):
        return None
    details = counts.inner("prompt_tokens_details")
    total = ContinueCounts(
        counts("prompt_tokens"), counts("completion_tokens"), details("cached_tokens"), details("cache_write_tokens")
    )
    return total if counts.usage(0, 0) is not None else None


def _sum(counts: list[ContinueCounts]) -> ContinueCounts:
    return ContinueCounts(*map(sum, zip(*counts, strict=True))) if counts else NO_TOKENS
