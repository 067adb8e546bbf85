"""Reads a log as a whole: all its parts, plain or sealed, the exchanges still in flight, what a branch continues
from."""

import os
from collections.abc import Iterable
from pathlib import Path

from agent_logger.agents.registry import recognise
from agent_logger.errors import SourceError
from agent_logger.files import foreign
from agent_logger.files.parts import LoneFile, PartFile, part_of
from agent_logger.files.sources import first_bytes, source_at
from agent_logger.journal.ownership import kind_of
from agent_logger.logs import exchange_log
from agent_logger.logs.branches import read_branch
from agent_logger.logs.log_records import kind_of_log, read_exchange_log, read_log, read_records
from agent_logger.logs.transcript.lines import Message, message_of
from agent_logger.logs.transcript.session import session_of_log
from agent_logger.logs.transcript.side_files import whole
from agent_logger.logs.wire_log import session as wire_log
from agent_logger.model.records import ExchangeRecord, SessionHeader
from agent_logger.model.session import Session, Witness
from agent_logger.protocols.jsonl import Torn


def read_session(path: str | os.PathLike[str], *, alone: bool = False) -> Session:
    """Return the session in a file.

    The file is one of ours (finished, in flight, sealed or a branch) or the main file of an agent that can be read,
    such as Claude Code, Codex or Gemini CLI. It is recognised by its content, whatever its name; other files of the
    session are found by their names. Of a database it is the newest session.

    `alone`: for a branch only its own calls, and not those of its parents. What is damaged is left out. Raises
    `SourceError` if the file has no session, and `OSError`.
    """
    path = Path(path).expanduser()
    part = part_of(path)
    kind = kind_of_log(part.folder, part.name) if part else None
    if part and kind == "wire":
        own = (item.value for item in read_log(part.folder, part.name))
        whole = read_branch(part.folder, part.name)
        return wire_log.session_of(
            (record for record in own if not isinstance(record, Torn)) if alone else whole, part.name
        )
    if part and kind == "exchange":
        log = read_exchange_log(part.folder, part.name)
        return exchange_log.session_of(log.others, log.exchanges, part.name)
    if part and kind == "transcript":
        return session_of_log(part, read_header(part), read_messages)
    return _read_renamed(path) or _read_foreign(path)


def _read_renamed(path: Path) -> Session | None:
    """Read a log of ours whose file does not end in `.jsonl`; None if it is no log of ours."""
    file = LoneFile(path.parent, path.name)
    kind = kind_of(file) if path.is_file() and part_of(path) is None else None
    if kind == "wire":
        return wire_log.session_of(read_records(file), path.stem)
    if kind == "exchange":
        records = read_records(file)
        exchanges = [record for record in records if isinstance(record, ExchangeRecord)]
        return exchange_log.session_of(records, exchanges, path.stem)
    if kind == "transcript":
        records = read_records(file)
        header = next((record for record in records if isinstance(record, SessionHeader)), None)
        return session_of_log(file, header, lambda log: _messages_of(read_records(log), log))
    return None


def witness_of(path: Path) -> Witness | None:
    """Return which witness wrote a log of ours; that is known even if nothing was answered."""
    part = part_of(path)
    kind = kind_of_log(part.folder, part.name) if part else None
    if part and kind == "exchange":
        log = read_exchange_log(part.folder, part.name)
        return (log.start and log.start.witness) or exchange_log.witness_of(log.exchanges)
    return "wire" if kind == "wire" else None


def read_messages(log: PartFile) -> list[Message]:
    """Return the messages of a transcript in order, with what is in files beside it. What cannot be read is left
    out."""
    return read_transcript(log)[1]


def read_transcript(log: PartFile) -> tuple[SessionHeader | None, list[Message]]:
    """Return the header and the messages of a transcript, as `read_messages` does."""
    records = [item.value for item in read_log(log.folder, log.name)]
    header = next((record for record in records if isinstance(record, SessionHeader)), None)
    return header, _messages_of(records, log)


def _messages_of(records: Iterable[object], log: PartFile) -> list[Message]:
    lines = (message_of(record) for record in records)
    return [whole(line, log.folder / log.name) for line in lines if line is not None]


def read_lines(log: PartFile) -> list[Message]:
    """Return the messages of a transcript as they are in the log, without what is in files beside it."""
    messages = (message_of(item.value) for item in read_log(log.folder, log.name))
    return [message for message in messages if message is not None]


def read_header(log: PartFile) -> SessionHeader | None:
    """Return the header; None if it was lost, or the log is not a transcript of ours."""
    for item in read_log(log.folder, log.name):
        if isinstance(item.value, SessionHeader):
            return item.value
        if message_of(item.value):
            return None
    return None


def _read_foreign(path: Path) -> Session:
    """Read a session in a main file of another agent, or in a sealed copy of it; of a database the newest session."""
    path = path.with_name(path.name.removesuffix(foreign.SEALED))
    if foreign.existing(path) is None:
        raise SourceError(f"{path}: no such file")
    agent = recognise(path.absolute().as_posix(), first_bytes(path))
    if agent is None:
        raise SourceError(f"{path}: not a session that agent-logger can read (that of a sub-agent is in its session)")
    return agent.session_of(agent.open_session(source_at(agent.name, path)))
