"""A session as JSON: everything that was derived of it, without keys. `docs/schemas/show.json` describes it."""

import json

import msgspec

from agent_logger.model.redaction.redactor import hidden
from agent_logger.model.session import Session


def session_json(session: Session) -> str:
    return hidden(json_of(session))


def json_of(value: object) -> str:
    """Of whatever msgspec can encode, indented; paths are texts."""
    try:
        return msgspec.json.format(msgspec.json.encode(value, enc_hook=str), indent=2).decode()
    except UnicodeEncodeError:  # a lone surrogate: a path or a text that is not Unicode
        return json.dumps(msgspec.to_builtins(value, enc_hook=str), indent=2)
