"""Ask a Claude agent whose sessions are stored by agent-logger, and can be resumed from there alone.

    python examples/session_store.py "Remember the number 7."
    python examples/session_store.py --resume ID "Which number?"

The id is printed at the end. Needs `pip install claude-agent-sdk`.
"""

import argparse
import asyncio

from claude_agent_sdk import ClaudeAgentOptions, ResultMessage, query

from agent_logger import FileStorage
from agent_logger.sdk import AgentLoggerSessionStore


async def main(prompt: str, resume: str | None) -> None:
    store = AgentLoggerSessionStore(FileStorage())
    options = ClaudeAgentOptions(session_store=store, resume=resume)
    async for message in query(prompt=prompt, options=options):
        if isinstance(message, ResultMessage):
            print(message.result)
            print(f"session {message.session_id}")


if __name__ == "__main__":
    arguments = argparse.ArgumentParser()
    arguments.add_argument("prompt")
    arguments.add_argument("--resume", metavar="ID")
    given = arguments.parse_args()
    asyncio.run(main(given.prompt, given.resume))
