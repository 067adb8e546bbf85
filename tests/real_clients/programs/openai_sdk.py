"""What a program does with the OpenAI SDK: `openai` or `conversation`."""

import importlib
import sys
from collections.abc import Callable
from typing import Any

OpenAI: Any = importlib.import_module("openai").OpenAI  # where it is not installed, its types are not either
MODEL = "gpt-fake-1"
FUNCTION = {"name": "look", "description": "Look at a place.", "parameters": {"type": "object"}}


def chat_and_responses() -> None:
    with OpenAI(max_retries=1) as client:
        print([model.id for model in client.models.list()])
        history: list[Any] = [
            {"role": "system", "content": "Be brief"},
            {"role": "user", "content": "Turn one"},
        ]
        first = client.chat.completions.create(model=MODEL, messages=history)
        print(first.to_json(indent=None))
        said = first.choices[0].message.content
        history += [{"content": said, "role": "assistant"}, {"role": "user", "content": "Turn two"}]
        options: Any = {"stream_options": {"include_usage": True}}
        for chunk in client.chat.completions.create(model=MODEL, messages=history, stream=True, **options):
            print("CH", chunk.to_json(indent=None))
        for chunk in client.chat.completions.create(model=MODEL, messages=history, stream=True):
            print("CH2", chunk.to_json(indent=None))
        response = client.responses.create(model=MODEL, input="Turn one", instructions="Be brief")
        print(response.to_json(indent=None))
        second = client.responses.create(model=MODEL, input="Turn two", previous_response_id=response.id)
        print(second.id, second.previous_response_id)
        turn: Any = [{"role": "user", "content": "Turn three"}]
        for event in client.responses.create(model=MODEL, input=turn, stream=True):
            print("EV", event.type)
        failing: Any = [{"role": "user", "content": "FAIL429"}]
        attempt(lambda: client.chat.completions.create(model=MODEL, messages=failing))


def conversation() -> None:
    """Tools in a chat, a cut stream, a question asked again from an earlier point, errors."""
    history: list[Any] = [{"role": "user", "content": "Look around."}]
    with OpenAI(max_retries=1) as client:
        first = _chat(client, history)
        call = first.tool_calls[0]
        history += [
            {"role": "assistant", "content": first.content, "tool_calls": [call.to_dict()]},
            {"role": "tool", "tool_call_id": call.id, "content": "trees"},
        ]
        attempt(lambda: _chat(client, history, stream=True))  # is cut
        second = _chat(client, history)
        said = {"role": "assistant", "content": second.content}
        for question in ("And now?", "Or this?"):  # the second goes on from the same point
            _chat(client, [*history, said, {"role": "user", "content": question}])
        attempt(lambda: _chat(client, [{"role": "user", "content": "FAIL500"}]))


def _chat(client: Any, history: list[Any], *, stream: bool = False) -> Any:
    asked: dict[str, Any] = {"model": MODEL, "messages": history}
    asked["tools"] = [{"type": "function", "function": FUNCTION}]
    if stream:
        for chunk in client.chat.completions.create(stream=True, **asked):
            print("CH", chunk.to_json(indent=None))
        return None
    answer = client.chat.completions.create(**asked)
    print(answer.to_json(indent=None))
    return answer.choices[0].message


def attempt(do: Callable[[], object]) -> None:
    try:
        do()
    except Exception as error:  # the SDK's own, and for a cut stream the HTTP library's
        print("EXC", type(error).__name__, error)


if __name__ == "__main__":
    {"openai": chat_and_responses, "conversation": conversation}[sys.argv[1]]()
