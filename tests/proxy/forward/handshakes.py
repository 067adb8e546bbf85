"""TLS handshakes in memory, between a server and Python's client."""

import contextlib
import ssl
from collections.abc import Iterable

_NO_CHECK_TIME = 0x200000  # OpenSSL's X509_V_FLAG_NO_CHECK_TIME


def client_context(certificates: Iterable[bytes], *, at_any_time: bool = False) -> ssl.SSLContext:
    """A client that trusts these certificates alone, and verifies as strictly as Python 3.13 does."""
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_CLIENT)
    context.load_verify_locations(cadata=b"".join(certificates).decode())
    context.verify_flags |= ssl.VERIFY_X509_STRICT | ssl.VERIFY_X509_PARTIAL_CHAIN
    if at_any_time:
        context.verify_flags |= ssl.VerifyFlags(_NO_CHECK_TIME)
    return context


def shake_hands(server: ssl.SSLContext, client: ssl.SSLContext, host: str) -> ssl.SSLObject:
    """Return the client's side of a connection. Raises `ssl.SSLError`."""
    to_server, to_client = ssl.MemoryBIO(), ssl.MemoryBIO()
    sides = [
        client.wrap_bio(to_client, to_server, server_hostname=host),
        server.wrap_bio(to_server, to_client, server_side=True),
    ]
    for _ in range(4):
        for side in sides:
            with contextlib.suppress(ssl.SSLWantReadError):
                side.do_handshake()
    return sides[0]
