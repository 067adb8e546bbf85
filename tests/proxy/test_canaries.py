"""Canaries: credentials of no known form, each in one place; then every file of home and log folder is searched.

Raw, in base64, percent-encoded, inside what is compressed and inside every cell of a database.
"""

import base64
import contextlib
import gzip
import hashlib
import json
import os
import sqlite3
import subprocess
import sys
import zlib
from collections.abc import Iterator, Mapping
from pathlib import Path
from urllib.parse import quote

import pytest

from agent_logger.files.sealed import zstd
from tests.commands import run_command
from tests.proxy.process import Process, proxying
from tests.proxy.spooling import every_byte_under
from tests.proxy.wires import Upstream, Wire, response

HIDDEN = [
    *(
        "Authorization",
        "Proxy-Authorization",
        "X-Api-Key",
        "Api-Key",
        "X-Goog-Api-Key",
        "X-Amz-Security-Token",
    ),
    *("X-Portkey-Api-Key", "X-Portkey-Virtual-Key", "Ocp-Apim-Subscription-Key", "CF-Access-Client-Secret"),
    *("Cf-Access-Jwt-Assertion", "cf-aig-authorization", "Helicone-Auth", "X-Auth-Token", "X-Access-Token"),
    *(
        "X-LiteLLM-Api-Key",
        "X-Functions-Key",
        "Private-Token",
        "X-GitHub-Token",
        "X-Vault-Token",
        "X-Auth-Key",
    ),
    *("X-Client-Secret", "X-Password", "X-Credential", "X-Signature", "X-Hub-Signature-256", "X-CSRF-Token"),
    *(
        "X-Session-Token",
        "apikey",
        "X-ApiKey",
        "X-Goog-IAM-Authorization-Token",
        "X-MS-Token-AAD-Access-Token",
    ),
]
READABLE = [
    *("X-Request-Id", "Idempotency-Key", "Sec-WebSocket-Key", "X-Cache-Key", "Surrogate-Key"),
    *(
        "anthropic-ratelimit-input-tokens-remaining",
        "anthropic-ratelimit-tokens-limit",
        "x-ratelimit-reset-tokens",
    ),
    *("X-RateLimit-Remaining-Tokens", "WWW-Authenticate", "Access-Control-Allow-Headers", "X-Author"),
]


def canary(place: str, length: int = 22) -> str:
    """No other has a piece of it, and no pattern knows it."""
    digest = base64.b64encode(hashlib.sha512(place.encode()).digest()).decode()
    return "z" + "".join(it for it in digest if it.isalnum())[: length - 2] + "7"


def forms(secret: str) -> list[bytes]:
    """As it is; within base64 at any of three places; with every character percent-encoded."""
    data = secret.encode()
    encoded = [base64.b64encode(bytes(shift) + data)[8:-8] for shift in range(3)] if len(data) >= 16 else []
    return [
        data,
        *encoded,
        "".join(f"%{byte:02X}" for byte in data).encode(),
        quote(secret, safe="").encode(),
    ]


def searched(folder: Path) -> Iterator[tuple[str, bytes]]:
    """Each file, what it holds when it is unpacked, and the cells of databases."""
    for path, data in every_byte_under(folder):
        yield path.name, data
        if b"\x28\xb5\x2f\xfd" in data:
            yield f"{path.name} (zstd)", b"".join(_frames(data))
        if data.startswith(b"\x1f\x8b"):
            yield f"{path.name} (gzip)", gzip.decompress(data)
        if data.startswith(b"SQLite format 3\0"):
            yield from ((f"{path.name} ({table})", cell) for table, cell in _cells(path))


def _frames(data: bytes) -> Iterator[bytes]:
    at = data.find(b"\x28\xb5\x2f\xfd")
    while at >= 0:
        with contextlib.suppress(zstd.ZstdError):
            yield zstd.ZstdDecompressor().decompress(data[at:])
        at = data.find(b"\x28\xb5\x2f\xfd", at + 4)


def _cells(path: Path) -> Iterator[tuple[str, bytes]]:
    with contextlib.closing(sqlite3.connect(f"file:{path}?mode=ro", uri=True)) as database:
        tables = [name for (name,) in database.execute("select name from sqlite_schema where type = 'table'")]
        for table in tables:
            with contextlib.suppress(sqlite3.DatabaseError):  # a virtual one whose shadows are read anyway
                for row in database.execute(f'select * from "{table}"'):
                    for cell in row:
                        data = cell if isinstance(cell, bytes) else str(cell).encode()
                        yield table, data
                        if data.startswith(b"\x28\xb5\x2f\xfd"):
                            yield table, b"".join(_frames(data))
                        with contextlib.suppress(zlib.error):
                            yield table, zlib.decompress(data)


def left(folder: Path, canaries: Mapping[str, str]) -> set[tuple[str, str]]:
    spelled = {place: forms(secret) for place, secret in canaries.items()}
    return {
        (place, name)
        for name, data in searched(folder)
        for place, them in spelled.items()
        if any(form in data for form in them)
    }


def test_the_canary_search_finds_encoded_and_compressed_secrets(tmp_path: Path) -> None:
    secret = canary("packed")
    (tmp_path / "a").write_bytes(b"x" + zstd.compress(secret.encode() * 9))
    (tmp_path / "b").write_bytes(base64.b64encode(b"ab" + secret.encode() + b"c"))
    (tmp_path / "c").write_text("".join(f"%{byte:02X}" for byte in secret.encode()))
    with contextlib.closing(sqlite3.connect(tmp_path / "d")) as database:
        database.execute("create table t (x)")
        database.execute("insert into t values (?)", [zstd.compress(secret.encode() * 9)])
        database.commit()
    assert {name[0] for _, name in left(tmp_path, {"packed": secret})} == {"a", "b", "c", "d"}


def echo(wire: Wire) -> None:
    """Answers with all that it was sent, in a header, in a body, and a few bytes at a time."""
    with contextlib.suppress(OSError, EOFError):
        while True:
            head = wire.head()
            body = wire.body(head)
            said = b"".join(line.partition(b":")[2].strip() + b"\n" for line in head.split(b"\r\n")[1:])
            told = json.dumps({"you sent": (said + body).decode("latin-1")}).encode()
            back = b"".join(line + b"\r\n" for line in head.split(b"\r\n") if line.startswith(b"X-Back-"))
            if b"way=stream" in head:
                wire.send(b"HTTP/1.1 200 OK\r\nContent-Type: text/event-stream\r\nTransfer-Encoding: chunked\r\n\r\n")
                for at in range(0, len(told), 11):
                    piece = told[at : at + 11]
                    wire.send(b"%x\r\n%b\r\n" % (len(piece), piece))
                wire.send(b"0\r\n\r\n")
            elif b"way=gzip" in head:
                wire.send(response(gzip.compress(told), headers=b"Content-Encoding: gzip\r\n" + back))
            else:
                wire.send(response(told, b"401 Unauthorized", back))


def say(proxy: Process, *lines: bytes, body: bytes = b"", query: str = "") -> None:
    headers = b"".join(line + b"\r\n" for line in lines)
    with proxy.client() as client:
        for way in ("plain", "stream", "gzip"):
            client.send(proxy.request(f"/v1/messages?way={way}{query}", body, headers=headers))
            assert client.message().startswith(b"HTTP/1.1 ")


def read_all(folder: Path, environment: dict[str, str]) -> None:
    """What is derived: the catalog, exports, views. Their output is kept, to be searched as well."""
    for name, line in {
        "ls": ["ls", "--json"],
        "usage": ["usage", "--json"],
        "search": ["search", "sent"],
        "verify": ["verify"],
    }.items():
        _keep_output(folder / f"output-{name}", line, environment)
    logs = [it for it in folder.glob("**/*.jsonl") if not any(name.startswith(".") for name in it.parts)]
    for number, log in enumerate(sorted(logs)):
        for form in ("json", "md", "html", "wire"):
            _keep_output(folder / f"output-{number}-{form}", ["export", str(log), "--to", form], environment)


def _keep_output(path: Path, arguments: list[str], environment: dict[str, str]) -> None:
    done = run_command(arguments, environment, folder=path.parent)
    path.write_text(done.stdout + done.stderr)


@pytest.mark.timeout(300)
def test_credential_headers_are_not_written_and_other_headers_are(tmp_path: Path) -> None:
    hidden = {name: canary(name, 14 + 4 * (at % 4)) for at, name in enumerate(HIDDEN)}
    back = {f"X-Back-{name}": canary(f"back {name}") for name in HIDDEN}
    readable = {name: canary(name) for name in READABLE}
    with Upstream(echo) as upstream, proxying(tmp_path, upstream) as proxy:
        for names in (HIDDEN[:16], HIDDEN[16:]):
            lines = [f"{name}: {hidden[name]}" for name in names]
            lines += [f"X-Back-{name}: {back[f'X-Back-{name}']}" for name in names]
            say(proxy, *(line.encode() for line in lines), body=b'{"model":"m","messages":[]}')
        say(proxy, *(f"{name}: {value}".encode() for name, value in readable.items()))
        say(
            proxy,
            query="".join(f"&{name}={canary(name)}" for name in QUERY),
        )
        assert proxy.stop() == 0
        got = b"".join(wire.read for wire in upstream.wires)
        read_all(tmp_path, {"PATH": os.environ["PATH"], "HOME": str(tmp_path / "home")})
        logs = b"".join(data for path, data in every_byte_under(proxy.log_dir))
    assert not [name for name, value in hidden.items() if got.count(value.encode()) < 3 and "Proxy-" not in name]
    assert left(tmp_path, hidden | back | {name: canary(name) for name in QUERY}) == set()
    assert [name for name, value in readable.items() if value.encode() not in logs] == []


QUERY = ["key", "api_key", "access_token", "subscription-key", "sig", "client_secret"]


@pytest.mark.timeout(300)
@pytest.mark.parametrize("workers", ["1", "2"])
def test_a_replaced_token_is_redacted_in_later_requests(tmp_path: Path, workers: str) -> None:
    tokens = [canary(f"token {number}", 40) for number in range(5)]
    with Upstream(echo) as upstream, proxying(tmp_path, upstream, "--workers", workers) as proxy:
        for number, token in enumerate(tokens):
            history = [{"role": "user", "content": f"my token was {it}"} for it in tokens[: number + 1]]
            body = json.dumps({"model": "m", "messages": history}).encode()
            lines = [f"Authorization: Bearer {token}".encode(), b"X-Claude-Code-Session-Id: one-session"]
            say(proxy, *lines, body=body)
            say(proxy, *lines, b"Content-Encoding: gzip", body=gzip.compress(body))
        assert proxy.stop() == 0
        read_all(tmp_path, {"PATH": os.environ["PATH"], "HOME": str(tmp_path / "home")})
    assert b"my token was" in b"".join(it.read_bytes() for it in tmp_path.glob("output-*-wire"))
    assert left(tmp_path, {token: token for token in tokens}) == set()


@pytest.mark.parametrize("secret", ["hunter2", "123456", "98765432109876543210", "swordfish", "p4ss!w0rd"])
def test_an_echoed_short_credential_is_not_written(tmp_path: Path, secret: str) -> None:
    with Upstream(echo) as upstream, proxying(tmp_path, upstream) as proxy:
        say(proxy, b"x-api-key: " + secret.encode(), body=b'{"key":"%b","n":[%b]}' % (secret.encode(), b"1"))
        assert proxy.stop() == 0
    alone = [name for name, data in searched(proxy.log_dir) if secret.encode() in data]
    assert alone == []


ARGUMENTS = {
    "option": ["--api-key", "{}"],
    "option with =": ["--token={}"],
    "header": ["-H", "X-Portkey-Api-Key: {}"],
    "scheme": ["--header=Authorization: Bearer {}"],
    "setting": ["-c", 'providers.x.api_key="{}"'],
    "variable": ["EXTRA_SECRET={}"],
    "JSON": ["--settings", '{{"env":{{"OPENAI_API_KEY":"{}"}}}}'],
}
VARIABLES = ["OPENAI_API_KEY", "DB_PASSWORD", "MY_SERVICE_TOKEN", "AWS_SECRET_ACCESS_KEY"]
AGENT = """
import json, os, sys

DOORS = ("base-url", "forward")
print("my arguments are", *sys.argv[1:])
print(json.dumps({"type": "text", "environment": {name: os.environ[name] for name in sorted(os.environ)}}))
print("on stderr:", *sys.argv[1:], *os.environ.values(), file=sys.stderr)
"""


def test_credentials_in_arguments_or_environment_of_a_run_are_not_written(tmp_path: Path) -> None:
    given = {place: canary(f"argument {place}", 14 + 2 * (at % 5)) for at, place in enumerate(ARGUMENTS)}
    given |= {name: canary(name) for name in VARIABLES} | {"six digits": "481516"}
    words = [word.format(given[place]) for place, them in ARGUMENTS.items() for word in them]
    environment = {
        "PATH": os.environ["PATH"],
        "HOME": str(tmp_path / "home"),
        "LANG": "C.UTF-8",
        "PIN_PASSWORD": given["six digits"],
        **{name: given[name] for name in VARIABLES},
    }
    (tmp_path / "work").mkdir()
    agent = [sys.executable, "-c", AGENT, *words]
    line = [sys.executable, "-m", "agent_logger", "run", "--", *agent]
    done = subprocess.run(line, env=environment, cwd=tmp_path / "work", capture_output=True)
    assert done.returncode == 0
    assert not [place for place, secret in given.items() if secret.encode() not in done.stdout]
    read_all(tmp_path / "work", environment)
    sessions = tmp_path / "home/.agent-logger/sessions"
    recorded = b"".join(data for path, data in every_byte_under(sessions) if path.suffix == ".jsonl")
    assert b"my arguments are" in recorded
    assert recorded.count(b"[redacted]") > 2 * len(ARGUMENTS)
    assert left(tmp_path, given) == set()


def test_hook_inputs_are_stored_without_environment_credentials(
    tmp_path: Path,
) -> None:
    secret = canary("hook")
    told = {"session_id": "s", "hook_event_name": "PostToolUse", "tool_response": f"OPENAI_API_KEY={secret}"}
    environment = {"PATH": os.environ["PATH"], "HOME": str(tmp_path), "OPENAI_API_KEY": secret}
    line = [sys.executable, "-m", "agent_logger", "hook"]
    done = subprocess.run(line, env=environment, input=json.dumps(told).encode(), capture_output=True)
    assert (done.returncode, done.stdout) == (0, b"")
    assert any(b"PostToolUse" in data for _, data in every_byte_under(tmp_path))
    assert left(tmp_path, {"hook": secret}) == set()
