"""A CA that is not ours: that of the upstreams."""

import contextlib
import datetime
import socket
import ssl
import tempfile
import threading
from functools import cache
from pathlib import Path

from cryptography import x509
from cryptography.hazmat.primitives import hashes, serialization
from cryptography.hazmat.primitives.asymmetric import ec
from cryptography.x509.oid import NameOID

from tests.proxy.wires import RECORDED, Upstream, Wire, pump

_FOLDERS: list[tempfile.TemporaryDirectory[str]] = []  # removed when the process ends


@cache
def foreign_files() -> tuple[Path, Path]:
    """The certificate of the CA; key and certificate of a server for the recorded hosts."""
    _FOLDERS.append(tempfile.TemporaryDirectory(prefix="agent-logger-test-"))
    folder = Path(_FOLDERS[-1].name)
    root_key, key = ec.generate_private_key(ec.SECP256R1()), ec.generate_private_key(ec.SECP256R1())
    root = x509.Name([x509.NameAttribute(NameOID.COMMON_NAME, "a CA of somebody else")])
    now = datetime.datetime.now(datetime.UTC)

    def signed(
        subject: x509.Name, of: ec.EllipticCurvePrivateKey, *extensions: tuple[x509.ExtensionType, bool]
    ) -> bytes:
        builder = x509.CertificateBuilder().subject_name(subject).issuer_name(root).public_key(of.public_key())
        builder = builder.serial_number(x509.random_serial_number()).not_valid_before(now - datetime.timedelta(1))
        builder = builder.not_valid_after(now + datetime.timedelta(1))
        for extension, is_critical in extensions:
            builder = builder.add_extension(extension, is_critical)
        return builder.sign(root_key, hashes.SHA256()).public_bytes(serialization.Encoding.PEM)

    usage = x509.KeyUsage(*([True] + [False] * 4 + [True, True] + [False] * 2))
    identifier = x509.SubjectKeyIdentifier.from_public_key(root_key.public_key())
    ca = signed(
        root, root_key, (x509.BasicConstraints(ca=True, path_length=None), True), (usage, True), (identifier, False)
    )
    names = x509.SubjectAlternativeName([x509.DNSName(f"*.{RECORDED}"), x509.DNSName("localhost")])
    issued_by = x509.AuthorityKeyIdentifier.from_issuer_public_key(root_key.public_key())
    leaf = signed(x509.Name([]), key, (names, True), (issued_by, False))
    pem = key.private_bytes(serialization.Encoding.PEM, serialization.PrivateFormat.PKCS8, serialization.NoEncryption())
    (folder / "ca.pem").write_bytes(ca)
    (folder / "server.pem").write_bytes(pem + leaf)
    return folder / "ca.pem", folder / "server.pem"


def foreign_server() -> ssl.SSLContext:
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    context.load_cert_chain(foreign_files()[1])
    return context


def internet(port: int) -> Upstream:
    """A proxy for which each host is a server on this port, which need not speak TLS itself."""
    server = foreign_server()

    def play(wire: Wire) -> None:
        wire.head()
        wire.send(b"HTTP/1.1 200 OK\r\n\r\n")
        with (
            contextlib.suppress(OSError),
            server.wrap_socket(wire.sock, server_side=True) as secure,
            socket.create_connection(("127.0.0.1", port)) as there,
        ):
            secure.settimeout(None)
            back = threading.Thread(target=pump, args=(there, secure))
            back.start()
            pump(secure, there)
            back.join()

    return Upstream(play)
