"""The documents of a session of version 3, and their names. They are small objects, except for chunks, which are lists:
of the history that is shown, and of the messages that the model gets."""

import re
from collections.abc import Iterator, Sequence

import msgspec

from agent_logger.agents.cline import document
from agent_logger.agents.objects import decoded, object_in, shallow
from agent_logger.protocols import jsonl
from agent_logger.protocols.jsonl import Damage, JsonEntry
from agent_logger.protocols.lines import Line
from agent_logger.providers.json_values import fields_of, text_of, with_whole_characters
from agent_logger.providers.lenient import REFUSED, fitting

CURRENT, META, MESSAGES = "CURRENT", "meta.json", "messages.jsonl"
GENERATIONS, CHUNKS, JOURNAL = "generations", "chunks", "journal"
MANIFEST, RUNTIME_STATE = "manifest.json", "runtime-state.json"
STORE_FORMAT = b'"store_format":"mistral.vibe.unified-session-store/'
SUBAGENT = "subagent"
BLANKS = b" \t\r\n"
_CHUNK = re.compile(r"[0-9a-f]{64}")
_CHUNK_FORM = document.MessageForm(
    re.compile(r'\{\s*"'), lambda value: "generationStatus" in value or "turn_index" in value, "elements"
)
_DOCUMENT = re.compile(r"[a-z][a-z-]{0,60}\.json")


class _Part(msgspec.Struct, gc=False):
    path: str | None = None
    chunks: list[str] = []


class _Manifest(msgspec.Struct, gc=False):
    projection_state: _Part | None = None
    checkpoint: _Part | None = None


class StoreIdentity(msgspec.Struct, gc=False):
    kind: str | None = None
    parent: str | None = msgspec.field(name="parent_session_id", default=None)

    @property
    def started_by(self) -> str | None:
        return self.parent if self.kind == SUBAGENT else None


def current_generation(data: bytes) -> str | None:
    return text_of(object_in(data).get("generation"))


def owner_of(state: bytes) -> str | None:
    """Return the session that started a sub-agent, from the state of the sub-agent."""
    return fitting(StoreIdentity, object_in(state).get("identity")).started_by


def names_in(manifest: Sequence[JsonEntry | Damage], generation: str) -> list[str]:
    """Return the names of the documents that a manifest names: what is shown, then what the model gets."""
    fields = next((entry.value for entry in manifest if isinstance(entry, JsonEntry)), None)
    read = fitting(_Manifest, fields_of(fields))
    names: list[str] = []
    for part in (read.projection_state, read.checkpoint):
        if part and _DOCUMENT.fullmatch(part.path or ""):
            names.append(f"{GENERATIONS}/{generation}/{part.path}")
        names += [f"{CHUNKS}/{chunk}.json" for chunk in (part.chunks if part else ()) if _CHUNK.fullmatch(chunk)]
    return names


def entries_of(data: bytes, number: int) -> Iterator[JsonEntry | Damage]:
    """Yield the object in a document, or the elements of its list; of a damaged document, the objects that can be read,
    and what cannot."""
    try:
        value = decoded(data, data)
    except REFUSED:
        yield from _salvaged(data, number)
        return
    for element in value if type(value) is list else (value,):
        yield JsonEntry(number, 0, element, b"")


def _salvaged(data: bytes, number: int) -> Iterator[JsonEntry | Damage]:
    stripped = data.strip(BLANKS)
    if not stripped:
        yield Damage(number, 0, len(data), "the document is empty")
        return
    if stripped.startswith(b"["):
        yield from _salvaged_elements(stripped, number)
        return
    for entry in jsonl.decode(Line(number, 0, len(stripped), stripped)):
        if isinstance(entry, JsonEntry):
            value = shallow(entry.value, entry.raw)
            for element in value if type(value) is list else (value,):
                yield JsonEntry(number, entry.offset, with_whole_characters(element), b"")
        else:
            yield entry


def _salvaged_elements(data: bytes, number: int) -> Iterator[JsonEntry | Damage]:
    """Yield the elements of a damaged list, each that can be read."""
    end = b"}" if data.endswith(b"]") else b""
    _, *elements = document.entries_of(b'{"%s":%s%s' % (_CHUNK_FORM.list_name.encode(), data, end), _CHUNK_FORM)
    for element in elements:
        yield msgspec.structs.replace(element, line=number)
