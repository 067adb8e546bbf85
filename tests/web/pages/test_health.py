"""What the page says of the disk."""

from pathlib import Path

from agent_logger.home.facts import register_log_folder
from agent_logger.web.pages.health import health_report


def test_a_folder_within_another_is_counted_once(tmp_path: Path) -> None:
    home, folder = tmp_path / "home", tmp_path / "sessions"
    for inner in (home / "projects", folder / "logs" / "anthropic"):
        inner.mkdir(parents=True)
    for known in (folder, folder / "logs"):
        register_log_folder(home, known)
    found = health_report(home)
    assert [it.path for it in found.folders] == [str(folder)]
    assert found.home and found.home.path == str(home)
