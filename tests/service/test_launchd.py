"""The property list for launchd, and its log, which nobody else keeps small."""

import os
import plistlib
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from agent_logger.service.launchd import LOG, MOST_LOG_BYTES, Launchd, limit_log, property_list
from agent_logger.service.manager import ServiceError, ServiceProgram

IN_XML = st.text(st.characters(exclude_categories=["Cs", "Cc"], exclude_characters="\ufffe\uffff"))


@given(st.lists(IN_XML, min_size=1), IN_XML)
def test_arguments_and_variables_are_read_back_as_they_were(arguments: list[str], value: str) -> None:
    read = plistlib.loads(property_list(ServiceProgram(arguments, {"NAME": value}), Path("/h/service.log")).encode())
    assert (read["ProgramArguments"], read["EnvironmentVariables"]) == (arguments, {"NAME": value})
    assert read["KeepAlive"] == {"SuccessfulExit": False}
    assert read["RunAtLoad"] is True
    assert read["StandardErrorPath"] == "/h/service.log"


@pytest.mark.parametrize("text", ["\x1b[1m", "\udcff", "\0"])
def test_text_that_xml_cannot_hold_is_refused(text: str) -> None:
    with pytest.raises(ServiceError, match="property list"):
        property_list(ServiceProgram(["/bin/agent-logger", text], {}), Path("/h/service.log"))


def test_a_property_list_names_the_command_that_it_starts(tmp_path: Path) -> None:
    manager = Launchd(tmp_path, tmp_path / "home")
    definition = manager.definition(ServiceProgram(["/opt/agent-logger", "start", "--no-open"], {}))
    assert manager.starts(definition, ["/opt/agent-logger", "start"])
    assert not manager.starts(definition, ["/usr/bin/agent-logger", "start"])
    assert not manager.starts("not a property list", ["/opt/agent-logger", "start"])


def test_a_log_that_is_too_large_is_cut_to_its_last_lines(tmp_path: Path) -> None:
    log = tmp_path / LOG
    lines = [f"line {number:08}\n" for number in range(MOST_LOG_BYTES // 14 + 2)]
    log.write_text("".join(lines))
    descriptor = os.open(log, os.O_WRONLY | os.O_APPEND)
    try:
        limit_log(tmp_path, descriptor)
        os.write(descriptor, b"next\n")
    finally:
        os.close(descriptor)
    remaining = log.read_text().splitlines(keepends=True)
    assert remaining[-1] == "next\n"
    assert remaining[:-1] == lines[-len(remaining) + 1 :]
    assert log.stat().st_size < MOST_LOG_BYTES


@pytest.mark.parametrize("size", [0, MOST_LOG_BYTES])
def test_a_small_log_is_not_cut(tmp_path: Path, size: int) -> None:
    log = tmp_path / LOG
    log.write_bytes(b"x" * size)
    with log.open("ab") as file:
        limit_log(tmp_path, file.fileno())
    assert log.stat().st_size == size


def test_a_log_that_this_process_does_not_write_is_not_cut(tmp_path: Path) -> None:
    log = tmp_path / LOG
    log.write_bytes(b"x" * 2 * MOST_LOG_BYTES)
    with (tmp_path / "other").open("ab") as other:
        limit_log(tmp_path, other.fileno())
    assert log.stat().st_size == 2 * MOST_LOG_BYTES
