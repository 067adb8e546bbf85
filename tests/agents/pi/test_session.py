"""pi's sessions: a tree of lines in one file, of which the conversation is one way through."""

import json
import re
from pathlib import Path
from typing import Any

import pytest
from hypothesis import HealthCheck, given, settings
from msgspec.structs import replace

from agent_logger.agents.framing import source_file
from agent_logger.agents.pi import session as pi
from agent_logger.agents.source_files import SourceFiles
from agent_logger.catalog.catalog import Catalog
from agent_logger.catalog.ledger.ledger import Ledger
from agent_logger.model.remainders import with_remainders
from agent_logger.model.responses import ModelResponse
from agent_logger.model.session import Session, Usage
from tests.agents.foreign import DATA, broken, lines, manifest, scenarios, shown, source, total

FOLDERS = scenarios("pi")
FILES = [path for folder in FOLDERS for path in sorted(folder.glob("home/.pi/agent/sessions/*/*.jsonl"))]
REAL_LINES = [line for path in FILES for line in path.read_bytes().split(b"\n") if line]


def opened(path: Path) -> SourceFiles:
    return SourceFiles(source_file(path.parent, path.name))


def files_of(scenario: str) -> list[Path]:
    return sorted((DATA / "pi" / scenario).glob("home/.pi/agent/sessions/*/*.jsonl"))


def read_real(scenario: str) -> Session:
    [path] = files_of(scenario)
    return pi.session_of(opened(path))


def responses_in(paths: list[Path]) -> list[ModelResponse]:
    return [response for path in paths for response in pi.responses_of(opened(path))]


def truth_of(folder: Path, kind: str = "main") -> Usage:
    [truth] = manifest(folder).truth.values()
    counts = truth[kind]
    return Usage(
        input_tokens=counts["input"],
        output_tokens=counts["output"],
        cache_read_tokens=counts["cache_read"],
        cache_write_tokens=counts["cache_write"],
    )


# ---------------------------------------------------------------- real files


@pytest.mark.parametrize("folder", FOLDERS, ids=lambda folder: folder.relative_to(DATA).as_posix())
def test_every_complete_response_is_billed_once_over_all_files(folder: Path) -> None:
    responses = responses_in(sorted(folder.glob("home/.pi/agent/sessions/*/*.jsonl")))
    once = {
        response.message_id: response.usage for response in responses if response.thread == "main" and response.final
    }
    assert total(once.values()) == truth_of(folder)


@pytest.mark.parametrize("path", FILES, ids=lambda path: path.relative_to(DATA / "pi").as_posix()[:40])
def test_responses_match_the_billed_turns_of_the_session(path: Path) -> None:
    session = pi.session_of(opened(path))
    responses = list(pi.responses_of(opened(path)))
    billed = [turn for turn in session.turns if turn.is_billed]
    key = {
        (response.message_id, response.usage, response.model, response.at, response.thread, response.final)
        for response in responses
    }
    assert key == {
        (turn.message_id, turn.usage, turn.model, turn.started, turn.thread, turn.complete) for turn in billed
    }
    assert len(responses) == len(billed)
    assert {(response.session, response.project, response.agent) for response in responses} == {
        (session.id, session.project, "pi")
    }


def test_the_conversation_and_its_tools_match_the_scripted_scenario() -> None:
    session = read_real("0.74.2/tools")
    assert shown(session) == [
        (
            "List the files",
            [
                ["Let me look.", ">bash", ">read", "<", "<"],
                [">read", "<failed"],
                ["Two files, and missing.txt does not exist."],
            ],
        ),
        ("Now write a note", [["Writing it.", ">write", "<"], ["note.txt is written."]]),
    ]
    assert [(exchange.complete, exchange.end_reason, exchange.left) for exchange in session.exchanges] == [
        (True, "result", False)
    ] * 2
    assert [call.kind for call in session.tool_calls] == ["shell", "read", "read", "write"]
    assert session.tool_calls[0].result == "README.md\nhello.py\n"
    assert session.tool_calls[3].input == {"path": "note.txt", "content": "a note\n"}
    seconds = [
        (call.ended - call.started).total_seconds() for call in session.tool_calls if call.ended and call.started
    ]
    assert seconds == [0.028, 0.028, 0.003, 0.003]
    assert session.files == ["hello.py", "missing.txt", "note.txt"]


def test_a_session_has_its_id_title_project_and_times() -> None:
    session = read_real("0.74.2/tools")
    assert (session.id, session.agent) == ("01a1e2ba-ccde-7457-b2d1-48282ed1a8f0", "pi")
    assert (session.title, session.project, session.parent) == ("List the files", "/home/user/project", None)
    assert session.started and session.started.isoformat() == "2026-11-16T05:00:55.390000+00:00"
    assert session.ended and session.ended.isoformat() == "2026-11-16T05:00:57.064000+00:00"
    turn = session.turns[0]
    assert (turn.model, turn.stop_reason, turn.complete) == ("gpt-fake-1", "tool_use", True)
    assert turn.started and turn.started.isoformat() == "2026-11-16T05:00:55.511000+00:00"


@pytest.mark.parametrize("version", ["0.74.2", "0.87.1"])
def test_abandoned_branches_are_marked_and_billed(version: str) -> None:
    session = read_real(f"{version}/tree")
    assert [(exchange.user_input, exchange.origin, exchange.left) for exchange in session.exchanges] == [
        ("List the files", None, False),
        ("Go the wrong way", None, True),
        ("Go the right way", None, False),
        ("And you?", None, True),
        ("And then?", None, False),
        ("hello there", "say", False),
        ("Still there?", None, False),
    ]
    assert shown(session)[0][1] == [
        ["(I should look.)", "Let me look.", ">bash", ">read", "<", "<failed"],
        ["Two files."],
    ]
    assert shown(session)[2][1] == [["That\u2028is right."]]
    assert [turn.model for turn in session.turns if turn.thread == "main"] == [
        *["claude-fake-1"] * 4,
        "gpt-fake-1",
        *["claude-fake-1"] * 3,
    ]
    assert session.title == "Files of the project"
    assert [(compaction.tokens_before, compaction.thread) for compaction in session.compactions] == [(1233, "main")]


def test_summaries_are_billed_where_the_file_has_their_usage() -> None:
    assert read_real("0.74.2/tree").side_turns == []
    session = with_remainders(read_real("0.87.1/tree"))
    [branch], [compaction] = session.side_turns, session.not_itemised  # two calls, because it split a turn
    assert total([branch.usage, compaction.usage]) == truth_of(DATA / "pi/0.87.1/tree", "side")
    assert (branch.model, branch.thread, compaction.model) == ("claude-fake-1", "side", "claude-fake-1")


def test_a_summary_of_two_calls_that_the_proxy_saw_is_counted_once() -> None:
    [path] = files_of("0.87.1/tree")
    responses, totals = pi.billed_of(opened(path))
    [reported] = totals
    [whole] = [model.usage for model in reported.total.models if model.usage]
    halves = [
        replace(
            responses[-1], message_id=f"msg_{part}", usage=part, at=reported.total.ended, witnesses=frozenset({"wire"})
        )
        for part in (Usage(input_tokens=1), whole - Usage(input_tokens=1))
    ]
    ledger = Ledger()
    ledger.add([*responses, *halves])
    ledger.add_totals(totals)
    assert total(row.usage for row in ledger.rows()) == total(
        [*(response.usage for response in responses), *(half.usage for half in halves)]
    )


def test_a_cost_is_reported_where_pi_has_a_price() -> None:
    responses = responses_in(files_of("0.87.1/tree"))
    assert [(response.model, response.reported_cost_usd) for response in responses[3:6]] == [
        ("claude-fake-1", 0.0008977500000000001),
        ("gpt-fake-1", None),  # written as 0
        ("claude-fake-1", 0.001368),
    ]


def test_failed_aborted_and_killed_exchanges_have_their_end_reasons() -> None:
    session = read_real("0.74.2/failures")
    assert [(exchange.user_input, exchange.complete, exchange.end_reason) for exchange in session.exchanges] == [
        ("Fail please", False, "failed"),
        ("Try again", True, "result"),
        ("Cut it", True, "result"),
        ("Run something long", False, "input"),  # the tool never came back
        ("Go on", True, "result"),
        ("Abort me", False, "cut"),
        ("And now?", True, "result"),
        ("Kill me", False, "input"),
        ("Once more", True, "result"),
    ]
    [refused] = session.exchanges[0].turns
    assert refused.error and refused.error.startswith("400 ")
    assert (refused.is_billed, refused.usage, refused.complete) == (False, None, False)
    assert shown(session)[2][1] == [["This answer is cut in the middle o"], ["Whole at last."]]


def test_an_interrupted_response_counts_its_reported_usage() -> None:
    cut = [response for response in responses_in(files_of("0.74.2/failures")) if not response.final]
    assert [response.usage and response.usage.output_tokens for response in cut] == [
        1,
        1,
    ]  # Anthropic counts at the beginning
    [unknown] = [response for response in responses_in(files_of("0.74.2/apis")) if not response.final]
    assert (unknown.usage, bool(unknown.message_id)) == (None, True)  # OpenAI at the end: zeros mean nothing


def test_message_ids_are_those_of_the_provider_for_every_api() -> None:
    folder = DATA / "pi/0.74.2/apis"
    requests = json.loads((folder / "manifest.json").read_text())["requests"]
    responses = responses_in(files_of("0.74.2/apis"))
    assert [response.message_id for response in responses] == [request["response_id"] for request in requests]
    families = ["openai", "openai", "gemini", "gemini", *["openai"] * 4]
    assert [response.family for response in responses] == families
    calls = read_real("0.74.2/apis").tool_calls
    assert [(call.name, call.is_error) for call in calls] == [
        ("bash", False),
        ("bash", True),
        ("read", False),
    ]
    assert re.fullmatch(r"call_\w+", calls[0].id or "")  # without the item's


def test_forks_name_their_parents_and_shared_responses_are_billed_once() -> None:
    sessions = {path: pi.session_of(opened(path)) for path in files_of("0.74.2/forks")}
    inputs = {tuple(exchange.user_input for exchange in session.exchanges): session for session in sessions.values()}
    first = inputs["First", "Second", "Seventh", "Eighth", "Ninth"]
    again = inputs["First", "Second, otherwise"]
    parents = {session.exchanges[-1].user_input: session.parent for session in sessions.values()}
    assert parents == {
        "Ninth": None,
        "Third": first.id,
        "Fourth": first.id,
        "Second, otherwise": first.id,
        "Sixth": again.id,
    }
    assert {path: pi.parent_of(opened(path)) for path in sessions} == {
        path: session.parent for path, session in sessions.items()
    }
    ledger = Ledger()
    ledger.add(responses_in(list(sessions)))
    rows = list(ledger.rows())
    assert len(rows) == 9
    assert total(row.usage for row in rows) == truth_of(DATA / "pi/0.74.2/forks")


def test_copied_responses_without_an_id_are_matched_by_time() -> None:
    fork = "/s/--p--/2026-01-01T00-00-00-000Z_s.jsonl"
    answer = entry("a", "u", assistant("Hi", responseId=None))
    once = lines(HEAD, entry("u", None, user("Go")), answer)
    copy = lines({**HEAD, "id": "t", "parentSession": fork}, entry("u", None, user("Go")), answer)
    ledger = Ledger()
    for file in (once, copy):
        ledger.add(pi.responses_of(source(file)))
    assert [row.copies for row in ledger.rows()] == [2]


# ---------------------------------------------------------------- made up

HEAD = {"type": "session", "version": 3, "id": "s", "timestamp": "2026-01-01T00:00:00.000Z", "cwd": "/p"}
USAGE = {"input": 10, "output": 5, "cacheRead": 7, "cacheWrite": 3, "totalTokens": 25, "cost": {"total": 0.5}}
NOTHING = {"input": 0, "output": 0, "cacheRead": 0, "cacheWrite": 0, "cost": {"total": 0}}


def entry(name: str | None, parent: str | None, message: Any, kind: str = "message") -> dict[str, Any]:
    body = {"message": message} if kind == "message" else message
    return {"type": kind, "id": name, "parentId": parent, "timestamp": "2026-01-01T00:00:02.000Z", **body}


def user(text: Any) -> dict[str, Any]:
    return {"role": "user", "content": text, "timestamp": 1767225601000}


def assistant(*parts: Any, **more: Any) -> dict[str, Any]:
    content = [{"type": "text", "text": part} if isinstance(part, str) else part for part in parts]
    head = {"role": "assistant", "content": content, "api": "anthropic-messages", "model": "m"}
    return {**head, "usage": USAGE, "stopReason": "stop", "timestamp": 1767225601500, **more}


def read(*values: Any) -> Session:
    return pi.session_of(source(lines(*values)))


def test_two_processes_writing_to_one_file_create_two_branches() -> None:
    session = read(
        HEAD,
        entry("u1", None, user("Go")),
        entry("a1", "u1", assistant("One")),
        entry("u2", "a1", user("Here")),
        entry("u3", "a1", user("There")),
        entry("a2", "u2", assistant("In the first")),
        entry("a3", "u3", assistant("In the second")),
    )
    assert [(*summary, exchange.left) for summary, exchange in zip(shown(session), session.exchanges, strict=True)] == [
        ("Go", [["One"]], False),
        ("Here", [["In the first"]], True),
        ("There", [["In the second"]], False),
    ]


def test_a_branch_can_start_inside_an_exchange_or_at_the_root() -> None:
    call = {"type": "toolCall", "id": "c", "name": "bash", "arguments": {}}
    first = [
        entry("u1", None, user("Go")),
        entry("a1", "u1", assistant(call, stopReason="toolUse")),
        entry("a2", "a1", assistant("Done")),
    ]
    middle = read(HEAD, *first, entry("u2", "a1", user("No")), entry("a3", "u2", assistant("Well")))
    assert [exchange.left for exchange in middle.exchanges] == [False, False]
    before = read(HEAD, *first, entry("u2", None, user("No")), entry("a3", "u2", assistant("Well")))
    assert [exchange.left for exchange in before.exchanges] == [True, False]


def test_a_missing_line_does_not_split_the_conversation() -> None:
    session = read(HEAD, entry("u1", None, user("Go")), entry("u2", "lost", user("On")))
    assert [exchange.left for exchange in session.exchanges] == [False, False]


CALL = {"type": "toolCall", "id": "call_1|fc_1", "name": "bash", "arguments": {"deep": [[{}]] * 90}}
RESULT = {"role": "toolResult", "toolCallId": "call_1", "content": "x", "timestamp": 1767225600500}  # before its call


@pytest.mark.parametrize(
    "answer",
    [
        pytest.param(assistant(CALL, "Hi"), id="a call with a result that has an earlier time"),
        pytest.param(assistant({"type": "toolCall", "id": 7}, "Hi"), id="a call whose id is a number"),
        pytest.param(assistant({"type": "toolCall", "id": "call_1"}, usage={"input": "?"}), id="counts that are none"),
        pytest.param(assistant("Hi", stopReason="aborted", usage=NOTHING), id="cut, with a text"),
        pytest.param(assistant(stopReason="aborted", usage=NOTHING), id="cut, without content"),
        pytest.param({**assistant(usage=NOTHING, stopReason="error"), "content": "Hi"}, id="content that is a text"),
        pytest.param(
            {**assistant(stopReason="error"), "content": ["Hi", {"type": []}]}, id="parts that are no objects"
        ),
        pytest.param({**assistant(), "content": [{"type": "text", "text": "\ud800"}]}, id="half of a character"),
    ],
)
def test_billed_responses_are_the_same_without_their_texts(answer: dict[str, Any]) -> None:
    after = [entry("b", "a", assistant("More")), entry("r", "b", RESULT)]
    given = [HEAD, entry("u", None, user("Go")), entry("a", "u", answer), *after]
    turns = [turn for exchange in read(*given).exchanges for turn in exchange.turns if turn.usage or turn.unread_usage]
    responses = list(pi.responses_of(source(lines(*given))))
    assert [(row.at, row.usage, row.model, row.final, row.message_id) for row in responses] == [
        (turn.started, turn.usage, turn.model, turn.complete, turn.message_id) for turn in turns
    ]


def test_a_duplicate_line_counts_once() -> None:
    answer = entry("a", "u", assistant("Hi", responseId="msg_1"))
    file = source(lines(HEAD, entry("u", None, user("Go")), answer, HEAD, answer))
    assert len(list(pi.responses_of(file))) == 1


def test_lines_of_the_first_version_without_ids_are_read() -> None:
    plain = [{"type": "message", "message": message} for message in (user("Go"), assistant("Hi"), user("On"))]
    session = read({**HEAD, "version": None}, *plain)
    assert shown(session) == [("Go", [["Hi"]]), ("On", [])]


@pytest.mark.parametrize(
    ("message", "counted"),
    [
        pytest.param(assistant("Hi"), [(15, True)], id="whole"),
        pytest.param(assistant("Hi", usage=NOTHING), [(None, True)], id="not counted by the provider"),
        pytest.param(assistant("Hi", usage={"input": "x"}), [(None, True)], id="not understood"),
        pytest.param(assistant("H", stopReason="aborted", responseId="i"), [(15, False)], id="aborted"),
        pytest.param(assistant(stopReason="error", usage=NOTHING), [], id="refused"),
        pytest.param(assistant(stopReason="error"), [(15, False)], id="an error that was billed"),
    ],
)
def test_only_responses_with_content_or_usage_are_counted(message: Any, counted: Any) -> None:
    responses = pi.responses_of(source(lines(HEAD, entry("a", None, message))))
    assert [
        (response.usage and response.usage.input_tokens + response.usage.output_tokens, response.final)
        for response in responses
    ] == (counted)


def test_usage_outside_responses_is_billed_as_side_turns() -> None:
    nested = {"role": "toolResult", "toolCallId": "c", "content": [], "usage": USAGE}
    warm = {"kind": "cache_warm", "provider": "p", "model": "warm", "usage": {**USAGE, "cacheWrite1h": 2}}
    session = read(
        HEAD,
        entry("u", None, user("Go")),
        entry("a", "u", assistant("Hi", responseModel="concrete")),
        entry("r", "a", nested),
        entry("w", "r", warm, "usage"),
    )
    assert [(turn.model, turn.thread) for turn in session.turns] == [
        ("concrete", "main"),
        (None, "side"),
        ("warm", "side"),
    ]
    assert session.turns[2].usage == Usage(
        input_tokens=10,
        output_tokens=5,
        cache_read_tokens=7,
        cache_write_tokens=3,
        cache_write_1h_tokens=2,
    )


@pytest.mark.parametrize(
    ("content", "typed"),
    [
        ("Go", "Go"),
        ([{"type": "text", "text": "Look"}, {"type": "image", "data": "", "mimeType": "image/png"}], "Look"),
        ([{"type": "image", "data": "", "mimeType": "image/png"}], "[image]"),
        ('<skill name="tidy" location="/s">\nLong text\n</skill>\n\nnow', "/skill:tidy now"),
        ('<skill name="tidy" location="/s">\nLong text\n</skill>', "/skill:tidy"),
    ],
)
def test_user_input_is_the_typed_text(content: Any, typed: str) -> None:
    session = read(HEAD, entry("u", None, user(content)))
    assert (session.exchanges[0].user_input, session.title) == (typed, typed)


def test_extension_messages_start_an_exchange_only_after_the_agent_finished() -> None:
    note = {"customType": "note", "content": "Mind this", "display": True}
    call = {"type": "toolCall", "id": "c", "name": "bash", "arguments": {}}
    session = read(
        HEAD,
        entry("u", None, user("Go")),
        entry("n1", "u", note, "custom_message"),
        entry("a1", "n1", assistant(call, stopReason="toolUse")),
        entry("n2", "a1", note, "custom_message"),
        entry("a2", "n2", assistant("Done")),
        entry("n3", "a2", {"role": "custom", **note}),
        entry("a3", "n3", assistant("Noted")),
    )
    assert [(exchange.user_input, exchange.origin, len(exchange.turns)) for exchange in session.exchanges] == [
        ("Go", None, 2),
        ("Mind this", "note", 1),
    ]


def test_a_session_can_start_with_an_extension_message() -> None:
    note = {"customType": "note", "content": "Mind this"}
    session = read(HEAD, entry("n", None, note, "custom_message"), entry("a", "n", assistant("Noted")))
    assert [(exchange.user_input, exchange.origin, len(exchange.turns)) for exchange in session.exchanges] == [
        ("Mind this", "note", 1)
    ]


def test_a_session_name_can_be_cleared() -> None:
    named = [entry(f"n{at}", None, {"name": name}, "session_info") for at, name in enumerate(["A ", ""])]
    assert read(HEAD, entry("u", None, user("Go")), named[0]).title == "A"
    assert read(HEAD, entry("u", None, user("Go")), *named).title == "Go"


@pytest.mark.parametrize(
    ("path", "parent"),
    [
        ("/h/.pi/agent/sessions/--p--/2026-11-16T13-13-28-416Z_01a1-b_c.jsonl", "01a1-b_c"),
        (r"C:\Users\u\.pi\agent\sessions\--p--\2026-11-16T13-13-28-416Z_01a1.jsonl", "01a1"),
        ("/elsewhere/mine.jsonl", None),
        (5, None),
    ],
)
def test_the_parent_id_is_read_from_the_path_of_the_parent_file(path: Any, parent: str | None) -> None:
    file = lines({**HEAD, "parentSession": path})
    assert (pi.parent_of(source(file)), pi.session_of(source(file)).parent) == (parent, parent)


def test_a_file_without_a_header_takes_its_id_from_the_file_name() -> None:
    file = source(lines(entry("u", None, user("Go"))), name="x/2026-11-16T13-13-28-416Z_01a1.jsonl")
    session = pi.session_of(file)
    assert (session.id, session.project, shown(session)) == ("01a1", None, [("Go", [])])
    assert pi.session_of(source(b"", name="x/mine.jsonl")).id == "mine"


def test_torn_and_damaged_lines_do_not_affect_other_lines(tmp_path: Path) -> None:
    [path] = files_of("0.74.2/tools")
    written = path.read_bytes().split(b"\n")
    written[5] = written[5][:100]
    torn = tmp_path / path.name
    torn.write_bytes(b"\n".join(written[:-2]) + b"\n" + written[-2][:200])
    assert shown(pi.session_of(opened(torn))) == [
        (
            "List the files",
            [
                ["Let me look.", ">bash", ">read", "<"],
                [">read", "<failed"],
                ["Two files, and missing.txt does not exist."],
            ],
        ),
        ("Now write a note", [["Writing it.", ">write", "<"]]),
    ]


@settings(max_examples=200, deadline=None, suppress_health_check=[HealthCheck.too_slow])
@given(broken(REAL_LINES))
def test_reading_damaged_files_never_raises(main: bytes) -> None:
    session = pi.session_of(source(main))
    responses = list(pi.responses_of(source(main)))
    assert total(response.usage for response in responses) == total(turn.usage for turn in session.turns)
    assert pi.parent_of(source(main)) in (None, session.parent)
    assert [exchange.number for exchange in session.exchanges] == list(range(1, len(session.exchanges) + 1))
    repr(session).encode()
    for call in session.tool_calls:
        (call.result or "").encode()


def test_cyclic_parents_are_read() -> None:
    session = read(
        HEAD,
        entry("a", "b", user("Go")),
        entry("b", "a", assistant("Hi")),
        entry("c", "c", user("On")),
    )
    assert [exchange.user_input for exchange in session.exchanges] == ["Go", "On"]


def test_an_empty_file_is_an_empty_session(tmp_path: Path) -> None:
    path = tmp_path / "2026-11-16T13-13-28-416Z_01a1.jsonl"
    path.touch()
    session = pi.session_of(opened(path))
    assert (session.id, session.exchanges, list(pi.responses_of(opened(path)))) == ("01a1", [], [])


def test_the_folder_for_sessions_alone_is_listed(home: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    [path] = files_of("0.74.2/tools")
    (home / "flat").mkdir()
    (home / "flat" / path.name).write_bytes(path.read_bytes())
    (home / "flat" / "other.jsonl").write_bytes(path.read_bytes())
    monkeypatch.setenv("PI_CODING_AGENT_SESSION_DIR", str(home / "flat"))
    with Catalog.open(home / ".agent-logger") as catalog:
        [row] = catalog.sessions()
    assert (row.agent, row.exchanges) == ("pi", 2)
