"""How processes of a run are found where there is no /proc."""

import sys
from pathlib import Path

import pytest

from agent_logger.proxy.runs.processes import process_with


def test_a_variable_of_several_lines_hides_no_process(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    listing = "    1 launchd\n   77 other A=1\n\nend of A\n   88 agent B=two\nlines, http://127.0.0.1/alr_x/\n"
    (tmp_path / "ps").write_text(f"#!/bin/sh\ncat <<'END'\n{listing}END\n")
    (tmp_path / "ps").chmod(0o700)
    monkeypatch.setenv("PATH", str(tmp_path), prepend=":")
    monkeypatch.setattr(sys, "platform", "darwin")
    assert process_with("alr_x") == 88
    assert process_with("alr_y") is None
