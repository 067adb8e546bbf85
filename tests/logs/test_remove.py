"""What belongs to a log, and goes with it."""

from pathlib import Path

from msgspec.structs import replace

from agent_logger.files.parts import PartFile
from agent_logger.logs.remove import removal_of_log
from agent_logger.model.records import Request
from tests.journal.wire_logs import calls, start, write

CALL = "019a0000-0000-7000-8000-00000000000a"


def test_a_body_that_is_named_after_a_call_goes_with_the_log_though_no_record_names_the_file(
    tmp_path: Path,
) -> None:
    """A crash came between the body and its record."""
    request, response = calls(1)
    assert isinstance(request, Request)
    write(tmp_path, "log", [start("log"), replace(request, call=CALL), response])
    bodies = tmp_path / "log.bodies"
    bodies.mkdir(exist_ok=True)
    (bodies / f"{CALL}.response").write_bytes(b"x")
    (bodies / f"{CALL[:-1]}b.response").write_bytes(b"x")
    removal = removal_of_log(PartFile(tmp_path, "log"))
    assert bodies / f"{CALL}.response" in [file.path for file in removal.files]
    assert removal.strangers == [bodies / f"{CALL[:-1]}b.response"]
