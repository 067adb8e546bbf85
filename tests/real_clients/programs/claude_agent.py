"""What a program does with the Claude Agent SDK. Each message is printed as a line of JSON."""

import asyncio
import dataclasses
import importlib
import json
import sys
from typing import Any

SDK: Any = importlib.import_module("claude_agent_sdk")  # where it is not installed, its types are not either

INPUTS = {
    "client": ["Remember BANANA", "What did I ask?", "Again?"],
    "client_clear": ["Remember BANANA", "/clear", "What did I ask?"],
}


async def main(name: str) -> None:
    async with SDK.ClaudeSDKClient(SDK.ClaudeAgentOptions()) as client:
        for number, text in enumerate(INPUTS[name], 1):
            await client.query(text)
            async for message in client.receive_response():
                fields = dataclasses.asdict(message)
                told = {"__class__": type(message).__name__, **fields}
                print(json.dumps({"exchange": number, "msg": told}, default=str))


asyncio.run(main(sys.argv[1]))
