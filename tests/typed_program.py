"""A program of a user that has every public name in it; `tests/test_typed_program.py` gives it to a type checker."""

import asyncio
import json
import os
from collections.abc import AsyncIterator, Callable, Mapping, Sequence
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import agent_logger
from agent_logger import (
    AssistantRecord,
    Block,
    CallDetail,
    Catalog,
    Context,
    Cost,
    Difference,
    Event,
    Exchange,
    ExchangeRecord,
    ExchangeStats,
    Failure,
    FileStorage,
    Filter,
    Hit,
    HookInput,
    Inherited,
    InMemoryStorage,
    Message,
    ResultRecord,
    RunMetadata,
    RunResult,
    Session,
    SessionEnd,
    SessionLocation,
    SessionLogger,
    SessionStart,
    SessionStorage,
    SessionSummary,
    Settings,
    StoredSession,
    SubAgent,
    SummaryRecord,
    SystemRecord,
    TokenUsage,
    ToolCall,
    ToolResultRecord,
    ToolUseRecord,
    Turn,
    Usage,
    UserRecord,
    WireCall,
    adapters,
    claude_code,
    context,
    discover,
    errors,
    find_session,
    price,
    read_output,
    read_session,
    records,
    run,
    run_async,
    sdk,
    storage,
    stream,
    testing,
)

# ---------------------------------------------------------------- record


async def prompts() -> AsyncIterator[dict[str, Any]]:
    yield {"type": "user", "message": {"role": "user", "content": "Hello"}}


async def record(folder: Path) -> str | None:
    async with SessionLogger(folder, strict=True, resumed_from=None) as logger:
        async for message in logger.query(prompt="Fix the timer"):
            print(type(message).__name__)
        async for message in logger.query(prompt=prompts(), options=None):
            print(message)
        async for line in logger.wrap(prompts()):
            print(line["type"])
        logger.log_user_input("Hello")
        logger.log_user_input([{"type": "text", "text": "Hello"}])
        logger.log({"type": "result"})
    with SessionLogger(sessions_dir=str(folder)) as other:
        other.close("enough")
    lost: int = other.lost
    path: Path | None = other.path
    return f"{lost} {path}" if other.session_id else None


def ask() -> str:
    result: RunResult = run("Why?", cwd="~/tea", include_events=True, max_turns=3, timeout=60.0, label="tea")
    if result.failure is Failure.SESSION_NOT_FOUND:
        return result.error or ""
    metadata: RunMetadata = result.metadata
    cost: float | None = metadata.cost
    command: tuple[list[str], str] | None = result.resume_command()
    events: list[Event] = result.events or []
    shown = [event.text for event in events if event.type == "content"]
    given: list[dict[str, Any]] = [event.to_dict() for event in events]
    again = read_output(result.stdout or b"")
    return json.dumps([result.to_dict(), metadata.to_dict(), cost, command, shown, given, again.session_id])


async def follow() -> RunResult:
    async with stream("Why?", resume="tea", fork=True) as events:
        async for event in events:
            tool: str | None = event.tool
            print(tool, event.is_error)
    first: RunResult = events.result
    return first if first.success else await run_async("Why?", model="opus")


# ---------------------------------------------------------------- ask


def answer() -> None:
    with Catalog.open(home=os.fspath(Path.home() / ".agent-logger")) as catalog:
        summaries: list[SessionSummary] = catalog.sessions(Filter(agent="codex", since=datetime.now(UTC)), limit=5)
        hits: Sequence[Hit] = catalog.search("timer", limit=3)
        for summary in summaries:
            session = catalog.session(summary.id)
            if session is not None:
                show(session)
            calls: list[WireCall] = catalog.calls(summary.id)
            for call in calls:
                detail: CallDetail | None = catalog.call(summary.id, call.call)
                print(detail.request.path if detail else call.path)
        print([hit.snippet for hit in hits], catalog.total().cost.usd, dict(catalog.usage("day")))


def show(session: Session) -> None:
    inherited: Inherited | None = session.inherited
    agents: list[SubAgent] = list(session.agents)
    exchanges: list[Exchange] = list(session.exchanges)
    turns: list[Turn] = session.turns
    blocks: list[Block] = [block for turn in turns for block in turn.blocks]
    differences: list[Difference] = [difference for turn in turns for difference in turn.differences]
    calls: list[ToolCall] = session.tool_calls
    usage: Usage = session.usage
    cost: Cost = price(usage, "claude-sonnet-4-5")
    print(inherited, agents, exchanges, blocks, differences, [call.kind for call in calls], cost.usd, session.cost.usd)


def look(folder: Path) -> None:
    places: list[SessionLocation] = [*discover(), *discover(folder), *discover(str(folder))]
    for place in places:
        show(place.read())
    path: Path | None = find_session("1f320356-a178-418e-a692-69ce6e1e657c", repo_root=str(folder))
    if path:
        show(read_session(path))
        show(read_session(str(path), alone=True))
    applied: Context = context(str(folder))
    settings: Settings = applied.settings
    print(settings.permission_mode, agent_logger.__version__)


# ---------------------------------------------------------------- keep


def keep(given: SessionStorage) -> None:
    stored: bool = given.append("tea", {"type": "user", "message": {"role": "user", "content": "Hello"}})
    messages: list[storage.Message] | None = given.load("tea")
    sessions: list[StoredSession] = given.list()
    given.delete("tea")
    print(stored, messages, [session.first_prompt for session in sessions])


def keep_both(folder: Path) -> None:
    for opened in (FileStorage(str(folder), cwd=folder, agent="mine", version="1"), InMemoryStorage(agent="mine")):
        with opened:
            keep(opened)
            opened.write_memory("Use tabs.")
            print(opened.read_memory(), opened.lost)
            opened.close("tea")
    named: storage.SessionStorage = storage.InMemoryStorage()
    keep(named)
    entries: list[storage.StoredSession] = storage.FileStorage(folder).list(str(folder))
    store = sdk.AgentLoggerSessionStore(FileStorage(folder))
    testing.run_storage_conformance(InMemoryStorage)
    print(entries, store)


def adapt(body: bytes) -> list[dict[str, Any]]:
    writer = adapters.TranscriptWriter("openai", cwd=".")
    writer.user("Hello")
    answered: adapters.ModelAnswer = adapters.answer_of("/v1/chat/completions", body)
    writer.assistant(answered)
    if answered.usage:
        print(adapters.usage_of(answered.usage))
    writer.close()
    session: Session = testing.run_adapter_conformance(body, config_dir=Path(), cwd=Path(), usage=Usage())
    show(session)
    return writer.result()


def handle(work: Callable[[], None]) -> str:
    try:
        work()
    except errors.ConfigError as error:
        return f"settings: {error}"
    except (errors.SourceError, errors.StoreError) as error:
        return f"files: {error}"
    except errors.AgentLoggerError as error:
        return str(error)
    return ""


# ---------------------------------------------------------------- lines


def own_lines(line: bytes) -> bytes:
    kind: records.Kind | None = records.kind_of(line)
    record: records.AnyRecord = records.decode(line, kind or "exchange")
    match record:
        case SessionStart() | records.SessionStart() | records.Resume():
            print(record.session_id, record.system_prompt)
        case ExchangeRecord():
            exchange(record)
        case SessionEnd() | records.SessionEnd():
            tokens: records.Tokens | None = record.total_tokens
            print(tokens.output if tokens else None)
        case records.LiveStart() | records.LiveMessage():
            print(record.id)
        case records.WireStart():
            identity: records.Identity | None = record.identity
            print(identity.source if identity else record.provider)
        case records.Request() | records.Response():
            call(record)
        case records.Refusals() | records.Fork() | records.Rewrite() | records.Gap() | records.Recovered():
            print(record.ts)
        case records.SessionHeader() | records.Verbatim() | records.Hook() | records.Part() | records.Large():
            writer: records.Writer | None = record.writer
            print(writer)
        case records.Unknown():
            print(record.raw)
    versions: tuple[int, int] = (records.VERSION, len(records.LIFTS))
    types: tuple[type[records.Record], ...] = records.KINDS["wire"]
    print(versions, [records.tag(kind) for kind in types])
    return records.encode(record) if isinstance(record, records.Unknown) else records.encode_line(record)


def exchange(record: records.ExchangeRecord) -> None:
    messages: list[Message] = record.messages
    first: records.Message | None = messages[0] if messages else None
    stats: ExchangeStats | None = record.stats
    named: records.ExchangeStats | None = stats
    source: records.CostFrom | None = named.cost_from if named else None
    reason: records.EndReason | None = record.end_reason
    exited: records.Exit | None = record.exit
    removed: list[records.Redaction] = record.redactions or []
    verbatim: records.Json = first.content if first else record.origin
    print(source, reason, exited.status if exited else None, [redaction.rule for redaction in removed], verbatim)


def call(record: records.Request | records.Response) -> bytes:
    headers: records.Headers | None = record.headers
    encoding: records.Encoding | None = record.body_encoding
    original: records.Stored | None = record.original
    if isinstance(record, records.Response):
        chunks: list[records.Chunk] = record.chunks or []
        timing: records.Timing = record.timing
        print([chunk.ts for chunk in chunks], timing.ttfb_ms)
    text, form = records.as_text(b"bytes")
    value: records.Struct | None = original
    reason: records.PartReason = "full"
    prompts: list[records.SystemPrompt] = []
    print(headers, value, reason, prompts)
    return records.as_bytes(text, encoding or form)


def claude_lines(line: bytes, session: Session) -> None:
    record: claude_code.AnyRecord | None = claude_code.decode(line)
    known: Mapping[str, type[claude_code.AnyRecord]] = claude_code.RECORDS
    match record:
        case UserRecord() | claude_code.UserRecord():
            origin: claude_code.InputOrigin | str | None = record.origin
            outcome: claude_code.ToolUseResult | str | list[Any] | None = record.tool_use_result
            forked: claude_code.ForkedFrom | str | None = record.forked_from
            print(origin, outcome, forked)
        case AssistantRecord() | claude_code.AssistantRecord():
            print(record.request_id)
        case SystemRecord() | claude_code.SystemRecord():
            compaction: claude_code.CompactMetadata | None = record.compact_metadata
            print(compaction)
        case SummaryRecord() | claude_code.SummaryRecord():
            print(record.summary)
        case ResultRecord() | claude_code.ResultRecord():
            print(record.total_cost_usd)
        case ToolUseRecord() | ToolResultRecord() | claude_code.ToolUseRecord() | claude_code.ToolResultRecord():
            print(record.tool_use_id)
        case claude_code.AttachmentRecord():
            attachment: claude_code.Attachment | None = record.attachment
            print(attachment)
        case claude_code.FileHistoryRecord():
            snapshot: claude_code.Snapshot | None = record.snapshot
            print(snapshot)
        case claude_code.FileDeltaRecord() | claude_code.RequestRecord() | claude_code.CostRecord():
            print(record.session_id)
        case claude_code.TitleRecord() | claude_code.CustomTitleRecord() | claude_code.OtherRecord():
            base: claude_code.SessionRecord = record
            print(base.session_id)
    usage: TokenUsage = claude_code.token_usage(session)
    named: claude_code.TokenUsage = usage
    print(named.output_tokens, len(known))


def claude_values(
    message: claude_code.ClaudeMessage,
    head: claude_code.MessageHead,
    usage: claude_code.MessageUsage,
    cache: claude_code.CacheCreation,
    backup: claude_code.Backup,
    totals: claude_code.ModelTotals,
    hook: HookInput,
) -> tuple[object, ...]:
    return message.content, head.model, usage.usage(), cache, backup, totals, hook.hook_event_name


if __name__ == "__main__":
    print(asyncio.run(record(Path("sessions"))), ask(), asyncio.run(follow()))
