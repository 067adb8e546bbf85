"""The first line of a Codex rollout, which describes its session."""

from typing import Any

import msgspec

from agent_logger.providers.json_values import fields_of
from agent_logger.providers.lenient import fitting


class _Spawn(msgspec.Struct):
    parent_thread_id: str | None = None


class _SubAgent(msgspec.Struct):
    thread_spawn: _Spawn | None = None


class _Source(msgspec.Struct):
    subagent: _SubAgent | str | None = None  # a word for those that are no thread


class CodexMeta(msgspec.Struct):
    id: str = ""
    cwd: str | None = None
    started: str | None = msgspec.field(name="timestamp", default=None)
    parent_thread_id: str | None = None
    forked_from: str | None = msgspec.field(name="forked_from_id", default=None)
    source: _Source | str | None = None  # a word for what a person started, and an object for sub-agents

    @property
    def spawned_by(self) -> str | None:
        """Return the thread that started this one, which then is a sub-agent's."""
        agent = self.source.subagent if isinstance(self.source, _Source) else None
        spawn = agent.thread_spawn if isinstance(agent, _SubAgent) else None
        return (spawn.parent_thread_id if spawn else None) or self.parent_thread_id


def meta_of(line: Any) -> CodexMeta | None:
    """Return what a first line says; None if it is not such a line."""
    fields = fields_of(line)
    if fields.get("type", "session_meta") != "session_meta":
        return None
    # Versions before 0.32 wrote no type, no payload around the fields, and no folder.
    is_bare = "type" not in fields and type(fields.get("id")) is str and type(fields.get("timestamp")) is str
    meta = fitting(CodexMeta, fields if is_bare else fields.get("payload"))
    return meta if meta.id else None
