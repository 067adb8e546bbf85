"""Reads the logs of a transcript into its session: the main one, and those of its sub-agents beside it."""

from collections.abc import Callable

from msgspec.structs import replace

from agent_logger.agents.claude_code.transcript.session import session_of
from agent_logger.agents.source_files import File, SourceFiles
from agent_logger.files.parts import PartFile, parts_in
from agent_logger.logs.transcript.lines import Message
from agent_logger.model.records import SessionHeader
from agent_logger.model.session import Session
from agent_logger.protocols.json_text import encode
from agent_logger.protocols.jsonl import JsonEntry

Read = Callable[[PartFile], list[Message]]

META = "agent_metadata"  # in an agent's log: what the client has in a file beside it


def session_of_log(log: PartFile, header: SessionHeader | None, read: Read) -> Session:
    agents = {f"{log.name}/subagents/{agent.name}": read(agent) for agent in _agents_of(log)}
    source = SourceFiles(
        main=_file(f"{log.name}.jsonl", read(log)),
        others=[_file(f"{name}.jsonl", messages) for name, messages in agents.items()],
        text=lambda name: _meta(agents.get(name.removesuffix(".meta.json"), [])),
    )
    session = session_of(source)
    if header is None:
        return session
    return replace(session, id=header.id, agent=header.agent, project=session.project or header.project_path)


def _agents_of(log: PartFile) -> list[PartFile]:
    """Return the logs of sub-agents, but from no folder that is a link: a transcript must not lead us out of its
    folder."""
    folder = log.folder / log.name / "subagents"
    if folder.is_symlink() or folder.parent.is_symlink():
        return []
    return list(dict.fromkeys(PartFile(folder, part.name) for part in parts_in(folder)))


def _file(name: str, messages: list[Message]) -> File:
    return File(name, [JsonEntry(number, 0, message, encode(message)) for number, message in enumerate(messages, 1)])


def _meta(messages: list[Message]) -> str | None:
    """Return the last metadata: it is written again when a session is resumed."""
    meta = next((message for message in messages[::-1] if message.get("type") == META), None)
    return encode(meta).decode() if meta else None
