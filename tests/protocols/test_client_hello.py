"""What a TLS client says first, as it is understood before it is answered."""

import ssl

import pytest
from hypothesis import given
from hypothesis import strategies as st

from agent_logger.protocols.client_hello import ClientHello, NotTlsError, begins_tls, read_client_hello


def hello(name: str | None, *protocols: str, versions: tuple[str, str] = ("TLSv1_2", "TLSv1_3")) -> bytes:
    """The first bytes of a real client."""
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_CLIENT)
    context.check_hostname, context.verify_mode = False, ssl.CERT_NONE
    context.minimum_version, context.maximum_version = (ssl.TLSVersion[version] for version in versions)
    if protocols:
        context.set_alpn_protocols(list(protocols))
    outgoing = ssl.MemoryBIO()
    tls = context.wrap_bio(ssl.MemoryBIO(), outgoing, server_hostname=name)
    with pytest.raises(ssl.SSLWantReadError):
        tls.do_handshake()
    return outgoing.read()


def read(data: bytes) -> ClientHello:
    found = read_client_hello(data)
    assert found is not None
    return found


def test_protocols_are_read() -> None:
    both = read(hello("api.example.com", "h2", "http/1.1"))
    assert (both.protocols, both.may_speak_http1) == ((b"h2", b"http/1.1"), True)
    assert not read(hello("api.example.com", "h2")).may_speak_http1
    assert read(hello(None)).may_speak_http1


def test_one_client_has_one_fingerprint_for_all_hosts_and_another_client_another() -> None:
    one = {read(hello(name, "http/1.1")).fingerprint for name in ("a.example", "b.example", None)}
    others = [
        hello("a.example"),
        hello("a.example", "h2", "http/1.1"),
        hello("a.example", "http/1.1", versions=("TLSv1_2", "TLSv1_2")),
        hello("a.example", "http/1.1", versions=("TLSv1_3", "TLSv1_3")),
    ]
    assert len(one) == 1
    assert len(one | {read(other).fingerprint for other in others}) == 1 + len(others)


def test_a_hello_is_incomplete_until_its_last_byte() -> None:
    data = hello("api.example.com", "h2")
    assert {read_client_hello(data[:at]) for at in range(len(data))} == {None}
    assert read(data + b"more") == read(data)


@pytest.mark.parametrize("size", [1, 3, 4, 5, 100])
def test_a_hello_may_be_split_over_records(size: int) -> None:
    data = hello("api.example.com", "h2")
    message = data[5:]
    pieces = [message[at : at + size] for at in range(0, len(message), size)]
    assert read(b"".join(b"\x16\x03\x01" + len(piece).to_bytes(2) + piece for piece in pieces)) == read(data)


@pytest.mark.parametrize(
    "data", [b"\x15\x03\x01\x00\x02\x02\x28", b"\x16\x02\x00\x00\x05", b"\x16\x03\x01\x00\x00", b"GET / HTTP/1.1"]
)
def test_other_bytes_are_no_hello(data: bytes) -> None:
    with pytest.raises(NotTlsError):
        read_client_hello(data)


def test_the_first_two_bytes_tell_tls_from_other_protocols() -> None:
    assert [begins_tls(data) for data in (b"", b"\x16", b"\x16\x03", b"\x16\x03\x01")] == [None, None, True, True]
    assert [begins_tls(data) for data in (b"G", b"\x16\x02", b"\x80\x2e")] == [False, False, False]


@given(st.binary(max_size=300), st.integers(0, 600), st.integers(0, 255))
def test_any_bytes_are_a_hello_an_incomplete_one_or_none(noise: bytes, at: int, byte: int) -> None:
    data = bytearray(hello("api.example.com", "h2"))
    data[at % len(data)] = byte
    for tried in (noise, b"\x16\x03\x01" + noise, bytes(data), bytes(data[: at % len(data)]) + noise):
        try:
            read_client_hello(tried)
        except NotTlsError:
            continue
