"""What a program does with the Anthropic SDK: `create_and_stream` or `conversation`."""

import importlib
import sys
from collections.abc import Callable, Mapping
from typing import Any

Anthropic: Any = importlib.import_module("anthropic").Anthropic  # where it is not installed, its types are not either
MODEL = "claude-fake-1"
TOOL = {"name": "look", "description": "Look at a place.", "input_schema": {"type": "object"}}


def create_and_stream() -> None:
    asked: dict[str, Any] = {"model": MODEL, "max_tokens": 100}
    history: list[dict[str, Any]] = [{"role": "user", "content": "Turn one"}]
    with Anthropic(max_retries=1) as client:
        first = client.messages.create(messages=history, metadata={"user_id": "u-1"}, **asked)
        print(first.to_json(indent=None))
        content = [{"text": first.content[0].text, "type": "text"}]
        history += [{"role": "assistant", "content": content}, {"role": "user", "content": "Turn two"}]
        with client.messages.stream(messages=history, **asked) as events:
            for event in events:
                print("EV", type(event).__name__, event.type)
            print(events.get_final_message().to_json(indent=None))
        for event in client.messages.create(messages=history, stream=True, **asked):
            print("RAW", event.type)
        print(client.messages.count_tokens(model=MODEL, messages=history).to_json(indent=None))
        attempt(lambda: client.messages.create(messages=[{"role": "user", "content": "FAIL529"}], **asked))


def conversation() -> None:
    """Tools, a cut stream, an answer asked for again from an earlier point, errors."""
    asked: dict[str, Any] = {"model": MODEL, "max_tokens": 100, "tools": [TOOL]}
    history: list[dict[str, Any]] = [{"role": "user", "content": "Look around."}]
    with Anthropic(max_retries=1) as client:
        first = client.messages.create(messages=history, **asked)
        use = first.content[-1]
        history += [
            {"role": "assistant", "content": [block.to_dict() for block in first.content]},
            {"role": "user", "content": [{"type": "tool_result", "tool_use_id": use.id, "content": "trees"}]},
        ]
        attempt(lambda: final(client, {**asked, "messages": history}))  # is cut
        second = final(client, {**asked, "messages": history})
        said = [block.to_dict() for block in second.content]
        for question in ("And now?", "Or this?"):  # the second goes on from the same point
            further = [
                *history,
                {"role": "assistant", "content": said},
                {"role": "user", "content": question},
            ]
            final(client, {**asked, "messages": further})
        attempt(lambda: client.messages.create(messages=[{"role": "user", "content": "FAIL500"}], **asked))


def final(client: Any, asked: Mapping[str, Any]) -> Any:
    with client.messages.stream(**asked) as events:
        message = events.get_final_message()
    print(message.to_json(indent=None))
    return message


def attempt(do: Callable[[], object]) -> None:
    try:
        do()
    except Exception as error:  # the SDK's own, and for a cut stream the HTTP library's
        print("EXC", type(error).__name__, error)


if __name__ == "__main__":
    {"anthropic": create_and_stream, "conversation": conversation}[sys.argv[1]]()
