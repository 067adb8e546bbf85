"""What is too long for the line of a message: whole in a file beside the transcript, its beginning in the line.

`<session>/tool-results/<tool call>.txt` holds a text, `.json` any other value. The line keeps the first 2 KB in the
client's wording, with the path and the size, and `persistedOutputs` says which of its values are in files. The file is
written before the line that names it.
"""

import os
import re
from collections.abc import Callable, Iterator
from contextlib import suppress
from pathlib import Path
from typing import Any

import msgspec

from agent_logger import platform
from agent_logger.home.layout import safe_name
from agent_logger.logs.transcript.lines import Message
from agent_logger.model.plurals import pluralize
from agent_logger.protocols.json_text import decode, encode

LONGEST = 30_000  # characters of a payload that stays in its line
PREVIEW = 2_048
MARK = "persistedOutputs"
FOLDER = "tool-results"
_OF_THE_LINE = {
    "type", "uuid", "parentUuid", "timestamp", "sessionId", "cwd", "gitBranch", "version", "permissionMode", "userType",
}  # fmt: skip

_FILE = re.compile(rf"{FOLDER}/[A-Za-z0-9][A-Za-z0-9._-]*")

JsonPath = tuple[str | int, ...]  # keys and indices, from the message


class Persisted(msgspec.Struct, frozen=True):
    """A value of a line that is stored in a file."""

    at: list[str | int]
    file: str  # below the session's folder
    characters: int


_marks = msgspec.json.Decoder(list[Persisted])


def move_long_values(message: Message, folder: Path, written: Callable[[Path], None]) -> Message:
    """Return the message as its line has it; `folder` is the session's. Where a file cannot be written, the line is
    long.

    `written` is called with each file, to sync it before the line. Raises `ValueError` if the message has our mark
    already.
    """
    if MARK in message:
        raise ValueError(f"a message may not have the field `{MARK}`, which is reserved")
    marks: list[Persisted] = []
    for place, name, payload in list(_payloads(message)):
        text = payload if isinstance(payload, str) else encode(payload).decode()
        if len(text) <= LONGEST:
            continue
        with suppress(OSError):
            file = _write(folder / FOLDER, safe_name(name), text, "txt" if payload is text else "json")
            message = _replaced(message, place, _preview(text, folder / FOLDER / file))
            written(folder / FOLDER / file)
            marks.append(Persisted(list(place), f"{FOLDER}/{file}", len(text)))
    return {**message, MARK: msgspec.to_builtins(marks)} if marks else message


def whole(message: Message, folder: Path) -> Message:
    """Return the message as it was given. A value whose file is gone, or was changed, stays as the line has it."""
    marks = _marks_of(message)
    for mark in marks:
        with suppress(OSError, ValueError, LookupError, TypeError):
            message = _replaced(message, tuple(mark.at), _read(folder, mark))
    return {name: value for name, value in message.items() if name != MARK} if marks else message


def persisted_files(message: Message) -> list[str]:
    """Return the files that a line of a transcript names, below the session's folder."""
    return [mark.file for mark in _marks_of(message) if _FILE.fullmatch(mark.file)]


def _marks_of(message: Message) -> list[Persisted]:
    try:
        return _marks.decode(encode(message[MARK])) if MARK in message else []
    except (ValueError, RecursionError):
        return []


# ---------------------------------------------------------------- which values


def _payloads(message: Message) -> Iterator[tuple[JsonPath, str, Any]]:
    """Yield results of tools, and the fields of progress messages: the place of each, and a name for its file."""
    inner = message.get("message")
    content = inner.get("content") if isinstance(inner, dict) else None
    own = str(message.get("tool_use_id") or message.get("toolUseID") or message.get("uuid"))
    match message.get("type"):
        case "user" if isinstance(content, list):
            yield from _tool_results(content, own)
            if "toolUseResult" in message:
                yield ("toolUseResult",), f"{own}-result", message["toolUseResult"]
        case "tool_result" if "content" in message:
            yield ("content",), own, message["content"]
        case "progress":
            for field in [name for name in message if name not in _OF_THE_LINE]:
                yield (field,), f"{own}-{field}", message[field]


def _tool_results(content: list[Any], message_name: str) -> Iterator[tuple[JsonPath, str, Any]]:
    for number, block in enumerate(content):
        if isinstance(block, dict) and block.get("type") == "tool_result" and "content" in block:
            name = str(block.get("tool_use_id") or message_name)
            yield ("message", "content", number, "content"), name, block["content"]


def _replaced(value: Any, place: JsonPath, new: Any) -> Any:
    """Return a copy of the value with another one at this place. Raises `LookupError`, `TypeError` if it has no such
    place."""
    if not place:
        return new
    copied: Any = dict(value) if isinstance(value, dict) else list(value)
    copied[place[0]] = _replaced(value[place[0]], place[1:], new)
    return copied


def _preview(text: str, path: Path) -> str:
    size = f"{len(text.encode('utf-8', 'surrogatepass')) / 1024:.1f}KB"
    head = f"<persisted-output>\nOutput too large ({size}). Full output saved to: {path}\n\nPreview (first 2KB):\n"
    return f"{head}{text[:PREVIEW]}\n...\n</persisted-output>"


# ---------------------------------------------------------------- files


def _write(folder: Path, name: str, text: str, kind: str) -> str:
    """Write a file. Returns its name; a name that is taken gets a number. Raises `OSError`."""
    if folder.is_symlink() or folder.parent.is_symlink():
        raise OSError(f"{folder} is a symbolic link")
    platform.make_folder(folder)
    held, file = _create(folder, name, kind)
    try:
        held.write(text.encode("utf-8", "surrogatepass"))
    except OSError:
        os.unlink(held.path)
        raise
    finally:
        held.close()
    return file


def _create(folder: Path, name: str, kind: str) -> tuple[platform.Held, str]:
    for number in range(1, 1_000):
        file = f"{name}.{kind}" if number == 1 else f"{name}-{number}.{kind}"
        with suppress(FileExistsError):
            return platform.open_file(folder / file, create=True), file
    raise OSError(f"{folder / name}: no free name is left")


def _read(folder: Path, mark: Persisted) -> Any:
    """Read a value from its file. Raises `ValueError` if it is not what was written."""
    if not _FILE.fullmatch(mark.file) or folder.is_symlink() or (folder / FOLDER).is_symlink():
        raise ValueError(mark.file)
    fd = os.open(folder / mark.file, os.O_RDONLY | os.O_CLOEXEC | os.O_NOFOLLOW | os.O_NONBLOCK)
    with open(fd, "rb") as file:
        text = file.read().decode("utf-8", "surrogatepass")
    if len(text) != mark.characters:
        raise ValueError(f"{mark.file} has {pluralize(len(text), 'character')}")
    return text if mark.file.endswith(".txt") else decode(text.encode())
