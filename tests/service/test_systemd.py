"""The user unit, read by the real `systemd-analyze`."""

import re
import subprocess
from pathlib import Path
from tempfile import TemporaryDirectory

import pytest
from hypothesis import given
from hypothesis import strategies as st

from agent_logger.service.manager import ServiceError, ServiceProgram
from agent_logger.service.systemd import Systemd, command_line, unit

ODD = 'my "own" $HOME 100% it\'s; \\ back'


def executable(folder: Path) -> Path:
    folder.mkdir(parents=True)
    path = folder / "agent-logger"
    path.write_text("#!/bin/sh\n")
    path.chmod(0o755)
    return path


def verify(path: Path) -> subprocess.CompletedProcess[str]:
    command = ["systemd-analyze", "--user", "--man=no", "verify", str(path)]
    with TemporaryDirectory() as runtime:  # with a short path: other units of the machine have sockets below it
        variables = {"PATH": "/usr/bin:/bin", "HOME": str(path.parent), "XDG_RUNTIME_DIR": runtime}
        return subprocess.run(command, env=variables, capture_output=True, text=True, check=False)


@pytest.mark.needs("systemd")
@pytest.mark.parametrize("name", ["plain", ODD, "ünï cödé ✓"])
def test_systemd_accepts_the_unit(tmp_path: Path, name: str) -> None:
    program = executable(tmp_path / name)
    home = {"AGENT_LOGGER_HOME": str(tmp_path / name)}
    path = tmp_path / "agent-logger.service"
    path.write_text(unit(ServiceProgram([str(program), "start", "--log-dir", str(tmp_path / name)], home)))
    checked = verify(path)
    assert (checked.returncode, checked.stderr) == (0, "")


@pytest.mark.needs("systemd")
def test_systemd_refuses_a_unit_whose_executable_has_moved(tmp_path: Path) -> None:
    program = executable(tmp_path / "my $HOME 100%")
    path = tmp_path / "agent-logger.service"
    path.write_text(unit(ServiceProgram([str(program), "start"], {})))
    program.unlink()
    assert verify(path).returncode != 0


WORD = re.compile(r'"((?:[^"\\]|\\.)*)"')
ESCAPE = re.compile(r"\\x(..)|\\(.)|%%")


def words_of(value: str) -> list[str]:
    """Read a value as systemd.syntax(7) describes it. Only arguments have variables, and in them `$$` is `$`."""
    assert re.fullmatch(rf"{WORD.pattern}( {WORD.pattern})*", value), value
    words = [ESCAPE.sub(_character, quoted) for quoted in WORD.findall(value)]
    return [words[0], *(word.replace("$$", "$") for word in words[1:])]


def _character(escape: re.Match[str]) -> str:
    return "%" if escape[0] == "%%" else chr(int(escape[1], 16)) if escape[1] else escape[2]


TEXTS = st.text(st.characters(exclude_categories=["Cs"], exclude_characters="\0"), min_size=1)


@given(st.lists(TEXTS))
def test_every_argument_survives_the_quoting(more: list[str]) -> None:
    arguments = ["/opt/100% $HOME/agent-logger", *more]
    line = command_line(arguments)
    assert "\n" not in line and "\r" not in line
    assert "%" not in line.replace("%%", "")
    assert words_of(line) == arguments


def test_a_path_that_systemd_refuses_is_started_by_a_shell(tmp_path: Path) -> None:
    program = executable(tmp_path / ODD)
    program.write_text('#!/bin/sh\necho "$0" "$@"\n')
    words = words_of(command_line([str(program), "start", ODD]))
    assert subprocess.run(words, capture_output=True, text=True, check=True).stdout == f"{program} start {ODD}\n"


def test_bytes_that_are_not_utf_8_are_refused_with_the_path() -> None:
    with pytest.raises(ServiceError, match=r"udcff.*UTF-8"):
        command_line(["/bin/agent-logger", "/home/\udcff"])


def test_a_unit_names_the_command_that_it_starts(tmp_path: Path) -> None:
    manager = Systemd(tmp_path)
    definition = manager.definition(ServiceProgram(["/opt/a b/agent-logger", "start", "--no-open"], {}))
    assert manager.starts(definition, ["/opt/a b/agent-logger", "start"])
    assert not manager.starts(definition, ["/opt/b/agent-logger", "start"])
