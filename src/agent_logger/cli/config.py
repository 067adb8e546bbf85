"""`agent-logger config`: which settings apply, and where they come from."""

from dataclasses import dataclass

import click

from agent_logger import config
from agent_logger.cli import _output
from agent_logger.cli._settings import settings_options


@dataclass(frozen=True)
class Value:
    value: config.Written
    source: str


@dataclass(frozen=True)
class SettingsReport:
    """What `--json` prints."""

    home: str
    file: str | None
    settings: dict[str, Value]


@click.command()
@click.option("--json", "as_json", is_flag=True, help="Print JSON; 'agent-logger schema config' describes it.")
@settings_options(*config.SETTINGS)
def command(settings: config.Configuration, as_json: bool) -> None:
    """Show every setting, its value and its source.

    A flag overrides the environment (AGENT_LOGGER_PORT), which overrides the TOML file, which overrides the default.
    Flags given here are shown as other commands would use them.

    \b
    Examples:
      agent-logger config
      agent-logger config --port 9000 --json
    """
    for name in config.stray_variables():
        _output.note(f"agent-logger: {name} is set but is not a known setting")
    values = {name: Value(settings.written(name), settings.sources[name]) for name in config.SETTINGS}
    report = SettingsReport(str(settings.home), str(settings.file) if settings.file else None, values)
    if as_json:
        _output.json(report)
    else:
        _print(report)


def _print(report: SettingsReport) -> None:
    _output.echo(f"home  {report.home}")
    _output.echo(f"file  {report.file or 'none (no config.toml in the home)'}")
    _output.echo()
    rows = [(name, _text(given.value), given.source) for name, given in report.settings.items()]
    _output.table(("setting", "value", "source"), rows)


def _text(value: config.Written) -> str:
    text = ", ".join(value) if isinstance(value, list) else str(value)
    return text or "(none)"
