"""`agent-logger service`: keep the proxy and the page running, by the service manager of the operating system."""

import shlex
import subprocess
import sys
import time
from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import TYPE_CHECKING

import click

from agent_logger import config
from agent_logger.cli import _output, proxy
from agent_logger.cli._own_command import own_command
from agent_logger.cli._settings import settings_options
from agent_logger.files.replace import Edited
from agent_logger.service.manager import Command, ServiceError, ServiceManager, ServiceProgram, carry_out

if TYPE_CHECKING:
    from agent_logger.proxy.state import ProxyState

START_SECONDS = 15.0  # to wait for a proxy that starts
LOOK_SECONDS = 0.1
NO_ANSWER = "your service manager does not answer"
FOLDERS = {"log_dir": "logs", "sessions_dir": "sessions"}  # in the home, unless the user chose others
PASSED_ON = (*(name for name in proxy.SETTINGS if name not in FOLDERS), "page_port")


@click.group(no_args_is_help=False)
@click.pass_context
def command(ctx: click.Context) -> None:
    """Keep the proxy and the page running in the background.

    The service is a user unit of systemd, or an agent of launchd on macOS: it starts at login, and again if it fails.
    It logs to logs/ in the home, and is used by 'agent-logger run' and 'agent-logger env' like any running proxy.

    \b
    Examples:
      agent-logger service install
      agent-logger service status
      agent-logger service logs --follow
      agent-logger service remove
    """
    ctx.obj = ctx.obj or _manager_of(sys.platform)


def _manager_of(system: str) -> ServiceManager:
    if system == "linux":
        from agent_logger.service.systemd import Systemd

        return Systemd(config.user_config_folder())
    if system == "darwin":
        from agent_logger.service.launchd import Launchd

        return Launchd(Path.home(), config.home())
    raise ServiceError(f"no service manager of this system ({system}) is supported")


# ---------------------------------------------------------------- install


@command.command()
@click.option("--yes", is_flag=True, help="Do not ask for confirmation.")
@settings_options(*PASSED_ON, **{name: f"{folder} in the home" for name, folder in FOLDERS.items()})
@click.pass_obj
def install(manager: ServiceManager, settings: config.Configuration, yes: bool) -> int:
    """Install and start the service: shows its file and asks.

    The service reads the settings in config.toml when it starts. Options that are given here, and settings in the
    environment, become part of its command. Run this again after an upgrade, or if agent-logger has moved.

    \b
    Examples:
      agent-logger service install
      agent-logger service install --port 9000 --yes
    """
    if obstacle := manager.obstacle():
        return _refuse(obstacle)
    program = ServiceProgram(list(_arguments(settings)), _environment(settings))
    _note_password()
    before = Edited.read(manager.file)
    definition = manager.definition(program)
    is_changed = definition != before.text
    if is_changed:
        _show(before, definition, program)
        if not _output.confirm(f"Write this to {before.path} and start the service?", yes=yes):
            return 1
        before.write(definition)
    return _start(manager, settings, is_changed=is_changed)


def _show(before: Edited, definition: str, program: ServiceProgram) -> None:
    for line in before.diff(definition):
        _output.echo(line)
    _output.note(f"It runs:\n  {shlex.join(program.arguments)}", lines=True)


def _refuse(obstacle: str) -> int:
    folder = shlex.quote(str(config.home() / FOLDERS["log_dir"]))
    _output.note(f"{obstacle}, so nothing was installed; start the proxy in a")
    _output.note("terminal instead, or in the background:")
    _output.note(f"  agent-logger start --no-open --log-dir {folder} &")
    return 1


def _arguments(settings: config.Configuration) -> Iterator[str]:
    yield from own_command("start", "--no-open", "--no-link")
    for name, folder in FOLDERS.items():
        chosen = None if settings.is_default(name) else settings.written(name)
        yield from (config.SETTINGS[name].flag, str(chosen or settings.home / folder))
    for name in PASSED_ON:
        if settings.sources[name].startswith(("flag ", "environment ")):
            written = settings.written(name)
            for value in written if isinstance(written, list) else [written]:
                yield from (config.SETTINGS[name].flag, str(value))
    if settings.file and settings.file != settings.home / "config.toml":
        yield from ("--config", str(settings.file))


def _environment(settings: config.Configuration) -> dict[str, str]:
    """Return the variables that matter to the service: its manager does not have those of a shell."""
    from agent_logger.agents.folders import variables
    from agent_logger.agents.registry import AGENTS

    network = config.network()
    locations = [agent.location for agent in AGENTS if agent.location]
    of_agents = [name for at in locations for name in (at.variable, at.file_variable) if name]
    values = {
        "AGENT_LOGGER_HOME": str(settings.home),
        "HTTPS_PROXY": "" if _has_password(network.https_proxy) else network.https_proxy,
        "NO_PROXY": network.no_proxy,
        "SSL_CERT_FILE": _ca_file(network.ca_file, settings.home),
        **variables(of_agents),
    }
    return {name: value for name, value in values.items() if value}


def _ca_file(path: str, home: Path) -> str:
    """Return the full path. A file in our home is not the user's choice: we make it for agents, out of that choice."""
    chosen = Path(path).absolute()
    return str(chosen) if path and home not in chosen.parents else ""


def _has_password(url: str) -> bool:
    return "@" in url


def _note_password() -> None:
    if _has_password(config.network().https_proxy):
        _output.note("HTTPS_PROXY has a password, so it is left out; the service connects directly.")


def _start(manager: ServiceManager, settings: config.Configuration, *, is_changed: bool) -> int:
    restarts = is_changed or _is_other_version(settings.home, manager)
    if not manager.is_reachable():
        _note_commands(_starting(manager, restarts=True))
        return 1
    carry_out(_starting(manager, restarts=restarts))
    state = _await_proxy(manager, settings.home)
    if state is None:
        _output.note("The service was started, but its proxy does not run; see 'agent-logger service logs'.")
        return 1
    _output.note(f"The proxy listens on http://127.0.0.1:{state.port} and logs to {state.log_dir}.")
    _output.note("'agent-logger view' opens the page.")
    _output.note(manager.after_logout())
    return 0


def _starting(manager: ServiceManager, *, restarts: bool) -> list[Command]:
    return [*manager.reload_commands(), *manager.start_commands(restarts=restarts)]


def _note_commands(commands: Iterable[Command]) -> None:
    _output.note(f"{NO_ANSWER}; log in without su or sudo, and run:")
    for words in commands:
        _output.note(f"  {shlex.join(words)}")


def _is_other_version(home: Path, manager: ServiceManager) -> bool:
    from agent_logger import __version__

    state = _own_proxy(manager, home)
    return state is not None and state.version != __version__


def _own_proxy(manager: ServiceManager, home: Path) -> "ProxyState | None":
    """Return the proxy that the service runs."""
    from agent_logger.proxy.state import running

    pid = manager.state().pid
    return next((state for state in running(home) if state.pid == pid), None)


def _await_proxy(manager: ServiceManager, home: Path) -> "ProxyState | None":
    deadline = time.monotonic() + START_SECONDS
    while (state := _own_proxy(manager, home)) is None and time.monotonic() < deadline:
        if manager.state().pid is None:  # it has ended already
            return None
        time.sleep(LOOK_SECONDS)
    return state


# ---------------------------------------------------------------- status and logs


@command.command()
@settings_options()
@click.pass_obj
def status(manager: ServiceManager, settings: config.Configuration) -> int:
    """Show whether the service is installed and running.

    Exit code: 0 if its proxy is running, otherwise 1. 'agent-logger status' shows what the proxy has recorded.

    \b
    Examples:
      agent-logger service status
    """
    from agent_logger.proxy.state import running_pages

    if not manager.file.is_file():
        _output.echo("The service is not installed; 'agent-logger service install' does that.")
        return 1
    state, own = manager.state(), _own_proxy(manager, settings.home)
    pages = [f"http://127.0.0.1:{page.port}" for page in running_pages(settings.home)]
    rows = [
        ("file", str(manager.file)),
        ("enabled", "yes" if state.is_enabled else "no: it does not start by itself"),
        ("state", state.activity),
        ("proxy", f"http://127.0.0.1:{own.port} (process {own.pid}, since {own.started})" if own else "not running"),
        ("log folder", own.log_dir if own else "-"),
        ("page", ", ".join(pages) or "not running"),
    ]
    for name, text in rows:
        _output.echo(f"{name:15} {text}")
    _output.note(manager.after_logout())
    if not manager.starts(manager.file.read_text("utf-8", "replace"), own_command("start")):
        _output.note("It starts another agent-logger; 'agent-logger service install' changes that.")
    return 0 if own else 1


@command.command()
@click.option("-n", "--lines", type=click.IntRange(min=0), default=50, show_default=True, help="Number of lines.")
@click.option("-f", "--follow", is_flag=True, help="Print new lines as they are written.")
@click.pass_obj
def logs(manager: ServiceManager, lines: int, follow: bool) -> int:
    """Print the last messages of the service.

    \b
    Examples:
      agent-logger service logs
      agent-logger service logs -n 200 --follow
    """
    words = manager.log_command(lines, follow=follow)
    try:
        return subprocess.run(words, check=False).returncode
    except OSError as error:
        raise ServiceError(f"cannot run {words[0]}: {error.strerror}") from error


# ---------------------------------------------------------------- remove


@command.command()
@click.option("--yes", is_flag=True, help="Do not ask for confirmation.")
@settings_options()
@click.pass_obj
def remove(manager: ServiceManager, settings: config.Configuration, yes: bool) -> int:
    """Stop the service and delete its file, after asking. Recordings are kept.

    \b
    Examples:
      agent-logger service remove
    """
    if not manager.file.is_file():
        _output.note("nothing to do: the service is not installed")
        return 0
    if not manager.is_reachable():
        delete = ["rm", str(manager.file)]
        _note_commands([*manager.stop_commands(), delete])
        return 1
    if not _output.confirm(f"Stop the service and delete {manager.file}?", yes=yes):
        return 1
    carry_out(manager.stop_commands())
    manager.file.unlink(missing_ok=True)
    carry_out(manager.reload_commands())
    _output.note(f"done; the recordings in {settings.home} are kept")
    return 0
