"""A session in the Agent Trajectory Interchange Format, version 1.7, as Harbor defines it.

A step is what a person said, or one response of a model with the results of its tools. Sub-agents are embedded
trajectories, to which the result of the tool call that started them refers. Steps that a fork copied from its parent
are marked. Tokens and costs are those of the ledger: a prompt's tokens include what was cached.
"""

import json
from collections.abc import Iterable, Iterator, Sequence
from datetime import datetime
from typing import Any

import msgspec

from agent_logger.exports.base import ExportContext, ExportedSession, ExportPiece
from agent_logger.exports.request_context import RequestContext, arguments_of, function_definitions, request_context
from agent_logger.home.layout import safe_name
from agent_logger.model.redaction.redactor import hidden
from agent_logger.model.session import MAIN, SIDE, Cost, Exchange, Session, SubAgent, Turn, Usage
from agent_logger.views.hide import hidden_value

VERSION = "ATIF-v1.7"
UNKNOWN = "unknown"
NO_STEPS = "(nothing was said)"  # a trajectory has at least one step

Json = dict[str, Any]
Placed = tuple[str, Json]


def pieces(session: ExportedSession, context: ExportContext) -> Iterator[ExportPiece]:
    """Yield one JSON document, step by step, on one line."""
    derived = context.mask.session(session.read())
    given = request_context(session, context.mask)
    for place, text in _Trajectories(derived, given, session.continued_in()).texts():
        yield ExportPiece(place, text.encode("utf-8", "replace"))
    yield ExportPiece("end", b"\n")


class _Trajectories:
    """The trajectories of one session."""

    def __init__(self, session: Session, given: RequestContext | None, continued_in: str | None) -> None:
        self._session, self._given, self._continued_in = session, given, continued_in
        self._agents = {agent.thread: agent for agent in session.agents}
        threads = [thread for thread in session.threads if thread not in (MAIN, SIDE)]
        self._threads_by_call: dict[str, list[str]] = {}
        for thread in threads:
            agent = self._agents.get(thread)
            call = (agent and agent.tool_use_id) or thread.removeprefix("agent:")
            self._threads_by_call.setdefault(call, []).append(thread)
        self._threads = threads
        self._ids: dict[str, str] = {}
        for thread in threads:
            name = hidden(f"{session.id}/{thread.partition(':')[2] or thread}").encode("utf-8", "replace").decode()
            # Two ids may differ only in what looks like a key, or in halves of characters.
            self._ids[thread] = f"{name}~{len(self._ids)}" if name in self._ids.values() else name

    def texts(self) -> Iterator[tuple[str, str]]:
        """Yield the document in pieces with their places."""
        session = self._session
        head = {
            "schema_version": VERSION,
            "session_id": hidden(session.id),
            "trajectory_id": hidden(session.id),
            "agent": self._agent(MAIN, self._given),
        }
        yield "beginning", _encoded(head)[:-1] + ', "steps": ['
        count = 0
        for place, step in self._main_steps():
            count += 1
            yield place, (", " if count > 1 else "") + _encoded({"step_id": count, **step})
        yield "end", "], " + _encoded(self._tail(count))[1:-1]
        opening = ', "subagent_trajectories": ['
        for thread in self._threads:
            yield f"agent {thread.partition(':')[2]}", opening + _encoded(self._sub_trajectory(thread))
            opening = ", "
        yield "end", "]}" if self._threads else "}"

    def _tail(self, steps: int) -> Json:
        session = self._session
        turns = [turn for turn in session.turns if turn.thread == MAIN and turn.counted_in is None]
        tail: Json = {"final_metrics": _final(turns, steps, session.cost, _totals(session))}
        if self._continued_in:
            tail["continued_trajectory_ref"] = f"{safe_name(self._continued_in)}.atif.json"
        extra = {"title": session.title, "project": session.project, "parent_session": session.parent}
        if present := {name: hidden(value) for name, value in extra.items() if value}:
            tail["extra"] = present
        return tail

    def _agent(self, thread: str, given: RequestContext | None) -> Json:
        models = [
            turn.model for turn in self._session.turns if turn.thread == thread and turn.model and not turn.is_synthetic
        ]
        agent: Json = {"name": hidden(self._session.agent or UNKNOWN), "version": UNKNOWN}
        if models:
            agent["model_name"] = hidden(max(dict.fromkeys(models), key=models.count))
        if given and given.tools:
            agent["tool_definitions"] = hidden_value(function_definitions(given.tools))
        return agent

    # ------------------------------------------------------------ steps

    def _main_steps(self) -> Iterator[Placed]:
        number, count = -1, 0
        if self._given and self._given.system:
            yield "system prompt", {"source": "system", "message": hidden(self._given.system)}
            count += 1
        for exchange in self._session.exchanges:
            if exchange.user_input:
                yield f"exchange {exchange.number}", _user_step(exchange)
                count += 1
            for turn in exchange.turns:
                number += 1
                if turn.thread == MAIN:
                    yield f"turn {number}", self._step(turn)
                    count += 1
        if not count:
            yield "beginning", {"source": "system", "message": NO_STEPS}

    def _step(self, turn: Turn) -> Json:
        blocks = turn.blocks
        step: Json = {
            **_timestamp(turn.started or turn.ended),
            "source": "agent",
            "message": _joined(block.text for block in blocks if block.kind == "text"),
        }
        if turn.model:
            step["model_name"] = hidden(turn.model)
        is_model = not turn.is_synthetic
        if is_model and (thinking := _joined(block.text for block in blocks if block.kind == "thinking")):
            step["reasoning_content"] = thinking
        uses = [block for block in blocks if block.kind == "tool_use"]
        names = [block.id or f"call_{number}" for number, block in enumerate(uses)]
        if uses:
            step["tool_calls"] = [
                {
                    "tool_call_id": hidden(name),
                    "function_name": hidden(block.name or UNKNOWN),
                    "arguments": arguments_of(hidden_value(block.input)),
                }
                for name, block in zip(names, uses, strict=True)
            ]
        results = [
            self._result(block.id, block.text, block.is_error, names) for block in blocks if block.kind == "tool_result"
        ]
        if results:
            step["observation"] = {"results": results}
        if is_model and turn.usage:
            step["metrics"] = _metrics(turn)
        step["llm_call_count"] = 1 if is_model else 0
        if turn.counted_in is not None:
            step["is_copied_context"] = True
        if extra := _extra(turn):
            step["extra"] = extra
        return step

    def _result(self, call: str | None, text: str, is_error: bool, names: Sequence[str]) -> Json:
        result: Json = {"content": hidden(text)}
        if call in names:
            result["source_call_id"] = hidden(call or "")
        if threads := self._threads_by_call.get(call or "", ()):
            result["subagent_trajectory_ref"] = [{"trajectory_id": self._ids[thread]} for thread in threads]
        if is_error:
            result["extra"] = {"is_error": True}
        return result

    # ------------------------------------------------------------ sub-agents

    def _sub_trajectory(self, thread: str) -> Json:
        """Return the trajectory of a sub-agent. The agents that it started are beside it in the root's array: there
        alone references are looked for."""
        agent = self._agents.get(thread)
        turns = [turn for turn in self._session.turns if turn.thread == thread]
        steps: list[Json] = []
        if prompt := self._prompt(agent):
            steps.append({"source": "user", "message": prompt})
        steps += [self._step(turn) for turn in turns]
        own = [turn for turn in turns if turn.counted_in is None]
        trajectory: Json = {
            "schema_version": VERSION,
            "session_id": hidden(self._session.id),
            "trajectory_id": self._ids[thread],
            "agent": self._agent(thread, None),
            "steps": [{"step_id": number, **step} for number, step in enumerate(steps, 1)],
            "final_metrics": _final(own, len(steps), Cost.total(turn.cost for turn in own if turn.cost), None),
        }
        if agent and (agent.kind or agent.description):
            facts = {"kind": agent.kind, "description": agent.description}
            trajectory["extra"] = {name: hidden(value) for name, value in facts.items() if value}
        return trajectory

    def _prompt(self, agent: SubAgent | None) -> str | None:
        """Return the prompt with which a tool call started the agent."""
        blocks = (block for turn in self._session.turns for block in turn.blocks if block.kind == "tool_use")
        use = next((block for block in blocks if agent and block.id and block.id == agent.tool_use_id), None)
        prompt = use.input.get("prompt") if use and isinstance(use.input, dict) else None
        return hidden(prompt) if isinstance(prompt, str) else None


def _user_step(exchange: Exchange) -> Json:
    main = [turn for turn in exchange.turns if turn.thread == MAIN]
    step: Json = {**_timestamp(exchange.started), "source": "user", "message": hidden(exchange.user_input or "")}
    if main and all(turn.counted_in is not None for turn in main):
        step["is_copied_context"] = True
    if exchange.origin:
        step["extra"] = {"origin": hidden(exchange.origin)}
    return step


def _timestamp(at: datetime | None) -> Json:
    return {"timestamp": msgspec.to_builtins(at)} if at else {}


def _joined(texts: Iterable[str]) -> str:
    return "\n\n".join(hidden(text) for text in texts if text)


def _metrics(turn: Turn) -> Json:
    usage = turn.usage or Usage()
    metrics: Json = {
        "prompt_tokens": usage.context_tokens,
        "completion_tokens": usage.output_tokens,
        "cached_tokens": usage.cache_read_tokens,
    }
    if turn.cost and turn.cost.usd is not None:
        metrics["cost_usd"] = turn.cost.usd
    if usage.cache_write_tokens:
        metrics["extra"] = {"cache_creation_input_tokens": usage.cache_write_tokens}
    return metrics


def _extra(turn: Turn) -> Json:
    facts = {
        "message_id": turn.message_id,
        "request_id": turn.request_id,
        "stop_reason": turn.stop_reason,
        "error": turn.error,
        "counted_in": turn.counted_in,
    }
    extra: Json = {name: hidden(value) for name, value in facts.items() if value}
    if not turn.complete:
        extra["incomplete"] = True
    return extra


def _final(turns: Sequence[Turn], steps: int, cost: Cost, extra: Json | None) -> Json:
    usage = _usage(turns)
    final: Json = {
        "total_prompt_tokens": usage.context_tokens,
        "total_completion_tokens": usage.output_tokens,
        "total_cached_tokens": usage.cache_read_tokens,
        "total_steps": max(steps, 1),
    }
    if cost.usd is not None:
        final["total_cost_usd"] = cost.usd
    if cost.unpriced:
        extra = {**(extra or {}), "unpriced_responses": cost.unpriced}
    if extra:
        final["extra"] = extra
    return final


def _usage(turns: Sequence[Turn]) -> Usage:
    unique = {turn.message_id or str(number): turn for number, turn in enumerate(turns)}
    return sum((turn.usage for turn in unique.values() if turn.usage), Usage())


def _totals(session: Session) -> Json | None:
    """Return the tokens of the whole session, if they are more than those of the steps."""
    if session.usage == _usage([turn for turn in session.turns if turn.thread == MAIN and turn.counted_in is None]):
        return None
    usage = session.usage
    return {
        "session_prompt_tokens": usage.context_tokens,
        "session_completion_tokens": usage.output_tokens,
        "session_cached_tokens": usage.cache_read_tokens,
    }


def _encoded(value: Json) -> str:
    return json.dumps(value, ensure_ascii=False, default=str)
