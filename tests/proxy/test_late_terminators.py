"""Conversations of clients that close at the last event, with a body that is ended later: sessions, sums and views."""

import contextlib
import json
import re
import shutil
import time
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from itertools import count
from pathlib import Path
from typing import Any

import pytest

from agent_logger.model.records import Request
from tests.commands import run_command
from tests.proxy.process import Process, proxying
from tests.proxy.spooling import Logged
from tests.proxy.streams import chat
from tests.proxy.test_answer_ends import LAST_CHUNK, chunk
from tests.proxy.wires import Upstream, Wire

CONVERSATIONS, TURNS, DELAY_SECONDS = 10, 3, 0.03
PATH = "/v1/chat/completions"
OUTPUT_TOKENS = 1000
LEAVES = b"x-leaves: "  # a header of clients that leave before the last event

Messages = list[dict[str, str]]


def upstream_of(numbers: Iterator[int]) -> Callable[[Wire], None]:
    """Answers each chat with its own number, and ends the body late."""

    def play(wire: Wire) -> None:
        with contextlib.suppress(EOFError, ConnectionError):
            while asked := wire.message():
                number = next(numbers)
                usage = {"prompt_tokens": 10, "completion_tokens": OUTPUT_TOKENS}
                events = chat(f"answer {number}", name=f"chatcmpl-{number:020}", usage=usage)
                head = b"HTTP/1.1 200 OK\r\nContent-Type: text/event-stream\r\nTransfer-Encoding: chunked\r\n\r\n"
                if LEAVES in asked:
                    wire.send(head + b"".join(map(chunk, events[:2])))
                    continue  # until the proxy closes
                wire.send(head + b"".join(map(chunk, events)))
                time.sleep(DELAY_SECONDS)
                wire.send(LAST_CHUNK)

    return play


def ask(proxy: Process, messages: Messages, *, leaves: bool = False) -> str:
    """As openai-python does: read up to the last event, then close. Returns what was said."""
    body = json.dumps({"model": "gpt-4o-mini", "stream": True, "messages": messages}).encode()
    with proxy.client() as client:
        fields = LEAVES + b"1\r\n" if leaves else b""
        client.send(proxy.request(PATH, body, provider="openai", headers=fields))
        client.head()
        read = client.until(b"answer " if leaves else b"[DONE]\n\n")
    found = re.findall(rb'"content": "(.*?)"', read)
    return b"".join(found).decode()


def talk(proxy: Process, name: str, turns: int = TURNS, messages: Messages | None = None) -> Messages:
    messages = list(messages or ())
    for turn in range(turns):
        messages.append({"role": "user", "content": f"{name}, question {turn}"})
        messages.append({"role": "assistant", "content": ask(proxy, messages)})
    return messages


def command(proxy: Process, *arguments: str) -> str:
    """What a command says of it all."""
    done = run_command([*arguments], {"HOME": str(proxy.folder / "home"), "COLUMNS": "80"})
    assert done.returncode == 0, done.stderr
    return done.stdout


def as_json(proxy: Process, *arguments: str) -> Any:
    return json.loads(command(proxy, *arguments, "--json"))


def sessions(proxy: Process) -> list[dict[str, Any]]:
    listed = as_json(proxy, "ls")
    return listed if isinstance(listed, list) else listed["sessions"]


@pytest.fixture
def proxy(tmp_path: Path) -> Iterator[Process]:
    with Upstream(upstream_of(count(1))) as upstream, proxying(tmp_path, upstream) as process:
        yield process


def ended(proxy: Process) -> Logged:
    assert proxy.stop() == 0
    return proxy.logged()


def in_order(found: Logged) -> list[Request]:
    return sorted((it for [it] in found.requests.values()), key=lambda it: it.call or "")  # by time: a UUIDv7


def test_conversations_are_complete_when_clients_close_at_the_last_event(proxy: Process) -> None:
    with ThreadPoolExecutor(4) as clients:
        list(clients.map(lambda number: talk(proxy, f"talk {number}"), range(CONVERSATIONS)))
    found = ended(proxy)
    answers = [it for [it] in found.responses.values()]
    assert len(answers) == CONVERSATIONS * TURNS
    assert {it.complete for it in answers} == {True}
    # Which of the two closes first is a race that a busy machine decides; most clients win it.
    assert {"client_gone"} <= {it.reason for it in answers} <= {"client_gone", None}
    assert len(set(found.logs.values())) == CONVERSATIONS
    totals = as_json(proxy, "usage")["totals"]
    assert totals["responses"] == CONVERSATIONS * TURNS
    assert totals["output_tokens"] == CONVERSATIONS * TURNS * OUTPUT_TOKENS
    listed = sessions(proxy)
    assert [it["exchanges"] for it in listed] == [TURNS] * CONVERSATIONS
    for it in listed[:2]:
        assert "cut" not in command(proxy, "show", it["id"])


def test_repeating_an_answered_request_is_not_a_retry(proxy: Process) -> None:
    asked: Messages = [{"role": "user", "content": "the same question"}]
    for _ in range(5):
        ask(proxy, asked)
    found = ended(proxy)
    assert [it.retry_of for [it] in found.requests.values()] == [None] * 5
    assert as_json(proxy, "usage")["totals"]["output_tokens"] == 5 * OUTPUT_TOKENS


def test_repeating_a_request_after_a_cut_response_is_a_retry(proxy: Process) -> None:
    asked: Messages = [{"role": "user", "content": "a question"}]
    ask(proxy, asked, leaves=True)
    ask(proxy, asked)
    found = ended(proxy)
    assert [it.retry_of for it in in_order(found)] == [None, 1]
    assert len(set(found.logs.values())) == 1


# ---------------------------------------------------------------- what older versions wrote


def in_the_old_form(lines: Sequence[str]) -> Iterator[str]:
    """As the recorder wrote it that called an answer cut whenever its client had left."""
    for line in lines:
        record = json.loads(line)
        if record["type"] == "response":
            record |= {"complete": False, "reason": "client_gone"}
            record.pop("fingerprint", None)
        yield json.dumps(record) + "\n"


def test_older_recordings_are_read_as_complete(proxy: Process) -> None:
    spoken = talk(proxy, "long ago")
    ended(proxy)
    [log] = (proxy.log_dir / "openai").glob("*.jsonl")
    log.write_text("".join(in_the_old_form(log.read_text().splitlines())))
    (proxy.log_dir / "sessions.db").unlink()
    assert as_json(proxy, "usage")["totals"]["output_tokens"] == TURNS * OUTPUT_TOKENS
    [session] = sessions(proxy)
    assert session["exchanges"] == TURNS
    assert "cut" not in command(proxy, "show", session["id"])
    assert [it["complete"] for it in as_json(proxy, "show", session["id"])["exchanges"]] == [True] * TURNS

    shutil.rmtree(proxy.log_dir / ".spool")
    with proxying(proxy.folder, proxy.upstream, log_dir=proxy.log_dir) as later:
        # The state after the last answer is known again, and its question asked again is no retry.
        ask(later, spoken[:-1])
        talk(later, "and on", 1, spoken)
        found = ended(later)
    *_, again, last = in_order(found)
    assert (again.retry_of, last.retry_of) == (None, None)
    assert found.logs[last.call or ""] == f"openai/{log.stem}"
