"""The forward door of a proxy as a process: what a run learns, what is in the logs, and how long a token holds."""

import base64
import json
import socket
import time
from pathlib import Path
from typing import Any, cast

import pytest

from agent_logger.config import Network
from agent_logger.proxy.runs.messages import FinishRun, ProxyReply, new_token
from tests.proxy.foreign import foreign_files, internet
from tests.proxy.process import Process, proxying, wait_until
from tests.proxy.spooling import every_byte_under, request_bytes, response_bytes
from tests.proxy.tls_wire import TlsSocket
from tests.proxy.wires import RECORDED, TOKEN, Upstream, Wire, answering, connect_request, response

HOST = f"api.{RECORDED}"
ANSWER = json.dumps(
    {
        "id": "msg_1",
        "type": "message",
        "role": "assistant",
        "model": "claude-sonnet-4-5",
        "content": [{"type": "text", "text": "hello"}],
        "stop_reason": "end_turn",
        "usage": {"input_tokens": 10, "output_tokens": 5},
    }
).encode()
JSON = b"Content-Type: application/json\r\n"


def finish(proxy: Process, number: int = 0) -> ProxyReply:
    return proxy.runs[number].ask(FinishRun())


def echo(wire: Wire) -> None:
    while data := wire.sock.recv(65536):
        wire.send(data)
    wire.close()


def status(proxy: Process) -> dict[str, Any]:
    return proxy.recording_status()


def is_withdrawn(proxy: Process, token: str) -> bool:
    with Wire.to(proxy.port) as client:
        client.send(connect_request("127.0.0.1:1", token))
        return client.head().startswith(b"HTTP/1.1 407 ")


@pytest.mark.parametrize("workers", [1, 3])
def test_a_run_gets_its_requests_and_its_hosts_and_the_log_has_no_token(tmp_path: Path, workers: int) -> None:
    body = json.dumps({"model": "claude-sonnet-4-5", "messages": [{"role": "user", "content": f"token {TOKEN}"}]})
    secret = base64.b64encode(f"agent-logger:{TOKEN}".encode())
    with (
        Upstream(answering(response(ANSWER, headers=JSON))) as upstream,
        Upstream(echo) as private,
        internet(upstream.port) as reached,
        proxying(tmp_path, upstream, "--workers", str(workers)) as proxy,
    ):
        proxy.come_by_the_forward_door(reached, str(foreign_files()[0]))
        wait_until(lambda: status(proxy)["workers_listening"] == workers)
        for _ in range(6):
            with proxy.client() as client:
                quoted = b"x-note: Basic %b\r\n" % secret
                client.send(proxy.request(body=body.encode(), headers=quoted))
                client.message()
        with Wire.to(proxy.port) as asked:
            asked.send(connect_request(f"127.0.0.1:{private.port}", None))
            assert asked.message().startswith(b"HTTP/1.1 407 ")
        reply = finish(proxy)
        by_host = {host.host: host for host in reply.hosts}
        assert (len(reply.requests), reply.is_complete) == (6, True)
        assert [request.usage and request.usage.output_tokens for request in reply.requests] == [5] * 6
        assert (by_host[HOST].calls, by_host[HOST].opened, by_host[HOST].tunnels) == (6, 6, 0)
        wait_until(lambda: status(proxy)["without_token"] == 1)
        wait_until(lambda: [(host["host"], host["calls"]) for host in status(proxy)["hosts"]] == [(HOST, 6)])
        assert status(proxy)["refused"] == 0
        assert proxy.stop() == 0
        logged = proxy.logged()
    assert len(logged.requests) == 6
    for call, (request,) in logged.requests.items():
        assert (request.door, request.path, request.head) == ("forward", "/v1/messages", None)
        assert request.headers["Host"] == f"{HOST}:443"
        assert TOKEN.encode() not in request_bytes(request)
        assert response_bytes(logged.response(call)) == ANSWER
    for path, data in every_byte_under(proxy.log_dir):
        assert TOKEN.encode() not in data and secret not in data, path


def test_a_token_holds_while_one_of_its_tunnels_is_open(tmp_path: Path) -> None:
    token = new_token()
    with Upstream(echo) as private, proxying(tmp_path, private) as proxy:
        proxy.register(token=token)
        with proxy.tunnelled(f"127.0.0.1:{private.port}", token=token) as tunnel:
            proxy.runs.pop().close()  # no process of the run lives
            time.sleep(1.5)  # the proxy looks twice a second
            assert not is_withdrawn(proxy, token)
            tunnel.send(b"hello")
            assert tunnel.take(5) == b"hello"
        wait_until(lambda: is_withdrawn(proxy, token))


def test_a_run_within_a_run_passes_the_proxy_once(tmp_path: Path) -> None:
    """Its `HTTPS_PROXY` is the door of the outer run, which is not to be its upstream proxy."""
    inner = new_token()
    with (
        Upstream(answering(response(ANSWER, headers=JSON))) as upstream,
        internet(upstream.port) as reached,
        proxying(tmp_path, upstream) as proxy,
    ):
        proxy.come_by_the_forward_door(reached, str(foreign_files()[0]))
        ours = f"http://agent-logger:{TOKEN}@127.0.0.1:{proxy.port}"
        proxy.register(token=inner, network=Network(https_proxy=ours))
        assert proxy.trusts
        with proxy.tunnelled(f"{HOST}:443", token=inner) as wire:
            secure = TlsSocket(wire.sock, proxy.trusts, HOST)
            secure.shake_hands()
            client = Wire(cast("socket.socket", secure))
            client.send(proxy.request(body=b'{"messages":[{"role":"user","content":"hi"}]}'))
            assert client.message() == response(ANSWER, headers=JSON)
        assert [len(finish(proxy, number).requests) for number in (0, 1)] == [0, 1]
        assert [host.calls for host in finish(proxy, 1).hosts] == [1]
        assert finish(proxy, 0).hosts == ()
