"""`export` of several sessions, its report, masks and check."""

import json
import os
import subprocess
import sys
from collections.abc import Callable
from datetime import UTC, datetime
from pathlib import Path

import pytest
from tests.cli.sessions import write_session
from tests.commands import run_command

from agent_logger.home.marks import label_session

Run = Callable[..., subprocess.CompletedProcess[str]]
KEY = "sk-ant-api03-" + "Qz7" * 20
FIRST = datetime(2026, 11, 3, 10, tzinfo=UTC)
SECOND = datetime(2026, 11, 10, 10, tzinfo=UTC)
THIRD = datetime(2026, 11, 11, 10, tzinfo=UTC)
TEXT = f"key {KEY}, mail ann@corp.example.org, in /home/bob/plans, on build7.internal, " + "QUJD" * 60


@pytest.fixture
def home(tmp_path: Path) -> Path:
    return tmp_path / "home"


@pytest.fixture
def ids(home: Path) -> tuple[str, str]:
    shop = write_session(home, 1, FIRST, TEXT)
    bank = write_session(home, 2, SECOND, "count the zebras", project="/work/bank")
    label_session(home / ".agent-logger", bank, "best")
    return shop, bank


@pytest.fixture
def export(tmp_path: Path, home: Path, ids: tuple[str, str]) -> Run:
    def export(*arguments: object, said: str = "") -> subprocess.CompletedProcess[str]:
        clean = {"PATH": os.environ["PATH"], "HOME": str(home), "TZ": "UTC"}
        return run_command(["export", *map(str, arguments)], clean, folder=tmp_path, said=said)

    return export


def written(folder: Path) -> set[str]:
    return {path.name for path in folder.iterdir() if path.name[0] != "."}


@pytest.mark.parametrize(
    ("options", "which"),
    [
        (["--since", "2026-11-05"], [1]),
        (["--until", "2026-11-05"], [0]),
        (["--project", "bank"], [1]),
        (["--agent", "claude"], [0, 1]),
        (["--label", "best"], [1]),
        (["--search", "zebras"], [1]),
        (["--search", "zebras", "--until", "2026-11-05"], None),
        (["--project", "nowhere"], None),
        (["--yes"], [0, 1]),
    ],
)
def test_options_select_sessions(
    export: Run, ids: tuple[str, str], tmp_path: Path, options: list[str], which: list[int] | None
) -> None:
    done = export("--to", "md", "-o", "out/", *options)
    if which is None:
        assert (done.returncode, "no sessions match" in done.stderr) == (1, True)
    else:
        assert done.returncode == 0, done.stderr
        assert written(tmp_path / "out") == {f"{ids[number]}.md" for number in which}


def test_all_sessions_are_exported_only_after_a_question(export: Run, tmp_path: Path) -> None:
    refused = export("--to", "json", "-o", "all.jsonl")
    assert (refused.returncode, "--yes" in refused.stderr) == (2, True)
    assert export("--to", "json", "-o", "all.jsonl", said="n\n").returncode != 0
    assert not (tmp_path / "all.jsonl").exists()
    assert export("--to", "json", "-o", "all.jsonl", said="y\n").returncode == 0
    assert len((tmp_path / "all.jsonl").read_text().splitlines()) == 2


def test_several_sessions_in_one_stream_are_lines_of_json(export: Run, ids: tuple[str, str]) -> None:
    done = export(*ids, "--to", "json")
    assert [json.loads(line)["id"] for line in done.stdout.splitlines()] == list(ids)


def test_html_of_several_sessions_needs_a_folder(export: Run, ids: tuple[str, str]) -> None:
    assert export(*ids, "--to", "html").returncode == 2
    assert export(*ids, "--to", "html", "-o", "pages/").returncode == 0


def test_ids_and_options_exclude_each_other(export: Run, ids: tuple[str, str]) -> None:
    assert export(ids[0], "--to", "md", "--project", "shop").returncode == 2


def test_an_export_into_a_folder_continues_and_takes_what_changed(
    export: Run, ids: tuple[str, str], home: Path, tmp_path: Path
) -> None:
    shop, bank = ids
    assert export("--to", "md", "--yes", "-o", "out/").returncode == 0
    before = (tmp_path / "out" / f"{shop}.md").stat()
    write_session(home, 2, SECOND, "count the lions", project="/work/bank")
    done = export("--to", "md", "--yes", "-o", "out/")
    assert "1 written before" in done.stderr
    assert (tmp_path / "out" / f"{shop}.md").stat().st_ino == before.st_ino
    assert "lions" in (tmp_path / "out" / f"{bank}.md").read_text()


def test_a_file_that_no_export_wrote_is_not_replaced(export: Run, ids: tuple[str, str], tmp_path: Path) -> None:
    (tmp_path / "out").mkdir()
    (tmp_path / "out" / f"{ids[0]}.md").write_text("mine")
    done = export("--to", "md", "--yes", "-o", "out/")
    assert done.returncode == 1
    assert (tmp_path / "out" / f"{ids[0]}.md").read_text() == "mine"
    assert (tmp_path / "out" / f"{ids[1]}.md").exists()


def test_a_file_is_continued_after_the_last_whole_session(
    export: Run, ids: tuple[str, str], home: Path, tmp_path: Path
) -> None:
    write_session(home, 4, THIRD, "long " * 5000)
    assert export("--to", "json", "--yes", "-o", "whole.jsonl").returncode == 0
    whole = (tmp_path / "whole.jsonl").read_bytes()
    # A disk that takes the first two sessions alone.
    blocks = whole.index(b"long long") // 1024 + 1
    line = f"ulimit -f {blocks}; {sys.executable} -m agent_logger export --to json --yes -o all.jsonl"
    clean = {"PATH": os.environ["PATH"], "HOME": str(tmp_path / "home"), "TZ": "UTC"}
    done = subprocess.run(["bash", "-c", line], env=clean, cwd=tmp_path, capture_output=True, text=True, check=False)
    assert (done.returncode, "File too large" in done.stderr) == (1, True)
    assert not (tmp_path / "all.jsonl").exists()
    again = export("--to", "json", "--yes", "-o", "all.jsonl")
    assert "2 written before" in again.stderr
    assert (tmp_path / "all.jsonl").read_bytes() == whole
    assert not list(tmp_path.glob(".all*"))


# ---------------------------------------------------------------- report, masks, check


def test_the_report_says_what_was_removed_and_what_stayed(export: Run, ids: tuple[str, str], tmp_path: Path) -> None:
    done = export(ids[0], "--to", "md", "-o", "one.md", "--json")
    report = json.loads(done.stdout)
    assert {(row["rule"], row["place"]) for row in report["removed"]} >= {("anthropic", "exchange 1")}
    kinds = {row["kind"]: row["value"] for row in report["odd"] if row["place"] == "exchange 1"}
    assert kinds["e-mail address"] == "ann@corp.example.org"
    assert kinds["home path"] == "/home/bob"
    assert kinds["host name"] == "build7.internal"
    assert kinds["long base64"].endswith("(240 characters)")
    assert KEY not in done.stdout + (tmp_path / "one.md").read_text()
    people = export(ids[0], "--to", "md")
    assert "secret" in people.stderr and "ann@corp.example.org" in people.stderr
    on_stderr = export(ids[0], "--to", "md", "--json")
    assert json.loads(on_stderr.stderr)["removed_total"] == report["removed_total"]


@pytest.mark.parametrize("form", ["md", "html", "json"])
def test_masked_output_has_no_path_name_or_address(export: Run, ids: tuple[str, str], form: str) -> None:
    done = export(ids[0], "--to", form, "--mask", "paths,names,emails", "--check")
    assert done.returncode == 0, done.stderr
    for word in ("bob", "plans", "/work/shop", "corp.example", KEY):
        assert word not in done.stdout
    again = export(ids[0], "--to", form, "--mask", "paths,names,emails")
    assert again.stdout == done.stdout


def test_words_of_the_settings_are_masked(export: Run, ids: tuple[str, str], home: Path) -> None:
    (home / ".agent-logger" / "config.toml").write_text('[mask]\nwords = ["zebras"]\n')
    assert "zebras" not in export(ids[1], "--to", "md", "--mask", "names").stdout


def test_the_check_fails_on_a_hit_and_leaves_no_output(export: Run, home: Path, tmp_path: Path) -> None:
    bad = write_session(home, 3, SECOND, "db_password = 'hunter2-of-ours'")
    for target in ([], ["-o", "bad.md"], ["-o", "bad/"]):
        done = export(bad, "--to", "md", "--check", *target)
        assert (done.returncode, done.stdout) == (1, "")
        assert "check: assignment" in done.stderr
    assert not (tmp_path / "bad.md").exists()
    assert written(tmp_path / "bad") == set()


def test_an_unknown_mask_is_a_usage_error(export: Run, ids: tuple[str, str]) -> None:
    assert export(ids[0], "--to", "md", "--mask", "paths,hats").returncode == 2
