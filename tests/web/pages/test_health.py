"""What the page says of the disk."""

from pathlib import Path

from agent_logger.home.facts import register_log_folder
from agent_logger.home.last_runs import note_last_run
from agent_logger.model.last_run import LastRun
from agent_logger.web.pages.health import health_report


def test_a_nested_log_folder_is_counted_once(tmp_path: Path) -> None:
    home, folder = tmp_path / "home", tmp_path / "sessions"
    for inner in (home / "projects", folder / "logs" / "anthropic"):
        inner.mkdir(parents=True)
    for known in (folder, folder / "logs"):
        register_log_folder(home, known)
    found = health_report(home)
    assert [it.path for it in found.folders] == [str(folder)]
    assert found.home and found.home.path == str(home)


def test_the_last_run_of_each_agent_is_shown_with_its_gaps(tmp_path: Path) -> None:
    assert list(health_report(tmp_path).runs) == []
    time_of = "2026-11-18T12:00:00.000Z"
    note_last_run(tmp_path, LastRun(agent="pi", ended=time_of, door="forward", requests=1))
    note_last_run(tmp_path, LastRun(agent="codex", ended=time_of, requests=2, not_trusted=("chatgpt.com",)))
    newest, older = health_report(tmp_path).runs
    assert (newest.agent, newest.captured) == ("codex", "2 requests recorded by its base URL")
    assert list(newest.gaps) == ["it does not trust the certificate of agent-logger: chatgpt.com"]
    assert (older.agent, older.captured) == ("pi", "1 request recorded through the forward door")
    assert (list(older.gaps), older.unread) == ([], None)
