"""A session as messages of OpenAI's chat API, as programs for fine-tuning take them: one line of JSON for each
conversation, with its tools, tool results, and the system prompt where the proxy recorded it.

Sub-agents are conversations of their own. A turn that was cut off, or that no model said, is left out.
"""

import json
from collections.abc import Iterator, Sequence
from typing import Any

from agent_logger.exports.base import ExportContext, ExportedSession, ExportPiece
from agent_logger.exports.request_context import (
    RequestContext,
    arguments_of,
    function_definitions,
    function_name,
    request_context,
)
from agent_logger.model.redaction.redactor import hidden
from agent_logger.model.session import MAIN, SIDE, Block, Session, SubAgent, Turn
from agent_logger.views.hide import hidden_value

Message = dict[str, Any]


def pieces(session: ExportedSession, context: ExportContext) -> Iterator[ExportPiece]:
    """Yield the conversations, message by message."""
    derived = context.mask.session(session.read())
    given = request_context(session, context.mask)
    agents = {agent.thread: agent for agent in derived.agents}
    for thread in dict.fromkeys((MAIN, *derived.threads)):
        if thread != SIDE:
            messages = _conversation(derived, thread, agents.get(thread))
            yield from _line(derived, thread, given if thread == MAIN else None, messages)


def _line(
    session: Session, thread: str, given: RequestContext | None, messages: Iterator[tuple[str, Message]]
) -> Iterator[ExportPiece]:
    """Yield one line, unless the conversation has no answer."""
    held: list[tuple[str, Message]] = []
    for place, message in messages:
        held.append((place, message))
        if message["role"] == "assistant":
            break
    else:
        return
    if given and given.system:
        held.insert(0, ("system prompt", {"role": "system", "content": given.system}))
    opening = '{"messages": ['
    for place, message in _chained(held, messages):
        yield ExportPiece(place, (opening + _encoded(message)).encode("utf-8", "replace"))
        opening = ", "
    tools = {function_name(name): definition for name, definition in given.tools.items()} if given else {}
    tail: dict[str, Any] = {"tools": function_definitions(tools)} if tools else {}
    facts = {"session": session.id, "agent": session.agent, "thread": thread, "models": _models(session, thread)}
    rest = _encoded(hidden_value({**tail, "metadata": facts}))
    yield ExportPiece("tools", f"], {rest[1:]}\n".encode("utf-8", "replace"))


def _chained(
    first: Sequence[tuple[str, Message]], rest: Iterator[tuple[str, Message]]
) -> Iterator[tuple[str, Message]]:
    yield from first
    yield from rest


def _models(session: Session, thread: str) -> list[str]:
    return list(dict.fromkeys(turn.model for turn in session.turns if turn.thread == thread and turn.model))


def _encoded(value: Any) -> str:
    return json.dumps(value, ensure_ascii=False, default=str)


def _conversation(session: Session, thread: str, agent: SubAgent | None) -> Iterator[tuple[str, Message]]:
    number = -1
    if agent and (prompt := _prompt_of(session, agent)):
        yield "prompt", _user(prompt)
    for exchange in session.exchanges:
        place = f"exchange {exchange.number}"
        if thread == MAIN and exchange.user_input:
            yield place, _user(exchange.user_input)
        for turn in exchange.turns:
            number += 1
            if turn.thread == thread and turn.complete and not turn.is_synthetic and turn.error is None:
                yield from ((f"turn {number}", message) for message in _turn(turn))


def _prompt_of(session: Session, agent: SubAgent) -> str | None:
    """Return the prompt with which a tool call started a sub-agent."""
    started = (block for turn in session.turns for block in turn.blocks if block.id and block.id == agent.tool_use_id)
    use = next((block for block in started if block.kind == "tool_use"), None)
    prompt = use.input.get("prompt") if use and isinstance(use.input, dict) else None
    return prompt if isinstance(prompt, str) else agent.description


def _user(text: str) -> Message:
    return {"role": "user", "content": hidden(text)}


def _turn(turn: Turn) -> Iterator[Message]:
    """Yield the answer, then the results of its tools. A call without an id or a result has a stand-in: the API takes
    no call without its answer."""
    text = "\n\n".join(hidden(block.text) for block in turn.blocks if block.kind == "text" and block.text)
    thinking = "\n\n".join(hidden(block.text) for block in turn.blocks if block.kind == "thinking" and block.text)
    uses = [block for block in turn.blocks if block.kind == "tool_use"]
    results = {hidden(block.id or ""): block for block in turn.blocks if block.kind == "tool_result"}
    calls = [(hidden(block.id or f"call_{number}"), block) for number, block in enumerate(uses)]
    if not (text or thinking or calls):
        return
    answer: Message = {"role": "assistant", "content": text or None}
    if thinking:
        answer["reasoning_content"] = thinking
    if calls:
        answer["tool_calls"] = [_call(name, block) for name, block in calls]
    yield answer
    for name, _ in calls:
        result = results.get(name)
        yield {"role": "tool", "tool_call_id": name, "content": hidden(result.text) if result else "(no result)"}


def _call(name: str, block: Block) -> Message:
    arguments = _encoded(arguments_of(hidden_value(block.input)))
    function = {"name": function_name(hidden(block.name or "")), "arguments": arguments}
    return {"id": name, "type": "function", "function": function}
