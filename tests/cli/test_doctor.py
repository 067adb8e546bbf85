"""`agent-logger doctor`: every thing that can be wrong has a line, and a next step."""

import json
import os
import pty
import shutil
import subprocess
import sys
import time
from pathlib import Path
from typing import Any

import pytest
from tests.agents.databases.recorded import DATABASES
from tests.clients import Sandbox, run_claude
from tests.commands import run_command
from tests.fakeapi import FakeAPI
from tests.fakeapi.turns import answers
from tests.proxy.process import Process
from tests.real_clients.running import Upstream

from agent_logger.config import Origin
from agent_logger.home.facts import register_log_folder
from agent_logger.home.last_runs import note_last_run
from agent_logger.hooks.settings import add_hooks
from agent_logger.model.last_run import LastRun
from agent_logger.proxy.state import Announcement, ProxyState

SESSION = "707575f7-6966-4682-abc3-e62e1560a136"
DAY = 86_400


def doctor(*options: str, **variables: str) -> tuple[int, str]:
    done = run_command(["doctor", *options], {**os.environ, **variables})
    assert done.stderr == ""
    return done.returncode, done.stdout


def findings(check: str, **variables: str) -> list[tuple[str, str]]:
    code, text = doctor("--json", **variables)
    found: list[dict[str, Any]] = json.loads(text)["findings"]
    assert code == any(it["mark"] == "wrong" for it in found)
    assert all(it["next"] for it in found if it["mark"] != "ok")
    return [(it["mark"], it["found"]) for it in found if it["check"] == check]


def session(home: Path, days_old: float, name: str = SESSION) -> Path:
    path = home / ".claude" / "projects" / "-p" / f"{name}.jsonl"
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text('{"type":"user"}\n')
    os.utime(path, (time.time() - days_old * DAY,) * 2)
    return path


def archive() -> None:
    assert run_command(["archive"], os.environ).returncode == 0


def test_doctor_fits_in_80_columns_on_a_terminal(home: Path) -> None:
    session(home, 1)
    ours, theirs = pty.openpty()
    line = [sys.executable, "-m", "agent_logger", "doctor"]
    subprocess.run(line, env={**os.environ, "COLUMNS": "80"}, stdout=theirs, check=True)
    os.close(theirs)
    shown = os.read(ours, 65536).decode().split("\r\n")
    os.close(ours)
    assert any("deletes the first after" in it for it in shown)
    assert all(len(it) <= 80 for it in shown if str(home) not in it)


def test_doctor_finds_nothing_wrong_in_a_new_installation(home: Path) -> None:
    code, text = doctor()
    assert code == 0
    assert "WRONG" not in text
    assert [line.split()[1] for line in text.splitlines() if line[0] != " "] == [
        "home",
        "proxy",
        "log",
        "damage",
        "agents",
    ]
    assert not (home / ".agent-logger").exists()
    assert all(len(line) <= 110 for line in text.replace(str(home), "~").splitlines())


def test_agents_are_listed_by_what_their_files_count_tokens_for(home: Path) -> None:
    data = Path(__file__).parents[1] / "data"
    for recording in ("pi/0.74.2/tools", "grok-build/1.0.41/tools"):
        shutil.copytree(data / recording / "home", home, dirs_exist_ok=True)
    assert findings("agents") == [
        ("ok", "session files that count tokens per response: pi 1 session"),
        ("ok", "session files that count tokens per exchange: grok-build 1 session"),
    ]


@pytest.mark.parametrize("agent", DATABASES)
def test_a_database_that_cannot_be_read_at_all_is_reported(home: Path, agent: str) -> None:
    path = home / DATABASES[agent]
    path.parent.mkdir(parents=True)
    path.write_bytes(b"SQLite format 3\0" + b"\1" * 8000)
    [(mark, said)] = (found for found in findings("agents") if str(path) in found[1])
    assert (mark, said.startswith("no session can be read from ")) == ("wrong", True)
    for command in ("find", "ls", "usage"):
        assert f"{path}: " in run_command([command], {"PATH": os.environ["PATH"], "HOME": str(home)}).stderr
    path.write_bytes(b"")  # it was only begun
    assert not any(str(path) in said for _, said in findings("agents"))


def test_an_unusable_home_is_reported_as_wrong(tmp_path: Path) -> None:
    (tmp_path / "file").write_text("")
    ((mark, _),) = findings("home", AGENT_LOGGER_HOME=str(tmp_path / "file" / "home"))
    assert mark == "wrong"


def test_a_missing_log_folder_is_noted(home: Path, tmp_path: Path) -> None:
    for name in ("here", "gone"):
        (tmp_path / name).mkdir()
        register_log_folder(home / ".agent-logger", tmp_path / name)
    assert findings("log folders") == [("ok", "2, all present")]
    (tmp_path / "gone").rmdir()
    assert findings("log folders") == [("note", f"{tmp_path / 'gone'} no longer exists")]


def test_damage_is_reported_as_wrong_and_missing_records_are_noted(home: Path, tmp_path: Path) -> None:
    register_log_folder(home / ".agent-logger", tmp_path / "logs")
    (tmp_path / "logs").mkdir()
    log = tmp_path / "logs" / "a.jsonl"
    gap = '{"type":"gap","v":1,"ts":"t","lost":3,"since":"t","seconds":1.0,"reason":"No space left on device"}\n'
    start = '{"type":"part","v":1,"ts":"t","kind":"wire","number":1,"reason":"full"}\n'
    log.write_text(start + gap)
    assert [mark for mark, _ in findings("damage")] == ["ok", "note"]
    log.write_text(start + "no JSON\n" + start)
    assert findings("damage") == [("wrong", "1 damaged line in logs")]


def test_sessions_the_client_will_delete_are_reported_until_they_are_archived(home: Path) -> None:
    old, new = session(home, 25), session(home, 1, "11111111-0000-4000-8000-000000000000")
    ((mark, found),) = findings("cleanup")
    assert (mark, found.split(" by ")[0]) == ("wrong", "claude-code will delete 1 session")
    assert " that is not archived, the first after " in found
    doomed = json.loads(doctor("--json")[1])["doomed"]
    assert [(it["path"], it["kept"]) for it in doomed] == [(str(old), False), (str(new), False)]
    last_day = time.gmtime(old.stat().st_mtime + 30 * DAY)
    assert doomed[0]["deleted_after"][:10] == time.strftime("%Y-%m-%d", last_day)
    archive()
    ((mark, found),) = findings("cleanup")
    assert mark == "ok" and found.startswith("2 sessions of claude-code are archived; it deletes the first after ")
    with new.open("a") as file:
        file.write('{"type":"user"}\n')
    ((mark, found),) = findings("cleanup")
    assert mark == "note" and found.startswith("1 of 2 sessions of claude-code has no up-to-date copy; ")


def test_the_cleanup_period_of_the_client_is_used(home: Path) -> None:
    session(home, 25)
    settings = home / ".claude" / "settings.json"
    settings.write_text('{"cleanupPeriodDays": 365}')
    assert [mark for mark, _ in findings("cleanup")] == ["note"]
    settings.write_text('{"cleanupPeriodDays": 26}')
    assert [mark for mark, _ in findings("cleanup")] == ["wrong"]


def test_hooks_that_call_a_missing_command_are_reported_as_wrong(home: Path, tmp_path: Path) -> None:
    settings = home / ".claude" / "settings.json"
    settings.parent.mkdir()
    assert [mark for mark, _ in findings("hooks")] == ["note"]
    settings.write_text(add_hooks("{}", [sys.executable, "-m", "agent_logger", "hook"]))
    assert [mark for mark, _ in findings("hooks")] == ["ok"]
    settings.write_text(add_hooks("{}", [str(tmp_path / "gone" / "agent-logger"), "hook"]))
    assert [mark for mark, _ in findings("hooks")] == ["wrong"]


def test_an_unknown_variable_is_noted() -> None:
    assert findings("variables", AGENT_LOGGER_LOGDIR="x") == [
        ("note", "AGENT_LOGGER_LOGDIR is set but is not a known setting")
    ]


def test_a_proxy_with_an_unresponsive_recorder_is_reported_as_wrong(home: Path, tmp_path: Path) -> None:
    state = ProxyState(pid=os.getpid(), started="t", port=4711, log_dir=str(tmp_path), version="0")
    announced = Announcement(home / ".agent-logger", state)
    try:
        ((mark, found),) = findings("proxy")
    finally:
        announced.close()
    assert (mark, "4711" in found) == ("wrong", True)


@pytest.mark.needs("claude")
def test_a_client_that_bypasses_the_proxy_is_reported(sandbox: Sandbox, home: Path, tmp_path: Path) -> None:
    with FakeAPI(answers({"text": "Hi."}, repeat=True)) as api:
        upstream = Upstream(Origin("http", "127.0.0.1", api.port))
        proxy = Process(tmp_path, upstream)  # type: ignore[arg-type]
        try:
            url = f"http://127.0.0.1:{proxy.port}/anthropic/127.0.0.1:{api.port}"
            run_claude(sandbox, url, "-p", "seen")
            until = time.monotonic() + 60
            while not list(proxy.log_dir.glob("anthropic/2*.jsonl")) and time.monotonic() < until:
                time.sleep(0.05)
            assert [mark for mark, _ in findings("proxy")] == ["ok"]
            assert findings("unseen") == []
            assert [mark for mark, _ in findings("set up")] == ["note"]
            assert [mark for mark, _ in findings("set up", ANTHROPIC_BASE_URL=url)] == ["ok"]
            run_claude(sandbox, api.url, "-p", "unseen")
            ((mark, found),) = findings("unseen")
            assert mark == "wrong"
            assert found == "claude-code is running 1 session that bypasses the proxy"
        finally:
            proxy.stop()
            proxy.close()


def test_the_last_run_of_an_agent_is_judged_by_what_was_not_recorded(home: Path) -> None:
    ours, time_of = home / ".agent-logger", "2026-11-18T12:00:00.000Z"
    ours.mkdir()
    note_last_run(
        ours, LastRun(agent="codex", ended=time_of, door="forward", requests=3, unread=1, unread_hosts=("a.b",))
    )
    note_last_run(ours, LastRun(agent="pi", ended=time_of, door="forward", requests=1, not_trusted=("api.x.ai",)))
    note_last_run(ours, LastRun(agent="qwen-code", ended=time_of, reason="other_base_url"))
    marks = {text.partition(",")[0]: (mark, text.partition(": ")[2]) for mark, text in findings("last run")}
    assert marks == {
        "codex": ("ok", "3 requests recorded through the forward door; 1 host reached unread: a.b"),
        "pi": (
            "wrong",
            "1 request recorded through the forward door; it does not trust the certificate of agent-logger: api.x.ai",
        ),
        "qwen-code": ("note", "0 requests recorded: the agent's settings name another address"),
    }
