from pathlib import Path

import pytest
from msgspec.structs import replace

from agent_logger.errors import SourceError
from agent_logger.exports.wire import wire_lines
from agent_logger.journal.bodies import SPILL_BYTES
from agent_logger.logs.reader import read_session
from agent_logger.logs.verify import verify_file
from agent_logger.model import records
from agent_logger.model.records import Fork, Record, Request, Response, WireStart
from tests.journal.wire_logs import calls, own, start, write


def exported(folder: Path, name: str) -> list[Record]:
    damage: list[object] = []
    lines = list(wire_lines(folder, name, damage.append))
    assert all(line.count(b"\n") == 1 and line.endswith(b"\n") for line in lines)
    assert damage == []
    read = [records.decode(line, "wire") for line in lines]
    return [it for it in read if isinstance(it, Record)]


def test_a_branch_is_exported_with_the_shared_history_of_its_ancestors(tmp_path: Path) -> None:
    write(tmp_path, "log", [start("log"), *calls(1, 2)])
    write(tmp_path, "log_b1", own("log_b1", "log", 1, 2, 3))
    write(tmp_path, "log_b2", own("log_b2", "log_b1", 1, 3))
    shown = [
        (type(it), getattr(it, "seq", None) or getattr(it, "from_seq", None)) for it in exported(tmp_path, "log_b2")
    ]
    assert shown == [
        (WireStart, None),
        (Request, 1),
        (Response, 1),
        (WireStart, None),
        (Fork, 1),
        (Request, 2),
        (Response, 2),
        (WireStart, None),
        (Fork, 2),
        (Request, 3),
        (Response, 3),
    ]


def test_the_exported_file_is_a_log_of_the_same_session(tmp_path: Path) -> None:
    write(tmp_path, "log", [start("log"), *calls(1, 2)])
    branch = write(tmp_path, "log_b1", own("log_b1", "log", 1, 3))
    file = tmp_path / "elsewhere" / "any.jsonl"
    file.parent.mkdir()
    file.write_bytes(b"".join(wire_lines(tmp_path, "log_b1", lambda _: None)))
    assert read_session(file) == read_session(branch)
    assert (verify_file(file).damage, verify_file(file).records) == ([], 7)


@pytest.mark.parametrize("secret", ["hunter2-of-a-gateway", "tiny1"])
def test_headers_of_an_older_log_are_exported_without_credentials(tmp_path: Path, secret: str) -> None:
    request, response = calls(1)
    assert isinstance(request, Request) and isinstance(response, Response)
    headers = {"X-Portkey-Api-Key": secret, "Cookie": [f"a={secret}", "b=c"], "X-Request-Id": "17"}
    body = f'{{"error":"key {secret} is unknown"}}'
    old = [replace(request, headers=headers), replace(response, body=body, chunks=None, trailers=headers)]
    write(tmp_path, "log", [start("log"), *old])
    _, request, response = exported(tmp_path, "log")
    assert isinstance(request, Request) and isinstance(response, Response)
    hidden = {
        "X-Portkey-Api-Key": "[redacted]",
        "Cookie": ["a=[redacted]", "b=[redacted]"],
        "X-Request-Id": "17",
    }
    assert request.headers == response.trailers == hidden
    echoed = secret if len(secret) < 6 else "[redacted]"  # as the rule has it
    assert response.body == f'{{"error":"key {echoed} is unknown"}}'


def test_exported_records_omit_log_part_machine_and_writer(tmp_path: Path) -> None:
    write(tmp_path, "log", [start("log"), *calls(1)])
    assert all((it.log, it.part, it.machine, it.writer, it.mac) == (None,) * 5 for it in exported(tmp_path, "log"))


def test_a_large_body_is_inlined_in_its_line(tmp_path: Path) -> None:
    asked, answer = calls(1)
    body = "x" * (SPILL_BYTES + 1)
    assert isinstance(asked, Request)
    write(tmp_path, "log", [start("log"), replace(asked, body=body), answer])
    assert len(list((tmp_path / "log.bodies").iterdir())) == 1
    [copy] = [it for it in exported(tmp_path, "log") if isinstance(it, Request)]
    assert (copy.body, copy.body_file) == (body, None)


def test_lines_of_unknown_newer_types_are_exported_unchanged(tmp_path: Path) -> None:
    path = write(tmp_path, "log", [start("log"), *calls(1)])
    newer = b'{"type":"hologram","v":9}\n'
    path.write_bytes(path.read_bytes() + newer)
    assert list(wire_lines(tmp_path, "log", lambda _: None))[-1] == newer


def test_damaged_lines_are_reported_to_the_callback(tmp_path: Path) -> None:
    path = write(tmp_path, "log", [start("log"), *calls(1)])
    path.write_bytes(path.read_bytes() + b"\0\0\n")
    damage: list[object] = []
    assert len(list(wire_lines(tmp_path, "log", damage.append))) == 3
    assert [getattr(it, "reason", None) for it in damage] == ["NUL bytes"]


def test_a_file_that_is_not_a_wire_log_is_rejected(tmp_path: Path) -> None:
    (tmp_path / "other.jsonl").write_text('{"type":"user"}\n')
    with pytest.raises(SourceError):
        list(wire_lines(tmp_path, "other", lambda _: None))
