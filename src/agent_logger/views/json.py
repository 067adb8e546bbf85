"""A session as JSON: everything derived from it, without keys. `agent-logger schema show` describes it."""

import json

import msgspec

from agent_logger.model.redaction.redactor import hidden
from agent_logger.model.session import Session


def session_json(session: Session) -> str:
    return hidden(json_of(session))


def json_of(value: object) -> str:
    """The indented JSON of any value that msgspec can encode; paths become text."""
    try:
        return msgspec.json.format(msgspec.json.encode(value, enc_hook=str), indent=2).decode()
    except UnicodeEncodeError:  # a lone surrogate: a path or a text that is not Unicode
        return json.dumps(msgspec.to_builtins(value, enc_hook=str), indent=2)
