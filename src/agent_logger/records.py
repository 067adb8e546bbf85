"""The records of our own logs: their types, and how a line is encoded and decoded."""

from typing import TYPE_CHECKING as _TYPE_CHECKING

from agent_logger.model.records import KINDS as KINDS
from agent_logger.model.records import LIFTS as LIFTS
from agent_logger.model.records import VERSION as VERSION
from agent_logger.model.records import AnyRecord as AnyRecord
from agent_logger.model.records import Chunk as Chunk
from agent_logger.model.records import CostFrom as CostFrom
from agent_logger.model.records import Encoding as Encoding
from agent_logger.model.records import EndReason as EndReason
from agent_logger.model.records import ExchangeRecord as ExchangeRecord
from agent_logger.model.records import ExchangeStats as ExchangeStats
from agent_logger.model.records import Exit as Exit
from agent_logger.model.records import Fork as Fork
from agent_logger.model.records import Gap as Gap
from agent_logger.model.records import Headers as Headers
from agent_logger.model.records import Hook as Hook
from agent_logger.model.records import Identity as Identity
from agent_logger.model.records import Json as Json
from agent_logger.model.records import Kind as Kind
from agent_logger.model.records import Large as Large
from agent_logger.model.records import LiveMessage as LiveMessage
from agent_logger.model.records import LiveStart as LiveStart
from agent_logger.model.records import Message as Message
from agent_logger.model.records import Part as Part
from agent_logger.model.records import PartReason as PartReason
from agent_logger.model.records import Record as Record
from agent_logger.model.records import Recovered as Recovered
from agent_logger.model.records import Redaction as Redaction
from agent_logger.model.records import Refusals as Refusals
from agent_logger.model.records import Request as Request
from agent_logger.model.records import Response as Response
from agent_logger.model.records import Resume as Resume
from agent_logger.model.records import Rewrite as Rewrite
from agent_logger.model.records import SessionEnd as SessionEnd
from agent_logger.model.records import SessionHeader as SessionHeader
from agent_logger.model.records import SessionStart as SessionStart
from agent_logger.model.records import Stored as Stored
from agent_logger.model.records import Struct as Struct
from agent_logger.model.records import SystemPrompt as SystemPrompt
from agent_logger.model.records import Timing as Timing
from agent_logger.model.records import Tokens as Tokens
from agent_logger.model.records import Unknown as Unknown
from agent_logger.model.records import Verbatim as Verbatim
from agent_logger.model.records import WireStart as WireStart
from agent_logger.model.records import Writer as Writer
from agent_logger.model.records import as_bytes as as_bytes
from agent_logger.model.records import as_text as as_text
from agent_logger.model.records import decode as decode
from agent_logger.model.records import encode as encode
from agent_logger.model.records import encode_line as encode_line
from agent_logger.model.records import kind_of as kind_of
from agent_logger.model.records import tag as tag

if _TYPE_CHECKING:
    Exchange = ExchangeRecord  # the former name
else:

    def __getattr__(name: str) -> type[Record]:
        if name != "Exchange":
            raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
        from agent_logger._former_names import warn_of

        warn_of(f"{__name__}.Exchange", f"{__name__}.ExchangeRecord")
        return ExchangeRecord
