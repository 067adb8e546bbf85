"""The credentials in an environment: the recorded program was given them, and may print them."""

import os
from collections.abc import Iterator, Mapping

from agent_logger.model.redaction.credential_names import WORDS, is_credential_name

# These are recognised without compiling a pattern.
_PLAIN_ENDS = ("_API_KEY", "_TOKEN", "_SECRET", "_PASSWORD")
_SHORTEST_STRUCTURED = 16  # characters of a piece of a value that has quotes in it, as JSON has


def environment_credentials(environment: Mapping[str, str]) -> list[bytes]:
    """The values of variables that are named like credentials. A path on this machine is none."""
    values = (value for name, value in environment.items() if value and _holds_credential(name, value))
    return [os.fsencode(part) for part in dict.fromkeys(part for value in values for part in _parts(value))]


def _holds_credential(name: str, value: str) -> bool:
    encoded = os.fsencode(name)
    lower = encoded.lower()
    if not any(word in lower for word in WORDS) or (os.sep in value and os.path.exists(value)):
        return False
    return name.endswith(_PLAIN_ENDS) or is_credential_name(encoded)


def _parts(value: str) -> Iterator[str]:
    """Yield a value as it is; of one that is JSON, the strings in it that may be secrets."""
    if '"' not in value:
        yield value
        return
    import re

    for text in re.findall(r'"((?:[^"\\]|\\.)*)"', value):
        if len(text) >= _SHORTEST_STRUCTURED and not re.fullmatch(r"[a-z_]+|https?://.*", text):
            yield text
