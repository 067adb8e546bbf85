"""What is known of earlier requests saves work and changes no byte: the records are those of a recorder that knows
nothing of them."""

import json
import re
import shutil
import tempfile
import time
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from agent_logger import platform
from agent_logger.home.layout import install_key
from agent_logger.model.redaction.redactor import Redactor
from agent_logger.providers.request_body import Api
from agent_logger.proxy.recorder import call_writer
from agent_logger.proxy.recorder.calls import known_request
from agent_logger.proxy.recorder.calls.known_request import KnownRequests, RequestText
from agent_logger.proxy.spool.folder import spool_folder
from agent_logger.proxy.spool.frames import CredentialFrame
from agent_logger.proxy.spool.spool import Spool
from agent_logger.proxy.tracking.fingerprint import Fingerprints
from tests.proxy.recorder.test_encoded_requests import BACK_ENDS, Turn, packed
from tests.proxy.spooling import Relay, record

# The last ones are removed only where nothing that belongs to them stands beside them.
KEYS = [
    *(b"sk-ant-api03-" + letter * 30 + b"wxyz" for letter in (b"Q9z", b"kR4", b"m7T")),
    b"hunter2x",
    b"7302945816",
    b"two words-of a pass/phrase==",
]
PEM = f"-----BEGIN OPENSSH PRIVATE KEY-----\n{'MIIEpAIBA7b' * 7}\n{'q8Xw' * 9}\n-----END OPENSSH PRIVATE KEY-----"
PATTERNS = ["sk-proj-" + "a1B2c3D4" * 6, "ghp_" + "Ab3" * 12, "AKIA" + "Q7" * 8, PEM, PEM.replace("\n", " ")]
SECRETS = [key.decode() for key in KEYS] + PATTERNS
NEVER = 1 << 40
INSTALL_KEY = bytes(range(32))
PART_FIELDS = re.compile(rb'"log":"[^"]*","part":"[^"]*",("machine":"[^"]*",)?"writer":{[^}]*},("mac":"[^"]*",)?')
CANDIDATES, CALL = re.compile(rb'"candidates":\[([^]]*)\]'), re.compile(rb'"call":"([^"]*)"')


@dataclass(frozen=True)
class Sent:
    """One request. `key`: which of `KEYS` it carries; `pieces`: how many bytes arrive at once; `restart`: relay and
    recorder begin again before it."""

    body: bytes
    key: int = 0
    encoding: str = ""
    pieces: int = 1 << 20
    restart: bool = False


@dataclass
class Conversation:
    """The messages of a client, which it changes and sends again and again."""

    texts: list[str] = field(default_factory=list)

    def turns(self) -> tuple[list[Turn], str]:
        """All pairs of messages but the last one, and what is said last."""
        said = self.texts if len(self.texts) % 2 else self.texts[:-1]
        return list(zip(said[:-1:2], said[1::2], strict=False)), said[-1]


def halves(secret: str) -> list[str]:
    middle = len(secret) // 2
    return [secret[:middle], secret[middle:]]


ATOMS = st.sampled_from(
    [
        *SECRETS,
        *(half for secret in SECRETS for half in halves(secret)),
        *('"', "\\", "}", "},", "]", "{", " ", "\n", "Bearer ", "password=", "é€😀", "\u2028", "\x00", "/", "\ud83d"),
        *('"},{"role":"user","content":"', "word ", "x" * 60, "the same text again and again " * 5),
    ]
)
TEXTS = st.lists(ATOMS, min_size=1, max_size=6).map("".join)
SEPARATORS = st.sampled_from([(",", ":"), (", ", ": "), (" ,\n", ":\t")])


@st.composite
def requests(draw: st.DrawFn, back_end: str) -> list[Sent]:
    texts = st.lists(TEXTS, min_size=1, max_size=6)
    conversations = [Conversation(draw(texts)) for _ in range(draw(st.sampled_from([1, 1, 2])))]
    separators, ascii_only, key = draw(SEPARATORS), draw(st.booleans()), 0
    encoding = draw(st.sampled_from(["", "", "", "zstd", "gzip"]))
    sent: list[Sent] = []
    for _ in range(draw(st.integers(2, 5))):
        conversation = draw(st.sampled_from(conversations))
        turns, said = conversation.turns()
        body = BACK_ENDS[back_end].request(turns, said)
        body |= draw(st.sampled_from([{}, {}, {}, {"metadata": {"user_id": "u"}}, {"tools": [{"name": "other"}]}]))
        if draw(st.integers(0, 5)) == 0:
            body = dict(reversed(body.items()))
        text = json.dumps(body, separators=separators, ensure_ascii=ascii_only)
        data = damaged(draw, text.encode("utf-8", "surrogatepass"))
        pieces = draw(st.sampled_from([1 << 20, 1 << 20, 99]))
        sent.append(Sent(data, key, encoding, pieces, restart=draw(st.integers(0, 7)) == 0))
        change(draw, conversation)
        if draw(st.integers(0, 3)) == 0:
            key = draw(st.integers(0, len(KEYS) - 1))
        if draw(st.integers(0, 5)) == 0:
            separators, ascii_only = draw(SEPARATORS), draw(st.booleans())
    return sent


def change(draw: st.DrawFn, conversation: Conversation) -> None:
    """Go on with the conversation, most often; otherwise change what was said."""
    texts = conversation.texts
    match draw(st.sampled_from(["append"] * 5 + ["edit", "edit last", "drop", "cut", "same", "glue"])):
        case "append":
            texts += draw(st.lists(TEXTS, min_size=1, max_size=3))
        case "edit":
            texts[draw(st.integers(0, len(texts) - 1))] = draw(TEXTS)
        case "edit last":
            texts[-1] += draw(TEXTS)
        case "drop" if len(texts) > 1:
            del texts[draw(st.integers(0, len(texts) - 1))]
        case "cut":
            del texts[draw(st.integers(1, len(texts))) :]
        case "glue" if len(texts) > 1:
            texts[-2:] = [texts[-2] + texts[-1]]


def damaged(draw: st.DrawFn, data: bytes) -> bytes:
    """Most often as it is; otherwise with a byte that is no text, a field twice, or cut."""
    match draw(st.sampled_from(["whole"] * 9 + ["byte", "twice", "cut"])):
        case "byte":
            at = draw(st.integers(0, len(data)))
            return data[:at] + b"\xff" + data[at:]
        case "twice":
            return data[:-1] + b',"messages":[{"role":"user","content":"once more"}]}'
        case "cut":
            return data[: draw(st.integers(1, len(data)))]
    return data


class World:
    """A log folder. What a relay spools is recorded there, with or without what is known of earlier requests."""

    def __init__(self, folder: Path) -> None:
        self.log_dir, self.home = folder / "logs", folder / "home"

    def spool(self, sent: Sequence[Sent], back_end: str) -> list[CredentialFrame]:
        credentials: list[CredentialFrame] = []
        spool = Spool(spool_folder(self.log_dir), send_credential=credentials.append, memory_bytes=1 << 26)
        relay, path = Relay(spool), BACK_ENDS[back_end].path.encode()
        for number, request in enumerate(sent):
            lines = [
                b"POST /openai/back.end.example%b HTTP/1.1" % path,
                b"Host: 127.0.0.1:8080",
                b"User-Agent: " + BACK_ENDS[back_end].agent.encode(),
                b"Authorization: Bearer " + KEYS[request.key],
                *([b"Content-Encoding: " + request.encoding.encode()] if request.encoding else []),
            ]
            body = packed(request.encoding, request.body) if request.encoding else request.body
            answer = json.dumps(BACK_ENDS[back_end].answer(f"answer {number}", number)).encode()
            head = b"\r\n".join(lines) + b"\r\n\r\n"
            pieces = [body[at : at + request.pieces] for at in range(0, len(body), request.pieces)]
            relay.call(head=head, path=path, body=pieces, answer=[answer], secrets=[KEYS[request.key]])
            # Of sessions last active in the same millisecond, a random name decides which was the last.
            time.sleep(0.002)
        assert spool.close()
        return credentials

    def lines(self) -> list[bytes]:
        """The records of the calls, as they are on the disk, without what the first one of a part says of the part.

        Part of a session's name is drawn at random; here a session is called by its first call instead.
        """
        files = {path.stem.encode(): path.read_bytes() for path in self.log_dir.rglob("*.jsonl")}
        calls = {name: call[1] for name, data in files.items() if (call := CALL.search(data))}

        def candidates(names: re.Match[bytes]) -> bytes:
            chosen, *others = (calls[name] for name in re.findall(rb'[^",]+', names[1]))
            return b'"candidates":[%b]' % b",".join([chosen, *sorted(others)])

        return sorted(
            CANDIDATES.sub(candidates, PART_FIELDS.sub(b"", line))
            for data in files.values()
            for line in data.splitlines(keepends=True)
            if line.startswith((b'{"type":"request"', b'{"type":"response"'))
        )


def with_restarts(sent: Sequence[Sent]) -> Iterator[Sequence[Sent]]:
    start = 0
    for at in [index for index, request in enumerate(sent) if request.restart and index] + [len(sent)]:
        yield sent[start:at]
        start = at


def check_records(sent: Sequence[Sent], back_end: str) -> None:
    folder = Path(tempfile.mkdtemp(prefix="known"))
    try:
        knowing, plain = World(folder / "knowing"), World(folder / "plain")
        key = install_key(folder / "installation")
        for world in (knowing, plain):
            world.home.mkdir(parents=True)
            (world.home / "key").write_bytes(key)
        for group in with_restarts(sent):
            credentials = knowing.spool(group, back_end)
            shutil.rmtree(spool_folder(plain.log_dir), ignore_errors=True)
            shutil.copytree(spool_folder(knowing.log_dir), spool_folder(plain.log_dir))
            for world, smallest in ((knowing, 1), (plain, NEVER)):
                with pytest.MonkeyPatch.context() as patch:
                    patch.setattr(call_writer, "SMALLEST_KNOWN", smallest)
                    patch.setattr(known_request, "WAYPOINT_BYTES", 200)
                    patch.setattr(platform, "sync", lambda _: None)  # nothing is lost here, and a busy disk is slow
                    record(world.log_dir, world.home, credentials)
        assert knowing.lines() == plain.lines()
        assert len(plain.lines()) == 2 * len(sent)
    finally:
        shutil.rmtree(folder)


SETTINGS = settings(max_examples=15, suppress_health_check=[HealthCheck.too_slow], deadline=None)


@pytest.mark.parametrize("back_end", BACK_ENDS)
@SETTINGS
@given(st.data())
def test_a_request_with_a_known_beginning_has_the_record_that_it_has_without_it(back_end: str, data: Any) -> None:
    check_records(data.draw(requests(back_end)), back_end)


# ---------------------------------------------------------------- the text alone: many more examples

APIS: dict[str, Api] = {"Anthropic": "messages", "Copilot, chat": "chat", "Codex": "responses", "Gemini": "gemini"}


def check_texts(texts: Sequence[tuple[bytes, Sequence[bytes]]], api: Api) -> None:
    """Check the results of these texts, each searched for credentials of its own."""
    known, fingerprints = KnownRequests(), Fingerprints(INSTALL_KEY)
    for text, credentials in texts:
        request = known.begin(text)
        assert results_of(request, api, credentials, fingerprints) == results_of(
            RequestText(text), api, credentials, Fingerprints(INSTALL_KEY)
        )
        known.remember(request)


def results_of(request: RequestText, api: Api, credentials: Sequence[bytes], fingerprints: Fingerprints) -> Any:
    body = request.history.read(api)
    units = body.units(api) if body else []
    states = request.history.roll(fingerprints, api, fingerprints.start(api), units).states
    request.note_history(api)
    spans = request.search(Redactor(INSTALL_KEY, credentials)).spans
    return request.hmac(INSTALL_KEY), list(map(bytes, units)), states, spans, request.encoded()


@st.composite
def edited(draw: st.DrawFn, back_end: str) -> list[tuple[bytes, Sequence[bytes]]]:
    """Requests, and now and then one that was edited anywhere in its text."""
    texts = []
    for body in [sent.body for sent in draw(requests(back_end))]:
        texts.append(body)
        if draw(st.booleans()):
            start, end = sorted((draw(st.integers(0, len(body))), draw(st.integers(0, len(body)))))
            end = min(end, start + draw(st.sampled_from([0, 1, 9, 1 << 20])))
            texts.append(body[:start] + draw(ATOMS).encode("utf-8", "surrogatepass") + body[end:])
    return [(text, draw(st.lists(st.sampled_from(KEYS), unique=True))) for text in texts]


@pytest.mark.parametrize("back_end", APIS)
@settings(SETTINGS, max_examples=100)
@given(st.data())
def test_known_requests_change_no_result_of_a_text(back_end: str, data: Any) -> None:
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(known_request, "WAYPOINT_BYTES", 200)
        check_texts(data.draw(edited(back_end)), APIS[back_end])
