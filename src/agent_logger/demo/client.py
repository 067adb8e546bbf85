"""The scripted agent's side of the Messages API: ask, and put the streamed answer together."""

import http.client
import time
from collections.abc import Iterable
from dataclasses import dataclass
from urllib.parse import urlsplit

import msgspec

from agent_logger.demo.dialect import Json
from agent_logger.demo.script import ScriptToolUse

SILENCE_SECONDS = 30  # far beyond the script's longest pause


class DemoStreamEvent(msgspec.Struct):
    """Any event of a stream: which fields it has depends on its type."""

    type: str
    message: Json = {}
    content_block: Json = {}
    delta: Json = {}
    usage: Json = {}


@dataclass(frozen=True)
class ClientAnswer:
    message: Json  # as in a response without `stream`
    request_id: str

    @property
    def blocks(self) -> list[Json]:
        blocks: list[Json] = self.message["content"]
        return blocks

    @property
    def tool_uses(self) -> list[ScriptToolUse]:
        return [msgspec.convert(block, ScriptToolUse) for block in self.blocks if block["type"] == "tool_use"]

    @property
    def text(self) -> str:
        return "".join(block["text"] for block in self.blocks if block["type"] == "text")


class DemoClient:
    """A connection to the API, open from the first question to `close`."""

    def __init__(self, url: str) -> None:
        parts = urlsplit(url)
        self._connection = http.client.HTTPConnection(parts.netloc, timeout=SILENCE_SECONDS)
        self._path = f"{parts.path}/v1/messages"
        self.seconds = 0.0  # spent in requests
        self.close = self._connection.close

    def ask(self, body: Json, headers: dict[str, str]) -> ClientAnswer:
        started = time.monotonic()
        sent = msgspec.json.encode({**body, "stream": True})
        self._connection.request("POST", self._path, sent, {"content-type": "application/json", **headers})
        with self._connection.getresponse() as response:
            if response.status != http.HTTPStatus.OK:
                raise ConnectionError(f"the scripted API returned {response.status}: {response.read().decode()}")
            lines = (line.removeprefix(b"data: ") for line in response if line.startswith(b"data: "))
            message = rejoin(msgspec.json.decode(line, type=DemoStreamEvent) for line in lines)
            answer = ClientAnswer(message, response.headers["request-id"])
        self.seconds += time.monotonic() - started
        return answer


def rejoin(events: Iterable[DemoStreamEvent]) -> Json:
    message: Json = {}
    blocks: list[Json] = []
    for event in events:
        match event.type:
            case "message_start":
                message = {**event.message, "content": blocks}
            case "content_block_start":
                blocks.append(event.content_block)
            case "content_block_delta":
                for key, piece in event.delta.items():
                    if key != "type":
                        blocks[-1][key] = blocks[-1].get(key, "") + piece
            case "content_block_stop" if "partial_json" in blocks[-1]:
                blocks[-1]["input"] = msgspec.json.decode(blocks[-1].pop("partial_json"))
            case "message_delta":
                usage = message["usage"] | event.usage
                message |= {**event.delta, "usage": usage}
    return message
