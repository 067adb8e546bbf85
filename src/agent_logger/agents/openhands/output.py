"""The lines of `openhands --headless --json`: the events of the conversation, with texts for people between them. No
line has tokens or a model. Only a text at the end names the conversation; events of sub-agents are not printed."""

from typing import Any

import msgspec
from msgspec.structs import replace

from agent_logger.agents.openhands.events import OPENAI, OpenHandsEvent, result_of, spoken_in, vendor_id
from agent_logger.messages.sdk import (
    Inner,
    Result,
    SdkBlock,
    SdkMessage,
    text_block,
    thought,
    tool_result,
    tool_use,
    translated,
)
from agent_logger.model.session import Block
from agent_logger.providers.lenient import REFUSED

RESULTS = frozenset({"ObservationEvent", "UserRejectObservation", "AgentErrorEvent"})
FINISH = "finish"  # the tool that ends a run


class OpenHandsOutput:
    @staticmethod
    def recognises(first: dict[str, Any]) -> bool:
        return str(first.get("kind")).endswith("Event") and {"id", "timestamp", "source"} <= first.keys()

    def read(self, line: bytes) -> list[SdkMessage]:
        try:
            event = msgspec.json.decode(line, type=OpenHandsEvent)
        except REFUSED:
            return []
        if not event.kind:
            return []
        message = SdkMessage(line, event.kind)
        if event.kind in RESULTS:
            return _tool_result(message, result_of(event))
        if event.kind == "ConversationErrorEvent":
            return [_result(message, Result(is_error=True, errors=[event.detail or event.code or "error"]))]
        if event.kind not in ("ActionEvent", "MessageEvent") or event.source != "agent":
            return [message]
        return _answer(message, event)


def _answer(message: SdkMessage, event: OpenHandsEvent) -> list[SdkMessage]:
    """Return what the model said. A message to the user ends the run."""
    spoken = list(spoken_in(event))
    blocks = [converted for block in spoken if (converted := _block(block))]
    inner = Inner(id=vendor_id(event.response, OPENAI), content=blocks)
    answer_message = replace(message, type="assistant", inner=inner, is_translated=True)
    if event.kind == "ActionEvent":
        return [answer_message]
    text = "\n".join(block.text for block in spoken if block.kind == "text")
    return [replace(answer_message, is_translated=False), _result(message, Result(is_error=False, result=text or None))]


def _block(block: Block) -> SdkBlock | None:
    match block.kind:
        case "text":
            return text_block(block.text)
        case "thinking":
            return thought(block.text)
        case "tool_use":
            return tool_use(block.id, block.name, block.input)
    return None


def _tool_result(message: SdkMessage, block: Block) -> list[SdkMessage]:
    """Return the result of a tool. That of the tool for it ends the run."""
    is_end = block.name == FINISH and not block.is_error
    answer = tool_result(block.id, block.name, block.text, is_error=block.is_error)
    answer_message = translated(message, "user", answer, again=is_end)
    return (
        [answer_message, _result(message, Result(is_error=False, result=block.text or None))]
        if is_end
        else [answer_message]
    )


def _result(message: SdkMessage, result: Result) -> SdkMessage:
    return SdkMessage(message.raw, "result", message.type, result=result)


OUTPUT = OpenHandsOutput
