"""The records of requests that we answered ourselves: what was asked, as far as it came, and why it went nowhere."""

import re

from agent_logger.capture.proxy.recorder.heads import Secrets, cut_head
from agent_logger.capture.proxy.spool.frames import Refusal
from agent_logger.records import Request, Response, Timing

# What is refused need not be HTTP: where lines end in LF alone, keys stand in them all the same.
_BARE_LF = re.compile(rb"(?<!\r)\n")


def refused(
    frame: Refusal, head: bytes, secrets: Secrets, *, ts: str, seq: int, name: str
) -> tuple[Request, Response]:
    start, lines = cut_head(_BARE_LF.sub(b"\r\n", head))
    fields, _ = secrets.fields(lines)
    method, target, version = secrets.request_line(start)
    said = (method + target.data + version).decode("latin-1")
    redactions = [*target.redactions, *fields.redactions]
    request = Request(
        ts=ts,
        seq=seq,
        method=method.decode("latin-1").rstrip(),
        path=target.data.decode("latin-1"),
        headers=fields.headers,
        head=[said, *fields.texts()],
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
