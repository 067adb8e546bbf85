"""The files of Qwen Code: one per session, with lines like Claude Code's but other contents."""

import re

from agent_logger.agents.single_file import discover, open_session

__all__ = ["begins_session", "discover", "open_session", "recognises"]

_LINE = re.compile(rb'\{"uuid":"[^"]*","parentUuid":[^{]*"message":\{"role":"\w+","parts":\[')


def begins_session(first: bytes) -> bool:
    return any(map(_LINE.match, first.split(b"\n")))


recognises = begins_session
