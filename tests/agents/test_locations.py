"""Where agents keep their sessions, and what is found there."""

import os
import shutil
import sqlite3
from contextlib import closing
from pathlib import Path

import pytest

from agent_logger.agents import locations
from agent_logger.agents.base import AgentLocation
from agent_logger.agents.codex.files import sources_in
from agent_logger.agents.folders import agent_files, agent_folders
from agent_logger.agents.locations import folders_of, main_files
from agent_logger.agents.registry import AGENTS, agent_called, located, readable_agent
from agent_logger.files.sources import StampCache, source_at
from agent_logger.model.session import Usage

DATA = Path(__file__).parents[1] / "data"
PLACES = {agent.name: location for agent, location in located()}


def counts() -> dict[str, int]:
    """Of main files, by agent."""
    return {agent.name: len(files) for agent in AGENTS if (files := agent_files(agent))}


def files(agent: str) -> list[Path]:
    known = agent_called(agent)
    assert known
    return agent_files(known)


@pytest.fixture
def home(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """One home with everything that was recorded of the newest versions."""
    home = tmp_path / "user"
    for _, location in located():
        for name in filter(None, (location.variable, location.file_variable)):
            monkeypatch.delenv(name, raising=False)
    monkeypatch.setenv("HOME", str(home))
    for recorded in ("codex/0.166.0/app_server", "gemini-cli/0.61.0/exec_resume"):
        shutil.copytree(DATA / recorded / "home", home, dirs_exist_ok=True)
    folder = home / ".local/share/opencode"
    folder.mkdir(parents=True)
    with closing(sqlite3.connect(folder / "opencode.db")) as new:
        new.executescript((DATA / "opencode/1.18.33/agents_fork/opencode.sql").read_text())
    chat = home / ".qwen/projects/-p/chats/7b320356-a178-418e-a692-69ce6e1e657c.jsonl"
    chat.parent.mkdir(parents=True)
    chat.touch()
    return home


@pytest.mark.parametrize(
    ("agent", "environment", "folders"),
    [
        ("codex", {}, ["/h/.codex"]),
        ("codex", {"CODEX_HOME": "/c"}, ["/c"]),
        ("codex", {"CODEX_HOME": ""}, ["/h/.codex"]),
        ("codex", {"CODEX_HOME": "/one,two"}, ["/one,two"]),
        ("gemini-cli", {}, ["/h/.gemini"]),
        ("gemini-cli", {"GEMINI_CLI_HOME": "/g"}, ["/g/.gemini"]),
        ("opencode", {}, ["/h/.local/share/opencode"]),
        ("opencode", {"XDG_DATA_HOME": "/x"}, ["/x/opencode"]),
        ("kilo", {"XDG_DATA_HOME": "/x"}, ["/x/kilo"]),
        ("goose", {}, ["/h/.local/share/goose/sessions"]),
        ("goose", {"XDG_DATA_HOME": "/x"}, ["/x/goose/sessions"]),
        ("goose", {"XDG_DATA_HOME": "/x", "GOOSE_PATH_ROOT": "/g"}, ["/g/data/sessions"]),
        ("hermes", {}, ["/h/.hermes"]),
        ("hermes", {"HERMES_HOME": "/h/.hermes/profiles/work"}, ["/h/.hermes/profiles/work"]),
        ("openclaw", {}, ["/h/.openclaw"]),
        ("openclaw", {"OPENCLAW_STATE_DIR": "/o"}, ["/o"]),
        ("qwen-code", {}, ["/h/.qwen"]),
        ("claude-code", {}, ["/h/.claude", "/h/.config/claude"]),
        ("claude-code", {"CLAUDE_CONFIG_DIR": "/a, /b,,/a"}, ["/a", "/b"]),
    ],
)
def test_environment_variables_set_the_agent_folders(
    agent: str, environment: dict[str, str], folders: list[str]
) -> None:
    assert [str(it) for it in folders_of(PLACES[agent], environment, Path("/h"))] == folders


def test_main_files_of_every_agent_are_found(home: Path) -> None:
    assert counts() == {
        "codex": 3,
        "gemini-cli": 1,
        "opencode": 1,
        "qwen-code": 1,
    }


def test_archived_sessions_and_additional_databases_are_found(home: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (home / ".codex/archived_sessions").mkdir()
    (home / ".codex/archived_sessions/rollout-2026-x.jsonl").touch()
    (home / ".local/share/opencode/opencode-dev.db").touch()
    (home / "named.db").touch()
    assert len(files("codex")) == 4
    assert len(files("opencode")) == 2
    monkeypatch.setenv("OPENCODE_DB", str(home / "named.db"))
    assert home / "named.db" in files("opencode")
    monkeypatch.setenv("OPENCODE_DB", "opencode-dev.db")
    assert len(files("opencode")) == 2


def test_links_pipes_and_folders_are_not_listed(home: Path, tmp_path: Path) -> None:
    outside = tmp_path / "outside"
    shutil.copytree(home / ".codex/sessions/2026", outside)
    sessions = home / ".codex/sessions"
    (sessions / "2027").symlink_to(outside)
    day = sessions / "2026/11/15"
    (day / "rollout-link.jsonl").symlink_to(next(day.iterdir()))
    os.mkfifo(day / "rollout-fifo.jsonl")
    (day / "rollout-folder.jsonl").mkdir()
    (sessions / "loop").symlink_to(sessions)
    assert len(files("codex")) == 3


def test_the_agent_folder_itself_can_be_a_link(home: Path, tmp_path: Path) -> None:
    (home / ".codex").rename(tmp_path / "dotfiles")
    (home / ".codex").symlink_to(tmp_path / "dotfiles")
    assert len(files("codex")) == 3


def test_a_folder_reached_by_two_paths_lists_each_file_once(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    project = tmp_path / ".claude/projects/-p"
    project.mkdir(parents=True)
    (project / "0b3c1f7e-0000-4000-8000-000000000000.jsonl").touch()
    (tmp_path / ".config").mkdir()
    (tmp_path / ".config/claude").symlink_to(tmp_path / ".claude")
    monkeypatch.setenv("HOME", str(tmp_path))
    assert len(files("claude-code")) == 1


def test_the_number_of_listed_files_is_limited(home: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(locations, "MOST_FILES", 2)
    assert len(files("codex")) == 2


def test_a_missing_location_has_no_files(tmp_path: Path) -> None:
    place = AgentLocation(globs=("*/*.jsonl",), default=("gone",))
    assert main_files(place, [tmp_path / "gone"]) == []


def test_codex_home_moves_the_folder_that_is_searched(home: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("CODEX_HOME", str(home / "elsewhere"))
    assert counts() == {
        "gemini-cli": 1,
        "opencode": 1,
        "qwen-code": 1,
    }


# ---------------------------------------------------------------- sources


@pytest.mark.parametrize(
    ("agent", "sessions", "responses", "usage"),
    [
        ("codex", 2, 8, Usage(input_tokens=395, output_tokens=400, cache_read_tokens=3801)),
        ("gemini-cli", 1, 3, Usage(input_tokens=410, output_tokens=50, cache_read_tokens=110)),
        (
            "opencode",
            2,
            8,
            Usage(input_tokens=148, output_tokens=224, cache_read_tokens=14250, cache_write_tokens=1421),
        ),
    ],
)
def test_discovered_sessions_have_the_expected_usage(
    home: Path, agent: str, sessions: int, responses: int, usage: Usage
) -> None:
    reader = readable_agent(agent)
    assert reader
    sources = reader.discover(agent_folders(reader.location), StampCache())
    found = [reader.open_session(source) for source in sources]
    rows = [row for source in found for row in reader.responses_of(source)]
    assert (len(found), len(rows)) == (sessions, responses)
    assert sum((row.usage for row in rows if row.usage), Usage()) == usage
    told = [reader.session_of(source) for source in found]  # the same sources, again
    assert sum((it.usage for it in told), Usage()) == usage
    assert {it.project for it in told} == {"/home/user/project"}


def test_a_subagent_without_its_parent_is_a_session(home: Path) -> None:
    paths = files("codex")
    [main, sub, _] = paths
    main.unlink()
    assert [source.main.name for source in sources_in(paths)][-1] == sub.name


def test_subagent_chats_belong_to_their_session(home: Path) -> None:
    [chat] = files("gemini-cli")
    for name in ("252c5bc1-3ccd-4a99-8b32-b16c20006afe", "another"):
        (chat.parent / name).mkdir()
        (chat.parent / name / "helper.jsonl").write_text('{"sessionId":"helper","kind":"subagent"}\n')
    gemini = agent_called("gemini-cli")
    assert gemini
    source = gemini.open_session(source_at(gemini.name, chat))
    assert [it.name for it in source.others] == ["chats/252c5bc1-3ccd-4a99-8b32-b16c20006afe/helper.jsonl"]
    assert source.text(".project_root") == "/home/user/project"
    assert [source.text(name) for name in ("chats/../../../projects.json", "/etc/passwd", "")] == [None] * 3


def test_deleted_files_read_as_empty(home: Path) -> None:
    paths = files("codex")
    sources = list(sources_in(paths))
    shutil.rmtree(home / ".codex")
    assert [list(source.main.entries) for source in sources] == [[], []]
    assert list(sources_in(paths)) == []


PACKED = {
    "claude-code": ".claude/projects/-p/5ea5a1f0-0000-4000-8000-000000000001.jsonl.zst",
    "codex": ".codex/sessions/2026/11/15/rollout-2026-5ea5a1f0-0000-4000-8000-000000000001.jsonl.zst",
    "gemini-cli": ".gemini/tmp/p/chats/session-2026-5ea5a1f0.jsonl.zst",
    "qwen-code": ".qwen/projects/-p/chats/5ea5a1f0-0000-4000-8000-000000000001.jsonl.zst",
    "pi": ".pi/agent/sessions/--p--/2026-11-15T00-00-00Z_5ea5a1f0-0000-4000-8000-000000000001.jsonl.zst",
}


@pytest.mark.parametrize("agent", PACKED)
def test_a_compressed_file_in_an_agent_folder_is_not_a_session(home: Path, agent: str) -> None:
    reader = readable_agent(agent)
    assert reader
    folders = agent_folders(reader.location)
    before = {source.path for source in reader.discover(folders, StampCache())}
    path = home / PACKED[agent]
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_bytes(b"not packed by us")
    assert {source.path for source in reader.discover(folders, StampCache())} == before
    assert str(path) not in map(str, files(agent))
