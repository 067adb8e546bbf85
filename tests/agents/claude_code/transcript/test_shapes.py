"""Shapes that the recorded sessions do not have: older layouts, branches, the specification's samples, odd orders."""

import json
from datetime import datetime
from typing import Any

import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from agent_logger.agents.claude_code.transcript.records import SessionRecord
from agent_logger.agents.claude_code.transcript.responses import responses_of
from agent_logger.agents.claude_code.transcript.session import session_of, transcript_of
from agent_logger.agents.claude_code.transcript.tree import Lineage, Relatives, behind_parents
from agent_logger.agents.source_files import SourceFiles
from agent_logger.model.session import Session, Usage
from tests.agents.claude_code.claude_files import (
    SESSION,
    assistant,
    damage_in,
    file_of,
    line,
    result,
    source_of,
    text,
    time,
    use,
    user,
)

ID = "msg_01abcdefghijklmn"  # in the vendor's form
OTHER = "msg_01bbbbbbbbbbbbbb"
AGENTS = f"{SESSION}/subagents"


def inputs(session: Session) -> list[str | None]:
    return [it.user_input for it in session.exchanges]


# ---------------------------------------------------------------- turns


def test_lines_of_one_message_form_one_turn_with_the_final_usage() -> None:
    lines = [
        user("u", "hi", at=1),
        assistant("a", ID, "one", parent="u", at=2, output=1, stop=None),
        assistant("b", ID, use("toolu_1"), parent="a", at=3, output=90),
        assistant("c", ID, "two", parent="b", at=4, output=200, stop=None),
    ]
    (turn,) = session_of(source_of(lines)).turns
    assert turn.usage == Usage(input_tokens=3, output_tokens=90)
    assert [it.text or it.name for it in turn.blocks] == ["one", "Bash", "two"]
    assert (turn.started, turn.ended) == (turn.blocks[0].at, turn.blocks[2].at)


def test_the_larger_usage_wins_when_no_copy_has_a_stop_reason() -> None:
    lines = [assistant("a", ID, "one", output=9, stop=None), assistant("b", ID, "two", output=4, stop=None)]
    assert session_of(source_of(lines)).usage.output_tokens == 9


def test_growing_copies_of_a_message_do_not_repeat_blocks() -> None:
    lines = [
        assistant("a", ID, "one", stop=None),
        assistant("b", ID, "one", use("toolu_1")),
        assistant("c", ID, "one", use("toolu_1"), use("toolu_2")),
    ]
    session = session_of(source_of(lines))
    assert [it.id for it in session.tool_calls] == ["toolu_1", "toolu_2"]
    assert len(session.turns[0].blocks) == 3


def test_a_duplicate_line_counts_once() -> None:
    lines = [user("u", "hi"), assistant("a", None, "one"), user("u", "hi"), assistant("a", None, "one")]
    session = session_of(source_of(lines))
    assert (inputs(session), len(session.turns)) == (["hi"], 1)


def test_a_damaged_line_does_not_hide_a_good_line_with_the_same_id() -> None:
    whole = assistant("a", ID, "one", output=9)
    damaged = {name: value for name, value in whole.items() if name != "type"}
    assert session_of(source_of([damaged, whole, whole])).usage.output_tokens == 9


def damaged(**fields: Any) -> bytes:
    told = {**assistant("a", ID, "one", output=9)["message"], **fields}
    return json.dumps(line("assistant", "a", message=told)).encode()


DAMAGED = [
    pytest.param(damaged(usage={"output_tokens": 700, "input_tokens": "many"}), id="a field that does not fit"),
    pytest.param(damaged(usage={"output_tokens": 700}, content=[text("half \ud83d")]), id="half a character"),
    pytest.param(damaged(usage="none"), id="no usage that can be read"),
    pytest.param(damaged(usage=None), id="no usage"),
    pytest.param(damaged(content=None, id=None), id="no content"),
    pytest.param(damaged().replace(b'"message":', b'"imessage":'), id="no message"),
]


@pytest.mark.parametrize("odd", DAMAGED)
@pytest.mark.parametrize("damaged_first", [True, False])
@pytest.mark.parametrize("cut", [True, False])
def test_an_intact_line_takes_precedence_over_its_damaged_copy(odd: bytes, damaged_first: bool, cut: bool) -> None:
    copies = [odd, json.dumps(assistant("a", ID, "one", output=9)).encode()]
    lines: list[Any] = [user("u", "hi"), *(copies if damaged_first else copies[::-1])]
    [turn] = session_of(source_of(lines, cut=cut)).turns
    [response] = responses_of(source_of(lines, cut=cut))
    assert turn.usage == response.usage == Usage(input_tokens=3, output_tokens=9)
    assert [it.text for it in turn.blocks] == ["one"]


def test_message_ids_reused_by_a_server_are_separate_turns() -> None:
    lines = [
        it
        for number in range(2000)
        for it in (
            assistant(f"a{number}", f"chatcmpl-{number % 999}", "x", stop=None),
            assistant(f"b{number}", f"chatcmpl-{number % 999}", use(f"t{number}")),
            user(f"u{number}", [result(f"t{number}")]),
        )
    ]
    session = session_of(source_of(lines))
    assert (len(session.turns), session.usage.input_tokens) == (2000, 6000)
    assert len(list(responses_of(source_of(lines)))) == 2000


COUNTED = [
    user("u", "hi"),
    user("v", "more"),
    assistant("a", "7", "x"),
    assistant("b", "7", "y"),
    assistant("c", "7", "z", requestId="req_1"),
    assistant("d", "8", use("t")),
    assistant("e", None, "without an id"),
    assistant("f", ID, "x"),
    user("r", [result("t")]),
]


@given(st.lists(st.sampled_from(COUNTED), max_size=8))
@example([COUNTED[0], COUNTED[2], COUNTED[0], COUNTED[2]])  # written twice
@example([COUNTED[2], COUNTED[1], COUNTED[3]])  # the id was used again
def test_session_and_ledger_count_each_response_once_for_any_kind_of_id(lines: list[Any]) -> None:
    turns = [it for it in session_of(source_of(lines)).turns if it.usage]
    responses = list(responses_of(source_of(lines)))
    assert sum(it.usage.output_tokens for it in turns if it.usage) == sum(
        it.usage.output_tokens for it in responses if it.usage
    )
    assert len(turns) == len(responses)


def test_text_beside_tool_results_is_not_a_prompt() -> None:
    told = [
        user("u", "hi"),
        assistant("a", ID, use("toolu_1")),
        user("r", [result("toolu_1"), text("remember")]),
    ]
    assert inputs(session_of(source_of(told))) == ["hi"]


def test_unmatched_tool_calls_and_tool_results_are_preserved() -> None:
    lines = [
        user("u", "hi"),
        assistant("a", ID, use("toolu_1", "Write"), use("toolu_2", "Read")),
        user("r", [result("toolu_2"), result("toolu_lost", "from somewhere", is_error=True)]),
    ]
    session = session_of(source_of(lines))
    assert [(it.id, it.name, it.result, it.is_error) for it in session.tool_calls] == [
        ("toolu_1", "Write", None, False),
        ("toolu_2", "Read", "done", False),
        ("toolu_lost", None, "from somewhere", True),
    ]


def test_a_late_tool_result_is_added_to_the_turn_of_its_call() -> None:
    lines = [
        assistant("a", ID, use("toolu_1")),
        assistant("b", OTHER, use("toolu_2")),
        user("r", [result("toolu_2", "two"), result("toolu_1", "one")]),
    ]
    turns = session_of(source_of(lines)).turns
    assert [call.result for turn in turns for call in turn.tool_calls] == ["one", "two"]
    assert [len(turn.blocks) for turn in turns] == [2, 2]


def test_a_tool_result_before_any_turn_is_preserved() -> None:
    session = session_of(source_of([user("r", [result("toolu_lost")])]))
    assert [(it.id, it.result) for it in session.tool_calls] == [("toolu_lost", "done")]


def test_unknown_block_types_are_preserved_unchanged() -> None:
    odd = {"type": "hologram", "depth": 3}
    found = {"type": "web_search_tool_result", "tool_use_id": "srv", "content": [{"title": "x"}]}
    (turn,) = session_of(source_of([assistant("a", ID, odd, found, {"type": "text", "text": 5})])).turns
    assert [(it.kind, it.raw) for it in turn.blocks[:2]] == [
        ("other", odd),
        ("tool_result", [{"title": "x"}]),
    ]


def test_cache_writes_of_both_lifetimes_are_counted() -> None:
    told = assistant("a", ID, "x")
    told["message"]["usage"] = {
        "cache_creation_input_tokens": 900,
        "cache_creation": {"ephemeral_5m_input_tokens": 600, "ephemeral_1h_input_tokens": 300},
        "service_tier": "priority",
    }
    (turn,) = session_of(source_of([told])).turns
    assert turn.usage == Usage(cache_write_tokens=900, cache_write_1h_tokens=300)
    assert turn.service_tier == "priority"


# ---------------------------------------------------------------- prompts

NOT_TYPED = [
    user("m", "Caveat: whatever", isMeta=True),
    user("m", "This is a summary", isCompactSummary=True),
    user("m", "<command-name>/clear</command-name>"),
    user("m", "<local-command-stdout>ok</local-command-stdout>"),
    user("m", "<system-reminder>be good</system-reminder>"),
    user("m", "<user-prompt-submit-hook>hooked</user-prompt-submit-hook>"),
]


@pytest.mark.parametrize("odd", NOT_TYPED, ids=lambda it: str(it["message"]["content"])[:30])
def test_client_generated_text_is_neither_a_prompt_nor_a_title(odd: dict[str, Any]) -> None:
    session = session_of(source_of([odd, user("u", "\n\nfirst line\nsecond", at=1)]))
    assert (inputs(session), session.title) == (["first line\nsecond"], "first line")


def test_a_slash_command_answered_by_the_model_is_a_prompt() -> None:
    lines = [
        user("u", "hi"),
        assistant("a", ID, "hello", parent="u"),
        user("c", "<command-name>/review</command-name>\n<command-args>all of it</command-args>", parent="a"),
        user("m", "Review the code", parent="c", isMeta=True),
        assistant("b", OTHER, "fine", parent="m"),
    ]
    session = session_of(source_of(lines))
    assert inputs(session) == ["hi", "/review all of it"]
    assert session_of(source_of(lines[2:])).title == "/review all of it"


def test_a_task_notification_starts_an_exchange_without_user_input() -> None:
    lines = [
        user("u", "hi"),
        assistant("a", ID, "hello", parent="u"),
        user("t", "<task-notification>x</task-notification>", parent="a", origin={"kind": "task-notification"}),
        assistant("b", OTHER, "I see", parent="t"),
    ]
    told = [(it.user_input, it.origin, len(it.turns)) for it in session_of(source_of(lines)).exchanges]
    assert told == [("hi", None, 1), (None, "task-notification", 1)]


def test_a_prompt_queued_while_the_agent_works_starts_an_exchange() -> None:
    lines = [
        user("u", "hi"),
        assistant("a", ID, use("toolu_1"), parent="u"),
        user("r", [result("toolu_1")], parent="a"),
        line("attachment", "q", "r", attachment={"type": "queued_command", "prompt": "and this"}),
        assistant("b", OTHER, "yes", parent="q"),
    ]
    session = session_of(source_of(lines))
    assert [(it.user_input, it.end_reason) for it in session.exchanges] == [
        ("hi", "input"),
        ("and this", "result"),
    ]


def test_a_custom_title_takes_precedence_over_generated_titles() -> None:
    titles = [{"type": "custom-title", "customTitle": "mine"}, {"type": "ai-title", "aiTitle": "its"}]
    assert session_of(source_of([user("u", "hi"), *titles])).title == "mine"
    assert (
        session_of(source_of([user("u", "hi"), titles[1], {"type": "ai-title", "aiTitle": "newer"}])).title == "newer"
    )


def test_a_summary_without_time_and_leaf_is_a_title() -> None:
    assert session_of(source_of([user("u", "hi"), {"type": "summary", "summary": "said hi"}])).title == "said hi"
    other = [{"type": "summary", "summary": "of another", "leafUuid": "elsewhere"}]
    assert session_of(source_of([user("u", "hi"), *other])).title == "hi"
    assert session_of(source_of([user("u", "hi")]), {"u": "from elsewhere"}).title == "from elsewhere"


# ---------------------------------------------------------------- the tree


def test_abandoned_branches_are_marked_as_left() -> None:
    lines = [
        user("u1", "first"),
        assistant("a1", "msg_01aaaaaaaaaaaa1", "x", parent="u1"),
        user("u2", "second", parent="a1"),
        assistant("a2", "msg_01aaaaaaaaaaaa2", "x", parent="u2"),
        user("u3", "second, better", parent="a1"),
        assistant("a3", "msg_01aaaaaaaaaaaa3", "x", parent="u3"),
    ]
    session = session_of(source_of(lines))
    assert [it.left for it in session.exchanges] == [False, True, False]
    assert len(session.turns) == 3  # all were billed
    again = [user("u4", "anew"), assistant("a4", "msg_01aaaaaaaaaaaa4", "x", parent="u4")]
    session = session_of(source_of([*lines, *again]))
    assert [it.left for it in session.exchanges] == [True, True, True, False]


def test_exchanges_without_parent_links_are_not_marked_as_left() -> None:
    lines = [user("u1", "first"), assistant("a1", "msg_01aaaaaaaaaaaa1", "x"), user("u2", "second")]
    assert not any(it.left for it in session_of(source_of(lines)).exchanges)


def test_turns_of_two_processes_in_one_file_are_assigned_to_their_own_prompts() -> None:
    lines = [
        user("u1", "first"),
        assistant("a1", "msg_01aaaaaaaaaaaa1", "x", parent="u1"),
        user("u2", "left", parent="a1"),
        user("u3", "right", parent="a1"),
        assistant("a2", "msg_01aaaaaaaaaaaa2", "for left", parent="u2"),
        assistant("a3", "msg_01aaaaaaaaaaaa3", "for right", parent="u3"),
    ]
    exchanges = session_of(source_of(lines)).exchanges
    told = [(it.user_input, [turn.blocks[0].text for turn in it.turns]) for it in exchanges]
    assert told == [("first", ["x"]), ("left", ["for left"]), ("right", ["for right"])]


def test_parallel_tool_results_are_not_a_branch() -> None:
    lines = [
        user("u1", "first"),
        assistant("a1", ID, use("toolu_1"), parent="u1", apiBlockIndex=0),
        assistant("a2", ID, use("toolu_2"), parent="a1", apiBlockIndex=1),
        user("r1", [result("toolu_1")], parent="a1"),
        user("r2", [result("toolu_2")], parent="a2"),
        assistant("a3", OTHER, "x", parent="r2"),
        user("u2", "second", parent="a3"),
    ]
    transcript = transcript_of(source_of(lines))
    assert not any(it.left for it in transcript.session.exchanges)
    assert all(call.result for call in transcript.session.tool_calls)


def test_missing_or_cyclic_parents_do_not_create_a_branch() -> None:
    lines = [user("u1", "a", parent="lost"), user("u2", "b", parent="gone"), user("u3", "c", parent="u3")]
    assert len(transcript_of(source_of(lines)).session.exchanges) == 3
    circle = [line("attachment", "x", "y"), line("attachment", "y", "x"), user("u", "a", parent="y")]
    assert len(transcript_of(source_of(circle)).session.exchanges) == 1


# ---------------------------------------------------------------- forks


def lineage(name: str, ids: str, began: int | None = None, forked_from: str | None = None) -> Lineage:
    at = session_of(source_of([user("u", "x", at=began)])).started if began else None
    return Lineage(session=name, message_ids=list(ids), began=at, forked_from=forked_from)


PARENTS = [
    pytest.param("abcd", [("other", "abc", None)], "other", id="it stopped where this goes on"),
    pytest.param("abc", [("other", "abcd", None)], None, id="this stopped where the other goes on"),
    pytest.param("abxy", [("other", "abcd", 1)], "other", id="both went on, it began earlier"),
    pytest.param("abxy", [("other", "abcd", 9)], None, id="both went on, this began earlier"),
    pytest.param("abcx", [("far", "ab", 1), ("near", "abcd", 2)], "near", id="of several the nearest"),
    pytest.param("xab", [("other", "ab", 1)], None, id="it begins with its own"),
    pytest.param("", [("other", "ab", 1)], None, id="nothing in it"),
]


@pytest.mark.parametrize(("ids", "others", "parent"), PARENTS)
def test_the_parent_is_the_older_session_with_the_same_beginning(
    ids: str, others: list[tuple[str, str, int | None]], parent: str | None
) -> None:
    own = lineage("own", ids, began=5)
    assert Relatives([own, *(lineage(*it) for it in others)]).parents().get("own") == parent


def test_two_sessions_are_never_each_others_parent() -> None:
    left, right = lineage("left", "abx", 3), lineage("right", "aby", 3)
    assert Relatives([left, right]).parents() == {"right": "left"}


def test_finding_a_parent_takes_few_comparisons_when_thousands_share_an_id() -> None:
    """As some servers give it to all their answers."""

    class Counted(frozenset[str]):
        compared = 0

        def __lt__(self, other: object) -> bool:
            Counted.compared += 1
            return frozenset.__lt__(self, other)  # type: ignore[operator]

    family = [lineage(f"{number:04}", f"a{chr(1000 + number)}", number) for number in range(1, 2001)]
    for it in family:
        it.__dict__["ids"] = Counted(it.message_ids)
    relatives = Relatives(family)
    Counted.compared = 0
    assert relatives.parents() == {it.session: "0001" for it in family[1:]}
    assert Counted.compared < 5 * len(family)


def test_a_parent_that_the_client_names_is_taken_even_if_its_file_is_gone() -> None:
    source = source_of([user("u", "hi", forkedFrom={"sessionId": "parent", "messageUuid": "x"})])
    assert session_of(source).parent == "parent"
    assert Relatives([lineage("own", "", forked_from="parent")]).parents() == {"own": "parent"}


# ---------------------------------------------------------------- sub-agents

MAIN_LINES = [
    user("u", "hi", at=1),
    assistant("a", ID, use("toolu_1", "Task", prompt="go and look", description="d"), parent="u", at=2),
    user("r", [result("toolu_1")], parent="a", at=9),
]


def agent_lines(name: str, **fields: Any) -> list[dict[str, Any]]:
    same = {"isSidechain": True, **fields}
    return [
        user(f"{name}u", "go and look", at=3, **same),
        assistant(f"{name}a", f"msg_agent_{name:_<12}", use(f"toolu_{name}"), parent=f"{name}u", at=4, **same),
    ]


def joined(session: Session) -> list[tuple[str, str, str | None]]:
    return [(it.thread, it.parent_thread, it.tool_use_id) for it in session.agents]


def test_sidechains_in_the_main_file_are_threads() -> None:
    """As 1.0 wrote them, without a name: their first line is one."""
    session = session_of(source_of([*MAIN_LINES[:2], *agent_lines("x"), MAIN_LINES[2]]))
    assert joined(session) == [("agent:xu", "main", "toolu_1")]
    assert [it.thread for it in session.turns] == ["main", "agent:xu"]


def test_a_subagent_without_a_meta_file_is_matched_by_result_or_prompt() -> None:
    named = [*MAIN_LINES[:2], {**MAIN_LINES[2], "toolUseResult": {"agentId": "y"}}]
    other = [user("yu", "something else", isSidechain=True), *agent_lines("y")[1:]]
    by_result = source_of(named, [(f"{AGENTS}/agent-y.jsonl", other)])
    by_prompt = source_of(MAIN_LINES, [("agent-y.jsonl", agent_lines("y"))])
    assert joined(session_of(by_result)) == joined(session_of(by_prompt)) == [("agent:y", "main", "toolu_1")]


def test_a_nested_subagent_is_joined_to_its_parent_agent() -> None:
    names = [f"{AGENTS}/agent-{it}.jsonl" for it in "xy"]
    metas = {
        "x": {"toolUseId": "toolu_1", "agentType": "scout"},
        "y": {"toolUseId": "toolu_x", "parentAgentId": "x"},
    }
    texts = {f"{AGENTS}/agent-{it}.meta.json": json.dumps(meta) for it, meta in metas.items()}
    agents = [(name, agent_lines(it)) for name, it in zip(names, "xy", strict=True)]
    session = session_of(source_of(MAIN_LINES, agents[::-1], texts))
    assert sorted(joined(session)) == [("agent:x", "main", "toolu_1"), ("agent:y", "agent:x", "toolu_x")]
    assert [it.thread for it in session.turns] == ["main", "agent:x", "agent:y"]
    assert {it.kind for it in session.agents} == {"scout", None}


def test_subagents_that_name_each_other_as_parent_appear_once() -> None:
    metas = {"x": {"toolUseId": "toolu_y"}, "y": {"toolUseId": "toolu_x"}}
    texts = {f"{AGENTS}/agent-{it}.meta.json": json.dumps(meta) for it, meta in metas.items()}
    agents = [(f"{AGENTS}/agent-{it}.jsonl", agent_lines(it)) for it in "xy"]
    session = session_of(source_of(MAIN_LINES, agents, texts))
    assert sorted(it.thread for it in session.turns) == ["agent:x", "agent:y", "main"]


def test_a_subagent_without_a_parent_is_placed_by_its_start_time() -> None:
    later = [user("u2", "more", parent="r", at=60), assistant("b", OTHER, "x", parent="u2", at=61)]
    orphan = [assistant("z", "msg_agent_zzzzzzzzzzz", "x", at=5)]
    session = session_of(source_of([*MAIN_LINES, *later], [(f"{AGENTS}/agent-z.jsonl", orphan)]))
    assert [[turn.thread for turn in it.turns] for it in session.exchanges] == [["main", "agent:z"], ["main"]]


def test_subagents_of_an_empty_session_are_side_turns() -> None:
    session = session_of(source_of([], [(f"{AGENTS}/agent-y.jsonl", agent_lines("y"))]))
    assert [it.thread for it in session.side_turns] == ["agent:y"]
    assert session.id == SESSION


def test_a_parent_message_copied_into_a_subagent_file_counts_once_on_main() -> None:
    copy = [assistant("other", ID, "and more", requestId="req_new", output=99, isSidechain=True)]
    session = session_of(source_of(MAIN_LINES, [(f"{AGENTS}/agent-y.jsonl", copy)]))
    assert [(it.message_id, it.thread, len(it.tool_calls)) for it in session.turns] == [(ID, "main", 1)]
    assert session.usage.output_tokens == 7
    assert [row.thread for row in responses_of(source_of(MAIN_LINES, [(f"{AGENTS}/agent-y.jsonl", copy)]))] == ["main"]


# ---------------------------------------------------------------- the specification's shapes

SAMPLE = """\
{"type":"user","message":"Read the config file and update the version number","timestamp":"2026-01-26T10:00:00.000Z","uuid":"uuid-1"}
{"type":"assistant","message":"I'll read the config file first.","timestamp":"2026-01-26T10:00:01.000Z","uuid":"uuid-2","parentUuid":"uuid-1"}
{"type":"tool_use","name":"Bash","input":{"command":"cat package.json"},"tool_use_id":"toolu_1","timestamp":"2026-01-26T10:00:02.000Z"}
{"type":"tool_result","content":"{\\"name\\": \\"test-app\\"}","tool_use_id":"toolu_1","timestamp":"2026-01-26T10:00:03.000Z"}
{"type":"assistant","message":"Done.","timestamp":"2026-01-26T10:00:07.000Z","uuid":"uuid-4","parentUuid":"uuid-3","message":{"usage":{"input_tokens":50,"output_tokens":15}}}
{"type":"summary","summary":"Updated package.json","timestamp":"2026-01-26T10:00:08.000Z"}
{"type":"file-history-snapshot","files":{"/a.txt":{"content":"old","timestamp":"2026-01-26T09:59:59.000Z"}},"timestamp":"2026-01-26T10:00:00.000Z"}
{"type":"result","result":"Done.","session_id":"x","duration_ms":5000,"num_turns":2,"total_cost_usd":0.01}
{"type":"system","message":"Initializing","timestamp":"2026-01-26T10:00:00.000Z"}
"""  # noqa: E501


def test_the_sample_transcript_of_the_specification_is_read() -> None:
    source = source_of([it.encode() for it in SAMPLE.splitlines()])
    session = session_of(source)
    assert inputs(session) == ["Read the config file and update the version number"]
    first, second = session.turns
    assert [(it.kind, it.text or it.name) for it in first.blocks] == [
        ("text", "I'll read the config file first."),
        ("tool_use", "Bash"),
        ("tool_result", '{"name": "test-app"}'),
    ]
    assert ([it.text for it in second.blocks], second.usage) == (
        ["Done."],
        Usage(input_tokens=50, output_tokens=15),
    )
    assert session.title == "Updated package.json"
    assert damage_in(source) == []


def test_unknown_line_types_are_not_damage() -> None:
    source = source_of([{"type": "hologram", "timestamp": time(3)}, {"no": "type"}, user("u", "hi")])
    assert (damage_in(source), inputs(session_of(source))) == ([], ["hi"])


def test_a_renamed_file_takes_its_session_id_from_its_lines() -> None:
    source = source_of([user("u", "hi")])
    assert session_of(source).id == SESSION
    renamed = type(source)(type(source.main)("backup.jsonl", source.main.entries))
    assert session_of(renamed).id == SESSION


# ---------------------------------------------------------------- lines that come late


def test_lines_written_out_of_order_are_sorted_behind_their_parents() -> None:
    """2.1.50 writes aside, and what it did at once may come first."""
    late = [
        user("r", [result("toolu_1", "done")], parent="b", at=3),
        assistant("c", OTHER, "Done.", parent="r", at=4),
        user("u", "Go", parent=None, at=1),
        assistant("a", ID, "I go.", parent="u", at=2),
        assistant("b", ID, use("toolu_1"), parent="a", at=2),
        user("v", "Again", parent="c", at=5),
        user("w", "Lost", parent="gone", at=6),
    ]
    session = session_of(source_of(late))
    assert inputs(session) == ["Go", "Again", "Lost"]
    assert [[block.kind for block in turn.blocks] for turn in session.turns] == [
        ["text", "tool_use", "tool_result"],
        ["text"],
    ]
    assert {it.message_id for it in responses_of(source_of(late))} == {ID, OTHER}


@given(
    st.lists(
        st.builds(
            SessionRecord,
            uuid=st.sampled_from([None, *"abcde"]),
            parent_uuid=st.sampled_from([None, *"abcdex"]),
        )
    )
)
def test_sorting_lines_with_cyclic_parents_loses_no_line(lines: list[SessionRecord]) -> None:
    assert sorted(map(id, behind_parents(lines))) == sorted(map(id, lines))


# ---------------------------------------------------------------- times

BOOKKEEPING: list[dict[str, Any]] = [
    {"type": "queue-operation", "operation": "enqueue", "content": "and then?"},
    {"type": "queue-operation", "operation": "dequeue"},
    {"type": "summary", "summary": "Tea"},
    {"type": "ai-title", "aiTitle": "Tea"},
    {"type": "cost-state", "totalCostUSD": 1.0},
    {"type": "file-history-snapshot", "snapshot": {"trackedFileBackups": {}}},
    {"type": "file-history-delta", "trackingPath": "a"},
    {"type": "last-prompt", "lastPrompt": "x"},
    {"type": "mode", "mode": "plan"},
    {"type": "attachment", "attachment": {"type": "prompt_snapshot"}},
    {"type": "system", "subtype": "turn_duration"},
    {"type": "user", "isMeta": True, "message": {"role": "user", "content": "Caveat: ..."}},
    {"type": "user", "message": {"role": "user", "content": "<command-name>/model</command-name>"}},
    {"type": "of-next-year"},
]


@pytest.mark.parametrize("hangs", [True, False], ids=["hangs off the answer", "hangs off nothing"])
@pytest.mark.parametrize("note", BOOKKEEPING, ids=lambda it: f"{it['type']} {it.get('operation', '')}")
def test_bookkeeping_lines_before_the_next_prompt_do_not_extend_an_exchange(note: dict[str, Any], hangs: bool) -> None:
    noted = {**line(note["type"], "n", "b" if hangs else None, at=240), **note}
    lines = [
        user("a", "Make tea", at=0),
        assistant("b", "msg_01aaaaaaaaaaaaaa", "Done.", parent="a", at=1),
        noted,
        user("c", "And then?", "n" if hangs else "b", at=241),
        assistant("d", "msg_01bbbbbbbbbbbbbb", "Drink.", parent="c", at=242),
    ]
    first, second = session_of(source_of(lines)).exchanges
    assert seconds(first.started, first.ended) == 1
    assert seconds(second.started, second.ended) == 1


def test_each_step_extends_the_end_time_of_its_exchange() -> None:
    lines = [
        user("a", "Make tea", at=0),
        assistant("b", "msg_01aaaaaaaaaaaaaa", use("toolu_01aaaaaaaaaaaa"), parent="a", at=1),
        user("c", [result("toolu_01aaaaaaaaaaaa")], "b", at=100),
        {**line("system", "e", "c", at=200), "subtype": "api_error"},
        user("d", [text("[Request interrupted by user]")], "c", at=300),
    ]
    ends = [session_of(source_of(lines[:count])).exchanges[0].ended for count in range(1, 6)]
    started = session_of(source_of(lines)).exchanges[0].started
    assert [seconds(started, it) for it in ends] == [0, 1, 100, 200, 300]


def test_bookkeeping_lines_do_not_extend_a_session() -> None:
    lines = [
        user("a", "Make tea", at=0),
        assistant("b", "msg_01aaaaaaaaaaaaaa", "Done.", parent="a", at=1),
        {**line("queue-operation", "n", at=3000), "operation": "enqueue"},
    ]
    session = session_of(source_of(lines))
    assert seconds(session.started, session.ended) == 1
    alone = session_of(source_of(lines[2:]))
    assert alone.started == alone.ended is not None


def seconds(start: datetime | None, end: datetime | None) -> float:
    assert start and end
    return (end - start).total_seconds()


# ---------------------------------------------------------------- fields that are seldom without others


def test_cache_writes_without_a_sum_are_the_sum_of_their_kinds() -> None:
    lines = [user("u", "hi"), assistant("a", ID, "hello", parent="u")]
    kinds = {"ephemeral_5m_input_tokens": 7, "ephemeral_1h_input_tokens": 3}
    lines[1]["message"]["usage"] = {"input_tokens": 1, "output_tokens": 2, "cache_creation": kinds}
    usage = Usage(input_tokens=1, output_tokens=2, cache_write_tokens=10, cache_write_1h_tokens=3)
    assert session_of(source_of(lines)).usage == usage
    assert [it.usage for it in responses_of(source_of(lines))] == [usage]


@pytest.mark.parametrize("kind", ["ephemeral_5m_input_tokens", "ephemeral_1h_input_tokens"])
def test_a_count_below_zero_of_either_kind_makes_the_usage_unknown(kind: str) -> None:
    lines = [user("u", "hi"), assistant("a", ID, "hello", parent="u")]
    lines[1]["message"]["usage"] = {"input_tokens": 1, "output_tokens": 2, "cache_creation": {kind: -7}}
    assert [it.usage for it in session_of(source_of(lines)).turns] == [None]


def test_a_file_that_is_not_named_after_its_session_has_the_id_of_its_lines() -> None:
    lines = [
        user("u", "hi"),
        assistant("a", ID, "hello", parent="u"),
        assistant("b", OTHER, "more", parent="a"),
    ]

    def copy() -> SourceFiles:
        return SourceFiles(file_of(lines, "copy.jsonl"))

    assert session_of(copy()).id == SESSION
    assert {it.session for it in responses_of(copy())} == {SESSION}
