"""A kit for agents on other providers: their sessions as Claude Code would write them."""

from agent_logger.transcripts.adapters import ModelAnswer, TranscriptWriter, answer_of, usage_of

__all__ = ["ModelAnswer", "TranscriptWriter", "answer_of", "usage_of"]
