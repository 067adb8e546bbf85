"""Claude Code's files become sessions: those that real versions left, against what the API they talked to says."""

import pytest

from agent_logger.agents.claude_code.opener import claude_source
from agent_logger.agents.claude_code.transcript.records import token_usage
from agent_logger.agents.claude_code.transcript.responses import read_responses
from agent_logger.agents.claude_code.transcript.session import Transcript, session_of, transcript_of
from agent_logger.agents.claude_code.transcript.tree import Lineage, Relatives
from agent_logger.agents.claude_code.transcript.turns import is_unique
from agent_logger.agents.source_files import SourceFiles
from agent_logger.model.session import MAIN, Session, Turn, Usage
from tests.agents.claude_code.claude_files import Fixture, damage_in, fixture, fixtures, message_id, tool_ids

FIXTURES = pytest.mark.parametrize("fixture", fixtures(), ids=lambda it: it.name)

# Where the files alone cannot tell what was billed: what they do tell, and why.
UNTOLD = {
    "claude-agent-sdk/0.2.182/interrupt": (
        Usage(input_tokens=10, output_tokens=1, cache_write_tokens=100, cache_read_tokens=1100),
        "a cut response is kept with the usage it began with",
    ),
    "claude-cli/2.1.325/sigint": (
        Usage(input_tokens=10, output_tokens=1, cache_write_tokens=100, cache_read_tokens=1100),
        "a cut response is kept with the usage it began with",
    ),
    "claude-cli/2.1.325/compact_and_slash": (
        Usage(input_tokens=-70, output_tokens=-140, cache_write_tokens=-700, cache_read_tokens=-7000),
        "the calls that compact are not written",
    ),
    "claude-cli/2.1.325/interactive_tui": (
        Usage(input_tokens=-7, output_tokens=-5),
        "the call for the title is not written",
    ),
    "claude-cli/2.1.325/odd_cwds": (
        Usage(input_tokens=-10, output_tokens=-20, cache_write_tokens=-100, cache_read_tokens=-1000),
        "one run was without persistence",
    ),
    "claude-cli/2.1.4/resume_chain": (
        Usage(input_tokens=-90, output_tokens=-180, cache_write_tokens=-900, cache_read_tokens=-9000),
        "three warm-ups left a prompt and no answer",
    ),
    "claude-cli/2.1.4/tools_stream": (Usage(input_tokens=-7, output_tokens=-5), "a side call is not written"),
}


def told(fixture: Fixture) -> list[Turn]:
    """The responses that all files of a tree tell of, copies once."""
    turns = [turn for source in fixture.sources() for turn in session_of(source).turns if not turn.is_synthetic]
    return list({turn.message_id: turn for turn in turns}.values())


@FIXTURES
def test_session_usage_matches_the_usage_billed_by_the_api(fixture: Fixture) -> None:
    more, _why = UNTOLD.get(fixture.name, (Usage(), ""))
    billed = sum((turn.usage for turn in told(fixture) if turn.usage), Usage())
    assert billed == fixture.true_usage() + more


@FIXTURES
def test_complete_turns_match_the_responses_of_the_api(fixture: Fixture) -> None:
    turns = told(fixture)
    complete = {turn.message_id for turn in turns if turn.complete}
    if fixture.name in ("claude-cli/2.1.325/odd_cwds", "claude-cli/2.1.4/resume_chain"):
        assert complete < fixture.message_ids("main", "warmup")
    else:
        assert complete == fixture.message_ids("main", "subagent", "warmup")
    on_main = {turn.message_id for turn in turns if turn.thread == MAIN and turn.complete}
    assert on_main <= fixture.message_ids("main")


@FIXTURES
def test_tool_calls_of_a_turn_match_the_api_response(fixture: Fixture) -> None:
    made = {message_id(call): tool_ids(call) for call in fixture.answers("main", "subagent", "warmup")}
    for turn in told(fixture):
        if turn.complete:
            calls = [call.id for call in turn.tool_calls]
            assert calls == made[turn.message_id or ""]


@FIXTURES
def test_subagent_turns_are_in_the_threads_named_by_the_client(fixture: Fixture) -> None:
    wanted = {(call.truth["agent_id"], message_id(call)) for call in fixture.answers("subagent")}
    found = {
        (turn.thread.removeprefix("agent:"), turn.message_id)
        for turn in told(fixture)
        if turn.thread.startswith("agent:")
    }
    if fixture.name != "claude-cli/2.1.4/resume_chain":  # whose warm-ups have lost their prompts
        assert found == wanted


@FIXTURES
def test_every_line_can_be_read(fixture: Fixture) -> None:
    for source in fixture.sources():
        session = session_of(source)
        assert (damage_in(source), session.agent) == ([], "claude-code")
        assert session.id in source.main.name


# ---------------------------------------------------------------- one by one


def only(name: str) -> Transcript:
    (source,) = fixture(name).sources()
    return transcript_of(source)


def shape(session: Session) -> list[tuple[str | None, bool, str | None, int]]:
    return [(it.user_input, it.complete, it.end_reason, len(it.turns)) for it in session.exchanges]


def by_id(name: str) -> dict[str, Transcript]:
    return {it.session.id[:4]: it for it in map(transcript_of, fixture(name).sources())}


def test_a_message_split_over_lines_is_one_turn_with_its_parallel_tool_results() -> None:
    session = only("claude-cli/2.1.325/tools_stream").session
    assert shape(session) == [("Write a tiny poem to poem.md and check it", True, "result", 4)]
    first, second, third, last = session.turns
    assert [it.kind for it in first.blocks] == ["thinking", "text", "tool_use", "tool_result"]
    assert [(it.name, it.result is not None) for it in second.tool_calls] == [("Read", True), ("Bash", True)]
    assert [(it.name, it.is_error, it.kind) for it in third.tool_calls] == [("Bash", True, "shell")]
    assert last.stop_reason == "end_turn"
    assert token_usage(session).output_tokens == 290
    assert session.files == ["/home/user/project/poem.md"]


def test_subagent_turns_follow_the_tool_call_that_started_them() -> None:
    session = only("claude-cli/2.1.325/subagents").session
    calls = {call.id: call.input["description"] for call in session.turns[0].tool_calls}
    assert [(it.description, calls[it.tool_use_id or ""], it.parent_thread) for it in session.agents] == [
        ("Read seed", "Read seed", "main"),
        ("Look around", "Look around", "main"),
    ]
    assert [it.thread.partition(":")[0] for it in session.turns] == ["main", *["agent"] * 4, "main"]


def test_a_large_tool_result_is_read_from_its_side_file() -> None:
    (call,) = only("claude-cli/2.1.325/tool_results_file").session.tool_calls
    assert call.result is not None
    assert len(call.result) == 46493
    assert call.result.startswith("line 1 of a rather long output\nline 2")


def test_compactions_and_commands_do_not_start_exchanges() -> None:
    transcript = only("claude-cli/2.1.325/compact_and_slash")
    inputs = [it.user_input for it in transcript.session.exchanges]
    assert inputs == ["Remember BANANA", "Again", "After compact"]
    (compaction,) = transcript.session.compactions
    assert (compaction.trigger, compaction.tokens_before, compaction.tokens_after) == ("manual", 2260, 2585)
    assert not any(it.left for it in transcript.session.exchanges)


def test_a_killed_and_resumed_session_has_both_exchanges() -> None:
    session = only("claude-cli/2.1.325/kill9_resume").session
    assert shape(session) == [
        ("Write half.txt and explain", False, "input", 2),
        ("Carry on", True, "result", 1),
    ]
    synthetic = session.exchanges[0].turns[1]
    assert (synthetic.is_synthetic, synthetic.usage) == (True, None)


def test_a_killed_session_is_shown_up_to_its_last_line() -> None:
    (path,) = fixture("claude-cli/2.1.325/kill9_resume").paths("home_after_kill")
    session = session_of(claude_source(path))
    assert shape(session) == [("Write half.txt and explain", False, None, 1)]
    assert [call.result is not None for call in session.tool_calls] == [True]


def test_an_interrupted_exchange_is_marked_as_cut() -> None:
    session = only("claude-agent-sdk/0.2.182/interrupt").session
    assert [it.end_reason for it in session.exchanges] == ["cut", "result"]
    assert [it.complete for it in session.turns] == [True, False, True]


def test_an_api_error_is_shown_and_not_billed() -> None:
    session = only("claude-cli/2.1.325/api_error_529").session
    assert shape(session) == [("Say hello", False, "failed", 1)]
    assert "529" in session.turns[0].blocks[0].text
    assert session.usage == Usage()


def test_a_title_comes_from_the_client_else_from_the_first_prompt() -> None:
    assert only("claude-cli/2.1.325/interactive_tui").session.title == "Fake side title"
    assert only("claude-cli/2.1.325/tools_stream").session.title == "Write a tiny poem to poem.md and check it"


def test_a_summary_is_the_title_of_the_session_with_its_last_message() -> None:
    """1.0.3 writes it into the file of the session that is begun next."""
    sources = {source.main.name[:4]: source for source in fixture("claude-cli/1.0.3/resume_chain").sources()}
    summaries = transcript_of(sources["0b4c"]).summaries
    assert session_of(sources["3839"]).title == "Remember BANANA"
    assert session_of(sources["3839"], summaries).title == "Invalid API key · Please run /login"
    assert session_of(sources["0b4c"], summaries).title == "Remember BANANA"


def test_the_project_is_the_recorded_cwd_and_not_the_folder_name() -> None:
    projects = {session_of(source).project for source in fixture("claude-cli/2.1.325/odd_cwds").sources()}
    assert {"/home/user/cwds/emoji🎉x", "/home/user/cwds/under_score"} < projects


def test_sdk_prompts_are_distinguished_from_typed_prompts() -> None:
    assert [it.origin for it in only("claude-cli/2.1.325/hello_json").session.exchanges] == ["sdk"]
    assert [it.origin for it in only("claude-cli/2.1.325/interactive_tui").session.exchanges] == [None, None]


# ---------------------------------------------------------------- forks

FORKS = [
    pytest.param("claude-cli/2.1.325/resume_chain", {"5b8b": "656a", "9999": "656a", "656a": None, "1111": None}),
    pytest.param("claude-cli/2.1.197/resume_chain", {"d733": "9401", "9401": None}),
    # 1.0.3 made a new session of every one that went on.
    pytest.param("claude-cli/1.0.3/resume_chain", {"3839": None, "0b4c": "3839", "ef57": "0b4c", "8d17": "3839"}),
]


def lineage_of(source: SourceFiles) -> Lineage:
    session, read = session_of(source), read_responses(source)
    ids = dict.fromkeys(row.message_id for row in read.responses if row.thread == MAIN and row.message_id)
    return Lineage(
        session=session.id,
        message_ids=list(filter(is_unique, ids)),
        began=session.started,
        forked_from=read.beginning.forked_from,
        first_written=read.beginning.first_written,
        own_line_after=read.beginning.own_line_after,
    )


@pytest.mark.parametrize(("name", "parents"), FORKS)
def test_a_fork_is_linked_to_its_parent_by_the_copied_history(name: str, parents: dict[str, str | None]) -> None:
    found = {it.session[:4]: it for it in map(lineage_of, fixture(name).sources())}
    parent_of = Relatives(found.values()).parents()
    for own, parent in parents.items():
        told = parent_of.get(found[own].session)
        assert (told[:4] if told else None) == parent
        if parent:
            ids = found[parent].message_ids
            assert found[own].message_ids[: len(ids)] == ids
