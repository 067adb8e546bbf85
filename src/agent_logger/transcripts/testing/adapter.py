"""What must hold for an adapter: a program that talks to another provider, and writes the files that Claude Code
would."""

import os
from pathlib import Path
from typing import Annotated, Literal, TypeVar

import msgspec
from msgspec import Meta

from agent_logger.agents.claude_code.naming import project_folders
from agent_logger.logs.reader import read_session
from agent_logger.logs.verify import verify_file
from agent_logger.model.session import Session, Usage

T = TypeVar("T")

# ---------------------------------------------------------------- what must be printed, and how

Some = Annotated[str, Meta(min_length=1)]
Uuid = Annotated[str, Meta(pattern=r"^[0-9a-f]{8}(?:-[0-9a-f]{4}){3}-[0-9a-f]{12}$")]
TimeInUtc = Annotated[str, Meta(pattern=r"^\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d(?:\.\d+)?Z$")]


class _Head(msgspec.Struct):
    type: str


class _Result(msgspec.Struct):
    type: Literal["result"]
    result: str
    session_id: Uuid
    duration_ms: Annotated[float, Meta(ge=0)]
    num_turns: Annotated[float, Meta(ge=1)]
    total_cost_usd: Annotated[float, Meta(ge=0)] | None


class _Block(msgspec.Struct):
    type: str
    id: str = ""
    name: str = ""
    tool_use_id: str = ""


class _Tokens(msgspec.Struct):
    input_tokens: int
    output_tokens: int


class _Prompt(msgspec.Struct):
    role: Literal["user"]
    content: str | list[_Block] = ""


class _Response(msgspec.Struct):
    role: Literal["assistant"]
    id: Some
    model: Some
    usage: _Tokens
    content: Annotated[list[_Block], Meta(min_length=1, max_length=1)]  # a line a block


class _Line(msgspec.Struct):
    """A line of any type."""

    uuid: str | None = None
    parent: str | None = msgspec.field(name="parentUuid", default=None)


class _Summary(_Line, kw_only=True):
    summary: str


class _MessageLine(_Line, kw_only=True):
    uuid: Some
    timestamp: TimeInUtc
    session: str = msgspec.field(name="sessionId")
    cwd: str


class _UserLine(_MessageLine, kw_only=True):
    message: _Prompt


class _Answered(_MessageLine, kw_only=True):
    message: _Response


LINES: dict[str, type[_Line]] = {"summary": _Summary, "user": _UserLine, "assistant": _Answered}


def run_adapter_conformance(
    output: str | bytes, *, config_dir: str | os.PathLike[str], cwd: str | os.PathLike[str], usage: Usage
) -> Session:
    """Check what one run of an adapter printed with `--output-format json`, and the file that it left below
    `config_dir` for a session in `cwd`. `usage` is the sum of what the endpoint reported, each response once.

    Raises `AssertionError` with what does not hold; otherwise returns the session as we read it.
    """
    result = _result(output)
    path = _file(Path(config_dir), Path(cwd), result.session_id)
    lines = _lines(path)
    for line in lines:
        assert not isinstance(line, _MessageLine) or line.session == result.session_id, (
            f"{line} belongs to another session"
        )
    _check_chain(lines)
    _check_tools(lines, path)
    session = read_session(path)
    assert session.usage == usage, f"the file has usage {session.usage}, the endpoint {usage}"
    texts = [block.text for turn in session.turns[-1:] for block in turn.blocks if block.kind == "text"]
    assert result.result == (texts[-1] if texts else ""), "the result is not the last text of the model"
    return session


def _read(data: str | bytes | msgspec.Raw, kind: type[T], what: str) -> T:
    try:
        return msgspec.json.decode(data, type=kind)
    except ValueError as error:
        raise AssertionError(f"{what}: {error}") from error


def _result(output: str | bytes) -> _Result:
    printed = _read(output, list[msgspec.Raw], "the output is not a JSON array")
    types = [_read(raw, _Head, "a message has no type").type for raw in printed]
    assert types.count("result") == 1 and types[-1] == "result", "the array does not end with its one result"
    return _read(printed[-1], _Result, "the result")


# ---------------------------------------------------------------- the file


def _file(config_dir: Path, cwd: Path, session_id: str) -> Path:
    path = config_dir / "projects" / project_folders(cwd)[0] / f"{session_id}.jsonl"
    assert path.is_file() and not path.is_symlink(), f"there is no session in {path}"
    report = verify_file(path)
    assert not report.damage and not report.torn_bytes, f"{path} has damage: {report}"
    return path


def _lines(path: Path) -> list[_Line]:
    lines = path.read_bytes().split(b"\n")[:-1]
    assert lines, f"{path} is empty"
    for line in lines:
        assert b'"type":"' in line, f"a line is not compact JSON with a type: {line[:80]!r}"
    types = [_read(line, _Head, "a line has no type").type for line in lines]
    return [
        _read(line, LINES.get(kind, _Line), f"a line of type {kind!r}") for line, kind in zip(lines, types, strict=True)
    ]


def _check_chain(lines: list[_Line]) -> None:
    uuids: set[str] = set()
    for line in lines:
        assert line.parent is None or line.parent in uuids, f"parentUuid {line.parent!r} is not an earlier line"
        if line.uuid is not None:
            assert line.uuid not in uuids, f"uuid {line.uuid!r} occurs twice"
            uuids.add(line.uuid)


def _check_tools(lines: list[_Line], path: Path) -> None:
    calls: list[str] = []
    results: list[str] = []
    for line in lines:
        content = line.message.content if isinstance(line, _UserLine | _Answered) else ""
        for block in content if isinstance(content, list) else ():
            if block.type == "tool_use":
                assert block.id and block.name, "a tool call has no id or no name"
                calls.append(block.id)
            elif block.type == "tool_result":
                assert block.tool_use_id in calls, "a result comes before its call, or has no call"
                results.append(block.tool_use_id)
    assert sorted(calls) == sorted(results), f"calls {calls} and results {results} do not match"
    counted = sum(b'"type":"tool_use"' in line for line in path.read_bytes().split(b"\n"))
    assert counted == len(calls), (
        f'number of lines with "type":"tool_use": {counted}; number of tool calls: {len(calls)}'
    )
