"""A small agent on an OpenAI-compatible endpoint, whose sessions look like Claude Code's.

    OPENAI_API_KEY=... python examples/openai_adapter.py -p "What is in README.md?" --output-format json

The session goes to `$OPENAI_CONFIG_DIR/projects/`, or to Claude Code's own folder if that is not set. `OPENAI_BASE_URL`
names another endpoint; `--hook` a command to run at the end, as Claude Code runs a SessionEnd hook.
"""

import argparse
import json
import os
from pathlib import Path
from typing import Any
from urllib.request import Request, urlopen

from agent_logger.adapters import ModelAnswer, TranscriptWriter, answer_of

URL = os.environ.get("OPENAI_BASE_URL", "https://api.openai.com/v1").rstrip("/")
MOST_TURNS = 20


def read(file_path: str) -> str:
    return Path(file_path).read_text()


def glob(pattern: str) -> str:
    return "\n".join(sorted(str(path) for path in Path.cwd().glob(pattern)))


TOOLS = {"Read": (read, "file_path"), "Glob": (glob, "pattern")}
SPOKEN = [
    {
        "type": "function",
        "function": {
            "name": name,
            "parameters": {"type": "object", "properties": {given: {"type": "string"}}, "required": [given]},
        },
    }
    for name, (_, given) in TOOLS.items()
]


def ask(history: list[dict[str, Any]], model: str) -> ModelAnswer:
    body = json.dumps({"model": model, "messages": history, "tools": SPOKEN}).encode()
    headers = {
        "content-type": "application/json",
        "authorization": f"Bearer {os.environ.get('OPENAI_API_KEY', '')}",
    }
    with urlopen(Request(f"{URL}/chat/completions", body, headers)) as response:
        return answer_of("/chat/completions", response.read())


def as_message(answer: ModelAnswer) -> dict[str, Any]:
    """The answer as the next request repeats it."""
    text = "".join(block["text"] for block in answer.blocks if block["type"] == "text")
    calls = [
        {
            "id": use["id"],
            "type": "function",
            "function": {"name": use["name"], "arguments": json.dumps(use["input"])},
        }
        for use in answer.tool_uses
    ]
    return {"role": "assistant", "content": text or None, **({"tool_calls": calls} if calls else {})}


def run_tool(use: dict[str, Any]) -> tuple[str, bool]:
    """The result, and whether the tool failed."""
    try:
        tool, given = TOOLS[use["name"]]
        return tool(use["input"][given]), False
    except (OSError, LookupError, ValueError) as error:
        return f"{type(error).__name__}: {error}", True


def main(prompt: str, model: str, output_format: str, hook: str | None) -> None:
    writer = TranscriptWriter("openai")
    writer.user(prompt)
    history: list[dict[str, Any]] = [{"role": "user", "content": prompt}]
    for _ in range(MOST_TURNS):
        answer = ask(history, model)
        writer.assistant(answer)
        history.append(as_message(answer))
        if not answer.tool_uses:
            break
        for use in answer.tool_uses:
            text, failed = run_tool(use)
            writer.tool_result(use["id"], text, is_error=failed)
            history.append({"role": "tool", "tool_call_id": use["id"], "content": text})
    result = writer.result()
    writer.close()
    if hook:
        writer.run_hook(hook, "SessionEnd", reason="exit")
    print(json.dumps(result) if output_format == "json" else result[-1]["result"])


if __name__ == "__main__":
    options = argparse.ArgumentParser()
    options.add_argument("-p", "--prompt", required=True)
    options.add_argument("--model", default="gpt-5-mini")
    options.add_argument("--output-format", choices=["text", "json"], default="text")
    options.add_argument("--hook", metavar="COMMAND")
    main(**vars(options.parse_args()))
