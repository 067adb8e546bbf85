"""The documents beside the updates of a Grok Build session: its description, its totals, what the model is sent."""

from datetime import datetime
from typing import Any

import msgspec

from agent_logger.agents.grok_build.updates import TurnUsage, turn_usage_of
from agent_logger.agents.objects import object_in, time_of
from agent_logger.agents.source_files import SourceFiles
from agent_logger.providers.json_values import Json, fields_of
from agent_logger.providers.lenient import fitting

UPDATES, META = "updates.jsonl", "meta.json"
SUMMARY, USAGE, HISTORY = "summary.json", "usage.json", "chat_history.jsonl"
DOCUMENTS = frozenset({SUMMARY, USAGE, HISTORY})


class _Info(msgspec.Struct, gc=False):
    id: str | None = None
    cwd: str | None = None


class SessionDescription(msgspec.Struct, gc=False):
    """`summary.json`."""

    info: _Info | None = None
    title: str | None = msgspec.field(name="session_summary", default=None)
    generated_title: str | None = None
    model: str | None = msgspec.field(name="current_model_id", default=None)
    # The session that this one was forked from, and when; without a time, it was not.
    parent: str | None = msgspec.field(name="parent_session_id", default=None)
    forked_at: Any = None

    @property
    def source(self) -> str | None:
        return self.parent if self.forked_at is not None else None


class AgentMeta(msgspec.Struct, gc=False):
    """`subagents/<id>/meta.json`."""

    child: str | None = msgspec.field(name="child_session_id", default=None)
    parent: str | None = msgspec.field(name="parent_session_id", default=None)
    kind: str | None = msgspec.field(name="subagent_type", default=None)
    description: str | None = None
    prompt: str | None = None


def summary_of(source: SourceFiles, session: str) -> SessionDescription:
    return fitting(SessionDescription, _document(source, session, SUMMARY))


def _document(source: SourceFiles, session: str, name: str) -> Json:
    text = source.text(f"{session}/{name}")
    return object_in(text.encode("utf-8", "replace")) if text else {}


class StoredTurn(msgspec.Struct, gc=False):
    """What a prompt took, as `usage.json` has it."""

    usage: TurnUsage
    ended: datetime | None


def stored_turns(source: SourceFiles, session: str) -> list[StoredTurn]:
    turns = _document(source, session, USAGE).get("turns")
    stored = []
    for turn in turns if type(turns) is list else ():
        fields = fields_of(turn)
        if usage := turn_usage_of(fields):
            stored.append(StoredTurn(usage, time_of(fields.get("endedAt"))))
    return stored


def answers_in(source: SourceFiles, session: str) -> list[str]:
    """Return the texts that the model wrote, as it is sent them again."""
    text = source.text(f"{session}/{HISTORY}") or ""
    lines = (object_in(line.encode("utf-8", "replace")) for line in text.split("\n") if '"assistant"' in line)
    return [str(line["content"]) for line in lines if line.get("type") == "assistant" and line.get("content")]
