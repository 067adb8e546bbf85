"""Kilo's sessions, from rows like opencode's."""

from agent_logger.agents.opencode.session import OpencodeSessions

AGENT_NAME = "kilo"
_READER = OpencodeSessions(AGENT_NAME, keeps_copies=True)
session_of, responses_of, parent_of = _READER.session_of, _READER.responses_of, _READER.parent_of
