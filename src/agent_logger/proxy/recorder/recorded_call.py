"""A request and its response, from the frames of a call to two records.

A call over HTTP is one pair; on a WebSocket each message of the client and its answer is one.
"""

import re
from collections.abc import Callable
from dataclasses import dataclass, replace
from pathlib import Path

import msgspec
from msgspec import UNSET

from agent_logger.model.records import Headers, Json, Redaction, Request, Response
from agent_logger.protocols.encodings import DecodeError, decode
from agent_logger.providers.answer import Answer, tokens_per_second
from agent_logger.providers.ending import has_ended, is_answered
from agent_logger.providers.registry import Dialect, dialect_of
from agent_logger.proxy.call_state import (
    CallState,
    Collected,
    StatusLine,
    is_stream,
    method_of,
    status_line,
    stream_end,
)
from agent_logger.proxy.recorder.heads import NO_FIELDS, HeadFields, Secrets, cut_head
from agent_logger.proxy.recorder.large import LARGE_BYTES, Disk, LargeBody
from agent_logger.proxy.recorder.logs import LogName
from agent_logger.proxy.recorder.payload import (
    SMALLEST_KNOWN,
    BodyPolicy,
    KnownBody,
    StoredBody,
    hide_pieces,
    store_body,
)
from agent_logger.proxy.spool.frames import RequestHeadFrame
from agent_logger.proxy.tracking.tracker import Decision

TOGETHER_BYTES = 64 << 10  # a body up to this is searched together with its head
_TOLD_BY = frozenset((b"{", b"[", b"e", b"d", b":"))  # how JSON and event streams begin
UNDERSTOOD_BYTES = 24 << 20  # of a body; no provider takes much more, and it has to be in memory
_ENCODED = re.compile(rb"\r\ncontent-encoding:", re.IGNORECASE)
REQUEST_IDS = ("request-id", "x-request-id", "x-oai-request-id")


@dataclass(slots=True)
class RecorderContext:
    """What a pair works with: the install's key, and where large bodies go."""

    key: bytes
    folder: Path
    disk: Disk


@dataclass(slots=True)
class RequestStart:
    """The head of a request with its credentials in place; `unknown` of them were not available."""

    frame: RequestHeadFrame
    head: bytes
    path: bytes
    unknown: int
    credentials: frozenset[int]
    start: bytes = b""  # the request line
    lines: bytes = b""  # those behind it

    def __post_init__(self) -> None:
        self.start, self.lines = cut_head(self.head)


@dataclass(slots=True)
class Written:
    """A record, and the file that is to become its body."""

    record: Request | Response
    file: Path | None = None
    file_name: str = ""


class _Body:
    """The body of one direction."""

    large: LargeBody | None = None
    unknown = 0  # credentials that could not be put back: what the bytes were is not known
    size = 0

    def __init__(self) -> None:
        self.pieces: list[bytes] = []  # of a large one, to be understood all the same

    def also(self, text: bytes) -> None:
        """Keep the text too, as long as it is not too large, and begins as JSON or events do."""
        first, self.size = not self.size, self.size + len(text)
        if self.size > UNDERSTOOD_BYTES:
            self.pieces = []
        elif self.pieces or (first and text.lstrip()[:1] in _TOLD_BY):
            self.pieces.append(text)


class RecordedCall:
    seq = 0
    log: LogName | None = None  # where its request is
    decision: Decision | None = None
    answer: Answer | None = None  # once the response has ended
    complete = False  # the answer has ended
    reason: str | None = None  # why the call ended otherwise than it should, also if its answer is complete
    message = False  # of a WebSocket
    asked_deflated = False  # its request is as it came, for it inflates to too much
    _status = b""
    _answered: bytes | None = None  # the lines of the response's head
    _fields: HeadFields | None = None  # the same, redacted when first needed
    _by_name: dict[str, str] | None = None
    _message = _usage = b""  # of the answer, in JSON
    _clean = False  # nothing is to be taken out of these
    _how: BodyPolicy | None = None  # the request's body is looked at

    def __init__(
        self, request: RequestStart, call_id: str, ns: int, secrets: Secrets, bench: RecorderContext
    ) -> None:
        self.request_start, self.id = request, call_id
        self.call = CallState(ns)
        self.secrets = secrets  # those of the response are added when it has begun
        self._bench = bench
        self._request, self._response = _Body(), _Body()
        self.deflated_chunks: list[int] = []  # the same of its answers

    # ------------------------------------------------------------ frames

    def request_data(self, data: bytes, ns: int, unknown: int = 0) -> None:
        self.call.request_data(data, ns)
        self._request.unknown += unknown
        if self.call.request.size > LARGE_BYTES:
            self._spill(self._request, self.call.request, f"{self.id}.request", self._request_treatment)

    def response_head(self, head: bytes, ns: int, secrets: Secrets) -> None:
        self.call.response_head(head, ns)
        if self.call.head is None:
            return  # an interim one
        self.secrets = secrets
        self._status, self._answered = cut_head(head)

    def response_data(self, data: bytes, ns: int, *, ends_chunk: bool = True, unknown: int = 0) -> None:
        self.call.response_data(data, ns, ends_chunk=ends_chunk)
        self._response.unknown += unknown
        if self.call.response.size > LARGE_BYTES:
            self._spill(self._response, self.call.response, f"{self.id}.response", self._response_treatment)

    def header(self, name: str) -> str:
        """A header of the response; the name is in lower case."""
        if self._by_name is None:
            self._by_name = self._response_fields().by_name()
        return self._by_name.get(name, "")

    def _response_fields(self) -> HeadFields:
        if self._fields is None:
            self._fields, _ = self.secrets.fields(self._answered or NO_FIELDS)
        return self._fields

    def begin_message_answer(self, ns: int) -> None:
        """Begin the answer to a message. On a WebSocket it has no head but that of the upgrade."""
        if self.call.head is None:
            self._status = b"HTTP/1.1 101 Switching Protocols"
            self.call.response_head(self._status, ns)

    def skip_request(self) -> None:
        """Drop the request: its record is in the log already."""
        self.call.request.take()
        _discard(self._request)

    def skip_response(self) -> None:
        self.call.response.take()
        _discard(self._response)

    # ------------------------------------------------------------ what was asked and answered

    @property
    def status(self) -> int | None:
        return status_line(self._status).status

    @property
    def path(self) -> str:
        return self.request_start.path.decode("latin-1")

    @property
    def shown_path(self) -> str:
        """The path without its query, and without what looks like a key."""
        return self.secrets.target(self.request_start.path).data.decode("latin-1").partition("?")[0]

    def redact(self, text: str) -> str:
        return self.secrets.redactor.redact_text(text, "").data

    def question(self) -> bytes:
        """The body of the request, its encoding undone; empty if it is too large, or not in the encoding it claims."""
        body, collected = self._request, self.call.request
        if body.large:
            body.large.add(*collected.take())
            return b"".join(body.pieces)
        if len(collected.pieces) > 1:
            collected.pieces, collected.times = [b"".join(collected.pieces)], collected.times[:1]
        data = collected.pieces[0] if collected.pieces else b""
        encoding = self._request_treatment().encoding
        try:
            return decode(data, encoding) if data and encoding else data
        except DecodeError:
            return b""

    def rejoin(self) -> None:
        """Read the answer, now that the call has ended."""
        call = self.call
        messages = call.response.pieces if self.message and not self._response.large else ()
        clean = call.response.size < TOGETHER_BYTES
        if clean:
            self._fields, clean = self.secrets.fields(self._answered or NO_FIELDS, call.response.whole())
        stored = self._stored_body(self._response, call.response, self._response_treatment, None, clean=clean)
        self._answer_kept = stored
        if dialect := self._dialect():
            reader = dialect.reader(messages=self.message)
            for piece in messages or self._response.pieces or (stored.text,):
                reader.feed(piece)
            self.answer = self._without_keys(reader.finish(framed=call.reason is None))
            if not self._clean:
                hide_pieces(stored, self._response_treatment())
        ended = self._has_ended(stored)
        self.complete, self.reason = ended and not call.holes, call.outcome(stream_ended=ended)
        self._response.pieces, stored.text, stored.pieces = [], b"", ()

    def _has_ended(self, stored: StoredBody) -> bool:
        framed, answer = self.call.reason is None, self.answer
        if self.message:
            return framed or bool(answer and answer.ended)
        how = self._response_treatment()
        if stored.file and not self._response.pieces:  # it was not read
            return framed if stored.stream_ended is None else stored.stream_ended
        understood = answer if is_answered(self.status) and how.is_readable else None
        return has_ended(understood, stored.text, framed=framed, in_pieces=how.stream)

    def _without_keys(self, answer: Answer) -> Answer:
        """Redact the answer's names. They come from outside too: an upstream may answer with the key as the model, or
        as an id.

        All parts of an answer are searched together, for nearly always there is nothing to redact.
        """
        if answer.message is not None:
            self._message = msgspec.json.encode(answer.message)
        if answer.raw_usage is not None:
            self._usage = msgspec.json.encode(answer.raw_usage)
        names = (answer.message_id, answer.model, answer.stop_reason)
        text = "\n".join(filter(None, names)).encode("utf-8", "surrogatepass")
        every = b"\n".join(filter(None, (text, self._message, self._usage)))
        self._clean = not every or not self.secrets.redactor.redact(every, "").redactions
        if self._clean:
            return answer
        message_id, model, stop_reason = (name and self.redact(name) for name in names)
        return replace(answer, message_id=message_id, model=model, stop_reason=stop_reason)

    def _dialect(self) -> Dialect | None:
        is_request = self.message or self.request_start.head.startswith(b"POST ")
        return dialect_of(self.request_start.frame.provider, self.path) if is_request else None

    # ------------------------------------------------------------ records

    def request_record(
        self, *, ts: str, seq: int, frame: str, upstream: str | None, known_body: KnownBody | None
    ) -> Written:
        """The record of the request. `upstream` is that of the log: a head that says the same need not be written
        out."""
        request, call, decision = self.request_start, self.call, self.decision
        small = call.request.size < SMALLEST_KNOWN
        fields, clean = self.secrets.fields(request.lines, call.request.whole() if small else b"")
        clean = clean and small
        stored = self._stored_body(
            self._request, call.request, self._request_treatment, known_body, clean=clean
        )
        redactions = list(stored.redactions)
        path = self.secrets.target(request.path)
        redactions += path.redactions
        headers, head = self._request_head(fields, redactions, upstream)
        record = Request(
            ts=ts,
            seq=seq,
            method=self.secrets.text(method_of(request.head)),
            path=path.data.decode("latin-1"),
            headers=headers,
            head=head,
            body=stored.body,
            body_encoding=stored.encoding,
            fingerprint=decision.fingerprint if decision else None,
            thread=decision.thread if decision else None,
            kind=decision.kind if decision else None,
            identity=decision.of_request if decision else None,
            retry_of=decision.retry_of if decision else None,
            call=self.id,
            bytes=stored.bytes,
            body_hmac=None if self._request.unknown else stored.hmac,
            file_bytes=stored.file_bytes or None,
            recoded=stored.recoded,
            original=stored.original,
            redactions=redactions or None,
            transport="websocket" if request.frame.websocket else "http",
            deflated=self.asked_deflated,
            frame=frame,
        )
        return Written(record, stored.file, self.id)

    def _request_head(
        self, fields: HeadFields, redactions: list[Redaction], upstream: str | None
    ) -> tuple[Headers, list[str] | None]:
        if self.message:
            return {}, None
        request, frame, trailers = self.request_start, self.request_start.frame, self.call.request_trailers
        redactions += fields.redactions
        usual = b"%b /%b/%b%b HTTP/1.1" % (
            request.start.partition(b" ")[0],
            frame.provider.encode(),
            frame.upstream.encode(),
            request.path,
        )
        if fields.exact and request.start == usual and upstream == frame.upstream and not trailers:
            return fields.headers, None
        method, target, version = self.secrets.request_line(request.start)
        line = (method + target.data + version).decode("latin-1")
        head = [line, *fields.texts()]
        return fields.headers, head + (["", *self._trailers(trailers).texts()] if trailers else [])

    def _trailers(self, trailers: bytes) -> HeadFields:
        return self.secrets.fields(b"\r\n" + trailers + b"\r\n")[0]

    def response_record(self, *, ts: str, seq: int, frame: str, fingerprint: str | None) -> Written:
        """The record of the response. Call `rejoin` first."""
        call, stored = self.call, self._answer_kept
        received = call.response
        answer = self.answer or Answer()
        redactions = list(stored.redactions)
        line = status_line(self._status)
        headers, head = self._answer_head(line, redactions)
        trailers = self._trailers(call.response_trailers) if call.response_trailers else None
        redactions += trailers.redactions if trailers else ()
        message = self._redacted(self._message, "message", redactions)
        record = Response(
            ts=ts,
            seq=seq,
            status=line.status,
            headers=headers,
            head=head,
            timing=call.timing(),
            body=stored.body,
            body_encoding=stored.encoding,
            chunks=stored.chunks,
            call=self.id,
            complete=self.complete,
            reason=self.reason,
            http=line.http,
            status_text=self.secrets.text(line.text) if line.text else line.text,
            trailers=trailers.headers if trailers else None,
            bytes=stored.bytes,
            body_hmac=None if self._response.unknown else stored.hmac,
            file_bytes=stored.file_bytes or None,
            recoded=stored.recoded,
            original=stored.original,
            deflated=self.deflated_chunks or None,
            fingerprint=fingerprint,
            message=message,
            message_id=answer.message_id,
            model=answer.model,
            stop_reason=answer.stop_reason,
            usage=self._redacted(self._usage, "usage", redactions),
            tokens_per_second=tokens_per_second(answer, received.first_ns, received.last_ns, received.chunks),
            request_id=next((value for name in REQUEST_IDS if (value := self.header(name))), None),
            redactions=redactions or None,
            frame=frame,
        )
        return Written(record, stored.file, f"{self.id}-response")

    def _answer_head(
        self, line: StatusLine, redactions: list[Redaction]
    ) -> tuple[Headers | None, list[str] | None]:
        if self._answered is None:
            return None, None
        fields = self._response_fields()
        redactions += fields.redactions
        usual = fields.exact and line.plain and not self.call.interim
        return fields.headers, None if usual else self._response_head()

    def _redacted(self, data: bytes, place: str, redactions: list[Redaction]) -> Json:
        """Redact a text that was put together: it may show a secret that was cut into deltas."""
        if data and not self._clean:
            redacted = self.secrets.redactor.redact(data, place)
            redactions += redacted.redactions
            data = redacted.data
        return msgspec.Raw(data) if data and len(data) <= LARGE_BYTES else UNSET

    def _response_head(self) -> list[str]:
        line: list[str] = []
        for head in [*self.call.interim, self.call.head or b""]:
            start, lines = cut_head(head)
            first = self.secrets.redactor.redact(start, "head").data.decode("latin-1")
            line += ["", first] if line else [first]
            line += self.secrets.fields(lines)[0].texts()
        return line

    # ------------------------------------------------------------ bodies

    def _request_treatment(self) -> BodyPolicy:
        if self._how is None:
            encoding = ""
            if not self.message and _ENCODED.search(self.request_start.head):
                encoding = (
                    self.secrets.fields(self.request_start.lines)[0].by_name().get("content-encoding", "")
                )
            self._how = BodyPolicy(self._bench.key, self.secrets.redactor, "body", encoding)
        return self._how

    def _response_treatment(self) -> BodyPolicy:
        kind = self.header("content-type")
        stream = self.message or is_stream(kind)
        place, end = "chunks" if stream else "body", None
        if stream and not self.message and self._status.startswith(b"2", 9):
            end = stream_end(self.request_start.path, kind)
        encoding = "" if self.message else self.header("content-encoding")
        return BodyPolicy(self._bench.key, self.secrets.redactor, place, encoding, stream, end)

    def _stored_body(
        self,
        body: _Body,
        collected: Collected,
        treatment: Callable[[], BodyPolicy],
        known_body: KnownBody | None,
        *,
        clean: bool,
    ) -> StoredBody:
        if body.large:
            body.large.add(*collected.take())
            stored, body.large = body.large.finish(), None
            return stored
        pieces, times = collected.take()
        return store_body(pieces, times, treatment(), known_body, clean=clean)

    def _spill(
        self, body: _Body, collected: Collected, name: str, treatment: Callable[[], BodyPolicy]
    ) -> None:
        if body.large is None:
            body.large = LargeBody(
                self._bench.folder / f"{name}.body", treatment(), self._bench.disk, body.also
            )
        body.large.add(*collected.take())


def _discard(body: _Body) -> None:
    if body.large:
        stored, body.large = body.large.finish(), None
        if stored.file:
            stored.file.unlink(missing_ok=True)
