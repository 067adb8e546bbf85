"""The fake API: more vendors, WebSockets, faults, and a log of what came in."""

from collections.abc import Callable, Mapping
from dataclasses import replace
from pathlib import Path
from typing import Any, ClassVar

import msgspec

from agent_logger.demo.dialect import Ask, DemoEvent, Json, Reader, new_id
from agent_logger.demo.http import DemoRequest, Reply
from agent_logger.demo.script import Cue, OffScriptError, Scenario, ScriptUsage
from agent_logger.demo.server import JSON, SSE, ScriptedAPI

from . import gemini
from .calls import Call, CallLog
from .channels import HttpChannel, cut, deliver, split
from .encodings import PACKERS, UNPACKERS
from .failures import failure_body, failure_event
from .openai import CREATED, ChatCompletions, Responses
from .turns import Error, FakeScenario, FakeTurn, read_scenario
from .websocket import WebSocket, WebSocketChannel

MODELS = ("claude-fake-1", "gpt-fake-1")
SETTLE_SECONDS = 1.0
WARM_UP = FakeTurn(usage=ScriptUsage(0, 0, 0, 0))


class FakeAPI(ScriptedAPI[FakeTurn]):
    """`with FakeAPI("tools", {"CWD": ...}) as api: ... api.url ... api.calls`.

    The scenario is a file, the name of one in `scenarios/`, what such a file holds, or `answers(...)`.
    A `websocket_status` other than 101 refuses every upgrade.
    """

    scripted: ClassVar[Mapping[str, Reader]] = {
        **ScriptedAPI.scripted,
        "/chat/completions": ChatCompletions,
        "/responses": Responses,
        ":(generateContent|streamGenerateContent)": gemini.GenerateContent,
    }
    counted: ClassVar[Mapping[str, Callable[[DemoRequest], Json]]] = {
        **ScriptedAPI.counted,
        ":countTokens": gemini.count_tokens,
    }

    def __init__(
        self,
        scenario: FakeScenario | Path | str | Mapping[str, Any],
        variables: Mapping[str, str] | None = None,
        *,
        port: int = 0,
        websocket_status: int = 101,
    ) -> None:
        if not isinstance(scenario, Scenario):
            scenario = read_scenario(scenario, variables or {})
        super().__init__(scenario, port=port)
        self._websocket_status = websocket_status
        self._log = CallLog()
        self._open: dict[Reply, Call] = {}

    @property
    def calls(self) -> list[Call]:
        """All calls so far, in the order in which they came; gives those under way a second to end."""
        return self._log.settled(SETTLE_SECONDS)

    def wait(self, count: int, seconds: float = 60) -> list[Call]:
        """The calls, once so many have ended; TimeoutError if they do not."""
        return self._log.wait(count, seconds)

    async def handle(self, request: DemoRequest, reply: Reply) -> None:
        call = Call("http", request.method, request.target, request.headers, request.body)
        call.connection = reply.writer.get_extra_info("peername")[1]
        self._log.begin(call)
        self._open[reply] = call
        try:
            unpack = UNPACKERS[request.header("content-encoding").lower()]
            await super().handle(replace(request, body=unpack(request.body)), reply)
        finally:
            call.status, call.answer_headers = reply.status, reply.headers
            call.complete = call.complete or reply.complete
            del self._open[reply]
            self._log.end(call)

    async def answer(self, request: DemoRequest, reply: Reply) -> None:
        if request.header("upgrade").lower() == "websocket":
            await self._websocket(request, reply)
        elif request.method == "GET" and request.path.endswith("/models"):
            await self.send_json(reply, 200, _models(self.script.scenario.models or MODELS))
        else:
            await super().answer(request, reply)

    async def play(self, ask: Ask, cue: Cue[FakeTurn], reply: Reply) -> None:
        call, turn = self._open[reply], cue.turn
        call.lane, call.turn = cue.lane, cue.number
        await self.pause(turn.wait_ms)
        if turn.drop:
            cut(reply, turn)
        elif turn.raw:
            reply.writer.write(turn.raw.encode("latin-1"))
            await reply.writer.drain()
        else:
            pieces = _streamed(ask, turn, reply) if _streams(ask, turn) else _whole(ask, turn, reply)
            await deliver(pieces, turn, HttpChannel(reply, call, turn.split_bytes), self.pause)

    async def _websocket(self, request: DemoRequest, reply: Reply) -> None:
        websocket, handshake = WebSocket(reply), self._open[reply]
        if self._websocket_status != 101:
            await self.refuse(reply, self._websocket_status, "not_supported", "no WebSocket here")
        elif await websocket.accept(request):
            handshake.complete = True
            self._log.end(handshake)
            async for message in websocket.messages():
                call = Call("websocket", request.method, request.target, request.headers, message, status=101)
                call.connection = handshake.connection
                self._log.begin(call)
                try:
                    await self._play_message(replace(request, body=message), call, websocket)
                finally:
                    self._log.end(call)

    async def _play_message(self, request: DemoRequest, call: Call, websocket: WebSocket) -> None:
        """Answer a `response.create`. One that generates nothing only warms the connection up."""
        try:
            ask = Responses(request)
            turn = self._next(ask, request, call) if ask.body.generate else WARM_UP
        except (msgspec.MsgspecError, OffScriptError) as reason:
            return await websocket.send(_refusal(400, Error("invalid_request_error", str(reason))))
        await self.pause(turn.wait_ms)
        if turn.drop:
            return cut(websocket.reply, turn)
        pieces = (
            [event.data for event in _events(ask, turn)] if turn.status == 200 else [_refusal(turn.status, turn.error)]
        )
        return await deliver(pieces, turn, WebSocketChannel(websocket, call, turn.split_bytes), self.pause)

    def _next(self, ask: Ask, request: DemoRequest, call: Call) -> FakeTurn:
        cue = self.script.next(request, ask.prompt)
        call.lane, call.turn = cue.lane, cue.number
        return cue.turn


def _streams(ask: Ask, turn: FakeTurn) -> bool:
    return ask.prompt.stream and turn.status == 200


def _events(ask: Ask, turn: FakeTurn) -> list[DemoEvent]:
    events = list(ask.stream(turn))
    return events if turn.error_after is None else [*events[: turn.error_after], failure_event(ask, turn.error)]


def _streamed(ask: Ask, turn: FakeTurn, reply: Reply) -> list[bytes]:
    """Write the head; return the events, each packed so that it can be decoded when it arrives."""
    reply.start(200, [SSE, ("cache-control", "no-cache"), *_headers(turn)])
    packer = PACKERS[turn.encoding]()
    return [*(packer.feed(event.sse()) for event in _events(ask, turn)), packer.end()]


def _whole(ask: Ask, turn: FakeTurn, reply: Reply) -> list[bytes]:
    """Write the head; return the body, in parts of `split_bytes`."""
    answer = ask.whole(turn) if turn.status == 200 else failure_body(ask, turn.status, turn.error)
    packer = PACKERS[turn.encoding]()
    body = packer.feed(msgspec.json.encode(answer)) + packer.end()
    reply.start(turn.status, [JSON, *_headers(turn)], length=len(body))
    return list(split(body, turn.split_bytes))


def _headers(turn: FakeTurn) -> list[tuple[str, str]]:
    encoding = [] if turn.encoding == "identity" else [("content-encoding", turn.encoding)]
    return [("request-id", new_id("req_01")), *encoding, *turn.headers.items()]


def _refusal(status: int, error: Error) -> bytes:
    """An error as a WebSocket tells it, where there is no status line."""
    told = {"type": error.type, "code": error.code, "message": error.message}
    return msgspec.json.encode({"type": "error", "status": status, "error": told})


def _models(names: tuple[str, ...]) -> Json:
    """The list of models in a form that Anthropic's and OpenAI's clients both read."""
    created = {"created_at": "2026-01-01T00:00:00Z", "created": CREATED, "owned_by": "script"}
    data = [{"id": name, "type": "model", "object": "model", "display_name": name, **created} for name in names]
    return {"object": "list", "data": data, "has_more": False, "first_id": names[0], "last_id": names[-1]}
