"""The load that agents make: each sends its whole history with every call, and hears an answer event by event.

    python benches/_agent_load.py '{...}'     the arguments of `AgentLoad`, as JSON; an `AgentAnswer` is JSON too

It makes the first call of each conversation, says so in a line, and waits for one: then the history is known.
"""

import asyncio
import json
import random
import sys
import time
from dataclasses import asdict, dataclass
from functools import partial
from typing import cast

import uvloop

from _proxy_load import HOST, answer_text

FIRST_BYTES, MOST_BYTES = 500_000, 1_500_000  # of a history; the next conversation begins when it has the most
RESULT_BYTES = 3_000  # of the tool result that each call adds
TOOLS_BYTES = 60_000
END = b"\r\n0\r\n\r\n"
HEAD = """POST {path}?events={events}&ms=0 HTTP/1.1
Host: {host}:{port}
Authorization: Bearer sk-ant-oat01-of-a-bench-{agent}-0123456789abcdef0123456789
Content-Type: application/json
User-Agent: claude-cli/2.1.325 (external, cli)
X-Claude-Code-Session-Id: {session}
anthropic-version: 2023-06-01
Content-Length: {length}

"""


@dataclass
class AgentLoad:
    port: int
    path: str
    agents: int
    seconds: float
    events: int


@dataclass
class AgentAnswer:
    took_ms: list[float]
    sent_bytes: int
    failed: int
    seconds: float


class Conversation:
    """A conversation that grows. The newest message is marked for the cache, and no other: as Claude Code does it."""

    def __init__(self, name: str, events: int, first_bytes: int = FIRST_BYTES) -> None:
        self.session = f"bench-{name}"
        self._chance = random.Random(name)
        self._words = [
            "".join(self._chance.choices("etaoinshrdlucmfw", k=self._chance.randint(2, 9))) for _ in range(999)
        ]
        tools = [{"name": f"tool{at}", "description": self._text(TOOLS_BYTES // 20)} for at in range(20)]
        self._end = b'],"tools":%b,"max_tokens":32000,"stream":true}' % json.dumps(tools).encode()
        self._turn = b'{"role":"assistant","content":[{"type":"text","text":"%b"}]},' % answer_text(events).encode()
        self._history = bytearray(b'{"model":"claude-sonnet-4-5","messages":[')
        while len(self._history) < first_bytes:
            self._history += self._result("") + b"," + self._turn

    def next_body(self) -> bytes:
        chance = self._chance.getstate()
        body = bytes(self._history) + self._result(',"cache_control":{"type":"ephemeral"}') + self._end
        self._chance.setstate(chance)
        self._history += self._result("") + b"," + self._turn
        return body

    @property
    def history_bytes(self) -> int:
        return len(self._history)

    def _text(self, size: int) -> str:
        return " ".join(self._chance.choices(self._words, k=size // 6))

    def _result(self, mark: str) -> bytes:
        text = json.dumps(f'$ make "test"\n{self._text(RESULT_BYTES)}')
        return f'{{"role":"user","content":[{{"type":"text","text":{text}{mark}}}]}}'.encode()


class Agent(asyncio.Protocol):
    """One agent: it makes a call as soon as the one before is answered."""

    transport: asyncio.Transport

    def __init__(self, load: AgentLoad, number: int, answer: AgentAnswer) -> None:
        self._load, self._number, self._answer = load, number, answer
        self._conversations = 0
        self._begin()
        self.idle = asyncio.Event()

    def _begin(self) -> None:
        self._conversation = Conversation(f"{self._load.port}-{self._number}-{self._conversations}", self._load.events)
        self._conversations += 1

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        self.transport = cast("asyncio.Transport", transport)

    def start(self, until: float) -> None:
        """Make one call, and others until then."""
        self.idle.clear()
        self._until = until
        self._call()

    def _call(self) -> None:
        if self._conversation.history_bytes > MOST_BYTES:
            self._begin()
        body = self._conversation.next_body()
        values = {"host": HOST, "agent": self._number, "session": self._conversation.session, "length": len(body)}
        self._tail, self._began = b"", time.monotonic()
        self.transport.write(HEAD.format(**asdict(self._load) | values).replace("\n", "\r\n").encode())
        self.transport.write(body)
        self._answer.sent_bytes += len(body)

    def data_received(self, data: bytes) -> None:
        if not self._tail and not data.startswith(b"HTTP/1.1 200"):
            self.transport.close()
            return
        self._tail = (self._tail + data)[-len(END) :]
        if self._tail == END:
            now = time.monotonic()
            self._answer.took_ms.append((now - self._began) * 1000)
            if now < self._until:
                self._call()
            else:
                self.idle.set()

    def connection_lost(self, _exc: Exception | None) -> None:
        self._answer.failed += not self.idle.is_set()
        self.idle.set()


async def work(load: AgentLoad) -> AgentAnswer:
    answer = AgentAnswer([], 0, 0, 0.0)
    loop = asyncio.get_running_loop()
    agents = [
        (await loop.create_connection(partial(Agent, load, number, answer), HOST, load.port))[1]
        for number in range(load.agents)
    ]
    for agent in agents:
        agent.start(0.0)
    await asyncio.gather(*(agent.idle.wait() for agent in agents))
    print(load.agents, flush=True)
    await loop.run_in_executor(None, sys.stdin.readline)
    answer.took_ms.clear()
    answer.sent_bytes = 0
    began = time.monotonic()
    for agent in agents:
        agent.start(began + load.seconds)
    await asyncio.gather(*(agent.idle.wait() for agent in agents))
    answer.seconds = time.monotonic() - began
    return answer


if __name__ == "__main__":
    print(json.dumps(asdict(uvloop.run(work(AgentLoad(**json.loads(sys.argv[1])))))))
