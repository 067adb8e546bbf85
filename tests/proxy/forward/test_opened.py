"""What a tunnel that is opened means: which bytes are HTTP, and whose API a request is for."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from agent_logger.proxy.forward.opened import HostPort, begins_http, provider_of

REQUESTS = [
    b"GET / HTTP/1.1\r\n",
    b"POST /v1/messages?beta=true HTTP/1.1\r\nHost: x\r\n\r\n",
    b"M-SEARCH * HTTP/1.0\r\n",
]
OTHERS = [
    b"\x16\x03\x01\x02\x00",
    b"SSH-2.0-OpenSSH_9.6\r\n",
    b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n",
    b"GET /\r\n",
    b"GET / HTTP/1.1\n",
    b"220 mail.example.com ESMTP\r\n",
    b"\x00\x00\x00\x08",
    b"GET  / HTTP/1.1\r\n",
]


@pytest.mark.parametrize("data", REQUESTS)
def test_a_request_is_known_by_its_first_line(data: bytes) -> None:
    end = data.index(b"\n")
    assert {begins_http(data[:at]) for at in range(end + 1)} == {None}
    assert begins_http(data) is True


@pytest.mark.parametrize("data", OTHERS)
def test_other_protocols_are_no_request(data: bytes) -> None:
    assert begins_http(data) is False


def test_a_line_without_an_end_is_no_request() -> None:
    assert begins_http(b"GET /" + b"a" * 20_000) is False


@given(st.binary(min_size=1, max_size=60), st.integers(1, 60))
def test_more_bytes_never_change_what_was_decided(data: bytes, at: int) -> None:
    early = begins_http(data[:at])
    assert early is None or begins_http(data) is early


@pytest.mark.parametrize(
    ("host", "path", "provider"),
    [
        ("api.anthropic.com", "/v1/messages", "anthropic"),
        ("api.anthropic.com", "/api/hello", "anthropic"),
        ("generativelanguage.googleapis.com", "/v1beta/models", "gemini"),
        ("cloudcode-pa.googleapis.com", "/v1internal:streamGenerateContent?alt=sse", "gemini"),
        ("chatgpt.com", "/backend-api/codex/responses", "openai"),
        ("openrouter.ai", "/api/v1/messages", "anthropic"),
        ("llm.example.com", "/v1/chat/completions", "openai"),
        ("notanthropic.com", "/", "openai"),
    ],
)
def test_the_provider_follows_from_the_path_or_the_host(host: str, path: str, provider: str) -> None:
    assert provider_of(host, path) == provider


def test_an_ipv6_host_has_brackets_in_a_name() -> None:
    assert HostPort("::1", 443).name(443) == "[::1]"
    assert HostPort("::1", 8080).name(443) == "[::1]:8080"
