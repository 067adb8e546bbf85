"""The lines of `gptme --output-format json`: the messages of the conversation, as they are in its file. No line has the
session's name."""

from typing import Any

from agent_logger.agents.gptme.messages import GptmeMessage, blocks_of, is_failure
from agent_logger.agents.objects import object_in
from agent_logger.messages.sdk import (
    SdkBlock,
    SdkMessage,
    text_block,
    thought,
    tool_result,
    tool_use,
    translated,
)
from agent_logger.model.session import Block
from agent_logger.providers.lenient import fitting


class GptmeOutput:
    @staticmethod
    def recognises(first: dict[str, Any]) -> bool:
        return first.get("type") == "message" and "role" in first and "content" in first and "timestamp" in first

    def read(self, line: bytes) -> list[SdkMessage]:
        value = object_in(line)
        if not self.recognises(value):
            return []
        message = fitting(GptmeMessage, value)
        printed = SdkMessage(line, message.role)
        if message.role == "assistant":
            return _answer(printed, message) or [printed]
        if message.role == "system" and message.call_id:
            failed = is_failure(message.content)
            block = tool_result(message.call_id, message.about.tool, message.content, is_error=failed)
            return [translated(printed, "user", block)]
        return [printed]


def _answer(printed: SdkMessage, message: GptmeMessage) -> list[SdkMessage]:
    blocks = blocks_of(message, message.about)
    return [translated(printed, "assistant", _block(block), again=bool(at)) for at, block in enumerate(blocks)]


def _block(block: Block) -> SdkBlock:
    if block.kind == "tool_use":
        return tool_use(block.id, block.name, block.input)
    return thought(block.text) if block.kind == "thinking" else text_block(block.text)


OUTPUT = GptmeOutput
