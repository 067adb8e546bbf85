"""Every record of our own logs: its fields, how it is encoded as a line, how a line is decoded.

Three kinds of log share the frame of `Record` and differ in their types: exchange logs (SDK logger, runner), wire logs
(proxy) and transcripts (storage). A field without a default is always written, `null` when it is not known; a field
with one is left out while it says nothing.

What a log holds beyond these types is kept: a line of an unknown type, or of a form newer than `VERSION`, decodes to
`Unknown` and encodes to the same bytes.
"""

import base64
import json
import re
from collections.abc import Callable, Mapping, Sequence
from typing import Any, Literal, cast

import msgspec
from msgspec import UNSET, UnsetType

VERSION = 1

# A value from outside, verbatim, key order included: the log reformats nothing.
Json = msgspec.Raw | UnsetType
Encoding = Literal["base64"]


class Struct(msgspec.Struct, frozen=True, kw_only=True, omit_defaults=True):
    """A structure inside a record."""


class Writer(Struct, frozen=True, kw_only=True):
    """The process that writes a part."""

    pid: int
    started: str  # when the process began to write: two processes may have the same pid
    version: str  # the version of agent-logger


class Record(msgspec.Struct, frozen=True, kw_only=True, omit_defaults=True, tag_field="type"):
    """A line of a log. The first line of a part says which log and part it is, who writes it, and which installation
    began it."""

    v: int = msgspec.field(default_factory=lambda: VERSION)  # a factory, or omit_defaults would drop it
    log: str | None = None
    part: str | None = None
    machine: str | None = None  # an id that only its own installation can compute
    writer: Writer | None = None
    mac: str | None = None  # proves with the installation's key who began the part, not what it holds


class Redaction(Struct, frozen=True, kw_only=True):
    """A secret that was taken out, by its place in the original bytes."""

    place: str
    offset: int
    length: int
    rule: str
    hmac: str | None = None


# ---------------------------------------------------------------- in every log


PartReason = Literal["owned", "full", "sealed", "sync_failed", "no_locks", "linked", "verbatim"]


class Part(Record, frozen=True, kw_only=True, tag="part"):
    """The first line of every part but the first: which one it is, and why it was begun."""

    ts: str
    kind: str  # the kind of the log
    number: int
    reason: PartReason  # why it was begun; "verbatim": what follows may not carry the ids itself
    after: str | None = None  # the part that ends where this one begins; none: both were written at once


class Gap(Record, frozen=True, kw_only=True, tag="gap"):
    """Records are missing here. The first line written once the disk took lines again."""

    ts: str
    lost: int
    since: str
    seconds: float  # monotonic, so a clock that was set meanwhile does not matter
    reason: str
    unsynced: int = 0  # written, but the sync of their part failed: they may be missing after a power cut


class Recovered(Record, frozen=True, kw_only=True, tag="recovered"):
    """The previous owner stopped in the middle of a line; it ends before this record."""

    ts: str
    torn_bytes: int


class Large(Record, frozen=True, kw_only=True, tag="large"):
    """A stand-in for a line that is too long for a log; `file` holds that line, without its newline."""

    file: str
    bytes: int


# ---------------------------------------------------------------- exchange logs


class Message(Struct, frozen=True, kw_only=True):
    """What an agent, a tool or a person said, as a part of an exchange."""

    source: str  # assistant, tool, user, system
    type: str  # text, tool_use, result, thinking, image, or the type it came with
    ts: str
    text: str | None = None
    tool_use_id: str | None = None
    name: str | None = None
    input: Json = UNSET
    is_error: bool | None = None
    output: str | None = None
    content: Json = UNSET
    message_id: str | None = None
    parent_tool_use_id: str | None = None
    origin: Json = UNSET
    usage: Json = UNSET
    model: str | None = None  # the model that answered; `<synthetic>`: none did
    stop_reason: str | None = None  # none while the usage is that of the answer's beginning
    error: str | None = None  # the kind of failure that the message reports
    tool_use_result: Json = UNSET  # the client's own, structured form of a tool's result
    raw: str | None = None  # an output line that is not a message, or a message of an unknown type
    raw_encoding: Encoding | None = None


# The sources of a cost: the client reports what is new since its last result; the difference of two values of its
# counter; the whole counter, which began with this exchange.
CostFrom = Literal["since_last_result", "difference", "own"]


class ExchangeStats(Struct, frozen=True, kw_only=True):
    """The figures of a result for its exchange. Of the client's counters, they hold the difference that this exchange
    made."""

    num_turns: int | None
    duration_ms: int | None
    duration_api_ms: int | None
    tokens_in: int | None
    tokens_out: int | None
    cache_creation: int | None
    cache_read: int | None
    cost_usd: float | None  # the cost of this exchange
    cost_from: CostFrom | None = None  # the source of the cost
    reported_total_cost_usd: float | None = None  # the client's counter, as it came
    reported_duration_api_ms: int | None = None  # likewise
    reported_model_usage: Json = UNSET  # likewise
    # The counters hold an earlier history that is not known here: no difference can be computed.
    inherited: bool = False
    model_usage: Json = UNSET  # usage by model, sub-agents and side requests included
    cache_creation_1h: int | None = None  # part of `cache_creation`
    is_error: bool | None = None  # whether the exchange failed; one that did may have the subtype `success`
    subtype: str | None = None
    terminal_reason: str | None = None
    api_error_status: int | None = None
    stop_reason: str | None = None
    permission_denials: Json = UNSET
    errors: list[str] | None = None


class Exit(Struct, frozen=True, kw_only=True):
    """How the process of a run ended."""

    status: int | None
    signal: int | None


class Tokens(Struct, frozen=True, kw_only=True):
    """Sums of tokens, by kind."""

    input: int
    output: int
    cache_creation: int
    cache_read: int


class SystemPrompt(Struct, frozen=True, kw_only=True):
    """A note that a run was given a system prompt, with an HMAC under the install's key, by which the same text is
    recognised."""

    form: str  # the option that gave it
    hmac: str | None  # none if the file could not be read


class SessionStart(Record, frozen=True, kw_only=True, tag="session_start"):
    """The first line of an exchange log: whose session it is, and where it ran."""

    session_id: str | None
    ts: str
    model: str | None
    cwd: str | None
    tools_available: list[str] | None
    permission_mode: str | None
    witness: Literal["sdk", "run"] | None = None
    init: Json = UNSET  # what the client reports about itself when it starts
    context: Json = UNSET  # the instructions and settings that applied
    agent: str | None = None  # claude-code, codex, ...
    argv: list[str] | None = None
    system_prompt: list[SystemPrompt] | None = None
    continues: str | None = None


EndReason = Literal["result", "input", "reset", "eof", "exit", "recovered"]


class ExchangeRecord(Record, frozen=True, kw_only=True, tag="exchange"):
    """The line of an exchange: what was asked, all that was said until the agent yielded, and what that took."""

    session_id: str | None
    exchange: int
    ts_start: str
    ts_end: str | None
    user_input: str | None
    messages: list[Message]
    stats: ExchangeStats | None
    id: str | None = None  # the live copy has the same
    user_content: Json = UNSET
    user_inputs: list[str] | None = None
    origin: Json = UNSET
    complete: bool = True
    end_reason: EndReason | None = None
    exit: Exit | None = None
    messages_file: str | None = None  # holds `messages`, one a line, when they are too many for a line
    file_bytes: int | None = None  # the size of that file
    redactions: list[Redaction] | None = None


class SessionEnd(Record, frozen=True, kw_only=True, tag="session_end"):
    """The last line of an exchange log: the sums over it."""

    session_id: str | None
    ts: str
    total_exchanges: int
    total_duration_ms: int
    total_duration_api_ms: int
    total_cost_usd: float | None
    total_tokens: Tokens | None  # the tokens of the last exchange
    tools_used: dict[str, int]
    billed_tokens: Tokens | None = None  # each response once, sub-agents included
    context_tokens: int | None = None
    peak_context_tokens: int | None = None
    reason: str | None = None


class Resume(Record, frozen=True, kw_only=True, tag="resume"):
    """The session continues here, in the same log."""

    session_id: str | None
    ts: str
    resumed_from: str | None = None
    argv: list[str] | None = None
    system_prompt: list[SystemPrompt] | None = None


class LiveStart(Record, frozen=True, kw_only=True, tag="live_start"):
    """The start of an exchange, in a live file."""

    id: str
    session_id: str | None
    exchange: int
    ts_start: str
    user_input: str | None = None
    user_content: Json = UNSET
    user_inputs: list[str] | None = None
    origin: Json = UNSET


class LiveMessage(Record, frozen=True, kw_only=True, tag="live_message"):
    """A message of the exchange `id`, as it came, in a live file."""

    id: str
    message: Message


# ---------------------------------------------------------------- wire logs

Headers = dict[str, str | list[str]]  # wire order and case; a repeated name has a list


class Identity(Struct, frozen=True, kw_only=True):
    """How it is known which session a call belongs to."""

    id: str | None
    source: str
    confidence: str
    candidates: list[str] | None = None  # all sessions that it could have been, the one taken first

    @property
    def session(self) -> str | None:
        """The client's id, if it names one session only."""
        return None if self.confidence == "ambiguous" else self.id


class Timing(Struct, frozen=True, kw_only=True):
    """Milliseconds from the request to the first byte of the answer and to its last."""

    ttfb_ms: float | None
    total_ms: float | None


class Chunk(Struct, frozen=True, kw_only=True):
    """A piece of a streamed answer, as it arrived."""

    delta_ms: float  # time since the previous chunk, monotonic
    ts: str | None = None
    raw: str | None = None
    raw_encoding: Encoding | None = None
    bytes: int | None = None  # instead of `raw`, when the stream is in `body_file`


class Stored(Struct, frozen=True, kw_only=True):
    """The original of what redaction had to store decoded."""

    bytes: int
    hmac: str


class WireStart(Record, frozen=True, kw_only=True, tag="session_start"):
    """The first line of a wire log: whose session it is, and which model API it calls."""

    ts: str
    provider: str
    upstream: str
    session: str | None = None
    identity: Identity | None = None
    agent: str | None = None  # claude-code, codex, ...


class Request(Record, frozen=True, kw_only=True, tag="request"):
    """A request as the client sent it, with credentials taken out."""

    ts: str
    seq: int
    method: str
    path: str
    headers: Headers
    body: str | None
    fingerprint: str | None
    call: str | None = None
    thread: str | None = None
    kind: str | None = None
    identity: Identity | None = None  # the identity of this call, where it differs from `session_start`
    bytes: int | None = None
    body_hmac: str | None = None
    body_encoding: Encoding | None = None
    body_file: str | None = None
    file_bytes: int | None = None  # the size of that file
    recoded: bool = False
    original: Stored | None = None
    retry_of: int | None = None
    deflated: bool = False  # the body is a message of a WebSocket, still compressed
    redactions: list[Redaction] | None = None
    transport: Literal["http", "websocket"] | None = None
    # How the client reached the proxy: as its proxy, by `CONNECT`; otherwise, by a base URL.
    door: Literal["forward"] | None = None
    frame: str | None = None
    head: list[str] | None = None
    head_bytes: int | None = None  # the size of the head, where a refused request is cut


class Response(Record, frozen=True, kw_only=True, tag="response"):
    """The answer to a request. `complete`: the answer has ended, with its last event or, if it is not streamed, with
    its body. `reason`: why the call ended otherwise than HTTP says it should. Both may be present: the client left
    after the last event."""

    ts: str
    seq: int
    status: int | None
    headers: Headers | None
    timing: Timing
    body: str | None = None
    chunks: list[Chunk] | None = None
    fingerprint: str | None = None
    call: str | None = None
    complete: bool | None = None
    reason: str | None = None
    http: str | None = None
    status_text: str | None = None
    trailers: Headers | None = None
    bytes: int | None = None
    body_hmac: str | None = None
    body_encoding: Encoding | None = None
    body_file: str | None = None
    file_bytes: int | None = None  # the size of that file
    recoded: bool = False
    original: Stored | None = None
    deflated: list[int] | None = None  # the places of chunks that are messages, still compressed
    message: Json = UNSET
    message_id: str | None = None
    request_id: str | None = None
    model: str | None = None
    stop_reason: str | None = None
    usage: Json = UNSET
    tokens_per_second: float | None = None
    redactions: list[Redaction] | None = None
    frame: str | None = None
    head: list[str] | None = None


class Refusals(Record, frozen=True, kw_only=True, tag="refusals"):
    """Requests that were refused between `since` and `ts`, and have no records of their own."""

    ts: str
    since: str
    count: int
    statuses: dict[str, int]  # the number of requests by the status of the answer
    frame: str | None = None


class Fork(Record, frozen=True, kw_only=True, tag="fork"):
    """The call of another session from which this one continues."""

    ts: str
    from_seq: int
    parent_session: str
    reason: str
    included: bool = False  # the parent's calls up to there stand before it: `export` made this file


class Rewrite(Record, frozen=True, kw_only=True, tag="rewrite"):
    """The history was replaced before this call, by a compaction or by the client."""

    ts: str
    seq: int
    reason: str


# ---------------------------------------------------------------- transcripts


class SessionHeader(Record, frozen=True, kw_only=True, tag="session_header"):
    """The first line of a transcript: whose session it is."""

    id: str
    created: str
    cwd: str | None
    project_path: str | None
    git_branch: str | None
    agent: str | None
    model: str | None
    version: str | None
    subpath: str | None = None  # the place of a file below its session: `subagents/agent-<id>`


class Verbatim(Record, frozen=True, kw_only=True, tag="verbatim"):
    """A line from outside whose type is one of ours: without this, it would be read as ours."""

    line: str  # the line as JSON


# ---------------------------------------------------------------- hooks


class Hook(Record, frozen=True, kw_only=True, tag="hook"):
    """The input that an agent gave its hook, in a file of its own."""

    ts: str
    input: Json = UNSET
    raw: str | None = None  # the text instead, if it is no JSON object
    raw_encoding: Encoding | None = None
    bytes: int | None = None  # the size of the event, where only the beginning was stored
    redactions: list[Redaction] | None = None
    context: Json = UNSET  # the instructions and settings that applied when the session began


class Unknown(msgspec.Struct, frozen=True):
    """A line that none of the types above describes, kept whole for the reader that will know it."""

    raw: bytes


AnyRecord = Record | Unknown
Kind = Literal["exchange", "live", "wire", "transcript", "hook"]

_EVERYWHERE: tuple[type[Record], ...] = (Part, Gap, Recovered, Large)
KINDS: Mapping[Kind, tuple[type[Record], ...]] = {
    "exchange": (SessionStart, ExchangeRecord, SessionEnd, Resume, *_EVERYWHERE),
    "live": (LiveStart, LiveMessage),
    "wire": (WireStart, Request, Response, Refusals, Fork, Rewrite, *_EVERYWHERE),
    "transcript": (SessionHeader, Verbatim, *_EVERYWHERE),
    "hook": (Hook,),
}


def tag(record: type[Record] | Record) -> str:
    """Return the `type` that lines of this record have."""
    return str(record.__struct_config__.tag)


# ---------------------------------------------------------------- lines

_encoder = msgspec.json.Encoder()


def encode(record: AnyRecord) -> bytes:
    """The line of a record, without its newline."""
    if isinstance(record, Unknown):
        return record.raw
    try:
        return _encoder.encode(record)
    except UnicodeEncodeError:  # half a character, which agents do cut out of texts; JSON can say it in ASCII
        return json.dumps(msgspec.to_builtins(record, enc_hook=_parsed), separators=(",", ":")).encode("ascii")


def encode_line(record: AnyRecord) -> bytes:
    """Encode a record with its newline: adding the newline afterwards would copy the whole line."""
    if isinstance(record, Unknown):
        return record.raw.removesuffix(b"\n") + b"\n"
    try:
        return _encoder.encode_lines([record])
    except UnicodeEncodeError:
        return encode(record) + b"\n"


def _parsed(raw: msgspec.Raw) -> Any:
    return json.loads(bytes(raw))


class _Head(msgspec.Struct):
    type: str
    v: int = 0
    provider: str | None = None
    kind: str | None = None
    session_id: Json = UNSET


_head = msgspec.json.Decoder(_Head)
_decoders = {kind: {tag(record): msgspec.json.Decoder(record) for record in records} for kind, records in KINDS.items()}


def decode(line: bytes, kind: Kind) -> AnyRecord:
    """The record of a line of such a log.

    Raises `ValueError` for a line that is not JSON, and for one of a known type and version
    whose fields do not fit: the caller quarantines it. Half a character is read as U+FFFD.
    """
    try:
        head = _head.decode(line)
    except msgspec.ValidationError:  # JSON, but not one of our records
        return Unknown(line)
    except msgspec.DecodeError as error:
        record = decode(_without_half_characters(line, error), kind)
        return Unknown(line) if isinstance(record, Unknown) else record
    decoder = _decoders[kind].get(head.type)
    if decoder is None or head.v > VERSION:
        return Unknown(line)
    return decoder.decode(line if head.v == VERSION else _lifted(line, head.v))


def _without_half_characters(line: bytes, error: msgspec.DecodeError) -> bytes:
    try:
        text = json.dumps(json.loads(line), ensure_ascii=False)
    except (ValueError, RecursionError):
        raise error from None
    if not _HALF_CHARACTER.search(text):
        raise error
    return _HALF_CHARACTER.sub("\ufffd", text).encode()


_HALF_CHARACTER = re.compile("[\ud800-\udfff]")


_KIND_OF_TYPE: Mapping[str, Kind] = {
    tag(record): kind for kind, types in KINDS.items() for record in types if record not in _EVERYWHERE
}


def kind_of(line: bytes) -> Kind | None:
    """Which kind of log a line stands in; `None` if it does not say, or is somebody else's."""
    try:
        head = _head.decode(line)
    except ValueError:
        return None
    if head.type == "part":
        return next((kind for kind in KINDS if kind == head.kind), None)
    if head.type == "session_start":  # other programs' files have such lines, too; ours have the id, if only as null
        return "wire" if head.provider else "exchange" if head.session_id is not UNSET else None
    return _KIND_OF_TYPE.get(head.type)


# ---------------------------------------------------------------- older forms


def _lift_0(line: dict[str, Any]) -> dict[str, Any]:
    """Convert a line of version 0, the form of the specification's own examples: no `v`, the client's counter as the
    cost."""
    stats = line.get("stats")
    if line["type"] == "exchange" and isinstance(stats, dict):
        line["stats"] = {"duration_api_ms": None, **stats, "reported_total_cost_usd": stats.get("cost_usd")}
    if line["type"] == "request":
        line = {"fingerprint": None, "body": None, **line}
    return line


# The function for n lifts a record from version n to n + 1.
LIFTS: Mapping[int, Callable[[dict[str, Any]], dict[str, Any]]] = {0: _lift_0}


def _lifted(line: bytes, version: int) -> bytes:
    fields = msgspec.json.decode(line)
    for step in range(version, VERSION):
        fields = {**LIFTS[step](fields), "v": step + 1}
    return _encoder.encode(fields)


# ---------------------------------------------------------------- bytes as text


def as_text(data: bytes) -> tuple[str, Encoding | None]:
    """Bytes as text for a JSON string, and the encoding to write beside it: `None` if they are plain UTF-8."""
    try:
        return data.decode("utf-8"), None
    except UnicodeDecodeError:
        return base64.b64encode(data).decode("ascii"), "base64"


def as_texts(pieces: Sequence[bytes]) -> list[tuple[str, Encoding | None]]:
    """Several pieces, as `as_text` returns each."""
    try:
        return [(piece.decode("utf-8"), None) for piece in pieces]
    except UnicodeDecodeError:
        return list(map(as_text, pieces))


def encoded_text(json: msgspec.Raw) -> str:
    """A text that is JSON already, for a field of a record that is only to be written: it is not encoded again."""
    return cast("str", json)


def as_bytes(text: str | msgspec.Raw, encoding: Encoding | None) -> bytes:
    """Return the bytes that `as_text` turned into a text."""
    if isinstance(text, msgspec.Raw):  # of `encoded_text`
        text = msgspec.json.decode(text, type=str)
    return base64.b64decode(text) if encoding == "base64" else text.encode("utf-8")
