"""What commands print: nothing that drives a terminal, columns that line up."""

import json
import os
import pty
import re
import select
import sys
import unicodedata
from collections.abc import Callable, Iterator
from contextlib import contextmanager, redirect_stderr, redirect_stdout
from dataclasses import dataclass
from io import StringIO
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st
from tests.catalog.catalogs import ID, claude_file, user
from tests.cli.terminals import STYLE, on_a_terminal, printed_on_a_terminal

from agent_logger.cli import _output
from agent_logger.cli._output import printable
from agent_logger.views.terminal import screen
from agent_logger.views.terminal.screen import width

HOSTILE = [
    pytest.param("\x1b[2J", "\\x1b[2J", id="escape sequence"),
    pytest.param("a\rb", "a\\rb", id="carriage return"),
    pytest.param("a\x08b\x7f", "a\\x08b\\x7f", id="backspace and DEL"),
    pytest.param("\x9b31m", "\\x9b31m", id="C1"),
    pytest.param("\x85", "\\x85", id="next line"),
    pytest.param("abc\u202etxt.exe", "abc\\u202etxt.exe", id="right-to-left override"),
    pytest.param("\u2066\u2069\u200e\u200f\u061c", "\\u2066\\u2069\\u200e\\u200f\\u061c", id="bidi marks"),
    pytest.param("\u180e\ufff9\u206a", "\\u180e\\ufff9\\u206a", id="invisible marks"),
    pytest.param("a\u2028b\u2029", "a\\u2028b\\u2029", id="line separators"),
    pytest.param("pass\u200bword\ufeff\u2060", "pass\\u200bword\\ufeff\\u2060", id="zero width"),
    pytest.param("\udcff", "\\udcff", id="lone surrogate"),
    pytest.param("hi\U000e0041\U000e0100", "hi\\U000e0041\\U000e0100", id="hidden text in tags"),
]

# Any text, and more often than chance would have it one with hostile characters. Not `st.text`,
# which leaves lone surrogates out.
hostile = st.sampled_from("\n\t\x1b\x7f\x85\u202e\u2028\udcff\U000e0041")
texts = st.lists(st.characters() | hostile).map("".join)

HARMLESS = [
    pytest.param("", id="empty"),
    pytest.param("plain \\x1b [red] text", id="text that looks like an escape"),
    pytest.param("Grüße, 日本語, e\u0301, ❤️", id="other scripts"),
    pytest.param("می\u200cخواهم", id="Persian with a non-joiner"),
    pytest.param("👨\u200d👩\u200d👧", id="a family"),
]


@pytest.mark.parametrize(("text", "shown"), HOSTILE)
def test_control_and_bidi_characters_are_escaped(text: str, shown: str) -> None:
    assert printable(text) == shown
    assert printable(text, lines=True) == shown


@pytest.mark.parametrize("text", [param.values[0] for param in HARMLESS])
def test_harmless_text_is_unchanged(text: str) -> None:
    assert printable(text) == text


def test_newlines_and_tabs_are_kept_only_with_lines_enabled() -> None:
    assert printable("a\n\tb") == "a\\n\\tb"
    assert printable("a\n\tb", lines=True) == "a\n\tb"


@given(texts)
def test_printable_leaves_no_control_characters(text: str) -> None:
    for shown, kept in ((printable(text), ""), (printable(text, lines=True), "\n\t")):
        left = {char for char in shown if unicodedata.category(char) in ("Cc", "Cs", "Zl", "Zp")}
        assert left <= set(kept)
        bidi = {char for char in shown if unicodedata.bidirectional(char) in BIDI_CONTROLS}
        assert not bidi
        shown.encode("utf-8")


BIDI_CONTROLS = {"LRE", "RLE", "LRO", "RLO", "PDF", "LRI", "RLI", "FSI", "PDI"}


@given(st.text(st.characters(exclude_categories=("C", "Z"), include_characters=" "), max_size=60))
def test_printable_text_is_unchanged(text: str) -> None:
    selectors = {char for char in text if "\U000e0100" <= char <= "\U000e01ef"}
    if not selectors:
        assert printable(text) == text


def test_data_goes_to_stdout_and_notes_to_stderr(capsys: pytest.CaptureFixture[str]) -> None:
    _output.echo("data\x1b\nmore")
    _output.note("note\x1b\nmore")
    assert capsys.readouterr() == ("data\\x1b\\nmore\n", "note\\x1b\\nmore\n")
    _output.echo("data\x1b\nmore", lines=True)
    _output.note("note\x1b\nmore", lines=True)
    assert capsys.readouterr() == ("data\\x1b\nmore\n", "note\\x1b\nmore\n")


# ---- JSON


@dataclass
class Row:
    name: str
    count: int


@given(texts)
def test_json_output_round_trips_text_without_control_characters(text: str) -> None:
    with redirect_stdout(StringIO()) as stdout:
        _output.json([Row(text, 1), {"key": text}])
    printed = stdout.getvalue()
    assert json.loads(printed) == [{"name": text, "count": 1}, {"key": text}]
    assert printed == printable(printed, lines=True)


def test_json_is_indented_and_keeps_readable_text(capsys: pytest.CaptureFixture[str]) -> None:
    _output.json(Row("日本", 2))
    assert capsys.readouterr().out == '{\n  "name": "日本",\n  "count": 2\n}\n'


# ---- tables

CELLS = ["ascii", "日本語", "e\u0301", "한글", "ﾊﾝｶｸ", "👨\u200d👩\u200d👧", "\u1112\u1161\u11ab", ""]


def test_columns_are_aligned_for_every_script(capsys: pytest.CaptureFixture[str]) -> None:
    _output.table(("cell", "next"), [(cell, "|") for cell in CELLS])
    lines = capsys.readouterr().out.splitlines()
    before = [line[: line.index("|")] for line in lines[1:]]
    assert {width(text) for text in before} == {8}
    assert width(lines[0][: lines[0].index("next")]) == 8


@pytest.mark.parametrize(
    ("text", "taken"), [("abc", 3), ("日本", 4), ("e\u0301", 1), ("ﾊ", 1), ("\u200d", 0), ("é", 1)]
)
def test_wide_characters_take_two_columns_and_combining_ones_none(text: str, taken: int) -> None:
    assert width(text) == taken


def test_a_column_of_numbers_is_aligned_right(capsys: pytest.CaptureFixture[str]) -> None:
    _output.table(("name", "count", "note"), [("a", 1, "x"), ("bb", 1000, "")])
    assert capsys.readouterr().out == "name  count  note\na         1  x\nbb     1000\n"


def test_a_table_without_rows_prints_its_header(capsys: pytest.CaptureFixture[str]) -> None:
    _output.table(("name", "count"), [])
    assert capsys.readouterr().out == "name  count\n"


def test_every_row_is_one_line_in_a_pipe(capsys: pytest.CaptureFixture[str]) -> None:
    _output.table(("a", "b"), [("x\ny" * 200, "\x1b[31m")])
    lines = capsys.readouterr().out.splitlines()
    assert len(lines) == 2
    assert lines[1] == "x\\ny" * 200 + "  \\x1b[31m"


SCRIPT = """
from agent_logger.cli import _output as output; from agent_logger.views.terminal import screen
output.table(("name", "value"), [("[red]x", "\\x1b[31m" + "y" * 100), ("日本", "z")])
print(screen.columns())
"""


def _on_a_terminal(tmp_path: Path, **variables: str) -> str:
    return printed_on_a_terminal([sys.executable, "-c", SCRIPT], tmp_path, **variables)


def test_long_cells_are_wrapped_on_a_terminal_and_markup_is_not_interpreted(tmp_path: Path) -> None:
    got = _on_a_terminal(tmp_path, COLUMNS="40")
    plain = STYLE.sub("", got)
    lines = plain.splitlines()
    assert lines[-1] == "40"
    assert max(map(width, lines)) <= 40
    assert plain.count("y") == 100
    assert "[red]x" in plain
    assert "\\x1b[31m" in plain


def test_a_terminal_without_a_size_counts_as_80_columns_wide(tmp_path: Path) -> None:
    assert _on_a_terminal(tmp_path).splitlines()[-1] == "80"


def test_no_color_disables_colours(tmp_path: Path) -> None:
    colour = r"\x1b\[(\d+;)*[34]\d"
    assert re.search(colour, _on_a_terminal(tmp_path))
    assert not re.search(colour, _on_a_terminal(tmp_path, NO_COLOR="1"))


@pytest.mark.parametrize("command", ["show", "search"])
def test_a_dumb_terminal_gets_no_escape_sequences(home: Path, command: str) -> None:
    claude_file(home, ID.format(1), [user(1, "zebra", ID.format(1))])
    asked = ID.format(1) if command == "show" else "zebra"
    assert "\x1b[" in on_a_terminal(home, command, asked)
    assert "\x1b" not in on_a_terminal(home, command, asked, TERM="dumb")


@contextmanager
def a_terminal() -> Iterator[Callable[[], bytes]]:
    """In place of stderr. What it yields tells what was written to it."""
    ours, theirs = pty.openpty()

    def written() -> bytes:
        """A terminal may hand it over piece by piece."""
        sys.stderr.flush()
        told = b""
        while select.select([ours], [], [], 0.2)[0]:
            told += os.read(ours, 1 << 20)
        return told

    with os.fdopen(theirs, "w") as terminal, redirect_stderr(terminal):
        yield written
    os.close(ours)


def test_a_progress_bar_appears_after_a_delay_and_is_removed_at_the_end(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setenv("TERM", "xterm-256color")
    assert _output.WAIT_SECONDS == 0.5
    monkeypatch.setattr(_output, "WAIT_SECONDS", 60.0)
    with a_terminal() as written:
        with _output.progress("reading", 100) as advance:
            advance(100)
        assert written() == b""
        monkeypatch.setattr(_output, "WAIT_SECONDS", 0.0)
        with _output.progress("reading\x1b[2J", 100) as advance:
            advance(40)
        shown = written()
    assert b"reading\\x1b[2J" in shown
    assert shown.endswith(b"\x1b[1A\x1b[2K")  # the line is gone again


def test_a_pipe_gets_no_progress_bar(capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(_output, "WAIT_SECONDS", 0.0)
    with _output.progress("reading", 100) as advance:
        advance(40)
    assert capsys.readouterr() == ("", "")


@pytest.mark.parametrize(
    ("session", "short"),
    [
        ("7b320356-6966-4682-abc3-e62e1560a136", "7b320356"),
        ("01a1df80-6d47-7f40-8abe-e75c554681fc", "01a1df80-6d47"),
        ("ses_e2090a1b2c3dffeXYZ", "ses_e2090a1b2c3d"),
        ("20261115-080000-abcd", "20261115-080000-abcd"),
    ],
)
def test_an_id_is_shortened_to_its_distinguishing_part(session: str, short: str) -> None:
    assert screen.short_id(session) == short
