"""Sessions of Claude Code for commands to read, each on a day of its own."""

import json
import os
from datetime import datetime
from pathlib import Path
from typing import Any

ID = "{:08x}-2222-4222-8222-222222222222"


def write_session(
    home: Path,
    number: int,
    at: datetime,
    prompt: str,
    *,
    output_tokens: int = 1000,
    model: str = "claude-opus-4-5",
    project: str = "/work/shop",
    failed_tools: int = 0,
) -> str:
    """Write a session with one prompt and one answer. Returns its id."""
    session = ID.format(number)
    content: list[dict[str, Any]] = [{"type": "text", "text": f"Answer {number}"}]
    results = []
    for tool in range(failed_tools):
        use = f"toolu_{number:04}{tool:018}"
        content.append({"type": "tool_use", "id": use, "name": "Bash", "input": {"command": "false"}})
        results.append({"type": "tool_result", "tool_use_id": use, "content": "exit code 1", "is_error": True})
    usage = {"input_tokens": 10, "output_tokens": output_tokens}
    answer = {
        "id": f"msg_01{number:022}",
        "role": "assistant",
        "model": model,
        "content": content,
        "stop_reason": "end_turn",
        "usage": usage,
    }
    lines = [
        {"type": "user", "message": {"role": "user", "content": prompt}},
        {"type": "assistant", "requestId": f"req_{number}", "message": answer},
        *([{"type": "user", "message": {"role": "user", "content": results}}] if results else []),
    ]
    common = {"sessionId": session, "cwd": project, "timestamp": at.isoformat(timespec="milliseconds")}
    numbered = [{"uuid": f"{session[:8]}-{line}", **common, **record} for line, record in enumerate(lines)]
    path = home / ".claude" / "projects" / project.replace("/", "-") / f"{session}.jsonl"
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text("".join(json.dumps(line) + "\n" for line in numbered))
    os.utime(path, (at.timestamp(), at.timestamp()))
    return session
