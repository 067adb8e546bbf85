"""A new agent is a package and a row in the registry: everything else finds it there."""

import json
import os
import re
import subprocess
import sys
import time
import urllib.request
from http.cookiejar import CookieJar
from pathlib import Path

import pytest

from agent_logger.agents.registry import AGENTS
from tests.agents.foreign import source
from tests.agents.notebook import AGENT
from tests.hostile import LINES, ODD_VALUES

ROOT = Path(__file__).parents[2]
TALK = "5ea5a1f0-0000-4000-8000-00000000beef"
# The row: before anything else of ours is imported, as if it stood in the module.
WITH_ROW = """
import sys
from agent_logger.agents import registry
from tests.agents.notebook import AGENT
registry.AGENTS = (*registry.AGENTS, AGENT)
from agent_logger.__main__ import main
main()
"""


@pytest.fixture
def home(tmp_path: Path) -> Path:
    talk = tmp_path / ".notebook/talks" / f"{TALK}.jsonl"
    talk.parent.mkdir(parents=True)
    now = int(time.time())
    lines = [
        {"talk": TALK, "at": now - 2, "user": "Count the zebras"},
        {
            "talk": TALK,
            "at": now - 1,
            "answer": "There are four zebras.",
            "id": "msg_1",
            "tokens": [1000, 200],
        },
    ]
    talk.write_text("".join(json.dumps(line) + "\n" for line in lines))
    return tmp_path


def start(home: Path, *arguments: str) -> subprocess.Popen[str]:
    environment = {"HOME": str(home), "PATH": os.environ["PATH"], "PYTHONPATH": str(ROOT), "TZ": "UTC"}
    return subprocess.Popen(
        [sys.executable, "-c", WITH_ROW, *arguments],
        env=environment,
        cwd=home,
        stdin=subprocess.DEVNULL,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
    )


def printed(home: Path, *arguments: str, code: int | None = 0) -> str:
    process = start(home, *arguments)
    stdout, stderr = process.communicate(timeout=60)
    assert code in (None, process.returncode), stderr
    return stdout


def test_a_new_agent_is_listed_shown_counted_and_searched(home: Path) -> None:
    [row] = json.loads(printed(home, "ls", "--json"))
    assert (row["id"], row["agent"], row["title"]) == (TALK, "notebook", "Count the zebras")
    shown = printed(home, "show", TALK[:8])
    assert "There are four zebras." in shown
    usage = json.loads(printed(home, "usage", "agent", "--json"))
    [group] = usage["rows"]
    assert (group["key"], group["responses"]) == ("notebook", 1)
    assert group["cost_usd"] == pytest.approx(1000 * 1e-6 + 200 * 5e-6)
    assert TALK in printed(home, "search", "zebras", "--json")


def test_the_reader_of_a_new_agent_never_raises_for_the_content_of_a_file() -> None:
    fields = ("talk", "at", "user", "answer", "id", "tokens")
    odd = [json.dumps({"answer": "a", field: value}).encode() for field in fields for value in ODD_VALUES]
    for data in (*LINES.values(), b"\n".join(odd)):
        session = AGENT.session_of(source(data))
        assert len(session.turns) <= len(list(AGENT.responses_of(source(data))))
    assert len(session.turns) > len(odd) / 2


def test_a_session_of_a_new_agent_is_archived_and_restored(home: Path) -> None:
    printed(home, "archive")
    (home / ".notebook/talks" / f"{TALK}.jsonl").unlink()
    assert "There are four zebras." in printed(home, "show", TALK)
    printed(home, "archive", "--restore", TALK, "--yes")
    assert (home / ".notebook/talks" / f"{TALK}.jsonl").is_file()


def test_a_growing_session_of_a_new_agent_is_followed_by_tail(home: Path) -> None:
    process = start(home, "tail", "--json", "-n", "0")
    try:
        assert process.stdout
        time.sleep(3)  # it has looked around
        with (home / ".notebook/talks" / f"{TALK}.jsonl").open("a") as talk:
            line = {
                "talk": TALK,
                "at": int(time.time()),
                "answer": "Now five.",
                "id": "msg_2",
                "tokens": [1, 1],
            }
            talk.write(json.dumps(line) + "\n")
        moment = json.loads(process.stdout.readline())
    finally:
        process.terminate()
        process.communicate()
    assert (moment["agent"], moment["text"]) == ("notebook", "Now five.")


def test_doctor_and_the_page_name_a_new_agent(home: Path) -> None:
    proxy = start(home, "proxy", "--port", "0")
    try:
        assert proxy.stderr
        proxy.stderr.readline()
        findings = json.loads(printed(home, "doctor", "--json", code=None))["findings"]
        for check in ("agents", "set up"):
            assert any("notebook" in finding["found"] for finding in findings if finding["check"] == check)
    finally:
        proxy.terminate()
        proxy.communicate()
    page = start(home, "view", "--page-port", "0", "--no-open")
    try:
        assert page.stderr
        link = re.search(r"http://\S+", page.stderr.readline())
        assert link
        reader = urllib.request.build_opener(urllib.request.HTTPCookieProcessor(CookieJar()))
        reader.open(link[0], timeout=30).read()
        base = link[0].partition("/open")[0]
        listed = reader.open(f"{base}/sessions", timeout=30).read().decode()
    finally:
        page.terminate()
        page.communicate()
    assert "Count the zebras" in listed
    assert ">notebook</option>" in listed


@pytest.mark.parametrize("agent", [*AGENTS, AGENT], ids=lambda agent: agent.name)
def test_modules_named_by_an_agent_define_the_required_functions(agent: object) -> None:
    from agent_logger.agents import base

    assert isinstance(agent, base.Agent)
    expected: list[tuple[str, tuple[str, ...]]] = [
        (agent.files, ("discover", "open_session", "begins_session", "recognises"))
    ]
    expected += [
        (agent.reader or "", ("session_of",)),
        (agent.responses or agent.reader or "", ("responses_of",)),
    ]
    if agent.location and agent.location.is_database:
        expected.append((agent.files, ("sessions_in",)))
    if agent.has_id_inside:
        expected.append((agent.files, ("session_id",)))
    optional = [
        (agent.wire.calls, "CALLS"),
        (agent.run.output if agent.run else None, "OUTPUT"),
        (agent.prompt_reader, "prompt_of"),
        (agent.processes, "noted_sessions"),
        (agent.naming, "project_folders"),
        (agent.cleanup, "cleanup_days"),
        (agent.imports.documents if agent.imports else None, "import_document"),
        (agent.reader if agent.names_parents else None, "parent_of"),
    ]
    expected += [(module, (name,)) for module, name in optional if module]
    missing = [
        f"{module}.{name}" for module, names in expected for name in names if not hasattr(base.module(module), name)
    ]
    assert missing == []
