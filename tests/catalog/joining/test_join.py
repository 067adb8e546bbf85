"""One session from all who saw it."""

import copy
from datetime import UTC, datetime, timedelta
from pathlib import Path
from random import Random
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from msgspec.structs import replace

from agent_logger.agents.codex.session import session_of as codex_session
from agent_logger.agents.gemini_cli.session import session_of as gemini_session
from agent_logger.catalog.joining.join import join
from agent_logger.catalog.ledger.ledger import Ledger
from agent_logger.catalog.ledger.session_responses import responses_of_session
from agent_logger.catalog.ledger.totals import total
from agent_logger.logs.wire_log.session import session_of as wire_session
from agent_logger.model.redaction.redactor import Redactor
from agent_logger.model.session import (
    MAIN,
    SYNTHETIC,
    Block,
    Compaction,
    ContextFile,
    Difference,
    Exchange,
    Session,
    SubAgent,
    Turn,
    Usage,
    Witness,
)
from tests.agents.claude_code.claude_files import Fixture, fixtures
from tests.agents.foreign import DATA, scenarios, sources_of
from tests.catalog.rows import unique
from tests.catalog.witnesses import seen, timed, told
from tests.logs.wire_log.wire_records import talks

NOON = datetime(2026, 11, 15, 12, tzinfo=UTC)
FIXTURES = pytest.mark.parametrize("fixture", fixtures(), ids=lambda it: it.name)


@FIXTURES
def test_each_turn_appears_once_with_all_its_witnesses(fixture: Fixture, tmp_path: Path) -> None:
    truth = seen(fixture)
    for session_id, witnesses in told(fixture, tmp_path).items():
        turns = join(witnesses).turns
        assert {it.message_id: set(it.witnesses) for it in turns} == truth.get(session_id, {})
        assert len(turns) == len({it.message_id for it in turns})


@FIXTURES
def test_joined_sessions_count_the_billed_usage_once(fixture: Fixture, tmp_path: Path) -> None:
    ledger = Ledger()
    for witnesses in told(fixture, tmp_path).values():
        ledger.add(responses_of_session(join(witnesses)))
    rows = [row for row in ledger.rows() if not row.partial]
    assert total(rows).usage == fixture.true_usage()


# ---------------------------------------------------------------- other agents


@pytest.mark.parametrize("folder", [it for it in scenarios("codex") if it.joinpath("wire.jsonl").exists()], ids=str)
def test_codex_turns_are_joined_by_message_id(folder: Path) -> None:
    [file] = sources_of("codex", folder)
    [spoken] = [it for it in talks() if it.name == folder.relative_to(DATA).as_posix()]
    wire, transcript = wire_session(timed(spoken)), codex_session(file)
    whole = join([wire, transcript])
    assert [it.message_id for it in whole.turns] == [it.message_id for it in wire.turns]
    assert {it.joined_by for it in whole.turns if len(it.witnesses) == 2} == {"message id"}
    assert [it.user_input for it in whole.exchanges] == [it.user_input for it in transcript.exchanges]
    assert whole.usage == wire.usage
    cut = {it.message_id for it in wire.turns if not it.complete}
    assert {it.message_id for it in whole.turns if "transcript" not in it.witnesses} == cut
    assert not any(it.differences for it in whole.turns)


def test_turns_without_message_ids_are_joined_by_order() -> None:
    """Gemini CLI names its answers itself, and its model as it was asked for."""
    [folder] = scenarios("gemini-cli")
    [file] = sources_of("gemini-cli", folder)
    [spoken] = [it for it in talks() if it.name.startswith("gemini-cli")]
    wire, transcript = wire_session(timed(spoken)), gemini_session(file)
    whole = join([wire, transcript])
    told = [it for it in whole.turns if "transcript" in it.witnesses]
    assert len(told) == len(transcript.turns) == 3
    assert {it.joined_by for it in told} == {"order"}
    assert {it.witnesses for it in told} == {frozenset({"wire", "transcript"})}
    assert len(whole.turns) == len(wire.turns) == 5
    assert {it.field for turn in told for it in turn.differences} == {"model"}
    assert whole.usage == wire.usage
    assert [len(it.tool_calls) for it in told] == [1, 0, 0]
    assert all(call.result for turn in told for call in turn.tool_calls)


# ---------------------------------------------------------------- what one of them says otherwise

ASKED = Exchange(number=1, user_input="hello")


def session(witness: Witness, *turns: Turn, **said: Any) -> Session:
    seen = [replace(turn, witnesses=frozenset({witness})) for turn in turns]
    return Session(id="s", exchanges=[replace(ASKED, turns=seen)], **said)


def only(*sessions: Session) -> Turn:
    [turn] = join(sessions).turns
    return turn


def test_differences_between_witnesses_are_recorded() -> None:
    plain = _turn(7, MAIN, named=True)
    words = replace(plain, blocks=[Block(kind="text", text="other words")], model="claude-haiku")
    begun = replace(plain, usage=Usage(input_tokens=10, output_tokens=1))
    turn = only(session("transcript", plain), session("wire", words), session("sdk", begun))
    assert turn.usage == plain.usage
    assert turn.blocks == plain.blocks
    assert turn.joined_by == "message id"
    assert set(turn.differences) == {
        Difference(field="usage", witness="sdk", value=Usage(input_tokens=10, output_tokens=1)),
        Difference(field="model", witness="wire", value="claude-haiku"),
        Difference(field="text", witness="wire", value="other words"),
    }


def test_a_key_redacted_only_on_the_wire_is_not_a_difference() -> None:
    key = "sk-ant-api03-" + "Q7zPq2LmN4" * 9
    plain = replace(_turn(7, MAIN, named=True), blocks=[Block(kind="text", text=f"your key {key} is here")])
    hidden = replace(
        plain,
        blocks=[Block(kind="text", text=Redactor(bytes(32)).redact_text(plain.blocks[0].text, "").data)],
    )
    assert hidden != plain
    assert only(session("transcript", plain), session("wire", hidden)).differences == []


def test_times_come_from_the_wire_and_blocks_are_merged_from_all_witnesses() -> None:
    plain = _turn(7, MAIN, named=True)
    asked, used = NOON + timedelta(seconds=60), Block(kind="tool_use", id="toolu_1", name="Bash")
    result = Block(kind="tool_result", id="toolu_1", text="done")
    wire = replace(plain, started=asked, ended=asked + timedelta(seconds=9), blocks=[*plain.blocks, used])
    turn = only(
        session("transcript", plain),
        session("wire", wire),
        session("sdk", replace(plain, blocks=[used, result])),
    )
    assert (turn.started, turn.ended) == (wire.started, wire.ended)
    assert turn.blocks == [*plain.blocks, used, result]  # the result was only seen by the SDK


def test_a_turn_cut_on_the_wire_stays_incomplete_when_the_sdk_has_it_complete() -> None:
    cut = replace(_turn(7, MAIN, named=True), complete=False)
    assert not only(session("wire", cut), session("sdk", replace(cut, complete=True))).complete
    assert only(session("sdk", replace(cut, complete=True))).complete


def test_a_subagent_has_one_thread_name_after_joining() -> None:
    """An SDK calls it by the tool call that started it."""
    called = Block(kind="tool_use", id="toolu_0123456789abcdef", name="Task")
    caller = replace(_turn(1, MAIN, named=True), blocks=[called])
    own, later = _turn(2, "agent:a1", named=True), _turn(3, "agent:a1", named=True)
    sdk = session("sdk", caller, *(replace(it, thread="agent:toolu_0123456789abcdef") for it in (own, later)))
    sdk = replace(sdk, agents=[SubAgent(thread="agent:toolu_0123456789abcdef", tool_use_id=called.id)])
    whole = join([sdk, session("wire", caller, own)])
    assert whole.threads == [MAIN, "agent:a1"]
    assert whole.agents == [SubAgent(thread="agent:a1", tool_use_id=called.id)]


def test_session_fields_come_from_the_witness_that_has_them() -> None:
    plain = _turn(7, MAIN, named=True)
    noon, one = NOON, NOON + timedelta(hours=1)
    whole = join(
        [
            session("wire", plain, agent="claude-code", title="hello", started=noon, ended=noon),
            session("transcript", plain, project="/home/user", title="A title", started=one, ended=one),
        ]
    )
    assert (whole.agent, whole.project, whole.title) == ("claude-code", "/home/user", "A title")
    assert (whole.started, whole.ended) == (noon, one)


def test_compactions_come_from_the_best_witness_and_context_files_from_any() -> None:
    plain = _turn(7, MAIN, named=True)
    told, seen = Compaction(at=NOON, trigger="auto"), Compaction(at=NOON + timedelta(seconds=1))
    taken = [ContextFile(kind="settings", path="/s")]
    whole = join(
        [
            session("wire", plain, compactions=[seen]),
            session("transcript", plain, compactions=[told]),
            session("sdk", plain, context_files=taken),
        ]
    )
    assert (whole.compactions, whole.context_files) == ([told], taken)


def test_unanswered_exchanges_are_joined_and_keep_the_failure() -> None:
    times: dict[str, Any] = {"started": NOON, "ended": NOON + timedelta(seconds=9)}
    sdk = Session(id="s", exchanges=[Exchange(number=1, complete=True, end_reason="result", **times)])
    wire = Session(id="s", exchanges=[replace(ASKED, complete=False, end_reason="failed", **times)])
    [exchange] = join([sdk, wire]).exchanges
    assert (exchange.user_input, exchange.complete, exchange.end_reason) == ("hello", False, "failed")


def test_a_failure_on_the_wire_takes_precedence_over_an_sdk_result() -> None:
    said = replace(_turn(1, MAIN, named=True), model=SYNTHETIC, usage=None)
    answered = _turn(2, MAIN, named=True)
    sdk = session("sdk", answered, said)
    wire = session("wire", answered)
    failed = replace(wire, exchanges=[replace(wire.exchanges[0], complete=False, end_reason="failed")])
    ended = replace(sdk, exchanges=[replace(sdk.exchanges[0], complete=True, end_reason="result")])
    [exchange] = join([ended, failed]).exchanges
    assert (exchange.complete, exchange.end_reason) == (False, "failed")
    done = replace(failed, exchanges=[replace(failed.exchanges[0], end_reason=None)])
    assert join([ended, done]).exchanges[0].end_reason == "result"  # the wire has not seen its end


@pytest.mark.parametrize(("one", "two", "hours"), [("wire", "wire", 0.01), ("sdk", "transcript", 2)])
def test_turns_with_the_same_text_at_different_times_are_not_joined(one: Witness, two: Witness, hours: float) -> None:
    """Without ids, of one witness at any other moment, and of two if it is long ago."""
    first = _turn(1, MAIN, named=False)
    again = replace(first, started=NOON + timedelta(hours=hours), ended=None)
    assert len(join([session(one, first), session(two, again)]).turns) == 2
    assert len(join([session(one, first), session(two, first)]).turns) == 1


@pytest.mark.parametrize(("minutes", "turns"), [(0, 1), (60, 3)])
def test_output_items_of_a_run_are_joined_to_their_response(minutes: int, turns: int) -> None:
    """Codex prints its items without ids, and its tools under names of their own."""
    use = Block(kind="tool_use", id="call_abcdefghijklmnop", name="shell", input={"cmd": "ls"})
    whole = Turn(
        message_id="resp_1",
        usage=Usage(input_tokens=9, output_tokens=3),
        blocks=[Block(kind="text", text="I look."), use],
        started=NOON,
        ended=NOON,
        witnesses=frozenset({"transcript"}),
    )
    printed = [Block(kind="text", text="I look."), replace(use, id="item_1", name="command_execution")]
    began = NOON - timedelta(minutes=minutes, seconds=1)
    pieces = [Turn(message_id=None, blocks=[it], started=began, witnesses=frozenset({"run"})) for it in printed]
    asked = Exchange(number=1, user_input="List", turns=[whole], started=NOON, ended=NOON)
    run = replace(asked, turns=pieces, started=began, ended=began + timedelta(seconds=2))
    joined = join([Session(id="s", exchanges=[run]), Session(id="s", exchanges=[asked])])
    assert len(joined.turns) == turns
    assert joined.usage == whole.usage


def test_joining_no_sessions_raises_value_error() -> None:
    with pytest.raises(ValueError, match="no session"):
        join([])


# ---------------------------------------------------------------- whatever the witnesses saw


@st.composite
def conversations(draw: st.DrawFn) -> list[list[Turn]]:
    """What truly happened: of each exchange its turns."""
    sizes = draw(st.lists(st.integers(1, 4), min_size=1, max_size=4))
    number, exchanges = 0, []
    for size in sizes:
        turns = []
        for _ in range(size):
            number += 1
            turns.append(_turn(number, draw(st.sampled_from([MAIN, MAIN, "agent:a1"])), named=draw(st.booleans())))
        exchanges.append(turns)
    return exchanges


def _turn(number: int, thread: str, *, named: bool) -> Turn:
    text = Block(kind="text", text=f"answer {number}")
    return Turn(
        message_id=unique(number) if named else None,
        thread=thread,
        model="claude-haiku-4-5",
        usage=Usage(input_tokens=10, output_tokens=number + 1),
        blocks=[text],
        started=NOON + timedelta(seconds=10 * number),
        ended=NOON + timedelta(seconds=10 * number + 5),
    )


@st.composite
def witnesses(draw: st.DrawFn, exchanges: list[list[Turn]]) -> Session:
    """One that saw some of it, and knows some of that."""
    witness: Witness = draw(st.sampled_from(["wire", "transcript", "sdk", "run"]))
    seen: list[Exchange] = []
    for asked_at, turns in enumerate(exchanges, 1):
        kept = [_told(draw, it, witness) for it in turns if draw(st.integers(0, 4))]
        if kept:
            asked = f"input {asked_at}" if draw(st.booleans()) else None
            number, began, ended = len(seen) + 1, kept[0].started, kept[-1].ended
            seen.append(Exchange(number=number, user_input=asked, turns=kept, started=began, ended=ended))
    return Session(id="s", exchanges=seen, title=draw(st.sampled_from([None, "a title"])))


def _told(draw: st.DrawFn, turn: Turn, witness: Witness) -> Turn:
    told = replace(turn, witnesses=frozenset({witness}))
    if witness in ("sdk", "run") and draw(st.booleans()) and turn.message_id:  # as it was told at the beginning
        told = replace(told, usage=Usage(input_tokens=10, output_tokens=1))
    return told


@st.composite
def tellings(draw: st.DrawFn) -> tuple[list[list[Turn]], list[Session]]:
    exchanges = draw(conversations())
    return exchanges, draw(st.lists(witnesses(exchanges), min_size=1, max_size=4))


@given(tellings(), st.randoms(use_true_random=False))
def test_the_order_of_the_witnesses_does_not_matter(
    told: tuple[list[list[Turn]], list[Session]], random: Random
) -> None:
    _, sessions = told
    shuffled = random.sample(sessions, len(sessions))
    assert join(shuffled) == join(sessions)


@given(tellings())
def test_joining_one_session_or_its_copies_changes_nothing(
    told: tuple[list[list[Turn]], list[Session]],
) -> None:
    _, sessions = told
    for session in sessions:
        assert join([session]) is session
        assert join([session, copy.deepcopy(session)]) == session
    assert join([*sessions, *copy.deepcopy(sessions)]) == join(sessions)


@given(tellings())
def test_joining_keeps_each_turn_once_and_in_order(
    told: tuple[list[list[Turn]], list[Session]],
) -> None:
    exchanges, sessions = told
    texts = {turn.blocks[0].text: set[str]() for turns in exchanges for turn in turns}
    for turn in (turn for session in sessions for turn in session.turns):
        texts[turn.blocks[0].text] |= turn.witnesses
    whole = join(sessions)
    found = [(turn.blocks[0].text, set(turn.witnesses)) for turn in whole.turns]
    assert sorted(found) == sorted((text, saw) for text, saw in texts.items() if saw)
    order = [text for text in texts if texts[text]]
    for thread in whole.threads:
        own = [turn.blocks[0].text for turn in whole.turns if turn.thread == thread]
        assert own == [text for text in order if text in own]
    together = [{turn.blocks[0].text for turn in turns} for turns in exchanges]
    for exchange in whole.exchanges:
        said = {turn.blocks[0].text for turn in exchange.turns}
        assert any(said <= it for it in together)


@given(tellings())
def test_the_joined_session_has_the_same_usage_as_the_ledger(
    told: tuple[list[list[Turn]], list[Session]],
) -> None:
    sessions = list({it.witnesses: it for it in told[1]}.values())  # two logs without ids may be two calls
    apart, whole = Ledger(), Ledger()
    for session in sessions:
        apart.add(responses_of_session(session))
    whole.add(responses_of_session(join(sessions)))
    assert total(whole.rows()).usage == total(apart.rows()).usage == join(sessions).usage


def test_a_turn_without_a_time_that_one_witness_missed_stands_with_the_turns_of_its_thread() -> None:
    main, first, second, third = (
        _turn(number, thread, named=True)
        for number, thread in ((2, MAIN), (1, "agent:x"), (3, "agent:x"), (4, "agent:x"))
    )
    second = replace(second, started=None, ended=None)
    whole = join([session("transcript", main, first, third), session("wire", main, second, third)])
    assert [it.message_id for it in whole.turns] == [it.message_id for it in (main, first, second, third)]
