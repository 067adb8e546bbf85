"""What hooks were told of a session, as a session: prompts, tool calls, last words, its beginning and its end.

Hooks see no response of a model, but for the words it stopped with, so what they tell of alone has no tokens and no
cost. Beside other witnesses they say that they saw it, which tool calls they saw, and when and why it ended, which no
transcript tells.
"""

from collections.abc import Iterable, Iterator, Sequence
from datetime import datetime
from typing import Any, NamedTuple

from msgspec.structs import replace

from agent_logger.hooks.events import HookInput
from agent_logger.model.session import AGENT, MAIN, Block, ContextFile, Exchange, Session, Turn, Witness
from agent_logger.providers.answer import text_of

LAST_WORDS = "last_assistant_message"
SEEN: frozenset[Witness] = frozenset({"hook"})


class HookEvent(NamedTuple):
    at: datetime | None
    input: HookInput
    context_files: Sequence[ContextFile] = ()  # that applied when the session began

    @property
    def name(self) -> str:
        return self.input.hook_event_name or ""

    def text(self, field: str) -> str | None:
        """Of what only some events tell."""
        return text_of(self.input.rest.get(field))


def session_of(session: str, agent: str | None, events: Sequence[HookEvent]) -> Session:
    """All that hooks alone tell. The events in the order they came."""
    times = [it.at for it in events if it.at]
    exchanges = [replace(it, number=number) for number, it in enumerate(_exchanges(events), 1)]
    prompt = next((it.user_input for it in exchanges if it.user_input), None)
    return Session(
        id=session,
        agent=agent,
        title=prompt.strip().split("\n")[0] if prompt else None,
        project=next((it.input.cwd for it in events if it.input.cwd), None),
        started=min(times, default=None),
        ended=max(times, default=None),
        exchanges=exchanges,
        context_files=_context_files(events),
        hooked=True,
        end_reason=_end_reason(events),
    )


def with_hooks(session: Session, events: Sequence[HookEvent]) -> Session:
    """A session that others saw, and what hooks say beside them."""
    tools = {it.text("tool_use_id") for it in events} - {None}
    began = [it.at for it in events if it.name == "SessionStart" and it.at]
    ended = [it.at for it in events if it.name == "SessionEnd" and it.at]
    return replace(
        session,
        started=min([*began, *filter(None, [session.started])], default=None),
        ended=max([*ended, *filter(None, [session.ended])], default=None),
        exchanges=[replace(it, turns=[_seen(turn, tools) for turn in it.turns]) for it in session.exchanges],
        side_turns=[_seen(turn, tools) for turn in session.side_turns],
        context_files=session.context_files or _context_files(events),
        hooked=True,
        end_reason=_end_reason(events),
    )


def _seen(turn: Turn, tools: set[str | None]) -> Turn:
    if any(block.kind == "tool_use" and block.id in tools for block in turn.blocks):
        return replace(turn, witnesses=turn.witnesses | SEEN)
    return turn


def _context_files(events: Iterable[HookEvent]) -> Sequence[ContextFile]:
    return next((it.context_files for it in events if it.context_files), ())


def _end_reason(events: Iterable[HookEvent]) -> str | None:
    """Of the last end; none if it was taken up again since."""
    reason = None
    for it in events:
        if it.name == "SessionStart":
            reason = None
        elif it.name == "SessionEnd":
            reason = it.input.reason
    return reason


# ---------------------------------------------------------------- without another witness


def _exchanges(events: Iterable[HookEvent]) -> Iterator[Exchange]:
    """From one prompt to the next. Whether the agent has yielded is told by `Stop`."""
    prompt: HookEvent | None = None
    followed: list[HookEvent] = []
    for it in events:
        if it.name == "UserPromptSubmit":
            yield from _exchange(prompt, followed)
            prompt, followed = it, []
        elif it.name != "SessionStart":
            followed.append(it)
    yield from _exchange(prompt, followed)


def _exchange(prompt: HookEvent | None, followed: Sequence[HookEvent]) -> Iterator[Exchange]:
    turns = list(_turns(followed))
    if prompt is None and not turns:
        return
    times = [it.at for it in (*filter(None, [prompt]), *followed) if it.at]
    is_over = any(it.name in ("Stop", "SessionEnd") for it in followed)
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
    """A tool call each, for which of them the model made at once, hooks are not told; and what it stopped with."""
    calls: dict[str, list[HookEvent]] = {}
    for number, it in enumerate(events):
        if it.name in ("PreToolUse", "PostToolUse", "PostToolUseFailure"):
            calls.setdefault(it.text("tool_use_id") or f"#{number}", []).append(it)
        elif it.name in ("Stop", "SubagentStop") and it.text(LAST_WORDS):
            calls[f"#{number}"] = [it]
    for name, told in calls.items():
        yield Turn(
            message_id=None,
            thread=f"{AGENT}{agent}" if (agent := told[0].text("agent_id")) else MAIN,
            blocks=list(_blocks(name, told)),
            started=told[0].at,
            ended=told[-1].at,
            witnesses=SEEN,
        )


def _blocks(name: str, told: Sequence[HookEvent]) -> Iterator[Block]:
    first, last = told[0], told[-1]
    if said := first.text(LAST_WORDS):
        yield Block(kind="text", text=said, at=first.at)
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
    """Tools answer in many shapes; most have what a person would read under one of these."""
    if isinstance(response, dict):
        response = next((response[it] for it in ("stdout", "content", "output") if it in response), response)
    return response if isinstance(response, str) else str(response or "")
