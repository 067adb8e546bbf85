"""A hub over HTTP, as a machine calls it."""

import hashlib
import http.client
import ssl
import urllib.request
from typing import TypeVar
from urllib.parse import quote, urlsplit

import msgspec
import truststore

from agent_logger.errors import AgentLoggerError
from agent_logger.files.sealed import zstd
from agent_logger.push.protocol import (
    HASH_HEADER,
    MODIFIED_HEADER,
    VERSION,
    VERSION_HEADER,
    DeviceGrant,
    DeviceReport,
    HubRefusal,
    HubRefusalError,
    Invitation,
    ObjectHead,
    Offset,
    Statement,
    Withdrawal,
    Withdrawn,
)

SILENCE_SECONDS = 30.0
PACKING_LEVEL = 3
MOST_ANSWER_BYTES = 256 << 20  # the report of a device names all its sessions
WORTH_PACKING = 512  # bytes
LOOPBACK = ("127.0.0.1", "::1", "localhost")

T = TypeVar("T")


class HubAddressError(AgentLoggerError):
    """The address of a hub cannot be used."""


class UnreachableHubError(OSError):
    """The hub gave no answer, or asks to wait."""


def checked_address(url: str) -> str:
    """Return the address of a hub. Raises `HubAddressError`."""
    parts = urlsplit(url.rstrip("/"))
    try:
        host, port = parts.hostname, parts.port
    except ValueError:
        host, port = None, None
    is_plain = parts.scheme == "http" and host in LOOPBACK
    if not host or parts.username or parts.query or parts.fragment or parts.path or (port is not None and port < 1):
        raise HubAddressError(f"{url!r} is not the address of a hub; use one such as https://hub.example.com")
    if parts.scheme != "https" and not is_plain:
        raise HubAddressError(f"{url!r} is not https: a hub on another machine needs TLS")
    return f"{parts.scheme}://{parts.netloc}"


class HubClient:
    """Calls a hub, over one connection that is kept. Raises `HubRefusalError`, and `OSError` if there is no answer."""

    def __init__(self, url: str, token: str = "") -> None:
        self._parts, self._token = urlsplit(checked_address(url)), token
        self._connection: http.client.HTTPConnection | None = None

    def join(self, invite: str, machine: str) -> DeviceGrant:
        return self._json("POST", "join", Invitation(invite=invite, machine=machine), DeviceGrant)

    def report(self) -> DeviceReport:
        return self._json("GET", "device", None, DeviceReport)

    def state_level(self, session: str, statement: Statement) -> Statement:
        return self._json("PUT", f"sessions/{quote(session, safe='')}", statement, Statement)

    def begin(self, name: str, generation: int, head: ObjectHead) -> Offset:
        return self._json("PUT", f"objects/{name}/{generation}", head, Offset)

    def append(self, name: str, generation: int, offset: int, data: bytes, modified: float) -> Offset:
        headers = {
            HASH_HEADER: hashlib.sha256(data).hexdigest(),
            MODIFIED_HEADER: str(modified),
            "Content-Type": "application/octet-stream",
        }
        if len(data) >= WORTH_PACKING:
            data, headers["Content-Encoding"] = zstd.compress(data, PACKING_LEVEL), "zstd"
        return self._decoded(self._request("PUT", f"objects/{name}/{generation}/{offset}", data, headers), Offset)

    def withdraw(self, session: str) -> Withdrawn:
        return self._json("POST", "withdrawals", Withdrawal(session=session), Withdrawn)

    def leave(self) -> None:
        self._request("POST", "leave", b"", {})

    def close(self) -> None:
        if self._connection:
            self._connection.close()
            self._connection = None

    # ------------------------------------------------------------ requests

    def _json(self, method: str, path: str, body: msgspec.Struct | None, kind: type[T]) -> T:
        data = b"" if body is None else msgspec.json.encode(body)
        return self._decoded(self._request(method, path, data, {"Content-Type": "application/json"}), kind)

    def _decoded(self, answer: bytes, kind: type[T]) -> T:
        try:
            return msgspec.json.decode(answer, type=kind)
        except ValueError as error:
            raise UnreachableHubError(f"{self._parts.netloc} does not answer like a hub") from error

    def _request(self, method: str, path: str, body: bytes, headers: dict[str, str]) -> bytes:
        headers = {**headers, VERSION_HEADER: str(VERSION)}
        if self._token:
            headers["Authorization"] = f"Bearer {self._token}"
        try:
            status, answer = self._exchange(method, f"/push/v1/{path}", body, headers)
        except (http.client.HTTPException, OSError) as error:
            self.close()
            raise UnreachableHubError(
                f"no answer from {self._parts.netloc}: {str(error) or type(error).__name__}"
            ) from error
        if status < 300:
            return answer
        raise _refused(status, answer, self._parts.netloc)

    def _exchange(self, method: str, path: str, body: bytes, headers: dict[str, str]) -> tuple[int, bytes]:
        """Make a request. A connection that the hub has closed meanwhile is opened once more: every request may be
        repeated."""
        is_fresh = self._connection is None
        connection = self._connection = self._connection or self._connected()
        try:
            connection.request(method, path, body, headers)
            response = connection.getresponse()
        except (http.client.RemoteDisconnected, ConnectionError, BrokenPipeError):
            self.close()
            if is_fresh or method == "POST":
                raise
            return self._exchange(method, path, body, headers)
        answer = response.read(MOST_ANSWER_BYTES)
        if response.will_close:
            self.close()
        return response.status, answer

    def _connected(self) -> http.client.HTTPConnection:
        host, port = self._parts.hostname or "", self._parts.port
        if self._parts.scheme == "http":
            return http.client.HTTPConnection(host, port, timeout=SILENCE_SECONDS)
        context = truststore.SSLContext(ssl.PROTOCOL_TLS_CLIENT)
        if proxy := _proxy_for(host):
            tunnel = http.client.HTTPSConnection(*proxy, timeout=SILENCE_SECONDS, context=context)
            tunnel.set_tunnel(host, port or 443)
            return tunnel
        return http.client.HTTPSConnection(host, port, timeout=SILENCE_SECONDS, context=context)


def _proxy_for(host: str) -> tuple[str, int] | None:
    """Return the proxy that this machine uses for other hosts; None if it uses none for this one."""
    proxy = urlsplit(urllib.request.getproxies().get("https", ""))
    if not proxy.hostname or urllib.request.proxy_bypass(host):
        return None
    return proxy.hostname, proxy.port or 80


def _refused(status: int, answer: bytes, hub: str) -> Exception:
    try:
        refusal = msgspec.json.decode(answer, type=HubRefusal)
    except ValueError:
        return UnreachableHubError(f"{hub} answered {status}, not like a hub")
    if refusal.error == "busy":
        return UnreachableHubError(f"{hub} is busy")
    return HubRefusalError(refusal)
