"""The conversation of a session of version 3.

What is shown of it is complete, but tells neither the ids of tool calls nor where a response without a text begins. The
messages that the model gets tell both, and end at the last compaction. Before it, a tool call that began when all calls
before it had ended is taken for one of another response.
"""

from collections.abc import Iterator, Sequence
from datetime import datetime

from msgspec.structs import replace

from agent_logger.agents.mistral_vibe.parts import VibePart, VibeTurn
from agent_logger.agents.mistral_vibe.stored import (
    COMPACTION,
    COMPLETED,
    VibeEntry,
    VibeMessage,
    VibeResponse,
    VibeStore,
    result_in,
    result_of,
    spoken_in,
    use_in,
)
from agent_logger.messages.human_input import typed
from agent_logger.model.session import SIDE, Block, Compaction
from agent_logger.providers.blocks import base
from agent_logger.providers.json_values import Json, fields_of, text_of
from agent_logger.providers.token_counts import usage_of

FAILED = "failed"
ENDS = {COMPLETED: "result", FAILED: "failed", "interrupted": "cut"}  # of the latest prompt
PROGRAM = "run_typescript"  # the tool that calls others, which are entries like its own


class StoredHistory:
    """Builds the conversation of one part from what is stored of it."""

    def __init__(self, part: VibePart, stored: VibeStore) -> None:
        self._part, self._stored = part, stored
        self._conversation = part.conversation
        self._model_since: datetime | None = None  # the last change of the model, if there was one
        self._by_call = {use.id: response for response in stored.responses.values() for use in response.tool_uses()}
        self._counted: set[str] = set()  # responses
        entries = stored.entries
        for entry in entries:
            if entry.kind == "model_change":
                self._model_since = entry.started
        prompts = list(_by_prompt(entries))
        for number, prompt in enumerate(prompts):
            self._take_prompt(prompt, self._messages_after(number, prompts))
        self._settle_latest()
        self._take_summaries()

    def _messages_after(self, number: int, prompts: list[list[VibeEntry]]) -> list[VibeMessage]:
        """Return what the model got after a prompt; nothing if a later compaction replaced it. The prompts that the
        model still gets are the last ones."""
        from_end = len(prompts) - number
        if from_end > len(self._stored.prompts):
            return []
        text, messages = self._stored.prompts[-from_end]
        return messages if text == base.joined_text(prompts[number][0].content) else []

    # ------------------------------------------------------------ prompts

    def _take_prompt(self, entries: list[VibeEntry], messages: list[VibeMessage]) -> None:
        if entries[0].is_input:
            text = typed(text_of(part.get("text")) or "" for part in base.parts_of(entries[0].content))
            self._conversation.ask(text or "[image]", entries[0].started)
        for entry in entries:
            if entry.is_compaction:
                trigger = text_of(fields_of(entry.details).get("trigger"))
                compaction = Compaction(
                    at=entry.ended, thread=self._part.thread, trigger="auto" if trigger == "automatic" else trigger
                )
                self._part.compactions.append(compaction)
        compacted = max((at for at, entry in enumerate(entries, 1) if entry.is_compaction), default=0)
        before, after = entries[:compacted], entries[compacted:]
        if not any(message.role == "assistant" for message in messages):
            before, after = entries, []
        self._take_shown(before)
        if after:
            self._take_messages(messages, [entry for entry in after if not entry.is_discarded])
            self._take_shown([entry for entry in after if entry.is_discarded])
        if entries[-1].is_discarded:
            self._conversation.end("cut", None)

    def _turn(self, response: VibeResponse | None, at: datetime | None) -> VibeTurn:
        """Begin a turn, with its tokens if they are known."""
        is_before = self._model_since and at and at < self._model_since
        turn = VibeTurn(thread=self._part.thread, model=None if is_before else self._part.model)
        if response and response.action not in self._counted:
            self._count(turn, response)
        turn.see(at)
        self._conversation.see(at)
        self._conversation.add(turn)
        return turn

    def _count(self, turn: VibeTurn, response: VibeResponse) -> None:
        self._counted.add(response.action)
        turn.count(usage_of(response.usage), response.action)
        turn.stop_reason = response.finish_reason
        turn.see(response.at)

    # ------------------------------------------------------------ what is shown

    def _take_shown(self, entries: list[VibeEntry]) -> None:
        turn: VibeTurn | None = None
        action: str | None = None
        calls: list[Block] = []  # of the response, where its record is still there
        busy_until: datetime | None = None  # with tools
        for entry in entries:
            if entry.action is not None:
                if turn is None or action != entry.action:
                    response = self._stored.responses.get(entry.action)
                    calls = response.tool_uses() if response else []
                    turn = self._turn(response, entry.started)
                    turn.complete = not entry.is_discarded
                action, busy_until = entry.action, None
                for block in _spoken(entry):
                    self._conversation.put(turn, block, entry.started)
            elif entry.type == "effect":
                if turn is None or (busy_until and entry.started and entry.started >= busy_until):
                    turn, action, calls = self._turn(None, entry.started), None, []
                busy_until = max(filter(None, (busy_until, entry.ended)), default=None)
                call = next((call for call in calls if call.name == entry.tool), None)
                if call:
                    calls.remove(call)
                name = call.id if call else entry.id
                self._conversation.put(turn, replace(use_in(entry), id=name), entry.started)
                self._conversation.result(replace(result_in(entry), id=name), entry.ended)

    # ------------------------------------------------------------ what the model gets

    def _take_messages(self, messages: list[VibeMessage], entries: list[VibeEntry]) -> None:
        times = _Times(entries)
        for message in messages:
            if message.role == "assistant":
                blocks = list(spoken_in(message.content))
                entry = times.of_text("\n".join(block.text for block in blocks if block.kind == "text"))
                response = self._stored.responses.get(entry.action or "") if entry else None
                uses = [block for block in blocks if block.kind == "tool_use"]
                response = response or next((self._by_call[use.id] for use in uses if use.id in self._by_call), None)
                starts = [times.of_call(use) for use in uses]
                began = entry.started if entry else next((start for start in starts if start), None)
                turn = self._turn(response, began or (response.at if response else None))
                for block in blocks:
                    self._conversation.put(turn, block, starts.pop(0) if block.kind == "tool_use" else began)
            elif message.role == "tool":
                self._conversation.result(result_of(message), times.end_of(message.call))

    # ------------------------------------------------------------ the rest

    def _settle_latest(self) -> None:
        """Note how the latest prompt ended."""
        latest = self._stored.latest
        if latest is None or not self._conversation.exchanges:
            return
        reason = ENDS.get(latest.status or "")
        if reason == FAILED:
            turn = self._turn(None, self._conversation.ended)
            turn.complete, turn.error = False, text_of(fields_of(latest.error).get("message"))
        if reason:
            self._conversation.end(reason, None)

    def _take_summaries(self) -> None:
        for response in self._stored.responses.values():
            if response.purpose == COMPACTION:
                turn = VibeTurn(thread=SIDE, model=self._part.model)
                self._count(turn, response)
                turn.blocks += [Block(kind=block.kind, text=block.text, at=response.at) for block in _texts(response)]
                self._part.aside.append(turn)


def _by_prompt(entries: Sequence[VibeEntry]) -> Iterator[list[VibeEntry]]:
    """Yield the entries of each prompt, and before them, those of none."""
    prompt: list[VibeEntry] = []
    for entry in entries:
        if entry.is_input and prompt:
            yield prompt
            prompt = []
        prompt.append(entry)
    if prompt:
        yield prompt


class _Times:
    """When responses were made and tools ran, from the entries after a prompt, in their order."""

    def __init__(self, entries: list[VibeEntry]) -> None:
        self._texts = [entry for entry in entries if entry.type == "message"]
        self._tools = [entry for entry in entries if entry.type == "effect"]
        self._ends: dict[str, datetime | None] = {}

    def of_text(self, text: str) -> VibeEntry | None:
        """Take the entry of a response with this text."""
        if not text:
            return None
        for at, entry in enumerate(self._texts):
            if not entry.is_input and base.joined_text(entry.content) == text:
                del self._texts[: at + 1]
                return entry
        return None

    def of_call(self, block: Block) -> datetime | None:
        """Take the entry of a tool call, and return when it began. The tools that a program calls have entries, and not
        the program."""
        entry = self._entry_of(block) if block.name != PROGRAM else None
        if entry is None:
            return None
        self._tools.remove(entry)
        self._ends[block.id or ""] = entry.ended
        return entry.started

    def end_of(self, call: str | None) -> datetime | None:
        return self._ends.get(call or "")

    def _entry_of(self, block: Block) -> VibeEntry | None:
        first: VibeEntry | None = None
        for entry in self._tools:
            if entry.tool == block.name:
                if _given(entry) == block.input:
                    return entry
                first = first or entry
        return first


def _given(entry: VibeEntry) -> Json:
    return fields_of(fields_of(entry.detail).get("input"))


def _spoken(entry: VibeEntry) -> Iterator[Block]:
    if entry.type == "reasoning":
        yield base.thinking(entry.text or "\n".join(_texts_in(entry.summary)))
    else:
        yield from spoken_in(entry.content)


def _texts_in(values: object) -> list[str]:
    return [value for value in values if type(value) is str] if type(values) is list else []


def _texts(response: VibeResponse) -> Iterator[Block]:
    return (block for block in spoken_in(response.parts) if block.kind in ("text", "thinking"))
