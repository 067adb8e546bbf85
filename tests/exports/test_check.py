"""The check of finished output: stricter than redaction, wherever the output is cut."""

import base64
import json
from collections.abc import Iterator

import pytest

from agent_logger.exports.check import BLOCK_BYTES, check
from agent_logger.exports.masks.mask import KINDS, Machine, Pseudonyms, SessionMask

KEY = "sk-ant-api03-" + "Qz7" * 20
MASK = SessionMask(frozenset(KINDS), Pseudonyms(bytes(32)), Machine((), ("ann", "user")))


def rules(data: bytes, *masks: SessionMask) -> list[str]:
    return [hit.rule for hit in check([data], masks=masks)]


@pytest.mark.parametrize(
    ("text", "rule"),
    [
        pytest.param(f"key {KEY}", "anthropic", id="plain"),
        pytest.param(json.dumps({"a": json.dumps({"b": KEY})}), "anthropic", id="JSON in JSON"),
        pytest.param(KEY.replace("-", "\\u002d"), "anthropic", id="escaped"),
        pytest.param(KEY.replace("-", "%2D"), "anthropic", id="percent-encoded"),
        pytest.param(KEY.replace("-", "&#45;"), "anthropic", id="HTML"),
        pytest.param(base64.b64encode(f"key={KEY}".encode()).decode(), "key in base64", id="base64"),
        pytest.param('password = "hunter2-of-ours"', "assignment", id="password"),
        pytest.param("export DB_PASSWORD=Tr0ub4dor3", "assignment", id="variable"),
        pytest.param(r"{\"client_secret\":\"a8Zk20cVb\"}", "assignment", id="in JSON"),
    ],
)
def test_secrets_are_hits_whatever_their_form(text: str, rule: str) -> None:
    assert rule in rules(text.encode())


@pytest.mark.parametrize(
    "text",
    [
        "token = get_token()",
        "password: [redacted]",
        "api_key = sk-ant-...Qz7Q",
        "secret = 'something'",
        '"sessionId":"8dba5ee3-f846-43a2-ba00-364128d3bee5"',
        "msg_014ab34dc2fdb610c2a2b3e1ca",
        '"max_tokens": 32000',
    ],
)
def test_ordinary_text_is_no_hit(text: str) -> None:
    assert rules(text.encode()) == []


def test_a_text_that_a_mask_should_have_replaced_is_a_hit() -> None:
    assert rules(b"in /home/bob/x", MASK) == ["mask"]
    assert rules(b"by ann", MASK) == ["mask"]
    assert rules(b'{"role":"user"}', MASK) == []
    assert rules(MASK.text("by ann in /home/bob/x, a@b.org").encode(), MASK) == []


@pytest.mark.parametrize("place", [0, BLOCK_BYTES - 30, BLOCK_BYTES, 3 * BLOCK_BYTES + 7])
def test_a_key_is_found_once_at_any_place(place: int) -> None:
    data = b"x" * place + b"\n" + KEY.encode() + b"\n" + b"y" * (2 * BLOCK_BYTES)

    def chunks() -> Iterator[bytes]:
        for at in range(0, len(data), 100_003):
            yield data[at : at + 100_003]

    hits = [hit for hit in check(chunks()) if hit.rule == "anthropic"]
    assert [(hit.line, hit.count) for hit in hits] == [(2, 1)]


def test_a_masked_text_has_no_hits_wherever_it_is_cut() -> None:
    mask = SessionMask(frozenset(KINDS), Pseudonyms(bytes(32)), Machine(("/work/shop",), ("Ann Lee",)))
    line = mask.text("Ann Lee reads /home/bob/shop/plan.md, /work/shop/x and ann@corp.example.org; ").encode()
    for size in (1 << 20, 70_001, 4096):
        text = line * ((5 << 20) // len(line))
        chunks = (text[at : at + size] for at in range(0, len(text), size))
        assert list(check(chunks, masks=[mask])) == []


@pytest.mark.parametrize("at", [0, *range((1 << 20) - 60, (1 << 20) + 5, 5), (2 << 20) - 70_000, (3 << 20) - 20])
def test_a_text_that_is_not_masked_is_a_hit_wherever_it_is_cut(at: int) -> None:
    mask = SessionMask(frozenset({"paths"}), Pseudonyms(bytes(32)), Machine())
    text = b"word " * (at // 5) + b"/home/bob/shop " + b"word " * (((3 << 20) - at) // 5)
    chunks = (text[start : start + (1 << 20)] for start in range(0, len(text), 1 << 20))
    assert {hit.rule for hit in check(chunks, masks=[mask])} == {"mask"}
