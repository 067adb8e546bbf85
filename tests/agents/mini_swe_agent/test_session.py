"""Trajectories of mini-swe-agent: a document for each run, with the whole answers of the API."""

import json
from pathlib import Path
from typing import Any

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from agent_logger.agents.cline.document import entries_of
from agent_logger.agents.mini_swe_agent import AGENT
from agent_logger.agents.mini_swe_agent import session as mini
from agent_logger.agents.mini_swe_agent.files import MESSAGE
from agent_logger.agents.registry import recognise, resume_command
from agent_logger.agents.source_files import File, SourceFiles
from agent_logger.catalog.ledger.ledger import Ledger
from agent_logger.logs.reader import read_session
from agent_logger.model.session import Session
from tests.agents.foreign import DATA, scenarios, shown, total
from tests.agents.recorded import read_home, recording

FOLDERS = scenarios("mini-swe-agent")
RECORDED = DATA / "mini-swe-agent/2.4.6"
DOCUMENTS = sorted(RECORDED.glob("*/home/**/*.json"))
DONE = "echo COMPLETE_TASK_AND_SUBMIT_FINAL_OUTPUT && echo "


def read_real(scenario: str) -> Session:
    [(session, _)] = read_home(AGENT, RECORDED / scenario / "home").values()
    return session


def opened(data: bytes, name: str = "run.traj.json") -> SourceFiles:
    return SourceFiles(File(name, list(entries_of(data, MESSAGE))))


def read(*messages: dict[str, Any], **info: Any) -> Session:
    return mini.session_of(opened(json.dumps({"info": info, "messages": messages}).encode()))


# ---------------------------------------------------------------- real files


@pytest.mark.parametrize("folder", FOLDERS, ids=lambda folder: folder.relative_to(DATA).as_posix())
def test_every_complete_response_is_billed_once_with_its_vendor_id(folder: Path) -> None:
    ledger = Ledger()
    sessions = read_home(AGENT, folder / "home").values()
    for _, responses in sessions:
        ledger.add(responses)
    rows = list(ledger.rows())
    expected = recording(folder)
    assert total(row.usage for row in rows) == expected.usage(["main"])
    assert len(rows) == len(expected.of(["main"]))
    ids = {response.message_id for _, responses in sessions for response in responses}
    assert ids == {response.id for response in expected.of(["main"])}


@pytest.mark.parametrize("folder", FOLDERS, ids=lambda folder: folder.relative_to(DATA).as_posix())
def test_responses_match_the_billed_turns_of_the_session(folder: Path) -> None:
    for session, responses in read_home(AGENT, folder / "home").values():
        billed = [turn for turn in session.turns if turn.is_billed]
        assert [
            (response.message_id, response.usage, response.model, response.at, response.thread)
            for response in responses
        ] == [(turn.message_id, turn.usage, turn.model, turn.started, turn.thread) for turn in billed]
        assert all(response.at for response in responses)


def test_the_conversation_and_its_commands_match_the_scripted_scenario() -> None:
    session = read_real("tools")
    assert shown(session) == [
        (
            "List the files",
            [["I will look.", ">bash", "<"], ["A missing one.", ">bash", "<failed"], ["Done.", ">bash", "<"]],
        )
    ]
    assert [call.kind for call in session.tool_calls] == ["shell"] * 3
    assert session.tool_calls[0].input == {"command": "ls -1"}
    assert session.tool_calls[0].result == "README.md\nhello.py\n"
    [exchange] = session.exchanges
    assert (exchange.end_reason, session.project, session.turns[0].model) == ("result", None, "gpt-fake-1")
    assert session.started and session.started.isoformat() == "2026-11-16T05:08:22.089041+00:00"


def test_answers_without_a_valid_command_are_turns() -> None:
    session = read_real("format_errors")
    assert shown(session) == [
        (
            "Do it\n\nin two\u2028paragraphs",
            [
                ["Look.", ">bash", "<"],
                ["I forgot the command."],
                [">python"],
                ["Three.", ">bash", ">bash", ">bash", "<", "<failed", "<failed"],
                ["Done.", ">bash", "<"],
            ],
        )
    ]


def test_commands_in_the_text_of_an_answer_are_tool_calls() -> None:
    session = read_real("text")
    assert [(call.input["command"], call.result) for call in session.tool_calls] == [
        ("ls -1", "README.md\nhello.py\n"),
        (f"{DONE}done", None),
    ]
    assert [exchange.user_input for exchange in session.exchanges] == ["List in text"]


def test_answers_of_the_responses_api_are_read() -> None:
    assert shown(read_real("responses")) == [
        ("Responses API", [["Look.", ">bash", "<"], ["I forgot the command."], ["Done.", ">bash", "<"]])
    ]


@pytest.mark.parametrize("scenario", ["failed", "limit"])
def test_a_run_that_did_not_submit_has_failed(scenario: str) -> None:
    assert [exchange.end_reason for exchange in read_real(scenario).exchanges] == ["failed"]


# ---------------------------------------------------------------- finding


def test_sessions_are_named_after_their_files_and_their_first_response() -> None:
    names = sorted(read_home(AGENT, RECORDED / "two_runs/home"))
    assert [name.rpartition("-")[0] for name in names] == ["one", "two"]
    assert len({name.rpartition("-")[2] for name in names}) == 2


def test_other_documents_in_the_folder_are_no_sessions(tmp_path: Path) -> None:
    (tmp_path / "package.json").write_text('{"name": "x", "messages": []}')
    (tmp_path / "info.json").write_text('{"info": {"title": "An API"}}')
    (tmp_path / "half.json").write_text('{"info": ')
    (tmp_path / "empty.json").touch()
    assert read_home(AGENT, tmp_path) == {}


def test_a_copy_is_recognised_by_its_content(tmp_path: Path) -> None:
    for path in DOCUMENTS:
        copy = tmp_path / "anything"
        copy.write_bytes(path.read_bytes())
        assert recognise(copy.as_posix(), copy.read_bytes()[:65536]) is AGENT
        assert read_session(copy).turns


def test_sessions_cannot_be_resumed() -> None:
    assert resume_command("mini-swe-agent", "run-12345678") is None


# ---------------------------------------------------------------- damage


@pytest.mark.parametrize("kind", ["cut", "NUL", "half", "separator"])
def test_damage_loses_only_what_is_damaged(kind: str) -> None:
    data = (RECORDED / "format_errors/home/project/runs/format.json").read_bytes()
    assert data.count(b"I forgot the command.") == 1
    start = data.index(b"I forgot the command.") - 30
    damaged = {
        "cut": data[:start],
        "NUL": data[:start] + b"\0" * 40 + data[start + 40 :],
        "half": data[:start] + data[start + 200 :],
        "separator": data[:start] + "\u2028".encode() + b'"' + data[start + 5 :],
    }[kind]
    session = mini.session_of(opened(damaged))
    texts = [turn[:1] for turn in shown(session)[0][1]]
    assert session.exchanges[0].user_input == "Do it\n\nin two\u2028paragraphs"
    assert texts[0] == ["Look."]
    if kind != "cut":
        assert texts[-2:] == [["Three."], ["Done."]]
        assert session.usage.input_tokens >= 110
    assert total(response.usage for response in mini.responses_of(opened(damaged))) == session.usage


@settings(max_examples=150, deadline=None, suppress_health_check=[HealthCheck.too_slow])
@given(
    st.sampled_from(DOCUMENTS),
    st.lists(st.tuples(st.integers(0, 20_000), st.integers(0, 300), st.binary(max_size=12)), max_size=3),
)
def test_reading_damaged_files_never_raises(path: Path, cuts: list[tuple[int, int, bytes]]) -> None:
    data = path.read_bytes()
    for start, length, put in cuts:
        data = data[: start % (len(data) + 1)] + put + data[start % (len(data) + 1) + length :]
    session = mini.session_of(opened(data))
    responses = list(mini.responses_of(opened(data)))
    assert total(response.usage for response in responses) == total(turn.usage for turn in session.turns)
    assert len(responses) == sum(turn.is_billed for turn in session.turns)
    repr(session).encode()


# ---------------------------------------------------------------- single messages

ASKED = {"role": "user", "content": "Task"}


def answer(**response: Any) -> dict[str, Any]:
    return {"role": "assistant", "content": "Hi", "extra": {"response": response, "timestamp": 1.5}}


@pytest.mark.parametrize(
    ("model", "given_id", "expected"),
    [
        ("anthropic/claude-x", "chatcmpl-0b3c1f7e-0000-4000-8000-000000000000", None),
        ("claude-x", "chatcmpl-0b3c1f7e-0000-4000-8000-000000000000", "chatcmpl-0b3c1f7e-0000-4000-8000-000000000000"),
        (
            "openai/gpt-x",
            "chatcmpl-0b3c1f7e-0000-4000-8000-000000000000",
            "chatcmpl-0b3c1f7e-0000-4000-8000-000000000000",
        ),
        ("anthropic/claude-x", "msg_01ABCDEFGHIJKLMNOP", "msg_01ABCDEFGHIJKLMNOP"),
        ("openai/gpt-x", "resp_not base64", "resp_not base64"),
        ("openai/gpt-x", None, None),
    ],
)
def test_ids_that_were_made_on_this_machine_are_left_out(model: str, given_id: Any, expected: str | None) -> None:
    [turn] = read(ASKED, answer(id=given_id), config={"model": {"model_name": model}}).turns
    assert turn.message_id == expected


def test_the_cache_of_anthropic_is_counted_apart() -> None:
    usage = {
        "prompt_tokens": 100,
        "completion_tokens": 5,
        "cache_read_input_tokens": 60,
        "cache_creation_input_tokens": 30,
    }
    [turn] = read(ASKED, answer(usage=usage)).turns
    assert turn.usage and turn.usage.counts == (10, 5, 60, 30, 0)


def test_tokens_that_the_answer_does_not_count_are_unknown() -> None:
    [turn] = read(ASKED, answer(id="x")).turns
    assert (turn.usage, turn.is_billed) == (None, True)


def test_words_of_a_person_during_the_run_begin_an_exchange() -> None:
    def said(kind: str, content: str) -> dict[str, Any]:
        return {"role": "user", "content": content, "extra": {"interrupt_type": kind}}

    session = read(
        ASKED,
        answer(),
        said("UserNewTask", "The user added a new task: Another"),
        answer(),
        said("UserInterruption", "Interrupted by user: Stop"),
        said("UserInterruption", "Interrupted by user: Temporary interruption caught."),
        said("FormatError", "No tool calls found"),
    )
    assert [exchange.user_input for exchange in session.exchanges] == ["Task", "Another", "Stop"]


@pytest.mark.parametrize(
    ("template", "text", "task"),
    [
        ("Fix: {{ task }}\nRules: {{cwd}}", "Fix: a\n\nb\nRules: /x", "a\n\nb"),
        ("{{task}}", "a", "a"),
        ("Fix {{task}}{% if x %}y{% endif %}", "Fix a", "a"),
        ("[removed]", "Please solve this issue: a\n\nYou can execute bash commands and", "a"),
        (None, "<pr_description>\nConsider the following PR description:\na\n</pr_description>\nb", "a"),
        (None, "Anything else", "Anything else"),
    ],
)
def test_the_task_is_taken_out_of_its_template(template: str | None, text: str, task: str) -> None:
    config = {"agent": {"instance_template": template}}
    session = read({"role": "system", "content": "s"}, {"role": "user", "content": text}, config=config)
    assert session.exchanges[0].user_input == task
