"""Streamed conversations with the vendors' SDKs: `chat`, `responses` or `messages`, `sync` or `async`, and how many."""

import asyncio
import importlib
import sys
from collections.abc import Awaitable, Callable
from typing import Any

TURNS = 3
Ask = Callable[[list[Any]], str]
AskSoon = Callable[[list[Any]], Awaitable[str]]


def client_of(module: str, name: str) -> Any:
    return getattr(importlib.import_module(module), name)(max_retries=0)


CHAT: dict[str, Any] = {"model": "gpt-fake-1", "stream": True, "stream_options": {"include_usage": True}}
RESPONSES: dict[str, Any] = {"model": "gpt-fake-1", "stream": True}
MESSAGES: dict[str, Any] = {"model": "claude-fake-1", "stream": True, "max_tokens": 100}


def said(event: Any) -> str:
    """The text that an event of any of the three adds."""
    if getattr(event, "choices", None):
        return event.choices[0].delta.content or ""
    if event.__class__.__name__ == "ChatCompletionChunk":
        return ""
    if event.type == "response.output_text.delta":
        return str(event.delta)
    return event.delta.text if event.type == "content_block_delta" else ""


def creator(kind: str, prefix: str = "") -> Callable[[list[Any]], Any]:
    """What sends a history with the client of a vendor, that with this prefix to its name."""
    if kind == "messages":
        create, options, key = (
            client_of("anthropic", f"{prefix}Anthropic").messages.create,
            MESSAGES,
            "messages",
        )
    elif kind == "chat":
        create, options, key = (
            client_of("openai", f"{prefix}OpenAI").chat.completions.create,
            CHAT,
            "messages",
        )
    else:
        create, options, key = client_of("openai", f"{prefix}OpenAI").responses.create, RESPONSES, "input"
    return lambda history: create(**options, **{key: history})


def asker(kind: str) -> Ask:
    create = creator(kind)
    return lambda history: "".join(said(event) for event in create(history))


def soon_asker(kind: str) -> AskSoon:
    create = creator(kind, "Async")

    async def ask(history: list[Any]) -> str:
        return "".join([said(event) async for event in await create(history)])

    return ask


def talk(ask: Ask, name: int) -> None:
    history: list[Any] = []
    for turn in range(TURNS):
        history.append({"role": "user", "content": f"talk {name}, question {turn}"})
        history.append({"role": "assistant", "content": ask(history)})


async def talk_soon(ask: AskSoon, name: int) -> None:
    history: list[Any] = []
    for turn in range(TURNS):
        history.append({"role": "user", "content": f"talk {name}, question {turn}"})
        history.append({"role": "assistant", "content": await ask(history)})


async def all_at_once(kind: str, count: int) -> None:
    ask = soon_asker(kind)
    await asyncio.gather(*(talk_soon(ask, name) for name in range(count)))


if __name__ == "__main__":
    kind, how, count = sys.argv[1], sys.argv[2], int(sys.argv[3])
    if how == "async":
        asyncio.run(all_at_once(kind, count))
    else:
        asking = asker(kind)
        for name in range(count):
            talk(asking, name)
