"""The examples in Python on the pages for recording and keeping run as they stand there."""

import os
import re
import subprocess
import sys
import textwrap
from pathlib import Path

import pytest

from tests.clients import ROOT
from tests.recording.played import player

RECORDED = ROOT / "tests/data/claude-cli/2.1.325/tools_stream/stream.stdout"
ANSWER = '{"choices":[{"message":{"content":"Hi."},"finish_reason":"stop"}],"model":"m","id":"c"}'

# What each example takes for granted.
PAGES = {
    "run": ["", "from agent_logger import run_async, stream"],
    "storage": ["session = 'mine'"],
    "adapters": [f"import json; prompt, body, command = 'Hello?', {ANSWER.encode()!r}, 'cat > hook.json'"],
}
EXAMPLES = [
    pytest.param(before, example, id=f"{page}-{number}")
    for page, preludes in PAGES.items()
    for number, (before, example) in enumerate(
        zip(
            preludes,
            re.findall(r"```python\n(.*?)```", (ROOT / f"docs/{page}.md").read_text(), re.DOTALL),
            strict=False,
        )
    )
]


@pytest.mark.parametrize(("before", "example"), EXAMPLES)
def test_every_example_runs(tmp_path: Path, before: str, example: str) -> None:
    (tmp_path / "tea").mkdir()
    player(tmp_path / "claude", RECORDED)
    program = f"{before}\n{example}"
    if "await " in example or "async " in example:
        body = textwrap.indent(program, "    ")
        program = f"import asyncio\nasync def main():\n{body}\nasyncio.run(main())"
    done = subprocess.run(
        [sys.executable, "-c", program],
        env={"PATH": f"{tmp_path}{os.pathsep}{os.environ['PATH']}", "HOME": str(tmp_path)},
        cwd=tmp_path,
        capture_output=True,
        text=True,
        timeout=60,
        check=False,
    )
    assert (done.returncode, done.stderr) == (0, "")
    assert done.stdout and "no folder" not in done.stdout
