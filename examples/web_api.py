"""An agent behind HTTP; every session is recorded in ./sessions.

    uvicorn --app-dir examples web_api:app

`POST /api/chat` with `{"messages": [{"role": "user", "content": "..."}], "sessionId": "..."}` streams the agent's
messages as lines of JSON and ends after the result. `sessionId`, from an earlier response, continues that session.
Try it with

    curl -N http://127.0.0.1:8000/api/chat -d '{"messages": [{"role": "user", "content": "Hello"}]}'

Needs `pip install claude-agent-sdk starlette uvicorn`.
"""

import dataclasses
import json
from collections.abc import AsyncIterator
from contextlib import aclosing
from typing import Any

from claude_agent_sdk import ClaudeAgentOptions, ResultMessage
from starlette.applications import Starlette
from starlette.requests import Request
from starlette.responses import JSONResponse, Response, StreamingResponse
from starlette.routing import Route

from agent_logger import SessionLogger


def new_input(messages: list[dict[str, Any]]) -> str:
    """What the user said since the agent's last answer: a page sends the whole talk every time, to be logged once."""
    fresh: list[str] = []
    for message in messages:
        if message["role"] == "user":
            fresh.append(str(message["content"]))
        else:
            fresh.clear()
    return "\n".join(fresh)


def line(value: object) -> bytes:
    return json.dumps(value, default=str).encode() + b"\n"


async def answers(text: str, session_id: str | None) -> AsyncIterator[bytes]:
    options = ClaudeAgentOptions(resume=session_id)
    # Closed on success, on errors, and when the client has left, which is noticed with the next message.
    with SessionLogger() as logger:
        try:
            async with aclosing(logger.query(prompt=text, options=options)) as messages:
                async for message in messages:
                    kind = type(message).__name__.removesuffix("Message").lower()
                    yield line({"type": kind, **dataclasses.asdict(message)})
                    if isinstance(message, ResultMessage):
                        break
        except Exception as error:
            yield line({"type": "error", "error": str(error)})


async def chat(request: Request) -> Response:
    try:
        body = await request.json()
        text, session_id = new_input(body["messages"]), body.get("sessionId")
    except (ValueError, KeyError, TypeError, AttributeError) as error:
        return JSONResponse({"type": "error", "error": f"not a chat request: {error!r}"}, status_code=400)
    if not text.strip():
        return JSONResponse({"type": "error", "error": "there is nothing to answer"}, status_code=400)
    headers = {"Cache-Control": "no-cache"}
    return StreamingResponse(answers(text, session_id), media_type="application/x-ndjson", headers=headers)


app = Starlette(routes=[Route("/api/chat", chat, methods=["POST"])])
