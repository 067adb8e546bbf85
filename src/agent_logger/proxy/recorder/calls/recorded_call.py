"""A request and its response, from the frames of a call to two records.

On a WebSocket each message of the client and its answer is a call of its own.
"""

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path

from agent_logger.model.records import Headers, Redaction, Request, Response
from agent_logger.protocols.encodings import DecodeError, decode
from agent_logger.providers.answer import Answer, tokens_per_second
from agent_logger.providers.ending import has_ended, is_answered, is_unread_answer
from agent_logger.providers.registry import Dialect, dialect_of
from agent_logger.proxy.call_state import CallState, is_stream, stream_end
from agent_logger.proxy.head import ParsedHead, StatusLine, status_line
from agent_logger.proxy.recorder.calls.known_request import SMALLEST_KNOWN, RequestText
from agent_logger.proxy.recorder.calls.payload import BodyPolicy, StoredBody, hide_pieces
from agent_logger.proxy.recorder.calls.recorded_answer import RecordedAnswer
from agent_logger.proxy.recorder.calls.recorded_body import RecordedBody, RecorderContext
from agent_logger.proxy.recorder.calls.secrets import HeadFields, Secrets
from agent_logger.proxy.recorder.logs import LogName
from agent_logger.proxy.spool.frames import RequestHeadFrame
from agent_logger.proxy.tracking.tracker import Decision

TOGETHER_BYTES = 64 << 10  # a body up to this size is searched for secrets together with its head
REQUEST_IDS = ("request-id", "x-request-id", "x-oai-request-id")


@dataclass(slots=True)
class RequestStart:
    """The head of a request with its credentials in place; `unknown`: how many of them were not available."""

    frame: RequestHeadFrame
    head: ParsedHead
    path: bytes
    unknown: int
    credentials: frozenset[int]

    @property
    def tracked_path(self) -> str:
        """The path without its credentials."""
        return self.frame.path.decode("latin-1")


@dataclass(slots=True)
class RecordToWrite:
    """A record that is not in its log yet, and the file that will become its body."""

    record: Request | Response
    file: Path | None = None
    file_name: str = ""


class RecordedCall:
    seq = 0
    log: LogName | None = None  # the log of its request
    decision: Decision | None = None
    complete = False  # the answer has ended
    # Why the call did not end as HTTP requires; its answer may be complete nevertheless.
    reason: str | None = None
    message = False  # the call is a message of a WebSocket and its answer
    # The body of the request is recorded compressed, as it was received, because it would be too large otherwise.
    request_is_deflated = False
    _status = b""
    _head: ParsedHead | None = None  # the head of the response
    _fields: HeadFields | None = None  # the fields of that head, redacted when first needed
    _by_name: dict[str, str] | None = None
    _answer: RecordedAnswer | None = None  # set when the response has ended
    _policy: BodyPolicy | None = None  # the policy for the request's body
    _was_sent = False  # the request had a body
    _is_unread_answer = False  # a model answered, and nothing of that was understood

    def __init__(
        self, request: RequestStart, call_id: str, ns: int, secrets: Secrets, context: RecorderContext
    ) -> None:
        self.request_start, self.id = request, call_id
        self.state = state = CallState(ns)
        self.secrets = secrets  # the secrets of the response are added when its head arrives
        self._key = context.key
        self._request = RecordedBody(state.request, f"{call_id}.request", context)
        self._response = RecordedBody(state.response, f"{call_id}.response", context)
        self.deflated_chunks: list[int] = []  # chunks of the answer that are recorded compressed

    @property
    def answer(self) -> Answer | None:
        """The answer, once the response has ended."""
        return self._answer.answer if self._answer else None

    # ------------------------------------------------------------ frames

    def request_data(self, data: bytes, ns: int, unknown: int = 0) -> None:
        self.state.request_data(data, ns)
        self._request.unknown += unknown
        if self._request.is_large:
            self._request.spill(self._request_policy())

    def response_head(self, head: ParsedHead, ns: int, secrets: Secrets) -> None:
        self.state.response_head(head.data, ns)
        if self.state.head is None:
            return  # it was an interim head
        self.secrets = secrets
        self._status, self._head = head.start, head

    def response_data(
        self, pieces: Sequence[bytes], moments: Sequence[int], ends_chunk: Sequence[bool], unknown: int = 0
    ) -> None:
        self.state.response_data(pieces, moments, ends_chunk)
        self._response.unknown += unknown
        if self._response.is_large:
            self._response.spill(self._response_policy())

    def header(self, name: str) -> str:
        """A header of the response; the name is in lower case."""
        if self._by_name is None:
            self._by_name = self._response_fields().by_name()
        return self._by_name.get(name, "")

    def _response_fields(self) -> HeadFields:
        if self._fields is None:
            self._fields, _ = self.secrets.fields(self._head or ParsedHead(b""))
        return self._fields

    def begin_message_answer(self, ns: int) -> None:
        """Begin the answer to a message. On a WebSocket it has no head but that of the upgrade."""
        if self.state.head is None:
            self._status = b"HTTP/1.1 101 Switching Protocols"
            self.state.response_head(self._status, ns)

    def skip_request(self) -> None:
        """Drop the request: its record is in the log already."""
        self._request.discard()

    def skip_response(self) -> None:
        self._response.discard()

    # ------------------------------------------------------------ request and answer

    @property
    def is_understood(self) -> bool:
        """Whether nothing that was said to a model, or by it, is kept as bytes alone. The call has ended."""
        is_unread = self.decision is not None and self.decision.is_unread and self._was_sent
        if self._dialect() is None:
            return not (is_unread and is_answered(self.status))
        return not is_unread and not self._is_unread_answer

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

    def request_body(self) -> bytes:
        """Return the body of the request, its encoding undone; empty if it is too large, or not in the encoding it
        claims."""
        if self._request.is_in_file:
            return self._request.whole()
        data, encoding = self._request.whole(), self._request_policy().encoding
        try:
            return decode(data, encoding) if data and encoding else data
        except DecodeError:
            return b""

    @property
    def has_large_request(self) -> bool:
        """Whether the body of the request goes to a file."""
        return self._request.is_in_file

    def answer_so_far(self) -> Answer | None:
        """Return the answer if its last event has arrived, although the call has not ended; otherwise `None`. An
        answer that is kept in a file is not read before the end."""
        dialect, body = self._dialect(), self._response
        if dialect is None or body.is_in_file or self.state.holes or not is_answered(self.status):
            return None
        try:
            text = decode(body.so_far(), self._response_policy().encoding)
        except DecodeError:
            return None
        reader = dialect.reader(messages=self.message)
        reader.feed(text)
        answer = reader.finish(framed=False)
        return answer if answer.ended else None

    def read_answer(self) -> None:
        """Read the answer, now that the call has ended."""
        state, body = self.state, self._response
        messages = state.response.pieces if self.message and not body.is_in_file else ()
        clean = state.response.size < TOGETHER_BYTES
        if clean:
            self._fields, clean = self.secrets.fields(self._head or ParsedHead(b""), state.response.whole())
        policy = self._response_policy()
        self._stored = stored = body.store(policy, clean=clean)
        if dialect := self._dialect():
            reader = dialect.reader(messages=self.message)
            for piece in messages or body.pieces or (stored.text,):
                reader.feed(piece)
            self._answer = RecordedAnswer(reader.finish(framed=state.reason is None), self.secrets)
            if not self._answer.is_clean:
                hide_pieces(stored, policy)
            unread = state.reason is None and is_unread_answer(self._answer.answer, stored.text)
            self._is_unread_answer = is_answered(self.status) and (unread or not policy.is_readable)
        ended = self._has_ended(stored, policy)
        self.complete, self.reason = ended and not state.holes, state.outcome(stream_ended=ended)
        body.pieces, stored.text, stored.pieces = [], b"", ()

    def _has_ended(self, stored: StoredBody, policy: BodyPolicy) -> bool:
        framed, answer = self.state.reason is None, self.answer
        if self.message:
            return framed or bool(answer and answer.ended)
        if stored.file and not self._response.pieces:  # the answer was not read
            return framed if stored.stream_ended is None else stored.stream_ended
        understood = answer if is_answered(self.status) and policy.is_readable else None
        return has_ended(understood, stored.text, framed=framed, in_pieces=policy.stream)

    def _dialect(self) -> Dialect | None:
        is_request = self.message or self.request_start.head.method == "POST"
        return dialect_of(self.request_start.frame.provider, self.path) if is_request else None

    # ------------------------------------------------------------ records

    def request_record(
        self, *, ts: str, seq: int, entry: str, upstream: str | None, text: RequestText | None
    ) -> RecordToWrite:
        """Make the record of the request. `upstream`: that of the log; a head that names the same one need not be
        written out. `text`: that of the body, if it may begin as an earlier one."""
        request, state, decision = self.request_start, self.state, self.decision
        self._was_sent = state.request.size > 0
        small = state.request.size < SMALLEST_KNOWN
        fields, clean = self.secrets.fields(request.head, state.request.whole() if small else b"")
        clean = clean and small
        stored = self._request.store(self._request_policy(), text, clean=clean)
        redactions = list(stored.redactions)
        path = self.secrets.target(request.path)
        redactions += path.redactions
        headers, head = self._request_head(fields, redactions, upstream)
        record = Request(
            ts=ts,
            seq=seq,
            method=self.secrets.text(request.head.method),
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
            deflated=self.request_is_deflated,
            frame=entry,
            door="forward" if request.frame.door == "forward" else None,
        )
        return RecordToWrite(record, stored.file, self.id)

    def _request_head(
        self, fields: HeadFields, redactions: list[Redaction], upstream: str | None
    ) -> tuple[Headers, list[str] | None]:
        if self.message:
            return {}, None
        request, frame, trailers = self.request_start, self.request_start.frame, self.state.request_trailers
        redactions += fields.redactions
        base = f"/{frame.provider}/{frame.upstream}" if frame.door == "base-url" else ""
        usual = b"%b %b%b HTTP/1.1" % (request.head.method.encode("latin-1"), base.encode(), request.path)
        if fields.exact and request.head.start == usual and upstream == frame.upstream and not trailers:
            return fields.headers, None
        method, target, version = self.secrets.request_line(request.head.start)
        line = (method + target.data + version).decode("latin-1")
        head = [line, *fields.texts()]
        return fields.headers, head + (["", *self._trailers(trailers).texts()] if trailers else [])

    def _trailers(self, trailers: bytes) -> HeadFields:
        return self.secrets.fields(ParsedHead(b"\r\n" + trailers + b"\r\n"))[0]

    def response_record(
        self,
        *,
        ts: str,
        seq: int,
        entry: str,
        fingerprint: str | None,
        times_of: Callable[[Sequence[int]], Sequence[str]],
    ) -> RecordToWrite:
        """Make the record of the response. `times_of` returns the times of moments of this call. Call `read_answer`
        first."""
        state, stored = self.state, self._stored
        received = state.response
        recorded = self._answer or RecordedAnswer(Answer(), self.secrets)
        answer = recorded.answer
        redactions = list(stored.redactions)
        line = status_line(self._status)
        headers, head = self._answer_head(line, redactions)
        trailers = self._trailers(state.response_trailers) if state.response_trailers else None
        redactions += trailers.redactions if trailers else ()
        message = recorded.message(redactions)
        record = Response(
            ts=ts,
            seq=seq,
            status=line.status,
            headers=headers,
            head=head,
            timing=state.timing(),
            body=stored.body,
            body_encoding=stored.encoding,
            chunks=stored.chunk_records(times_of),
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
            usage=recorded.usage(redactions),
            tokens_per_second=tokens_per_second(answer, received.first_ns, received.last_ns, received.chunks),
            request_id=next((value for name in REQUEST_IDS if (value := self.header(name))), None),
            redactions=redactions or None,
            frame=entry,
        )
        return RecordToWrite(record, stored.file, f"{self.id}-response")

    def _answer_head(self, line: StatusLine, redactions: list[Redaction]) -> tuple[Headers | None, list[str] | None]:
        if self._head is None:
            return None, None
        fields = self._response_fields()
        redactions += fields.redactions
        usual = fields.exact and line.plain and not self.state.interim
        return fields.headers, None if usual else self._response_head()

    def _response_head(self) -> list[str]:
        line: list[str] = []
        for head in [*map(ParsedHead, self.state.interim), *filter(None, [self._head])]:
            first = self.secrets.redactor.redact(head.start, "head").data.decode("latin-1")
            line += ["", first] if line else [first]
            line += self.secrets.fields(head)[0].texts()
        return line

    # ------------------------------------------------------------ bodies

    def _request_policy(self) -> BodyPolicy:
        if self._policy is None:
            encoding = "" if self.message else self.request_start.head.value("content-encoding")
            self._policy = BodyPolicy(self._key, self.secrets.redactor, "body", encoding)
        return self._policy

    def _response_policy(self) -> BodyPolicy:
        kind = self.header("content-type")
        stream = self.message or is_stream(kind)
        place, end = "chunks" if stream else "body", None
        if stream and not self.message and self._status.startswith(b"2", 9):
            end = stream_end(self.request_start.path, kind)
        encoding = "" if self.message else self.header("content-encoding")
        return BodyPolicy(self._key, self.secrets.redactor, place, encoding, stream, end)
