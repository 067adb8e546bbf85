"""A client that leaves before its request has a whole head."""

import json
from pathlib import Path

from tests.proxy.process import proxying, wait_until
from tests.proxy.wires import Upstream, answering, response

DOORS = ("base-url", "forward")


def test_a_head_that_was_cut_is_recorded_as_a_bad_request(tmp_path: Path) -> None:
    with Upstream(answering(response())) as upstream, proxying(tmp_path, upstream) as proxy:
        with proxy.client() as client:
            client.send(b"GET /v1/models HTTP/1.1\r\nHost: x")
        wait_until(lambda: json.loads(proxy.command("status", "--json"))[0]["refused"] == 1)
        assert proxy.stop() == 0
        found = proxy.logged()
    [call] = found.requests
    refused = found.response(call)
    assert (refused.status, refused.complete, refused.reason) == (400, False, "refused")
