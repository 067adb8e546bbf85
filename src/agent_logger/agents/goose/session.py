"""Goose's sessions, from the rows of its database: `sessions`, `messages`, `usage_ledger`.

- A response with several tool calls is several messages. The first has the vendor's id and the usage; each of the
  others has an id that Goose made, and follows the result of the call before it.
- Sub-agents are sessions that name their parent. A fork has copies of its parent's messages with their ids, and names
  no parent: the ledger recognises them by the vendor's ids.
- Messages that the user does not see are Goose's own: the time and folder after each prompt, and, after a compaction,
  the summary, a notice, and the prompt once more. The summary has the vendor's id of the call that wrote it.
- `usage_ledger` has every call but those for titles, also calls whose messages are gone. A call that was cut has a
  message with the vendor's id, and no usage anywhere.
"""

import re
from collections import deque
from collections.abc import Iterator
from dataclasses import dataclass

from agent_logger.agents.conversation import Conversation, OpenTurn
from agent_logger.agents.goose.rows import BilledCall, SessionRows, StoredMessage, blocks_of, results_of, typed_in
from agent_logger.agents.source_files import SourceFiles
from agent_logger.model.responses import ModelResponse
from agent_logger.model.session import AGENT_PREFIX, MAIN, SIDE, Block, Compaction, Session, SubAgent, Usage

AGENT_NAME = "goose"
# The vendor of the response ids, by the provider that was used. All others are like OpenAI's, or have no ids.
FAMILIES = {
    "anthropic": "anthropic",
    "aws_bedrock": "bedrock",
    "databricks": "openai",
    "google": "gemini",
    "gcp_vertex_ai": "gemini",
}
OPENAI = "openai"
_SUB_AGENT_ID = re.compile(r"\ASubagent ID: \S+\n\n")


@dataclass(slots=True)
class _GooseTurn(OpenTurn):
    family: str = OPENAI
    cost: float | None = None  # dollars, as Goose calculates them


def session_of(source: SourceFiles) -> Session:
    """Read a session. Nothing is raised, whatever is in the rows."""
    main = _SessionReading(SessionRows(source.main), MAIN)
    conversation = main.conversation
    side = list(main.side)
    others = list(_others(source))
    for inner in others:
        conversation.place(list(inner.conversation.turns()))
        conversation.compactions += inner.conversation.compactions
        side += inner.side
    conversation.see(main.rows.session.at)
    session = main.rows.session
    return Session(
        id=main.rows.id,
        agent=AGENT_NAME,
        title=session.name or session.description or conversation.title(),
        project=session.working_dir,
        started=conversation.started,
        ended=conversation.ended,
        exchanges=conversation.as_exchanges(),
        side_turns=[turn.as_turn() for turn in side],
        agents=_sub_agents(main, others),
        compactions=conversation.compactions,
    )


def responses_of(source: SourceFiles) -> Iterator[ModelResponse]:
    main = _SessionReading(SessionRows(source.main, spoken=False), MAIN)
    for reading in (main, *_others(source, spoken=False)):
        for turn in reading.turns():
            if turn.is_counted:
                yield turn.as_response(
                    family=turn.family,
                    session=main.rows.id,
                    project=main.rows.session.working_dir,
                    agent=AGENT_NAME,
                    cost_usd=turn.cost,
                )


def _others(source: SourceFiles, *, spoken: bool = True) -> "Iterator[_SessionReading]":
    for file in source.others:
        rows = SessionRows(file, spoken=spoken)
        yield _SessionReading(rows, f"{AGENT_PREFIX}{rows.id}")


def _sub_agents(main: "_SessionReading", others: "list[_SessionReading]") -> list[SubAgent]:
    """Return what started each sub-agent. Nothing names the call: its instructions are the sub-agent's prompt."""
    calls: dict[str, deque[tuple[str, str | None]]] = {}  # threads and ids of calls, by the instructions
    for reading in (main, *others):
        for block in reading.delegations():
            calls.setdefault(str(block.input["instructions"]), deque()).append((reading.thread, block.id))
    threads = {reading.rows.id: reading.thread for reading in others}
    agents = []
    for other in others:
        session, starters = other.rows.session, calls.get(other.prompt)
        started_in, call = starters.popleft() if starters else (threads.get(session.parent or "", MAIN), None)
        agents.append(
            SubAgent(thread=other.thread, parent_thread=started_in, tool_use_id=call, description=session.name)
        )
    return agents


class _SessionReading:
    """The messages of one session, read one after the other, and its calls."""

    def __init__(self, rows: SessionRows, thread: str) -> None:
        self.rows, self.thread = rows, thread
        self.conversation = Conversation()
        self.side: list[_GooseTurn] = []
        self._latest: _GooseTurn | None = None  # since the last prompt
        self._counts_usage = any(message.usage for message in rows.messages)
        self._names_models = any(message.metadata.inference for message in rows.messages)
        self._marks_responses = self._counts_usage or any(message.response_id for message in rows.messages)
        self._calls = list(rows.calls)  # those that no message was found for yet
        for message in rows.messages:
            self._take(message)
        self._finish()

    def turns(self) -> Iterator[_GooseTurn]:
        turns = (*self.conversation.turns(), *self.side)
        return (turn for turn in turns if isinstance(turn, _GooseTurn))

    @property
    def prompt(self) -> str:
        """The instructions of a sub-agent, without its id in front."""
        prompts = (exchange.user_input for exchange in self.conversation.exchanges)
        return _SUB_AGENT_ID.sub("", next(filter(None, prompts), ""))

    def delegations(self) -> Iterator[Block]:
        """Yield the tool calls that started sub-agents."""
        blocks = (block for turn in self.conversation.turns() for block in turn.blocks)
        return (block for block in blocks if isinstance(block.input, dict) and block.input.get("instructions"))

    # ------------------------------------------------------------ messages

    def _take(self, message: StoredMessage) -> None:
        match message.row.role:
            case "assistant":
                self._answer(message)
            case "user":
                results = list(results_of(message.parts))
                for block in results:
                    self.conversation.result(block, message.row.at)
                if not results and not message.metadata.is_user_visible:
                    self._hidden(message)
                elif not results and (text := typed_in(message.parts)):
                    self._end()
                    self.conversation.ask(text, message.row.at)

    def _answer(self, message: StoredMessage) -> None:
        turn = self._latest
        if not self._is_of_model(message):
            return
        is_piece = self._marks_responses and not (message.response_id or message.usage)
        if turn is None or not is_piece:
            turn = self._begin(message)
        for block in blocks_of(message.parts):
            self.conversation.put(turn, block, message.row.at)

    def _is_of_model(self, message: StoredMessage) -> bool:
        """Whether a model said this. Since Goose names the model of each response, its own notices have none."""
        inference = message.metadata.inference
        return bool(inference or message.usage or message.response_id) or not self._names_models

    def _begin(self, message: StoredMessage) -> _GooseTurn:
        inference, row = message.metadata.inference, message.row
        provider = (inference.provider if inference else None) or self.rows.session.provider
        turn = self._new_turn(provider, message.response_id)
        turn.model = inference.model if inference else None
        call = self._call_of(message.usage)
        if call or message.metadata.usage is not None:
            turn.count(message.usage or (call.usage if call else None), message.response_id)
        if call:
            turn.model, turn.cost = call.row.model or turn.model, call.cost
        turn.see(row.at)
        self.conversation.see(row.at)
        self.conversation.add(turn)
        self._latest = turn
        return turn

    def _new_turn(self, provider: str | None, response_id: str | None) -> _GooseTurn:
        return _GooseTurn(
            thread=self.thread,
            message_id=response_id,
            family=FAMILIES.get(provider or "", OPENAI),
        )

    def _end(self) -> None:
        """End the exchange. A response without usage and without a result of a tool was cut."""
        turn, self._latest = self._latest, None
        if turn is None or turn.is_counted or not (self._counts_usage or self._names_models):
            return
        if not any(block.kind == "tool_result" for block in turn.blocks):
            turn.complete = False
            self.conversation.end("cut", turn.ended)

    # ------------------------------------------------------------ compactions, and calls without messages

    def _hidden(self, message: StoredMessage) -> None:
        """Take the summary of a compaction. Other hidden messages have an id that Goose made."""
        if message.response_id is None:
            return
        call = next((call for call in self._calls if call.row.is_compaction), None)
        turn = self._add_side_turn(message.response_id, call)
        turn.see(message.row.at)
        for block in blocks_of(message.parts):
            turn.blocks.append(block)
        before = call.usage.context_tokens if call and call.usage else None
        self.conversation.compactions.append(Compaction(at=message.row.at, thread=self.thread, tokens_before=before))

    def _add_side_turn(self, response_id: str | None, call: BilledCall | None) -> _GooseTurn:
        turn = self._new_turn(self.rows.session.provider, response_id)
        turn.thread = SIDE
        if call:
            self._calls.remove(call)
            turn.model, turn.cost = call.row.model, call.cost
            turn.count(call.usage, response_id)
            turn.see(call.row.at)
        self.side.append(turn)
        return turn

    def _call_of(self, usage: Usage | None) -> BilledCall | None:
        """Return the call in the ledger with this usage, which no other message has; the next one, where messages have
        no usage. None in a fork, whose ledger has its own calls only."""
        calls = (call for call in self._calls if not call.row.is_compaction)
        call = next((call for call in calls if call.usage == usage or not self._counts_usage), None)
        if call:
            self._calls.remove(call)
        return call

    def _finish(self) -> None:
        """Add the calls that were billed, although no message of them is left."""
        self._end()
        for call in list(self._calls):
            turn = self._add_side_turn(None, call)
            if call.row.is_compaction:
                self.conversation.compactions.append(Compaction(at=turn.started, thread=self.thread))
