"""Cookies that change with every answer: what is remembered is bounded, and what is logged is clean all the same."""

import hmac
import os
import threading
import time
from pathlib import Path

import pytest

from agent_logger.home.layout import install_key
from agent_logger.proxy.recorder import pipe as pipe_module
from agent_logger.proxy.recorder.child import RecorderChild
from agent_logger.proxy.recorder.pipe import Pipe, message
from agent_logger.proxy.recorder_process import Recorder
from agent_logger.proxy.relay.masks import Credentials, Masker
from agent_logger.proxy.spool.folder import spool_folder
from agent_logger.proxy.spool.frames import (
    REMEMBERED,
    CallEnd,
    CredentialFrame,
    Mask,
    RequestEnd,
    RequestHeadFrame,
    ResponseData,
    ResponseHead,
)
from agent_logger.proxy.spool.segments import SegmentStart, SpoolFollower
from agent_logger.proxy.spool.spool import Spool
from tests.proxy.process import wait_until
from tests.proxy.spooling import KEY, PATH, Relay, every_byte_under, logged, now, request_head, response_bytes
from tests.pulse import Pulse

CALLS = 20_000
MANY = 2 * REMEMBERED + 1000  # more than all together may remember


class Talk:
    """Calls as the relay spools them: it masks what it learns from heads."""

    def __init__(self, spool: Spool) -> None:
        self.relay = Relay(spool)
        self.credentials = Credentials(spool.credential)

    def begin(self) -> tuple[int, Masker]:
        masker, relay = Masker(self.credentials), self.relay
        relay.number += 1
        relay.ids[relay.number] = call = f"01a1df00-0000-7000-8000-{relay.number:012x}"
        head, masks = masker.head(request_head(PATH, b"x-api-key: " + KEY))
        frame = RequestHeadFrame(
            relay.number, now(), call, 1, "anthropic", "api.anthropic.com", PATH, head, masks
        )  # fmt: skip
        relay.put(frame)
        relay.put(RequestEnd(relay.number, now()))
        return relay.number, masker

    def end(self, number: int, masker: Masker, cookie: bytes, body: bytes) -> None:
        self.answer(number, masker, cookie, body)
        self.relay.put(CallEnd(number, now()))

    def answer(self, number: int, masker: Masker, cookie: bytes, body: bytes) -> None:
        head, masks = masker.head(b"HTTP/1.1 200 OK\r\nSet-Cookie: id=" + cookie + b"\r\n\r\n")
        self.relay.put(ResponseHead(number, now(), head, masks))
        data, masks = masker.data(body)
        self.relay.put(ResponseData(number, now(), data, masked=masks))


def cookie_of(number: int) -> bytes:
    return b"c00kie%06dQZcookieQZcookie" % number


def body_of(number: int) -> bytes:
    return b'{"you":"%b","cookie":"%b"}' % (KEY, cookie_of(number))


@pytest.mark.timeout(300)
@pytest.mark.parametrize("calls", [MANY, pytest.param(CALLS, marks=pytest.mark.long)])
def test_thousands_of_cookies_are_masked_with_bounded_memory(tmp_path: Path, calls: int) -> None:
    log_dir, home = tmp_path / "logs", tmp_path / "home"
    recorder = Recorder(log_dir, home)
    spool = Spool(spool_folder(log_dir), send_credential=recorder.send)
    talk = Talk(spool)
    first, kept = talk.begin()
    for _ in range(calls):
        number, masker = talk.begin()
        talk.end(number, masker, cookie_of(number), body_of(number))
        if number % 100 == 0:
            while spool.status().waiting_bytes > 8 << 20:
                time.sleep(0.01)
    talk.end(first, kept, cookie_of(first), body_of(first))
    assert len(spool._credentials._numbers) <= REMEMBERED
    assert sum(map(len, recorder._credentials.values())) <= 2 * REMEMBERED
    assert len(talk.credentials._in_lines) <= REMEMBERED
    assert spool.close(30)
    assert recorder.stop(120)
    assert spool.status().dropped_frames == 0

    for path, data in every_byte_under(log_dir):
        assert b"QZcookie" not in data, path
        assert KEY not in data, path
    found, key = logged(log_dir), install_key(home)
    ids = talk.relay.ids
    assert len(found.responses) == calls + 1
    for number in range(first + 1, calls + 2):
        response = found.response(ids[number])
        assert response.body_hmac == "v1:" + hmac.digest(key, body_of(number), "sha256").hex()
        assert found.request(ids[number]).headers["x-api-key"] == "sk-ant-...wxyz"
    last = found.response(ids[first])
    assert b"redacted" in response_bytes(last)
    assert last.complete


def test_a_credential_that_arrives_too_late_stays_redacted(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """The redaction of that call does not know it."""
    monkeypatch.setattr(pipe_module, "CREDENTIAL_SECONDS", 0.05)
    tells: list[CredentialFrame] = []
    spool = Spool(spool_folder(tmp_path / "logs"), send_credential=tells.append)
    talk = Talk(spool)
    number, masker = talk.begin()
    ours, theirs = os.pipe()
    child = RecorderChild(tmp_path / "logs", tmp_path / "home", pipe=ours)
    running = threading.Thread(target=child.run)
    running.start()
    try:
        talk.answer(number, masker, cookie_of(number), body_of(number) + KEY)
        wait_until(lambda: not child.pipe._relays[spool.relay].may_arrive(tells[-1].index))  # it was given up
        for credential in tells:
            os.write(theirs, message(credential))
        data, masks = masker.data(body_of(number))
        talk.relay.put(ResponseData(number, now(), data, masked=masks))
        talk.relay.put(CallEnd(number, now()))
        spool.close()
    finally:
        os.close(theirs)
        running.join(30)
        os.close(ours)
    for path, data in every_byte_under(tmp_path / "logs"):
        assert b"QZcookie" not in data and KEY not in data, path
    response = logged(tmp_path / "logs").response(talk.relay.ids[number])
    assert response_bytes(response).count(b"[redacted]") == 5
    assert response.body_hmac is None


def test_a_token_is_redacted_before_the_frames_of_its_own_call_arrive(tmp_path: Path) -> None:
    """The relay that saw it is slow to write them; another relay has the call that quotes it."""
    token = b"t0ken" + b"7Kq" * 12
    tells: list[CredentialFrame] = []
    folder = spool_folder(tmp_path / "logs")
    slow, quick = (Spool(folder, send_credential=tells.append) for _ in range(2))
    Masker(Credentials(slow.credential)).head(request_head(PATH, b"Authorization: Bearer " + token))
    ours, theirs = os.pipe()
    running = threading.Thread(target=RecorderChild(tmp_path / "logs", tmp_path / "home", pipe=ours).run)
    running.start()
    try:
        talk = Talk(quick)
        number, masker = talk.begin()
        for credential in tells:
            os.write(theirs, message(credential))
        talk.end(number, masker, cookie_of(number), b'{"history":"my token was %b"}' % token)
        wait_until(lambda: logged(tmp_path / "logs").responses)
    finally:
        slow.close()
        quick.close()
        os.close(theirs)
        running.join(30)
        os.close(ours)
    response = logged(tmp_path / "logs").response(talk.relay.ids[number])
    assert b"my token was" in response_bytes(response)
    for path, data in every_byte_under(tmp_path / "logs"):
        assert token not in data, path


def told(pipe: int, *indexes: int) -> None:
    for index in indexes:
        os.write(pipe, message(CredentialFrame("ab", index, b"%d" % index)))


@pytest.mark.alone
def test_the_recorder_drops_credentials_far_behind_the_current_frame(tmp_path: Path) -> None:
    ours, theirs = os.pipe()
    pipe, follower = Pipe(ours), SpoolFollower(tmp_path, "ab", SegmentStart())
    for index in range(CALLS):
        told(theirs, index)
        if index % 500 == 0:
            pipe.drain()
    pipe.drain()
    assert len(pipe.values(follower, [])) == CALLS, "no frame has named them yet"
    for index in range(CALLS):
        assert pipe.values(follower, [Mask(0, 1, index)])[index] == b"%d" % index
    with Pulse() as pulse:
        start = pulse.now()
        values = pipe.values(follower, [Mask(0, 1, 0)])
        assert pulse.now() - start < 0.1, "it waits for what will not come"
    assert 0 not in values
    assert len(values) <= 2 * REMEMBERED + 1
    os.close(theirs)
    os.close(ours)


def test_a_credential_in_use_is_sent_again_to_the_recorder(tmp_path: Path) -> None:
    tells: list[CredentialFrame] = []
    spool = Spool(tmp_path, send_credential=tells.append)
    for number in range(CALLS):
        index = spool.credential(KEY)
        newest = spool.credential(b"%d" % number)
        assert newest - index <= REMEMBERED // 2 + 1
    spool.close()
    assert [it.index for it in tells] == list(range(len(tells)))
    assert 5 < sum(it.value == KEY for it in tells) < 20


def test_many_cookies_do_not_expire_the_index_of_another_credential(tmp_path: Path) -> None:
    """A line that is remembered has indexes of its own; they must not become too old."""
    tells: list[CredentialFrame] = []
    spool = Spool(tmp_path, send_credential=tells.append)
    credentials = Credentials(spool.credential)
    line = b"x-api-key: " + KEY
    for number in range(500):
        cookies = b"; ".join(b"n%d=%b%d" % (part, cookie_of(number), part) for part in range(40))
        _, masks = Masker(credentials).head(request_head(PATH, line, b"Cookie: " + cookies))
        assert tells[-1].index - min(mask.credential for mask in masks) < REMEMBERED
    spool.close()
