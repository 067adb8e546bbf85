"""Decides on every request to the hub, before any page is asked: who it is, and whether the table of roles allows it.

    who     a device or reader token (`Authorization: Bearer`), the page's cookie, or a header of a proxy that signs
            people in, which is removed from the requests of everybody else
    what    the route's row in `roles.py`; without a row the request is refused
    whose   the site that the route gets knows only the sessions that the person may see

A page of somebody else's session is sent as a frame without scripts, inside a page that says whose it is.
"""

import hmac
import ipaddress
import logging
import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from http.cookies import CookieError, SimpleCookie
from typing import NamedTuple, TypeVar
from urllib.parse import parse_qs, urlsplit

from starlette.applications import Starlette
from starlette.datastructures import Headers, MutableHeaders
from starlette.requests import Request
from starlette.responses import Response
from starlette.types import ASGIApp, Message, Receive, Scope, Send

from agent_logger.catalog.summary import SessionSummary
from agent_logger.hub.people import PageReader, People, Person, Role, ThrottledError
from agent_logger.hub.roles import ROUTES, Access, Level, Rule, matching_route, route_key, scope_of
from agent_logger.hub.site import HubSite
from agent_logger.web.api.endpoints import V1
from agent_logger.web.auth import with_headers
from agent_logger.web.catalog_pool import AmbiguousSessionError, StillReadingError
from agent_logger.web.site import SITE_OF_REQUEST

FORM_BYTES = 64 << 10
FRAME = "frame"  # the parameter that asks for what is in the frame
RULE_OF_REQUEST = "agent_logger.rule"  # in the scope of a request

_POLICY = "default-src 'none'; style-src 'self'; img-src 'self' data:; base-uri 'none'; form-action 'self'"
HEADERS = {
    "X-Content-Type-Options": "nosniff",
    "Referrer-Policy": "same-origin",  # without a referrer, browsers send forms with `Origin: null`
    "Cross-Origin-Opener-Policy": "same-origin",
}
PAGE_HEADERS = {
    "Content-Security-Policy": f"{_POLICY}; script-src 'self'; connect-src 'self'; frame-src 'self'; "
    "frame-ancestors 'none'",
    "X-Frame-Options": "DENY",
    "Cross-Origin-Resource-Policy": "same-origin",
}
# Contents of others run no script, send no form, and have no origin: not even that of the hub.
FRAME_HEADERS = {
    "Content-Security-Policy": f"sandbox allow-top-navigation-by-user-activation; {_POLICY}; frame-ancestors 'self'",
    "X-Frame-Options": "SAMEORIGIN",
    "Cross-Origin-Resource-Policy": "same-origin",
}
STATIC_HEADERS = {"Cross-Origin-Resource-Policy": "cross-origin"}  # the style sheets of a document without an origin

log = logging.getLogger("agent_logger.hub")
T = TypeVar("T")
Network = ipaddress.IPv4Network | ipaddress.IPv6Network
Refusal = Callable[[Request, int, str], Response]


@dataclass(frozen=True, kw_only=True)
class AccessOptions:
    trusted_header: str | None = None  # names the person; lower case
    trusted_networks: Sequence[Network] = ()  # of the proxies that set it
    behind_proxy: bool = False  # peers are those that the proxies in these networks, or on this machine, name
    is_secure: bool = False  # people use HTTPS

    @property
    def cookie_name(self) -> str:
        return "__Host-agent_logger_hub" if self.is_secure else "agent_logger_hub"


class DeniedError(Exception):
    def __init__(self, status: int, reason: str) -> None:
        super().__init__(reason)
        self.status, self.reason = status, reason


class _Peer(NamedTuple):
    address: str
    is_trusted: bool  # it may name the person in a header


class HubAccess:
    def __init__(self, app: Starlette, people: People, site: HubSite, options: AccessOptions, refuse: Refusal) -> None:
        self.app, self._people, self._site, self._options, self._refuse = app, people, site, options, refuse

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        if scope["type"] == "lifespan":
            await self.app(scope, receive, send)
        elif scope["type"] == "http":
            await self._http(scope, receive, send)
        else:
            await send({"type": "websocket.close", "code": 1008})

    async def _http(self, scope: Scope, receive: Receive, send: Send) -> None:
        began, headers = time.monotonic(), MutableHeaders(scope=scope)
        peer = self._peer(scope, headers)
        scope["client"] = (peer.address, 0)
        try:
            receive = await self._admit(scope, receive, headers, peer)
            app, response_headers = await self._answer(scope)
        except DeniedError as error:
            app, response_headers = self._refusal(scope, error), PAGE_HEADERS
        answer = with_headers(send, {**HEADERS, **response_headers})
        await app(scope, receive, answer if scope["path"].startswith("/push/") else self._logged(scope, answer, began))

    def _logged(self, scope: Scope, send: Send, began: float) -> Send:
        """Write a line to the log when the answer begins: no path, which may have the id of a session."""

        async def logged(message: Message) -> None:
            if message["type"] == "http.response.start":
                match = matching_route(self.app.router.routes, scope)
                entry = {
                    "event": "page",
                    "request": route_key(match[0], scope["method"]) if match else scope["method"],
                    "status": message["status"],
                    "peer": scope["client"][0],
                    "ms": round((time.monotonic() - began) * 1000),
                }
                log.log(logging.INFO if message["status"] < 400 else logging.WARNING, "page", extra={"entry": entry})
            await send(message)

        return logged

    # ------------------------------------------------------------ who

    def _peer(self, scope: Scope, headers: MutableHeaders) -> _Peer:
        """Return who asks, and remove from the headers what only a trusted proxy may say."""
        address = scope["client"][0] if scope.get("client") else ""
        is_trusted = any(_is_within(address, network) for network in self._options.trusted_networks)
        if self._options.behind_proxy and (is_trusted or _is_loopback(address)):
            *_, last = ["", *headers.get("x-forwarded-for", "").split(",")]
            address = last.strip() or address
        name = self._options.trusted_header
        if name and name in headers and not is_trusted:
            del headers[name]
            self._people.refuse("trusted header from elsewhere", address)
            log.warning("refused: header %s from %s", name, address)
        return _Peer(address, is_trusted)

    async def _admit(self, scope: Scope, receive: Receive, headers: Headers, peer: _Peer) -> Receive:
        """Put the site that the person may see into the scope. Raises `DeniedError`."""
        match = matching_route(self.app.router.routes, scope)
        rule = ROUTES.get(route_key(match[0], scope["method"])) if match else Rule(Access.READER)
        if rule is None:
            log.error("refused: %s %s has no row in the table of roles", scope["method"], scope["path"])
            raise DeniedError(403, "This route has no rule.")
        scope[RULE_OF_REQUEST] = rule
        if rule.access in (Access.INVITE, Access.DEVICE):
            return receive  # `api.py` checks the token, and answers in the words of the protocol
        if rule.access is Access.ANYBODY:
            is_reading = scope["method"] in ("GET", "HEAD")
            _check_origin(scope, headers, is_public=is_reading)
            return receive if is_reading else _body_again(await _read_body(receive), receive)
        try:
            _check_origin(scope, headers)
            reader = await self._run(lambda: self._reader(scope, headers, peer))
        except ThrottledError:
            raise DeniedError(429, "Too many wrong tokens from this address.") from None
        if rule.access is Access.ADMIN and reader.person.role is not Role.ADMIN:
            await self._run(lambda: self._people.note_refusal(reader.person, scope["path"], peer.address))
            raise DeniedError(403, "Only an admin may see this.")
        if scope["method"] not in ("GET", "HEAD"):
            receive = await self._check_form(receive, reader, peer)
        if match:
            await self._give_site(scope, reader, rule, route_key(match[0], scope["method"]), peer)
        return receive

    async def _run(self, work: Callable[[], T]) -> T:
        return await self._site.pool.run(work)

    def _reader(self, scope: Scope, headers: Headers, peer: _Peer) -> PageReader:
        if "authorization" in headers:
            token = _bearer(headers) or ""
            person = self._people.reader_of(token, peer.address)
            if person is None or not scope["path"].startswith(V1):
                raise DeniedError(401, "This token is not valid here.")
            return PageReader(person, "")
        name = self._options.trusted_header
        if name and name in headers:  # of a trusted peer, or it would not be there any more
            return PageReader(self._named_person(headers[name], peer), "")
        for cookie in _cookies(headers, self._options.cookie_name):
            if reader := self._people.page_reader_of(cookie, peer.address):
                return reader
        self._people.note_missing_token(peer.address)
        raise DeniedError(401, "You are not signed in.")

    def _named_person(self, name: str, peer: _Peer) -> Person:
        person = self._people.find(name.encode("latin-1", "replace").decode("utf-8", "replace"))
        if person is None or person.revoked:
            self._people.refuse("trusted header names nobody", peer.address)
            raise DeniedError(403, "Nobody of this name was invited to this hub.")
        return person

    # ------------------------------------------------------------ what

    async def _check_form(self, receive: Receive, reader: PageReader, peer: _Peer) -> Receive:
        """Check that a form of this hub was sent. Returns the body for the route. Raises `DeniedError`."""
        body = await _read_body(receive)
        given = form_value(body, "csrf_token")
        if not reader.csrf_token or not hmac.compare_digest(given.encode(), reader.csrf_token.encode()):
            await self._run(lambda: self._people.note_refusal(reader.person, "form of another site", peer.address))
            raise DeniedError(403, "This form is not from this hub, or too old. Load the page again.")
        return _body_again(body, receive)

    async def _give_site(self, scope: Scope, reader: PageReader, rule: Rule, key: str, peer: _Peer) -> None:
        query = Request(scope).query_params
        sees = scope_of(reader.person.role, rule, query)
        noted = key.partition(" ")[2] if rule.level is Level.CONTENTS else None
        try:
            scope[SITE_OF_REQUEST] = await self._site.for_reader(reader, sees, noted, peer.address)
        except StillReadingError as error:
            raise DeniedError(503, f"Not ready: {error}.") from error

    async def _answer(self, scope: Scope) -> tuple[ASGIApp, Mapping[str, str]]:
        """Return what answers, and with which headers: contents of others are sent into a frame without scripts."""
        if scope["path"].startswith("/static/"):
            return self.app, STATIC_HEADERS
        rule, site = scope[RULE_OF_REQUEST], scope.get(SITE_OF_REQUEST)
        if not site or rule.level is not Level.CONTENTS or scope["path"].startswith(V1):
            return self.app, PAGE_HEADERS
        sessions = await self._sessions(scope, site)
        owners = {owner for session in sessions for owner in session.people} - {site.reader.person.name}
        if not owners:
            return self.app, PAGE_HEADERS
        request = Request(scope)
        if not rule.is_page or FRAME in request.query_params:
            site.is_framed = True
            return self.app, FRAME_HEADERS
        url = request.url.include_query_params(**{FRAME: "1"})
        values = {"session": sessions[0], "owners": sorted(owners), "frame_url": f"{url.path}?{url.query}"}
        return site.render(request, "framed.html", **values), PAGE_HEADERS

    async def _sessions(self, scope: Scope, site: HubSite) -> list[SessionSummary]:
        """Return the sessions that the path names. Where it names none, the route says so."""
        match = matching_route(self.app.router.routes, scope)
        names = [str(match[1][name]) for name in ("session_id", "other") if name in match[1]] if match else []
        try:
            return [session for name in names if (session := await site.pool.summary(name))]
        except (AmbiguousSessionError, StillReadingError):
            return []

    def _refusal(self, scope: Scope, error: DeniedError) -> Response:
        scope["app"] = self.app
        response = self._refuse(Request(scope), error.status, error.reason)
        if error.status == 429:
            response.headers["Retry-After"] = "60"
        if error.status == 401:
            response.headers["WWW-Authenticate"] = "Bearer"
        return response


def _check_origin(scope: Scope, headers: Headers, *, is_public: bool = False) -> None:
    """Refuse what another site sends, but for links that people follow. Raises `DeniedError`."""
    hosts = headers.getlist("host")
    if len(hosts) != 1:
        raise DeniedError(400, "A request needs one Host.")
    is_reading = scope["method"] in ("GET", "HEAD")
    origins = headers.getlist("origin")
    if not is_reading and "authorization" not in headers and not origins:
        raise DeniedError(403, "Only this hub itself can make changes.")
    if not is_public and any(urlsplit(origin).netloc.lower() != hosts[0].lower() for origin in origins):
        raise DeniedError(403, "Requests from other sites are refused.")
    is_link = is_reading and headers.get("sec-fetch-mode") == "navigate"
    site = headers.get("sec-fetch-site", "none")
    if not is_public and site not in ("same-origin", "none") and not is_link:
        raise DeniedError(403, "Requests from other sites are refused.")


def _bearer(headers: Headers) -> str | None:
    scheme, _, token = headers.get("authorization", "").partition(" ")
    return token.strip() if scheme.lower() == "bearer" else None


def _cookies(headers: Headers, name: str) -> list[str]:
    values = []
    for line in headers.getlist("cookie"):
        for pair in line.split(";"):
            try:
                cookie = SimpleCookie(pair.strip()).get(name)
            except CookieError:
                continue
            if cookie:
                values.append(cookie.value)
    return values[:2]


def _is_within(address: str, network: Network) -> bool:
    try:
        return ipaddress.ip_address(address) in network
    except ValueError:
        return False


def _is_loopback(address: str) -> bool:
    try:
        return ipaddress.ip_address(address).is_loopback
    except ValueError:
        return False


def form_value(body: bytes, name: str) -> str:
    """Return a field of a form, empty without it."""
    return parse_qs(body.decode("latin-1"), max_num_fields=16).get(name, [""])[0] if body.count(b"&") < 16 else ""


async def _read_body(receive: Receive) -> bytes:
    body, more = b"", True
    while more:
        message = await receive()
        body += message.get("body", b"")
        more = message.get("more_body", False)
        if len(body) > FORM_BYTES:
            raise DeniedError(413, "This form is too large.")
    return body


def _body_again(body: bytes, receive: Receive) -> Receive:
    """Return a `receive` that begins with a body that was received already."""
    messages: list[Message] = [{"type": "http.request", "body": body, "more_body": False}]

    async def receive_again() -> Message:
        return messages.pop() if messages else await receive()

    return receive_again
