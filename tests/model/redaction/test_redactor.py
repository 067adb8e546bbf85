"""No secret passes the door, and nothing else is held back there.

Keys are put together at run time, so that nothing in this file looks like one.
"""

import base64
import gc
import hashlib
import json
import random
import re
import string
import time
import uuid
from collections.abc import Callable
from itertools import pairwise, takewhile
from typing import Any, NamedTuple
from urllib.parse import quote, quote_plus

import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st

from agent_logger.model.records import Redaction
from agent_logger.model.redaction.credential_names import is_credential_name
from agent_logger.model.redaction.redactor import (
    FAMILIES,
    KnownPrefix,
    Redactor,
    Search,
    credential_lines,
    credentials_of,
    hidden_header,
)

INSTALL_KEY = bytes(range(32))
REDACTOR = Redactor(INSTALL_KEY)
at_leisure = settings(deadline=None)  # the machine may be busy

ALNUM = string.ascii_letters + string.digits
UPPER = string.ascii_uppercase + "234567"
URLSAFE = ALNUM + "_-"
HEX = "0123456789abcdef"


class Key(NamedTuple):
    rule: str
    prefix: str
    secret: str

    @property
    def text(self) -> str:
        return self.prefix + self.secret


class Vendor(NamedTuple):
    rule: str
    prefix: str
    alphabet: str
    least: int
    most: int

    def key(self, secret: str) -> Key:
        if self.rule == "jwt":
            third = len(secret) // 3
            secret = ".".join((secret[:third], secret[third : 2 * third], secret[2 * third :]))
        if self.rule == "agent_logger_basic":
            secret = "Z2VyOmFs" + "cl" + secret
        return Key(self.rule, self.prefix, secret)

    def keys(self) -> st.SearchStrategy[Key]:
        return st.text(self.alphabet, min_size=self.least, max_size=self.most).map(self.key)

    def sample(self, seed: int = 1) -> Key:
        return self.key("".join(random.Random(f"{self.prefix}{seed}").choices(self.alphabet, k=self.most)))


VENDORS = [
    Vendor("agent_logger", "alr" + "_", ALNUM, 32, 40),
    Vendor("agent_logger_basic", "YWdlbnQ" + "tbG9n", ALNUM, 40, 60),
    Vendor("anthropic", "sk-" + "ant-api03-", URLSAFE, 80, 95),
    Vendor("anthropic", "sk-" + "ant-oat01-", URLSAFE, 80, 95),
    Vendor("anthropic", "sk-" + "ant-ort01-", URLSAFE, 80, 95),
    Vendor("anthropic", "sk-" + "ant-admin01-", URLSAFE, 80, 95),
    Vendor("openai", "sk-" + "proj-", URLSAFE, 40, 160),
    Vendor("openai", "sk-" + "svcacct-", URLSAFE, 40, 160),
    Vendor("openai", "sk-" + "admin-", URLSAFE, 40, 160),
    Vendor("openrouter", "sk-" + "or-v1-", HEX, 64, 64),
    Vendor("sk", "sk" + "-", ALNUM, 32, 48),
    Vendor("sk", "sk" + "-" + "7Q_", URLSAFE, 20, 22),
    Vendor("google", "AI" + "za", URLSAFE, 35, 35),
    Vendor("google_oauth", "ya" + "29.", URLSAFE, 60, 200),
    Vendor("aws", "AK" + "IA", UPPER, 16, 16),
    Vendor("aws", "AS" + "IA", UPPER, 16, 16),
    *(Vendor("github", f"gh{kind}_", ALNUM, 36, 36) for kind in "pousr"),
    Vendor("github_pat", "github" + "_pat_", ALNUM + "_", 82, 82),
    Vendor("gitlab", "gl" + "pat-", URLSAFE, 20, 20),
    Vendor("slack", "xo" + "xb-", ALNUM + "-", 40, 60),
    Vendor("slack", "xo" + "xp-", ALNUM + "-", 40, 60),
    Vendor("stripe", "sk" + "_live_", ALNUM, 24, 99),
    Vendor("stripe", "rk" + "_live_", ALNUM, 24, 99),
    Vendor("huggingface", "h" + "f_", ALNUM, 34, 34),
    Vendor("agent_logger", "alr" + "_", ALNUM, 32, 32),
    Vendor("npm", "np" + "m_", ALNUM, 36, 36),
    Vendor("pypi", "py" + "pi-" + "AgEIcHlwaS5vcmcC", URLSAFE, 100, 160),
    Vendor("groq", "gs" + "k_", ALNUM, 52, 52),
    Vendor("xai", "xa" + "i-", ALNUM, 80, 80),
    Vendor("jwt", "ey" + "J", URLSAFE, 60, 180),
]
KEYS = st.one_of([vendor.keys() for vendor in VENDORS])
ANTHROPIC, GITHUB, JWT = (
    next(vendor for vendor in VENDORS if vendor.rule == rule).sample() for rule in ("anthropic", "github", "jwt")
)


def in_json(text: str) -> str:
    return json.dumps({"a": ["x", {"content": text}], "n": 1.5})


PLACES: dict[str, Callable[[str], str]] = {
    "alone": lambda key: key,
    "at the start of a text": lambda key: f"{key} is what I use",
    "at the end of a text": lambda key: f"I use {key}",
    "at the end of a sentence": lambda key: f"I use {key}. Do you?",
    "in the middle of a text": lambda key: f"with {key}, as always",
    "in quotes": lambda key: f"key = '{key}' # \"{key[:3]}\"",
    "in backticks": lambda key: f"use `{key}`.",
    "in brackets": lambda key: f"({key})[{key[:2]}]<b>",
    "in an environment file": lambda key: f"A=1\nAPI_KEY={key}\nB=2\n",
    "in a diff": lambda key: f"@@ -1 +1 @@\n-{key}\n+x\n",
    "in a diff in JSON": lambda key: in_json(f"@@ -1 +1 @@\n-{key}\n+x\n"),
    "in colour": lambda key: f"\x1b[1;31m{key}\x1b[0m",
    "in colour in JSON": lambda key: json.dumps(f"\x1b[31m\x1b[K{key}\x1b[m"),
    "in the repr of bytes": lambda key: repr(b"\x00" + key.encode() + b"\x00"),
    "in a shell command": lambda key: f'curl -H "x-api-key: {key}" https://example.com/v1',
    "in a JSON body": in_json,
    "after a newline in JSON": lambda key: in_json(f"first\n{key}\nlast"),
    "after a tab in JSON": lambda key: in_json(f"1\t{key}\t2"),
    "beside escapes in JSON": lambda key: json.dumps(f"\u00e9{key}\u00e9"),
    "beside quotes in JSON": lambda key: in_json(f'"{key}"'),
    "in JSON in JSON": lambda key: in_json(in_json(f"first\n{key}\nlast")),
    "in JSON in JSON in JSON": lambda key: in_json(in_json(in_json(f'first\n"{key}"\nlast'))),
    "in an SSE event": lambda key: f"event: delta\ndata: {json.dumps({'text': key})}\n\n",
    "in a query": lambda key: f"GET /v1/models?token={key}&alt=sse HTTP/1.1",
    "in a percent-encoded query": lambda key: f"/cb?next={quote(f'https://x/?a={key}&b=1', safe='')}",
    "in a form": lambda key: f"grant=refresh&token={quote_plus(key)}&x=+",
    "as the password of a URL": lambda key: f"git clone https://user:{key}@example.com/a.git",
    "as the password of a URL in JSON": lambda key: in_json(f"https://user:{key}@example.com/a.git"),
    "after Bearer": lambda key: f"Authorization: Bearer {key}\r\nAccept: */*",
    "after bearer in JSON": lambda key: in_json(f"authorization: bearer {key}"),
}


def survivors(secret: str, text: bytes) -> list[str]:
    """The runs of eight characters of `secret` that can still be read in `text`."""
    shown = text.decode()
    return [secret[i : i + 8] for i in range(len(secret) - 7) if secret[i : i + 8] in shown]


def originals(data: bytes, redactions: tuple[Redaction, ...]) -> list[str]:
    return [data[r.offset : r.offset + r.length].decode() for r in redactions]


# Keys of the known families


def test_every_family_is_tested() -> None:
    assert {vendor.rule for vendor in VENDORS} == {family.rule for family in FAMILIES}


@pytest.mark.parametrize("prefix", ["sk_live_", "ghp_", "AKIA"])
def test_two_adjacent_keys_of_one_family_are_both_removed(prefix: str) -> None:
    one, other = prefix + "A1B2" * 12, prefix + "C3D4" * 12
    kept = REDACTOR.redact(f"{one}{other} end".encode(), "body").data
    assert not survivors(one[len(prefix) :], kept)
    assert not survivors(other[len(prefix) : -4], kept)


@pytest.mark.parametrize("place", PLACES)
@at_leisure
@given(key=KEYS)
def test_a_key_is_removed_in_every_context(place: str, key: Key) -> None:
    text = PLACES[place](key.text).encode()
    redacted = REDACTOR.redact(text, "body")
    assert survivors(key.secret, redacted.data) == []
    assert originals(text, redacted.redactions) == [key.text]
    assert [(r.place, r.rule) for r in redacted.redactions] == [("body", key.rule)]


@at_leisure
@given(key=KEYS)
def test_a_key_after_a_backslash_is_removed_and_the_text_stays_json(key: Key) -> None:
    text = in_json(in_json(f"C:\\{key.text}\\n")).encode()
    redacted = REDACTOR.redact(text, "body")
    assert survivors(key.secret, redacted.data) == []
    json.loads(json.loads(redacted.data)["a"][1]["content"])


@at_leisure
@given(key=KEYS, place=st.sampled_from(sorted(PLACES)))
def test_redaction_is_idempotent(key: Key, place: str) -> None:
    once = REDACTOR.redact(PLACES[place](key.text).encode(), "body")
    again = REDACTOR.redact(once.data, "body")
    assert (again.data, again.redactions) == (once.data, ())


@at_leisure
@given(key=KEYS)
def test_a_key_shows_prefix_and_last_four_if_twenty_characters_stay_hidden(key: Key) -> None:
    shown = REDACTOR.redact(key.text.encode(), "body").data.decode()
    if len(key.secret) < 24 and not key.text.startswith("sk-7Q_"):
        assert shown == "[redacted]"
    if shown != "[redacted]":
        start, tail, rest = shown.partition("..." + key.text[-4:])
        assert (tail, rest) == ("..." + key.text[-4:], "")
        assert key.prefix.startswith(start)
        assert start
        assert len(key.text) - len(start) - 4 >= 20


def test_an_anthropic_key_is_shown_with_prefix_and_last_four() -> None:
    assert REDACTOR.redact_text(ANTHROPIC.text, "x").data == "sk-ant-..." + ANTHROPIC.text[-4:]


def test_redactions_are_listed_in_order_with_their_original_offsets() -> None:
    keys = [vendor.sample().text for vendor in VENDORS]
    text = " and ".join(keys).encode()
    redacted = REDACTOR.redact(text, "response.body")
    assert originals(text, redacted.redactions) == keys
    assert {r.place for r in redacted.redactions} == {"response.body"}
    assert redacted.data.count(b" and ") == len(keys) - 1


def test_a_token_of_an_unknown_vendor_after_bearer_is_removed() -> None:
    token = "".join(random.Random(1).choices(ALNUM + "+/", k=60)) + "=="
    for scheme in ("Bearer", "bearer", "BEARER"):
        for text in (f"{scheme} {token}", in_json(f"{scheme} {token}"), quote(f"{scheme} {token}", safe="")):
            redacted = REDACTOR.redact(text.encode(), "x")
            assert survivors(token, redacted.data) == []
            assert [r.rule for r in redacted.redactions] == ["bearer"]
    escaped = json.dumps(f"Bearer {token}").replace("/", "\\/").replace("+", "\\u002B").encode()
    assert survivors(token, REDACTOR.redact(escaped, "x").data) == []


@pytest.mark.parametrize("password", ["hunter2", "p%40ss%3Aword", "a@b", "x" * 60, "correct-horse~battery!"])
def test_only_the_password_is_removed_from_a_url(password: str) -> None:
    url = f"postgresql+asyncpg://admin:{password}@db.example.com:5432/app?x=1"
    kept = "postgresql+asyncpg://admin:[redacted]@db.example.com:5432/app?x=1"
    assert REDACTOR.redact_text(f"see {url}, please", "x").data == f"see {kept}, please"
    assert REDACTOR.redact_text(json.dumps(url).replace("/", "\\/"), "x").data.count(password) == 0
    assert quote(password, safe="") not in REDACTOR.redact_text(quote(url, safe=""), "x").data


def pem(label: str, headers: str = "", lines: int = 20) -> str:
    rnd = random.Random(label)
    body = "\n".join("".join(rnd.choices(ALNUM + "+/", k=64)) for _ in range(lines))
    return f"-----{'BEGIN'} {label}-----\n{headers}{body}\n{'x' * 20}=\n-----END {label}-----"


def numbered(text: str) -> str:
    return "\n".join(f"{number:6}\u2192{line}" for number, line in enumerate(text.split("\n"), 1))


PEM_PLACES: dict[str, Callable[[str], str]] = {
    "as it is": lambda key: f"cat id\n{key}\ndone",
    "with CRLF": lambda key: key.replace("\n", "\r\n"),
    "in JSON": in_json,
    "in JSON in JSON": lambda key: in_json(in_json(key)),
    "percent-encoded": lambda key: "key=" + quote(key, safe="") + "&a=1",
    "in a form": lambda key: "key=" + quote_plus(key) + "&a=1",
    "indented": lambda key: key.replace("\n", "\n    "),
    "with line numbers": numbered,
    "with line numbers in JSON": lambda key: in_json(numbered(key)),
    "in a diff": lambda key: "-" + key.replace("\n", "\n-"),
    "cut off": lambda key: key[:-60],
    "cut off in JSON": lambda key: in_json(key[:-60]),
    "with slashes escaped": lambda key: in_json(key).replace("/", "\\/"),
}


@pytest.mark.parametrize("place", PEM_PLACES)
@pytest.mark.parametrize(
    "key",
    [
        pytest.param(pem("PRIVATE KEY", lines=1), id="short"),
        pytest.param(pem("RSA PRIVATE KEY", lines=160), id="long"),
        pytest.param(pem("OPENSSH PRIVATE KEY"), id="openssh"),
        pytest.param(pem("EC PRIVATE KEY", "Proc-Type: 4,ENCRYPTED\nDEK-Info: AES-256-CBC,0A1B\n\n"), id="encrypted"),
        pytest.param(pem("PGP PRIVATE KEY BLOCK", "Version: GnuPG v2\n\n"), id="pgp"),
    ],
)
def test_a_private_key_is_removed_with_any_line_encoding(key: str, place: str) -> None:
    text = PEM_PLACES[place](key).encode()
    redacted = REDACTOR.redact(text, "x")
    lines = [line for line in key.split("\n") if len(line) == 64]
    assert [piece for line in lines for piece in survivors(line, redacted.data)] == []
    assert [r.rule for r in redacted.redactions] == ["private_key"]
    assert REDACTOR.redact(redacted.data, "x").redactions == ()
    assert redacted.data.startswith(text[:4])


def test_only_the_private_key_is_removed_from_a_single_line() -> None:
    key = pem("RSA PRIVATE KEY")
    text = f'KEY="{key}" ./run'.replace("\n", " ")
    kept = f'KEY="-----{"BEGIN"} RSA PRIVATE KEY----- [redacted] -----END RSA PRIVATE KEY-----" ./run'
    assert REDACTOR.redact_text(text, "x").data == kept


# What is no secret


WORDS = "ask- risk- disk- task-list sk-learn sk-spinner-double-bounce-child sk-toggleable__label-arrow"
ORDINARY = [
    WORDS,
    "task-0123456789abcdef0123456789abcdef disk-AAAABBBBCCCCDDDDEEEEFFFF",
    " ".join(vendor.prefix for vendor in VENDORS),
    "xoxo-hugs-and-kisses-and-all-that-and-more",
    "npm_config_registry npm_package_version npm_lifecycle_event self.hf_model_name gsk_theme",
    "https://example.com/pypi-malware-campaign-targets-developers-with-fake-packages-again",
    "Bearer authentication-and-authorization of the bearer of good news; Bearer YOUR_API_KEY; Bearer $TOKEN",
    "https://example.com:8080/a@b http://[::1]:80/ git@github.com:a/b.git mailto://me@example.com",
    "postgres://{user}:{password}@{host}/db redis://:$REDIS_PASSWORD@h https://user:<password>@h %s://%s:%s@h",
    "-----BEGIN CERTIFICATE-----\n" + "MIID" * 16 + "\n-----END CERTIFICATE-----",
    "-----BEGIN PUBLIC KEY-----\n" + "MIIB" * 16 + "\n-----END PUBLIC KEY-----",
    "a file with -----BEGIN PRIVATE KEY----- in its first line, and more in the next",
    "da39a3ee5e6b4b0d3255bfef95601890afd80709 index 83db48f..bf269f4 100644",
    "the quick brown fox jumps over the lazy dog; ya29 is a road, AKIA a word, ASIA a continent: ASIAPACIFIC",
    "class Task_:\n    def __init__(self, risk_level: int = 0) -> None: ...\n",
    "msg_01XFDUDYJgAACzvnptvVoYEL toolu_01A09q90qw90lq917835lq9 req_011CSHoEeqs5C35K2UUqR7Fy",
    "\u65e5\u672c\u8a9e \U0001f511 \u2028 \\u0041 \\n %41 %",
]


@pytest.mark.parametrize("text", ORDINARY)
@pytest.mark.parametrize("form", [str, in_json, lambda text: in_json(in_json(text))], ids=["plain", "JSON", "nested"])
def test_ordinary_text_is_not_redacted(text: str, form: Callable[[str], str]) -> None:
    redacted = REDACTOR.redact_text(form(text), "x")
    assert redacted.redactions == ()
    assert redacted.data == form(text)


@pytest.mark.parametrize("seed", range(3))
def test_images_hashes_and_ids_are_not_redacted(seed: int) -> None:
    rnd = random.Random(seed)
    image = base64.b64encode(rnd.randbytes(1_500_000)).decode()
    hashes = "\n".join(hashlib.sha1(rnd.randbytes(9)).hexdigest() for _ in range(5_000))
    ids = " ".join(str(uuid.UUID(int=rnd.getrandbits(128), version=4)) for _ in range(5_000))
    text = json.dumps({"data": image, "log": hashes, "ids": ids}).encode()
    assert REDACTOR.redact(text, "x").data is text


@at_leisure
@given(vendor=st.sampled_from(VENDORS))
def test_a_string_too_short_for_a_key_is_not_redacted(vendor: Vendor) -> None:
    text = f"see {vendor.prefix[:12]}{'x1Y' * 3} there"
    assert REDACTOR.redact_text(text, "x").redactions == ()


# Credentials that are known exactly


SESSION = "".join(random.Random(2).choices(ALNUM + "+/", k=120)) + "=="
PLAIN = "Zq3" + "".join(random.Random(3).choices(ALNUM, k=37))
CREDENTIAL_HEADERS = [
    ("Authorization", "Bearer {}", "Bearer {}"),
    ("AUTHORIZATION", "bearer  {}", "bearer  {}"),
    ("authorization", "Basic {}", "Basic {}"),
    ("authorization", "{}", "{}"),
    ("Proxy-Authorization", "bAsIc {}", "bAsIc {}"),
    ("x-api-key", "{}", "{}"),
    ("X-Api-Key", " {} ", " {} "),
    ("api-key", "{}", "{}"),
    ("x-goog-api-key", "{}", "{}"),
    ("X-Amz-Security-Token", "{}", "{}"),
    ("Cookie", "session={}", "session={}"),
    ("cookie", 'a="{}"', 'a="{}"'),
    ("Set-Cookie", "id={}; Path=/; Secure; HttpOnly", "id={}; Path=/; Secure; HttpOnly"),
]


@pytest.mark.parametrize(("name", "value", "kept"), CREDENTIAL_HEADERS)
@pytest.mark.parametrize("secret", [PLAIN, SESSION, "x", "dark", "1234", "a b", ANTHROPIC.text])
@pytest.mark.parametrize("patterns", [True, False])
def test_credentials_are_removed_from_headers(name: str, value: str, kept: str, secret: str, patterns: bool) -> None:
    headers = [(b"Host", b"example.com"), (name.encode(), value.format(secret).encode())]
    redactor = Redactor(INSTALL_KEY, credentials_of(headers), patterns=patterns)
    redacted = redactor.redact_headers(headers, "request.headers")
    shown = f"sk-ant-...{secret[-4:]}" if secret == ANTHROPIC.text else "[redacted]"
    assert redacted.data == [headers[0], (name.encode(), kept.format(shown).encode())]
    assert [(r.place, r.rule, r.offset, r.length) for r in redacted.redactions] == [
        (f"request.headers.{name.lower()}", "credential", value.index("{"), len(secret))
    ]
    assert redactor.redact_headers(redacted.data, "request.headers").data == redacted.data
    assert secret.encode() in credentials_of(headers)


@pytest.mark.parametrize(
    ("name", "value", "shown"),
    [
        ("X-Portkey-Api-Key", "hunter2", "[redacted]"),
        ("x-api-key", ANTHROPIC.text, f"sk-ant-...{ANTHROPIC.text[-4:]}"),
        ("Authorization", "Bearer abc", "Bearer [redacted]"),
        ("Authorization", "Bearer", "Bearer"),
        ("Cookie", "a=b; c=\u00e9", "a=[redacted]; c=[redacted]"),
        ("x-ratelimit-remaining-tokens", "149984", "149984"),
        ("Sec-WebSocket-Key", "dGhlIHNhbXBsZSBub25jZQ==", "dGhlIHNhbXBsZSBub25jZQ=="),
    ],
)
def test_hidden_header_removes_credentials_of_older_logs(name: str, value: str, shown: str) -> None:
    assert hidden_header(name, value) == shown
    assert hidden_header(name, shown) == shown


CARRIED = {  # how a credential is sent, where it may then be echoed alone
    "after a scheme of a vendor": [("Authorization", "SSWS {}")],
    "after a long scheme": [("Authorization", "DeepL-Auth-Key {}")],
    "in a list": [("X-Api-Key", "{}, other-key-1")],
    "as a password": [("Authorization", "Basic {user:}")],
    "as a user without a password": [("Authorization", "Basic {key}")],
    "in the name of a protocol": [("Sec-WebSocket-Protocol", "realtime, openai-insecure-api-key.{}, v1")],
    "in a redirect": [("Location", "https://example.com/?a=1&access_token={}")],
    "in the fragment of a redirect": [("Location", "https://example.com/#access_token={}&state=1")],
    "in a referrer": [("Referer", "https://example.com/page?key={}")],
    "behind a name that is encoded": [(":target", "/v1?a=1&%6bey={}")],
    "behind a semicolon": [(":target", "/v1?a=1;key={}")],
    "behind a long name": [(":target", "/v1?" + "x" * 90 + "_key={}")],
    "in a URL in a URL": [(":target", "/v1?next=/v2?key={}")],
    "in an encoded URL in a URL": [(":target", "/v1?next=%2Fv2%3Fa%3D1%26key%3D{}")],
}


@pytest.mark.parametrize("way", CARRIED)
def test_a_credential_in_any_header_form_is_removed_from_the_body(way: str) -> None:
    ((name, value),) = CARRIED[way]
    encoded = {
        "{user:}": base64.b64encode(f"user:{PLAIN}".encode()).decode(),
        "{key}": base64.b64encode(f"{PLAIN}:".encode()).decode(),
    }
    for place, text in encoded.items():
        value = value.replace(place, text)
    value = value.replace("{}", PLAIN)
    headers = [] if name == ":target" else [(name.encode(), value.encode())]
    target = value.encode() if name == ":target" else b""
    redactor = Redactor(INSTALL_KEY, credentials_of(headers, target))
    body = json.dumps({"error": f"the key {PLAIN} is not valid"}).encode()
    told = [redactor.redact(body, "b").data, redactor.redact_target(target, "t").data]
    told += [value for _, value in redactor.redact_headers(headers, "h").data]
    assert survivors(PLAIN, b" ".join(told)) == []
    assert json.loads(told[0]) == {"error": "the key [redacted] is not valid"}
    assert not any(text.encode() in b" ".join(told) for text in encoded.values())


@pytest.mark.parametrize(
    ("name", "value"),
    [
        ("Sec-WebSocket-Protocol", "graphql-transport-ws, chat.v1, mqtt"),
        ("Location", "https://example.com/?page_token=abcdef&state=1#top"),
        ("Location", "/v1/keys/17"),
        ("Link", "<https://example.com/?page=2>; rel=next"),
    ],
)
def test_credential_headers_without_a_credential_are_unchanged(name: str, value: str) -> None:
    assert credentials_of([(name.encode(), value.encode())]) == ()
    assert hidden_header(name, value) == value


def test_a_passphrase_is_collected_as_one_credential() -> None:
    assert credentials_of([(b"X-Password", b"correct horse battery")]) == (b"correct horse battery",)


LINES = st.sampled_from(
    [
        *(
            b"x-api-key: a1",
            b"X-AUTH-KEY:b2",
            b"Host: key",
            b"no colon, a token",
            b"x-ratelimit-limit-tokens: 9",
            b"",
        ),
        *(
            b"Cookie: a=b; token: c",
            b"x-api-key : d4",
            b"Authorization:",
            b" folded token: x",
            b": secret",
            b"Accept: a",
        ),
    ]
)


@given(
    lines=st.lists(LINES, max_size=8),
    ends=st.lists(st.sampled_from([b"\r\n", b"\n"]), min_size=9, max_size=9),
)
def test_credential_lines_returns_whole_header_lines(lines: list[bytes], ends: list[bytes]) -> None:
    head = b"GET /?key=1 HTTP/1.1" + b"".join(end + line for end, line in zip(ends, lines, strict=False)) + b"\r\n"
    found = credential_lines(head)
    assert found == sorted(set(found))
    texts = [head[start:end] for start, end in found]
    for line in lines:
        name, colon, _ = line.partition(b":")
        is_own = colon and not line.startswith(b" ")  # else it may belong to the one before it
        if is_own:
            assert any(text.startswith(line) for text in texts) == is_credential_name(name)
    assert all(
        text == text.rstrip(b"\r\n") and head[start - 1 : start] == b"\n"
        for text, (start, _) in zip(texts, found, strict=True)
    )


def test_each_cookie_value_is_a_credential_and_cookie_names_stay() -> None:
    headers = [(b"Cookie", b"theme=dark; id=" + PLAIN.encode() + b";flag; empty=; q=a=b")]
    assert credentials_of(headers) == (b"dark", PLAIN.encode(), b"flag", b"a=b")
    redacted = REDACTOR.redact_headers(headers, "h")
    assert redacted.data == [(b"Cookie", b"theme=[redacted]; id=[redacted];[redacted]; empty=; q=[redacted]")]


def test_other_headers_are_searched_for_key_patterns_and_credentials() -> None:
    headers = [
        (b"X-Debug", f"key {ANTHROPIC.text} and {PLAIN}".encode()),
        (b"User-Agent", b"claude-cli/2.1.325 (external, cli)"),
        (b"X-Debug", b"again"),
    ]
    redacted = Redactor(INSTALL_KEY, [PLAIN.encode()]).redact_headers(headers, "h")
    shown = f"key sk-ant-...{ANTHROPIC.text[-4:]} and [redacted]".encode()
    assert redacted.data == [(b"X-Debug", shown), headers[1], headers[2]]
    assert [(r.place, r.rule) for r in redacted.redactions] == [
        ("h.x-debug", "anthropic"),
        ("h.x-debug", "credential"),
    ]


@pytest.mark.parametrize("name", ["key", "api_key", "access_token", "KEY"])
@pytest.mark.parametrize("secret", [PLAIN, SESSION, "x", "ab"])
def test_credentials_in_a_query_are_removed_and_collected(name: str, secret: str) -> None:
    target = f"/v1beta/models?alt=sse&{name}={quote(secret, safe='')}&monkey=1".encode()
    redacted = REDACTOR.redact_target(target, "request.path")
    assert redacted.data == f"/v1beta/models?alt=sse&{name}=[redacted]&monkey=1".encode()
    assert [(r.place, r.offset) for r in redacted.redactions] == [("request.path", target.index(b"=", 25) + 1)]
    assert secret.encode() in credentials_of([], target)
    assert REDACTOR.redact_target(redacted.data, "request.path").data == redacted.data


ECHOES: dict[str, Callable[[str], str]] = {
    "plain": lambda value: f"invalid key: {value}.",
    "JSON": in_json,
    "JSON with slashes escaped": lambda value: in_json(value).replace("/", "\\/"),
    "JSON with plus and equals escaped": lambda value: in_json(value).replace("+", "\\u002B").replace("=", "\\u003d"),
    "JSON in JSON": lambda value: in_json(in_json(value)),
    "slashes escaped in JSON in JSON": lambda value: in_json(in_json(value).replace("/", "\\/")),
    "percent-encoded": lambda value: "?k=" + quote(value, safe=""),
    "percent-encoded in lower case": lambda value: re.sub("%..", lambda hexed: hexed[0].lower(), quote(value, safe="")),
    "percent-encoded but for slashes": lambda value: "?k=" + quote(value),
    "percent-encoded twice": lambda value: "?k=" + quote(quote(value, safe=""), safe=""),
    "without padding": lambda value: f"<{value.rstrip('=')}>",
    "glued to letters": lambda value: f"abc{value}def",
    "in a form": lambda value: f"k={quote_plus(value)}&b=1",
}


@pytest.mark.parametrize("echo", ECHOES)
@at_leisure
@given(value=st.text(ALNUM + "+/=-_.~!*:;,@$&() ", min_size=16, max_size=200).filter(lambda v: len(set(v[:12])) > 8))
@example(value=SESSION)
@example(value=PLAIN)
def test_a_credential_is_removed_in_every_echoed_encoding(echo: str, value: str) -> None:
    value = "k" + value
    redactor = Redactor(INSTALL_KEY, [value.encode()], patterns=False)
    text = ECHOES[echo](value).encode()
    redacted = redactor.redact(text, "body")
    assert survivors(value, redacted.data) == []
    assert [r.rule for r in redacted.redactions] == ["credential"]
    assert redactor.redact(redacted.data, "body").data == redacted.data


def test_the_start_of_a_truncated_long_credential_is_removed() -> None:
    token = "".join(random.Random(4).choices(ALNUM, k=900))
    text = f"token {token[:500]}..."
    redacted = Redactor(INSTALL_KEY, [token.encode()], patterns=False).redact_text(text, "x")
    assert len(redacted.data) < 100


@pytest.mark.parametrize("value", ["a", "en", "dark", "true", "12345", "[redacted]", "redacted", "system", "messages"])
def test_a_credential_that_is_a_common_word_is_not_removed(value: str) -> None:
    text = json.dumps({"a": f"say {value} and {value}s", "n": 12345678901234567890}).encode()
    redactor = Redactor(INSTALL_KEY, [value.encode()])
    assert redactor.redact(text, "x").data == text


SHORT = [
    "ollama",
    "lm-studio",
    "hunter2",
    "secret",
    "123456",
    "1736121600",
    "2026-01-05",
    "a1b2c3d4",
    "$ecret",
    "p4ss==",
]


@pytest.mark.parametrize("value", SHORT)
@pytest.mark.parametrize(
    "text",
    [
        "wrong key {}!",
        "{}",
        "key={}&x=1",
        "<{}>",
        '{{"key":"{}"}}',
        '{{"text":"first\\n{}\\nlast"}}',
        '{{"text":"\\u001b[31m{}\\u001b[0m"}}',
        "a%20{}%20b",
        "-{}-",
        "a_{}_b",
    ],
)
def test_a_short_credential_is_removed_as_a_separate_word(value: str, text: str) -> None:
    redacted = Redactor(INSTALL_KEY, [value.encode()], patterns=False).redact_text(text.format(value), "x")
    assert value.lstrip("$").rstrip("=") not in redacted.data
    assert [it.rule for it in redacted.redactions] == ["credential"]
    assert redacted.data.replace("$", "").replace("==", "") == text.format("[redacted]")


@pytest.mark.parametrize("value", ["ollama", "123456", "a1b2c3d4", "abcdefghijklmno"])
@pytest.mark.parametrize("text", ["x{}", "{}x", "9{}", "{}9", "ab{}cd"])
def test_a_short_credential_inside_a_longer_word_is_not_removed(value: str, text: str) -> None:
    redacted = Redactor(INSTALL_KEY, [value.encode()], patterns=False).redact_text(text.format(value), "x")
    assert redacted.data == text.format(value)


@pytest.mark.parametrize("value", ["abcdefghijklmnop", "1234567890123456"])
def test_a_credential_of_16_characters_is_removed_inside_a_longer_word(value: str) -> None:
    redacted = Redactor(INSTALL_KEY, [value.encode()], patterns=False).redact_text(f"x9{value}9x", "x")
    assert redacted.data == "x9[redacted]9x"


@pytest.mark.parametrize("value", ["123456", "1234.56", "12345e67", "123456."])
@pytest.mark.parametrize(
    "text", ['{{"n":{}}}', '{{"n": -{} }}', "[{},2]", "[1, {}.5]", "[0.{}]", '"[{}]"', "[[1,\n  {}\n]]"]
)
def test_a_numeric_credential_in_json_is_replaced_by_a_number(value: str, text: str) -> None:
    document = text.format(value)
    try:
        expected = shape(read(document))
    except ValueError:
        return  # no number that JSON knows
    redacted = Redactor(INSTALL_KEY, [value.encode()], patterns=False).redact_text(document, "x")
    found = shape(read(redacted.data))
    assert value not in redacted.data
    assert json.dumps(found).count("0") <= json.dumps(expected).count("0") + 2


def test_a_short_credential_split_across_chunks_is_matched_by_its_neighbors() -> None:
    stream, value = b"key hunter2, hunter22, xhunter2 hunter2", b"hunter2"
    redactor = Redactor(INSTALL_KEY, [value])
    for cut in range(len(stream) + 1):
        redacted = redactor.redact_chunks([stream[:cut], stream[cut:]], "x")
        assert b"".join(redacted.data) == b"key [redacted], hunter22, xhunter2 [redacted]"


def test_without_patterns_only_credentials_are_removed() -> None:
    redactor = Redactor(INSTALL_KEY, [PLAIN.encode()], patterns=False)
    text = f"{ANTHROPIC.text} {PLAIN} https://user:hunter2@h/"
    assert redactor.redact_text(text, "x").data == f"{ANTHROPIC.text} [redacted] https://user:hunter2@h/"


def test_overlapping_credential_key_and_bearer_matches_count_once() -> None:
    text = f"Bearer {ANTHROPIC.text} x".encode()
    redacted = Redactor(INSTALL_KEY, [ANTHROPIC.text.encode(), ANTHROPIC.text[20:50].encode()]).redact(text, "x")
    assert originals(text, redacted.redactions) == [ANTHROPIC.text]
    assert [r.rule for r in redacted.redactions] == ["credential"]


def test_overlapping_secrets_are_removed_as_one() -> None:
    credential = ANTHROPIC.text[-20:] + "/and+more0"
    text = f"<{ANTHROPIC.text}/and+more0>".encode()
    redacted = Redactor(INSTALL_KEY, [credential.encode()]).redact(text, "x")
    assert originals(text, redacted.redactions) == [text[1:-1].decode()]
    assert redacted.data == b"<sk-ant-...ore0>"


# Chunks


@pytest.mark.parametrize("vendor", VENDORS, ids=lambda vendor: vendor.prefix)
def test_a_key_cut_at_any_point_is_removed_from_both_chunks(vendor: Vendor) -> None:
    key = vendor.sample()
    stream = f'data: {{"text":"{key.text}"}}\n\ndata: end\n\n'.encode()
    whole = REDACTOR.redact(stream, "chunks")
    for cut in range(len(stream) + 1):
        redacted = REDACTOR.redact_chunks([stream[:cut], stream[cut:]], "chunks")
        assert len(redacted.data) == 2
        assert b"".join(redacted.data) == whole.data
        assert redacted.redactions == whole.redactions
        assert survivors(key.secret, b" ".join(redacted.data)) == []


@at_leisure
@given(keys=st.lists(KEYS, max_size=3), cuts=st.lists(st.integers(0, 700), max_size=30))
def test_chunk_count_is_preserved_and_the_replacement_goes_where_the_key_began(
    keys: list[Key], cuts: list[int]
) -> None:
    stream = "".join(f'data: {{"text":"{key.text}"}}\n\n' for key in keys).encode()
    ends = [0, *sorted(min(cut, len(stream)) for cut in cuts), len(stream)]
    chunks = [stream[a:b] for a, b in pairwise(ends)]
    redacted = REDACTOR.redact_chunks(chunks, "chunks")
    whole = REDACTOR.redact(stream, "chunks")
    assert len(redacted.data) == len(chunks)
    assert b"".join(redacted.data) == whole.data
    assert redacted.redactions == whole.redactions
    for chunk, kept, (start, end) in zip(chunks, redacted.data, pairwise(ends), strict=True):
        inside = [r for r in whole.redactions if r.offset < end and r.offset + r.length > start]
        begun = sum(start <= r.offset < end for r in inside)
        assert kept.count(b"...") + kept.count(b"[redacted]") == begun
        assert inside or kept == chunk


def test_a_credential_in_chunks_of_one_byte_leaves_empty_chunks() -> None:
    chunks = [bytes([byte]) for byte in f"<{PLAIN}>".encode()]
    redacted = Redactor(INSTALL_KEY, [PLAIN.encode()]).redact_chunks(chunks, "x")
    assert redacted.data == [b"<", b"[redacted]", *[b""] * (len(PLAIN) - 1), b">"]
    assert REDACTOR.redact_chunks([], "x").data == []


# JSON


STRINGS = st.lists(st.one_of(st.text(max_size=8), KEYS.map(lambda key: key.text)), max_size=3).map("".join)
JSON = st.recursive(
    st.one_of(st.none(), st.booleans(), st.integers(), st.floats(allow_nan=False), STRINGS),
    lambda inner: st.one_of(
        st.lists(inner, max_size=4), st.dictionaries(STRINGS, inner, max_size=4), inner.map(json.dumps)
    ),
    max_leaves=12,
)
# Made of what escapes are made of, so that a value may begin in the middle of one.
AWKWARD = st.text('bnrtu00e9/+="\\41.', min_size=8, max_size=20)


def shape(value: Any) -> Any:
    """A document without its strings: two that differ in these alone have one shape."""
    if isinstance(value, list | tuple):
        return [shape(item) for item in value]
    return "" if isinstance(value, str) else value


def read(text: bytes | str) -> Any:
    return json.loads(text, object_pairs_hook=list)


@at_leisure
@given(document=JSON, credentials=st.lists(AWKWARD, max_size=4), ascii_only=st.booleans(), data=st.data())
def test_redacted_json_keeps_its_shape(
    document: Any, credentials: list[str], ascii_only: bool, data: st.DataObject
) -> None:
    echoed = [f"{data.draw(st.sampled_from(['', chr(10), chr(233), chr(92), chr(34)]))}{c[1:]}" for c in credentials]
    text = json.dumps([document, credentials, echoed], ensure_ascii=ascii_only)
    redactor = Redactor(INSTALL_KEY, [c.encode() for c in credentials])
    redacted = redactor.redact(text.encode("utf-8", "surrogatepass"), "x")
    assert shape(read(redacted.data.decode("utf-8", "surrogatepass"))) == shape(read(text))


@at_leisure
@given(key=KEYS, text=st.text(max_size=12), depth=st.integers(1, 4))
def test_nested_json_strings_stay_readable_after_redaction(key: Key, text: str, depth: int) -> None:
    document = f"{text}\n{key.text}\n{text}"
    for _ in range(depth):
        document = json.dumps({"text": document})
    kept = REDACTOR.redact_text(document, "x").data
    for _ in range(depth):
        kept = json.loads(kept)["text"]
    assert kept.startswith(text)
    assert kept.endswith(f"\n{text}")


def test_a_json_escape_before_a_credential_stays_intact() -> None:
    credential = b"nightly0build0token"
    text = json.dumps({"a": f"\n{credential[1:].decode()}", "b": f"x{credential.decode()}"}).encode()
    redacted = Redactor(INSTALL_KEY, [credential]).redact(text, "x")
    assert json.loads(redacted.data) == {"a": "\n[redacted]", "b": "x[redacted]"}


# What is known already


PIECES = st.one_of(
    KEYS.map(lambda key: key.text),
    st.sampled_from(
        [
            " ",
            "\n",
            '"',
            "\\n",
            " Bearer ",
            " bearer\t",
            "://u:",
            "@host",
            "x",
            ", ",
            "a1b2" * 6,
            pem("PRIVATE KEY"),
        ]
    ),
    st.text(ALNUM + "-_. ", max_size=12),
)
TEXTS = st.lists(PIECES, max_size=8).map("".join)


def common(one: bytes, other: bytes) -> int:
    """How many bytes from the start are the same."""
    same = (a == b for a, b in zip(one, other, strict=False))
    return sum(takewhile(bool, same))


@at_leisure
@given(before=TEXTS, gone=TEXTS, new=TEXTS, after=TEXTS)
def test_a_known_prefix_does_not_change_the_result(before: str, gone: str, new: str, after: str) -> None:
    earlier, text = (before + gone + after).encode(), (before + new + after).encode()
    redactor = Redactor(INSTALL_KEY, [b"a1b2a1b2a1b2a1b2"])
    for head, tail in [
        (len(before), len(after)),
        (common(earlier, text), common(earlier[::-1], text[::-1])),
    ]:
        check_known(redactor, earlier, text, head=head, tail=tail)


def check_known(redactor: Redactor, earlier: bytes, text: bytes, *, head: int = 0, tail: int = 0) -> None:
    found = redactor.search(text, KnownPrefix(len(earlier), redactor.search(earlier), head, tail))
    expected = redactor.search(text)
    assert found == expected._replace(keys=found.keys)
    assert sorted(found.keys) == sorted(expected.keys)


def test_a_known_part_is_not_scanned_again() -> None:
    old = "old " * 20
    text = f"{old}{ANTHROPIC.text} {old}new {GITHUB.text} new {old}{JWT.text} {old}".encode()
    head, tail = text.index(b"new"), len(text) - text.rindex(b"new")
    found = REDACTOR.search(text, KnownPrefix(len(text), Search(), head, tail))
    assert [text[start:end] for start, end, _ in found.spans] == [GITHUB.text.encode()]


STRADDLERS = [
    *(vendor.sample().text for vendor in VENDORS),
    f"Bearer {PLAIN[:16]}",
    f"Bearer    {PLAIN}",
    f"bearer {ANTHROPIC.text}",
    f"https://user:{PLAIN}@host",
    pem("RSA PRIVATE KEY", lines=10),
]


@pytest.mark.parametrize("secret", STRADDLERS, ids=range(len(STRADDLERS)))
def test_a_secret_that_extends_into_a_known_part_is_removed(secret: str) -> None:
    text = f'{"x" * 99} "{secret}" {"x" * 99}'.encode()
    start, end = text.index(b'"') + 1, text.rindex(b'"')
    whole = REDACTOR.redact(text, "x")
    assert len(whole.redactions) == 1
    for cut in range(start + 1, end):
        check_known(REDACTOR, text[:cut], text, head=cut)
        check_known(REDACTOR, text[cut:], text, tail=len(text) - cut)


@at_leisure
@given(start=TEXTS, twice=TEXTS, end=TEXTS)
def test_known_head_and_tail_may_overlap(start: str, twice: str, end: str) -> None:
    earlier, text = (start + twice + twice + end).encode(), (start + twice + end).encode()
    check_known(REDACTOR, earlier, text, head=len(start + twice), tail=len(twice + end))


# What stands behind a secret, or before it, says whether it is one.
KEY_IN_LINES = pem("OPENSSH PRIVATE KEY")
KEY_IN_WORDS = KEY_IN_LINES.replace("\n", " ")
EDITED = [
    pytest.param(["hunter2x"], '"hunter2x"', '"hunter2xyz"', id="a short credential"),
    pytest.param(["7302945816"], '{"n":7302945816}', '{"n":73029458162}', id="a number"),
    pytest.param([], KEY_IN_LINES, KEY_IN_LINES.replace("BEGIN", "BEGIX"), id="begin of a key in lines"),
    pytest.param([], KEY_IN_LINES, KEY_IN_LINES.replace("END", "ENX"), id="end of a key in lines"),
    pytest.param([], KEY_IN_WORDS, KEY_IN_WORDS.replace("BEGIN", "BEGIX"), id="begin of a key in words"),
    pytest.param([], KEY_IN_WORDS, KEY_IN_WORDS.replace("END", "ENX"), id="end of a key in words"),
]


@pytest.mark.parametrize(("credentials", "one", "other"), EDITED)
def test_a_text_that_was_edited_beside_a_secret_is_searched_again(credentials: list[str], one: str, other: str) -> None:
    redactor = Redactor(INSTALL_KEY, [credential.encode() for credential in credentials])
    for before, now in ((one, other), (other, one)):
        earlier, text = (json.dumps(f"{'word ' * 9}{edited} {'word ' * 9}").encode() for edited in (before, now))
        head, tail = common(earlier, text), common(earlier[::-1], text[::-1])
        check_known(redactor, earlier, text, head=head, tail=min(tail, len(earlier) - head, len(text) - head))


def test_a_new_credential_is_removed_from_known_parts() -> None:
    text = f"a {PLAIN} b".encode()
    known = KnownPrefix(len(text), REDACTOR.search(text), head=len(text))
    assert len(Redactor(INSTALL_KEY, [PLAIN.encode()]).search(text, known).spans) == 1


def test_a_credential_that_is_not_searched_for_any_more_stays_in_known_parts() -> None:
    text = f"a {PLAIN} b".encode()
    known = KnownPrefix(len(text), Redactor(INSTALL_KEY, [PLAIN.encode()]).search(text), head=len(text))
    assert REDACTOR.search(text, known) == REDACTOR.search(text)


# Proof of equality


def test_equal_secrets_have_equal_hmacs_under_one_install_key_only() -> None:
    text = f"{ANTHROPIC.text} {GITHUB.text} {ANTHROPIC.text}".encode()
    first, other, again = [r.hmac for r in REDACTOR.redact(text, "x").redactions]
    elsewhere = [r.hmac for r in Redactor(bytes(32)).redact(text, "x").redactions]
    assert first == again
    assert len({first, other, *elsewhere}) == 4
    assert first is not None
    assert first.startswith("v1:")
    assert len(first) == 3 + 16
    assert first[3:] not in hashlib.sha256(ANTHROPIC.text.encode()).hexdigest()


def test_the_install_key_must_have_32_bytes() -> None:
    with pytest.raises(ValueError, match="32 bytes, not 5"):
        Redactor(b"short")


def test_text_with_lone_surrogates_is_redacted() -> None:
    text = f"\ud800 {GITHUB.text} \u65e5"
    assert REDACTOR.redact_text(text, "x").data == f"\ud800 ghp_...{GITHUB.text[-4:]} \u65e5"


# Time


def seconds(work: Callable[[], object], runs: int = 5) -> float:
    """The best of several, in processor time: other programs run on this machine."""
    times = []
    gc.disable()
    for _ in range(runs):
        start = time.thread_time()
        work()
        times.append(time.thread_time() - start)
    gc.enable()
    return min(times)


HOSTILE = [
    "a", "sk-", "[", '{"', "-----BEGIN ", "-----BEGIN PRIVATE KEY-----", "eyJ", "eyJ.", "5meyJ", "eyJaaaaaaaaaa.",
    "://", "://a:", "Bearer ", "Bearer a.", "gh" + "p_", "AKI", "AIz", "A", "g", "x", "xox", "\\", "\\n", "%3A", ":\\/",
    "npm_", "pypi-", "sk-A1", '"', "\n", "=",
]  # fmt: skip


@pytest.mark.parametrize("text", HOSTILE)
def test_an_adversarial_megabyte_takes_less_than_a_tenth_of_a_second(text: str) -> None:
    data = (text * (1_000_000 // len(text) + 1)).encode()[:1_000_000]
    redactor = Redactor(INSTALL_KEY, [SESSION.encode(), PLAIN.encode()])
    assert seconds(lambda: redactor.redact(data, "x")) < 0.1


@pytest.mark.parametrize(
    "text",
    [
        pytest.param("Bearer " + "a1" * 500_000, id="bearer"),
        pytest.param("xo" + "xb-" + "a1" * 500_000, id="slack"),
        pytest.param("ey" + "J" + "a" * 1_000_000, id="jwt"),
        pytest.param("-----BEGIN PRIVATE KEY-----\n" + "A" * 1_000_000, id="pem"),
        pytest.param("-----BEGIN PRIVATE KEY-----" + "\n" * 1_000_000, id="pem lines"),
        pytest.param("https://u:" + "p" * 1_000_000, id="url"),
        pytest.param("sk-" + "ant-" + "a" * 1_000_000, id="anthropic"),
    ],
)
def test_a_secret_of_a_megabyte_takes_less_than_a_tenth_of_a_second(text: str) -> None:
    data = text.encode()
    assert seconds(lambda: REDACTOR.redact(data, "x")) < 0.1


@pytest.mark.parametrize("text", ["a=", "a=" * 20 + "b", "a" + "\\" * 9, "a" + "=" * 9])
def test_an_adversarial_20_kilobyte_credential_takes_no_quadratic_time(text: str) -> None:
    data = (text * (1_000_000 // len(text))).encode()
    redactor = Redactor(INSTALL_KEY, [b"a=" * 10_000 + b"b1"], patterns=False)
    assert seconds(lambda: redactor.redact(data, "x"), 2) < 0.5


# Ten megabytes that a tool may have returned. The agent stands still while they are redacted.
def many(piece: Callable[[random.Random], str]) -> bytes:
    rnd = random.Random(5)
    block = "".join(piece(rnd) for _ in range(2_000))
    return (block * (10_000_000 // len(block) + 1)).encode()[:10_000_000]


def letters(rnd: random.Random, length: int) -> str:
    return "".join(rnd.choices(ALNUM, k=length))


FLOODS: dict[str, Callable[[], bytes]] = {
    "keys close together": lambda: many(lambda rnd: f"{rnd.choice(VENDORS).sample(rnd.randrange(9**9)).text} "),
    "short keys close together": lambda: many(lambda rnd: "sk" + f"_live_{letters(rnd, 16)} "),
    "keys in JSON": lambda: b'["' + many(lambda rnd: "sk" + f'_live_{letters(rnd, 16)}","') + b'"]',
    "keys on lines in JSON": lambda: b'["' + many(lambda rnd: "AK" + f"IA{letters(rnd, 16).upper()}\\n") + b'"]',
    "bearer tokens": lambda: many(lambda rnd: f"Bearer {letters(rnd, 15)}1 "),
    "bearer": lambda: many(lambda rnd: "Bearer "),
    "heads of private keys": lambda: many(lambda rnd: "-----BEGIN " + "PRIVATE KEY-----\n"),
    "private keys": lambda: many(lambda rnd: f"{pem(f'{rnd.randrange(99)} PRIVATE KEY', lines=1)}\n"),
    "nearly private keys": lambda: many(lambda rnd: "-----BEGIN " + f"PRIVATE KEY-----\n{'A' * 19}!\n"),
    "passwords in URLs": lambda: many(lambda rnd: "a://b:c@d "),
    "nearly passwords in URLs": lambda: many(lambda rnd: f"%3A%2F%2Fa%3A{'b' * 255}"),
    "a credential": lambda: many(lambda rnd: f"{PLAIN} "),
    "a short credential": lambda: many(lambda rnd: "hunter2 "),
    "base64": lambda: many(lambda rnd: letters(rnd, 76)),
}


@pytest.mark.parametrize("name", FLOODS)
def test_adversarial_text_takes_at_most_100_times_as_long_as_plain_text(name: str) -> None:
    redactor, flood = Redactor(INSTALL_KEY, [PLAIN.encode(), b"hunter2"]), FLOODS[name]()
    plain = many(lambda rnd: f"{letters(rnd, 7).lower()} {rnd.randrange(99)}, and so on.\n")
    usual = seconds(lambda: redactor.redact(plain, "x").data.count(b"\n"), 3)
    hostile = seconds(lambda: redactor.redact(flood, "x"), 3)
    assert hostile < 100 * usual, f"{hostile:.3f} s, and {usual:.4f} s for plain text"


@pytest.mark.parametrize("name", [name for name in FLOODS if "nearly" not in name and "heads" not in name])
def test_secrets_beyond_the_listing_limit_are_removed(name: str) -> None:
    redactor = Redactor(INSTALL_KEY, [PLAIN.encode(), b"hunter2"])
    data = FLOODS[name]()
    redacted = redactor.redact(data, "x")
    again = redactor.redact(redacted.data, "x")
    assert (again.data, again.redactions) == (redacted.data, ())
    if redacted.redactions:
        assert len(redacted.data) < len(data) / 10
        assert "too_many" in {it.rule for it in redacted.redactions}


def test_a_string_with_too_many_keys_is_truncated_and_stays_valid_json() -> None:
    keys = [vendor.sample(seed).text for seed in range(500) for vendor in VENDORS[:10]]
    document = {"a": 'x "quoted" \\', "content": "\n".join(keys) + '"', "after": ["y", GITHUB.text], "n": 1.5}
    redacted = REDACTOR.redact_text(json.dumps(document), "x")
    found = json.loads(redacted.data)
    assert [key for key in keys if key in redacted.data] == []
    assert {name: found[name] for name in ("a", "n")} == {name: document[name] for name in ("a", "n")}
    assert found["after"] == ["y", f"ghp_...{GITHUB.text[-4:]}"]
    assert found["content"].count("\n") >= 2000


def test_a_string_with_too_many_keys_is_scanned_again_when_the_text_grows() -> None:
    key = "sk" + "_live_" + "A1b2C3d4E5f6G7h8"
    earlier = json.dumps({"a": f"{key} " * 3000}).encode()
    text = earlier[:-2] + f"{key} and more".encode() + b'"}'
    check_known(REDACTOR, earlier, text, head=len(earlier) - 2, tail=2)
    assert key.encode() not in REDACTOR.redact(text, "x").data


def agent_request(size: int, seed: int = 0) -> list[dict[str, Any]]:
    """Messages of about `size` bytes, as an agent sends them: prose, code, paths, ids."""
    rnd = random.Random(seed)
    words = ["".join(rnd.choices("etaoinshrdlucmfwgypbvk", k=rnd.randint(2, 9))) for _ in range(2_000)]
    messages: list[dict[str, Any]] = []
    while size > 0:
        text = " ".join(rnd.choices(words, k=90)) + "\n    def task_id(self) -> str:  # see https://example.com/a\n"
        use = {
            "type": "tool_use",
            "id": f"toolu_{rnd.getrandbits(90):x}",
            "input": {"path": "/home/me/ask-me.py"},
        }
        messages.append({"role": "assistant", "content": [{"type": "text", "text": text}, use]})
        size -= len(text) + 180
    return messages


def test_clean_text_is_scanned_at_60_megabytes_per_second() -> None:
    data = json.dumps(agent_request(4_000_000)).encode()
    assert len(data) / seconds(lambda: REDACTOR.redact(data, "x")) > 60e6


def test_ten_new_kilobytes_in_480_take_less_than_a_millisecond() -> None:
    def body(messages: list[dict[str, Any]]) -> bytes:
        return json.dumps({"messages": messages, "tools": agent_request(20_000, seed=1)}).encode()

    history = agent_request(450_000)
    earlier, text = body(history), body(history + agent_request(10_000, seed=2))
    head = common(earlier, text)
    redactor = Redactor(INSTALL_KEY, [SESSION.encode(), ANTHROPIC.text.encode()])
    known = KnownPrefix(len(earlier), redactor.search(earlier), head=head, tail=len(earlier) - head)
    assert len(text) > 470_000
    assert seconds(lambda: redactor.search(text, known), 20) < 0.001


@pytest.mark.parametrize("before", ["Bea", "bea", "g", "%3", "gs", ""])
@pytest.mark.parametrize("start", ["rk_live_", "sk_live_", "rerk_live_"])
def test_a_key_that_starts_inside_another_key_prefix_is_removed(before: str, start: str) -> None:
    secret = "A1b2C3d4E5f6G7h8J9k0" * 2
    text = f"see {before}{start}{secret}."
    assert secret.encode() not in REDACTOR.redact(text.encode(), "text").data


BEGINNINGS = [
    *("sk-", "gs", "gsk_", "://", "Bearer", "BEGIN", "-----BEGIN ", "%3A", "eyJ", "task-", "npm_"),
    "no word " * 1000,
]


@at_leisure
@given(
    keys=st.lists(KEYS, max_size=4),
    noise=st.lists(st.sampled_from(BEGINNINGS)),
    often=st.sampled_from([1, 9, 3000]),
)
@example(keys=[ANTHROPIC], noise=["sk-"], often=3000)
@example(keys=[ANTHROPIC, ANTHROPIC], noise=BEGINNINGS[-1:], often=1)
def test_keys_are_removed_among_few_and_many_key_prefixes(keys: list[Key], noise: list[str], often: int) -> None:
    between = " ".join(noise * often)[:200_000]
    text = f" {between} ".join(["", *(key.text for key in keys), ""]).encode()
    redacted = REDACTOR.redact(text, "text")
    assert not [key for key in keys if key.text.encode() in redacted.data]
    assert len(redacted.redactions) >= len(keys)
