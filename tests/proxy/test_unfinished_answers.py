"""Clients that continue after the last event of an answer, while its body has not ended and the connection is open."""

import contextlib
import json
import threading
import zlib
from collections.abc import Callable, Iterator
from itertools import count
from pathlib import Path

import pytest

from tests.proxy.process import Process, proxying
from tests.proxy.streams import anthropic, chat, event
from tests.proxy.test_answer_ends import LAST_CHUNK, chunk
from tests.proxy.wires import Upstream, Wire

TURNS = 3
LAST_EVENTS = (b"data: [DONE]\n\n", b'{"type": "message_stop"}\n\n')
CHAT, MESSAGES = "/v1/chat/completions", "/v1/messages"

Messages = list[dict[str, str]]


def events_of(path: str, text: str, number: int) -> list[bytes]:
    if path == CHAT:
        return list(chat(text, name=f"chatcmpl-{number:020}"))
    return [event(data, data["type"]) for data in anthropic(text, name=f"msg_{number:020}")]


def compress(events: list[bytes]) -> Iterator[bytes]:
    """Compress each event so that it can be read at once. The end of the encoding comes with the end of the body."""
    encoder = zlib.compressobj(wbits=31)
    for data in events:
        yield encoder.compress(data) + encoder.flush(zlib.Z_SYNC_FLUSH)


def answers(path: str, compressed: bool, release: threading.Event) -> Callable[[Wire], None]:
    """Answer each request with its number, at once, and end the bodies when `release` is set."""
    numbers = count(1)

    def play(wire: Wire) -> None:
        with contextlib.suppress(EOFError, ConnectionError):
            while wire.message():
                number = next(numbers)
                events = events_of(path, f"answer {number}", number)
                encoding = b"Content-Encoding: gzip\r\n" if compressed else b""
                wire.send(b"HTTP/1.1 200 OK\r\nContent-Type: text/event-stream\r\n" + encoding)
                wire.send(b"Transfer-Encoding: chunked\r\n\r\n")
                wire.send(b"".join(map(chunk, compress(events) if compressed else events)))
                release.wait(30)
                wire.send(LAST_CHUNK)

    return play


class Client:
    """A client of one conversation, which sends each request on a new connection and closes none."""

    def __init__(self, proxy: Process, path: str, compressed: bool) -> None:
        self._proxy, self._path, self._compressed = proxy, path, compressed
        self._wires: list[Wire] = []

    def ask(self, messages: Messages, headers: bytes = b"") -> None:
        wire = self._proxy.client()
        self._wires.append(wire)
        body = json.dumps({"model": "m", "max_tokens": 9, "stream": True, "messages": messages}).encode()
        provider = "openai" if self._path == CHAT else "anthropic"
        wire.send(self._proxy.request(self._path, body, provider=provider, headers=headers))
        wire.head()
        read, decoder = b"", zlib.decompressobj(wbits=31)
        while not any(end in read for end in LAST_EVENTS):
            data = wire.take(int(wire.until(b"\r\n"), 16) + 2)[:-2]
            read += decoder.decompress(data) if self._compressed else data

    def close(self) -> None:
        for wire in self._wires:
            wire.sock.close()


def history(turns: int, first_answer: int = 1) -> Messages:
    messages: Messages = []
    for turn in range(turns):
        messages.append({"role": "user", "content": f"question {turn}"})
        messages.append({"role": "assistant", "content": f"answer {first_answer + turn}"})
    return messages[:-1]


KINDS = [
    pytest.param(CHAT, False, id="chat"),
    pytest.param(CHAT, True, id="chat, compressed"),
    pytest.param(MESSAGES, False, id="messages"),
]


@contextlib.contextmanager
def conversing(folder: Path, path: str, compressed: bool) -> Iterator[tuple[Process, Client]]:
    release = threading.Event()
    play = answers(path, compressed, release)
    with Upstream(play) as upstream, proxying(folder, upstream) as proxy:
        client = Client(proxy, path, compressed)
        try:
            yield proxy, client
        finally:
            release.set()
            client.close()


@pytest.mark.parametrize(("path", "compressed"), KINDS)
def test_a_conversation_that_continues_before_a_body_ends_is_one_session(
    path: str, compressed: bool, tmp_path: Path
) -> None:
    with conversing(tmp_path, path, compressed) as (proxy, client):
        for turn in range(TURNS):
            client.ask(history(turn + 1))
        client.close()
        assert proxy.stop() == 0
        found = proxy.logged()
    assert len(set(found.logs.values())) == 1
    responses = sorted((record for [record] in found.responses.values()), key=lambda record: record.seq)
    assert [record.complete for record in responses] == [True] * TURNS
    states = [record.fingerprint for record in responses]
    assert None not in states
    assert len(set(states)) == TURNS
    assert [record.retry_of for [record] in found.requests.values()] == [None] * TURNS


def test_the_same_request_after_an_answer_whose_body_has_not_ended_is_no_retry(tmp_path: Path) -> None:
    name = b"x-session-id: 0198c1d2-3333-7000-8000-000000000001\r\n"
    with conversing(tmp_path, CHAT, compressed=False) as (proxy, client):
        client.ask(history(1), name)
        client.ask(history(1), name)
        client.close()
        assert proxy.stop() == 0
        found = proxy.logged()
    assert [record.retry_of for [record] in found.requests.values()] == [None, None]
