"""What models said, which tools they called, and what the tools answered, as blocks."""

import re
from collections.abc import Iterator
from typing import Any

from agent_logger.agents.copilot_cli.lines import AssistantMessage, ToolEnd, ToolRequest
from agent_logger.model.session import Block
from agent_logger.providers.blocks import base

_EXIT_CODE = re.compile(r"<(?:shellId: [^>]*? )?(?:completed|exited) with exit code (-?\d+)>\s*\Z")


def blocks_of(message: AssistantMessage) -> Iterator[Block]:
    if message.thinking:
        yield base.thinking(message.thinking)
    if message.content:
        yield base.text(message.content)
    for request in message.requests or ():
        yield base.use(request.call, tool_name(request), request.arguments)


def tool_name(request: ToolRequest) -> str | None:
    return f"mcp__{request.server}__{request.tool}" if request.server and request.tool else request.name


def result_block(end: ToolEnd) -> Block:
    """Return the result of a tool. A command that fails is a success of the shell's tool."""
    if end.success is False:
        failure = end.error.message if end.error and not isinstance(end.error, str) else end.error
        return base.result(end.call, failure or _content(end.result), is_error=True)
    content = _content(end.result)
    if end.shell and end.shell.exit_code is not None:
        code = end.shell.exit_code
    else:
        match = _EXIT_CODE.search(content[-200:]) if isinstance(content, str) else None
        code = int(match[1]) if match else 0
    return base.result(end.call, content, is_error=code != 0)


def _content(result: Any) -> Any:
    """Return what the model was given: a text, as a rule."""
    if not isinstance(result, dict):
        return result
    return result.get("content") or result.get("detailedContent") or result.get("contents")
