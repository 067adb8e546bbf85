"""A session laid out: chapters, numbered turns, agents under the call that began them."""

from collections.abc import Iterable
from datetime import timedelta

from msgspec.structs import replace

from agent_logger.model.session import (
    Block,
    BlockKind,
    Compaction,
    Difference,
    Exchange,
    Session,
    SubAgent,
    Usage,
)
from agent_logger.views.outline import (
    AgentWork,
    NumberedTurn,
    TextPart,
    Thought,
    ToolUse,
    chapters,
    side_turns,
)
from agent_logger.views.pieces import Json, Picture, Prose
from tests.views.sessions import START, all_tools, call, turn, with_agents

KEY = "sk-ant-api03-" + "Qz7" * 20


def tree(turns: Iterable[NumberedTurn]) -> list[object]:
    """Numbers of turns, and for each call with agents what is under it."""
    found: list[object] = []
    for it in turns:
        found.append(it.number)
        found += [
            {agent.name: tree(agent.turns)} for part in it.parts() if isinstance(part, ToolUse) for agent in part.agents
        ]
    return found


def names(agents: Iterable[AgentWork]) -> list[str]:
    return [agent.name for agent in agents]


def test_agents_are_nested_under_their_call_and_every_turn_appears_once() -> None:
    first, second = chapters(with_agents())
    assert tree(first.turns) == [0, {"Explore: a": [1, {"Explore: b": [2]}]}, 3]
    assert first.agents == ()
    assert second.turns == ()
    assert names(second.agents) == ["Explore: a", "Explore: c"]
    assert [tree(agent.turns) for agent in second.agents] == [[4], [5, {"Explore: d": [6]}]]


def test_turn_numbers_are_positions_in_the_session() -> None:
    session = all_tools()
    (chapter,) = chapters(session)
    assert [session.turns[it.number] for it in chapter.turns] == [it.turn for it in chapter.turns]
    aside = Session(id="x", exchanges=session.exchanges, side_turns=[turn(99, [])])
    assert [it.number for it in side_turns(aside)] == [len(session.turns)]


def test_a_compaction_precedes_the_next_turn_of_its_thread() -> None:
    turns = [turn(0, []), turn(1, []), turn(2, [], thread="agent:a"), turn(3, [])]
    between = START + timedelta(seconds=7)
    compactions = [
        Compaction(at=between, trigger="auto", tokens_before=155_000, tokens_after=12_400),
        Compaction(at=between, thread="agent:a"),
        Compaction(at=START + timedelta(hours=1)),
        Compaction(),
    ]
    session = Session(id="x", exchanges=[Exchange(number=1, turns=turns)], compactions=compactions)
    (chapter,) = chapters(session)
    told = {it.number: list(it.preceding_events()) for it in (*chapter.turns, *chapter.agents[0].turns)}
    assert told == {0: [], 1: [], 2: ["compacted"], 3: ["compacted (auto), 155.0k to 12.4k tokens"]}


def test_a_thread_named_by_its_call_id_is_nested_under_the_call() -> None:
    turns = [
        turn(0, call(1, "Agent", {"prompt": "x"}, "y")),
        turn(1, [], f"agent:toolu_01{1:022}"),
        turn(2, [], "side"),
    ]
    (chapter,) = chapters(Session(id="x", exchanges=[Exchange(number=1, turns=turns)]))
    assert tree(chapter.turns) == [0, {"sub-agent": [1]}]
    assert names(chapter.agents) == ["side calls"]


def test_deeply_nested_agents_are_all_included() -> None:
    count = 3_000
    turns = [turn(0, call(0, "Task", {"prompt": "x"}, "y"))]
    turns += [turn(i, call(i, "Task", {"prompt": "x"}, "y"), f"agent:{i}") for i in range(1, count)]
    agents = [SubAgent(thread=f"agent:{i}", tool_use_id=f"toolu_01{i - 1:022}") for i in range(1, count)]
    (chapter,) = chapters(Session(id="x", exchanges=[Exchange(number=1, turns=turns)], agents=agents))
    shown = str([tree(chapter.turns), *(tree(agent.turns) for agent in chapter.agents)])
    assert all(f"{number}" in shown for number in range(count))


def test_all_parts_are_in_order_with_results_next_to_their_call() -> None:
    picture = {"type": "image", "source": {"media_type": "image/png", "data": "aGk="}}
    blocks = [
        Block(kind="thinking", text="hm"),
        Block(kind="text", text="I do."),
        *call(1, "Bash", {"command": "ls"}, "a"),
        Block(kind="image", raw=picture),
        Block(kind="other", raw={"type": "new"}),
        Block(kind="other", text="said"),
        Block(kind="tool_result", id="of nobody", text="left over"),
    ]
    (chapter,) = chapters(Session(id="x", exchanges=[Exchange(number=1, turns=[turn(0, blocks)])]))
    thought, said, used, *rest, orphan = chapter.turns[0].parts()
    assert (thought, said) == (Thought("hm"), TextPart(Prose("I do.")))
    assert isinstance(used, ToolUse) and used.view.summary == "ls"
    assert rest == [
        TextPart(Picture("image/png", "aGk=")),
        TextPart(Json({"type": "new"})),
        TextPart(Prose("said")),
    ]
    assert isinstance(orphan, ToolUse) and (orphan.call.result, orphan.call.name) == ("left over", None)


def test_the_prompt_of_an_agent_is_shown_only_with_its_call() -> None:
    asked = Block(kind="other", text="Find it")
    blocks = [*call(1, "Agent", {"prompt": "Find it"}, "Here"), asked, Block(kind="other", text="Find")]
    (chapter,) = chapters(Session(id="x", exchanges=[Exchange(number=1, turns=[turn(0, blocks)])]))
    used, said = chapter.turns[0].parts()
    assert isinstance(used, ToolUse) and said == TextPart(Prose("Find"))


def test_no_key_is_in_any_part() -> None:
    kinds: tuple[BlockKind, ...] = ("text", "thinking", "other")
    blocks = [*(Block(kind=kind, text=KEY) for kind in kinds), Block(kind="image", raw={KEY: [KEY]})]
    exchange = Exchange(number=1, user_input=KEY, origin=KEY, end_reason=KEY, complete=False, turns=[turn(0, blocks)])
    agent = SubAgent(thread="agent:x", kind=KEY, description=KEY)
    late = Exchange(number=2, turns=[turn(1, [], "agent:x")])
    first, second = chapters(Session(id="x", exchanges=[exchange, late], agents=[agent]))
    told = [
        first.user_input,
        first.origin,
        *first.remarks,
        *map(repr, first.turns[0].parts()),
        *names(second.agents),
    ]
    assert len(told) == 8
    assert not any("Qz7Qz7" in str(it) for it in told)


def test_differences_between_witnesses_are_remarks() -> None:
    differences = [
        Difference(field="usage", witness="sdk", value=Usage(input_tokens=5)),
        Difference(field="text", witness="run", value=f"no, {KEY}"),
    ]
    seen = turn(0, [Block(kind="text", text="yes")], differences=differences, complete=False)
    (chapter,) = chapters(Session(id="x", exchanges=[Exchange(number=1, turns=[seen])]))
    cut, usage, text = chapter.turns[0].remarks()
    assert cut == "incomplete (cut off)"
    assert usage == "the sdk witness has a different usage: 5 in, 0 out, 0 cached tokens"
    assert text.startswith("the run witness has a different text: no, sk-ant-")
    assert "Qz7Qz7" not in text


def test_partial_usage_of_a_run_is_not_a_remark() -> None:
    begun = Usage(input_tokens=10, output_tokens=1, cache_read_tokens=1000)
    billed = Usage(input_tokens=10, output_tokens=290, cache_read_tokens=1000)
    told = [Difference(field="usage", witness="run", value=begun)]
    seen = replace(turn(0, [], differences=told), usage=billed)
    (chapter,) = chapters(Session(id="x", exchanges=[Exchange(number=1, turns=[seen])]))
    assert list(chapter.turns[0].remarks()) == []
