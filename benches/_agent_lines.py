"""Writes conversations into files of lines of several agents, as the recordings in tests/data have them."""

import json
import textwrap
from collections import Counter
from collections.abc import Callable, Iterator
from datetime import datetime
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
    time_text,
    write_lines,
)


def write_kimi(home: Path, talks: list[Conversation]) -> None:
    for talk in talks:
        folder = home / ".kimi-code/sessions/wd_project" / f"session_{talk.id}"
        write_lines(folder / "agents/main/wire.jsonl", list(_kimi_lines(talk)))
        (folder / "state.json").write_text(encoded({"id": folder.name, "version": 2, "cwd": talk.project}))


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
            calls = [{"id": each.call["id"], "arguments": encoded(each.call["input"])}] if each.call else []
            yield appended(each.ms, "assistant", each.text, toolCalls=calls)
            if each.call:
                yield appended(each.ms, "tool", each.result, toolCallId=each.call["id"])
        yield {"type": "turn.ended", "agentId": "main", "reason": "completed", "time": prompt.ms}


def write_grok(home: Path, talks: list[Conversation]) -> None:
    for talk in talks:
        folder = home / ".grok/sessions/%2Fhome%2Fuser%2Fproject" / talk.id
        write_lines(folder / "updates.jsonl", list(_grok_lines(talk)))
        write_lines(folder / "chat_history.jsonl", list(_grok_history(talk)))
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
            calls = [{"id": each.call["id"], "arguments": encoded(each.call["input"])}] if each.call else []
            yield {"type": "assistant", "content": each.text, "tool_calls": calls, "model_id": MODEL}
            if each.call:
                yield {"type": "tool_result", "tool_call_id": each.call["id"], "content": each.result}


def write_pi(home: Path, talks: list[Conversation]) -> None:
    for talk in talks:
        name = f"{talk.prompts[0].at:%Y-%m-%dT%H-%M-%S}-000Z_{talk.id}.jsonl"
        write_lines(home / ".pi/agent/sessions/--home-user-project--" / name, list(pi_events(talk)))


def pi_events(talk: Conversation, version: int = 3) -> Iterator[dict[str, Any]]:
    """Yield the lines of pi; OpenClaw has the same ones in its database."""
    began = time_text(talk.prompts[0].at)
    yield {"type": "session", "version": version, "id": talk.id, "timestamp": began, "cwd": talk.project}
    parent, count = None, 0

    def message(at: datetime, role: str, content: list[dict[str, Any]], **more: object) -> dict[str, Any]:
        nonlocal parent, count
        count += 1
        inner = {"role": role, "content": content, **more, "timestamp": int(at.timestamp() * 1000)}
        named = {"id": f"{count:08x}", "parentId": parent}
        parent = named["id"]
        return {"type": "message", **named, "timestamp": time_text(at), "message": inner}

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
        write_lines(path, list(_codex_lines(talk)))


def _codex_lines(talk: Conversation) -> Iterator[dict[str, Any]]:
    total = Counter[str]()

    def line(at: datetime, kind: str, **payload: object) -> dict[str, Any]:
        return {"timestamp": time_text(at), "type": kind, "payload": payload}

    began = talk.prompts[0].at
    meta = {"id": talk.id, "timestamp": time_text(began), "cwd": talk.project, "originator": "codex_exec"}
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
        call = {"name": "exec_command", "arguments": encoded(each.call["input"]), "call_id": each.call["id"]}
        yield line(each.at, "response_item", type="function_call", **call)
        output = {"call_id": each.call["id"], "output": each.result}
        yield line(each.at, "response_item", type="function_call_output", **output)


def write_copilot(home: Path, talks: list[Conversation]) -> None:
    for talk in talks:
        folder = home / ".copilot/session-state" / talk.id
        write_lines(folder / "events.jsonl", list(_copilot_lines(talk)))


def _copilot_lines(talk: Conversation) -> Iterator[dict[str, Any]]:
    count = 0

    def line(at: datetime, kind: str, **data: object) -> dict[str, Any]:
        nonlocal count
        count += 1
        named = {"id": f"{talk.id[:-6]}{count:06}", "timestamp": time_text(at), "parentId": None}
        return {"type": kind, "data": data, **named}

    began = talk.prompts[0].at
    about = {"startTime": time_text(began), "selectedModel": MODEL, "context": {"cwd": talk.project}}
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


def write_droid(home: Path, talks: list[Conversation]) -> None:
    for talk in talks:
        folder = home / f".factory/sessions/{talk.project.replace('/', '-')}"
        write_lines(folder / f"{talk.id}.jsonl", list(_droid_lines(talk)))
        for suffix in ("", ".bak"):
            (folder / f"{talk.id}.settings.json{suffix}").write_text(encoded(_droid_settings(talk)))


def _droid_settings(talk: Conversation) -> dict[str, Any]:
    counted = {"inputTokens": talk.given, "outputTokens": talk.output, "cacheCreationTokens": 0}
    counted |= {"cacheReadTokens": talk.read, "thinkingTokens": 0, "factoryCredits": 0}
    about = {"assistantActiveTimeMs": 356, "model": MODEL, "reasoningEffort": "none", "interactionMode": "auto"}
    return {**about, "tokenUsage": counted, "childInclusiveTokenUsageBySessionId": {}, "inclusiveTokenUsage": counted}


def _droid_lines(talk: Conversation) -> Iterator[dict[str, Any]]:
    about = {"title": "A title", "owner": "user", "version": 2, "cwd": talk.project}
    yield {"type": "session_start", "id": talk.id, **about, "isSessionTitleManuallySet": False}
    parent, count = "", 0

    def message(at: datetime, role: str, content: list[dict[str, Any]], **more: object) -> dict[str, Any]:
        nonlocal parent, count
        count += 1
        named = {"id": f"{talk.id[:-6]}{count:06}", **({"parentId": parent} if parent else {})}
        parent = named["id"]
        inner = {"role": role, "content": content, **more}
        return {"type": "message", **named, "timestamp": time_text(at), "message": inner}

    for prompt in talk.prompts:
        yield message(prompt.at, "user", [{"type": "text", "text": prompt.text}], interactionMode="auto")
        turn = parent
        for each in prompt.responses:
            parts: list[dict[str, Any]] = [{"type": "text", "text": each.text}]
            if each.thinking:
                parts.insert(0, {"type": "thinking", "thinking": each.thinking, "signature": ""})
            if each.call:
                parts.append(
                    {"type": "tool_use", "id": each.call["id"], "name": "Execute", "input": each.call["input"]}
                )
            named = {"openaiMessageId": f"chatcmpl-{each.id}", "modelId": MODEL, "reasoningEffort": "none"}
            yield message(each.at, "assistant", parts, **named)
            if each.call:
                result = {"type": "tool_result", "tool_use_id": each.call["id"], "is_error": False}
                yield message(each.at, "user", [{**result, "content": each.result}])
        yield {"type": "agent_turn_outcome", "turnId": turn, "reason": "completed", "resultKind": "text"}


def write_gptme(home: Path, talks: list[Conversation]) -> None:
    for talk in talks:
        folder = home / f".local/share/gptme/logs/{talk.prompts[0].at:%Y-%m-%d}-{talk.id[:8]}"
        write_lines(folder / "conversation.jsonl", list(_gptme_lines(talk)))
        settings = {"model": f"openai/{MODEL}", "tool_format": "tool", "workspace": talk.project, "name": "A title"}
        lines = [f'{name} = "{value}"\n' for name, value in settings.items()]
        (folder / "config.toml").write_text("".join(["[chat]\n", *lines]))


def _gptme_lines(talk: Conversation) -> Iterator[dict[str, Any]]:
    began = local_time(talk.prompts[0].at)
    system = f"## System Information\n\n**OS:** Debian GNU/Linux 12\n**Working Directory:** {talk.project}\n"
    for text in (FILLER * 230, system):
        yield {"role": "system", "content": text, "timestamp": began, "pinned": True, "hide": True}
    for prompt in talk.prompts:
        yield {"role": "user", "content": prompt.text, "timestamp": local_time(prompt.at)}
        for each in prompt.responses:
            text = f"<think>\n{each.thinking}\n</think>\n\n{each.text}" if each.thinking else each.text
            usage = {"input_tokens": each.given, "output_tokens": each.output, "cache_read_tokens": each.read}
            about: dict[str, Any] = {"model": f"openai/{MODEL}", "served_model": MODEL}
            about |= {"usage": {**usage, "reasoning_tokens": 0}, "cost": 0.003955, "input_log_messages": 8}
            about |= {"input_log_digest": "db86" * 16, "input_log_model": f"openai/{MODEL}"}
            at = local_time(each.at)
            if each.call:
                text += f"\n@shell({each.call['id']}): {json.dumps(each.call['input'])}"
                about["timings"] = {"tool_ms": 592.8, "tool_ms_by_name": {"shell": 592.8}}
            yield {"role": "assistant", "content": text, "timestamp": at, "metadata": about}
            if each.call:
                result = f"Ran command: `ls -1`\n\n```stdout\n{each.result}\n```\n\n"
                named = {"call_id": each.call["id"], "metadata": {"tool": "shell"}}
                yield {"role": "system", "content": result, "timestamp": at, **named}


def write_vibe_2(home: Path, talks: list[Conversation]) -> None:
    for talk in talks:
        folder = home / f".vibe/logs/session/session_{talk.prompts[0].at:%Y%m%d_%H%M%S}_{talk.id[:8]}"
        write_lines(folder / "messages.jsonl", list(_vibe_2_lines(talk)))
        # The client writes a blank after each colon and comma, by which its files are known.
        lines = (folder / "messages.jsonl").read_text("utf-8").splitlines()
        text = "".join(json.dumps(json.loads(line)) + "\n" for line in lines)
        (folder / "messages.jsonl").write_text(text, "utf-8")
        began, ended = talk.prompts[0].at.isoformat(), talk.prompts[-1].at.isoformat()
        meta: dict[str, Any] = {
            "session_id": talk.id,
            "parent_session_id": None,
            "start_time": began,
            "end_time": ended,
        }
        meta |= {"environment": {"working_directory": talk.project}, "child_sessions": [], "title": None}
        meta["config"] = {"active_model": "own", "models": {"own": {"name": MODEL, "provider": "own", "alias": "own"}}}
        meta["stats"] = {"steps": len(talk.responses), "session_prompt_tokens": talk.given + talk.read}
        meta["stats"] |= {"session_completion_tokens": talk.output, "session_cached_tokens": talk.read}
        meta["system_prompt"] = {"role": "system", "content": FILLER * 127}
        (folder / "meta.json").write_text(json.dumps(meta, indent=2))


def _vibe_2_lines(talk: Conversation) -> Iterator[dict[str, Any]]:
    for number, prompt in enumerate(talk.prompts):
        named = {"injected": False, "message_id": f"{talk.id[:-4]}{number:04}"}
        yield {"role": "user", "content": prompt.text, **named}
        for each in prompt.responses:
            answer: dict[str, Any] = {"role": "assistant", "content": each.text, "injected": False}
            if each.thinking:
                answer["reasoning_content"] = each.thinking
            if each.call:
                display = {"summary": "bash: ls -1", "suffix": "", "verb": "Running", "statusText": "Running command"}
                function = {"name": "bash", "arguments": encoded(each.call["input"])}
                call = {"id": each.call["id"], "index": 0, "function": function, "type": "function"}
                answer["tool_calls"] = [{**call, "presentation": {"kind": "shell", "display": display}}]
            yield {**answer, "message_id": f"message-{each.id}"}
            if each.call:
                result = {"command": "ls -1", "exit_code": 0, "stdout": each.result, "stderr": "", "returncode": 0}
                text = "\n".join(f"{name}: {value}" for name, value in result.items())
                output = {"output": result, "duration": 0.017, "cancelled": False}
                about = {"injected": False, "name": "bash", "tool_call_id": each.call["id"], "tool_result": output}
                yield {"role": "tool", "content": text, **about}


def write_aider(home: Path, talks: list[Conversation]) -> None:
    """Write histories into a folder that the user names. aider keeps no results of tools, and no tokens."""
    for talk in talks:
        folder = home / NAMED_FOLDER / talk.id
        folder.mkdir(parents=True)
        (folder / ".aider.chat.history.md").write_text("\n".join(_aider_lines(talk)) + "\n", "utf-8")


def _aider_lines(talk: Conversation) -> Iterator[str]:
    yield f"\n# aider chat started at {talk.prompts[0].at.astimezone():%Y-%m-%d %H:%M:%S}\n"
    notices = ("aider --yes-always", "Aider v0.86.2", f"Model: openai/{MODEL} with diff edit format")
    yield from (f"> {notice}  " for notice in (*notices, "Git repo: .git with 2 files"))
    for prompt in talk.prompts:
        yield f"\n#### {prompt.text}  "
        for each in prompt.responses:
            yield f"\n{_in_lines(each.text)}\n"
            if each.call:
                code = _in_lines(each.call["input"]["content"])
                yield f"f.py\n```\n<<<<<<< SEARCH\n=======\n{code}\n>>>>>>> REPLACE\n```\n"
            yield f"> Tokens: {(each.given + each.read) / 1000:.1f}k sent, {each.output} received.  "
            yield "> Applied edit to f.py  "


def _in_lines(text: str) -> str:
    """Return a text in lines as long as those of code: an answer of aider's is mostly code, and its reader reads
    lines."""
    return "\n".join(textwrap.wrap(text, 50))
