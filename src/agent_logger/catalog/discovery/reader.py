"""Reading one witness of a session: what it tells of the model's responses, and the session it makes of itself."""

import dataclasses
import os
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import NamedTuple

import msgspec

from agent_logger.agents.claude_code.opener import claude_source
from agent_logger.agents.claude_code.transcript.beginning import Beginning
from agent_logger.agents.claude_code.transcript.responses import (
    FAMILY,
    SessionResponses,
    may_read_on,
    read_responses,
)
from agent_logger.agents.claude_code.transcript.session import AGENT
from agent_logger.agents.claude_code.transcript.session import session_of as claude_session_of
from agent_logger.agents.claude_code.transcript.subagents import agent_of
from agent_logger.agents.deleted_sessions import session_in as session_typed_in
from agent_logger.agents.opencode import database, older_files
from agent_logger.agents.openers import sources_of
from agent_logger.agents.registry import format_of
from agent_logger.agents.source_files import Source
from agent_logger.catalog.database import hashed, storable
from agent_logger.catalog.discovery.source import Found
from agent_logger.catalog.discovery.unidentified import own_name
from agent_logger.catalog.ledger.rows import BIT, micros_of, time_of, tokens_of
from agent_logger.catalog.ledger.session_responses import responses_of_session, totals_of_session
from agent_logger.errors import SourceError
from agent_logger.files import foreign
from agent_logger.files.follow import Position, Rest
from agent_logger.files.projects import project_of
from agent_logger.hooks import session as hook_session
from agent_logger.hooks.reader import agent_of as agent_hooked
from agent_logger.hooks.reader import events_in, session_in
from agent_logger.hooks.session import HookEvent
from agent_logger.logs.reader import read_session, witness_of
from agent_logger.model.prices import Tokens
from agent_logger.model.responses import ModelResponse, ReportedTotal
from agent_logger.model.session import MAIN, SIDE, Session, Usage, Witness

NO_SESSION = "unattributed:"  # begins the name of what is no session, but in the ledger


class Told(NamedTuple):
    """What a witness tells for the ledger."""

    session: str
    parent: str | None  # that it says it was forked from: a session, or a log in the same folder
    witnesses: int  # bits
    responses: list[ModelResponse]
    position: Position | None = None  # where to read on
    data: bytes = b""  # the responses, packed
    beginning: Beginning | None = None  # of the agent's own file
    totals: Sequence[ReportedTotal] = ()
    summaries: Mapping[str, str] = {}  # of other sessions, by the line that they end at
    is_rest: bool = False  # it was read on: what it tells beside responses is what is new


def session_of(found: Found, summaries: Mapping[str, str] | None = None) -> Session:
    """`summaries`: that other files have, by the line they end at. Raises `SourceError`, `OSError`."""
    if found.is_of_hooks:
        events = hook_events([found])
        return hook_session.session_of(hooked_session(found), agent_hooked(events), events)
    if found.agent and found.prompts_only:
        return session_typed_in(Path(found.path), found.agent, found.name)
    if found.agent == "claude-code":
        return claude_session_of(source_of(found), summaries)
    form = format_of(found.agent) if found.agent else None
    return form.session_of(source_of(found)) if form else read_session(Path(found.path))


def hooked_session(found: Found) -> str:
    """Whose hooks these are. Raises `SourceError`."""
    return session_in(Path(found.path).parent, found.name)


def hook_events(found: Sequence[Found]) -> list[HookEvent]:
    """Of one session, over all days."""
    return events_in([Path(it.path).parent for it in found], found[0].name)


def source_of(found: Found) -> Source:
    """The files of an agent's session. Raises `SourceError`, `OSError`."""
    path, others = Path(found.path), [Path(it) for it in found.others or ()]
    match found.agent, path.suffix:
        case "claude-code", _:
            names = None if found.others is None else [os.path.relpath(it, path.parent) for it in others]
            return claude_source(path, names)
        case "opencode", ".json":
            return older_files.source_of(path, others)
        case "opencode", _:
            return database.source_of(path, found.name)
    source = next(sources_of(found.agent or "", [path, *others]), None)
    if source is None:
        raise SourceError(f"{path}: no session in it")
    return source


def told_by(found: Found, before: Told | None = None) -> Told:
    """All that was billed; reading on from what was told before, where that can be done. Raises as `session_of`."""
    told = _told_by(found, before)
    responses = _in_their_projects(told.responses)
    try:
        data = packed(responses)
    except UnicodeEncodeError:  # halves of characters
        responses = [_made_whole(it) for it in responses]
        data = packed(responses)
    name = _nameable(told.session)
    totals = [_storable_total(it, name) for it in told.totals]
    return told._replace(session=name, responses=responses, data=data, totals=totals)


def _in_their_projects(responses: list[ModelResponse]) -> list[ModelResponse]:
    told = {(it.project, it.session) for it in responses}
    places = {it: (project_of(it[0]) if it[0] else None, _nameable(it[1])) for it in told}
    if all(told == place for told, place in places.items()):
        return responses
    replaced = ((it, *places[it.project, it.session]) for it in responses)
    return [
        msgspec.structs.replace(it, project=project, session=session) for it, project, session in replaced
    ]


def _nameable(name: str) -> str:
    """NUL ends a text in SQL's JSON, and no argument of a command can hold it."""
    return name.replace("\0", "\ufffd")


def _storable_total(it: ReportedTotal, session: str) -> ReportedTotal:
    models = tuple(
        msgspec.structs.replace(model, model=model.model and storable(model.model))
        for model in it.total.models
    )
    ids = tuple(map(storable, it.total.message_ids))
    return ReportedTotal(
        session=storable(session),
        project=project_of(it.project) if it.project else None,
        agent=it.agent,
        family=it.family,
        total=msgspec.structs.replace(it.total, models=models, message_ids=ids),
    )


TEXTS = ("message_id", "request_id", "model", "tier", "session", "project", "agent", "thread")


def _made_whole(it: ModelResponse) -> ModelResponse:
    texts = {name: value for name in TEXTS if (value := getattr(it, name))}
    return msgspec.structs.replace(it, **{name: storable(value) for name, value in texts.items()})


def _told_by(found: Found, before: Told | None) -> Told:
    if found.is_of_hooks:
        return Told(hooked_session(found), None, BIT["hook"], [])
    if found.is_of_no_session:
        return _told_by_calls(Path(found.path))
    if found.agent is None:
        return _told_by_log(Path(found.path))
    if found.prompts_only:
        return Told(found.name, None, 0, [])
    if found.agent == "claude-code":
        return _told_by_claude(found, before)
    form = format_of(found.agent)
    assert form
    responses = list(form.responses_of(source_of(found)))
    # Without an answer too: the name of a file may not have the whole id, and a resumed session a second file.
    named = responses[0].session if responses else session_of(found).id or found.name
    return Told(named, form.parent_of(source_of(found)), BIT["transcript"], responses)


def _told_by_log(path: Path) -> Told:
    session = read_session(path, alone=True)
    session = msgspec.structs.replace(session, id=own_name(session, path.stem) or session.id)
    responses = list(responses_of_session(session))
    seen: set[Witness] = {it.witness for it in responses} | session.witnesses
    if not seen and (wrote := witness_of(path)):
        seen = {wrote}
    totals = list(totals_of_session(session))
    seen |= {it.total.witness for it in totals}
    return Told(session.id, session.parent, sum(BIT[it] for it in seen), responses, totals=totals)


def _told_by_calls(path: Path) -> Told:
    """What was paid for and belongs to no session. It goes by a name that no session has."""
    name = f"{NO_SESSION}{hashed(str(path))}"
    told = responses_of_session(read_session(path, alone=True))
    return Told(name, None, BIT["wire"], [msgspec.structs.replace(it, session=name) for it in told])


def _told_by_claude(found: Found, before: Told | None) -> Told:
    path = Path(found.path)
    source = source_of(found)
    if foreign.existing(path) != path:  # a sealed copy in the archive, which does not grow
        return _told_by_file(found, read_responses(source))
    known = _of_main(before.responses, source) if before else None
    rest = Rest(Path(found.path), before.position if before and known is not None else None)
    if rest.restarted:
        known = None
    main = dataclasses.replace(source.main, chunks=rest.chunks)
    read = Source(main, source.others, source.text)
    goes_on = known is not None and bool(rest.position.offset)
    beginning = before.beginning if before and goes_on else None
    totals = [it.total for it in before.totals] if before and known is not None else []
    told = read_responses(read, known or (), beginning, totals)
    if goes_on and (told.must_reread or not may_read_on(told.responses)):
        return _told_by_claude(found, None)
    return _told_by_file(found, told)._replace(position=rest.position, is_rest=goes_on)


def _told_by_file(found: Found, read: SessionResponses) -> Told:
    name = _named(found, read.responses)
    return Told(
        name,
        read.beginning.forked_from,
        BIT["transcript"],
        read.responses,
        beginning=read.beginning,
        totals=_totals(read, name),
        summaries=read.summaries,
    )


def _totals(read: SessionResponses, name: str) -> list[ReportedTotal]:
    project = next((it.project for it in read.responses), None)
    return [
        ReportedTotal(session=name, project=project, agent=AGENT, family=FAMILY, total=it)
        for it in read.totals
    ]


def _of_main(responses: list[ModelResponse], source: Source) -> list[ModelResponse] | None:
    """What was told before by the main file, which alone is read on; none if that cannot be told from what sub-agents
    did, whose files may be cut or gone by now."""
    agents = {f"agent:{agent_of(it.name)}" for it in source.others} | {SIDE}
    main = [it for it in responses if it.thread not in agents]
    return main if may_read_on(responses) and all(it.thread == MAIN for it in main) else None


def _named(found: Found, responses: list[ModelResponse]) -> str:
    return responses[0].session if responses else found.name


# ---------------------------------------------------------------- kept


class _Response(msgspec.Struct, array_like=True, gc=False):
    """What differs between responses of one thread; the rest is kept once."""

    message_id: str | None
    request_id: str | None
    model: str | None
    tokens: Tokens | None
    tier: str | None
    at: int
    final: bool
    reported_cost_usd: float | None


class _Thread(msgspec.Struct, array_like=True, gc=False):
    family: str
    session: str
    project: str | None
    agent: str
    thread: str
    witness: Witness
    responses: list[_Response]


_encode = msgspec.msgpack.Encoder().encode
_decode = msgspec.msgpack.Decoder(list[_Thread]).decode


def packed(responses: list[ModelResponse]) -> bytes:
    threads: list[_Thread] = []
    last: tuple[object, ...] | None = None
    for it in responses:
        where = (it.family, it.session, it.project, it.agent, it.thread, it.witness)
        if where != last:
            threads.append(_Thread(*where, []))
            last = where
        threads[-1].responses.append(
            _Response(
                it.message_id,
                it.request_id,
                it.model,
                tokens_of(it.usage),
                it.tier,
                micros_of(it.at),
                it.final,
                it.reported_cost_usd,
            )
        )
    return _encode(threads)


def unpacked(data: bytes) -> list[ModelResponse]:
    return [
        ModelResponse(
            family=thread.family,
            message_id=it.message_id,
            request_id=it.request_id,
            model=it.model,
            usage=it.tokens
            and Usage(
                input_tokens=it.tokens[0],
                output_tokens=it.tokens[1],
                cache_read_tokens=it.tokens[2],
                cache_write_tokens=it.tokens[3],
                cache_write_1h_tokens=it.tokens[4],
            ),
            tier=it.tier,
            at=time_of(it.at),
            session=thread.session,
            project=thread.project,
            agent=thread.agent,
            thread=thread.thread,
            final=it.final,
            reported_cost_usd=it.reported_cost_usd,
            witness=thread.witness,
        )
        for thread in _decode(data)
        for it in thread.responses
    ]


_decode_totals = msgspec.msgpack.Decoder(list[ReportedTotal]).decode


def packed_totals(totals: Sequence[ReportedTotal]) -> bytes | None:
    return _encode(totals) if totals else None


def unpacked_totals(data: bytes | None) -> list[ReportedTotal]:
    return _decode_totals(data) if data else []
