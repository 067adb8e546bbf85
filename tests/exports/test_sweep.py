"""A sweep over all formats: no credential leaves, and with masks no path, name or address of the machine."""

import json
import subprocess
import sys
from pathlib import Path

import pytest
from msgspec.structs import replace

from agent_logger.exports.base import ExportContext, ExportedSession
from agent_logger.exports.check import check
from agent_logger.exports.formats import FORMATS, pieces_of
from agent_logger.exports.masks.mask import KINDS, Machine, Pseudonyms, SessionMask
from agent_logger.exports.report import ExportReport, Inspector, add_findings, report_lines
from agent_logger.files.parts import PartFile
from agent_logger.files.sources import Source
from agent_logger.model.records import Chunk, Request, Response
from agent_logger.model.session import Session
from tests.journal.wire_logs import calls, start, write
from tests.memory import PEAK_KB
from tests.views.sessions import hostile

KEYS = {
    "anthropic": "sk-ant-api03-" + "Qz7" * 20,
    "openai": "sk-proj-" + "Kb4" * 14,
    "github": "ghp_" + "Wm9" * 12,
    "aws": "AKIA" + "ZX3Q" * 4,
    "slack": "xoxb-123456789012-" + "aB3" * 8,
    "bearer": "Bearer " + "tOk3n" * 8,
    "url_password": "https://bob:s3cr3tPass@db.example.org/x",
}
CANARIES = [key.rpartition("-")[2][-9:] for key in KEYS.values() if not key.startswith(("https", "xoxb"))] + [
    "s3cr3tPass"
]
PRIVATE = ("/home/bob/plans", "annlogin", "Ann Lee", "build-host-7", "ann@corp.example.org")
MACHINE = Machine(("/srv/people/ann",), ("annlogin", "Ann Lee", "build-host-7"))
TEXT = "; ".join([*KEYS.values(), *PRIVATE])


def events(text: str) -> str:
    """An answer of Anthropic's API that gives its text in pieces of seven characters."""
    pieces = [text[at : at + 7] for at in range(0, len(text), 7)]
    delta = '{{"type":"content_block_delta","index":0,"delta":{{"type":"text_delta","text":{}}}}}'
    return "".join(f"event: content_block_delta\ndata: {delta.format(json.dumps(piece))}\n\n" for piece in pieces)


@pytest.fixture
def logs(tmp_path: Path) -> tuple[PartFile, ...]:
    request, response = calls(1)
    assert isinstance(request, Request) and isinstance(response, Response)
    body = json.dumps({"model": "m", "system": TEXT, "messages": [{"role": "user", "content": TEXT}]})
    asked = replace(request, path="/v1/messages", body=body, kind="main")
    stream = events("; ".join(PRIVATE))
    chunks = [Chunk(delta_ms=1.0, raw=stream[at : at + 40]) for at in range(0, len(stream), 40)]
    write(tmp_path, "log", [start("log"), asked, replace(response, body=None, chunks=chunks)])
    return (PartFile(tmp_path, "log"),)


def exported(form: str, session: Session, logs: tuple[PartFile, ...], mask: SessionMask | None = None) -> str:
    given = session_with(session, logs)
    context = ExportContext(mask) if mask else ExportContext()
    return b"".join(piece.data for piece in pieces_of(FORMATS[form], given, context)).decode()


def session_with(session: Session, logs: tuple[PartFile, ...]) -> ExportedSession:
    sources = [Source(str(log.path), None, str(log.path), log.name, 0.0, 0, "") for log in logs]
    return ExportedSession(session.id, read=lambda: session, wire_logs=lambda: logs, sources=lambda: sources)


@pytest.mark.parametrize("form", FORMATS)
def test_no_credential_is_in_any_format(form: str, logs: tuple[PartFile, ...]) -> None:
    text = exported(form, hostile(TEXT), logs)
    assert [canary for canary in CANARIES if canary in text] == []
    assert "annlogin" in text, "the test has to see what it searches"


@pytest.mark.parametrize("form", [name for name, form in FORMATS.items() if not form.packed])
def test_nothing_of_the_machine_is_in_a_masked_export(form: str, logs: tuple[PartFile, ...]) -> None:
    mask = SessionMask(frozenset(KINDS), Pseudonyms(bytes(32)), MACHINE)
    text = exported(form, hostile(TEXT), logs, mask)
    pieces = "".join(
        json.loads(line[6:])["delta"]["text"] for line in streamed(text).split("\n") if line[:5] == "data:"
    )
    for private in ("bob/plans", "annlogin", "Ann Lee", "build-host-7", "corp.example"):
        assert private not in text + pieces
    assert [hit for hit in check([text.encode()], masks=[mask]) if hit.rule == "mask"] == []


def streamed(text: str) -> str:
    """The streams of a wire export, put together."""
    lines = [json.loads(line) for line in text.split("\n") if line.startswith('{"type":"response"')]
    return "".join(chunk.get("raw") or "" for line in lines for chunk in line.get("chunks") or ())


@pytest.mark.parametrize("form", FORMATS)
def test_the_report_counts_what_was_removed_with_its_place(form: str, logs: tuple[PartFile, ...]) -> None:
    session, report = hostile(TEXT), ExportReport(format=form)
    given = session_with(session, logs)
    inspector = Inspector("s")
    for _ in inspector.inspected(pieces_of(FORMATS[form], given, ExportContext())):
        pass
    add_findings(report, inspector.findings(0))
    assert {"anthropic", "github", "aws"} <= {row.rule for row in report.removed}
    assert all(row.place for row in report.removed)
    assert report.removed_total == sum(row.count for row in report.removed)
    assert "ann@corp.example.org" in {row.value for row in report.odd}
    assert any("removed:" in line for line in report_lines(report))


LONG = """
import sys
from pathlib import Path
from agent_logger.exports.base import ExportContext, ExportedSession
from agent_logger.exports.formats import FORMATS, pieces_of
from agent_logger.exports.report import Inspector
from agent_logger.files.sources import source_at
from agent_logger.logs.reader import read_session

path = Path(sys.argv[1])
sources = [source_at("claude-code", path)]
given = ExportedSession("long", read=lambda: read_session(path), sources=lambda: sources)
for _ in Inspector("long").inspected(pieces_of(FORMATS[sys.argv[2]], given, ExportContext())):
    pass
print(peak_kb())
"""


@pytest.mark.long
@pytest.mark.parametrize("form", [form for form in FORMATS if form != "wire"])
def test_a_session_of_50_mb_takes_less_than_150_mb_of_memory(form: str, tmp_path: Path) -> None:
    path = tmp_path / "11111111-2222-4222-8222-222222222222.jsonl"
    with path.open("w") as file:
        for number in range(2500):
            common = {"sessionId": path.stem, "cwd": "/work", "version": "2.1.325", "timestamp": "2026-11-15T10:00:00Z"}
            usage = {"input_tokens": 1, "output_tokens": 1}
            use = {
                "type": "tool_use",
                "id": f"toolu_{number:024}",
                "name": "Bash",
                "input": {"command": f"cat {number}"},
            }
            message = {
                "id": f"msg_01{number:022}",
                "role": "assistant",
                "model": "claude-opus-4-5",
                "content": [use],
                "usage": usage,
            }
            result = {"type": "tool_result", "tool_use_id": use["id"], "content": f"line {number}\n" * 1700}
            lines = [("assistant", message), ("user", {"role": "user", "content": [result]})]
            for at, (kind, value) in enumerate(lines):
                file.write(json.dumps({"type": kind, "message": value, "uuid": f"{number}-{at}", **common}) + "\n")
    assert path.stat().st_size > 45_000_000
    command = [sys.executable, "-c", PEAK_KB + LONG, str(path), form]
    done = subprocess.run(command, capture_output=True, text=True, check=True)
    assert int(done.stdout) < 150_000
