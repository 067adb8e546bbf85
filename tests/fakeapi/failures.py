"""What each vendor says when something is wrong: as a body, and as an event in mid-stream."""

from collections.abc import Callable, Mapping

import msgspec

from agent_logger.demo.anthropic import DemoMessages
from agent_logger.demo.dialect import Ask, DemoEvent, Json, event, new_id

from .gemini import GenerateContent
from .openai import ChatCompletions, Responses
from .turns import Error


def _anthropic(status: int, error: Error) -> Json:
    told = {"type": error.type, "message": error.message}
    return {"type": "error", "error": told, "request_id": new_id("req_01")}


def _openai(status: int, error: Error) -> Json:
    return {"error": {"message": error.message, "type": error.type, "param": None, "code": error.code}}


def _gemini(status: int, error: Error) -> Json:
    return {"error": {"code": status, "message": error.message, "status": error.type}}


BODIES: Mapping[type[Ask], Callable[[int, Error], Json]] = {
    DemoMessages: _anthropic,
    ChatCompletions: _openai,
    Responses: _openai,
    GenerateContent: _gemini,
}


def failure_body(ask: Ask, status: int, error: Error) -> Json:
    return BODIES[type(ask)](status, error)


def failure_event(ask: Ask, error: Error) -> DemoEvent:
    match ask:
        case DemoMessages():
            return event("error", error={"type": error.type, "message": error.message})
        case Responses():
            return event("error", code=error.code or error.type, message=error.message, param=None)
    return DemoEvent("", msgspec.json.encode(failure_body(ask, 500, error)))
