"""Mistral Vibe's sessions, of version 3 (`unified/<id>/`) and version 2 (`session_<time>_<id>/`).

- The tokens of a session are counted in all, summaries of the conversation included, titles not. Those of single
  responses are in the journal of version 3, from which older ones are deleted: what is left of the total is reported as
  not itemised.
- Sub-agents are sessions of their own, and threads of the one that started them. No total includes another.
- A fork, and a session of version 2 that version 3 continues, begin with copies of the history of their source. They
  are left out, and the total does not include them.
"""

import re
from collections.abc import Iterator

from agent_logger.agents.mistral_vibe.documents import CURRENT, META
from agent_logger.agents.mistral_vibe.history import StoredHistory
from agent_logger.agents.mistral_vibe.logged import LoggedChild, LoggedMeta, MessageLog, meta_in
from agent_logger.agents.mistral_vibe.parts import VibePart
from agent_logger.agents.mistral_vibe.stored import VibeEntry, VibeStore
from agent_logger.agents.source_files import File, SourceFiles
from agent_logger.model.remainders import with_remainders
from agent_logger.model.responses import ModelResponse, ReportedTotal
from agent_logger.model.session import AGENT_PREFIX, MAIN, ClientTotal, ModelTotal, Session, SubAgent, Usage
from agent_logger.providers.json_values import Json, fields_of, text_of
from agent_logger.providers.token_counts import usage_of

AGENT_NAME = "mistral-vibe"
FAMILY = "unknown"  # of response ids: they are Vibe's own
# How a program names the tools that it calls; the text in the middle is the id of the program's own call.
_SPAWN = re.compile(r"typescript:\d+:(.+):\d+:tool:\d+")


def session_of(source: SourceFiles) -> Session:
    """Read a session. Nothing is raised, whatever is in the files."""
    main, *agents = _parts(source)
    conversation = main.conversation
    for agent in agents:
        conversation.place(list(agent.turns()))
    session = Session(
        id=main.id,
        agent=AGENT_NAME,
        title=main.title or conversation.title(),
        project=main.project,
        started=conversation.started,
        ended=conversation.ended,
        exchanges=conversation.as_exchanges(),
        side_turns=[turn.as_turn() for part in (main, *agents) for turn in part.aside],
        parent=main.source_session,
        agents=[_sub_agent(agent) for agent in agents],
        compactions=[compaction for part in (main, *agents) for compaction in part.compactions],
        totals=_totals(main, agents),
    )
    return with_remainders(session)


def parent_of(source: SourceFiles) -> str | None:
    if _is_log(source.main):
        return _meta_of(source, source.main).parent
    return VibeStore(source.main, []).runtime.source_session


def responses_of(source: SourceFiles) -> Iterator[ModelResponse]:
    """Yield the responses whose tokens are known one by one."""
    yield from billed_of(source)[0]


def billed_of(source: SourceFiles) -> tuple[list[ModelResponse], list[ReportedTotal]]:
    main, *agents = _parts(source)
    responses = [
        turn.as_response(family=FAMILY, session=main.id, project=main.project, agent=AGENT_NAME)
        for part in (main, *agents)
        for turn in part.turns()
        if turn.is_counted
    ]
    totals = [
        ReportedTotal(session=main.id, project=main.project, agent=AGENT_NAME, family=FAMILY, total=total)
        for total in _totals(main, agents)
    ]
    return responses, totals


def _totals(main: VibePart, agents: list[VibePart]) -> list[ClientTotal]:
    """Return what a session and its sub-agents took, as one total: which of them a call on the wire is of is not always
    known."""
    usages: dict[str | None, Usage] = {}
    for part in (main, *agents):
        if part.usage:
            usages[part.model] = usages.get(part.model, Usage()) + part.usage
    if not usages:
        return []
    times = [part.conversation for part in (main, *agents)]
    counted = (turn.message_id for part in (main, *agents) for turn in part.turns() if turn.is_counted)
    total = ClientTotal(
        witness="transcript",
        is_session=True,
        models=tuple(ModelTotal(model=model, usage=usage) for model, usage in usages.items()),
        started=min((time.started for time in times if time.started), default=None),
        ended=max((time.ended for time in times if time.ended), default=None),
        message_ids=tuple(name for name in counted if name),
    )
    return [total]


def _sub_agent(agent: VibePart) -> SubAgent:
    return SubAgent(
        thread=agent.thread,
        parent_thread=agent.started_by,
        tool_use_id=agent.tool_use_id,
        kind=agent.kind,
        description=agent.description,
    )


def _parts(source: SourceFiles) -> list[VibePart]:
    """Return the session, then its sub-agents."""
    parts = _logged_parts(source) if _is_log(source.main) else _stored_parts(source)
    for part in parts:
        part.settle()
    return parts


def _names(file: File) -> list[str]:
    return file.name.replace("\\", "/").split("/")


def _is_log(file: File) -> bool:
    return _names(file)[-1] != CURRENT


# ---------------------------------------------------------------- version 3


def _stored_parts(source: SourceFiles) -> list[VibePart]:
    folders: dict[str, list[File]] = {}
    for file in (source.main, *source.others):
        folders.setdefault("/".join(_names(file)[:2]), []).append(file)
    parts: list[VibePart] = []
    main: VibePart | None = None
    spawned: dict[str, VibeEntry] = {}
    for state, *journal in folders.values():
        stored = VibeStore(state, journal)
        part = _stored_part(stored, state, main)
        if main is None:
            main = part
            spawned = {entry.id: entry for entry in stored.entries if entry.type == "effect"}
        elif entry := spawned.get(f"effect-{stored.runtime.about.spawned_by}"):
            _take_spawn(part, entry, main)
        parts.append(part)
    return parts


def _stored_part(stored: VibeStore, state: File, main: VibePart | None) -> VibePart:
    name = _folder_name(state)
    part = VibePart(name, f"{AGENT_PREFIX}{name}" if main else MAIN)
    part.usage = usage_of(stored.tokens)
    part.project = stored.runtime.about.cwd
    part.source_session = stored.runtime.source_session
    if meta := stored.meta:
        part.title, part.source_session = meta.title, part.source_session or meta.parent
        part.model = meta.config.model if meta.config else None
        part.project = (meta.environment.folder if meta.environment else None) or part.project
    elif main:
        part.model = main.model  # unless the agent has settings of its own, which no file tells
    StoredHistory(part, stored)
    return part


def _take_spawn(part: VibePart, entry: VibeEntry, main: VibePart) -> None:
    """Note what the entry of the tool call that started a sub-agent says of it."""
    spawn = _spawn_in(entry)
    match = _SPAWN.fullmatch(text_of(spawn.get("spawnCallId")) or "")
    uses = main.tool_uses()
    part.tool_use_id = next((call for call in (match and match[1], entry.id) if call in uses), None)
    part.kind = text_of(spawn.get("agentType"))
    part.description = text_of(spawn.get("agentName"))


def _spawn_in(entry: VibeEntry) -> Json:
    about = fields_of(entry.output.get("_meta")).get("mistral.vibe.subagent")
    return fields_of(about) or fields_of(entry.detail)


# ---------------------------------------------------------------- version 2


def _logged_parts(source: SourceFiles) -> list[VibePart]:
    parts: list[VibePart] = []
    children: dict[str | None, LoggedChild] = {}
    for file in (source.main, *source.others):
        meta = _meta_of(source, file)
        is_main = file is source.main
        name = meta.id or _folder_name(file)
        part = VibePart(name, MAIN if is_main else f"{AGENT_PREFIX}{name}")
        MessageLog(part, file, meta)
        if not is_main:
            part.source_session = None
            part.started_by = f"{AGENT_PREFIX}{meta.parent}" if meta.parent not in (None, parts[0].id) else MAIN
        children.update({child.session: child for child in meta.children})
        parts.append(part)
    uses = {name: use for part in parts for name, use in part.tool_uses().items()}
    for part in parts[1:]:
        if child := children.get(part.id):
            part.tool_use_id, part.kind = child.call, child.agent
            use = uses.get(child.call)
            part.description = text_of(fields_of(use.input if use else None).get("task"))
    return parts


def _meta_of(source: SourceFiles, file: File) -> LoggedMeta:
    return meta_in(source.text("/".join([*_names(file)[:-1], META])))


def _folder_name(file: File) -> str:
    """Return the name of the folder of a session; of a file that is elsewhere, its own name."""
    *folders, name = _names(file)
    return folders[-1] if folders else name.rsplit(".", 1)[0]
