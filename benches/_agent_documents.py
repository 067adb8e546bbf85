"""Writes conversations into documents of several agents, as the recordings in tests/data have them."""

import json
from collections.abc import Iterator
from dataclasses import replace
from datetime import datetime
from hashlib import sha256
from pathlib import Path
from typing import Any

from _conversations import (
    FILLER,
    MODEL,
    NAMED_FOLDER,
    Conversation,
    Prompt,
    Response,
    encoded,
    local_time,
    write_lines,
)


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


def write_openhands(home: Path, talks: list[Conversation]) -> None:
    for talk in talks:
        name = talk.id.replace("-", "")
        events = home / f".openhands/conversations/{name}/events"
        events.mkdir(parents=True)
        for number, event in enumerate(_openhands_events(talk)):
            named = {"id": f"{talk.id[:-6]}{number:06}", **event}
            (events / f"event-{number:05}-{named['id']}.json").write_text(encoded(named))
        counted = [{"model": f"openai/{MODEL}", **_openhands_usage(each)} for each in talk.responses]
        llm = {"model": f"openai/{MODEL}", "num_retries": 5, "timeout": 300, "usage_id": "agent"}
        about = {"id": talk.id, "agent": {"llm": llm, "tools": [{"name": "terminal", "params": {}}], "kind": "Agent"}}
        state = {"workspace": {"working_dir": talk.project, "kind": "LocalWorkspace"}, "execution_status": "finished"}
        latencies = [{"model": each["model"], "latency": 0.87, "response_id": each["response_id"]} for each in counted]
        metrics = {"model_name": f"openai/{MODEL}", "response_latencies": latencies, "token_usages": counted}
        stats = {"stats": {"usage_to_metrics": {"agent": metrics}}}
        (events.parent / "base_state.json").write_text(encoded({**about, **state, **stats}))


def _openhands_usage(each: Response) -> dict[str, Any]:
    counted = {
        "prompt_tokens": each.given + each.read,
        "completion_tokens": each.output,
        "cache_read_tokens": each.read,
    }
    others = {"cache_write_tokens": 0, "reasoning_tokens": 0, "context_window": 0, "per_turn_token": 0}
    return {**counted, **others, "response_id": f"chatcmpl-{each.id}"}


def _openhands_events(talk: Conversation) -> Iterator[dict[str, Any]]:
    def texts(text: str) -> list[dict[str, Any]]:
        return [{"cache_prompt": False, "type": "text", "text": text}]

    def spoken(at: datetime, source: str, role: str, text: str, **more: object) -> dict[str, Any]:
        message = {"role": role, "content": texts(text), **more, "thinking_blocks": []}
        return {"timestamp": local_time(at), "source": source, "llm_message": message}

    began = local_time(talk.prompts[0].at)
    prompt_of_vendor = {"cache_prompt": False, "type": "text", "text": FILLER * 137}
    yield {"timestamp": began, "source": "agent", "system_prompt": prompt_of_vendor, "kind": "SystemPromptEvent"}
    for prompt in talk.prompts:
        yield {**spoken(prompt.at, "user", "user", prompt.text), "activated_skills": [], "kind": "MessageEvent"}
        for each in prompt.responses:
            response = {"llm_response_id": f"chatcmpl-{each.id}"}
            thought = {"reasoning_content": each.thinking} if each.thinking else {}
            if each.call is None:
                yield {
                    **spoken(each.at, "agent", "assistant", each.text, **thought),
                    **response,
                    "kind": "MessageEvent",
                }
                continue
            at, called = local_time(each.at), {"tool_name": "terminal", "tool_call_id": each.call["id"]}
            call = {"id": each.call["id"], "name": "terminal", "arguments": encoded(each.call["input"])}
            action = {**each.call["input"], "kind": "TerminalAction"}
            said = {"thought": texts(each.text), **thought, "thinking_blocks": [], "action": action, **called}
            about = {"security_risk": "LOW", "summary": "list files", "kind": "ActionEvent"}
            yield {"timestamp": at, "source": "agent", **said, "tool_call": call, **response, **about}
            metadata = {"exit_code": 0, "pid": -1, "username": "user", "working_dir": talk.project}
            observed = {"content": texts(each.result), "is_error": False, "command": "ls -1", "exit_code": 0}
            observed |= {"timeout": False, "metadata": metadata, "kind": "TerminalObservation"}
            answer = {"source": "environment", **called, "observation": observed, "kind": "ObservationEvent"}
            yield {"timestamp": at, **answer}


def write_continue(home: Path, talks: list[Conversation]) -> None:
    folder = home / ".continue/sessions"
    folder.mkdir(parents=True)
    listed = []
    for talk in talks:
        about = {"sessionId": talk.id, "title": "Untitled Session", "workspaceDirectory": talk.project}
        listed.append({**about, "dateCreated": str(talk.prompts[0].ms), "messageCount": 4})
        details = {"cachedTokens": 0, "cacheWriteTokens": 0}
        used: dict[str, Any] = {
            "totalCost": 0.01,
            "promptTokens": talk.given + talk.read,
            "completionTokens": talk.output,
        }
        document: dict[str, Any] = {
            **about,
            "history": list(_continue_history(talk)),
            "usage": {**used, "promptTokensDetails": details},
        }
        (folder / f"{talk.id}.json").write_text(json.dumps(document, indent=2))
    (folder / "sessions.json").write_text(json.dumps(listed, indent=2))


def _continue_history(talk: Conversation) -> Iterator[dict[str, Any]]:
    for prompt in talk.prompts:
        spoken = {"role": "user", "content": prompt.text}
        yield {"message": spoken, "contextItems": [], "editorState": prompt.text}
        for each in prompt.responses:
            counted = {"prompt_tokens": each.given + each.read, "completion_tokens": each.output}
            counted["total_tokens"] = each.tokens
            details = {"prompt_tokens_details": {"cached_tokens": each.read}}
            details["completion_tokens_details"] = {"reasoning_tokens": 0}
            message: dict[str, Any] = {"role": "assistant", "content": each.text}
            usage = {**counted, **details, "model": MODEL, "cost_cents": 0}
            if each.call is None:
                yield {"message": {**message, "usage": usage}, "contextItems": []}
                continue
            function = {"name": "Bash", "arguments": encoded(each.call["input"])}
            call = {"id": each.call["id"], "type": "function", "function": function}
            output = {"content": each.result, "name": "Tool Result", "description": "Tool execution result"}
            state = {"toolCallId": each.call["id"], "toolCall": call, "status": "done"}
            state |= {"parsedArgs": each.call["input"], "output": [output]}
            message |= {"toolCalls": [call], "usage": usage}
            yield {"message": message, "contextItems": [], "toolCallStates": [state]}


def write_mini(home: Path, talks: list[Conversation]) -> None:
    """Write trajectories into a folder that the user names."""
    folder = home / NAMED_FOLDER
    folder.mkdir(parents=True)
    for talk in talks:
        agent = {"instance_template": "Please solve this issue: {{task}}\n\nYou can execute bash commands"}
        config = {"agent": agent, "model": {"model_name": f"openai/{MODEL}"}, "environment": {"cwd": talk.project}}
        stats = {"instance_cost": 0.0, "api_calls": len(talk.responses)}
        info = {"model_stats": stats, "config": config, "mini_version": "2.4.6", "exit_status": "Submitted"}
        document = {"info": info, "messages": list(_mini_messages(talk)), "trajectory_format": "mini-swe-agent-1.1"}
        (folder / f"{talk.id}.json").write_text(json.dumps(document, indent=2))


def _mini_messages(talk: Conversation) -> Iterator[dict[str, Any]]:
    yield {"role": "system", "content": "You are a helpful assistant that can interact with a computer."}
    for number, prompt in enumerate(talk.prompts):
        if number == 0:
            text = f"Please solve this issue: {prompt.text}\n\nYou can execute bash commands\n{FILLER * 29}"
            yield {"role": "user", "content": text}
        else:
            extra = {"interrupt_type": "UserNewTask", "timestamp": prompt.at.timestamp()}
            yield {"role": "user", "content": f"The user added a new task: {prompt.text}", "extra": extra}
        for each in prompt.responses:
            yield from _mini_response(each)
    submitted = {"exit_status": "Submitted", "submission": "done\n"}
    yield {"role": "exit", "content": "done\n", "extra": submitted}


def _mini_response(each: Response) -> Iterator[dict[str, Any]]:
    message: dict[str, Any] = {"content": each.text, "role": "assistant", "tool_calls": None, "function_call": None}
    if each.thinking:
        message["reasoning_content"] = each.thinking
    extra: dict[str, Any] = {}
    if each.call:
        function = {"arguments": encoded(each.call["input"]), "name": "bash"}
        message["tool_calls"] = [{"function": function, "id": each.call["id"], "type": "function"}]
        extra["actions"] = [{"command": "ls -1", "tool_call_id": each.call["id"]}]
    counted = {"completion_tokens": each.output, "prompt_tokens": each.given + each.read, "total_tokens": each.tokens}
    details = {"prompt_tokens_details": {"audio_tokens": None, "cached_tokens": each.read}}
    choice = {"finish_reason": "tool_calls" if each.call else "stop", "index": 0, "message": message}
    about = {"created": each.ms // 1000, "model": MODEL, "object": "chat.completion", "choices": [choice]}
    response = {"id": f"chatcmpl-{each.id}", **about, "usage": {**counted, **details}, "service_tier": "default"}
    at = each.at.timestamp()
    yield {**message, "extra": {**extra, "response": response, "cost": 0.0, "timestamp": at}}
    if each.call:
        text = json.dumps({"returncode": 0, "output": each.result}, indent=2)
        result = {"raw_output": each.result, "returncode": 0, "timestamp": at, "exception_info": ""}
        yield {"content": text, "extra": result, "tool_call_id": each.call["id"], "role": "tool"}


def write_vibe(home: Path, talks: list[Conversation]) -> None:
    """Write stores of version 3, each with its newest generation, and the journal of the latest prompt before it."""
    for talk in talks:
        folder, generation = home / f".vibe/logs/session/unified/{talk.id}", f"{len(talk.responses) * 8:016}"
        parts = [folder / name for name in ("chunks", "journal", f"generations/{generation}")]
        for part in parts:
            part.mkdir(parents=True)
        chunks, journal, state = parts
        named = []
        for elements in (list(_vibe_entries(talk)), list(_vibe_context(talk.prompts))):
            text = encoded(elements)
            named.append(sha256(text.encode()).hexdigest())
            (chunks / f"{named[-1]}.json").write_text(text)
        manifest = {"generation": generation, "manifest_version": 1, "session_id": talk.id}
        manifest |= {"projection_state": {"chunks": [named[0]], "path": "projection-state.json", "sha256": "0" * 64}}
        manifest |= {"checkpoint": {"chunks": [named[1]], "path": "checkpoint.json", "sha256": "0" * 64}}
        identity = {"depth": 0, "kind": "root", "parent_session_id": None, "session_id": talk.id}
        about = {"active_model": "own", "cwd": talk.project, "parent_session_id": None, "subagent_spawn_key": None}
        runtime = {"identity": identity, "runtime_state_version": 3, "session_metadata": about, "notes": FILLER * 40}
        snapshot = {"projection_state_version": 1, "session_id": talk.id, "snapshot": _vibe_envelope(talk)}
        documents = {
            "manifest": manifest,
            "checkpoint": {"checkpoint_version": 1, "context": {"messages": []}},
            "runtime-state": runtime,
            "projection-state": {**snapshot, "snapshot_sequence": int(generation)},
        }
        for name, document in documents.items():
            (state / f"{name}.json").write_text(encoded(document))
        current: dict[str, Any] = {"generation": generation, "manifest_sha256": "0" * 64, "session_id": talk.id}
        current |= {"snapshot_sequence": int(generation), "store_format": "mistral.vibe.unified-session-store/v1"}
        (folder / "CURRENT").write_text(encoded(current))
        (folder / "meta.json").write_text(json.dumps(_vibe_meta(talk), indent=2))
        records = list(_vibe_records(talk))
        first = int(generation) - len(records) + 1
        numbered = [{**record, "sequence": number} for number, record in enumerate(records, first)]
        write_lines(journal / f"{first:016}.jsonl", numbered)
        (journal / f"{int(generation) + 1:016}.jsonl").write_text("")


def _vibe_meta(talk: Conversation) -> dict[str, Any]:
    times = {"start_time": talk.prompts[0].at.isoformat(), "end_time": talk.prompts[-1].at.isoformat()}
    described: dict[str, Any] = {"environment": {"working_directory": talk.project}, "title": None}
    config = {"active_model": "own", "model_name": MODEL}
    return {"session_id": talk.id, "parent_session_id": None, **times, **described, "config": config}


def _vibe_envelope(talk: Conversation) -> dict[str, Any]:
    counted = {"cachedInputTokens": talk.read, "inputTokens": talk.given + talk.read, "outputTokens": talk.output}
    session = {"createdAt": talk.prompts[0].ms, "id": talk.id, "parentSessionId": None, "tokenUsage": counted}
    history = {"cursor": {"after": None, "before": None}, "entries": [], "range": "latest"}
    latest = {"id": f"turn-{talk.id}", "sessionId": talk.id, "status": "completed", "stopReason": None}
    return {"activeCallbacks": [], "history": history, "latestTurn": latest, "session": session}


def _vibe_entries(talk: Conversation) -> Iterator[dict[str, Any]]:
    for number, prompt in enumerate(talk.prompts):
        turn = f"turn-{talk.id[:-4]}{number:04}"
        about = {"generationStatus": "completed", "sessionId": talk.id, "turnId": turn, "relatedEntryId": None}
        yield {**_vibe_message(prompt.text, prompt.ms, f"user-{turn}", "user"), **about, "source": "turn_start"}
        for each in prompt.responses:
            if each.thinking:
                thought = {"id": f"reasoning-{each.id}-0", "type": "reasoning", "text": each.thinking}
                yield {**thought, **about, "createdAt": each.ms, "updatedAt": each.ms}
            answer = _vibe_message(each.text, each.ms, f"assistant-{each.id}", "assistant")
            yield {**answer, **about, "outcome": {"type": "committed"}, "source": "harness"}
            if each.call:
                display = {"message": "file_system.bash", "settledVerb": "Ran", "summary": "file_system.bash"}
                detail = {"display": display, "input": each.call["input"], "kind": "tool"}
                detail["toolName"] = "file_system.bash"
                content = {"command": "ls -1", "returncode": 0, "stderr": "", "stdout": each.result}
                output = {"_meta": {}, "content": [], "structured_content": content, "type": "success"}
                state = {"decision": "execute", "output": output, "outputText": "", "status": "completed"}
                effect = {"detail": detail, "id": f"effect-{each.call['id']}", "state": state, "type": "effect"}
                yield {"createdAt": each.ms, "updatedAt": each.ms + 80, **about, **effect, "title": "file_system.bash"}


def _vibe_message(text: str, at: int, name: str, role: str) -> dict[str, Any]:
    content = [{"text": text, "type": "text"}]
    return {"content": content, "createdAt": at, "updatedAt": at, "id": name, "role": role, "type": "message"}


def _vibe_parts(each: Response) -> list[dict[str, Any]]:
    parts: list[dict[str, Any]] = [{"text": each.text, "type": "text"}]
    if each.thinking:
        parts.insert(0, {"content": [{"text": each.thinking, "type": "text"}], "type": "reasoning"})
    if each.call:
        given = {"raw": encoded(each.call["input"]), "type": "json", "value": each.call["input"]}
        parts.append({"arguments": given, "id": each.call["id"], "name": "bash", "type": "tool_call"})
    return parts


def _vibe_context(prompts: list[Prompt]) -> Iterator[dict[str, Any]]:
    for number, prompt in enumerate(prompts):
        about = {"source": "history", "turn_index": number}
        yield {"message": {"content": [{"text": prompt.text, "type": "text"}], "role": "user"}, **about}
        for each in prompt.responses:
            yield {"message": {"content": _vibe_parts(each), "role": "assistant"}, **about}
            if each.call:
                text = encoded({"command": "ls -1", "returncode": 0, "stderr": "", "stdout": each.result})
                result = {"content": [{"text": text, "type": "text"}], "name": "bash", "outcome": "success"}
                yield {"message": {**result, "role": "tool", "tool_call_id": each.call["id"]}, **about}


def _vibe_records(talk: Conversation) -> Iterator[dict[str, Any]]:
    """Yield the journal of the latest prompt: each request whole, then the response."""

    def record(kind: str, payload: dict[str, Any]) -> dict[str, Any]:
        hashes = {"previous_record_sha256": "0" * 64, "record_sha256": "0" * 64}
        return {"payload": payload, **hashes, "recovery_journal_record_version": 1, "type": kind}

    latest = talk.prompts[-1]
    yield record("command_reserved", {"method": "turn/start", "params": {"sessionId": talk.id}})
    for number, each in enumerate(latest.responses):
        sent = [*talk.prompts[:-1], replace(latest, responses=latest.responses[:number])]
        messages = [context["message"] for context in _vibe_context(sent)]
        request = {"action_id": each.id, "model_input": {"messages": {"messages": messages}}, "purpose": "agent"}
        yield record("action_intent", {"action_id": each.id, "kind": "completion", "request": request})
        usage = {"cached_input_tokens": each.read, "input_tokens": each.given + each.read, "output_tokens": each.output}
        reason = "tool_calls" if each.call else "stop"
        result = {"finish_reason": reason, "parts": _vibe_parts(each), "usage": usage}
        outcome = {"action_id": each.id, "result": result, "type": "completion_succeeded"}
        yield record("action_result", {"action_id": each.id, "result": outcome, "state": "succeeded"})
        given = {"command": {"action_id": each.id, "result": result, "type": "completion_succeeded"}}
        yield record("core_input", {"input": {**given, "determinism": {"time_unix_ms": each.ms}}})
    yield record("receipt_succeeded", {"response": {}})
