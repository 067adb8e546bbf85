"""The answer of a model as a record has it: its message and its usage as JSON, redacted."""

from dataclasses import replace

import msgspec
from msgspec import UNSET

from agent_logger.model.records import Json, Redaction
from agent_logger.providers.answer import Answer
from agent_logger.proxy.recorder.calls.large import LARGE_BYTES
from agent_logger.proxy.recorder.calls.secrets import Secrets


class RecordedAnswer:
    """An answer without secrets in its names. They come from outside too: an upstream may answer with the key as the
    model, or as an id."""

    def __init__(self, answer: Answer, secrets: Secrets) -> None:
        self._secrets = secrets
        self._message = msgspec.json.encode(answer.message) if answer.message is not None else b""
        self._usage = msgspec.json.encode(answer.raw_usage) if answer.raw_usage is not None else b""
        names = (answer.message_id, answer.model, answer.stop_reason)
        text = "\n".join(filter(None, names)).encode("utf-8", "surrogatepass")
        # All parts are searched together, for nearly always there is nothing to redact.
        every = b"\n".join(filter(None, (text, self._message, self._usage)))
        self.is_clean = not every or not secrets.redactor.redact(every, "").redactions
        if not self.is_clean:
            message_id, model, stop_reason = (name and secrets.redact(name) for name in names)
            answer = replace(answer, message_id=message_id, model=model, stop_reason=stop_reason)
        self.answer = answer

    def message(self, redactions: list[Redaction]) -> Json:
        return self._redacted(self._message, "message", redactions)

    def usage(self, redactions: list[Redaction]) -> Json:
        return self._redacted(self._usage, "usage", redactions)

    def _redacted(self, data: bytes, place: str, redactions: list[Redaction]) -> Json:
        """Redact a text that was put together: it may show a secret that was cut into deltas."""
        if data and not self.is_clean:
            redacted = self._secrets.redactor.redact(data, place)
            redactions += redacted.redactions
            data = redacted.data
        return msgspec.Raw(data) if data and len(data) <= LARGE_BYTES else UNSET
