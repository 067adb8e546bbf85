"""How exchanges end in sessions whose files do not say so."""

import pytest

from agent_logger.agents.conversation import Conversation, OpenTurn
from agent_logger.model.session import Block

TEXT = Block(kind="text", text="Two files.")
CALL = Block(kind="tool_use", id="call_1", name="shell", input={"command": "ls"})
RESULT = Block(kind="tool_result", id="call_1", text="a b")


@pytest.mark.parametrize(
    ("blocks", "complete", "ends"),
    [
        ([TEXT], True, ["result", "result"]),
        ([TEXT], False, ["input", None]),
        ([TEXT, CALL], True, ["input", None]),
        ([TEXT, CALL, RESULT], True, ["input", None]),  # the model was to go on
    ],
)
def test_an_exchange_ends_with_an_answer_that_calls_no_tool(
    blocks: list[Block], complete: bool, ends: list[str | None]
) -> None:
    conversation = Conversation()
    for prompt in ("First", "Second"):
        conversation.ask(prompt, None)
        turn = OpenTurn(complete=complete)
        conversation.add(turn)
        for block in blocks:
            conversation.put(turn, block, None)
    assert [exchange.end_reason for exchange in conversation.as_exchanges()] == ends
    assert [exchange.complete for exchange in conversation.as_exchanges()] == [end == "result" for end in ends]
