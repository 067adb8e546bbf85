"""Reads one witness of a session: the model responses that it reports, and its version of the session."""

import dataclasses
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import NamedTuple

import msgspec

from agent_logger.agents.base import Agent
from agent_logger.agents.claude_code.transcript.beginning import Beginning
from agent_logger.agents.claude_code.transcript.responses import (
    FAMILY,
    SessionResponses,
    may_read_on,
    read_responses,
)
from agent_logger.agents.claude_code.transcript.session import session_of as claude_session_of
from agent_logger.agents.claude_code.transcript.subagents import agent_of
from agent_logger.agents.deleted_sessions import session_in as session_typed_in
from agent_logger.agents.registry import reader_of
from agent_logger.agents.source_files import SourceFiles
from agent_logger.catalog.discovery.unidentified import own_name
from agent_logger.catalog.ledger.rows import BIT, micros_of, time_of, tokens_of
from agent_logger.catalog.ledger.session_responses import responses_of_session, totals_of_session
from agent_logger.errors import SourceError
from agent_logger.files import foreign
from agent_logger.files.follow import Position, Rest
from agent_logger.files.projects import project_of
from agent_logger.files.sources import Source
from agent_logger.files.stored_text import hashed, storable
from agent_logger.hooks import session as hook_session
from agent_logger.hooks.reader import agent_of as agent_hooked
from agent_logger.hooks.reader import events_in, session_in
from agent_logger.hooks.session import HookEvent
from agent_logger.logs.reader import read_session, witness_of
from agent_logger.model.prices import Tokens
from agent_logger.model.responses import ModelResponse, ReportedTotal
from agent_logger.model.session import MAIN, SIDE, Session, Usage, Witness

NO_SESSION = "unattributed:"  # begins the name of what is not a session, but is in the ledger


class ResponseBatch(NamedTuple):
    """What a witness reports for the ledger."""

    session: str
    parent: str | None  # what it names as its parent: a session, or a log in the same folder
    witnesses: int  # bits
    responses: list[ModelResponse]
    position: Position | None = None  # where to continue reading
    data: bytes = b""  # the responses, packed
    beginning: Beginning | None = None  # of the agent's own file
    totals: Sequence[ReportedTotal] = ()
    summaries: Mapping[str, str] = {}  # of other sessions, by the line that they end at
    is_rest: bool = False  # it was read incrementally: what it has beside responses is new


def session_of(source: Source, summaries: Mapping[str, str] | None = None) -> Session:
    """Read a session. `summaries`: those in other files, by the line they end at. Raises `SourceError`, `OSError`."""
    if source.is_of_hooks:
        events = hook_events([source])
        return hook_session.session_of(hooked_session(source), agent_hooked(events), events)
    if source.agent is None:
        return read_session(Path(source.path))
    agent = _agent(source)
    if source.prompts_only:
        return session_typed_in(agent, Path(source.path), source.name)
    if agent.reads_on:
        return claude_session_of(agent.open_session(source), summaries)
    return agent.session_of(agent.open_session(source))


def _agent(source: Source) -> Agent:
    """Return the source's agent. Raises `SourceError` if its files cannot be read: a newer version of ours may have
    noted it."""
    agent = reader_of(source.agent)
    if agent is None:
        raise SourceError(f"{source.path}: there is no reader for files of {source.agent}")
    return agent


def open_source(source: Source) -> SourceFiles:
    """Return the files of an agent's session. Raises `SourceError`, `OSError`."""
    return _agent(source).open_session(source)


def hooked_session(source: Source) -> str:
    """Return the session whose hooks these are. Raises `SourceError`."""
    return session_in(Path(source.path).parent, source.name)


def hook_events(sources: Sequence[Source]) -> list[HookEvent]:
    """Return the events of one session's hooks, over all days."""
    return events_in([Path(source.path).parent for source in sources], sources[0].name)


def read_batch(source: Source, before: ResponseBatch | None = None) -> ResponseBatch:
    """Read all that was billed, continuing from what was read before where that is possible. Raises what `session_of`
    does."""
    batch = _batch(source, before)
    responses = _in_their_projects(batch.responses)
    try:
        data = packed(responses)
    except UnicodeEncodeError:  # halves of characters
        responses = [_made_whole(response) for response in responses]
        data = packed(responses)
    name = _nameable(batch.session)
    totals = [_storable_total(total, name) for total in batch.totals]
    return batch._replace(session=name, responses=responses, data=data, totals=totals)


def _in_their_projects(responses: list[ModelResponse]) -> list[ModelResponse]:
    pairs = {(response.project, response.session) for response in responses}
    places = {place: (project_of(place[0]) if place[0] else None, _nameable(place[1])) for place in pairs}
    if all(old == place for old, place in places.items()):
        return responses
    replaced = ((response, *places[response.project, response.session]) for response in responses)
    return [
        msgspec.structs.replace(response, project=project, session=session)
        for response, project, session in replaced
    ]


def _nameable(name: str) -> str:
    """Replace NUL, which ends a text in SQL's JSON, and which no argument of a command can hold."""
    return name.replace("\0", "\ufffd")


def _storable_total(reported_total: ReportedTotal, session: str) -> ReportedTotal:
    models = tuple(
        msgspec.structs.replace(model, model=model.model and storable(model.model))
        for model in reported_total.total.models
    )
    ids = tuple(map(storable, reported_total.total.message_ids))
    return ReportedTotal(
        session=storable(session),
        project=project_of(reported_total.project) if reported_total.project else None,
        agent=reported_total.agent,
        family=reported_total.family,
        total=msgspec.structs.replace(reported_total.total, models=models, message_ids=ids),
    )


TEXTS = ("message_id", "request_id", "model", "tier", "session", "project", "agent", "thread")


def _made_whole(response: ModelResponse) -> ModelResponse:
    texts = {name: value for name in TEXTS if (value := getattr(response, name))}
    return msgspec.structs.replace(response, **{name: storable(value) for name, value in texts.items()})


def _batch(source: Source, before: ResponseBatch | None) -> ResponseBatch:
    if source.is_of_hooks:
        return ResponseBatch(hooked_session(source), None, BIT["hook"], [])
    if source.is_of_no_session:
        return _batch_of_calls(Path(source.path))
    if source.agent is None:
        return _batch_of_log(Path(source.path))
    if source.prompts_only:
        return ResponseBatch(source.name, None, 0, [])
    agent = _agent(source)
    if agent.reads_on:
        return _batch_read_on(source, before)
    files = agent.open_session(source)
    responses = list(agent.responses_of(files))
    # Even without an answer: a file's name may lack the whole id, and a resumed session may have a second file.
    named = responses[0].session if responses else session_of(source).id or source.name
    return ResponseBatch(named, agent.parent_of(files), BIT["transcript"], responses)


def _batch_of_log(path: Path) -> ResponseBatch:
    session = read_session(path, alone=True)
    session = msgspec.structs.replace(session, id=own_name(session, path.stem) or session.id)
    responses = list(responses_of_session(session))
    witnesses: set[Witness] = {response.witness for response in responses} | session.witnesses
    if not witnesses and (wrote := witness_of(path)):
        witnesses = {wrote}
    totals = list(totals_of_session(session))
    witnesses |= {total.total.witness for total in totals}
    return ResponseBatch(
        session.id, session.parent, sum(BIT[witness] for witness in witnesses), responses, totals=totals
    )


def _batch_of_calls(path: Path) -> ResponseBatch:
    """Read the calls that were billed and belong to no session. The batch has a name that no session has."""
    name = f"{NO_SESSION}{hashed(str(path))}"
    responses = responses_of_session(read_session(path, alone=True))
    return ResponseBatch(
        name, None, BIT["wire"], [msgspec.structs.replace(response, session=name) for response in responses]
    )


def _batch_read_on(found_source: Source, before: ResponseBatch | None) -> ResponseBatch:
    path = Path(found_source.path)
    source = open_source(found_source)
    if foreign.existing(path) != path:  # a sealed copy in the archive, which does not grow
        return _batch_of_file(found_source, read_responses(source))
    main_responses = _of_main(before.responses, source) if before else None
    rest = Rest(Path(found_source.path), before.position if before and main_responses is not None else None)
    if rest.restarted:
        main_responses = None
    main = dataclasses.replace(source.main, chunks=rest.chunks)
    read = SourceFiles(main, source.others, source.text)
    goes_on = main_responses is not None and bool(rest.position.offset)
    beginning = before.beginning if before and goes_on else None
    totals = (
        [batch_total.total for batch_total in before.totals] if before and main_responses is not None else []
    )
    responses = read_responses(read, main_responses or (), beginning, totals)
    if goes_on and (responses.must_reread or not may_read_on(responses.responses)):
        return _batch_read_on(found_source, None)
    return _batch_of_file(found_source, responses)._replace(position=rest.position, is_rest=goes_on)


def _batch_of_file(source: Source, read: SessionResponses) -> ResponseBatch:
    name = _named(source, read.responses)
    return ResponseBatch(
        name,
        read.beginning.forked_from,
        BIT["transcript"],
        read.responses,
        beginning=read.beginning,
        totals=_totals(read, source.agent or "", name),
        summaries=read.summaries,
    )


def _totals(read: SessionResponses, agent: str, name: str) -> list[ReportedTotal]:
    project = next((response.project for response in read.responses), None)
    return [
        ReportedTotal(session=name, project=project, agent=agent, family=FAMILY, total=total)
        for total in read.totals
    ]


def _of_main(responses: list[ModelResponse], source: SourceFiles) -> list[ModelResponse] | None:
    """Return what was read before from the main file, which alone is read incrementally; None if that cannot be told
    from the responses of sub-agents, whose files may be cut or gone by now."""
    agents = {f"agent:{agent_of(other.name)}" for other in source.others} | {SIDE}
    main = [response for response in responses if response.thread not in agents]
    return main if may_read_on(responses) and all(response.thread == MAIN for response in main) else None


def _named(source: Source, responses: list[ModelResponse]) -> str:
    return responses[0].session if responses else source.name


# ---------------------------------------------------------------- kept


class _Response(msgspec.Struct, array_like=True, gc=False):
    """What differs between responses of one thread; the rest is stored once."""

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
    for response in responses:
        where = (
            response.family,
            response.session,
            response.project,
            response.agent,
            response.thread,
            response.witness,
        )
        if where != last:
            threads.append(_Thread(*where, []))
            last = where
        threads[-1].responses.append(
            _Response(
                response.message_id,
                response.request_id,
                response.model,
                tokens_of(response.usage),
                response.tier,
                micros_of(response.at),
                response.final,
                response.reported_cost_usd,
            )
        )
    return _encode(threads)


def unpacked(data: bytes) -> list[ModelResponse]:
    return [
        ModelResponse(
            family=thread.family,
            message_id=response.message_id,
            request_id=response.request_id,
            model=response.model,
            usage=response.tokens
            and Usage(
                input_tokens=response.tokens[0],
                output_tokens=response.tokens[1],
                cache_read_tokens=response.tokens[2],
                cache_write_tokens=response.tokens[3],
                cache_write_1h_tokens=response.tokens[4],
            ),
            tier=response.tier,
            at=time_of(response.at),
            session=thread.session,
            project=thread.project,
            agent=thread.agent,
            thread=thread.thread,
            final=response.final,
            reported_cost_usd=response.reported_cost_usd,
            witness=thread.witness,
        )
        for thread in _decode(data)
        for response in thread.responses
    ]


_decode_totals = msgspec.msgpack.Decoder(list[ReportedTotal]).decode


def packed_totals(totals: Sequence[ReportedTotal]) -> bytes | None:
    return _encode(totals) if totals else None


def unpacked_totals(data: bytes | None) -> list[ReportedTotal]:
    return _decode_totals(data) if data else []
