"""What is recorded of the installed clients has the form of what is stored."""

import json
from pathlib import Path
from typing import Any

import pytest
from click.testing import CliRunner

from tests.real_clients import logged
from tests.real_clients.scenarios import DATA
from tests.refresh_fixtures import main


def lines(folder: Path) -> list[dict[str, Any]]:
    return [json.loads(line) for line in (folder / "wire.jsonl").read_text().splitlines()]


def manifest(folder: Path) -> dict[str, Any]:
    found: dict[str, Any] = json.loads((folder / "manifest.json").read_text())
    return found


@pytest.mark.needs("claude")
def test_a_recorded_claude_code_scenario_has_the_form_of_the_stored_one(tmp_path: Path) -> None:
    done = CliRunner().invoke(main, ["claude-cli", "tools_stream", "--to", str(tmp_path)])
    assert done.exit_code == 0, done.output
    (new,) = tmp_path.glob("claude-cli/*/tools_stream")
    old = DATA / "claude-cli" / "2.1.325" / "tools_stream"
    assert list(manifest(new)) == list(manifest(old))
    assert logged.shape(logged.of_manifest(manifest(new))) == logged.shape(logged.of_manifest(manifest(old)))
    assert set(manifest(new)["requests"][0]) == set(manifest(old)["requests"][0])
    truths = [list(manifest(it)["truth_usage_of_complete_responses"].values()) for it in (new, old)]
    assert truths[0] == truths[1]
    assert manifest(new)["commands"] == manifest(old)["commands"]
    assert [list(line) for line in lines(new)] == [list(line) for line in lines(old)]
    for now, then in zip(lines(new), lines(old), strict=True):
        assert [name for name, _ in now["headers"]] == [name for name, _ in then["headers"]]
        assert list(now["body"]) == list(then["body"])
        assert set(now["response"]) == set(then["response"])
    assert sorted(it.suffix for it in new.rglob("*")) == sorted(it.suffix for it in old.rglob("*"))


@pytest.mark.needs("claude")
def test_recorded_fixtures_contain_no_paths_of_this_machine(tmp_path: Path) -> None:
    command = ["claude-cli", "new", "--to", str(tmp_path), "--script", "tools"]
    asked = "-p 'Write a poem' --output-format stream-json --verbose --allowedTools Write,Read,Bash"
    done = CliRunner().invoke(main, [*command, "--run", asked])
    assert done.exit_code == 0, done.output
    (new,) = tmp_path.glob("claude-cli/*/new")
    texts = {path: path.read_text() for path in new.rglob("*") if path.is_file()}
    assert any("/home/user/project/poem.md" in text for text in texts.values())
    for path, text in texts.items():
        assert "/tmp/refresh-" not in text, path
        assert "-tmp-refresh-" not in f"{path.relative_to(new)}{text}", path
    assert lines(new)[0]["headers"][-3] == ["Host", "127.0.0.1:8000"]
