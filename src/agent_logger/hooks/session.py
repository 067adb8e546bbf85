"""What hooks reported about a session, as a session: prompts, tool calls, last words, its beginning and its end.

Hooks see no response of a model, except the last message before it stopped, so a session that only they report has no
tokens and no cost. Beside other witnesses, they add that they saw the session, which tool calls they saw, and when and
why it ended, which no transcript says.
"""

from collections.abc import Iterable, Iterator, Sequence
from datetime import datetime
from typing import Any, NamedTuple

from msgspec.structs import replace

from agent_logger.hooks.events import HookInput
from agent_logger.model.session import AGENT_PREFIX, MAIN, Block, ContextFile, Exchange, Session, Turn, Witness
from agent_logger.providers.json_values import text_of

LAST_WORDS = "last_assistant_message"
HOOK_WITNESS: frozenset[Witness] = frozenset({"hook"})


class HookEvent(NamedTuple):
    at: datetime | None
    input: HookInput
    context_files: Sequence[ContextFile] = ()  # that applied when the session began

    @property
    def name(self) -> str:
        return self.input.hook_event_name or ""

    def text(self, field: str) -> str | None:
        """The text of a field that only some events have."""
        return text_of(self.input.rest.get(field))


def session_of(session: str, agent: str | None, events: Sequence[HookEvent]) -> Session:
    """A session from hooks alone. The events are in the order they came."""
    times = [event.at for event in events if event.at]
    exchanges = [replace(exchange, number=number) for number, exchange in enumerate(_exchanges(events), 1)]
    prompt = next((exchange.user_input for exchange in exchanges if exchange.user_input), None)
    return Session(
        id=session,
        agent=agent,
        title=prompt.strip().split("\n")[0] if prompt else None,
        project=next((event.input.cwd for event in events if event.input.cwd), None),
        started=min(times, default=None),
        ended=max(times, default=None),
        exchanges=exchanges,
        context_files=_context_files(events),
        hooked=True,
        end_reason=_end_reason(events),
    )


def with_hooks(session: Session, events: Sequence[HookEvent]) -> Session:
    """A session that others saw, with what hooks add to it."""
    tools = {event.text("tool_use_id") for event in events} - {None}
    began = [event.at for event in events if event.name == "SessionStart" and event.at]
    ended = [event.at for event in events if event.name == "SessionEnd" and event.at]
    return replace(
        session,
        started=min([*began, *filter(None, [session.started])], default=None),
        ended=max([*ended, *filter(None, [session.ended])], default=None),
        exchanges=[
            replace(exchange, turns=[_with_hooks(turn, tools) for turn in exchange.turns])
            for exchange in session.exchanges
        ],
        side_turns=[_with_hooks(turn, tools) for turn in session.side_turns],
        context_files=session.context_files or _context_files(events),
        hooked=True,
        end_reason=_end_reason(events),
    )


def _with_hooks(turn: Turn, tools: set[str | None]) -> Turn:
    if any(block.kind == "tool_use" and block.id in tools for block in turn.blocks):
        return replace(turn, witnesses=turn.witnesses | HOOK_WITNESS)
    return turn


def _context_files(events: Iterable[HookEvent]) -> Sequence[ContextFile]:
    return next((event.context_files for event in events if event.context_files), ())


def _end_reason(events: Iterable[HookEvent]) -> str | None:
    """The reason of the last end; `None` if the session was resumed since."""
    reason = None
    for event in events:
        if event.name == "SessionStart":
            reason = None
        elif event.name == "SessionEnd":
            reason = event.input.reason
    return reason


# ---------------------------------------------------------------- without another witness


def _exchanges(events: Iterable[HookEvent]) -> Iterator[Exchange]:
    """The exchanges, each from one prompt to the next. A `Stop` event says that the agent has yielded."""
    prompt: HookEvent | None = None
    followed: list[HookEvent] = []
    for event in events:
        if event.name == "UserPromptSubmit":
            yield from _exchange(prompt, followed)
            prompt, followed = event, []
        elif event.name != "SessionStart":
            followed.append(event)
    yield from _exchange(prompt, followed)


def _exchange(prompt: HookEvent | None, followed: Sequence[HookEvent]) -> Iterator[Exchange]:
    turns = list(_turns(followed))
    if prompt is None and not turns:
        return
    times = [event.at for event in (*filter(None, [prompt]), *followed) if event.at]
    is_over = any(event.name in ("Stop", "SessionEnd") for event in followed)
    yield Exchange(
        number=0,
        started=min(times, default=None),
        ended=max(times, default=None) if is_over else None,
        user_input=prompt.text("prompt") if prompt else None,
        turns=turns,
        complete=is_over,
        end_reason="result" if is_over else None,
    )


def _turns(events: Sequence[HookEvent]) -> Iterator[Turn]:
    """A turn for each tool call, since hooks do not report which calls the model made at once; and one for the last
    message."""
    calls: dict[str, list[HookEvent]] = {}
    for number, event in enumerate(events):
        if event.name in ("PreToolUse", "PostToolUse", "PostToolUseFailure"):
            calls.setdefault(event.text("tool_use_id") or f"#{number}", []).append(event)
        elif event.name in ("Stop", "SubagentStop") and event.text(LAST_WORDS):
            calls[f"#{number}"] = [event]
    for name, hook_events in calls.items():
        yield Turn(
            message_id=None,
            thread=f"{AGENT_PREFIX}{agent}" if (agent := hook_events[0].text("agent_id")) else MAIN,
            blocks=list(_blocks(name, hook_events)),
            started=hook_events[0].at,
            ended=hook_events[-1].at,
            witnesses=HOOK_WITNESS,
        )


def _blocks(name: str, events: Sequence[HookEvent]) -> Iterator[Block]:
    first, last = events[0], events[-1]
    if text := first.text(LAST_WORDS):
        yield Block(kind="text", text=text, at=first.at)
        return
    yield Block(
        kind="tool_use",
        id=name,
        name=first.text("tool_name"),
        input=first.input.rest.get("tool_input"),
        at=first.at,
    )
    if last.name != "PreToolUse":
        response = last.input.rest.get("tool_response", last.input.rest.get("error"))
        yield Block(
            kind="tool_result",
            id=name,
            text=_text(response),
            is_error=last.name == "PostToolUseFailure",
            at=last.at,
        )


def _text(response: Any) -> str:
    """The text of a tool's response. Responses have many shapes; most have their readable text under one of these
    keys."""
    if isinstance(response, dict):
        response = next((response[key] for key in ("stdout", "content", "output") if key in response), response)
    return response if isinstance(response, str) else str(response or "")
