"""A client that leaves before its request has a whole head."""

import json
import socket
import struct
from pathlib import Path

import pytest

from tests.proxy.process import proxying, wait_until
from tests.proxy.wires import Upstream, answering, response

DOORS = ("base-url", "forward")


RESET = struct.pack("ii", 1, 0)  # close without waiting: what is unread is discarded, and the peer is told


@pytest.mark.parametrize("how", ["closed", "reset"])
def test_a_head_that_was_cut_is_recorded_as_a_bad_request(how: str, tmp_path: Path) -> None:
    with Upstream(answering(response())) as upstream, proxying(tmp_path, upstream) as proxy:
        with proxy.client() as client:
            client.send(proxy.request())  # after the answer, TLS has nothing to send to a client that is gone
            client.message()
            client.send(b"GET /v1/models HTTP/1.1\r\nHost: x")
            if how == "reset":
                client.sock.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, RESET)
        wait_until(lambda: json.loads(proxy.command("status", "--json"))[0]["refused"] == 1)
        assert proxy.stop() == 0
        found = proxy.logged()
    answers = {(it.status, it.complete, it.reason) for it in map(found.response, found.requests)}
    assert answers == {(200, True, None), (400, False, "refused")}
