"""Runs under Harbor's Python: validates trajectories, and converts the same sessions with Harbor's own converters.

Reads lines of JSON from stdin: {"ours": a trajectory, "converter": null, "claude" or "codex", "folder": its session's}.
Prints a line for each: {"errors": [...], "ours": figures, "theirs": figures or null}.
"""

import json
import logging
import sys
from pathlib import Path
from typing import Any


def figures(root: dict[str, Any]) -> dict[str, Any]:
    parts = [root, *(root.get("subagent_trajectories") or [])]
    steps = [step for part in parts for step in part["steps"] if step["source"] == "agent"]
    metrics = [step["metrics"] for step in steps if step.get("metrics")]
    names = ("prompt_tokens", "completion_tokens", "cached_tokens")
    return {
        "steps": sum(step.get("llm_call_count") != 0 for step in steps),
        "tools": sorted(call["function_name"] for step in steps for call in step.get("tool_calls") or []),
        "tokens": [sum(metric.get(name) or 0 for metric in metrics) for name in names],
    }


def converted(name: str, folder: str) -> dict[str, Any] | None:
    from harbor.agents.installed.claude_code import ClaudeCode  # type: ignore[import-not-found]
    from harbor.agents.installed.codex import Codex  # type: ignore[import-not-found]

    kind = {"claude": ClaudeCode, "codex": Codex}[name]
    converter = kind.__new__(kind)
    converter.logger, converter.model_name, converter.logs_dir = logging.getLogger("harbor"), None, Path(folder)
    trajectory = converter._convert_events_to_trajectory(Path(folder))
    return figures(trajectory.to_json_dict()) if trajectory else None


def main() -> None:
    from harbor.utils.trajectory_validator import TrajectoryValidator  # type: ignore[import-not-found]

    for line in sys.stdin:
        item = json.loads(line)
        validator = TrajectoryValidator()
        validator.validate(item["ours"])
        ours = json.loads(Path(item["ours"]).read_text())
        theirs = converted(item["converter"], item["folder"]) if item["converter"] else None
        print(json.dumps({"errors": list(map(str, validator.get_errors())), "ours": figures(ours), "theirs": theirs}))


if __name__ == "__main__":
    main()
