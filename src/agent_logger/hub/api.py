"""What devices call: the requests of `docs/hub-protocol.md` over HTTP."""

import logging
import sqlite3
import threading
import time
from collections.abc import Awaitable, Callable
from contextlib import AbstractContextManager, nullcontext
from typing import TypeVar

import msgspec
from starlette.concurrency import run_in_threadpool
from starlette.requests import ClientDisconnect, Request
from starlette.responses import Response
from starlette.routing import Route

from agent_logger import __version__
from agent_logger.files.sealed import zstd
from agent_logger.hub.metrics import CONTENT_TYPE, HubMetrics
from agent_logger.hub.people import Device, People, ThrottledError
from agent_logger.hub.storage.index import SendingDevice
from agent_logger.hub.storage.intake import Intake
from agent_logger.push.protocol import (
    HASH_HEADER,
    MODIFIED_HEADER,
    MOST_HEAD_BYTES,
    MOST_RANGE_BYTES,
    STATUS,
    VERSION,
    VERSION_HEADER,
    DeviceGrant,
    HubRefusal,
    HubRefusalError,
    Invitation,
    ObjectHead,
    Statement,
    Withdrawal,
    refuse,
)

log = logging.getLogger("agent_logger.hub")

REQUESTS_PER_SECOND = 200.0  # of a device
MOST_DEVICES = 10_000  # whose pace is remembered
RANGES_IN_MEMORY = 16
RETRY_SECONDS = "1"

T = TypeVar("T")
Answer = Callable[["PushApi", Request, Device], Awaitable[object]]


class _Pace:
    """How many requests each device may make now."""

    def __init__(self) -> None:
        self._left: dict[str, tuple[float, float]] = {}

    def admits(self, device: str) -> bool:
        now = time.monotonic()
        left, before = self._left.get(device, (REQUESTS_PER_SECOND, now))
        left = min(REQUESTS_PER_SECOND, left + (now - before) * REQUESTS_PER_SECOND)
        if len(self._left) > MOST_DEVICES:
            self._left.clear()
        self._left[device] = (max(0.0, left - 1), now)
        return left >= 1


class PushApi:
    """Answers devices. One request at a time changes the hub."""

    def __init__(
        self, intake: Intake, people: People, changing: Callable[[], AbstractContextManager[None]] = nullcontext
    ) -> None:
        """`changing`: what other processes that change the hub wait for."""
        self.intake, self.people, self._changing = intake, people, changing
        self._lock = threading.Lock()
        self._pace = _Pace()
        self._ranges = 0
        self.metrics = HubMetrics()

    async def run(self, request: Callable[[], T]) -> T:
        """Run a request of a device in another thread, after those before it."""

        def alone() -> T:
            with self._lock, self._changing():
                return request()

        return await run_in_threadpool(alone)

    def routes(self) -> list[Route]:
        return [
            Route("/health", self._health),
            Route("/metrics", self._figures),
            Route("/push/v1/join", self._join, methods=["POST"]),
            self._route("device", "GET", _report),
            self._route("leave", "POST", _leave),
            self._route("withdrawals", "POST", _withdraw),
            self._route("sessions/{session:path}", "PUT", _state_level),
            self._route("objects/{object}/{generation:int}", "PUT", _begin),
            self._route("objects/{object}/{generation:int}/{offset:int}", "PUT", _append),
        ]

    def _route(self, path: str, method: str, answer: Answer) -> Route:
        async def endpoint(request: Request) -> Response:
            return await self._answered(request, path, answer)

        return Route(f"/push/v1/{path}", endpoint, methods=[method])

    async def _health(self, _request: Request) -> Response:
        senders = await self.run(lambda: len(self.intake.devices()))
        return _json({"status": "ok", "version": __version__, "devices": senders})

    async def _figures(self, _request: Request) -> Response:
        self.metrics.set("devices", await run_in_threadpool(lambda: len(self.intake.devices())))
        self.metrics.set("ranges_in_memory", self._ranges)
        return Response(self.metrics.text(), media_type=CONTENT_TYPE)

    async def _join(self, request: Request) -> Response:
        async def joined(api: PushApi, request: Request) -> object:
            _check_version(request)
            invitation = _decoded(await _body(request, MOST_HEAD_BYTES), Invitation)
            token = await run_in_threadpool(
                api.people.exchange_invite, invitation.invite, invitation.machine, _peer(request)
            )
            device = await run_in_threadpool(api.people.device_of, token, _peer(request)) if token else None
            if token is None or device is None:
                refuse("unauthorized", "the invite is wrong, was used, or is older than a day")
            return DeviceGrant(token=token, device=device.id, person=device.person.name, machine=device.machine)

        return await self._logged(request, "join", joined(self, request), None)

    async def _answered(self, request: Request, name: str, answer: Answer) -> Response:
        device: Device | None = None

        async def answered() -> object:
            nonlocal device
            device = await run_in_threadpool(self._device_of, request)
            _check_version(request)
            if not self._pace.admits(device.id):
                refuse("busy", "this machine makes too many requests")
            return await answer(self, request, device)

        return await self._logged(request, name, answered(), lambda: device)

    def _device_of(self, request: Request) -> Device:
        scheme, _, token = request.headers.get("Authorization", "").partition(" ")
        if not token:
            self.people.note_missing_token(_peer(request))
        device = self.people.device_of(token, _peer(request)) if token and scheme.lower() == "bearer" else None
        if device is None:
            refuse("unauthorized", "no machine has this token, or it was revoked")
        return device

    async def _logged(
        self, request: Request, name: str, answer: Awaitable[object], device: Callable[[], Device | None] | None
    ) -> Response:
        """Answer, and write a line to the log: of what was pushed it has nothing but the size."""
        began, error = time.monotonic(), ""
        try:
            response = _json(await answer)
        except HubRefusalError as refused:
            error, response = refused.refusal.error, _refusal(refused.refusal)
        except ThrottledError:
            error, response = "busy", _refusal(HubRefusal(error="busy", message="too many wrong tokens"), 429)
        except ClientDisconnect:
            error, response = "disconnected", _refusal(HubRefusal(error="busy", message="the request was cut"))
        except OSError as failure:
            error = f"{type(failure).__name__}: {failure.strerror or failure}"
            response = _refusal(HubRefusal(error="busy", message="the hub cannot store this now"))
        except sqlite3.Error as failure:
            error = f"{type(failure).__name__}: {failure}"
            response = _refusal(HubRefusal(error="busy", message="the hub cannot store this now"))
        owner = device() if device else None
        size, seconds = int(request.headers.get("Content-Length") or 0), time.monotonic() - began
        kind = "ranges" if "{offset" in name else name.partition("/")[0]
        self.metrics.add("requests_total", request=kind, status=str(response.status_code))
        self.metrics.add("request_seconds_total", seconds, request=kind)
        self.metrics.add("received_bytes_total", size)
        entry = {
            "event": "push",
            "request": name,
            "method": request.method,
            "status": response.status_code,
            "error": error,
            "device": owner.id if owner else None,
            "bytes": size,
            "ms": round(seconds * 1000),
        }
        log.log(logging.INFO if response.status_code < 400 else logging.WARNING, "push", extra={"entry": entry})
        return response

    def take_memory(self) -> None:
        """Count a range that is held in memory. Raises `HubRefusalError` if there are too many."""
        if self._ranges >= RANGES_IN_MEMORY:
            refuse("busy", "too many ranges at once")
        self._ranges += 1

    def give_memory_back(self) -> None:
        self._ranges -= 1


# ---------------------------------------------------------------- requests


async def _report(api: PushApi, _request: Request, device: Device) -> object:
    return await api.run(lambda: api.intake.report(_sender(device)))


async def _leave(api: PushApi, _request: Request, device: Device) -> object:
    await run_in_threadpool(api.people.revoke_device, device)
    return {}


async def _withdraw(api: PushApi, request: Request, device: Device) -> object:
    withdrawal = _decoded(await _body(request, MOST_HEAD_BYTES), Withdrawal)
    withdrawn = await api.run(lambda: api.intake.withdraw(_sender(device), withdrawal.session))
    names = {person.id: person.name for person in await run_in_threadpool(api.people.people)}
    return msgspec.structs.replace(withdrawn, others=tuple(names.get(other, other) for other in withdrawn.others))


async def _state_level(api: PushApi, request: Request, device: Device) -> object:
    statement = _decoded(await _body(request, MOST_HEAD_BYTES), Statement)
    session = request.path_params["session"]
    return await api.run(lambda: api.intake.state_level(_sender(device), session, statement))


async def _begin(api: PushApi, request: Request, device: Device) -> object:
    head = _decoded(await _body(request, MOST_HEAD_BYTES), ObjectHead)
    name, generation = request.path_params["object"], request.path_params["generation"]
    return await api.run(lambda: api.intake.begin(_sender(device), name, generation, head))


async def _append(api: PushApi, request: Request, device: Device) -> object:
    api.take_memory()
    try:
        data = await run_in_threadpool(_unpacked, await _body(request, MOST_RANGE_BYTES), request)
        names = request.path_params
        digest = request.headers.get(HASH_HEADER, "")
        modified = _time(request.headers.get(MODIFIED_HEADER, "0"))
        return await api.run(
            lambda: api.intake.append(
                _sender(device), names["object"], names["generation"], names["offset"], data, digest, modified
            )
        )
    finally:
        api.give_memory_back()


def _sender(device: Device) -> SendingDevice:
    return SendingDevice(device.id, device.person.id, device.machine)


# ---------------------------------------------------------------- bodies


async def _body(request: Request, most: int) -> bytes:
    """Read a body. Raises `HubRefusalError` as soon as it is too long."""
    body = bytearray()
    async for chunk in request.stream():
        body += chunk
        if len(body) > most:
            refuse("too_large", f"the body is larger than {most >> 10:,} KB")
    return bytes(body)


def _unpacked(body: bytes, request: Request) -> bytes:
    packing = request.headers.get("Content-Encoding", "")
    if packing not in ("", "zstd"):
        refuse("malformed", "the body is packed in a way that is not known here")
    return _plain(body) if packing else body


def _plain(packed: bytes) -> bytes:
    unpacker = zstd.ZstdDecompressor(options={zstd.DecompressionParameter.window_log_max: 23})
    try:
        data = unpacker.decompress(packed, MOST_RANGE_BYTES + 1)
    except zstd.ZstdError:
        refuse("malformed", "the body is not packed with zstd")
    if len(data) > MOST_RANGE_BYTES:
        refuse("too_large", f"a range has at most {MOST_RANGE_BYTES:,} bytes")
    if not unpacker.eof or unpacker.unused_data:
        refuse("malformed", "the packed body is cut, or has more than one frame")
    return data


def _decoded(body: bytes, kind: type[T]) -> T:
    try:
        return msgspec.json.decode(body, type=kind)
    except (ValueError, RecursionError) as error:
        refuse("malformed", f"the body is not of its form: {error}")


def _time(text: str) -> float:
    try:
        time_of_file = float(text)
    except ValueError:
        return 0.0
    return time_of_file if abs(time_of_file) < 1e11 else 0.0


def _check_version(request: Request) -> None:
    if request.headers.get(VERSION_HEADER) != str(VERSION):
        raise HubRefusalError(
            HubRefusal(error="version", message="this hub does not speak this version", versions=(VERSION,))
        )


def _peer(request: Request) -> str:
    return request.client.host if request.client else ""


def _refusal(refusal: HubRefusal, status: int | None = None) -> Response:
    response = _json(refusal, status or STATUS[refusal.error])
    if refusal.error == "busy":
        response.headers["Retry-After"] = RETRY_SECONDS
    return response


def _json(value: object, status: int = 200) -> Response:
    return Response(msgspec.json.encode(value), status, media_type="application/json")
