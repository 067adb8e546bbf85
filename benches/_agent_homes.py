"""The same sessions in the files of several agents: those of `_claude_corpus`, translated.

Each writer takes a conversation and makes what the real client makes of it, as the recordings in tests/data have it.
"""

import json
import shutil
import sqlite3
import tempfile
from collections import Counter
from collections.abc import Callable, Iterator
from contextlib import closing
from dataclasses import dataclass, field
from datetime import datetime
from pathlib import Path
from typing import Any

from _claude_corpus import Corpus

DATA = Path(__file__).resolve().parent.parent / "tests/data"
LINES = 330  # of Claude Code in a session: about 100 responses
MODEL = "gpt-5.2"


@dataclass
class Response:
    id: str
    at: datetime
    counts: dict[str, int]
    thinking: str = ""
    text: str = ""
    call: dict[str, Any] | None = None
    result: str = ""

    @property
    def ms(self) -> int:
        return int(self.at.timestamp() * 1000)

    @property
    def read(self) -> int:
        return self.counts["cache_read_input_tokens"]

    @property
    def given(self) -> int:
        return self.counts["input_tokens"] + self.counts["cache_creation_input_tokens"]

    @property
    def output(self) -> int:
        return self.counts["output_tokens"]


@dataclass
class Prompt:
    text: str
    at: datetime
    responses: list[Response] = field(default_factory=list)

    @property
    def ms(self) -> int:
        return int(self.at.timestamp() * 1000)


@dataclass
class Conversation:
    id: str  # a UUID
    project: str
    prompts: list[Prompt] = field(default_factory=list)


def write_claude(home: Path, sessions: int) -> None:
    corpus = Corpus()
    for number in range(sessions):
        corpus.write_long(home / ".claude", LINES, f"/home/user/dev/proj{number % 40}")


def conversations(claude: Path) -> Iterator[Conversation]:
    """Yield the sessions of Claude Code's that were written into this home."""
    for path in sorted(claude.rglob("*.jsonl")):
        lines = [json.loads(line) for line in path.read_text("utf-8").splitlines()]
        conversation = Conversation(path.stem, lines[0]["cwd"])
        for line in lines:
            _take(conversation, line)
        yield conversation


def _take(conversation: Conversation, line: dict[str, Any]) -> None:
    message, at = line["message"], datetime.fromisoformat(line["timestamp"])
    content = message["content"]
    if isinstance(content, str):
        conversation.prompts.append(Prompt(content, at))
        return
    responses = conversation.prompts[-1].responses
    if message["role"] == "assistant" and not (responses and responses[-1].id == message["id"]):
        responses.append(Response(message["id"], at, message["usage"]))
    response, block = responses[-1], content[0]
    match block["type"]:
        case "thinking":
            response.thinking = block["thinking"]
        case "text":
            response.text = block["text"]
        case "tool_use":
            response.call = block
        case "tool_result":
            response.result = block["content"]


def _encoded(value: object) -> str:
    return json.dumps(value, separators=(",", ":"))


def _time(at: datetime) -> str:
    return at.isoformat(timespec="milliseconds").replace("+00:00", "Z")


def _write_lines(path: Path, lines: list[dict[str, Any]]) -> None:
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text("".join(_encoded(line) + "\n" for line in lines), "utf-8")


# ---------------------------------------------------------------- databases


def _tables(recorded: str, path: Path) -> sqlite3.Connection:
    """Return an empty database with the tables and indexes of a recorded one."""
    path.parent.mkdir(parents=True, exist_ok=True)
    database = sqlite3.connect(path)
    with tempfile.TemporaryDirectory() as folder:
        for suffix in ("", "-wal"):
            shutil.copy(DATA / f"{recorded}{suffix}", f"{folder}/copy.db{suffix}")
        with closing(sqlite3.connect(f"{folder}/copy.db")) as source:
            query = (
                "SELECT sql FROM sqlite_master WHERE sql IS NOT NULL AND name NOT LIKE 'sqlite_%' ORDER BY type DESC"
            )
            for (statement,) in source.execute(query).fetchall():
                database.execute(statement)
    return database


def _insert(database: sqlite3.Connection, table: str, **values: object) -> None:
    database.execute(
        f"INSERT INTO {table} ({', '.join(values)}) VALUES ({', '.join('?' * len(values))})", [*values.values()]
    )


def write_opencode(home: Path, talks: list[Conversation], agent: str = "opencode") -> None:
    recorded = "kilo/7.7.9/tools/home/.local/share/kilo/kilo.db"
    with closing(_tables(recorded, home / f".local/share/{agent}/{agent}.db")) as database, database:
        for talk in talks:
            _write_opencode_session(database, talk)


def write_kilo(home: Path, talks: list[Conversation]) -> None:
    write_opencode(home, talks, "kilo")


def _write_opencode_session(database: sqlite3.Connection, talk: Conversation) -> None:
    session, count = f"ses_{talk.id}", 0
    times = {"time_created": talk.prompts[0].ms, "time_updated": talk.prompts[-1].ms}
    described = {"project_id": "1", "slug": "a", "directory": talk.project, "title": "A title", "version": "1"}
    _insert(database, "session", id=session, **described, **times)

    def add(table: str, at: int, data: object, **more: object) -> str:
        nonlocal count
        count += 1
        name = f"{table}_{talk.id}{count:06}"
        timed = {"time_created": at, "time_updated": at}
        _insert(database, table, id=name, session_id=session, **timed, data=_encoded(data), **more)
        return name

    for prompt in talk.prompts:
        asked = add("message", prompt.ms, {"role": "user", "time": {"created": prompt.ms}, "agent": "code"})
        add("part", prompt.ms, {"type": "text", "text": prompt.text}, message_id=asked)
        for each in prompt.responses:
            counted = {"input": each.given, "output": each.output, "reasoning": 0}
            tokens = {**counted, "total": 0, "cache": {"write": 0, "read": each.read}}
            data = {
                "parentID": asked,
                "role": "assistant",
                "mode": "code",
                "path": {"cwd": talk.project, "root": talk.project},
                "cost": 0,
                "tokens": tokens,
                "modelID": MODEL,
                "providerID": "openai",
                "time": {"created": each.ms, "completed": each.ms + 900},
                "finish": "tool-calls" if each.call else "stop",
            }
            message = add("message", each.ms, data)
            span = {"start": each.ms, "end": each.ms + 800}
            parts: list[dict[str, Any]] = [{"snapshot": "7ab6" * 10, "type": "step-start", "time": span}]
            if each.thinking:
                parts.append({"type": "reasoning", "text": each.thinking, "time": span})
            parts.append({"type": "text", "text": each.text, "time": span})
            if each.call:
                noted = {"output": each.result, "exit": 0, "description": "List files", "truncated": False}
                state = {"status": "completed", "input": each.call["input"], "output": each.result, "time": span}
                state |= {"metadata": noted, "title": "List files"}
                parts.append({"type": "tool", "tool": "bash", "callID": each.call["id"], "state": state})
            parts.append({"reason": data["finish"], "type": "step-finish", "time": span, "tokens": tokens, "cost": 0})
            for part in parts:
                add("part", each.ms, part, message_id=message)


def write_goose(home: Path, talks: list[Conversation]) -> None:
    path = home / ".local/share/goose/sessions/sessions.db"
    recorded = "goose/1.52.0/tools/home/.local/share/goose/sessions/sessions.db"
    with closing(_tables(recorded, path)) as database, database:
        for number, talk in enumerate(talks):
            _write_goose_session(database, f"20260105_{number}", talk)


def _write_goose_session(database: sqlite3.Connection, session: str, talk: Conversation) -> None:
    made = talk.prompts[0].at.strftime("%Y-%m-%d %H:%M:%S")
    _insert(
        database,
        "sessions",
        id=session,
        name="A title",
        working_dir=talk.project,
        created_at=made,
        updated_at=made,
        provider_name="openai",
    )

    def add(name: str, role: str, at: int, content: object, about: dict[str, Any]) -> None:
        _insert(
            database,
            "messages",
            message_id=name,
            session_id=session,
            role=role,
            content_json=_encoded(content),
            created_timestamp=at // 1000,
            metadata_json=_encoded({"userVisible": True, "agentVisible": True, **about}),
        )

    for prompt in talk.prompts:
        own = f"msg_{talk.id[:-6]}{prompt.ms % 1_000_000:06}"
        add(own, "user", prompt.ms, [{"type": "text", "text": prompt.text}], {})
        context = [{"type": "text", "text": f"<turn-context>\n<working-directory>{talk.project}</working-directory>"}]
        add(own, "user", prompt.ms, context, {"userVisible": False})
        for each in prompt.responses:
            counted = {"inputTokens": each.given + each.read, "outputTokens": each.output, "cacheReadTokens": each.read}
            inference = {"provider": "openai", "requestedModel": MODEL}
            parts: list[dict[str, Any]] = [{"type": "text", "text": each.text}]
            if each.thinking:
                parts.insert(0, {"type": "thinking", "thinking": each.thinking, "signature": ""})
            if each.call:
                value = {"name": "shell", "arguments": each.call["input"]}
                call = {"id": each.call["id"], "toolCall": {"status": "success", "value": value}}
                parts.append({"type": "toolRequest", **call})
            name = f"chatcmpl-{each.id}"
            add(name, "assistant", each.ms, parts, {"inference": inference, "usage": counted})
            if each.call:
                shown = {"content": [{"type": "text", "text": each.result}], "isError": False}
                shown |= {"structuredContent": {"stdout": each.result, "stderr": "", "exit_code": 0}}
                result = {"status": "success", "value": shown}
                add(own, "user", each.ms, [{"type": "toolResponse", "id": each.call["id"], "toolResult": result}], {})
            _insert(
                database,
                "usage_ledger",
                session_id=session,
                created_timestamp=each.ms // 1000,
                model=MODEL,
                input_tokens=each.given + each.read,
                output_tokens=each.output,
                cache_read_tokens=each.read,
            )


# ---------------------------------------------------------------- files


def write_kimi(home: Path, talks: list[Conversation]) -> None:
    for talk in talks:
        folder = home / ".kimi-code/sessions/wd_project" / f"session_{talk.id}"
        _write_lines(folder / "agents/main/wire.jsonl", list(_kimi_lines(talk)))
        (folder / "state.json").write_text(_encoded({"id": folder.name, "version": 2, "cwd": talk.project}))


def _kimi_lines(talk: Conversation) -> Iterator[dict[str, Any]]:
    yield {"type": "metadata", "protocol_version": "1.5", "created_at": talk.prompts[0].ms}
    yield {"type": "runtime.set_binding", "runtimeId": "local", "agentId": "main", "time": talk.prompts[0].ms}

    def event(at: int, kind: str, **more: object) -> dict[str, Any]:
        inner = {"type": kind, **more}
        return {"type": "context.append_loop_event", "agentId": "main", "event": inner, "time": at}

    def appended(at: int, role: str, text: str, **more: object) -> dict[str, Any]:
        message = {"role": role, "content": [{"type": "text", "text": text}], **more}
        return {"message": {"message": message}, "type": "agent.message.appended", "time": at, "kind": "event"}

    for number, prompt in enumerate(talk.prompts):
        name, typed = f"msg_{talk.id}{number}", [{"type": "text", "text": prompt.text}]
        origin = {"kind": "user"}
        started = {"input": typed, "origin": origin, "promptId": name}
        yield {"type": "turn.prompt", "agentId": "main", **started, "time": prompt.ms}
        message = {"role": "user", "content": typed, "id": name, "toolCalls": [], "origin": origin}
        yield {"type": "context.append_message", "agentId": "main", "message": message, "time": prompt.ms}
        yield appended(prompt.ms, "user", prompt.text)
        for each in prompt.responses:
            step, at = f"step-{each.id}", each.ms
            yield event(at, "step.begin", uuid=step, turnId="0", step=1)
            request = {"kind": "loop", "provider": "openai", "model": MODEL, "toolsHash": "eaa5" * 16}
            yield {"type": "llm.request", "agentId": "main", **request, "messageCount": 3, "time": at}
            usage = {"inputOther": each.given, "output": each.output, "inputCacheRead": each.read}
            usage["inputCacheCreation"] = 0
            yield {"type": "usage.record", "agentId": "main", "usage": usage, "usageScope": "turn", "time": at}
            yield {"type": "token_counting.measured", "agentId": "main", "length": 4, "tokens": 2880, "time": at}
            if each.thinking:
                yield event(at, "content.part", stepUuid=step, part={"type": "think", "think": each.thinking})
            yield event(at, "content.part", stepUuid=step, part={"type": "text", "text": each.text})
            if each.call:
                called = {"stepUuid": step, "toolCallId": each.call["id"], "name": "Bash", "args": each.call["input"]}
                yield event(at, "tool.call", **called, display={"kind": "command", "cwd": talk.project})
                yield event(at, "tool.result", toolCallId=each.call["id"], result={"output": each.result})
            ended = {"finishReason": "tool_use" if each.call else "end_turn", "usage": usage}
            yield event(at, "step.end", uuid=step, **ended, messageId=f"chatcmpl-{each.id}")
        for each in prompt.responses:  # the client writes them once more, when it has answered
            calls = [{"id": each.call["id"], "arguments": _encoded(each.call["input"])}] if each.call else []
            yield appended(each.ms, "assistant", each.text, toolCalls=calls)
            if each.call:
                yield appended(each.ms, "tool", each.result, toolCallId=each.call["id"])
        yield {"type": "turn.ended", "agentId": "main", "reason": "completed", "time": prompt.ms}


def write_grok(home: Path, talks: list[Conversation]) -> None:
    for talk in talks:
        folder = home / ".grok/sessions/%2Fhome%2Fuser%2Fproject" / talk.id
        _write_lines(folder / "updates.jsonl", list(_grok_lines(talk)))
        _write_lines(folder / "chat_history.jsonl", list(_grok_history(talk)))
        info = {"id": talk.id, "cwd": talk.project}
        summary = {"info": info, "session_summary": "A title", "current_model_id": MODEL}
        (folder / "summary.json").write_text(json.dumps(summary, indent=2))
        turns = [_grok_total(prompt) for prompt in talk.prompts]
        (folder / "usage.json").write_text(json.dumps({"sessionId": talk.id, "turns": turns}, indent=2))


def _grok_total(prompt: Prompt) -> dict[str, Any]:
    counted: dict[str, Any] = {
        "inputTokens": sum(each.given + each.read for each in prompt.responses),
        "outputTokens": sum(each.output for each in prompt.responses),
        "cachedReadTokens": sum(each.read for each in prompt.responses),
        "cacheCreationTokens": 0,
        "reasoningTokens": 0,
        "modelCalls": len(prompt.responses),
    }
    counted["totalTokens"] = counted["inputTokens"] + counted["outputTokens"]
    return {**counted, "modelUsage": {MODEL: counted}, "numTurns": len(prompt.responses)}


def _grok_lines(talk: Conversation) -> Iterator[dict[str, Any]]:
    count = 0

    def line(at: int, update: dict[str, Any], **more: object) -> dict[str, Any]:
        nonlocal count
        count += 1
        about = {"totalTokens": 2200, "eventId": f"{talk.id}-{count}", "agentTimestampMs": at, **more}
        parameters = {"sessionId": talk.id, "update": update, "_meta": about}
        return {"timestamp": at // 1000, "method": "session/update", "params": parameters}

    def said(kind: str, text: str) -> dict[str, Any]:
        return {"sessionUpdate": kind, "content": {"type": "text", "text": text}}

    for number, prompt in enumerate(talk.prompts):
        about = {"modelId": MODEL, "promptIndex": number}
        yield line(prompt.ms, {**said("user_message_chunk", prompt.text), "_meta": about})
        name = f"{talk.id[:-4]}{number:04}"
        for each in prompt.responses:
            more = {"promptId": name, "streamStartMs": each.ms, "turnStartMs": prompt.ms}
            if each.thinking:
                yield line(each.ms, said("agent_thought_chunk", each.thinking), **more)
            yield line(each.ms, said("agent_message_chunk", each.text), **more)
            if each.call:
                for update in _grok_call(each):
                    yield line(each.ms, update, **more)
        usage = _grok_total(prompt)
        ended = {"sessionUpdate": "turn_completed", "prompt_id": name, "stop_reason": "end_turn", "usage": usage}
        yield line(prompt.responses[-1].ms, ended)


def _grok_call(each: Response) -> Iterator[dict[str, Any]]:
    call = each.call or {}
    tool = {"version": 1, "name": "run_terminal_command", "kind": "execute", "namespace": "grok_build"}
    about = {"_meta": {"x.ai/tool": tool}}
    named = {"toolCallId": call["id"]}
    yield {"sessionUpdate": "tool_call", **named, "title": tool["name"], "rawInput": call["input"], **about}
    yield {"sessionUpdate": "tool_call_update", **named, "kind": "execute", "rawInput": call["input"], **about}
    raw = {"type": "Bash", "output": list(each.result.encode()), "exit_code": 0, "truncated": False}
    raw["output_for_prompt"] = f"exit: 0\n{each.result}"
    content = [{"type": "content", "content": {"type": "text", "text": each.result}}]
    ended = {"status": "completed", "content": content, "rawOutput": raw}
    yield {"sessionUpdate": "tool_call_update", **named, **ended}


def _grok_history(talk: Conversation) -> Iterator[dict[str, Any]]:
    for prompt in talk.prompts:
        yield {"type": "user", "content": [{"type": "text", "text": prompt.text}]}
        for each in prompt.responses:
            calls = [{"id": each.call["id"], "arguments": _encoded(each.call["input"])}] if each.call else []
            yield {"type": "assistant", "content": each.text, "tool_calls": calls, "model_id": MODEL}
            if each.call:
                yield {"type": "tool_result", "tool_call_id": each.call["id"], "content": each.result}


def write_cline(home: Path, talks: list[Conversation]) -> None:
    for talk in talks:
        name = f"{talk.prompts[0].ms}_{talk.id[:5]}"
        folder = home / ".cline/data/sessions" / name
        folder.mkdir(parents=True)
        document = {"version": 1, "agent": "lead", "sessionId": name, "messages": list(_cline_messages(talk))}
        (folder / f"{name}.messages.json").write_text(json.dumps(document, indent=2))
        described = {"version": 1, "session_id": name, "status": "completed", "cwd": talk.project}
        described |= {"messages_path": "", "enable_spawn": True}
        (folder / f"{name}.json").write_text(json.dumps(described, indent=2))


def _cline_messages(talk: Conversation) -> Iterator[dict[str, Any]]:
    for prompt in talk.prompts:
        text = f'<user_input mode="act">{prompt.text}</user_input>'
        yield {"id": f"u{prompt.ms}", "role": "user", "content": [{"type": "text", "text": text}], "ts": prompt.ms}
        for each in prompt.responses:
            parts: list[dict[str, Any]] = [{"type": "text", "text": each.text}]
            if each.thinking:
                parts.insert(0, {"type": "thinking", "thinking": each.thinking})
            if each.call:
                call = {"id": each.call["id"], "name": "run_commands", "input": each.call["input"]}
                parts.append({"type": "tool_use", **call})
            counted = {"inputTokens": each.given + each.read, "outputTokens": each.output, "cacheReadTokens": each.read}
            about = {"modelInfo": {"id": MODEL, "provider": "openai-native"}, "metrics": counted}
            yield {"id": f"msg_{each.id}", "role": "assistant", "content": parts, "ts": each.ms, **about}
            if each.call:
                shown = [{"query": "ls -1", "result": each.result, "success": True}]
                result = {"type": "tool_result", "tool_use_id": each.call["id"], "content": shown}
                yield {"id": f"r{each.ms}", "role": "user", "content": [result], "ts": each.ms}


def write_pi(home: Path, talks: list[Conversation]) -> None:
    for talk in talks:
        name = f"{talk.prompts[0].at:%Y-%m-%dT%H-%M-%S}-000Z_{talk.id}.jsonl"
        _write_lines(home / ".pi/agent/sessions/--home-user-project--" / name, list(_pi_lines(talk)))


def _pi_lines(talk: Conversation) -> Iterator[dict[str, Any]]:
    yield {"type": "session", "version": 3, "id": talk.id, "timestamp": _time(talk.prompts[0].at), "cwd": talk.project}
    parent, count = None, 0

    def message(at: datetime, role: str, content: list[dict[str, Any]], **more: object) -> dict[str, Any]:
        nonlocal parent, count
        count += 1
        inner = {"role": role, "content": content, **more, "timestamp": int(at.timestamp() * 1000)}
        named = {"id": f"{count:08x}", "parentId": parent}
        parent = named["id"]
        return {"type": "message", **named, "timestamp": _time(at), "message": inner}

    for prompt in talk.prompts:
        yield message(prompt.at, "user", [{"type": "text", "text": prompt.text}])
        for each in prompt.responses:
            parts: list[dict[str, Any]] = [{"type": "text", "text": each.text}]
            if each.thinking:
                parts.insert(0, {"type": "thinking", "thinking": each.thinking, "thinkingSignature": ""})
            if each.call:
                call = {"id": each.call["id"], "name": "bash", "arguments": each.call["input"]}
                parts.append({"type": "toolCall", **call})
            usage = {"input": each.given, "output": each.output, "cacheRead": each.read, "cacheWrite": 0}
            about: dict[str, Any] = {"api": "openai-completions", "provider": "openai", "model": MODEL, "usage": usage}
            about |= {"stopReason": "toolUse" if each.call else "stop", "responseId": f"chatcmpl-{each.id}"}
            yield message(each.at, "assistant", parts, **about)
            if each.call:
                result = [{"type": "text", "text": each.result}]
                named = {"toolCallId": each.call["id"], "toolName": "bash"}
                yield message(each.at, "toolResult", result, **named, isError=False)


def write_codex(home: Path, talks: list[Conversation]) -> None:
    for talk in talks:
        began = talk.prompts[0].at
        path = home / f".codex/sessions/{began:%Y/%m/%d}/rollout-{began:%Y-%m-%dT%H-%M-%S}-{talk.id}.jsonl"
        _write_lines(path, list(_codex_lines(talk)))


def _codex_lines(talk: Conversation) -> Iterator[dict[str, Any]]:
    total = Counter[str]()

    def line(at: datetime, kind: str, **payload: object) -> dict[str, Any]:
        return {"timestamp": _time(at), "type": kind, "payload": payload}

    began = talk.prompts[0].at
    meta = {"id": talk.id, "timestamp": _time(began), "cwd": talk.project, "originator": "codex_exec"}
    yield line(began, "session_meta", **meta, cli_version="0.166.0", source="exec", model_provider="openai")
    for number, prompt in enumerate(talk.prompts):
        turn = f"{talk.id[:-4]}{number:04}"
        yield line(prompt.at, "event_msg", type="task_started", turn_id=turn, model_context_window=258400)
        yield line(prompt.at, "turn_context", turn_id=turn, cwd=talk.project, model=MODEL, summary="none")
        typed = [{"type": "input_text", "text": prompt.text}]
        yield line(prompt.at, "response_item", type="message", role="user", content=typed)
        for each in prompt.responses:
            yield from _codex_items(each, line)
            counted = {"input_tokens": each.given + each.read, "cached_input_tokens": each.read}
            counted |= {"output_tokens": each.output, "reasoning_output_tokens": 0}
            counted["total_tokens"] = counted["input_tokens"] + each.output
            total.update(counted)
            info = {"total_token_usage": dict(total), "last_token_usage": counted, "model_context_window": 258400}
            yield line(each.at, "event_msg", type="token_count", info=info, rate_limits=None)
        yield line(prompt.responses[-1].at, "event_msg", type="task_complete", turn_id=turn)


def _codex_items(each: Response, line: Callable[..., dict[str, Any]]) -> Iterator[dict[str, Any]]:
    if each.thinking:
        thought = [{"type": "summary_text", "text": each.thinking}]
        yield line(each.at, "response_item", type="reasoning", id=f"rs_{each.id}", summary=thought)
    said = [{"type": "output_text", "text": each.text}]
    yield line(each.at, "response_item", type="message", id=each.id, role="assistant", content=said)
    if each.call:
        call = {"name": "exec_command", "arguments": _encoded(each.call["input"]), "call_id": each.call["id"]}
        yield line(each.at, "response_item", type="function_call", **call)
        output = {"call_id": each.call["id"], "output": each.result}
        yield line(each.at, "response_item", type="function_call_output", **output)


def write_copilot(home: Path, talks: list[Conversation]) -> None:
    for talk in talks:
        folder = home / ".copilot/session-state" / talk.id
        _write_lines(folder / "events.jsonl", list(_copilot_lines(talk)))


def _copilot_lines(talk: Conversation) -> Iterator[dict[str, Any]]:
    count = 0

    def line(at: datetime, kind: str, **data: object) -> dict[str, Any]:
        nonlocal count
        count += 1
        named = {"id": f"{talk.id[:-6]}{count:06}", "timestamp": _time(at), "parentId": None}
        return {"type": kind, "data": data, **named}

    began = talk.prompts[0].at
    about = {"startTime": _time(began), "selectedModel": MODEL, "context": {"cwd": talk.project}}
    yield line(began, "session.start", sessionId=talk.id, version=1, producer="copilot-agent", **about)
    for prompt in talk.prompts:
        yield line(prompt.at, "user.message", content=prompt.text)
        for number, each in enumerate(prompt.responses):
            yield line(each.at, "assistant.turn_start", turnId=str(number))
            named = {"apiCallId": f"chatcmpl-{each.id}"}
            usage = {"model": MODEL, "inputTokens": each.given + each.read, "outputTokens": each.output}
            usage |= {"cacheReadTokens": each.read, "cacheWriteTokens": 0, "interactionType": "conversation-agent"}
            yield line(each.at, "session.usage_record", usage={**usage, **named})
            calls = (
                [{"toolCallId": each.call["id"], "name": "bash", "arguments": each.call["input"]}] if each.call else []
            )
            said = {"messageId": each.id, "model": MODEL, "content": each.text, "toolRequests": calls}
            yield line(each.at, "assistant.message", **said, turnId=str(number), **named)
            if each.call:
                called = {"toolCallId": each.call["id"], "turnId": str(number)}
                yield line(each.at, "tool.execution_start", **called, toolName="bash", arguments=each.call["input"])
                result = {"content": each.result}
                yield line(each.at, "tool.execution_complete", **called, success=True, result=result)
            yield line(each.at, "assistant.turn_end", turnId=str(number))


WRITERS: dict[str, Callable[[Path, list[Conversation]], None]] = {
    "opencode": write_opencode,
    "kilo": write_kilo,
    "goose": write_goose,
    "kimi-code": write_kimi,
    "grok-build": write_grok,
    "cline": write_cline,
    "pi": write_pi,
    "codex": write_codex,
    "copilot-cli": write_copilot,
}
