"""What `cn -p --format json` prints: the answer, in an object if it is no JSON itself; before it, what became of a
summary. An error is printed on stderr."""

from typing import Any

import msgspec
from msgspec.structs import replace

from agent_logger.messages.sdk import Result, SdkMessage, text_block, translated
from agent_logger.providers.lenient import REFUSED

FORMS = (
    {"response", "status", "note"},
    {"status", "message", "historyLength"},
    {"status", "message", "contextUsage"},
)


class _Line(msgspec.Struct, frozen=True):
    status: str
    response: str | None = None
    message: str | None = None


class ContinueOutput:
    @staticmethod
    def recognises(first: dict[str, Any]) -> bool:
        return any(first.keys() == names for names in FORMS)

    def read(self, line: bytes) -> list[SdkMessage]:
        try:
            decoded = msgspec.json.decode(line, type=_Line)
        except REFUSED:
            return []
        message = SdkMessage(line, decoded.status)
        if decoded.response is None:
            return [message]
        end = replace(message, type="result", result=Result(is_error=False, result=decoded.response))
        return [translated(message, "assistant", text_block(decoded.response)), end]


OUTPUT = ContinueOutput
