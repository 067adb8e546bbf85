"""Who may look at the page: the browser that was let in, and no web page in it."""

import re
import signal
import socket
import time
from collections.abc import Iterator
from pathlib import Path

import pytest

from agent_logger.web.auth import HEADERS
from agent_logger.web.site import STATIC
from agent_logger.web.tokens import LINK_SECONDS, PageTokens
from tests.ports import free_port
from tests.web.page_process import Page, showing

ROUTES = [
    "/",
    "/open?token=x",
    "/sessions",
    "/search?q=x",
    f"{STATIC}/page.css",
    f"{STATIC}/../app.py",
    "/no-such-page",
]


@pytest.fixture(scope="module")
def page(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Page]:
    with showing(tmp_path_factory.mktemp("home")) as page:
        yield page


@pytest.fixture(scope="module")
def cookie(page: Page) -> str:
    return page.cookie()


FOREIGN = {
    "another name": {"host": "evil.example:{port}"},
    "a name that ends like ours": {"host": "127.0.0.1.evil.example:{port}"},
    "another port": {"host": "127.0.0.1:1"},
    "no port": {"host": "127.0.0.1"},
    "every address": {"host": "0.0.0.0:{port}"},
    "a user": {"host": "a@127.0.0.1:{port}"},
    "a foreign origin": {"origin": "http://evil.example"},
    "a foreign port": {"origin": "http://127.0.0.1:1"},
    "the origin of a file": {"origin": "null"},
    "our origin over https": {"origin": "https://127.0.0.1:{port}"},
    "a fetch from another site": {"sec_fetch_site": "cross-site"},
    "a fetch from another port": {"sec_fetch_site": "same-site"},
}


@pytest.mark.parametrize("route", ROUTES)
@pytest.mark.parametrize("foreign", FOREIGN.values(), ids=FOREIGN)
def test_requests_from_other_origins_and_hosts_are_refused(
    page: Page, cookie: str, route: str, foreign: dict[str, str]
) -> None:
    headers = {name: value.format(port=page.port) for name, value in foreign.items()}
    answer = page.ask(route, cookie=cookie, **headers)
    assert answer.status in (403, 421)
    assert "set-cookie" not in answer.headers
    assert "access-control-allow-origin" not in answer.headers


@pytest.mark.parametrize("host", ["127.0.0.1", "localhost", "LOCALHOST", "[::1]"])
def test_every_loopback_host_name_is_accepted(page: Page, cookie: str, host: str) -> None:
    assert page.ask("/", cookie=cookie, host=f"{host}:{page.port}").status == 200


@pytest.mark.parametrize("route", ["/", "/sessions", "/search?q=x", "/no-such-page", "/api/v1/sessions"])
def test_without_a_valid_cookie_every_route_returns_status_401(page: Page, route: str) -> None:
    name = f"agent_logger_{page.port}"
    for cookie in ("", "x=y", f"{name}=", f"{name}=1.2.3", f"{name}=9999999999.x.{'0' * 64}"):
        answer = page.ask(route, cookie=cookie)
        assert answer.status == 401
        assert "agent-logger view" in answer.text


def test_a_second_view_command_prints_a_link_to_the_running_page(page: Page) -> None:
    said = page.second_view()
    assert said.startswith("The page is already running.\n")
    (link,) = re.findall(rf"{page.url}(/open\?token=\S+)", said)
    assert page.ask(link).status == 303


def test_a_link_works_once(page: Page) -> None:
    path = page.link().removeprefix(page.url)
    first, second = page.ask(path), page.ask(path)
    assert (first.status, first.headers["location"]) == (303, "/")
    assert "HttpOnly" in first.headers["set-cookie"]
    assert "SameSite=strict" in first.headers["set-cookie"]
    assert (second.status, "set-cookie" in second.headers) == (401, False)


def test_link_tokens_and_cookies_are_not_interchangeable() -> None:
    tokens = PageTokens(b"k" * 32, 8081, "run")
    token = tokens.link().partition("token=")[2]
    assert not tokens.admits(token)
    cookie = tokens.redeem(token)
    assert cookie is not None
    assert tokens.admits(cookie)
    assert tokens.redeem(cookie) is None


def test_link_tokens_are_bound_to_key_port_and_run_and_expire() -> None:
    now = 1000.0
    tokens = PageTokens(b"k" * 32, 8081, "run", lambda: now)
    token = tokens.link().partition("token=")[2]
    assert PageTokens(b"x" * 32, 8081, "run", lambda: now).redeem(token) is None
    assert PageTokens(b"k" * 32, 8082, "run", lambda: now).redeem(token) is None
    assert PageTokens(b"k" * 32, 8081, "another run", lambda: now).redeem(token) is None
    later = PageTokens(b"k" * 32, 8081, "run", lambda: now + LINK_SECONDS + 1)
    assert later.redeem(token) is None
    assert PageTokens(b"k" * 32, 8081, "run", lambda: now + 1).redeem(token)


@pytest.mark.parametrize("token", ["", ".", "..", "a.b.c", "9" * 400 + ".x.y", "é.ü.ö", "\0"])
def test_an_invalid_token_is_rejected(token: str) -> None:
    tokens = PageTokens(b"k" * 32, 8081, "run")
    assert tokens.redeem(token) is None
    assert not tokens.admits(token)


@pytest.mark.parametrize("route", [*ROUTES, "/api/v1/sessions"])
def test_every_response_has_the_security_headers(page: Page, cookie: str, route: str) -> None:
    for answer in (page.ask(route), page.ask(route, cookie=cookie), page.ask(route, host="evil.example")):
        for name, value in HEADERS.items():
            assert answer.headers[name.lower()] == value
        assert "unsafe" not in answer.headers["content-security-policy"]
        assert answer.headers["cache-control"].startswith(("no-store", "public, max-age"))
        assert "server" not in answer.headers


@pytest.mark.parametrize("method", ["POST", "PUT", "DELETE", "PATCH", "OPTIONS", "CONNECT", "TRACE"])
def test_a_state_changing_request_needs_more_than_a_cookie(page: Page, cookie: str, method: str) -> None:
    for headers in ({}, {"origin": page.url}, {"x_agent_logger": "1"}):
        assert page.ask("/demo", method=method, cookie=cookie, **headers).status == 403


def test_a_request_with_two_host_headers_is_rejected(page: Page, cookie: str) -> None:
    with socket.create_connection(("127.0.0.1", page.port)) as sock:
        host = f"Host: 127.0.0.1:{page.port}\r\n"
        sock.sendall(f"GET / HTTP/1.1\r\n{host}{host}Cookie: {cookie}\r\nConnection: close\r\n\r\n".encode())
        assert sock.recv(4096).split()[1] in (b"400", b"421")


def test_a_websocket_is_refused(page: Page, cookie: str) -> None:
    upgrade = {"connection": "Upgrade", "upgrade": "websocket", "sec_websocket_key": "x" * 24}
    answer = page.ask("/", cookie=cookie, **upgrade, sec_websocket_version="13")
    assert answer.status != 101


def test_a_cookie_survives_a_page_restart_and_old_links_do_not(
    tmp_path: Path,
) -> None:
    port = free_port()
    with showing(tmp_path, "--page-port", str(port)) as page:
        cookie, used, unused = page.cookie(), page.way_in, page.link().removeprefix(page.url)
        assert page.ask(used).status == 303
        assert page.stop() == 0
    with showing(tmp_path, "--page-port", str(port)) as page:
        assert page.ask("/", cookie=cookie).status == 200
        assert [page.ask(link).status for link in (used, unused)] == [401, 401]


def test_ctrl_c_stops_the_page_and_removes_its_state_file(tmp_path: Path) -> None:
    with showing(tmp_path) as page:
        assert list((tmp_path / ".agent-logger").glob("page-*.json"))
        page.process.send_signal(signal.SIGINT)
        began = time.monotonic()
        page.process.communicate(timeout=60)
        assert page.process.returncode == 0
        assert time.monotonic() - began < 20
        assert not list((tmp_path / ".agent-logger").glob("page-*.json"))
