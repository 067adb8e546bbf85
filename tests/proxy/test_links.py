"""Links in a log folder, which a repository can bring along: nothing is written through one."""

import json
import os
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

from tests.proxy.process import Process, proxying, wait_until
from tests.proxy.wires import Upstream, answering, response

BODY = b'{"messages":[{"role":"user","content":"hello"}]}'


def call(proxy: Process, path: str = "/v1/messages", body: bytes = BODY) -> None:
    with proxy.client() as client:
        client.send(proxy.request(path, body))
        client.message()


def everything(folder: Path) -> dict[str, tuple[int, bytes]]:
    return {
        str(path.relative_to(folder)): (
            os.lstat(path).st_mtime_ns,
            path.read_bytes() if path.is_file() else b"",
        )
        for path in [folder, *sorted(folder.rglob("*"))]
    }


@pytest.fixture
def elsewhere(tmp_path: Path) -> Path:
    """A folder of somebody's."""
    folder = tmp_path / "elsewhere"
    folder.mkdir()
    (folder / "mine.txt").write_text("mine")
    return folder


def start(tmp_path: Path) -> subprocess.CompletedProcess[str]:
    line = [sys.executable, "-m", "agent_logger", "proxy", "--port", "0", "--log-dir", str(tmp_path / "logs")]
    env = {"PATH": os.environ["PATH"], "HOME": str(tmp_path / "home")}
    return subprocess.run(line, env=env, capture_output=True, text=True, timeout=60, check=False)


@pytest.mark.parametrize("name", [".spool", "anthropic", "openai", "gemini", "anthropic/x.bodies"])
@pytest.mark.parametrize("dangling", [False, True])
def test_a_symlinked_folder_is_refused_at_start(tmp_path: Path, elsewhere: Path, name: str, dangling: bool) -> None:
    link = tmp_path / "logs" / name
    link.parent.mkdir(parents=True)
    link.symlink_to(elsewhere / "nothing" if dangling else elsewhere)
    before = everything(elsewhere)
    done = start(tmp_path)
    assert (done.returncode, done.stderr.count("\n")) == (1, 1), done.stderr
    assert f"{link} is a symbolic link; remove it" in done.stderr
    assert everything(elsewhere) == before


def test_the_log_folder_itself_may_be_a_symlink(tmp_path: Path) -> None:
    (tmp_path / "disk").mkdir()
    (tmp_path / "logs").symlink_to(tmp_path / "disk")
    with Upstream(answering(response())) as upstream, proxying(tmp_path, upstream) as proxy:
        call(proxy)
        assert proxy.stop() == 0
        assert len(proxy.logged().responses) == 1
    assert list((tmp_path / "disk" / "anthropic").glob("*.jsonl"))


@pytest.mark.parametrize("name", [".spool", "anthropic", "anthropic/unattributed.bodies"])
def test_nothing_is_written_through_a_symlink_created_later(tmp_path: Path, elsewhere: Path, name: str) -> None:
    with Upstream(answering(response())) as upstream, proxying(tmp_path, upstream) as proxy:
        call(proxy)
        wait_until(lambda: list((proxy.log_dir / "anthropic").glob("*.jsonl")))
        folder = proxy.log_dir / name
        if folder.exists():
            folder.rename(tmp_path / "before")
        before = everything(elsewhere)
        folder.symlink_to(elsewhere)
        call(proxy, "/v1/files", b"x" * (9 << 20))  # too large for a line
        if name != ".spool":
            wait_until(lambda: "is a symbolic link; remove it" in proxy.command("status"), 30)
        else:
            wait_until(lambda: "NOT RECORDING" in proxy.command("status"), 30)
        assert everything(elsewhere) == before
        folder.unlink()
        if (tmp_path / "before").exists():
            (tmp_path / "before").rename(folder)
        wait_until(lambda: json.loads(proxy.command("status", "--json"))[0]["recording"], 60)
        call(proxy)
        assert proxy.stop() == 0
        assert everything(elsewhere) == before
        found = proxy.logged()
    assert len(found.responses) >= (2 if name == ".spool" else 3)


@pytest.mark.parametrize("kind", ["hard", "symbolic"])
@pytest.mark.parametrize("name", ["refused.jsonl", "anthropic/unattributed.jsonl"])
def test_a_linked_log_is_not_appended_to(tmp_path: Path, elsewhere: Path, kind: str, name: str) -> None:
    victim = elsewhere / "victim.jsonl"
    victim.write_text('{"mine": 1}\n')
    log = tmp_path / "logs" / name
    log.parent.mkdir(parents=True)
    log.hardlink_to(victim) if kind == "hard" else log.symlink_to(victim)
    with Upstream(answering(response())) as upstream, proxying(tmp_path, upstream) as proxy:
        with proxy.client() as client:
            client.send(b"GET / HTTP/1.1\r\nHost: evil.example\r\n\r\n")
            client.rest()
        with proxy.client() as client:
            client.send(proxy.request("/v1/models", method=b"GET"))
            client.message()
        assert proxy.stop() == 0
        second = log.with_name(log.name.replace(".jsonl", ".p2.jsonl"))
        assert b'"reason":"linked"' in second.read_bytes().split(b"\n")[0]
        assert second.read_bytes().count(b"\n") >= 3
    assert victim.read_text() == '{"mine": 1}\n'


@pytest.mark.parametrize("kind", ["hard", "symbolic"])
@pytest.mark.parametrize("name", ["sessions.db", "sessions.db-wal", "sessions.db-journal"])
def test_a_linked_session_table_is_replaced(tmp_path: Path, elsewhere: Path, kind: str, name: str) -> None:
    with Upstream(answering(response())) as upstream:
        with proxying(tmp_path, upstream) as proxy:
            call(proxy)
            assert proxy.stop() == 0
        logs = proxy.log_dir
        victim = elsewhere / "victim"
        if name == "sessions.db":
            shutil.copy(logs / name, victim)
        else:
            victim.write_bytes(b"mine")
        (logs / name).unlink(missing_ok=True)
        (logs / name).hardlink_to(victim) if kind == "hard" else (logs / name).symlink_to(victim)
        before = victim.read_bytes()
        with proxying(tmp_path, upstream) as proxy:
            call(proxy)
            assert proxy.stop() == 0
            assert len(proxy.logged().responses) == 2
    assert victim.read_bytes() == before
    assert os.lstat(logs / "sessions.db").st_nlink == 1
    assert not (logs / "sessions.db").is_symlink()


def test_a_fifo_in_place_of_the_session_table_is_replaced(tmp_path: Path) -> None:
    (tmp_path / "logs").mkdir()
    os.mkfifo(tmp_path / "logs" / "sessions.db")
    with Upstream(answering(response())) as upstream, proxying(tmp_path, upstream) as proxy:
        call(proxy)
        assert proxy.stop() == 0
        assert len(proxy.logged().responses) == 1
    assert (tmp_path / "logs" / "sessions.db").is_file()


@pytest.mark.parametrize("name", ["position.json", "touched.jsonl", "abcd.1.spool", "abcd.7.carried"])
def test_a_fifo_in_the_spool_is_refused_at_start(tmp_path: Path, name: str) -> None:
    fifo = tmp_path / "logs" / ".spool" / name
    fifo.parent.mkdir(parents=True)
    os.mkfifo(fifo)
    done = start(tmp_path)
    assert (done.returncode, done.stderr.count("\n")) == (1, 1), done.stderr
    assert f"{fifo} is not a regular file; remove it" in done.stderr


@pytest.mark.parametrize("name", ["owner", "recorder.lock", "touched.jsonl"])
@pytest.mark.parametrize("kind", ["hard", "symbolic"])
def test_a_linked_spool_file_is_not_written_to(tmp_path: Path, elsewhere: Path, kind: str, name: str) -> None:
    victim = elsewhere / "mine.txt"
    (tmp_path / "logs" / ".spool").mkdir(parents=True)
    link = tmp_path / "logs" / ".spool" / name
    link.hardlink_to(victim) if kind == "hard" else link.symlink_to(victim)
    if name == "owner":
        done = start(tmp_path)
        assert done.returncode == 1 and str(link) in done.stderr and "remove it" in done.stderr, done.stderr
    else:
        with Upstream(answering(response())) as upstream, proxying(tmp_path, upstream) as proxy:
            call(proxy)
            wait_until(lambda: "NOT RECORDING" in proxy.command("status"), 30)
            link.unlink()
            wait_until(lambda: json.loads(proxy.command("status", "--json"))[0]["recording"], 60)
            assert proxy.stop() == 0
            assert len(proxy.logged().responses) == 1
    assert victim.read_text() == "mine"
