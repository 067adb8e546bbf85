"""What the first line of a Codex rollout says about the session it belongs to."""

from dataclasses import dataclass
from typing import Any

from agent_logger.wire.answer import Json, fields_of, text_of


@dataclass(frozen=True, slots=True, kw_only=True)
class Meta:
    id: str
    cwd: str | None = None
    started: str | None = None
    version: str | None = None
    originator: str | None = None
    branch: str | None = None
    spawned_by: str | None = None  # the thread that started this one, which is a sub-agent's then
    forked_from: str | None = None


def meta_of(line: Any) -> Meta | None:
    """None if it is not such a line."""
    fields = fields_of(line)
    told = fields if is_bare(fields) else fields_of(fields.get("payload"))
    if fields.get("type", "session_meta") != "session_meta" or not isinstance(told.get("id"), str):
        return None
    return Meta(
        id=told["id"],
        cwd=text_of(told.get("cwd")),
        started=text_of(told.get("timestamp")),
        version=text_of(told.get("cli_version")),
        originator=text_of(told.get("originator")),
        branch=text_of(fields_of(told.get("git")).get("branch")),
        spawned_by=_spawned_by(told.get("source")) or text_of(told.get("parent_thread_id")),
        forked_from=text_of(told.get("forked_from_id")),
    )


def is_bare(line: Json) -> bool:
    """Whether it is written as versions before 0.32 did: without a type, a payload around it, or a folder."""
    return "type" not in line and type(line.get("id")) is str and type(line.get("timestamp")) is str


def _spawned_by(source: Any) -> str | None:
    """`source` is a word for what a person started, and an object for sub-agents."""
    spawn = fields_of(fields_of(fields_of(source).get("subagent")).get("thread_spawn"))
    return text_of(spawn.get("parent_thread_id"))
