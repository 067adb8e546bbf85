"""Sessions to be shown: one of every tool there is, and one in which every text means harm."""

from collections.abc import Sequence
from datetime import UTC, datetime, timedelta
from typing import Any

from msgspec.structs import replace

from agent_logger.model.session import MAIN, Block, Exchange, Session, SubAgent, Turn, Usage
from agent_logger.views.tools.tools import RENDERERS
from tests.views.tools.test_tools import CALLS

START = datetime(2026, 11, 15, 8, 45, 32, tzinfo=UTC)


def turn(number: int, blocks: Sequence[Block], thread: str = MAIN, **more: Any) -> Turn:
    return Turn(
        message_id=f"msg_01{number:022}",
        thread=thread,
        model="claude-sonnet-4-5-20250929",
        stop_reason="end_turn",
        blocks=blocks,
        usage=Usage(input_tokens=10, output_tokens=200 + number, cache_read_tokens=12_000),
        started=START + timedelta(seconds=5 * number),
        ended=START + timedelta(seconds=5 * number + 3),
        witnesses=frozenset({"wire"}),
        **more,
    )


def call(number: int, name: str | None, given: Any, result: str | None, *, is_error: bool = False) -> list[Block]:
    at = START + timedelta(seconds=number)
    use = Block(kind="tool_use", id=f"toolu_01{number:022}", name=name, input=given, at=at)
    answer = Block(
        kind="tool_result",
        id=use.id,
        text=result or "",
        is_error=is_error,
        at=at + timedelta(milliseconds=340),
    )
    return [use] if result is None else [use, answer]


def all_tools() -> Session:
    turns = [turn(i, call(i, name, given, result)) for i, (name, given, result, *_) in enumerate(CALLS)]
    return Session(
        id="1f320356-a178-418e-a692-69ce6e1e657c",
        agent="claude-code",
        title="Every tool once",
        project="/home/user/project",
        started=START,
        ended=START + timedelta(minutes=9),
        exchanges=[Exchange(number=1, user_input="Use *every* tool.", started=START, turns=turns)],
    )


def with_agents() -> Session:
    """An agent that starts another, one whose call is in another exchange, and two that began each other."""
    task = {"description": "Look", "prompt": "Look around.", "subagent_type": "Explore"}
    first = [
        turn(0, [Block(kind="text", text="I look."), *call(1, "Task", task, "done")]),
        turn(1, call(2, "Task", task, "done too"), "agent:a"),
        turn(2, [Block(kind="text", text="deep")], "agent:b"),
        turn(3, [Block(kind="text", text="all seen")]),
    ]
    second = [
        turn(4, [Block(kind="text", text="late")], "agent:a"),
        turn(5, call(8, "Task", task, "x"), "agent:c"),
        turn(6, call(9, "Task", task, "y"), "agent:d"),
    ]
    ids = {"a": 1, "b": 2, "c": 9, "d": 8}
    agents = [
        SubAgent(thread=f"agent:{name}", tool_use_id=f"toolu_01{number:022}", kind="Explore", description=name)
        for name, number in ids.items()
    ]
    return Session(
        id="agents",
        exchanges=[
            Exchange(number=1, user_input="Look", turns=first),
            Exchange(number=2, turns=second, complete=False),
        ],
        agents=agents,
    )


def hostile(text: str) -> Session:
    """`text` in every field that comes from outside."""
    tools = [*{render: name for name, render in RENDERERS.items()}.values(), text]  # each way to draw, once
    odd = {"type": text, text: [text], "source": {"media_type": text, "data": text}}
    blocks = [
        Block(kind="text", text=text),
        Block(kind="thinking", text=text),
        Block(kind="image", raw=odd),
        Block(kind="other", raw=odd),
        Block(kind="tool_result", id="nobody", text=text),
    ]
    turns = [turn(0, blocks)]
    for number, name in enumerate(tools, 1):
        given = dict.fromkeys(FIELDS, text) | {"edits": [{"old_string": text, "new_string": "x"}], text: text}
        given |= {
            "todos": [{"content": text, "status": text}],
            "questions": [{"question": text}],
            "paths": [text],
        }
        turns.append(turn(number, call(number, name, given, text, is_error=number % 2 == 0)))
    odd_turn = Turn(message_id=text, thread=f"agent:{text}", model=text, stop_reason=text, blocks=blocks[:1])
    return Session(
        id=text,
        agent=text,
        title=text,
        project=text,
        parent=text,
        exchanges=[
            Exchange(number=1, user_input=text, origin=text, turns=turns, end_reason=text, complete=False),
            Exchange(number=2, turns=[odd_turn]),
        ],
        side_turns=[turn(99, blocks, "side")],
        agents=[SubAgent(thread=f"agent:{text}", kind=text, description=text)],
    )


FIELDS = [
    "command",
    "cmd",
    "file_path",
    "content",
    "pattern",
    "query",
    "url",
    "prompt",
    "plan",
    "description",
    "old_str",
]
FIELDS += ["old_string", "new_string", "new_source", "input", "subagent_type", "bash_id", "chars", "cell_id"]


def all_hostile(texts: Sequence[str]) -> Session:
    """All of them in every field of one session."""
    exchanges = [it for text in texts for it in hostile(text).exchanges]
    return replace(hostile(" ".join(texts)), exchanges=exchanges)
