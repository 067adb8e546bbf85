"""Files of other agents for the tests: the recorded ones, what is true of them, and ways to break them."""

import json
from collections.abc import Callable, Iterable, Iterator, Sequence
from pathlib import Path
from typing import Any

import msgspec
from hypothesis import strategies as st

from agent_logger.agents.registry import readable_agent
from agent_logger.agents.source_files import Entries, File, SourceFiles
from agent_logger.files.sources import StampCache
from agent_logger.model.session import Session, Usage
from agent_logger.protocols import jsonl
from agent_logger.protocols.jsonl import Torn
from agent_logger.protocols.lines import LineSplitter
from tests.hostile import LINES, ODD_VALUES

DATA = Path(__file__).parents[1] / "data"


def entries(data: bytes) -> Entries:
    splitter = LineSplitter()
    for line in splitter.feed(data):
        yield from jsonl.decode(line)
    if torn := splitter.torn():
        yield Torn(torn.number, torn.offset, torn.length)


def source(main: bytes, *others: bytes, name: str = "main.jsonl") -> SourceFiles:
    return SourceFiles(_file(name, main), [_file(f"other-{at}.jsonl", data) for at, data in enumerate(others)])


def sources_of(agent: str, folder: Path) -> list[SourceFiles]:
    """The sessions in the home of a recorded scenario."""
    reader = readable_agent(agent)
    assert reader and reader.location
    folders = [folder / "home" / name for name in reader.location.default] or [folder / "home"]
    return [reader.open_session(found) for found in reader.discover(folders, StampCache())]


def _file(name: str, data: bytes) -> File:
    return File(name, entries(data), lambda: [data[:1000], data[1000:]])


def lines(*values: Any) -> bytes:
    """Without blanks, as the agents write them."""
    return b"".join(json.dumps(value, separators=(",", ":")).encode() + b"\n" for value in values)


class Manifest(msgspec.Struct):
    truth: dict[str, dict[str, dict[str, int]]] = msgspec.field(name="truth_usage_of_complete_responses")


def manifest(folder: Path) -> Manifest:
    return msgspec.json.decode((folder / "manifest.json").read_bytes(), type=Manifest)


def scenarios(agent: str) -> list[Path]:
    return sorted(path.parent for path in (DATA / agent).glob("*/*/manifest.json"))


def total(usages: Iterable[Usage | None]) -> Usage:
    return sum((usage for usage in usages if usage), Usage())


def shown(session: Session) -> list[tuple[str | None, list[list[str]]]]:
    """The conversation, short: what was typed, and of each turn its texts, `>tool` and `<result`."""
    return [
        (exchange.user_input, [list(_shown(turn.blocks)) for turn in exchange.turns]) for exchange in session.exchanges
    ]


def _shown(blocks: Sequence[Any]) -> Iterator[str]:
    marks: dict[str, Callable[[Any], str]] = {
        "text": lambda it: it.text,
        "thinking": lambda it: f"({it.text})",
        "tool_use": lambda it: f">{it.name}",
        "tool_result": lambda it: "<failed" if it.is_error else "<",
    }
    return (marks[block.kind](block) for block in blocks if block.kind in marks)


# ---------------------------------------------------------------- breaking them


def broken(real: Sequence[bytes]) -> st.SearchStrategy[bytes]:
    """Files out of real lines: values replaced, keys taken out, lines cut, glued, repeated, shuffled; and noise."""
    line = st.sampled_from(real)
    changed = st.builds(_changed, line, st.integers(0, 10_000), st.sampled_from([*ODD_VALUES, "drop"]))
    cut = st.builds(lambda it, at: it[: at % (len(it) + 1)], line, st.integers(0, 5_000))
    noise = st.sampled_from(list(LINES.values()))
    piece = st.one_of(line, changed, changed, cut, noise)
    end = st.sampled_from([b"\n", b"\n", b"\n", b"", b"\r\n"])
    whole = st.lists(st.tuples(piece, end), max_size=12)
    return whole.map(lambda pieces: b"".join(part for pair in pieces for part in pair))


def _changed(line: bytes, at: int, value: Any) -> bytes:
    """One value somewhere in the line is another one, or gone."""
    document = json.loads(line)
    places = list(_places(document))
    if not places:
        return line
    holder, key = places[at % len(places)]
    if value == "drop":
        del holder[key]
    else:
        holder[key] = value
    return json.dumps(document, separators=(",", ":")).encode()


def _places(value: Any) -> Iterator[tuple[Any, Any]]:
    keys = list(value) if isinstance(value, dict) else range(len(value)) if isinstance(value, list) else ()
    for key in keys:
        yield value, key
        yield from _places(value[key])
