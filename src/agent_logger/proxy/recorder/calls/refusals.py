"""The records of requests that we answered ourselves: the first KB of the request, and why it was not forwarded."""

import re
from collections.abc import Sequence

from agent_logger.model.records import Headers, Request, Response, Timing
from agent_logger.proxy.head import ParsedHead, field_of, headers_of
from agent_logger.proxy.recorder.calls.secrets import Secrets
from agent_logger.proxy.spool.frames import Refusal

MOST_HEAD_BYTES = 1024  # bytes of a head that are recorded
SHOWN_PATH_BYTES = 100  # bytes of the path, where `head` has the whole request line
MOST_REDACTIONS = 16  # redactions that are listed

# A refused request need not be HTTP: its lines may end in LF alone, and have keys nevertheless.
_BARE_LF = re.compile(rb"(?<!\r)\n")


def refused(
    frame: Refusal, data: bytes, secrets: Secrets, *, ts: str, seq: int, entry: str
) -> tuple[Request, Response]:
    size = max(frame.head_bytes, len(data))
    head = ParsedHead(_BARE_LF.sub(b"\r\n", data))
    fields, _ = secrets.fields(head)
    method, target, version = secrets.request_line(head.start)
    plain = fields.exact and (version == b" HTTP/1.1" or len(head.start) == len(data) < size)
    path, headers, kept_head = target.data.decode("latin-1"), fields.headers, None
    if size > MOST_HEAD_BYTES or not plain:
        line = (method + target.data + version).decode("latin-1")
        lines_kept = _cut([line, *fields.texts()])
        if plain:
            path, headers = _split(lines_kept, len(method))
        else:
            path, headers, kept_head = path[:SHOWN_PATH_BYTES], {}, lines_kept
    redactions = [*target.redactions, *fields.redactions][:MOST_REDACTIONS]
    request = Request(
        ts=ts,
        seq=seq,
        method=method.decode("latin-1").rstrip()[:SHOWN_PATH_BYTES],
        path=path,
        headers=headers,
        head=kept_head,
        head_bytes=size if size > MOST_HEAD_BYTES else None,
        body=None,
        fingerprint=None,
        call=frame.id,
        redactions=redactions or None,
        frame=entry,
    )
    response = Response(
        ts=ts,
        seq=seq,
        status=frame.status,
        headers=None,
        timing=Timing(ttfb_ms=0.0, total_ms=0.0),
        call=frame.id,
        complete=False,
        reason="refused",
        status_text=secrets.redactor.redact_text(frame.reason, "reason").data,
        frame=entry,
    )
    return request, response


def _cut(lines: Sequence[str]) -> list[str]:
    """The first lines, the last one cut. Each character was a byte."""
    names: list[str] = []
    left = MOST_HEAD_BYTES
    for line in lines:
        if left <= 0:
            break
        names.append(line[:left])
        left -= len(line) + 2
    return names


def _split(lines: list[str], method: int) -> tuple[str, Headers]:
    """The path and the fields of a plain head that was cut; the path begins after `method` bytes."""
    fields = [field for line in lines[1:] if (field := field_of(line.encode("latin-1")))]
    headers, _ = headers_of([(field.name.decode("latin-1"), field.value.decode("latin-1")) for field in fields])
    return lines[0][method:].removesuffix(" HTTP/1.1"), headers
