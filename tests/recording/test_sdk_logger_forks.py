"""A process that forks while an exchange is in flight: what parent and children log is there, each message once."""

import json
import os
import re
import subprocess
import sys
from collections import Counter
from pathlib import Path

import pytest

from tests.commands import run_command

SESSION = "7b320356-a178-418e-a692-69ce6e1e657c"

PROGRAM = f"""
import json, os, sys
from agent_logger import SessionLogger
from agent_logger.recording import exchanges
how = json.loads(sys.argv[2])
exchanges.HELD_BYTES = how["held_bytes"]
logger = SessionLogger(sys.argv[1])
names = {{"session_id": {SESSION!r}}} if how["named"] else {{}}

def said(who, number):
    text = [{{"type": "text", "text": f"<{{who}}{{number}}> " }}]
    logger.log({{"type": "assistant", **names, "message": {{"id": f"msg_{{who}}{{number}}", "content": text}}}})

def init():
    began = {{"session_id": {SESSION!r}, "model": "m", "cwd": "/", "tools": []}}
    logger.log({{"type": "system", "subtype": "init", **began}})

def result():
    usage = {{"input_tokens": 1, "output_tokens": 1}}
    logger.log({{"type": "result", **names, "is_error": False, "total_cost_usd": 1, "usage": usage}})

logger.log_user_input("go")
if how["init"] == "before":
    init()
for number in range(how["count"]):
    said("p", number)
children = []
for child in range(how["children"]):
    pid = os.fork()
    if pid == 0:
        for number in range(how["count"]):
            said(f"c{{child}}.", number)
        if how["child_ends"] == "result":
            result()
        if how["child_ends"] == "close":
            logger.close()
        lost = logger.lost
        os._exit(lost)
    children.append(pid)
if how["init"] == "after":
    init()
for number in range(how["count"], 2 * how["count"]):
    said("p", number)
lost = sum(os.waitstatus_to_exitcode(os.waitpid(pid, 0)[1]) for pid in children)
if how["parent_ends"] == "result":
    result()
    logger.close()
if how["parent_ends"] == "kill":
    os.kill(os.getpid(), 9)
sys.exit(lost + logger.lost)
"""
USUAL = {
    "named": True,
    "init": "before",
    "count": 5,
    "held_bytes": 1 << 20,
    "children": 1,
    "child_ends": "kill",
    "parent_ends": "result",
}


def program(tmp_path: Path, **how: object) -> Path:
    done = subprocess.run(
        [sys.executable, "-c", PROGRAM, str(tmp_path / "s"), json.dumps({**USUAL, **how})],
        env={"PATH": os.environ["PATH"], "HOME": str(tmp_path / "home")},
        timeout=60,
        check=False,
    )
    assert done.returncode == (-9 if how.get("parent_ends") == "kill" else 0)
    return tmp_path / "s"


def marks(text: str) -> Counter[str]:
    return Counter(re.findall(r"<((?:p|c\d+\.)\d+)>", text))


def wanted(count: int = 5, children: int = 1) -> Counter[str]:
    names = [f"p{it}" for it in range(2 * count)]
    return Counter([*names, *(f"c{child}.{it}" for child in range(children) for it in range(count))])


def views(tmp_path: Path) -> dict[str, Counter[str]]:
    environment = {
        "PATH": os.environ["PATH"],
        "HOME": str(tmp_path / "home"),
        "AGENT_LOGGER_SESSIONS_DIR": str(tmp_path / "s"),
    }
    listed = json.loads(run_command(["ls", "--json"], environment).stdout)
    [session] = {it["id"] for it in listed}
    shown: dict[str, Counter[str]] = {}
    for view in ("show", "md", "json"):
        arguments = ["show", session] if view == "show" else ["export", session, "--to", view]
        done = run_command(arguments, environment)
        assert done.returncode == 0, done.stderr
        shown[view] = marks(done.stdout)
    return shown


def recover(tmp_path: Path) -> None:
    """The next logger takes the log over, with what was left in it."""
    program = """
import sys
from agent_logger import SessionLogger
with SessionLogger(sys.argv[1]) as logger:
    logger.log({"type": "system", "subtype": "init", "session_id": sys.argv[2], "model": "m", "cwd": "/", "tools": []})
"""
    subprocess.run(
        [sys.executable, "-c", program, str(tmp_path / "s"), SESSION],
        env={"PATH": os.environ["PATH"], "HOME": str(tmp_path / "home")},
        timeout=60,
        check=True,
    )


HOWS = [
    pytest.param({}, id="the child ends without a word"),
    pytest.param({"child_ends": "result"}, id="the child has a result"),
    pytest.param({"child_ends": "close"}, id="the child closes its log"),
    pytest.param({"parent_ends": "kill"}, id="the parent is killed"),
    pytest.param({"children": 4, "count": 50}, id="four children"),
    pytest.param({"children": 4, "count": 50, "child_ends": "result"}, id="four children with results"),
    pytest.param({"named": False}, id="messages that name no session"),
    pytest.param({"init": "after"}, id="the session gets its id after the fork"),
    pytest.param({"held_bytes": 200, "child_ends": "result"}, id="an exchange too large to hold"),
]


@pytest.mark.parametrize("how", HOWS)
def test_messages_of_forked_children_appear_once_in_every_view(how: dict[str, object], tmp_path: Path) -> None:
    program(tmp_path, **how)
    count, children = int(str(how.get("count", 5))), int(str(how.get("children", 1)))
    for shown in views(tmp_path).values():
        assert shown == wanted(count, children)
    recover(tmp_path)
    for shown in views(tmp_path).values():
        assert shown == wanted(count, children)
