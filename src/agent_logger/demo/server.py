"""The scripted API: which path belongs to which vendor, and how a turn is played."""

import asyncio
import re
from collections.abc import Callable, Mapping
from typing import ClassVar, Generic, TypeVar

import msgspec

from agent_logger.demo import anthropic
from agent_logger.demo.dialect import Ask, Json, Reader, new_id
from agent_logger.demo.http import DemoRequest, LoopbackServer, Reply
from agent_logger.demo.script import Cue, OffScriptError, Scenario, Script, T

JSON = ("content-type", "application/json")
SSE = ("content-type", "text/event-stream; charset=utf-8")

Row = TypeVar("Row")


class ScriptedAPI(LoopbackServer, Generic[T]):
    """Answer by script: `with ScriptedAPI(scenario) as api: ... api.url ...`.

    The tables' keys are patterns for the end of a path, so a base URL may have a path of its own. A subclass knows more
    APIs by larger tables, and more ways to answer by its own `play`.
    """

    scripted: ClassVar[Mapping[str, Reader]] = {"/v1/messages": anthropic.DemoMessages}
    counted: ClassVar[Mapping[str, Callable[[DemoRequest], Json]]] = {
        "/v1/messages/count_tokens": anthropic.count_tokens
    }

    def __init__(self, scenario: Scenario[T], *, port: int = 0, pace: float = 1.0) -> None:
        """Take a scenario; `pace` stretches the delays of the script, and 0 leaves them out."""
        super().__init__(port)
        self.script = Script(scenario)
        self.pace = pace

    async def handle(self, request: DemoRequest, reply: Reply) -> None:
        try:
            await self.answer(request, reply)
        except (ValueError, OffScriptError) as reason:
            await self.refuse(reply, 400, "invalid_request_error", str(reason))

    async def answer(self, request: DemoRequest, reply: Reply) -> None:
        if request.method == "HEAD":
            await reply.send(200)
        elif count := _row(self.counted, request):
            await self.send_json(reply, 200, count(request))
        elif read := _row(self.scripted, request):
            ask = read(request)
            await self.play(ask, self.script.next(request, ask.prompt), reply)
        else:
            await self.refuse(reply, 404, "not_found_error", f"no {request.method} {request.path} here")

    async def play(self, ask: Ask, cue: Cue[T], reply: Reply) -> None:
        turn = cue.turn
        await self.pause(turn.wait_ms)
        if ask.prompt.stream:
            reply.start(200, [SSE, ("cache-control", "no-cache"), ("request-id", new_id("req_01"))])
            for event in ask.stream(turn):
                await reply.write(event.sse())
                await self.pause(turn.chunk_ms)
            await reply.end()
        else:
            await self.send_json(reply, 200, ask.whole(turn))

    async def pause(self, milliseconds: float) -> None:
        await asyncio.sleep(milliseconds / 1000 * self.pace)

    async def send_json(self, reply: Reply, status: int, body: Json) -> None:
        await reply.send(status, [JSON, ("request-id", new_id("req_01"))], msgspec.json.encode(body))

    async def refuse(self, reply: Reply, status: int, kind: str, message: str) -> None:
        await self.send_json(reply, status, {"type": "error", "error": {"type": kind, "message": message}})


def _row(table: Mapping[str, Row], request: DemoRequest) -> Row | None:
    matches = (row for pattern, row in table.items() if re.search(f"(?:{pattern})$", request.path))
    return next(matches, None) if request.method == "POST" else None
