"""Each witness of a session removed: the numbers of the others are right, or marked, never smaller in silence."""

import json
import re
import shutil
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from datetime import datetime
from itertools import combinations, product
from operator import ge
from pathlib import Path
from typing import Any, Literal

import pytest
from msgspec.structs import replace

from agent_logger.catalog.catalog import Catalog
from agent_logger.catalog.ledger.metrics import metrics_of
from agent_logger.catalog.ledger.rows import LedgerRow
from agent_logger.catalog.ledger.totals import total
from agent_logger.clock import Clock
from agent_logger.home.facts import register_log_folder
from agent_logger.messages import sdk
from agent_logger.messages.sdk_objects import json_of
from agent_logger.model import records
from agent_logger.model.session import Usage
from agent_logger.recording.exchanges import Began
from agent_logger.recording.session_writer import SessionWriter
from tests.agents.claude_code.claude_files import Fixture, fixtures
from tests.catalog.witnesses import timed
from tests.logs.wire_log.wire_records import talks
from tests.recording.sdk_fixtures import lines, objects

KINDS = ("input_tokens", "output_tokens", "cache_read_input_tokens", "cache_creation_input_tokens")
WITNESSES = ("wire", "transcript", "printed")
SUBSETS = [it for size in (3, 2, 1) for it in combinations(WITNESSES, size)]


# ---------------------------------------------------------------- what was recorded


def write_wire(fixture: Fixture, home: Path) -> None:
    folder = home / "logs" / "anthropic"
    folder.mkdir(parents=True, exist_ok=True)
    for number, spoken in enumerate(it for it in talks() if it.name == fixture.name):
        path = folder / f"20261115-08{number // 60:02}{number % 60:02}-{number:04x}.jsonl"
        path.write_bytes(b"".join(records.encode(it) + b"\n" for it in timed(spoken)))
    register_log_folder(home / ".agent-logger", home / "logs")


def write_transcripts(fixture: Fixture, home: Path) -> None:
    for path in fixture.folder.joinpath("home").glob("**/projects"):
        shutil.copytree(path, home / ".claude" / "projects", dirs_exist_ok=True)


def write_printed(
    fixture: Fixture, home: Path, *, at_its_time: bool, changed: Callable[[bytes], bytes] = bytes
) -> None:
    """What an SDK, or who ran the client, was told: when it was, or all of it now."""
    folder, spans = home / "sessions", bursts(fixture)
    witness: Literal["sdk", "run"] = "sdk" if fixture.name.startswith("claude-agent-sdk") else "run"
    times = call_times(fixture)
    order = sorted(times.values())
    at = min(order, default=0.0)

    def now() -> float:
        return at

    for number, path in enumerate(printed_files(fixture)):
        messages = [sdk.read(changed(it)) for it in printed_by(path)]
        sessions = {it.session_id for it in messages}
        burst = next((it for it in spans if it.sessions & sessions or not messages), None)
        has_ids = any(it.inner and it.inner.id in times for it in messages)
        if burst:
            spans.remove(burst)
            at = at if has_ids else burst.started
        clock = Clock(now) if at_its_time else Clock()
        told = sorted({times[it.inner.id] for it in messages if it.inner and it.inner.id in times})
        resumed = resumed_from(fixture, number)
        writer = SessionWriter(folder, resumed_from=resumed, began=Began(witness, "claude-code"), clock=clock)
        for message in messages:
            if message.inner and message.inner.id in times:
                at = max(at, times[message.inner.id])
                told.remove(times[message.inner.id]) if times[message.inner.id] in told else None
            if message.result:
                at = _end(at, told, order) if has_ids or not burst else burst.ended
            writer.message(message)
        writer.finish()
    register_log_folder(home / ".agent-logger", folder)


def _end(at: float, told: list[float], order: list[float]) -> float:
    """Of an exchange: behind all calls before the next response that is told."""
    following = min(told, default=float("inf"))
    return max([it for it in order if it < following] + [at]) + 0.002


@dataclass
class Burst:
    """Calls that follow each other closely: those of one process."""

    started: float
    ended: float
    sessions: set[str | None]


def bursts(fixture: Fixture) -> list[Burst]:
    manifest = json.loads((fixture.folder / "manifest.json").read_text())
    asked = {it["seq"]: it for it in manifest["requests"] if it["kind"] != "probe"}
    found: list[Burst] = []
    for call in (json.loads(it) for it in (fixture.folder / "wire.jsonl").read_text().split("\n") if it):
        if call["seq"] in asked:
            at = datetime.fromisoformat(call["ts"]).timestamp()
            if not found or at - found[-1].ended > 0.3:
                found.append(Burst(at - 0.01, at, set()))
            found[-1].ended = at + 0.01
            found[-1].sessions.add(asked[call["seq"]]["session_id"])
    return found


def printed_files(fixture: Fixture) -> list[Path]:
    kind = "*.jsonl" if fixture.name.startswith("claude-agent-sdk") else "*.stdout"
    return sorted(it for it in fixture.folder.glob(kind) if it.name != "wire.jsonl")


def printed_by(path: Path) -> Iterator[bytes]:
    found = [it for _, it in objects(path)] if path.suffix == ".jsonl" else lines(path)
    yield from filter(None, map(json_of, found))


def resumed_from(fixture: Fixture, number: int) -> str | None:
    commands = json.loads((fixture.folder / "manifest.json").read_text()).get("commands", ())
    if fixture.name.startswith("claude-agent-sdk") or number >= len(commands):
        return None
    words = commands[number]["args"]
    return words[words.index("--resume") + 1] if "--resume" in words else None


def call_times(fixture: Fixture) -> dict[str, float]:
    """By message id: when its call was made."""
    calls = [json.loads(it) for it in (fixture.folder / "wire.jsonl").read_text().split("\n") if it]
    return {
        message_id: datetime.fromisoformat(call["ts"]).timestamp()
        for call in calls
        for message_id in MESSAGE.findall(json.dumps(call.get("response", {}).get("body", "")).replace("\\", ""))
    }


MESSAGE = re.compile(r'"id": ?"(msg_\w+)"')


# ---------------------------------------------------------------- what is true


@dataclass(frozen=True)
class Truth:
    whole: Usage  # of the responses that came to their end
    billed: Usage  # with what was told of those that were cut


def truths(fixture: Fixture) -> dict[str | None, Truth]:
    manifest = json.loads((fixture.folder / "manifest.json").read_text())
    failed = ended_by_error(fixture)
    found: dict[str | None, Truth] = {}
    for call in manifest["requests"]:
        is_billed = call["seq"] not in failed and call["kind"] not in ("probe", "models", "count_tokens")
        if call["usage"] and is_billed:
            usage = usage_of(call["usage"])
            known = found.get(call["session_id"], Truth(Usage(), Usage()))
            whole = known.whole + usage if call["complete"] and call["status"] == 200 else known.whole
            found[call["session_id"]] = Truth(whole, known.billed + usage)
    return found


def ended_by_error(fixture: Fixture) -> set[int]:
    """Calls whose answer the API ended with an error, which it does not bill."""
    calls = [json.loads(it) for it in (fixture.folder / "wire.jsonl").read_text().split("\n") if it]
    return {it["seq"] for it in calls if "event: error" in json.dumps(it.get("response", {}).get("body", ""))}


def usage_of(told: dict[str, int]) -> Usage:
    given, output, read, write = (told.get(kind) or 0 for kind in KINDS)
    return Usage(input_tokens=given, output_tokens=output, cache_read_tokens=read, cache_write_tokens=write)


def without_hours(usage: Usage) -> Usage:
    return replace(usage, cache_write_1h_tokens=0)


def is_marked(rows: list[LedgerRow]) -> bool:
    return any(row.partial or row.tokens is None for row in rows)


def rows_of(fixture: Fixture, subset: tuple[str, ...], home: Path, *, at_its_time: bool) -> list[LedgerRow]:
    if "wire" in subset:
        write_wire(fixture, home)
    if "transcript" in subset:
        write_transcripts(fixture, home)
    if "printed" in subset:
        write_printed(fixture, home, at_its_time=at_its_time)
    with Catalog.open(home / ".agent-logger") as catalog:
        rows = list(catalog.ledger())
        assert_views_agree(catalog, rows)
    return rows


def sessions_with_unlisted_calls(home: Path) -> set[str]:
    with Catalog.open(home / ".agent-logger") as catalog:
        return {it.id for it in catalog.sessions() if it.unlisted_calls}


def assert_views_agree(catalog: Catalog, rows: list[LedgerRow]) -> None:
    """The ledger, the list of sessions, and each session as it is shown."""
    for it in catalog.sessions():
        if session := catalog.session(it.id):
            own_rows = [row for row in rows if row.session == it.id]
            own, shown = total(own_rows), metrics_of(session)
            assert session.usage == shown.usage == own.usage == it.usage
            assert session.cost.nano_usd == shown.cost.nano_usd == own.cost.nano_usd
            assert shown.turns == it.turns == len(session.own_turns)  # also those that nobody bills
            billed = [turn for turn in session.own_turns if turn.is_billed and not turn.is_sum]
            assert len([row for row in own_rows if row.joined_by != "result"]) == len(billed)


# Its warm-ups have sessions of their own on the wire; the client counts them, and writes them down, with the others.
WARMED_UP_ELSEWHERE = {"claude-cli/2.1.4/resume_chain"}

# 2.1.4 writes nothing of its title calls; the session says that such calls are not listed.
UNLISTED = {"claude-cli/2.1.4/tools_stream"}


def cases() -> Iterator[Any]:
    for fixture, subset, at_its_time in product(fixtures(), SUBSETS, (True, False)):
        if at_its_time or "printed" in subset:
            when = "at its time" if at_its_time else "replayed"
            name = f"{fixture.name} {'+'.join(subset)} {when}"
            yield pytest.param(fixture, subset, at_its_time, id=name)


@pytest.mark.parametrize(("fixture", "subset", "at_its_time"), list(cases()))
def test_totals_of_remaining_witnesses_are_correct_or_marked_incomplete(
    fixture: Fixture, subset: tuple[str, ...], at_its_time: bool, home: Path
) -> None:
    rows = rows_of(fixture, subset, home, at_its_time=at_its_time)
    known, true_of = {row.session for row in rows}, truths(fixture)
    if "wire" in subset:  # saw every call: nothing is missing, and nothing counts twice
        assert without_hours(total(rows).usage) == sum((it.billed for it in true_of.values()), Usage())
    for session, true in true_of.items():
        own = [row for row in rows if row.session == session]
        found = without_hours(total(own).usage)
        if session not in known:
            continue
        if "wire" in subset:
            assert found == true.billed, session
        elif is_marked(own):
            continue
        elif fixture.name in UNLISTED and subset == ("transcript",):
            assert session in sessions_with_unlisted_calls(home)
        elif fixture.name in WARMED_UP_ELSEWHERE:
            assert all(map(ge, found.counts, true.whole.counts)), session
        else:
            assert found == true.billed, session


FORK = b"c67b7cc2-ec6e-4bd6-bdff-43fcd811681a"
SIDE_CALL = b'"claude-haiku-4-5":{"inputTokens":7,"outputTokens":3},'


def test_usage_a_fork_does_not_itemise_is_included_in_all_views(home: Path) -> None:
    """Its client made a call aside, of which nothing but the result tells."""

    def with_side_call(line: bytes) -> bytes:
        return line.replace(b'"modelUsage":{', b'"modelUsage":{' + SIDE_CALL) if FORK in line else line

    fixture = next(it for it in fixtures() if it.name == "claude-cli/2.1.325/forks_go_on")
    write_transcripts(fixture, home)
    write_printed(fixture, home, at_its_time=True, changed=with_side_call)
    with Catalog.open(home / ".agent-logger") as catalog:
        rows = list(catalog.ledger())
        (aside,) = [row for row in rows if row.joined_by == "result"]
        assert (aside.session, aside.tokens) == (FORK.decode(), (7, 3, 0, 0, 0))
        assert_views_agree(catalog, rows)
