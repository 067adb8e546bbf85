"""Turns a trajectory of mini-swe-agent into a session, and into its billed responses.

A message has the whole answer of the API in `extra.response`. That of an answer without a command is in the message
that objects to it. With the responses API, the message is the answer itself.
"""

import base64
import hashlib
import re
from collections.abc import Iterator
from datetime import datetime
from pathlib import PurePosixPath
from typing import Any

import msgspec
from msgspec.structs import replace

from agent_logger.agents.conversation import Conversation, OpenTurn
from agent_logger.agents.objects import time_of_ms
from agent_logger.agents.source_files import File, SourceFiles
from agent_logger.files.stored_text import storable
from agent_logger.model.ids import UUID
from agent_logger.model.responses import ModelResponse
from agent_logger.model.session import Block, Session, Turn
from agent_logger.protocols.jsonl import JsonEntry
from agent_logger.providers.blocks import base
from agent_logger.providers.json_values import Json, fields_of
from agent_logger.providers.lenient import fitting
from agent_logger.providers.token_counts import usage_of

AGENT_NAME = "mini-swe-agent"
ROLES = ("system", "user", "assistant", "tool", "exit")
BASH = "bash"
SUBMITTED = "Submitted"
FAMILY = "openai"
# Providers whose response ids are passed on. For others, LiteLLM makes ids.
WITH_VENDOR_IDS = frozenset({"openai", "azure", "litellm_proxy", "hosted_vllm", "openrouter", "text-completion-openai"})
# How the templates that come with mini-swe-agent go on behind the task.
TASK_ENDS = ("\n\nYou can execute bash commands", "\n</pr_description>")
TASK_BEGINNINGS = ("Please solve this issue: ", "<pr_description>\nConsider the following PR description:\n")
_FIRST_HEADING = re.compile(r"\n\n[^\n]*\n\n## Recommended Workflow")  # behind the paragraph that follows the task
_PLACEHOLDER = re.compile(r"\{\{\s*task\s*\}\}")
_NEXT_EXPRESSION = re.compile(r"\{[{%#]")
# What a person said while the agent ran, with the words in front of it.
SAID_BY_PERSON = {
    "UserNewTask": "The user added a new task: ",
    "UserInterruption": "Interrupted by user: ",
    "UserRejection": "Commands not executed. The user rejected your commands with the following message: ",
}
NOTHING_SAID = "Temporary interruption caught."


class _Extra(msgspec.Struct, gc=False):
    response: Any = None
    timestamp: Any = None  # seconds
    actions: Any = None
    returncode: Any = None
    raw_output: Any = None
    exception_info: Any = None
    interrupt_type: str | None = None
    exit_status: str | None = None
    error: str | None = msgspec.field(name="exception_str", default=None)

    @property
    def at(self) -> datetime | None:
        return time_of_ms(_milliseconds(self.timestamp))


class _Turn(OpenTurn):
    """A turn, with the calls that wait for a result without an id."""

    __slots__ = ("error", "waiting")

    def __init__(self) -> None:
        super().__init__()
        self.error: str | None = None
        self.waiting: list[str] = []

    def as_turn(self) -> Turn:
        return replace(OpenTurn.as_turn(self), error=self.error) if self.error else OpenTurn.as_turn(self)


def session_of(source: SourceFiles) -> Session:
    """Read a session. Nothing is raised, whatever is in the file."""
    run = _Run(source.main)
    return Session(
        id=run.id,
        agent=AGENT_NAME,
        title=run.conversation.title(),
        project=run.project,
        started=run.conversation.started,
        ended=run.conversation.ended,
        exchanges=run.conversation.as_exchanges(),
    )


def responses_of(source: SourceFiles) -> Iterator[ModelResponse]:
    run = _Run(source.main)
    for turn in run.conversation.turns():
        if turn.is_counted:
            yield turn.as_response(family=FAMILY, session=run.id, project=run.project, agent=AGENT_NAME)


def id_of(file: File) -> str:
    return _id(file.name, _objects(file)[1:])


def _objects(file: File) -> list[Json]:
    """Return what the document has beside its messages, then these."""
    return [fields_of(entry.value) for entry in file.entries if isinstance(entry, JsonEntry)] or [{}]


class _Run:
    """The messages of a document, read in order."""

    def __init__(self, file: File) -> None:
        head, *messages = _objects(file)
        self.conversation = Conversation()
        self._info = fields_of(head.get("info"))
        config = fields_of(self._info.get("config"))
        self._model = _text(fields_of(config.get("model")).get("model_name"))
        self._template = _text(fields_of(config.get("agent")).get("instance_template")) or ""
        folder = _text(fields_of(config.get("environment")).get("cwd"))
        self.project = folder if folder and folder.startswith("/") else None
        self._turn: _Turn | None = None
        # The latest time so far. An answer without a time of its own was asked for then.
        self._at: datetime | None = None
        for message in messages:
            self._take(message)
        self.id = _id(file.name, messages)

    def _take(self, message: Json) -> None:
        extra = fitting(_Extra, fields_of(message.get("extra")))
        role = message.get("role")
        self._at = at = extra.at or self._at
        response = message if message.get("object") == "response" else fields_of(extra.response)
        is_answer = role == "assistant" or bool(response) or bool(extra.response)
        if is_answer:
            self._answer(message, response, extra)
        if role == "tool" or message.get("type") == "function_call_output":
            self._result(_text(message.get("tool_call_id")) or _text(message.get("call_id")), message, extra)
        elif role == "exit":
            self._end(message, extra)
        elif role == "user":
            self._user(message, extra, is_answer=is_answer)
        self.conversation.see(at)

    # ------------------------------------------------------------ answers

    def _answer(self, message: Json, response: Json, extra: _Extra) -> None:
        turn = self._turn = _Turn()
        turn.model = _text(response.get("model")) or (self._model or "").rpartition("/")[2] or None
        turn.tier = _text(response.get("service_tier"))
        usage = usage_of(response["usage"]) if isinstance(response.get("usage"), dict) else None
        turn.count(usage, self._vendor_id(response))  # one that was not counted was billed, too
        turn.see(extra.at or self._at or time_of_ms(_milliseconds(response.get("created"))))
        self.conversation.add(turn)
        choice = fields_of(next(iter(base.parts_of(response.get("choices"))), {}))
        turn.stop_reason = _text(choice.get("finish_reason")) or _text(response.get("status"))
        answer = message if message.get("role") == "assistant" else fields_of(choice.get("message"))
        blocks = [*_blocks(answer), *(block for item in base.parts_of(response.get("output")) for block in _item(item))]
        for block in blocks:
            self.conversation.put(turn, block, extra.at)
        if not any(block.kind == "tool_use" for block in blocks):
            for number, action in enumerate(base.parts_of(extra.actions)):
                call = f"{len(self.conversation.turns())}#{number}"  # a command in the text has no id
                turn.waiting.append(call)
                self.conversation.put(turn, base.use(call, BASH, {"command": action.get("command")}), extra.at)

    def _vendor_id(self, response: Json) -> str | None:
        name = _unwrapped(_text(response.get("id")))
        provider, slash, _ = (self._model or "").partition("/")
        is_own = not slash or provider in WITH_VENDOR_IDS
        return name if name and (is_own or not UUID.search(name)) else None

    # ------------------------------------------------------------ everything else

    def _result(self, call: str | None, message: Json, extra: _Extra) -> None:
        """Add the output of a command. One that was not run has no output, and -1 for its exit code: the last command,
        which only says that the work is done, and those that a person refused."""
        text = extra.raw_output if type(extra.raw_output) is str else _content(message)
        is_run = extra.exception_info != "action was not executed"
        failed = is_run and type(extra.returncode) is int and extra.returncode != 0
        if extra.exception_info and type(extra.exception_info) is str:
            text = "\n".join(filter(None, (text, extra.exception_info)))
        self.conversation.result(base.result(call, text, name=BASH, is_error=failed), extra.at)

    def _user(self, message: Json, extra: _Extra, *, is_answer: bool) -> None:
        text = _content(message)
        if not self.conversation.exchanges:
            self.conversation.ask(self._task(text), extra.at)
        elif extra.interrupt_type in SAID_BY_PERSON:
            words = text.removeprefix(SAID_BY_PERSON[extra.interrupt_type])
            if words != NOTHING_SAID:
                self.conversation.ask(words, extra.at)
        elif extra.raw_output is not None or extra.returncode is not None:
            self._result(self._turn.waiting.pop(0) if self._turn and self._turn.waiting else None, message, extra)
        elif extra.actions and not is_answer:
            self.conversation.ask(text, extra.at)  # a command that a person typed

    def _end(self, message: Json, extra: _Extra) -> None:
        self.conversation.end("result" if extra.exit_status == SUBMITTED else "failed", extra.at)
        turn = self._turn
        if extra.error and turn and not turn.is_counted:
            turn.error = extra.error

    def _task(self, text: str) -> str:
        """Return what the user typed: the template around it is in the document, too."""
        match = _PLACEHOLDER.search(self._template)
        beginnings, ends = list(TASK_BEGINNINGS), list(TASK_ENDS)
        if match:
            before, after = self._template[: match.start()], self._template[match.end() :]
            literal = _NEXT_EXPRESSION.split(after, maxsplit=1)[0]
            beginnings.insert(0, before)
            ends.insert(0, literal)
        beginning = next((words for words in beginnings if words and text.startswith(words)), None)
        if beginning is None:
            return text
        task = text[len(beginning) :]
        end = next((task.find(words) for words in ends if words.strip() and words in task), None)
        if end is None:
            heading = _FIRST_HEADING.search(task)
            end = heading.start() if heading else len(task)
        return task[:end].strip() or text


def _blocks(message: Json) -> Iterator[Block]:
    """Yield what is in a message of chat completions."""
    if thought := _text(message.get("reasoning_content")):
        yield base.thinking(thought)
    if text := _content(message):
        yield base.text(text)
    for call in base.parts_of(message.get("tool_calls")):
        function = fields_of(call.get("function"))
        yield base.use(_text(call.get("id")), _text(function.get("name")), base.arguments(function.get("arguments")))


def _item(item: Json) -> Iterator[Block]:
    """Yield what is in an item of the responses API."""
    match item.get("type"):
        case "message":
            yield from (
                base.text(text) for part in base.parts_of(item.get("content")) if (text := _text(part.get("text")))
            )
        case "reasoning":
            summary = [_text(part.get("text")) or "" for part in base.parts_of(item.get("summary"))]
            yield base.thinking("\n".join(summary))
        case "function_call":
            call = _text(item.get("call_id")) or _text(item.get("id"))
            yield base.use(call, _text(item.get("name")), base.arguments(item.get("arguments")))


def _content(message: Json) -> str:
    """Return the text of a message, of the output of a tool, or of their parts."""
    content = message.get("content") if message.get("content") is not None else message.get("output")
    if type(content) is str:
        return content
    return "\n".join(_text(part.get("text")) or "" for part in base.parts_of(content))


def _milliseconds(seconds: Any) -> float | None:
    return seconds * 1000 if type(seconds) is int or type(seconds) is float else None


def _id(name: str, messages: list[Json]) -> str:
    """Return the id of a session: the name of its file, and what tells it from the next run that is written there."""
    stem = PurePosixPath(name).name.removesuffix(".json").removesuffix(".traj") or name
    texts: list[str] = []
    for message in messages:
        extra = fields_of(message.get("extra"))
        response = message if message.get("object") == "response" else fields_of(extra.get("response"))
        if response_id := _text(response.get("id")):
            texts = [response_id]
            break
        texts.append(f"{message.get('role')}{extra.get('timestamp')}{_content(message)}")
    digest = hashlib.sha256("\n".join(texts[:3]).encode("utf-8", "surrogatepass")).hexdigest()
    return f"{storable(stem)}-{digest[:8]}"


def _unwrapped(name: str | None) -> str | None:
    """Return the vendor's id in one that LiteLLM has made of it for the responses API."""
    if name is None or not name.startswith("resp_"):
        return name
    try:
        words = base64.b64decode(name.removeprefix("resp_"), validate=True).decode()
    except ValueError:
        return name
    return words.rpartition(";response_id:")[2] if words.startswith("litellm:") else name


def _text(value: Any) -> str | None:
    return value if type(value) is str else None
