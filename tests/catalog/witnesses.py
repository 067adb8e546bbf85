"""What the witnesses of the recorded scenarios tell, session by session, and who truly saw what."""

import json
import re
from collections import defaultdict
from collections.abc import Iterator, Mapping, Sequence
from datetime import datetime, timedelta
from functools import cache
from pathlib import Path

from msgspec.structs import replace

from agent_logger.agents.claude_code.transcript.session import session_of as claude_session
from agent_logger.logs.reader import read_session
from agent_logger.logs.wire_log.session import session_of as wire_session
from agent_logger.model.records import Record, Request, Response
from agent_logger.model.session import Exchange, Session, Turn
from agent_logger.recording.sdk_logger import SessionLogger
from tests.agents.claude_code.claude_files import Fixture
from tests.logs.wire_log.wire_records import Talk, talks
from tests.recording.sdk_fixtures import lines, objects

_MESSAGE = re.compile(r'"id": ?"(msg_\w+)"')


def told(fixture: Fixture, folder: Path) -> dict[str, list[Session]]:
    """By the client's id: the session of the wire, of the client's files, of what it printed."""
    found: dict[str, list[Session]] = defaultdict(list)
    for spoken in talks():
        if spoken.name == fixture.name and spoken.client_id:
            found[spoken.client_id].append(wire_session(timed(spoken)))
    for source in fixture.sources():
        session = claude_session(source)
        found[session.id].append(session)
    for session in printed(fixture, folder):
        found[session.id].append(_at_its_time(session, found[session.id]))
    return dict(found)


def printed(fixture: Fixture, folder: Path) -> Iterator[Session]:
    for path in _outputs(fixture):
        logger = SessionLogger(folder)
        given = [it for _, it in objects(path)] if path.suffix == ".jsonl" else lines(path)
        for message in given:
            logger.log(message)
        logger.close()
    for log in sorted(folder.glob("*.jsonl")):
        if (session := read_session(log)).id:
            yield session


def _outputs(fixture: Fixture) -> list[Path]:
    """The messages of an SDK, or what the command line printed."""
    kind = "*.jsonl" if fixture.name.startswith("claude-agent-sdk") else "*.stdout"
    return sorted(it for it in fixture.folder.glob(kind) if it.name != "wire.jsonl")


# ---------------------------------------------------------------- times: fixtures were recorded, and are read later


def timed(spoken: Talk) -> Iterator[Record]:
    times = _times(spoken.name)
    for record in spoken.records():
        if isinstance(record, Request | Response):
            at = times[spoken.calls[record.seq - 1].truth["seq"]]
            answered = timedelta(milliseconds=4 if isinstance(record, Response) else 0)
            yield replace(record, ts=(at + answered).isoformat())
        else:
            yield replace(record, ts=min(times.values()).isoformat())


@cache
def _times(name: str) -> Mapping[int, datetime]:
    folder = Path(__file__).parents[1] / "data" / name
    calls = [json.loads(line) for line in (folder / "wire.jsonl").read_text().split("\n") if line]
    return {it["seq"]: datetime.fromisoformat(it["ts"]) for it in calls}


def _at_its_time(session: Session, others: Sequence[Session]) -> Session:
    """A program that logs what it is told is told it when the client writes it down."""
    turns = {turn.message_id: turn for other in others for turn in other.turns}
    exchanges = [exchange for other in others for exchange in other.exchanges]
    return replace(
        session,
        started=None,
        ended=None,
        exchanges=[_timed(it, turns, exchanges[at : at + 1]) for at, it in enumerate(session.exchanges)],
    )


def _timed(exchange: Exchange, known: Mapping[str | None, Turn], there: Sequence[Exchange]) -> Exchange:
    turns = [
        replace(it, started=known[it.message_id].started, ended=known[it.message_id].ended)
        if it.message_id in known
        else replace(it, started=None, ended=None)
        for it in exchange.turns
    ]
    spans: list[Turn] | Sequence[Exchange] = [it for it in turns if it.started and it.ended] or there
    starts, ends = [it.started for it in spans if it.started], [it.ended for it in spans if it.ended]
    return replace(exchange, turns=turns, started=min(starts, default=None), ended=max(ends, default=None))


# ---------------------------------------------------------------- the truth, from the bytes


def seen(fixture: Fixture) -> dict[str, dict[str, set[str]]]:
    """Per message id and session: who saw it."""
    found: dict[str, dict[str, set[str]]] = defaultdict(lambda: defaultdict(set))
    for spoken in talks():
        if spoken.name == fixture.name and spoken.client_id:
            for call in spoken.calls:
                for message_id in _MESSAGE.findall(call.body.decode()):
                    found[spoken.client_id][message_id].add("wire")
    for path in fixture.paths():
        files = [path, *path.parent.joinpath(path.stem).glob("subagents/*.jsonl")]
        for line in (json.loads(line) for file in files for line in file.read_text().split("\n") if line):
            if line["type"] == "assistant":
                found[path.stem][line["message"]["id"]].add("transcript")
    for path in _outputs(fixture):
        for session, message_id in _printed_ids(path):
            found[session][message_id].add("sdk")
    return found


def _printed_ids(path: Path) -> Iterator[tuple[str, str]]:
    if path.suffix == ".jsonl":
        for _, it in objects(path):
            if type(it).__name__ == "AssistantMessage":
                yield it.session_id, it.message_id
    else:
        for line in lines(path):
            if line.get("type") == "assistant":
                yield line["session_id"], line["message"]["id"]
