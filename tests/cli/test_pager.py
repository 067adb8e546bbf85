"""Long output on a terminal goes through a pager."""

import fcntl
import os
import struct
import subprocess
import sys
import termios
from datetime import UTC, datetime, timedelta
from pathlib import Path

import pytest
from tests.cli.sessions import write_session
from tests.cli.terminals import STYLE, _read
from tests.commands import run_command

DAY = datetime(2026, 11, 1, 12, tzinfo=UTC)


@pytest.fixture(autouse=True)
def sessions(home: Path) -> None:
    for number in range(1, 21):
        write_session(home, number, DAY + timedelta(hours=number), f"Prompt {number}\n" + "and so on\n" * 10)


@pytest.fixture
def pager(tmp_path: Path) -> Path:
    """A pager that stores what it gets, and its options."""
    program = tmp_path / "pager"
    program.write_text(f'#!/bin/sh\necho "LESS=$LESS" > {tmp_path}/options\ncat > {tmp_path}/paged\n')
    program.chmod(0o700)
    return program


def on_terminal(home: Path, *arguments: str, lines: int = 10, **variables: str) -> str:
    main, terminal = os.openpty()
    fcntl.ioctl(terminal, termios.TIOCSWINSZ, struct.pack("HHHH", lines, 80, 0, 0))
    environment = {"PATH": os.environ["PATH"], "HOME": str(home), "TERM": "xterm-256color", **variables}
    command = [sys.executable, "-m", "agent_logger", *arguments]
    with subprocess.Popen(command, stdout=terminal, stderr=terminal, env=environment) as process:
        os.close(terminal)
        printed = b""
        while chunk := _read(main):
            printed += chunk
    os.close(main)
    assert process.returncode == 0
    return printed.decode().replace("\r\n", "\n")


COMMANDS = [("ls",), ("show", "last"), ("usage", "session"), ("search", "prompt"), ("ls", "--json")]


@pytest.mark.parametrize("words", COMMANDS, ids=" ".join)
def test_more_than_a_screen_is_paged_with_its_notes(home: Path, pager: Path, words: tuple[str, ...]) -> None:
    direct = on_terminal(home, *words, "--no-pager", PAGER=str(pager))
    assert len(direct.splitlines()) > 10
    assert not (pager.parent / "paged").exists()
    assert on_terminal(home, *words, PAGER=str(pager)) == ""
    assert (pager.parent / "paged").read_text() == direct, "colours, widths and notes are those of the terminal"
    assert (pager.parent / "options").read_text() == "LESS=FRX\n"


def test_one_screen_is_not_paged(home: Path, pager: Path) -> None:
    shown = on_terminal(home, "ls", "-n", "3", PAGER=str(pager))
    assert "Prompt 20" in shown and not (pager.parent / "paged").exists()
    assert on_terminal(home, "ls", lines=60, PAGER=str(pager)).count("Prompt") == 20


@pytest.mark.parametrize("program", ["", "cat", "no-such-program", "'unclosed"])
def test_without_a_pager_all_is_printed_at_once(home: Path, program: str) -> None:
    assert on_terminal(home, "ls", PAGER=program).count("Prompt") == 20


def test_a_dumb_terminal_has_no_pager_unless_it_is_chosen(home: Path, pager: Path) -> None:
    assert on_terminal(home, "ls", TERM="dumb").count("Prompt") == 20
    assert on_terminal(home, "ls", TERM="dumb", PAGER=str(pager)) == ""


def test_a_pipe_is_never_paged(home: Path, pager: Path) -> None:
    environment = {"PATH": os.environ["PATH"], "HOME": str(home), "PAGER": str(pager)}
    assert run_command(["ls"], environment).stdout.count("Prompt") == 20
    assert not (pager.parent / "paged").exists()


def test_options_and_colours_of_the_user_are_respected(home: Path, pager: Path) -> None:
    on_terminal(home, "show", "last", PAGER=str(pager), LESS="-S", NO_COLOR="1")
    assert (pager.parent / "options").read_text() == "LESS=-S\n"
    assert not STYLE.search((pager.parent / "paged").read_text())
    on_terminal(home, "show", "last", PAGER=str(pager))
    assert STYLE.search((pager.parent / "paged").read_text())


def test_leaving_the_pager_early_is_no_error(home: Path) -> None:
    shown = on_terminal(home, "ls", "--json", PAGER="head -n 2")
    assert shown.splitlines() == ["[", "  {"]
