"""What real clients make of our certificates: they accept those for recorded hosts, and refuse all others that a thief
of the key could make."""

import os
import ssl
import subprocess
import sys
import time
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from ipaddress import ip_address
from pathlib import Path

import pytest
from cryptography import x509
from cryptography.hazmat.primitives.hashes import SHA256

from agent_logger.proxy.forward import issuing
from agent_logger.proxy.forward.certificates import Authority
from agent_logger.proxy.forward.hosts import RecordedHosts
from agent_logger.proxy.forward.issuing import Validity, key_pem, pem_of
from tests.clients import ROOT, find_opencode
from tests.proxy.forward.tls_sites import tls_proxy

RECORDED = ["api.openai.com", "a.b.wild.example.com", "xn--bcher-kva.example"]
HOSTS = RecordedHosts.parse(["api.openai.com", "*.wild.example.com", "bücher.example"])
# Hosts that the key of the CA has signed for, although its certificate does not permit them.
FORGED = ["bank.example", "openai.com", "xapi.openai.com", "127.0.0.1"]


@dataclass(frozen=True)
class Verifier:
    """A client. `command`: gets a host and the port of its server; it exits with 0 if it accepts the certificate, and
    prints one of `refusals` if it does not."""

    command: Callable[[str, int], list[str]]
    refusals: tuple[str, ...]
    # The variable that names the certificates to trust.
    variable: str = "SSL_CERT_FILE"
    said: str = ""
    # What it prints for an accepted certificate, if it fails for another reason.
    accepted: str = ""
    more: Mapping[str, str] | None = None


FETCH = """
const host = process.argv.at(-1);
fetch(`https://${host}/`).then(answer => answer.text()).then(text => console.log(text)).catch(error => {
  console.log(error.code, error.cause?.code, error.cause?.message);
  process.exit(1);
});
"""
CONNECT = """
const [host, port] = process.argv.slice(-2), tls = require("node:tls");
const named = /^[0-9.]+$/.test(host) ? {} : {servername: host};
const check = {checkServerIdentity: (_, certificate) => tls.checkServerIdentity(host, certificate)};
const socket = tls.connect({host: "127.0.0.1", port: Number(port), ...named, ...check}, () => socket.end());
socket.on("error", error => { console.log(error.message); process.exit(1); });
"""
PYTHON = """
import socket, ssl, sys
context = ssl.create_default_context()
context.verify_flags |= ssl.VERIFY_X509_STRICT
context.wrap_socket(socket.create_connection(("127.0.0.1", int(sys.argv[2]))), server_hostname=sys.argv[1])
"""
SUBTREES = ("permitted subtree violation", "excluded subtree violation")

VERIFIERS = {
    "python": Verifier(lambda host, port: [sys.executable, "-c", PYTHON, host, str(port)], SUBTREES),
    "curl": Verifier(
        lambda host, port: ["curl", "-sSv", f"https://{host}/"],
        SUBTREES,
        variable="CURL_CA_BUNDLE",
    ),
    "node": Verifier(
        lambda host, port: ["node", "-e", CONNECT, host, str(port)],
        SUBTREES,
        variable="NODE_EXTRA_CA_CERTS",
    ),
    # The Bun inside of opencode.
    "opencode": Verifier(
        lambda host, port: [str(find_opencode()), "-e", FETCH, host],
        ("PERMITTED_VIOLATION", "EXCLUDED_VIOLATION", "UNSUPPORTED_CONSTRAINT_TYPE"),
        variable="NODE_EXTRA_CA_CERTS",
        more={"BUN_BE_BUN": "1"},
    ),
    # It uses rustls, as Codex does.
    "uv": Verifier(
        lambda host, port: [
            *(str(ROOT / ".venv/bin/uv"), "pip", "compile", "--quiet", "--no-cache", "--no-config"),
            *("--python", sys.executable, "--index-url", f"https://{host}/simple", "-"),
        ],
        ("NameConstraintViolation",),
        said="package-of-nobody\n",
        accepted="/simple/package-of-nobody",
        more={"UV_HTTP_RETRIES": "0"},
    ),
}


@pytest.fixture(scope="module")
def home(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return tmp_path_factory.mktemp("verifiers")


@pytest.fixture(scope="module")
def proxy(home: Path) -> Iterator[tuple[int, dict[str, int]]]:
    authority = Authority(home, HOSTS)
    sites = {host: authority.server_context(host) for host in RECORDED}
    with tls_proxy(sites | {host: forged(home, authority, host) for host in FORGED}) as ports:
        yield ports


def forged(home: Path, authority: Authority, host: str) -> ssl.SSLContext:
    """A server with a certificate that a thief of the key has made."""
    pair, now, key = authority.pairs().current, int(time.time()), issuing.new_key()
    name = x509.IPAddress(ip_address(host)) if host[0].isdigit() else x509.DNSName(host)
    validity = Validity(now - 3600, now + 3600)
    builder = issuing._builder(issuing._name(None), pair.certificate.certificate.subject, key.public_key(), validity)
    certificate = (
        builder.add_extension(x509.BasicConstraints(ca=False, path_length=None), critical=True)
        .add_extension(issuing._key_usage(signs_certificates=False), critical=True)
        .add_extension(issuing._TLS_SERVERS, critical=False)
        .add_extension(x509.SubjectAlternativeName([name]), critical=False)
        .add_extension(issuing._issued_by(pair.key), critical=False)
        .sign(pair.key, SHA256())
    )
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    path = home / "forged.pem"
    path.write_bytes(pem_of(certificate) + key_pem(key))
    context.load_cert_chain(path)
    return context


def run(verifier: Verifier, home: Path, host: str, proxy: tuple[int, dict[str, int]]) -> tuple[int, str]:
    port, ports = proxy
    environment = {
        "PATH": os.environ["PATH"],
        "HOME": str(home),
        "HTTPS_PROXY": f"http://127.0.0.1:{port}",
        "https_proxy": f"http://127.0.0.1:{port}",
        verifier.variable: str(home / "ca" / "ca.pem"),
        **(verifier.more or {}),
    }
    done = subprocess.run(
        verifier.command(host, ports[host]),
        env=environment,
        cwd=home,
        input=verifier.said,
        capture_output=True,
        text=True,
        timeout=100,
        check=False,
    )
    return done.returncode, done.stdout + done.stderr


def cases(hosts: list[str]) -> list[object]:
    needs = {name: () if name == "python" else pytest.mark.needs(name) for name in VERIFIERS}
    return [pytest.param(name, host, marks=needs[name], id=f"{name}, {host}") for name in VERIFIERS for host in hosts]


@pytest.mark.parametrize(("name", "host"), cases(RECORDED))
def test_a_real_client_accepts_a_recorded_host(
    home: Path, proxy: tuple[int, dict[str, int]], name: str, host: str
) -> None:
    verifier = VERIFIERS[name]
    code, printed = run(verifier, home, host, proxy)
    assert code == 0 or (verifier.accepted and verifier.accepted in printed), printed
    assert not any(refusal in printed for refusal in verifier.refusals), printed


@pytest.mark.parametrize(("name", "host"), cases(FORGED))
def test_a_real_client_refuses_what_a_stolen_key_has_signed_for_another_host(
    home: Path, proxy: tuple[int, dict[str, int]], name: str, host: str
) -> None:
    verifier = VERIFIERS[name]
    code, printed = run(verifier, home, host, proxy)
    assert code != 0
    assert any(refusal in printed for refusal in verifier.refusals), printed
