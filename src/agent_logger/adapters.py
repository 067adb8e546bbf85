"""A kit for agents on other providers: their sessions as Claude Code would write them."""

from agent_logger.transcripts.adapters import ModelAnswer as ModelAnswer
from agent_logger.transcripts.adapters import TranscriptWriter as TranscriptWriter
from agent_logger.transcripts.adapters import answer_of as answer_of
from agent_logger.transcripts.adapters import usage_of as usage_of
