"""The flags of settings, for the commands that have them."""

from collections.abc import Callable, Mapping
from functools import wraps
from typing import Any, TypeVar

import click

from agent_logger.config import SETTINGS, FolderSetting, Setting, SettingKind, SettingList, Written, in_use, load

R = TypeVar("R")


def settings_options(*names: str, **otherwise: str) -> Callable[[Callable[..., R]], Callable[..., R]]:
    """Give a click command the flags of these settings and `--config`, and pass it `settings`.

    Settings without a flag here still come from the environment and the file. `otherwise` names more of them, each with
    what the command uses instead of the default.
    """
    settings = [SETTINGS[name] for name in (*names, *otherwise)]

    def decorate(command: Callable[..., R]) -> Callable[..., R]:
        @wraps(command)
        def with_settings(*args: Any, config_file: str | None, **rest: Any) -> R:
            flags = {setting.name: rest.pop(setting.name) for setting in settings}
            settings_in_use = load(flags, config_file)
            with in_use(settings_in_use):
                return command(*args, settings=settings_in_use, **rest)

        return _with_flags(with_settings, settings, otherwise)

    return decorate


def _with_flags(command: Callable[..., R], settings: list[Setting], otherwise: Mapping[str, str]) -> Callable[..., R]:
    path = click.Path(readable=False)  # for the shells' completion; `load` checks
    options = [
        click.option(
            setting.flag,
            setting.name,
            metavar=setting.kind.metavar,
            multiple=isinstance(setting.kind, SettingList),
            type=path if isinstance(setting.kind, FolderSetting) else str,
            shell_complete=_completer(setting.kind) if setting.kind.choices else None,
            help=_flag_help(setting, otherwise.get(setting.name, setting.default)),
        )
        for setting in settings
    ]
    file_help = "Read this TOML file instead of the home's."
    options.append(click.option("--config", "config_file", metavar="FILE", type=path, help=file_help))
    for option in reversed(options):
        command = option(command)
    return command


def _completer(kind: SettingKind) -> Callable[[Any, Any, str], list[str]]:
    return lambda _context, _parameter, start: [word for word in kind.choices if word.startswith(start)]


def _flag_help(setting: Setting, default: Written) -> str:
    if isinstance(setting.kind, SettingList):
        return f"{setting.help} May be repeated."
    return f"{setting.help} [default: {default}]" if default else setting.help
