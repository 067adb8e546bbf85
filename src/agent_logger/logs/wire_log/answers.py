"""What a model answered to a call, from the record of its response.

The recorder has already assembled most answers. What it could not read, and what older logs do not have, is read from
the stored bytes; so is how an answer ended, where the record does not say it.
"""

from dataclasses import replace
from typing import Any

from agent_logger.model.records import Response
from agent_logger.providers.answer import Answer
from agent_logger.providers.blocks.base import value_of
from agent_logger.providers.ending import (
    DROPPED,
    FRAMED_REASONS,
    body_of,
    is_answered,
    is_unread_answer,
    read_again,
)
from agent_logger.providers.json_values import fields_of, text_of
from agent_logger.providers.registry import Dialect
from agent_logger.providers.token_counts import usage_of

__all__ = ["answer_of", "body_of", "is_unread"]


def is_unread(response: Response, dialect: Dialect, *, websocket: bool = False) -> bool:
    """Whether a model answered, and nothing of the answer is understood. One in a file of its own is not looked at."""
    if response.body_file or response.reason not in FRAMED_REASONS or not is_answered(response.status):
        return False
    body = body_of(response)
    if not body and response.bytes:
        return True  # its encoding is unknown
    return is_unread_answer(read_again(response, dialect, websocket=websocket), body)


_NOT_ENDED_WELL = ("failed", "cancelled")  # words of the responses API


def answer_of(response: Response, dialect: Dialect, *, websocket: bool = False) -> Answer | None:
    """Return the answer; None if there is no message: an error, or no answer at all."""
    message = value_of(response.message) if response.message else None
    if message is not None and response.stop_reason is not None and response.complete is not False:
        answer = _stored_answer(response, message)
    else:
        answer = read_again(response, dialect, websocket=websocket)
        if message is not None:
            ended = answer.complete and not answer.error
            answer = replace(_stored_answer(response, message), complete=ended, error=answer.error, ended=answer.ended)
    if answer.message is None:
        return None
    whole = answer.complete and response.reason != DROPPED and answer.stop_reason not in _NOT_ENDED_WELL
    return replace(answer, complete=whole)


def _stored_answer(response: Response, message: Any) -> Answer:
    reported = value_of(response.usage) if response.usage else None
    return Answer(
        message=message,
        message_id=response.message_id,
        model=response.model,
        stop_reason=response.stop_reason,
        usage=usage_of(reported),
        raw_usage=reported,
        service_tier=_tier(reported) or _tier(message),
        complete=True,
        ended=True,
    )


def _tier(usage: Any) -> str | None:
    return text_of(fields_of(usage).get("service_tier"))
