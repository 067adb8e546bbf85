"""A proxy that nobody calls any more: what its spool holds, and what git sees of its log folder."""

import shutil
import subprocess
import time
from pathlib import Path

import pytest

from tests.proxy.process import Process, proxying, wait_until
from tests.proxy.wires import Upstream, answering, response

PROMPT = b"the prompt that nobody else may read"
TOKEN = b"ghp_" + b"aB3xaB3xaB3xaB3xaB3xaB3xaB3xaB3xaB3x"  # known by its pattern alone
SECONDS = 10.0  # after the end of the last call

BODY = b'{"model":"m","messages":[{"role":"user","content":"%b"}]}'


def call(proxy: Process, text: bytes) -> None:
    with proxy.client() as client:
        client.send(proxy.request(body=BODY % text))
        client.message()


def on_spool(proxy: Process, text: bytes) -> list[str]:
    found = []
    for path in (proxy.log_dir / ".spool").iterdir():
        try:
            found += [path.name] if text in path.read_bytes() else []
        except FileNotFoundError:
            continue
    return found


def assert_gone(proxy: Process, *texts: bytes) -> None:
    give_up = time.monotonic() + SECONDS
    while left := [name for text in texts for name in on_spool(proxy, text)]:
        assert time.monotonic() < give_up, left
        time.sleep(0.1)


def test_the_spool_of_an_idle_proxy_holds_no_prompt(tmp_path: Path) -> None:
    with (
        Upstream(answering(response(b"an answer to " + PROMPT))) as upstream,
        proxying(tmp_path, upstream) as proxy,
    ):
        call(proxy, PROMPT + b" " + TOKEN)
        assert_gone(proxy, PROMPT, TOKEN)
        wait_until(lambda: proxy.recorder().calls == 1)
        call(proxy, PROMPT + b", asked again")  # also once more, after a rest
        assert_gone(proxy, PROMPT)


@pytest.mark.parametrize("opened", ["before", "after"])
def test_an_open_call_does_not_keep_other_calls_on_the_spool(tmp_path: Path, opened: str) -> None:
    with (
        Upstream(answering(response(b"an answer to " + PROMPT))) as upstream,
        proxying(tmp_path, upstream) as proxy,
        proxy.client() as slow,
    ):
        if opened == "before":
            slow.send(proxy.request(body=BODY % b"an open call")[:-1])
        call(proxy, PROMPT + b" " + TOKEN)
        if opened == "after":
            slow.send(proxy.request(body=BODY % b"an open call")[:-1])
        assert_gone(proxy, PROMPT, TOKEN)
        wait_until(lambda: on_spool(proxy, b"an open call"), 2)  # it may be on its way to another file
        slow.send(b"}")
        assert slow.message().endswith(b"an answer to " + PROMPT)
        assert_gone(proxy, b"an open call")
        assert proxy.stop() == 0
        found = proxy.logged()
    assert [len(found.requests), len(found.responses)] == [2, 2]
    assert all(it.complete for (it,) in found.responses.values())


def test_an_ended_call_leaves_the_spool_while_another_stays_open(tmp_path: Path) -> None:
    with (
        Upstream(answering(response(b"fine"))) as upstream,
        proxying(tmp_path, upstream) as proxy,
        proxy.client() as one,
        proxy.client() as other,
    ):
        one.send(proxy.request(body=BODY % PROMPT)[:-1])
        other.send(proxy.request(body=BODY % b"an open call")[:-1])
        call(proxy, TOKEN)
        assert_gone(proxy, TOKEN)  # and both open ones were copied
        one.send(b"}")
        one.message()
        assert_gone(proxy, PROMPT)
        wait_until(lambda: on_spool(proxy, b"an open call"), 2)  # it may be on its way to another file
        other.send(b"}")
        other.message()
        assert proxy.stop() == 0
        found = proxy.logged()
    assert all(it.complete for (it,) in found.responses.values())
    assert len(found.responses) == 3


# ---------------------------------------------------------------- git


def git(folder: Path, *arguments: str) -> str:
    line = ["git", "-C", str(folder), "-c", "user.name=x", "-c", "user.email=x@example.com", *arguments]
    done = subprocess.run(
        line, capture_output=True, text=True, check=True, env={"HOME": str(folder), "PATH": "/usr/bin:/bin"}
    )
    return done.stdout


def seen_by_git(folder: Path) -> list[str]:
    return git(folder, "status", "--porcelain", "--untracked-files=all").splitlines()


@pytest.mark.skipif(not shutil.which("git"), reason="needs git")
@pytest.mark.parametrize("before", ["nothing", "a folder", "a folder with a file", "our own folder"])
def test_files_written_by_the_proxy_are_ignored_by_git(tmp_path: Path, before: str) -> None:
    work = tmp_path / "work"
    work.mkdir()
    git(work, "init", "-q")
    logs = work / "logs"
    if before == "our own folder":
        logs.mkdir()
        (logs / ".gitignore").write_text("*\n")
    elif before != "nothing":
        logs.mkdir()
    if before == "a folder with a file":
        (logs / "mine.txt").write_text("mine")
        git(work, "add", ".")
        git(work, "commit", "-q", "-m", "x")
    with (
        Upstream(answering(response(b"fine"))) as upstream,
        proxying(tmp_path, upstream, log_dir=logs) as proxy,
    ):
        call(proxy, PROMPT)
        with proxy.client() as client:
            client.send(b"GET /nowhere HTTP/1.1\r\nHost: evil.example\r\n\r\n")
            client.rest()
        wait_until((logs / "refused.jsonl").exists)
        wait_until(lambda: list((logs / "anthropic").glob("*.jsonl")))
        assert (logs / "sessions.db").exists()
        assert seen_by_git(work) == []
        if before == "a folder with a file":
            (logs / "new.txt").write_text("also mine")
            assert seen_by_git(work) == ["?? logs/new.txt"]
            (logs / "new.txt").unlink()
        assert proxy.stop() == 0
        assert seen_by_git(work) == []


def test_a_gitignore_of_the_user_is_unchanged_and_doctor_warns(tmp_path: Path) -> None:
    work = tmp_path / "work"
    (work / "logs").mkdir(parents=True)
    git(work, "init", "-q")
    (work / "logs" / ".gitignore").write_text("*.tmp\n")
    with (
        Upstream(answering(response(b"fine"))) as upstream,
        proxying(tmp_path, upstream, log_dir=work / "logs") as proxy,
    ):
        call(proxy, PROMPT)
        wait_until((work / "logs" / "sessions.db").exists)
        proxy.recording_status()  # before that, doctor may not know of the folder
        told = proxy.command("doctor")
        assert "logs/sessions.db" in told and "git" in told, told
        (work / ".gitignore").write_text("/logs/\n")
        assert "logs/sessions.db" not in proxy.command("doctor")
        assert not any("/.spool/" in line for line in seen_by_git(work))
        assert proxy.stop() == 0
    assert (work / "logs" / ".gitignore").read_text() == "*.tmp\n"
