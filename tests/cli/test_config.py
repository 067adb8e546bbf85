"""`agent-logger config` tells what applies and who said so."""

import json
from pathlib import Path

import pytest
from click.testing import CliRunner, Result

from agent_logger.cli import shell
from agent_logger.config import SETTINGS


@pytest.fixture(autouse=True)
def own_home(home: Path, monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> Path:
    home.chmod(0o700)  # whatever the umask is
    (home / ".agent-logger").mkdir(mode=0o700)
    monkeypatch.chdir(tmp_path)
    return home / ".agent-logger"


def config(*arguments: str) -> Result:
    return CliRunner().invoke(shell, ["config", *arguments], catch_exceptions=False)


def rows(output: str) -> dict[str, list[str]]:
    table = output.split("\n\n")[1].splitlines()[1:]
    return {name: rest for name, *rest in (line.split(maxsplit=2) for line in table)}


def test_every_setting_is_listed_with_value_and_source(own_home: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (own_home / "config.toml").write_text('seal_after = "36h"\n')
    (own_home / "config.toml").chmod(0o600)
    monkeypatch.setenv("AGENT_LOGGER_WORKERS", "3")
    done = config("--port", "9000", "--allow-upstream", "http://127.0.0.1:11434")
    got = rows(done.output)
    assert list(got) == list(SETTINGS)
    assert got["port"] == ["9000", "flag --port"]
    assert got["workers"] == ["3", "environment AGENT_LOGGER_WORKERS"]
    assert got["seal_after"] == ["36h", str(own_home / "config.toml")]
    assert got["allow_upstream"] == ["http://127.0.0.1:11434", "flag --allow-upstream"]
    assert got["summary_command"] == ["(none)", "default"]
    assert done.output.startswith(f"home  {own_home}\nfile  {own_home / 'config.toml'}\n")


def test_the_defaults_fit_80_columns(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("AGENT_LOGGER_HOME", "/home/ada/.agent-logger")
    monkeypatch.chdir("/")
    assert max(map(len, config().output.splitlines())) <= 80


def test_config_reports_that_there_is_no_file() -> None:
    assert "\nfile  none (" in config().output
    assert json.loads(config("--json").stdout)["file"] is None


def test_json_output_has_the_values_in_the_form_of_the_file(own_home: Path, tmp_path: Path) -> None:
    named = tmp_path / "mine.toml"
    named.write_text('allow_upstream = ["https://LLM.example:443"]\n')
    named.chmod(0o600)
    got = json.loads(config("--json", "--config", str(named), "--seal-after", "never").stdout)
    assert (got["home"], got["file"]) == (str(own_home), str(named))
    assert list(got["settings"]) == list(SETTINGS)
    assert got["settings"]["port"] == {"value": 8080, "source": "default"}
    assert got["settings"]["log_dir"] == {"value": str(tmp_path / "logs"), "source": "default"}
    assert got["settings"]["seal_after"] == {"value": "never", "source": "flag --seal-after"}
    assert got["settings"]["allow_upstream"] == {"value": ["https://llm.example"], "source": str(named)}


def test_an_unknown_variable_is_reported_on_stderr(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("AGENT_LOGGER_PROT", "9000")
    done = config("--json")
    assert "AGENT_LOGGER_PROT is set but is not a known setting" in done.stderr
    assert "AGENT_LOGGER_HOME" not in done.stderr
    assert json.loads(done.stdout)["settings"]["port"]["value"] == 8080


def test_control_characters_in_a_value_are_escaped(own_home: Path) -> None:
    done = config("--log-dir", "/tmp/\x1b[31m\u202e")
    assert "/tmp/\\x1b[31m\\u202e" in done.output
    assert "\x1b" not in done.output
