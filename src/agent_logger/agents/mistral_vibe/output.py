"""The output of `vibe -p --output streaming` and `--output json`: the entries of the history, one in each line, or all
in one list at the end, those of earlier runs included. None has tokens; an error is text on the other stream."""

from typing import Any

import msgspec

from agent_logger.agents.mistral_vibe.stored import VibeEntry, result_in, spoken_in, use_in
from agent_logger.messages.sdk import SdkMessage, text_block, thought, tool_result, tool_use, translated
from agent_logger.providers.json_values import fields_of
from agent_logger.providers.lenient import REFUSED

ENTRIES = frozenset({"message", "reasoning", "effect", "checkpoint", "notice"})


class _PrintedEntry(VibeEntry):
    session: str | None = msgspec.field(name="sessionId", default=None)


class VibeOutput:
    @staticmethod
    def recognises(first: dict[str, Any]) -> bool:
        return first.get("type") in ENTRIES and {"sessionId", "turnId", "generationStatus"} <= first.keys()

    def read(self, line: bytes) -> list[SdkMessage]:
        try:
            entry = msgspec.json.decode(line, type=_PrintedEntry)
        except REFUSED:
            return []
        if entry.type not in ENTRIES:
            return []
        message = SdkMessage(line, entry.type, session_id=entry.session)
        match entry.type:
            case "reasoning":
                return [translated(message, "assistant", thought(entry.text or ""))]
            case "message" if entry.role == "assistant":
                return _answer(message, entry) or [message]
            case "effect":
                return _effect(message, entry)
        return [message]


def _answer(message: SdkMessage, entry: VibeEntry) -> list[SdkMessage]:
    texts = [block.text for block in spoken_in(entry.content) if block.kind == "text"]
    return [translated(message, "assistant", text_block(text), again=bool(at)) for at, text in enumerate(texts)]


def _effect(message: SdkMessage, entry: VibeEntry) -> list[SdkMessage]:
    """Return the call of a tool, and what was shown of its result."""
    use, result = use_in(entry), result_in(entry)
    answer = tool_result(result.id, result.name, result.text or _displayed_text(entry), is_error=bool(result.is_error))
    return [
        translated(message, "assistant", tool_use(use.id, use.name, use.input)),
        translated(message, "user", answer, again=True),
    ]


def _displayed_text(entry: VibeEntry) -> str | None:
    text = fields_of(entry.state).get("outputText") or entry.output.get("content")
    return text if type(text) is str else None


OUTPUT = VibeOutput
