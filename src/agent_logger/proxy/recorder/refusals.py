"""The records of requests that we answered ourselves: the first KB of the request, and why it was not forwarded."""

import re
from collections.abc import Sequence

from agent_logger.model.records import Headers, Request, Response, Timing
from agent_logger.proxy.call_state import field_of, headers_of
from agent_logger.proxy.recorder.heads import Secrets, cut_head
from agent_logger.proxy.spool.frames import Refusal

KEPT_BYTES = 1024  # of a head
SHOWN_PATH_BYTES = 100  # where the whole request line stands in `head`
MOST_REDACTIONS = 16  # that are listed

# What is refused need not be HTTP: where lines end in LF alone, keys stand in them all the same.
_BARE_LF = re.compile(rb"(?<!\r)\n")


def refused(
    frame: Refusal, head: bytes, secrets: Secrets, *, ts: str, seq: int, name: str
) -> tuple[Request, Response]:
    size = max(frame.head_bytes, len(head))
    start, lines = cut_head(_BARE_LF.sub(b"\r\n", head))
    fields, _ = secrets.fields(lines)
    method, target, version = secrets.request_line(start)
    plain = fields.exact and (version == b" HTTP/1.1" or len(start) == len(head) < size)
    path, headers, kept_head = target.data.decode("latin-1"), fields.headers, None
    if size > KEPT_BYTES or not plain:
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
        head_bytes=size if size > KEPT_BYTES else None,
        body=None,
        fingerprint=None,
        call=frame.id,
        redactions=redactions or None,
        frame=name,
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
        frame=name,
    )
    return request, response


def _cut(lines: Sequence[str]) -> list[str]:
    """The first lines, the last one cut. Each character was a byte."""
    names: list[str] = []
    left = KEPT_BYTES
    for line in lines:
        if left <= 0:
            break
        names.append(line[:left])
        left -= len(line) + 2
    return names


def _split(lines: list[str], method: int) -> tuple[str, Headers]:
    """The path and the fields of a plain head that was cut; the path begins after `method` bytes."""
    fields = [field for line in lines[1:] if (field := field_of(line.encode("latin-1")))]
    headers, _ = headers_of(
        [(field.name.decode("latin-1"), field.value.decode("latin-1")) for field in fields]
    )
    return lines[0][method:].removesuffix(" HTTP/1.1"), headers
