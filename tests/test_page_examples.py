"""Every example in Python in the README and in docs/ runs as it stands there, with the real SDK and the real client."""

import os
import re
import shutil
import sys
import textwrap
from pathlib import Path
from typing import Any

import pytest

from tests.catalog.catalogs import ID, claude_file, tool, user
from tests.clients import ROOT, Sandbox, find_claude
from tests.fakeapi import FakeAPI
from tests.recording.played import script
from tests.recording.test_examples import environment
from tests.web.homes import DATA, demo

pytestmark = [pytest.mark.needs("claude_agent_sdk"), pytest.mark.needs("claude")]

PAGES = [ROOT / "README.md", *sorted((ROOT / "docs").rglob("*.md"))]
BLOCK = re.compile(r"```python\n(.*?)```", re.DOTALL)
EXAMPLES = {
    f"{page.relative_to(ROOT).as_posix()} {number}": code
    for page in PAGES
    for number, code in enumerate(BLOCK.findall(page.read_text()), 1)
}

RESPONSE = '{"choices":[{"message":{"content":"Hi."},"finish_reason":"stop"}],"model":"m","id":"c"}'
MISSING = "00000000-0000-4000-8000-000000000000"
# What an example takes for granted, in the order of the pages.
BEFORE = {
    "docs/adapters.md 1": f"import json; prompt, body, command = 'Hello?', {RESPONSE.encode()!r}, 'cat > hook.json'",
    "docs/run.md 2": "from agent_logger import run_async, stream",
    "docs/sessions.md 1": "from agent_logger import run; diff = '+ sleep(1)'",
    "docs/sessions.md 2": (
        "from agent_logger import Failure, run\n"
        f"question, stored_id, summary_of_what_was_said = 'Why is it slow?', {MISSING!r}, 'It sleeps.'"
    ),
    "docs/storage.md 1": "session = 'mine'",
    "docs/storage.md 2": "session_id = None",
}
# What shows that an example did what it says, where it prints nothing.
AFTER = {
    "docs/adapters.md 2": "import pathlib; test_my_adapter(pathlib.Path.cwd()); print('passed')",
    "docs/sessions.md 1": "print(result.data)",
    "docs/sessions.md 2": f"print(stored_id); assert result.success and stored_id != {MISSING!r}",
}
DOCTEST = """
import doctest
test = doctest.DocTestParser().get_doctest({!r}, {{}}, "page", "page", 0)
print("failed" if doctest.DocTestRunner().run(test).failed else "passed")
"""
USAGE = {
    "input_tokens": 10,
    "cache_creation_input_tokens": 0,
    "cache_read_input_tokens": 0,
    "output_tokens": 20,
}
ANSWERS = {"lanes": [{"name": "main", "repeat": True, "turns": [{"text": "Minutes are rounded.", "usage": USAGE}]}]}


@pytest.fixture(scope="module")
def full_home(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """With something of every kind that the examples ask for, or they would say nothing, and be right."""
    home = tmp_path_factory.mktemp("home")
    shutil.copytree(DATA / "claude-cli/2.1.325/tools_stream/home", home, dirs_exist_ok=True)
    demo(home)
    claude_file(home, ID.format(1), [user(1, "Mend the build", ID.format(1)), *_failed_call()])
    (home / "tea").mkdir()
    return home


def _failed_call() -> list[dict[str, Any]]:
    return tool(2, ID.format(1), "Bash", {"command": "make"}, "connection refused", failed=True)


def program(name: str) -> str:
    """The example as a program."""
    code = EXAMPLES[name]
    if code.startswith(">>>"):
        return DOCTEST.format(code)
    whole = "\n".join([BEFORE.get(name, ""), code, AFTER.get(name, "")])
    if "await " in code or "async " in code:
        whole = f"import asyncio\nasync def main():\n{textwrap.indent(whole, '    ')}\nasyncio.run(main())"
    return whole


@pytest.mark.parametrize("name", EXAMPLES)
def test_every_example_runs(name: str, full_home: Path, sandbox: Sandbox) -> None:
    shutil.copytree(full_home, sandbox.home, dirs_exist_ok=True)
    programs = sandbox.home / "bin"
    programs.mkdir()
    (programs / "claude").symlink_to(find_claude() or "")
    script(programs / "my-adapter", f'exec {sys.executable} {ROOT}/examples/openai_adapter.py "$@"')
    with FakeAPI(ANSWERS) as api:
        given = {
            **environment(api.url),
            "PATH": f"{programs}{os.pathsep}{os.environ['PATH']}",
            "OPENAI_BASE_URL": f"{api.url}/v1",
            "OPENAI_API_KEY": "sk-fake",
        }
        done = sandbox.run([sys.executable, "-c", program(name)], given)
    assert (done.exit_code, done.stderr) == (0, "")
    assert done.stdout.strip() and "failed" not in done.stdout.splitlines()


def test_every_prelude_belongs_to_an_example() -> None:
    assert set(BEFORE) | set(AFTER) <= set(EXAMPLES)
    assert len(EXAMPLES) >= 20


def test_the_readme_records_its_prompt(full_home: Path, sandbox: Sandbox) -> None:
    with FakeAPI(ANSWERS) as api:
        done = sandbox.run([sys.executable, "-c", program("README.md 1")], environment(api.url))
    assert (done.exit_code, done.stderr) == (0, "")
    [log] = (sandbox.project / "sessions").glob("*.jsonl")
    assert '"user_input":"Fix the timer"' in log.read_text()
