"""The settings: flags > environment > TOML > defaults, each value with its source.

`SETTINGS` is the one table of them. Flags, variables, TOML keys, `docs/config.md` and
`config.toml.example` come from it. Only this module reads our environment variables and
`NO_COLOR`; the agents' own are `agents/folders.py`'s.

A value is *written* as a TOML file holds it (`"12h"`, `8080`, a list of strings) and *checked*
into what the program uses (43200, 8080, a tuple of origins). Texts of flags and variables
are turned into the written form first, so that each kind of value has one check.

Types here are named tuples: every command imports this, hooks too, for which an agent waits, and
dataclasses would take 18 ms of that.
"""

import os
import re
import stat
from abc import ABC, abstractmethod
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from itertools import chain
from pathlib import Path
from types import MappingProxyType
from typing import Any, Literal, NamedTuple

from agent_logger.errors import ConfigError

Written = int | str | list[str]
Flags = Mapping[str, str | Sequence[str] | None]

PREFIX = "AGENT_LOGGER_"
DEFAULT = "default"


# ---- kinds of values


class SettingKind(ABC):
    """How one kind of value is written, and what is allowed."""

    metavar: str
    allowed: str
    choices: tuple[str, ...] = ()

    def from_text(self, text: str) -> object:
        """What a flag or a variable says, in the written form."""
        return text

    @abstractmethod
    def check(self, written: object) -> Any:
        """The value as the program uses it. `ValueError`: not allowed."""

    def show(self, value: Any) -> Written:
        """The written form of a checked value."""
        return str(value)


class Number(SettingKind):
    metavar = "NUMBER"

    def __init__(self, low: int, high: int) -> None:
        self.low, self.high = low, high
        self.allowed = f"a whole number from {low} to {high}"

    def from_text(self, text: str) -> object:
        return int(text) if re.fullmatch("[0-9]{1,9}", text) else text

    def check(self, written: object) -> int:
        # `type`, for `true` is an `int` to isinstance.
        if type(written) is not int or not self.low <= written <= self.high:
            raise ValueError(written)
        return written

    def show(self, value: Any) -> Written:
        return int(value)


class FolderSetting(SettingKind):
    metavar = "FOLDER"
    allowed = "a folder; relative to the working folder, or starting with ~"

    def check(self, written: object) -> Path:
        if not isinstance(written, str) or not written or "\0" in written:
            raise ValueError(written)
        try:
            return _absolute(written)
        except RuntimeError as error:  # ~user, and there is no such user
            raise ValueError(written) from error


class Choice(SettingKind):
    def __init__(self, *choices: str) -> None:
        self.choices = choices
        self.metavar = "|".join(choices)
        self.allowed = " or ".join(f'"{choice}"' for choice in choices)

    def check(self, written: object) -> str:
        if written not in self.choices:
            raise ValueError(written)
        return str(written)


class Duration(SettingKind):
    """Whole seconds, or `None` for never."""

    metavar = "DURATION"
    allowed = '"never", or 1 to 9999 with a unit (s, m, h, d), such as "12h" or "1d"'
    units = MappingProxyType({"d": 86400, "h": 3600, "m": 60, "s": 1})

    def check(self, written: object) -> int | None:
        if written == "never":
            return None
        match = re.fullmatch("([1-9][0-9]{0,3})([smhd])", written) if isinstance(written, str) else None
        if match is None:
            raise ValueError(written)
        return int(match[1]) * self.units[match[2]]

    def show(self, value: Any) -> Written:
        if value is None:
            return "never"
        unit = next(unit for unit, seconds in self.units.items() if value % seconds == 0)
        return f"{value // self.units[unit]}{unit}"


class CommandSetting(SettingKind):
    metavar = "COMMAND"
    allowed = "a command line with balanced quotes, or nothing"

    def check(self, written: object) -> str:
        if not isinstance(written, str) or "\0" in written:
            raise ValueError(written)
        if written:
            from shlex import split

            split(written)
        return written.strip()


class Origin(NamedTuple):
    """An upstream: scheme, host and port exactly. An IPv6 host is without brackets."""

    scheme: str
    host: str
    port: int

    @classmethod
    def parse(cls, text: str) -> "Origin":
        """Read `https://host[:port]` or `http://host:port`. `ValueError`: anything else.

        Plain http says its port, so that nobody sends a conversation in the clear by leaving
        out a letter.
        """
        # re.ASCII: without it, [a-z] also matches the Kelvin sign when case is ignored.
        pattern = r"(https?)://([a-z0-9._-]+|\[[0-9a-f:.]+\])(?::([0-9]{1,5}))?"
        match = re.fullmatch(pattern, text, re.IGNORECASE | re.ASCII)
        if match is None or (match[1].lower() == "http" and match[3] is None):
            raise ValueError(text)
        port = int(match[3] or 443)
        if not 1 <= port <= 65535:
            raise ValueError(text)
        return cls(match[1].lower(), _host(match[2].lower()), port)

    def __str__(self) -> str:
        host = f"[{self.host}]" if ":" in self.host else self.host
        usual = self.scheme == "https" and self.port == 443
        return f"{self.scheme}://{host}" if usual else f"{self.scheme}://{host}:{self.port}"


def _host(text: str) -> str:
    labels = text.split(".")
    if text.startswith("["):
        from ipaddress import IPv6Address

        return str(IPv6Address(text[1:-1]))
    if re.fullmatch("[0-9]+|0x[0-9a-f]*", labels[-1]):
        # Resolvers take 2130706433 and 0x7f.1 for 127.0.0.1; one address has one spelling here.
        from ipaddress import IPv4Address

        return str(IPv4Address(text))
    label = re.compile("[a-z0-9_]([a-z0-9_-]{0,61}[a-z0-9_])?")
    if len(text) > 253 or not all(map(label.fullmatch, labels)):
        raise ValueError(text)
    return text


class SettingList(SettingKind):
    """Several values, each once."""

    def from_text(self, text: str) -> object:
        return [item.strip() for item in text.split(",") if item.strip()]

    @abstractmethod
    def parse(self, item: str) -> Any:
        """One value as the program uses it. `ValueError`: not allowed."""

    def check(self, written: object) -> tuple[Any, ...]:
        if not isinstance(written, list) or not all(isinstance(item, str) for item in written):
            raise ValueError(written)
        return tuple(dict.fromkeys(map(self.parse, written)))

    def show(self, value: Any) -> Written:
        return [str(item) for item in value]


class Origins(SettingList):
    metavar = "ORIGIN"
    allowed = "a list of https://host, https://host:port, http://host:port; no path, no user"

    def parse(self, item: str) -> Origin:
        return Origin.parse(item)


class HostNameError(ValueError):
    """A text is no name of hosts to record. The message says why and what to write instead."""


def host_pattern(text: str) -> str:
    """Read the name of a host or, as `*.example.com`, of all hosts below a name; return it in lower case, with IDN as
    A-labels. Raises `HostNameError`."""
    name = text.strip().removesuffix(".").lower()
    if re.search("[/@?#\\s]", name):
        raise HostNameError("not only a host: it has a scheme, a user or a path")
    if name.startswith("[") or name.count(":") > 1 or _is_address(name.partition(":")[0]):
        raise HostNameError("an IP address cannot be recorded by name: set it with --allow-upstream as an origin")
    if ":" in name:
        raise HostNameError("the port is too much: a name means all ports of its host")
    wildcard, base = ("*.", name[2:]) if name.startswith("*.") else ("", name)
    base = base if base.isascii() else _a_labels(base)
    if "*" in base:
        raise HostNameError("* can only be the first label, as in *.example.com")
    labels = base.split(".")
    label = re.compile("[a-z0-9_]([a-z0-9_-]{0,61}[a-z0-9_])?", re.ASCII)
    if len(base) > 253 or not all(map(label.fullmatch, labels)) or not re.search("[a-z]", labels[-1], re.ASCII):
        raise HostNameError("not a DNS name")
    if len(labels) < 2:
        raise HostNameError(
            "not two labels: a certificate for one label would hold for all names below it; "
            "set a host of your own network with --allow-upstream"
        )
    return wildcard + base


def _is_address(name: str) -> bool:
    # Resolvers take 2130706433 and 0x7f.1 for 127.0.0.1.
    return re.fullmatch("[0-9]+|0x[0-9a-f]*", name.rpartition(".")[2], re.ASCII) is not None


# Letters that IDNA 2003, of Python's codec, and IDNA 2008, of most clients, turn into different names.
_AMBIGUOUS = re.compile("[\u00df\u03c2\u200c\u200d]")


def _a_labels(name: str) -> str:
    try:
        if _AMBIGUOUS.search(name):
            raise HostNameError("its ASCII form differs between standards: write that form, xn--...")
        return name.encode("idna").decode()
    except UnicodeError as error:
        raise HostNameError("it has no ASCII form here: write that form, xn--...") from error


class Folders(SettingList):
    metavar = "FOLDER"
    allowed = "a list of folders, each relative to the working folder, or starting with ~"

    def parse(self, item: str) -> Path:
        return FolderSetting().check(item)


class HostPatterns(SettingList):
    metavar = "HOST"
    allowed = "a list of DNS names, such as llm.example.com or *.example.com"

    def parse(self, item: str) -> str:
        return host_pattern(item)


# ---- the table


class Setting(NamedTuple):
    """A row of the table; `name` is also the TOML key."""

    name: str
    kind: SettingKind
    default: Written
    help: str

    @property
    def flag(self) -> str:
        return "--" + self.name.replace("_", "-")

    @property
    def variable(self) -> str:
        return PREFIX + self.name.upper()


PORT = Number(0, 65535)

SETTINGS: Mapping[str, Setting] = {
    row.name: row
    for row in (
        Setting("port", PORT, 8080, "Port of the proxy on 127.0.0.1; 0 takes a free one."),
        Setting("page_port", PORT, 8081, "Port of the page on 127.0.0.1; 0 takes a free one."),
        Setting("log_dir", FolderSetting(), "./logs", "Folder of the wire logs."),
        Setting("sessions_dir", FolderSetting(), "./sessions", "Folder of the exchange logs."),
        Setting("allow_upstream", Origins(), [], "Upstreams the proxy may call besides the known providers."),
        Setting(
            "record_hosts",
            HostPatterns(),
            [],
            "Hosts the forward door records besides the model hosts; *.example.com means all hosts below example.com.",
        ),
        Setting(
            "agent_folders",
            Folders(),
            [],
            "Folders with sessions of agents that have no folder of their own (aider, mini-swe-agent).",
        ),
        Setting(
            "redact",
            Choice("all", "credentials"),
            "all",
            'What to redact: known key patterns too ("all"), or only the "credentials" of a request.',
        ),
        Setting(
            "seal_after",
            Duration(),
            "1d",
            "Compress a part of a log after this time without a write; a full part within a minute.",
        ),
        Setting("workers", Number(1, 64), 1, "Relay processes that share the port."),
        Setting("summary_command", CommandSetting(), "", "Command that summarizes a session; empty: none."),
    )
}


TABLES = ("mask", "share")  # of the TOML file


class Configuration(NamedTuple):
    """Every setting as it applies, checked. Inward go plain arguments, not this object."""

    port: int
    page_port: int
    log_dir: Path
    sessions_dir: Path
    allow_upstream: tuple[Origin, ...]
    record_hosts: tuple[str, ...]
    agent_folders: tuple[Path, ...]
    redact: Literal["all", "credentials"]
    seal_after: int | None  # seconds; None: never
    workers: int
    summary_command: str

    mask_words: tuple[str, ...]  # of the table `[mask]`
    share: Mapping[str, object]  # the table `[share]`, which `push/levels.py` reads
    home: Path
    file: Path | None  # the TOML file that was read
    sources: Mapping[str, str]  # "default", "flag --port", "environment AGENT_LOGGER_PORT", a path

    def is_default(self, name: str) -> bool:
        """Whether nobody chose this value: a default port that is taken may be replaced, a chosen one may not."""
        return self.sources[name] == DEFAULT

    def written(self, name: str) -> Written:
        return SETTINGS[name].kind.show(getattr(self, name))


# ---- reading


def load(flags: Flags | None = None, file: str | None = None) -> Configuration:
    """The settings as they apply now. `ConfigError` names the setting, its source, what is allowed.

    `flags` holds texts by setting name, `None` or `()` where not given; `file` is `--config`.
    Every value given is checked, also one that a stronger source overrides.
    """
    path = _config_file(file)
    values: dict[str, Any] = {}
    sources: dict[str, str] = {}
    weakest_first = chain(_from_file(path), _from_environment(), _from_flags(flags or {}))
    for setting, written, source in weakest_first:
        values[setting.name] = _check(setting, written, source)
        sources[setting.name] = source
    for name in SETTINGS.keys() - values.keys():
        values[name] = _check(SETTINGS[name], SETTINGS[name].default, DEFAULT)
        sources[name] = DEFAULT
    words = _mask_words(path)
    return Configuration(
        **values,
        mask_words=words,
        share=_share_table(path),
        home=home(),
        file=path,
        sources=MappingProxyType(sources),
    )


_in_use: list[Configuration] = []  # the settings of the command that runs


@contextmanager
def in_use(settings: Configuration) -> Iterator[None]:
    """Make these the settings of this process while entered, for code that gets none."""
    _in_use.append(settings)
    try:
        yield
    finally:
        _in_use.remove(settings)


def agent_folders() -> tuple[Path, ...]:
    """The folders that the user names for agents which have none of their own. If the settings cannot be read, there
    are none: a command reports what is wrong with them."""
    if _in_use:
        return _in_use[-1].agent_folders
    try:
        return load().agent_folders
    except ConfigError:
        return ()


def sessions_dir(given: str | os.PathLike[str] | None = None) -> Path:
    """The folder of the exchange logs, for a program: the one that it gives, else the setting. If the settings cannot
    be read, it is the default: a command reports what is wrong with them."""
    return _sessions_dir(given, _absolute(str(SETTINGS["sessions_dir"].default)))


def sessions_dir_of_runs(given: str | os.PathLike[str] | None = None) -> Path:
    """The same for a run, whose default is in the home, where runs in all folders are together."""
    return _sessions_dir(given, home() / "sessions")


def _sessions_dir(given: str | os.PathLike[str] | None, default: Path) -> Path:
    if given is not None:
        return Path(given).expanduser().absolute()  # the working folder may change
    try:
        settings = load()
    except ConfigError:
        return default
    return default if settings.is_default("sessions_dir") else settings.sessions_dir


Given = Iterator[tuple[Setting, object, str]]  # setting, written value, source


def _from_file(path: Path | None) -> Given:
    if path is None:
        return
    for key, written in _read_toml(path).items():
        if key in TABLES:
            continue
        if key not in SETTINGS:
            raise ConfigError(f"{path}: unknown setting {key}; {_settings_like(key)}")
        yield SETTINGS[key], written, str(path)


def _mask_words(path: Path | None) -> tuple[str, ...]:
    """Return the words of `[mask]`, which only a file can have. Raises `ConfigError`."""
    table = _read_toml(path).get("mask", {}) if path else {}
    words = table.get("words", []) if isinstance(table, dict) else None
    unknown = set(table) - {"words"} if isinstance(table, dict) else ()
    if unknown or not isinstance(words, list) or not all(isinstance(word, str) and word.strip() for word in words):
        raise ConfigError(f'{path}: the table [mask] may have one line, such as words = ["Acme", "project-x"]')
    return tuple(words)


def _share_table(path: Path | None) -> Mapping[str, object]:
    """Return the table `[share]`, which only a file can have. Raises `ConfigError`."""
    table = _read_toml(path).get("share", {}) if path else {}
    if not isinstance(table, dict):
        raise ConfigError(f"{path}: [share] is a table")
    return table


def _from_environment() -> Given:
    for setting in SETTINGS.values():
        if text := os.environ.get(setting.variable):
            yield setting, setting.kind.from_text(text), f"environment {setting.variable}"


def _from_flags(flags: Flags) -> Given:
    for name, given in flags.items():
        if given is None or given == ():
            continue
        setting = SETTINGS[name]
        written = setting.kind.from_text(given) if isinstance(given, str) else list(given)
        yield setting, written, f"flag {setting.flag}"


def _check(setting: Setting, written: object, source: str) -> Any:
    try:
        return setting.kind.check(written)
    except ValueError as error:
        text = f"{setting.name} = {_quoted(written)}"
        reason = f" ({error})" if isinstance(error, HostNameError) else ""
        raise ConfigError(f"{source}: {text}{reason} is not allowed; use {setting.kind.allowed}") from error


def _quoted(written: object) -> str:
    """A refused value for the error line: short, and without the password of a URL."""
    from json import dumps

    text = re.sub("//[^/@]*@", "//...@", dumps(written, default=str, ensure_ascii=False))
    return text if len(text) <= 80 else f"{text[:77]}..."


def _settings_like(key: str) -> str:
    from difflib import get_close_matches

    near = get_close_matches(key.replace("-", "_").lower(), SETTINGS, n=1)
    return f"did you mean {near[0]}?" if near else f"the settings are {', '.join(SETTINGS)}"


# ---- the file


def _config_file(given: str | None) -> Path | None:
    """The file of `--config`, or the home's file if it is there. Never the working folder's: a repository must not
    choose an upstream or a command."""
    if given is not None:
        return _absolute(given)
    usual = home() / "config.toml"
    try:
        usual.lstat()
    except (FileNotFoundError, NotADirectoryError):
        return None
    except OSError:
        pass  # opening it says why
    return usual


def _read_toml(path: Path) -> dict[str, object]:
    import tomllib

    try:
        with path.open("rb") as file:
            _refuse_if_others_may_write(path, os.fstat(file.fileno()))
            return tomllib.load(file)
    except OSError as error:
        raise ConfigError(f"cannot read the settings in {path}: {error.strerror}") from error
    except (ValueError, RecursionError) as error:
        raise ConfigError(f"{path}: not a TOML file: {error}") from error


def _refuse_if_others_may_write(path: Path, opened: os.stat_result) -> None:
    """Raise `ConfigError` if other users may write to the file or to a folder on its path: whoever can write to such a
    folder can replace the file."""
    if stat.S_ISCHR(opened.st_mode):
        return  # /dev/null: what others write there, nobody reads
    _refuse_if_open(path, opened)
    for folder in dict.fromkeys([*path.parents, *path.resolve().parents]):
        _refuse_if_open(folder, folder.stat())


def _refuse_if_open(path: Path, status: os.stat_result) -> None:
    if status.st_uid not in (0, os.geteuid()):
        raise ConfigError(f"{path}: belongs to another user (uid {status.st_uid}), so settings are not read from there")
    sticky = stat.S_ISDIR(status.st_mode) and status.st_mode & stat.S_ISVTX  # /tmp: only owners replace
    if status.st_mode & 0o022 and not sticky:
        raise ConfigError(
            f"{path}: other users can write to it, so settings are not read from there; fix this with chmod go-w"
        )


# ---- the environment


def home() -> Path:
    """Our folder: `AGENT_LOGGER_HOME` or `~/.agent-logger`. It need not exist."""
    try:
        return _absolute(os.environ.get(f"{PREFIX}HOME") or "~/.agent-logger")
    except RuntimeError as error:
        raise ConfigError(f"your home folder is unknown; set HOME or {PREFIX}HOME") from error


def user_config_folder() -> Path:
    """The folder of the user's settings of all programs: `XDG_CONFIG_HOME`, which must be absolute, or `~/.config`."""
    chosen = Path(os.environ.get("XDG_CONFIG_HOME", ""))
    return chosen if chosen.is_absolute() else Path.home() / ".config"


def debug() -> bool:
    """Whether `AGENT_LOGGER_DEBUG=1` is set: then unexpected errors show their traceback."""
    return os.environ.get(f"{PREFIX}DEBUG", "") not in ("", "0")


def variable(name: str) -> str | None:
    """Read one of the variables that send an agent through the proxy."""
    return os.environ.get(name)


def no_color() -> bool:
    """Whether colors are off: the user does not want them, or the terminal would print the escape codes as text."""
    return bool(os.environ.get("NO_COLOR")) or os.environ.get("TERM") == "dumb"


def shell() -> str:
    """The name of the user's shell."""
    return Path(os.environ.get("SHELL", "sh")).name


class Network(NamedTuple):
    """What the environment says about the way to upstreams, as other programs understand it."""

    https_proxy: str = ""
    no_proxy: str = ""
    ca_file: str = ""  # certificates to trust instead of the system's
    extra_ca_file: str = ""  # certificates to trust besides those


def network(environment: Mapping[str, str] | None = None) -> Network:
    """Read the way to upstreams from an environment; from our own if none is given."""
    variables = os.environ if environment is None else environment

    def first(*names: str) -> str:
        return next((value for name in names if (value := variables.get(name))), "")

    return Network(
        https_proxy=first("https_proxy", "HTTPS_PROXY"),
        no_proxy=first("no_proxy", "NO_PROXY"),
        ca_file=first("SSL_CERT_FILE"),
        extra_ca_file=first("NODE_EXTRA_CA_CERTS"),
    )


def child_environment(**changes: str) -> dict[str, str]:
    """Our own environment, changed, for a program that we start."""
    return {**os.environ, **changes}


def stray_variables() -> list[str]:
    """Return the variables that look like ours but are no settings: most likely they are mistyped."""
    names = {f"{PREFIX}HOME", f"{PREFIX}DEBUG", *(setting.variable for setting in SETTINGS.values())}
    return sorted(name for name in os.environ if name.startswith(PREFIX) and name not in names)


def _absolute(text: str) -> Path:
    path = Path(text).expanduser()
    try:
        return path.absolute()
    except FileNotFoundError as error:
        raise ConfigError(f"{path}: the working folder no longer exists; change to another one") from error
