"""What must hold of an adapter: a program that talks to another provider, and leaves what Claude Code would."""

import json
import math
import os
import re
from pathlib import Path
from typing import Any

from agent_logger.session import Session, Usage
from agent_logger.store.claude_files import project_folders
from agent_logger.store.read import read_session
from agent_logger.store.verify import verify_file

UUID = re.compile(r"[0-9a-f]{8}(?:-[0-9a-f]{4}){3}-[0-9a-f]{12}")
TIME = re.compile(r"\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d(?:\.\d+)?Z")

Line = dict[str, Any]


def run_adapter_conformance(
    output: str | bytes, *, config_dir: str | os.PathLike[str], cwd: str | os.PathLike[str], usage: Usage
) -> Session:
    """Look at what one run of an adapter printed with `--output-format json`, and at the file it left below
    `config_dir` for a session in `cwd`. `usage` is the sum of what the endpoint reported, each response once.

    Raises `AssertionError` with what does not hold; else gives the session as we read it.
    """
    result = _result(output)
    path = _file(Path(config_dir), Path(cwd), result["session_id"])
    lines = _lines(path)
    for line in lines:
        _check_line(line, result["session_id"])
    _check_chain(lines)
    _check_tools(lines, path)
    session = read_session(path)
    assert session.usage == usage, f"the file counts {session.usage}, the endpoint {usage}"
    texts = [block.text for turn in session.turns[-1:] for block in turn.blocks if block.kind == "text"]
    assert result["result"] == (texts[-1] if texts else ""), "the result is not the last text of the model"
    return session


# ---------------------------------------------------------------- what is printed


def _result(output: str | bytes) -> Line:
    try:
        printed = json.loads(output)
    except ValueError as error:
        raise AssertionError(f"what is printed is not JSON: {error}") from error
    assert isinstance(printed, list) and printed, "what is printed is not an array"
    assert all(isinstance(it, dict) and isinstance(it.get("type"), str) for it in printed), (
        "a message has no type"
    )
    results = [it for it in printed if it["type"] == "result"]
    assert len(results) == 1 and printed[-1] is results[0], "the array does not end with its one result"
    result: Line = results[0]
    assert isinstance(result.get("result"), str), "the result has no `result`"
    assert UUID.fullmatch(str(result.get("session_id"))), "`session_id` of the result is no UUID"
    for name, least in (("duration_ms", 0), ("num_turns", 1)):
        assert _is_number(result.get(name)) and result[name] >= least, f"the result has no `{name}`"
    cost = result.get("total_cost_usd", "")
    assert cost is None or (_is_number(cost) and cost >= 0), "`total_cost_usd` is neither a number nor null"
    return result


def _is_number(value: Any) -> bool:
    return isinstance(value, int | float) and not isinstance(value, bool) and math.isfinite(value)


# ---------------------------------------------------------------- the file


def _file(config_dir: Path, cwd: Path, session_id: str) -> Path:
    path = config_dir / "projects" / project_folders(cwd)[0] / f"{session_id}.jsonl"
    assert path.is_file() and not path.is_symlink(), f"there is no session in {path}"
    report = verify_file(path)
    assert not report.damage and not report.torn_bytes, f"{path} cannot be read whole: {report}"
    return path


def _lines(path: Path) -> list[Line]:
    lines = path.read_bytes().split(b"\n")[:-1]
    assert lines, f"{path} is empty"
    for line in lines:
        assert b'"type":"' in line, f"a line is not compact JSON with a type: {line[:80]!r}"
    return [json.loads(line) for line in lines]


def _check_line(line: Line, session_id: str) -> None:
    kind, where = line.get("type"), f"a line of type {line.get('type')!r}"
    if kind == "summary":
        assert isinstance(line.get("summary"), str), f"{where} has no summary"
    if kind not in ("user", "assistant"):
        return
    assert isinstance(line.get("uuid"), str) and line["uuid"], f"{where} has no uuid"
    assert TIME.fullmatch(str(line.get("timestamp"))), f"{where} has no timestamp in UTC"
    assert line.get("sessionId") == session_id, f"{where} is not of this session"
    assert isinstance(line.get("cwd"), str), f"{where} has no cwd"
    message = line.get("message")
    assert isinstance(message, dict) and message.get("role") == kind, f"{where} has no message with its role"
    if kind == "assistant":
        _check_response(message)


def _check_response(message: Line) -> None:
    for name in ("id", "model"):
        assert isinstance(message.get(name), str) and message[name], f"a response has no `{name}`"
    content, usage = message.get("content"), message.get("usage")
    assert isinstance(content, list) and len(content) == 1, "a line of a response has not one block"
    assert isinstance(usage, dict), "a response has no usage"
    for name in ("input_tokens", "output_tokens"):
        assert isinstance(usage.get(name), int), f"the usage of a response has no `{name}`"


def _check_chain(lines: list[Line]) -> None:
    seen: set[str] = set()
    for line in lines:
        parent = line.get("parentUuid")
        assert parent is None or parent in seen, f"parentUuid {parent!r} is no line before"
        if isinstance(line.get("uuid"), str):
            assert line["uuid"] not in seen, f"uuid {line['uuid']!r} is there twice"
            seen.add(line["uuid"])


def _check_tools(lines: list[Line], path: Path) -> None:
    calls: list[str] = []
    results: list[str] = []
    for line in lines:
        content = line["message"]["content"] if isinstance(line.get("message"), dict) else []
        for block in content if isinstance(content, list) else []:
            if block.get("type") == "tool_use":
                assert block.get("id") and block.get("name"), "a tool call has no id or no name"
                calls.append(block["id"])
            elif block.get("type") == "tool_result":
                assert block.get("tool_use_id") in calls, "a result comes before its call, or without one"
                results.append(block["tool_use_id"])
    assert sorted(calls) == sorted(results), f"calls {calls} and results {results} do not belong together"
    counted = sum(b'"type":"tool_use"' in line for line in path.read_bytes().split(b"\n"))
    assert counted == len(calls), (
        f'grep counts {counted} lines with "type":"tool_use", there are {len(calls)} calls'
    )
