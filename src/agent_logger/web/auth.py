"""What every request must fulfil, and what every answer carries, before any page is asked.

Loopback keeps other machines out, not web pages: a page can send requests to any address, and with a name of its own
that resolves to 127.0.0.1 it may read the answers too. So `Host` must be ours, `Origin` and `Sec-Fetch-Site` must not
be another site's (another port is another site to us), and without a cookie of ours only the login link is answered.
"""

from collections.abc import Awaitable, Callable, Mapping
from http.cookies import CookieError, SimpleCookie

from starlette.datastructures import Headers, MutableHeaders
from starlette.requests import Request
from starlette.responses import Response
from starlette.types import ASGIApp, Message, Receive, Scope, Send

from agent_logger.web.tokens import PageTokens

HOST_NAMES = ("127.0.0.1", "localhost", "[::1]")
OWN_SITE = ("same-origin", "none")  # none: a person typed the address
PUBLIC_PATHS = ("/open", "/static/")  # the way in, and what is in the package anyway
CHANGE_HEADER = "x-agent-logger"  # the header that a form or a foreign page cannot send

HEADERS = {
    "Content-Security-Policy": "default-src 'none'; script-src 'self'; style-src 'self'; img-src 'self' data:; "
    "connect-src 'self'; form-action 'self'; base-uri 'none'; frame-ancestors 'none'",
    "X-Content-Type-Options": "nosniff",
    "Referrer-Policy": "no-referrer",
    "X-Frame-Options": "DENY",
    "Cross-Origin-Opener-Policy": "same-origin",
    "Cross-Origin-Resource-Policy": "same-origin",
}

Refusal = Callable[[Request, int, str], Awaitable[Response]]


class PageGuard:
    def __init__(self, app: ASGIApp, *, port: int, tokens: PageTokens, refuse: Refusal) -> None:
        self._app, self._tokens, self._refuse = app, tokens, refuse
        self._hosts = {f"{name}:{port}" for name in HOST_NAMES} | (set(HOST_NAMES) if port == 80 else set())
        self._origins = {f"http://{host}" for host in self._hosts}

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        if scope["type"] == "lifespan":
            return await self._app(scope, receive, send)
        if scope["type"] != "http":
            return await send({"type": "websocket.close", "code": 1008})
        answer = with_headers(send)
        if refusal := self._refusal(scope):
            response = await self._refuse(Request(scope, receive), *refusal)
            return await response(scope, receive, answer)
        return await self._app(scope, receive, answer)

    def _refusal(self, scope: Scope) -> tuple[int, str] | None:
        headers = Headers(scope=scope)
        hosts = headers.getlist("host")
        if len(hosts) != 1 or hosts[0].lower() not in self._hosts:
            return 421, "This page only answers at 127.0.0.1 or localhost, with its port."
        if any(origin.lower() not in self._origins for origin in headers.getlist("origin")):
            return 403, "Requests from other web pages are refused."
        if any(site.lower() not in OWN_SITE for site in headers.getlist("sec-fetch-site")):
            return 403, "Another web page linked here. Type the address into the browser to open this page."
        if scope["method"] not in ("GET", "HEAD") and not ("origin" in headers and CHANGE_HEADER in headers):
            return 403, "Only this page itself can make changes."
        cookies = _cookies(headers, self._tokens.cookie_name)
        if not scope["path"].startswith(PUBLIC_PATHS) and not any(map(self._tokens.admits, cookies)):
            return 401, "This browser is not signed in."
        return None


def _cookies(headers: Headers, name: str) -> list[str]:
    values = []
    for line in headers.getlist("cookie"):
        for pair in line.split(";"):
            try:
                cookie = SimpleCookie(pair.strip()).get(name)
            except CookieError:  # of another program on this machine
                continue
            if cookie:
                values.append(cookie.value)
    return values


def with_headers(send: Send, headers: Mapping[str, str] = HEADERS) -> Send:
    async def answer(message: Message) -> None:
        if message["type"] == "http.response.start":
            own = MutableHeaders(scope=message)
            own.update(headers)
            own.setdefault("Cache-Control", "no-store")
        await send(message)

    return answer
