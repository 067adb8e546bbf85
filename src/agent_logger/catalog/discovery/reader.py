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
from agent_logger.agents.registry import readable_agent, repeats
from agent_logger.agents.source_files import SourceFiles
from agent_logger.archive.imported import head_of
from agent_logger.catalog.discovery.claims import claimed
from agent_logger.catalog.discovery.documents import (
    WITNESS_BITS,
    document_of,
    responses_of_document,
    session_of_document,
)
from agent_logger.catalog.discovery.imported import in_its_bundle
from agent_logger.catalog.discovery.sub_agents import below_its_starter, possible_starters
from agent_logger.catalog.discovery.unidentified import own_name, possible_agents
from agent_logger.catalog.ledger.rows import bits_of
from agent_logger.catalog.ledger.session_responses import responses_of_session, totals_of_session
from agent_logger.catalog.ledger.stored_responses import encode_responses
from agent_logger.catalog.session_details import SessionDetails, details_of
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
from agent_logger.model.responses import ModelResponse, ReportedTotal, countable
from agent_logger.model.session import MAIN, SIDE, Session, Witness

NO_SESSION = "unattributed:"  # begins the name of what is not a session, but is in the ledger


class ResponseBatch(NamedTuple):
    """The responses and facts that a witness reports for the ledger."""

    session: str
    parent: str | None  # the parent that it names: a session, or a log in the same folder
    witnesses: int  # bits
    responses: list[ModelResponse]
    position: Position | None = None  # where to continue reading
    data: bytes = b""  # the responses, encoded
    beginning: Beginning | None = None  # the beginning of the agent's own file
    totals: Sequence[ReportedTotal] = ()
    summaries: Mapping[str, str] = {}  # summaries of other sessions, by the last line that they cover
    is_rest: bool = False  # whether it was read incrementally: then everything but the responses is new
    # The agents in whose files the session of a log is looked up, because its calls do not tell it.
    possible_agents: frozenset[str] = frozenset()
    repeated_id: str | None = None  # its id, if other sessions may have the same
    # Details of the session as this witness has it, where all of it was read.
    details: SessionDetails | None = None


def session_of(source: Source, summaries: Mapping[str, str] | None = None) -> Session:
    """Read a session. `summaries`: those in other files, by the line they end at. Raises `SourceError`, `OSError`."""
    if source.is_of_hooks:
        events = hook_events([source])
        return hook_session.session_of(hooked_session(source), agent_hooked(events), events)
    if source.is_document:
        return session_of_document(document_of(source))
    if source.agent is None:
        session = read_session(Path(source.path))
        if source.imported:
            return in_its_bundle(session, Path(source.path))
        return below_its_starter(session, source.home)
    agent = _agent(source)
    if source.prompts_only:
        return session_typed_in(agent, Path(source.path), source.name)
    if agent.reads_on:
        return claude_session_of(agent.open_session(source), summaries)
    return agent.session_of(agent.open_session(source))


def _agent(source: Source) -> Agent:
    """Return the source's agent. Raises `SourceError` if its files cannot be read: a newer version of ours may have
    noted it."""
    agent = readable_agent(source.agent)
    if agent is None:
        raise SourceError(f"{source.path}: agent-logger cannot read files of {source.agent}")
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
    name = _nameable(batch.session)
    responses = claimed(source.home, _in_session(list(map(countable, batch.responses)), name))
    try:
        data = encode_responses(responses)
    except UnicodeEncodeError:  # halves of characters
        responses = [_storable_response(response) for response in responses]
        data = encode_responses(responses)
    totals = [_storable_total(total, name) for total in batch.totals]
    repeated = None if source.is_of_no_session else storable(name) if repeats(source.agent, name) else None
    return batch._replace(session=name, responses=responses, data=data, totals=totals, repeated_id=repeated)


def _in_session(responses: list[ModelResponse], name: str) -> list[ModelResponse]:
    """Return the responses with their projects, and all with this session, whatever a file says of single ones."""
    places = {response.project: project_of(response.project) if response.project else None for response in responses}
    if all(old == place for old, place in places.items()) and all(response.session == name for response in responses):
        return responses
    return [msgspec.structs.replace(response, project=places[response.project], session=name) for response in responses]


def _nameable(name: str) -> str:
    """Replace NUL, which ends a text in SQL's JSON, and which no argument of a command can hold."""
    return name.replace("\0", "\ufffd")


def _storable_total(reported_total: ReportedTotal, session: str) -> ReportedTotal:
    models = tuple(
        msgspec.structs.replace(model, model=model.model and storable(model.model))
        for model in reported_total.total.models
    )
    ids = tuple(map(storable, reported_total.total.message_ids))
    return msgspec.structs.replace(
        reported_total,
        session=storable(session),
        project=project_of(reported_total.project) if reported_total.project else None,
        total=msgspec.structs.replace(reported_total.total, models=models, message_ids=ids),
    )


TEXTS = ("message_id", "request_id", "model", "tier", "session", "project", "agent", "thread")


def _storable_response(response: ModelResponse) -> ModelResponse:
    texts = {name: value for name in TEXTS if (value := getattr(response, name))}
    return msgspec.structs.replace(response, **{name: storable(value) for name, value in texts.items()})


def _batch(source: Source, before: ResponseBatch | None) -> ResponseBatch:
    if source.is_of_hooks:
        return ResponseBatch(hooked_session(source), None, bits_of({"hook"}), [])
    if source.is_document:
        return _batch_of_document(source)
    if source.is_of_no_session:
        return _batch_of_calls(Path(source.path))
    if source.agent is None:
        return _batch_of_log(source)
    if source.prompts_only:
        return ResponseBatch(source.name, None, 0, [])
    agent = _agent(source)
    if agent.reads_on:
        return _batch_read_on(source, before)
    files = agent.open_session(source)
    responses, totals = agent.billed_of(files)
    # Even without an answer: a file's name may lack the whole id, and a resumed session may have a second file.
    named = responses[0].session if responses else totals[0].session if totals else None
    named = named or session_of(source).id or source.name
    return ResponseBatch(named, agent.parent_of(files), bits_of({"transcript"}), responses, totals=totals)


def _batch_of_document(source: Source) -> ResponseBatch:
    document = document_of(source)
    details = details_of(session_of_document(document))
    responses = list(responses_of_document(document))
    return ResponseBatch(document.session, None, WITNESS_BITS, responses, details=details)


def _batch_of_log(source: Source) -> ResponseBatch:
    path = Path(source.path)
    session = read_session(path, alone=True)
    if source.imported:
        session = in_its_bundle(session, path)
    candidates = (*possible_agents(session, path.stem), *possible_starters(session))
    name = own_name(session, path.stem, source.home) or session.id
    session = below_its_starter(msgspec.structs.replace(session, id=name), source.home)
    responses = list(responses_of_session(session))
    witnesses: frozenset[Witness] = session.witnesses.union(*(response.witnesses for response in responses))
    if not witnesses and (wrote := witness_of(path)):
        witnesses = frozenset({wrote})
    totals = list(totals_of_session(session))
    witnesses |= {total.total.witness for total in totals}
    return ResponseBatch(
        session.id,
        session.parent,
        bits_of(witnesses),
        responses,
        totals=totals,
        possible_agents=frozenset(agent.name for agent in candidates),
        details=None if session.parent else details_of(session),
    )


def _batch_of_calls(path: Path) -> ResponseBatch:
    """Read the calls that were billed and belong to no session. The batch has a name that no session has."""
    name = f"{NO_SESSION}{hashed(str(path))}"
    responses = responses_of_session(read_session(path, alone=True))
    return ResponseBatch(
        name,
        None,
        bits_of({"wire"}),
        [msgspec.structs.replace(response, session=name) for response in responses],
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
    totals = [batch_total.total for batch_total in before.totals] if before and main_responses is not None else []
    responses = read_responses(read, main_responses or (), beginning, totals)
    if goes_on and (responses.must_reread or not may_read_on(responses.responses)):
        return _batch_read_on(found_source, None)
    return _batch_of_file(found_source, responses)._replace(position=rest.position, is_rest=goes_on)


def _batch_of_file(source: Source, read: SessionResponses) -> ResponseBatch:
    name = read.responses[0].session if read.responses else source.name
    project = read.responses[0].project if read.responses else None
    totals = [
        ReportedTotal(session=name, project=project, agent=source.agent or "", family=FAMILY, total=total)
        for total in read.totals
    ]
    return ResponseBatch(
        name,
        read.beginning.forked_from,
        bits_of({"transcript"}),
        read.responses,
        beginning=read.beginning,
        totals=totals,
        summaries={**_bundled_titles(source), **read.summaries},
    )


def _bundled_titles(source: Source) -> Mapping[str, str]:
    head = head_of(Path(source.path)) if source.imported else None
    return head.titles if head else {}


def _of_main(responses: list[ModelResponse], source: SourceFiles) -> list[ModelResponse] | None:
    """Return what was read before from the main file, which alone is read incrementally; None if that cannot be told
    from the responses of sub-agents, whose files may be cut or gone by now."""
    agents = {f"agent:{agent_of(other.name)}" for other in source.others} | {SIDE}
    main = [response for response in responses if response.thread not in agents]
    return main if may_read_on(responses) and all(response.thread == MAIN for response in main) else None
