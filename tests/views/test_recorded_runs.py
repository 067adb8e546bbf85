"""The words for what was recorded of a run, and for what was not; and where they are kept between runs."""

from pathlib import Path

from agent_logger.home.last_runs import FILE_NAME, last_runs, note_last_run
from agent_logger.model.last_run import LastRun
from agent_logger.views.recorded_runs import captured_text, gaps, no_requests_text, unread_text


def test_the_requests_are_counted_with_their_door() -> None:
    assert captured_text(LastRun(requests=3, door="forward")) == "3 requests recorded through the forward door"
    assert captured_text(LastRun(requests=1)) == "1 request recorded by its base URL"
    run = LastRun(reason="none_made")
    assert captured_text(run) == "0 requests recorded: the agent made no model request"
    assert list(gaps(run)) == [] and unread_text(run) is None


def test_each_gap_has_a_sentence() -> None:
    run = LastRun(requests=2, not_trusted=("a.example",), not_opened=("b.example",), missing=1)
    assert list(gaps(run)) == [
        "it does not trust the certificate of agent-logger: a.example",
        "it speaks another protocol than HTTP/1.1, which was not read: b.example",
        "it went around the proxy: 1 answer in its session file has no request",
    ]


def test_calls_that_are_not_understood_are_named_by_their_paths() -> None:
    run = LastRun(requests=2, not_understood=3, not_understood_paths=("/v1internal:completeCode",))
    text = "3 calls to models not understood, kept as bytes, tokens not counted: /v1internal:completeCode"
    assert list(gaps(run)) == [text]


def test_of_many_hosts_the_first_are_named() -> None:
    names = tuple(f"{letter}.example" for letter in "abcde")
    run = LastRun(unread=7, unread_hosts=names)
    assert unread_text(run) == "7 hosts reached unread: a.example, b.example, c.example and 4 more"


def test_answers_without_requests_are_explained_by_the_door() -> None:
    run = LastRun(reason="other_base_url", door="forward")
    assert no_requests_text(run) == "the agent has answers that did not come through the proxy"
    assert no_requests_text(LastRun(reason="other_base_url")) == "the agent's settings name another address"


def test_the_last_run_of_each_agent_is_known_to_the_next_process(tmp_path: Path) -> None:
    for run in (LastRun(agent="codex", requests=1), LastRun(agent="pi"), LastRun(agent="codex", requests=2), LastRun()):
        note_last_run(tmp_path, run)
    assert last_runs(tmp_path) == [LastRun(agent="pi"), LastRun(agent="codex", requests=2)]


def test_a_damaged_file_is_replaced(tmp_path: Path) -> None:
    (tmp_path / FILE_NAME).write_text("[{")
    assert last_runs(tmp_path) == []
    note_last_run(tmp_path, LastRun(agent="pi"))
    assert last_runs(tmp_path) == [LastRun(agent="pi")]
