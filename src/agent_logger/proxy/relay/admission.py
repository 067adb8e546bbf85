"""The rule of which clients may use the relay: programs on this machine, but no web page in its browser.

Loopback keeps other machines out, not pages: a page can send requests to any address, and with a name of its own that
resolves to 127.0.0.1 it may read the answers too. Such a request carries the page's name as `Host`, often without an
`Origin`, so `Host` is what decides; `Origin` and `Sec-Fetch-Site` stop the rest.
"""

from http import HTTPStatus

import msgspec

from agent_logger.protocols.http1 import FETCH_SITE, HOST, ORIGIN, RequestHead

_NAMES = (b"127.0.0.1", b"localhost", b"[::1]")
_OWN_SITE = (b"same-origin", b"none")  # `none`: a person typed the address


class ForbiddenError(Exception):
    def __init__(self, reason: str, status: int) -> None:
        super().__init__(reason)
        self.status = status


class TokenNeededError(Exception):
    """A request for a proxy, without the token of a registered run."""


class Admission:
    def __init__(self, port: int) -> None:
        hosts = {name + b":%d" % port for name in _NAMES} | (set(_NAMES) if port == 80 else set())
        self._hosts = hosts
        self._origins = {b"http://" + host for host in hosts}

    def check(self, head: RequestHead) -> None:
        hosts = head.values(HOST)
        if len(hosts) != 1:
            raise ForbiddenError("a request needs exactly one Host header", 400)
        if hosts[0].lower() not in self._hosts:
            raise ForbiddenError("the Host header must be 127.0.0.1 or localhost, with the port", 421)
        for origin in head.values(ORIGIN):
            if origin.lower() not in self._origins:
                raise ForbiddenError("web pages may not use this proxy (Origin)", 403)
        for site in head.values(FETCH_SITE):
            if site.lower() not in _OWN_SITE:
                raise ForbiddenError("web pages may not use this proxy (Sec-Fetch-Site)", 403)


_KINDS = {
    400: "malformed",
    403: "forbidden",
    404: "not_found",
    405: "method",
    407: "token",
    408: "head_timeout",
    421: "host",
    429: "too_many_tunnels",
    431: "head_too_long",
    502: "upstream",
    503: "too_many_connections",
    504: "upstream_timeout",
    505: "version",
}


def error_response(
    status: int, reason: str, *, bodiless: bool = False, headers: str = "connection: close\r\n"
) -> bytes:
    """An answer of our own; a header distinguishes it from an upstream's. `reason` is ours, never the client's bytes.

    The body has Anthropic's form, which the SDKs of others print too.
    """
    error = {"type": "agent_logger_error", "message": f"agent-logger: {reason}"}
    body = msgspec.json.encode({"type": "error", "error": error})
    head = (
        f"HTTP/1.1 {status} {HTTPStatus(status).phrase}\r\n"
        f"x-agent-logger-error: {_KINDS[status]}\r\n"
        "content-type: application/json\r\n"
        f"content-length: {len(body)}\r\n"
        f"{headers}\r\n"
    )
    return head.encode() + (b"" if bodiless else body)


def token_request(*, bodiless: bool, stays: bool) -> bytes:
    """The answer to a request for a proxy that has no token. Some clients, such as git, send theirs when asked, on the
    same connection."""
    headers = 'proxy-authenticate: Basic realm="agent-logger"\r\n' + ("" if stays else "connection: close\r\n")
    return error_response(407, "this request needs the token of a run", bodiless=bodiless, headers=headers)
