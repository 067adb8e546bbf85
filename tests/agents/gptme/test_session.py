"""gptme's sessions: a conversation of messages, with tool calls in their text."""

import shutil
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from hypothesis import HealthCheck, given, settings

from agent_logger.agents.gptme import AGENT
from agent_logger.agents.gptme import session as gptme
from agent_logger.agents.registry import recognise, resume_command
from agent_logger.catalog.ledger.ledger import Ledger
from agent_logger.files.sources import StampCache
from agent_logger.logs.reader import read_session
from agent_logger.model.session import Session, Usage
from tests.agents.foreign import DATA, broken, lines, scenarios, shown, source, total
from tests.agents.recorded import read_home, recording

FOLDERS = scenarios("gptme")
RECORDED = DATA / "gptme/0.35.1"
REAL_LINES = [
    line
    for path in sorted(DATA.glob("gptme/*/*/home/**/conversation.jsonl"))
    for line in path.read_bytes().split(b"\n")
    if line
]
IN_FILE = ("main", "subagent")


@pytest.fixture(autouse=True)
def local_times_are_utc(monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    monkeypatch.setenv("TZ", "UTC")
    time.tzset()
    yield
    monkeypatch.undo()
    time.tzset()


def read_real(scenario: str) -> Session:
    [(session, _)] = read_home(AGENT, RECORDED / scenario / "home").values()
    return session


# ---------------------------------------------------------------- real files


@pytest.mark.parametrize("folder", FOLDERS, ids=lambda folder: folder.relative_to(DATA).as_posix())
def test_every_complete_response_is_billed_once_over_all_files(folder: Path) -> None:
    ledger = Ledger()
    for _, responses in read_home(AGENT, folder / "home").values():
        ledger.add(responses)
    rows = list(ledger.rows())
    expected = recording(folder)
    assert total(row.usage for row in rows) == expected.usage(IN_FILE)
    assert len(rows) == len(expected.of(IN_FILE))


@pytest.mark.parametrize("folder", FOLDERS, ids=lambda folder: folder.relative_to(DATA).as_posix())
def test_responses_match_the_billed_turns_of_the_session(folder: Path) -> None:
    for session, responses in read_home(AGENT, folder / "home").values():
        billed = [turn for turn in session.turns if turn.is_billed]
        assert sorted(
            repr((response.usage, response.model, response.at, response.thread, response.final))
            for response in responses
        ) == sorted(repr((turn.usage, turn.model, turn.started, turn.thread, turn.complete)) for turn in billed)
        assert {(response.session, response.project) for response in responses} == {(session.id, session.project)}


def test_the_conversation_and_its_tools_match_the_scripted_scenario() -> None:
    session = read_real("tools")
    assert shown(session) == [
        (
            "List the files",
            [
                ["I will look.", ">shell", "<"],
                [">shell", "<failed"],
                ["Two files; missing.txt is not there.", ">complete", "<"],
            ],
        ),
        ("What is the function called?", [["The function is greet.", ">complete", "<"]]),
    ]
    assert (session.id, session.title, session.project) == ("demo-tools", "Short title 0", "/home/user/project")
    assert [exchange.end_reason for exchange in session.exchanges] == ["result", "result"]
    first = session.tool_calls[0]
    assert (first.id, first.kind, first.input) == ("call_0AlyxIJU1Hy8tWMSvBEkKtSr", "shell", {"command": "ls -1"})
    turn = session.turns[0]
    assert (turn.model, turn.message_id) == ("gpt-4o", None)
    assert turn.started and turn.started.isoformat() == "2026-11-16T05:09:14.503310+00:00"


def test_blocks_of_code_are_tool_calls() -> None:
    session = read_real("markdown")
    assert [[call.name for call in turn.tool_calls] for turn in session.turns] == [
        ["shell"],
        ["save", "shell"],
        ["ipython"],
        ["complete"],
    ]
    assert [call.is_error for call in session.tool_calls] == [False, False, True, False, False]
    assert [call.kind for call in session.tool_calls] == ["shell", "write", "shell", "shell", "other"]
    assert session.tool_calls[1].input == {"arguments": ["note.txt"], "content": "hello\n"}


def test_reminders_in_the_name_of_the_user_begin_no_exchange() -> None:
    assert [exchange.user_input for exchange in read_real("markdown").exchanges] == ["List\u2028the files\nsecond line"]


def test_parallel_tool_calls_have_their_own_results() -> None:
    calls = read_real("parallel").turns[0].tool_calls
    assert [(call.name, call.is_error) for call in calls] == [("shell", False), ("shell", True), ("save", False)]
    assert calls[2].input == {"path": "a.txt", "content": 'x {y} "z"'}


def test_prompts_without_an_answer_have_failed() -> None:
    session = read_real("failures")
    assert [(exchange.user_input, exchange.end_reason, len(exchange.turns)) for exchange in session.exchanges] == [
        ("Cut it", "failed", 0),
        ("After", "result", 1),
        ("Fail please", "failed", 0),
        ("The end", "result", 1),
    ]


def test_a_sub_agent_is_a_thread_of_the_session_that_started_it() -> None:
    session = read_real("subagent")
    assert [exchange.user_input for exchange in session.exchanges] == ["Ask an agent"]
    [agent] = session.agents
    assert (agent.thread, agent.parent_thread, agent.tool_use_id) == (
        "agent:counter",
        "main",
        "call_5sgWJ8wCjSBiYcQrUMrhUM",
    )
    assert [turn.thread for turn in session.turns] == ["main", "main", "agent:counter", "agent:counter"]


def test_undone_prompts_are_shown_as_taken_back_and_count() -> None:
    sessions = {name: session for name, (session, _) in read_home(AGENT, RECORDED / "undo_fork/home").items()}
    assert [(exchange.user_input, exchange.left) for exchange in sessions["source"].exchanges] == [
        ("First", False),
        ("Second", True),
        ("Third", False),
    ]
    assert sessions["forked"].exchanges[-1].user_input == "Fourth"
    assert len(sessions["forked"].exchanges) == 4


# ---------------------------------------------------------------- damage


def copied(tmp_path: Path, scenario: str) -> Path:
    home = tmp_path / "recorded"
    shutil.copytree(RECORDED / scenario / "home", home)
    return home


@pytest.mark.parametrize("kind", ["cut", "NUL", "half", "glued", "separator"])
def test_damage_loses_only_what_is_damaged(kind: str, tmp_path: Path) -> None:
    home = copied(tmp_path, "tools")
    [path] = home.rglob("conversation.jsonl")
    written = path.read_bytes().split(b"\n")
    at = next(number for number, line in enumerate(written) if b'"role": "system", "content": "Ran allow' in line)
    half, following = written[at][: len(written[at]) // 2], written[at + 1]
    written[at : at + 2] = {
        "cut": [half, following],
        "NUL": [b"\0" * len(half), following],
        "half": [half, b"{", b"5", following],
        "glued": [half + following],
        "separator": ["{\u2028".encode(), following],
    }[kind]
    path.write_bytes(b"\n".join(written))
    [(session, responses)] = read_home(AGENT, home).values()
    conversation = shown(session)
    assert conversation[0][1][0] == ["I will look.", ">shell"]  # only the result is lost
    assert conversation[0][1][1:] == shown(read_real("tools"))[0][1][1:]
    assert conversation[1:] == shown(read_real("tools"))[1:]
    assert total(response.usage for response in responses) == recording(RECORDED / "tools").usage(IN_FILE)


def test_a_session_without_its_settings_keeps_its_id(tmp_path: Path) -> None:
    home = copied(tmp_path, "tools")
    next(home.rglob("config.toml")).write_text("[chat\n")
    [(session, _)] = read_home(AGENT, home).values()
    assert (session.id, session.title, session.project) == ("demo-tools", "List the files", "/home/user/project")


def test_a_sub_agent_whose_description_is_damaged_is_a_session_of_its_own(tmp_path: Path) -> None:
    home = copied(tmp_path, "subagent")
    next(home.rglob("subagent-meta.json")).write_bytes(b'{"parent_logdir": "/')
    assert sorted(read_home(AGENT, home)) == ["parent", "subagent-counter-0ran"]


@settings(max_examples=200, deadline=None, suppress_health_check=[HealthCheck.too_slow])
@given(broken(REAL_LINES))
def test_reading_damaged_files_never_raises(main: bytes) -> None:
    session = gptme.session_of(source(main))
    responses = list(gptme.responses_of(source(main)))
    assert total(response.usage for response in responses) == total(turn.usage for turn in session.turns)
    assert len(responses) == sum(turn.is_billed for turn in session.turns)
    assert [exchange.number for exchange in session.exchanges] == list(range(1, len(session.exchanges) + 1))
    repr(session).encode()


# ---------------------------------------------------------------- finding


def test_a_copy_of_a_conversation_is_recognised_by_its_content(tmp_path: Path) -> None:
    for path in RECORDED.rglob("conversation.jsonl"):
        copy = tmp_path / "copy.jsonl"
        shutil.copy(path, copy)
        found = recognise(copy.as_posix(), copy.read_bytes()[:65536])
        assert found is AGENT
        assert read_session(copy).exchanges


def test_a_session_and_its_sub_agents_are_opened_by_the_main_file_alone() -> None:
    path = RECORDED / "subagent/home/.local/share/gptme/logs/parent/conversation.jsonl"
    assert read_session(path).usage == recording(RECORDED / "subagent").usage(IN_FILE)


def test_a_new_branch_or_title_changes_the_stamp_of_a_session(tmp_path: Path) -> None:
    home = copied(tmp_path, "tools")
    folder = next(home.rglob("conversation.jsonl")).parent

    def stamp() -> str:
        [found] = AGENT.discover([folder.parent], StampCache())
        return found.stamp

    before = stamp()
    (folder / "config.toml").write_text('[chat]\nname = "Another"\n')
    renamed = stamp()
    (folder / "branches").mkdir()
    (folder / "branches/main-undo-0.jsonl").write_text("")
    assert len({before, renamed, stamp()}) == 3


def test_sessions_are_resumed_by_name() -> None:
    assert resume_command("gptme", "demo-tools") == ["gptme", "--resume", "--name", "demo-tools"]


# ---------------------------------------------------------------- single lines


def message(role: str, content: str, at: int = 0, **fields: Any) -> dict[str, Any]:
    return {"role": role, "content": content, "timestamp": f"2026-01-01T10:00:{at:02}", **fields}


def read(*messages: dict[str, Any]) -> Session:
    return gptme.session_of(source(lines(*messages)))


def test_times_without_a_zone_are_local(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("TZ", "Asia/Tokyo")
    time.tzset()
    session = read(message("user", "Hi"))
    assert session.started and session.started.isoformat() == "2026-01-01T01:00:00+00:00"


def test_tokens_that_were_not_counted_are_unknown() -> None:
    [turn] = read(message("user", "Hi"), message("assistant", "Hello", 1)).turns
    assert (turn.usage, turn.is_billed, turn.model) == (None, True, None)


def test_tokens_of_older_versions_stand_beside_the_model() -> None:
    flat = {"model": "anthropic/claude-sonnet-4", "input_tokens": 3, "output_tokens": 2, "cache_creation_tokens": 1}
    [turn] = read(message("user", "Hi"), message("assistant", "Hello", 1, metadata=flat)).turns
    assert turn.model == "claude-sonnet-4"
    assert turn.usage == Usage(input_tokens=3, output_tokens=2, cache_write_tokens=1)


def test_an_interrupted_answer_is_not_complete() -> None:
    session = read(
        message("user", "Hi"),
        message("assistant", "Hel... ^C Interrupted", 1),
        message("system", "Interrupted by user", 2),
    )
    assert (session.turns[0].complete, session.exchanges[0].end_reason) == (False, "cut")


def test_several_messages_of_one_call_are_one_result() -> None:
    session = read(
        message("user", "Hi"),
        message("assistant", '@shell(call_1): {"command": "ls"}', 1),
        message("system", "One", 2, call_id="call_1"),
        message("system", "Two", 3, call_id="call_1"),
    )
    [call] = session.tool_calls
    assert call.result == "One\n\nTwo"


def test_calls_in_examples_are_text() -> None:
    text = 'So:\n```\n@shell(call_1): {"command": "ls"}\n```\nThat is all.'
    [turn] = read(message("user", "How?"), message("assistant", text, 1)).turns
    assert [block.kind for block in turn.blocks] == ["text"]


@pytest.mark.parametrize(
    ("metadata", "tools"),
    [
        ({"timings": {"tool_ms_by_name": {"ipython": 3}}}, ["ipython"]),
        ({"timings": {"ttft_ms": 3}}, []),
        ({}, ["shell", "ipython"]),
    ],
)
def test_a_block_of_code_is_a_call_only_if_the_tool_ran(metadata: dict[str, Any], tools: list[str]) -> None:
    text = "Look:\n```shell\nls\n```\n```python\nprint(1)\n```\n```toml\na = 1\n```\n"
    calls = read(message("user", "Go"), message("assistant", text, 1, metadata=metadata)).tool_calls
    assert [call.name for call in calls] == tools


def test_calls_in_xml_are_tool_calls() -> None:
    text = "Look.\n<tool-use>\n<shell>\nls -1\n</shell>\n</tool-use>"
    result = message("system", "a\n\nReturn code: 2", 2)
    [call] = read(message("user", "Go"), message("assistant", text, 1), result).tool_calls
    assert (call.name, call.input, call.is_error) == ("shell", "\nls -1\n", True)


@pytest.mark.parametrize(
    ("result", "failed"),
    [
        ("Ran command: `false`\n\nNo output\n\nReturn code: 1\n", True),
        ("Ran command: `./check`\n\n```stdout\nfirst\nReturn code: 1\n```\n\n", False),
        ("Tool 'read' is not available for execution. Add --tools +read to enable it.", True),
        ("Error executing tool 'save': [Errno 13] Permission denied: '/a'", True),
        ("Error during execution: no patch", True),
        ("Error parsing patches: no path", True),
        ("Error: No patch provided by the assistant", True),
        ("Command timed out (after 5s): `sleep 9`\n\nNo output before timeout\n", True),
        ("File not found: /a", True),
        ("Append aborted: Content contains placeholder lines", True),
        ("Atomic patch aborted: no patches were provided.", True),
        ("Errors are listed in `log.txt`.", False),
        ("Saved to `a.txt`", False),
    ],
)
def test_a_tool_has_failed_if_its_result_says_so(result: str, failed: bool) -> None:
    call = message("assistant", '@shell(call_1): {"command": "ls"}', 1)
    [found] = read(message("user", "Go"), call, message("system", result, 2, call_id="call_1")).tool_calls
    assert found.is_error is failed


def test_the_input_of_a_call_that_is_cut_is_kept_as_text() -> None:
    [call] = read(message("user", "Go"), message("assistant", '@save(call_1): {"path": "a', 1)).tool_calls
    assert call.input == '{"path": "a'


def test_a_compaction_keeps_the_whole_conversation(tmp_path: Path) -> None:
    folder = tmp_path / ".local/share/gptme/logs/long"
    folder.mkdir(parents=True)
    old = [message("user", "Old"), message("assistant", "Answer", 1, metadata={"usage": {"input_tokens": 5}})]
    new = [message("user", "New", 5), message("assistant", "Another", 6, metadata={"usage": {"input_tokens": 7}})]
    (folder / "lossless.jsonl").write_bytes(lines(*old, *new))
    (folder / "conversation.jsonl").write_bytes(lines(message("system", "Summary", 4), *new))
    [(session, responses)] = read_home(AGENT, tmp_path).values()
    assert [exchange.user_input for exchange in session.exchanges] == ["Old", "New"]
    assert sum(response.usage.input_tokens for response in responses if response.usage) == 12


def test_a_compaction_is_marked_and_its_summary_is_no_answer(tmp_path: Path) -> None:
    folder = tmp_path / ".local/share/gptme/logs/long"
    folder.mkdir(parents=True)
    billed = {"usage": {"input_tokens": 5, "output_tokens": 1}}
    begin = message("system", "Prompt", 0)
    old = [message("user", "Old", 1), message("assistant", "Answer", 2, metadata=billed)]
    summary = [
        message("system", "Resumed from:", 3, metadata={"compaction_artifact": "intro"}),
        message("assistant", "Summary", 4),
    ]
    new = [message("user", "New", 5), message("assistant", "Another", 6, metadata=billed)]
    (folder / "lossless.jsonl").write_bytes(lines(begin, *old, *new))
    (folder / "conversation.jsonl").write_bytes(lines(begin, *summary, *new))
    [(session, responses)] = read_home(AGENT, tmp_path).values()
    assert shown(session) == [("Old", [["Answer"]]), ("New", [["Another"]])]
    assert len(responses) == 2
    assert [compaction.at and compaction.at.second for compaction in session.compactions] == [4]


@pytest.mark.parametrize("other", ["lossless.jsonl", "branches/main-undo-0.jsonl"])
def test_prompts_of_one_command_line_have_the_same_time_and_keep_their_order(other: str, tmp_path: Path) -> None:
    folder = tmp_path / ".local/share/gptme/logs/queue"
    (folder / "branches").mkdir(parents=True)
    first = [message("user", "First", 0), message("assistant", "One", 5)]
    second = [message("user", "Second", 0, timestamp="2026-01-01T10:00:00.1"), message("assistant", "Two", 7)]
    (folder / "conversation.jsonl").write_bytes(lines(*first, *second))
    (folder / other).write_bytes(lines(*first, message("system", "Task complete.", 6)))
    [(session, _)] = read_home(AGENT, tmp_path).values()
    assert shown(session) == [("First", [["One"]]), ("Second", [["Two"]])]


def test_branches_that_begin_at_the_same_message_are_in_the_order_of_their_numbers(tmp_path: Path) -> None:
    folder = tmp_path / ".local/share/gptme/logs/undone"
    (folder / "branches").mkdir(parents=True)
    begin = message("user", "First", 0)
    for number in range(11):
        undone = message("user", f"Undone {number}", 20 - number)
        (folder / f"branches/main-undo-{number}.jsonl").write_bytes(lines(begin, undone))
    (folder / "conversation.jsonl").write_bytes(lines(begin, message("user", "Last", 30)))
    [(session, _)] = read_home(AGENT, tmp_path).values()
    prompts = [exchange.user_input for exchange in session.exchanges]
    assert prompts == ["First", *(f"Undone {number}" for number in range(11)), "Last"]
