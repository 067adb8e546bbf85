"""An agent in a terminal; every session is recorded in ./sessions.

    python examples/cli_agent.py

`exit` or `quit` ends it. Needs `pip install claude-agent-sdk`.
"""

import asyncio

from claude_agent_sdk import AssistantMessage, ClaudeSDKClient, TextBlock

from agent_logger import SessionLogger


async def answer(client: ClaudeSDKClient, logger: SessionLogger, text: str) -> None:
    logger.log_user_input(text)  # before it is sent
    await client.query(text)
    async for message in client.receive_response():
        logger.log(message)
        if isinstance(message, AssistantMessage):
            for block in message.content:
                if isinstance(block, TextBlock):
                    print(block.text)


async def main() -> None:
    async with SessionLogger() as logger, ClaudeSDKClient() as client:  # closed also when the SDK raises
        while True:
            try:
                text = (await asyncio.to_thread(input, "you: ")).strip()
            except EOFError:
                break
            if text.lower() in ("exit", "quit"):
                break
            if text:
                await answer(client, logger, text)
    print(f"recorded in {logger.path}" if logger.path else "nothing to record")


if __name__ == "__main__":
    asyncio.run(main())
