"""A scripted agent at work: it asks the scripted API over a real socket and uses its tools.

What it says has the shape of Claude Code's `stream-json` output, which the Claude Agent SDK's messages share: a program
that can record those can record this.
"""

import time
import uuid
from collections import Counter
from collections.abc import Generator, Iterator
from contextlib import closing
from dataclasses import dataclass, field
from datetime import UTC, datetime

from agent_logger.demo import story
from agent_logger.demo.anthropic import COUNTED
from agent_logger.demo.client import ClientAnswer, DemoClient
from agent_logger.demo.dialect import Json
from agent_logger.demo.script import ScriptToolUse, ScriptTurn
from agent_logger.demo.server import ScriptedAPI

PROJECT = "/demo/tea-timer"  # exists in the story alone
NANO_USD = dict(zip(COUNTED, (3000, 3750, 300, 15000), strict=True))  # per token of the story's model
TOOL_NAMES = [*story.TOOLS, "Agent"]
TOOLS = [{"name": name, "input_schema": {"type": "object"}} for name in TOOL_NAMES]


@dataclass(frozen=True)
class DemoInput:
    text: str


@dataclass(frozen=True)
class AgentMessage:
    """A message of type `system` (init), `assistant`, `user` (a tool result) or `result`."""

    message: Json


Happening = DemoInput | AgentMessage


def scripted_api(*, pace: float = 1.0) -> ScriptedAPI[ScriptTurn]:
    """The API for one `converse`; enter its `with` block first.

    The script's delays, about two seconds in all, are multiplied by `pace`.
    """
    return ScriptedAPI(story.load().scenario, pace=pace)


def converse(url: str, *, session_id: str | None = None) -> Generator[Happening, None, None]:
    """Play the conversation against the scripted API at `url`, or through a proxy before it.

    An exchange is one `DemoInput`, then `AgentMessage`s, the last of them a `result`. Each is yielded as it happens.
    Cost and `modelUsage` count up over the session, as Claude Code's do.
    """
    with closing(DemoAgent(url, session_id or str(uuid.uuid4()))) as agent:
        for text in agent.story.inputs:
            yield DemoInput(text)
            yield from map(AgentMessage, agent.exchange(text))


@dataclass
class DemoThread:
    """A line of work: one exchange of the main conversation, or a helper that a tool use started."""

    messages: list[Json]
    begun_by: ScriptToolUse | None = None
    agent_id: str = field(default_factory=lambda: uuid.uuid4().hex[:17])
    used: Counter[str] = field(default_factory=Counter)
    tool_results: int = 0

    @property
    def marks(self) -> Json:
        """The fields that distinguish its messages from those of other threads."""
        if self.begun_by is None:
            return {"parent_tool_use_id": None}
        return {"parent_tool_use_id": self.begun_by.id, "agent_id": self.agent_id}

    @property
    def headers(self) -> dict[str, str]:
        return {"x-claude-code-agent-id": self.agent_id} if self.begun_by else {}


class DemoAgent:
    def __init__(self, url: str, session_id: str) -> None:
        self.story, self.session_id = story.load(), session_id
        self._client = DemoClient(url)
        self._history: list[Json] = []
        self._used: Counter[str] = Counter()  # by all threads
        self.close = self._client.close

    def exchange(self, text: str) -> Iterator[Json]:
        started = time.monotonic()
        self._history.append({"role": "user", "content": text})
        yield self._message("system", subtype="init", cwd=PROJECT, model=self.story.model, tools=TOOL_NAMES)
        thread = DemoThread(self._history)
        answer = yield from self._work(thread)
        yield self._result(thread, answer, seconds=time.monotonic() - started)

    def _work(self, thread: DemoThread) -> Generator[Json, None, ClientAnswer]:
        """Ask and use tools until the model wants no more of them; return its last answer."""
        while True:
            answer = self._ask(thread)
            for block in answer.blocks:
                message = {**answer.message, "content": [block]}
                yield self._message("assistant", message=message, request_id=answer.request_id, **thread.marks)
            if not answer.tool_uses:
                return answer
            results = []
            for tool in answer.tool_uses:
                results.append((yield from self._use(tool)))
                message = {"role": "user", "content": results[-1:]}
                yield self._message("user", message=message, **thread.marks)
            thread.messages.append({"role": "user", "content": results})
            thread.tool_results += len(results)

    def _ask(self, thread: DemoThread) -> ClientAnswer:
        body = {"model": self.story.model, "max_tokens": 4096, "tools": TOOLS, "messages": thread.messages}
        session = {"user-agent": "agent-logger-demo", "x-claude-code-session-id": self.session_id}
        answer = self._client.ask(body, session | thread.headers)
        thread.messages.append({"role": "assistant", "content": answer.blocks})
        for used in (thread.used, self._used):
            used.update({key: answer.message["usage"][key] for key in COUNTED})
        return answer

    def _use(self, tool: ScriptToolUse) -> Generator[Json, None, Json]:
        if tool.name == "Agent":
            content, is_error = (yield from self._delegate(tool)), False
        else:
            result = story.use(tool, self.story)
            content, is_error = result.content, result.is_error
        return {"type": "tool_result", "tool_use_id": tool.id, "content": content, "is_error": is_error}

    def _delegate(self, tool: ScriptToolUse) -> Generator[Json, None, str]:
        request = {"role": "user", "content": [{"type": "text", "text": tool.input["prompt"]}]}
        thread = DemoThread([request], begun_by=tool)
        yield self._message("user", message=request, **thread.marks)
        answer = yield from self._work(thread)
        return answer.text

    def _message(self, type_: str, **fields: object) -> Json:
        now = datetime.now(UTC).isoformat(timespec="milliseconds").replace("+00:00", "Z")
        ids = {"session_id": self.session_id, "uuid": str(uuid.uuid4())}
        return {"type": type_, **fields, **ids, "timestamp": now}

    def _result(self, thread: DemoThread, answer: ClientAnswer, *, seconds: float) -> Json:
        cost_usd = sum(NANO_USD[key] * tokens for key, tokens in self._used.items()) / 1e9
        return self._message(
            "result",
            subtype="success",
            is_error=False,
            result=answer.text,
            stop_reason=answer.message["stop_reason"],
            num_turns=1 + thread.tool_results,
            duration_ms=round(seconds * 1000),
            duration_api_ms=round(self._client.seconds * 1000),
            total_cost_usd=cost_usd,
            usage=dict(thread.used),
            modelUsage={self.story.model: _model_usage(self._used, cost_usd)},
        )


def _model_usage(used: Counter[str], cost_usd: float) -> Json:
    return {
        "inputTokens": used["input_tokens"],
        "outputTokens": used["output_tokens"],
        "cacheReadInputTokens": used["cache_read_input_tokens"],
        "cacheCreationInputTokens": used["cache_creation_input_tokens"],
        "costUSD": cost_usd,
    }
