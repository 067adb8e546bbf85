"""The screenshots of the README and docs/page.md, from the demo as it is recorded and some days of made-up work.

    .venv/bin/python tools/screenshots.py [FOLDER]

Wants Chromium (`./dev setup --full`). The same command makes the same pictures, but for times of day.
"""

import json
import os
import random
import sys
import tempfile
import uuid
from collections.abc import Iterator
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

from playwright.sync_api import Page as Tab

sys.path.extend(str(Path(__file__).parents[1] / name) for name in ("", "benches"))
from tests.web import homes
from tests.web.browser import chromium, let_in
from tests.web.page_process import showing

SIZE = {"width": 1200, "height": 760}
DAYS = 150
PROJECTS = ("tea-timer", "kettle-firmware", "recipe-site", "invoices")
MODELS = ("claude-sonnet-4-5-20250929", "claude-opus-4-1-20250805", "claude-haiku-4-5-20251001")
ASKED = (
    "The timer test fails on half minutes, find out why",
    "Add a dark mode to the settings page",
    "Why is the build so slow since Monday?",
    "Write tests for the invoice parser",
    "Rename `boil()` to `heat()` everywhere, and keep the old name working",
    "Review the last three commits for mistakes",
    "The kettle does not turn off when the lid is open",
    "Make the recipe search ignore accents",
)
TOOLS = {
    "Bash": {"command": "python -m pytest -q", "description": "Run the tests"},
    "Read": {"file_path": "src/timer.py"},
    "Grep": {"pattern": "minutes", "path": "src"},
    "Edit": {"file_path": "src/timer.py", "old_string": "int(minutes)", "new_string": "round(minutes)"},
}


def some_days(home: Path) -> None:
    """Sessions of Claude Code, more on working days, and more of late."""
    chance, now = random.Random(11), datetime.now(UTC)
    for day in range(DAYS):
        at = now - timedelta(days=day)
        many = 0 if at.weekday() > 4 and chance.random() < 0.7 else chance.randint(0, max(1, 7 - day // 25))
        for _ in range(many):
            _session(home, chance, at - timedelta(minutes=chance.randint(30, 500)))


def _session(home: Path, chance: random.Random, at: datetime) -> None:
    name, project = str(uuid.UUID(int=chance.getrandbits(128), version=4)), chance.choice(PROJECTS)
    path = home / ".claude/projects" / f"-home-you-{project}" / f"{name}.jsonl"
    path.parent.mkdir(parents=True, exist_ok=True)
    lines = _lines(chance, at, {"sessionId": name, "cwd": f"/home/you/{project}", "version": "2.1.325"})
    path.write_text("".join(json.dumps(line) + "\n" for line in lines))
    os.utime(path, (at.timestamp() + 3600, at.timestamp() + 3600))


def _lines(chance: random.Random, at: datetime, base: dict[str, Any]) -> Iterator[dict[str, Any]]:
    model, context = chance.choices(MODELS, (6, 2, 3))[0], 9_000
    for _ in range(chance.randint(1, 5)):
        yield _line(base, at, "user", message={"role": "user", "content": chance.choice(ASKED)})
        for _ in range(chance.randint(2, 9)):
            at += timedelta(seconds=chance.uniform(3, 40))
            context += chance.randint(300, 6_000)
            name = chance.choice(list(TOOLS))
            call = f"toolu_{chance.getrandbits(64):x}"
            use = {"type": "tool_use", "id": call, "name": name, "input": TOOLS[name]}
            usage = {"input_tokens": 6, "output_tokens": chance.randint(40, 900)}
            usage |= {
                "cache_read_input_tokens": context,
                "cache_creation_input_tokens": chance.randint(100, 3_000),
            }
            message = {
                "id": f"msg_01{chance.getrandbits(96):024x}",
                "model": model,
                "usage": usage,
                "content": [use],
            }
            yield _line(base, at, "assistant", message={"role": "assistant", **message})
            at += timedelta(seconds=chance.uniform(0.1, 8))
            result = {
                "type": "tool_result",
                "tool_use_id": call,
                "content": "ok",
                "is_error": chance.random() < 0.06,
            }
            yield _line(base, at, "user", message={"role": "user", "content": [result]})
        at += timedelta(seconds=chance.uniform(1, 9))
        message = {
            "id": f"msg_01{chance.getrandbits(96):024x}",
            "model": model,
            "usage": {"input_tokens": 6, "output_tokens": 40, "cache_read_input_tokens": context},
            "content": [{"type": "text", "text": "Done."}],
            "stop_reason": "end_turn",
        }
        yield _line(base, at, "assistant", message={"role": "assistant", **message})


def _line(base: dict[str, Any], at: datetime, kind: str, **fields: Any) -> dict[str, Any]:
    time = at.isoformat(timespec="milliseconds").replace("+00:00", "Z")
    return {**base, "type": kind, "uuid": str(uuid.uuid4()), "timestamp": time, **fields}


def shoot(tab: Tab, base: str, demo: str, folder: Path, theme: str) -> None:
    views = {"home": "/", "sessions": "/sessions", "session": demo}
    views |= {"timeline": f"{demo}/timeline?exchange=3", "wire": f"{demo}/wire"}
    tab.emulate_media(color_scheme="dark" if theme == "dark" else "light")
    for name, path in views.items():
        tab.goto(base + path)
        if name == "wire":
            tab.click(".calls tbody tr:nth-child(3) a")
        tab.wait_for_timeout(400)
        target = folder / f"{name}-{theme}.png"
        tab.screenshot(path=target)
        print(f"{target}: {target.stat().st_size / 1000:.0f} KB")


def main() -> None:
    folder = Path(sys.argv[1] if len(sys.argv) > 1 else Path(__file__).parents[1] / "docs" / "screenshots")
    folder.mkdir(parents=True, exist_ok=True)
    with tempfile.TemporaryDirectory() as temporary:
        home = Path(temporary)
        some_days(home)
        homes.demo(home, pace=1.0)
        with showing(home) as page, chromium() as browser, let_in(browser, page, viewport=SIZE) as watched:
            watched.go("/api/v1/sessions?project=/demo/tea-timer")
            demo = json.loads(watched.tab.inner_text("body"))["items"][0]["url"]
            for theme in ("light", "dark"):
                shoot(watched.tab, page.url, demo, folder, theme)


if __name__ == "__main__":
    main()
