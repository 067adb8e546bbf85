"""Writes conversations into databases of several agents: those whose recordings are in tests/data."""

import shutil
import sqlite3
import tempfile
from collections.abc import Collection, Iterator
from contextlib import closing
from pathlib import Path
from typing import Any

from _agent_lines import pi_events
from _conversations import FILLER, MODEL, Conversation, encoded

DATA = Path(__file__).resolve().parent.parent / "tests/data"


def _tables(recorded: str, path: Path, names: Collection[str] = ()) -> sqlite3.Connection:
    """Return an empty database with the tables and indexes of a recorded one; without names, all of them."""
    path.parent.mkdir(parents=True, exist_ok=True)
    database = sqlite3.connect(path)
    database.create_function("octet_length", 1, lambda value: len(str(value).encode()), deterministic=True)
    with tempfile.TemporaryDirectory() as folder:
        for suffix in ("", "-wal"):
            if (part := DATA / f"{recorded}{suffix}").exists():
                shutil.copy(part, f"{folder}/copy.db{suffix}")
        with closing(sqlite3.connect(f"{folder}/copy.db")) as source:
            query = (
                "SELECT tbl_name, sql FROM sqlite_master WHERE type IN ('table', 'index') AND sql IS NOT NULL "
                "AND name NOT LIKE 'sqlite_%' ORDER BY type DESC"
            )
            for table, statement in source.execute(query).fetchall():
                if not names or table in names:
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
        _insert(database, table, id=name, session_id=session, **timed, data=encoded(data), **more)
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
            content_json=encoded(content),
            created_timestamp=at // 1000,
            metadata_json=encoded({"userVisible": True, "agentVisible": True, **about}),
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


def write_hermes(home: Path, talks: list[Conversation]) -> None:
    recorded, names = "hermes/0.19.0/tools/home/.hermes/state.db", ("sessions", "messages", "session_model_usage")
    with closing(_tables(recorded, home / ".hermes/state.db", names)) as database, database:
        for number, talk in enumerate(talks):
            _write_hermes_session(database, f"{talk.prompts[0].at:%Y%m%d_%H%M%S}_{number:06x}", talk)


def _write_hermes_session(database: sqlite3.Connection, session: str, talk: Conversation) -> None:
    counted = {"input_tokens": talk.given, "output_tokens": talk.output, "cache_read_tokens": talk.read}
    counted |= {"cache_write_tokens": 0, "api_call_count": len(talk.responses)}
    began, ended = talk.prompts[0].at.timestamp(), talk.prompts[-1].at.timestamp()
    described = {"source": "cli", "model": MODEL, "model_config": '{"max_iterations": 90}', "cwd": talk.project}
    described["system_prompt"] = FILLER * 132
    _insert(database, "sessions", id=session, started_at=began, ended_at=ended, **described, **counted)
    seen = {"first_seen": began, "last_seen": ended}
    _insert(database, "session_model_usage", session_id=session, model=MODEL, **counted, **seen)

    def add(role: str, at: float, content: str, **more: object) -> None:
        _insert(database, "messages", session_id=session, role=role, timestamp=at, content=content, **more)

    for prompt in talk.prompts:
        add("user", prompt.at.timestamp(), prompt.text)
        for each in prompt.responses:
            at, more = each.at.timestamp(), {"reasoning": each.thinking} if each.thinking else {}
            if each.call:
                function = {"name": "terminal", "arguments": encoded(each.call["input"])}
                call = {"id": each.call["id"], "call_id": each.call["id"], "type": "function", "function": function}
                more["tool_calls"] = encoded([call])
            add("assistant", at, each.text, finish_reason="tool_calls" if each.call else "stop", **more)
            if each.call:
                result = encoded({"output": each.result, "exit_code": 0, "error": None})
                add("tool", at, result, tool_call_id=each.call["id"], tool_name="terminal")


def write_openclaw(home: Path, talks: list[Conversation]) -> None:
    name = ".openclaw/agents/main/agent/openclaw-agent.sqlite"
    names = ("session_nodes", "session_windows", "transcript_events")
    with closing(_tables(f"openclaw/2026.9.6/tools/home/{name}", home / name, names)) as database, database:
        for talk in talks:
            _write_openclaw_session(database, talk)


def _write_openclaw_session(database: sqlite3.Connection, talk: Conversation) -> None:
    key, times = f"agent:main:{talk.id}", {"created_at": talk.prompts[0].ms, "updated_at": talk.prompts[-1].ms}
    entry = encoded({"sessionId": talk.id, "skillsSnapshot": {"prompt": FILLER * 65}})
    _insert(database, "session_nodes", session_key=key, current_session_id=talk.id, entry_json=entry, **times)
    described = {"model_provider": "openai", "model": MODEL, "agent_harness_id": "openclaw"}
    _insert(database, "session_windows", session_id=talk.id, session_key=key, **times, **described)
    for number, event in enumerate(_openclaw_events(talk)):
        text = encoded(event)
        timed = {"created_at": talk.prompts[0].ms, "event_utf8_bytes": len(text)}
        _insert(database, "transcript_events", session_id=talk.id, seq=number, event_json=text, **timed)


def _openclaw_events(talk: Conversation) -> Iterator[dict[str, Any]]:
    """Yield pi's lines, and those that note what of a conversation the vendor has in its cache."""
    for number, event in enumerate(pi_events(talk, version=4)):
        yield event
        if event.get("message", {}).get("role") == "toolResult":
            frozen = {"key": f"tool:{event['message']['toolCallId']}:{number}", "sourceHash": "1qFb" * 10}
            data = {"prunedToolResults": [], "ambiguousToolResultBaseKeys": [], "frozenToolResults": [frozen]}
            named = {"id": f"{talk.id[:-6]}{number:06}", "parentId": event["id"], "timestamp": event["timestamp"]}
            yield {"type": "custom", "customType": "openclaw.cache-ttl", "data": data, **named}
