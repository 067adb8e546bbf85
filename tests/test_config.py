"""Settings: what is read from where, what is refused, and that the documents say the same."""

import os
import re
import shutil
import subprocess
import sys
import tomllib
from pathlib import Path

import click
import pytest
from click.testing import CliRunner
from hypothesis import given
from hypothesis import strategies as st

from agent_logger import config
from agent_logger.cli._settings import settings_options
from agent_logger.config import SETTINGS, Configuration, Duration, Origin, load
from agent_logger.errors import ConfigError

ROOT = Path(__file__).resolve().parent.parent

# name, as a flag or variable, as TOML, the value
ALLOWED = [
    pytest.param("port", "0", "0", 0, id="port 0"),
    pytest.param("port", "65535", "65535", 65535, id="highest port"),
    pytest.param("page_port", "9001", "9001", 9001, id="page_port"),
    pytest.param("log_dir", "/var/l o g", '"/var/l o g"', Path("/var/l o g"), id="log_dir"),
    pytest.param("sessions_dir", "/s", '"/s"', Path("/s"), id="sessions_dir"),
    pytest.param(
        "allow_upstream",
        "https://LLM.example",
        '["https://llm.example"]',
        ("https://llm.example",),
        id="https",
    ),
    pytest.param("allow_upstream", "http://[::1]:80", '["http://[::1]:80"]', ("http://[::1]:80",), id="IPv6"),
    pytest.param(
        "record_hosts",
        "LLM.example.com, *.bücher.example",
        '["llm.example.com", "*.bücher.example"]',
        ("llm.example.com", "*.xn--bcher-kva.example"),
        id="names",
    ),
    pytest.param("agent_folders", "/a, /b,/a", '["/a", "/b"]', (Path("/a"), Path("/b")), id="folders"),
    pytest.param("redact", "credentials", '"credentials"', "credentials", id="redact"),
    pytest.param("seal_after", "12h", '"12h"', 43200, id="hours"),
    pytest.param("seal_after", "never", '"never"', None, id="never"),
    pytest.param("workers", "64", "64", 64, id="workers"),
    pytest.param("summary_command", "llm -s 'sum up'", "\"llm -s 'sum up'\"", "llm -s 'sum up'", id="command"),
]

REFUSED = [
    pytest.param("port", "65536", "65536", id="port too high"),
    pytest.param("port", "-1", "-1", id="negative port"),
    pytest.param("port", "80a", '"8080"', id="port as a string"),
    pytest.param("port", "٨٠", "true", id="port in other digits, or a truth"),
    pytest.param("port", "9" * 5000, "80.5", id="endless port, or a fraction"),
    pytest.param("workers", "0", "0", id="no workers"),
    pytest.param("workers", "65", "65", id="too many workers"),
    pytest.param("log_dir", "~nobody-of-this-name/x", '""', id="no such user, or empty"),
    pytest.param("sessions_dir", "~nobody-of-this-name/x", "7", id="no folder"),
    pytest.param("redact", "none", '"none"', id="redact nothing"),
    pytest.param("seal_after", "0d", '"0d"', id="seal at once"),
    pytest.param("seal_after", "1w", "86400", id="weeks, or bare seconds"),
    pytest.param("seal_after", "10000d", '"1 d"', id="too long, or with a space"),
    pytest.param("allow_upstream", "http://llm.example", '["http://llm.example"]', id="http without a port"),
    pytest.param("allow_upstream", "https://llm.example/v1", '["https://llm.example/"]', id="a path"),
    pytest.param("allow_upstream", "ftp://llm.example:21", '"https://llm.example"', id="ftp, or no list"),
    pytest.param("allow_upstream", "https://h:0", '["https://h:65536"]', id="no such port"),
    pytest.param("allow_upstream", "http://2130706433:80", '["http://127.0x1:80"]', id="disguised 127.0.0.1"),
    pytest.param("allow_upstream", "https://a..b", '["https://-a"]', id="not a host name"),
    pytest.param("allow_upstream", "https://\u212aelvin", '[["https://h"]]', id="Kelvin sign, or nested"),
    pytest.param("agent_folders", "~nobody-of-this-name/x", '"/a"', id="no such user, or no list"),
    pytest.param("record_hosts", "10.0.0.1", '["[::1]"]', id="an address"),
    pytest.param("record_hosts", "https://llm.example.com", '["llm.example.com:443"]', id="no name"),
    pytest.param("record_hosts", "localhost", '"llm.example.com"', id="one label, or no list"),
    pytest.param("summary_command", "llm 'open", "[]", id="open quote, or a list"),
]


@pytest.fixture(autouse=True)
def working_folder(home: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    home.chmod(0o700)  # whatever the umask is
    (home / ".agent-logger").mkdir(mode=0o700)
    folder = tmp_path / "work"
    folder.mkdir(mode=0o700)
    monkeypatch.chdir(folder)
    return folder


@pytest.fixture
def home_file(home: Path) -> Path:
    return home / ".agent-logger" / "config.toml"


def write(path: Path, text: str, mode: int = 0o600) -> Path:
    path.write_text(text, encoding="utf-8")
    path.chmod(mode)
    return path


def value(settings: Configuration, name: str) -> object:
    got = getattr(settings, name)
    return tuple(map(str, got)) if name == "allow_upstream" else got


def as_given(name: str, text: str) -> str | list[str]:
    """What a command line says: an option that may be repeated has a list."""
    return text.split(", ") if name in ("allow_upstream", "record_hosts") else text


def test_the_refusal_of_an_address_among_the_recorded_hosts_names_the_setting_for_addresses() -> None:
    with pytest.raises(ConfigError, match=r"flag --record-hosts: .*10\.0\.0\.1.* --allow-upstream"):
        load({"record_hosts": ["10.0.0.1"]})


def test_the_table_and_the_settings_object_have_the_same_names() -> None:
    extra = {"home", "file", "sources", "mask_words", "share"}  # the last two are of tables, which only a file can have
    assert set(Configuration._fields) - extra == set(SETTINGS)


def test_every_setting_has_its_default_value(tmp_path: Path) -> None:
    settings = load()
    assert set(settings.sources.values()) == {"default"}
    assert settings.is_default("port")
    assert (settings.port, settings.page_port, settings.workers) == (8080, 8081, 1)
    assert settings.log_dir == tmp_path / "work" / "logs"
    assert settings.sessions_dir == tmp_path / "work" / "sessions"
    assert (settings.redact, settings.seal_after, settings.allow_upstream) == ("all", 86400, ())
    assert settings.file is None


@pytest.mark.parametrize(("name", "text", "toml", "expected"), ALLOWED)
def test_each_setting_can_be_a_flag_a_variable_and_a_toml_key(
    name: str, text: str, toml: str, expected: object, monkeypatch: pytest.MonkeyPatch, home_file: Path
) -> None:
    flag = load({name: as_given(name, text)})
    write(home_file, f"{name} = {toml}\n")
    file = load()
    monkeypatch.setenv(SETTINGS[name].variable, text)
    home_file.unlink()
    environment = load()
    assert [value(settings, name) for settings in (flag, environment, file)] == [expected] * 3
    assert flag.sources[name] == f"flag --{name.replace('_', '-')}"
    assert environment.sources[name] == f"environment AGENT_LOGGER_{name.upper()}"
    assert file.sources[name] == str(home_file)


@pytest.mark.parametrize(("name", "text", "toml"), REFUSED)
def test_an_invalid_value_is_an_error_that_names_setting_source_and_allowed_values(
    name: str, text: str, toml: str, monkeypatch: pytest.MonkeyPatch, home_file: Path
) -> None:
    setting = SETTINGS[name]
    with pytest.raises(ConfigError) as flag:
        load({name: as_given(name, text)})
    with monkeypatch.context() as patch, pytest.raises(ConfigError) as environment:
        patch.setenv(setting.variable, text)
        load()
    write(home_file, f"{name} = {toml}\n")
    with pytest.raises(ConfigError) as file:
        load()
    sources = {
        f"flag {setting.flag}": flag,
        f"environment {setting.variable}": environment,
        str(home_file): file,
    }
    for source, caught in sources.items():
        message = str(caught.value)
        assert message.startswith(f"{source}: {name} = ")
        assert message.endswith(f" is not allowed; use {setting.kind.allowed}")
        assert len(message) < 400


def test_flags_override_the_environment_and_the_environment_overrides_the_file(
    monkeypatch: pytest.MonkeyPatch, home_file: Path
) -> None:
    write(home_file, "port = 1\nworkers = 2\npage_port = 3\n")
    monkeypatch.setenv("AGENT_LOGGER_PORT", "11")
    monkeypatch.setenv("AGENT_LOGGER_WORKERS", "12")
    settings = load({"port": "21", "workers": None})
    assert (settings.port, settings.workers, settings.page_port) == (21, 12, 3)


def test_a_list_replaces_the_list_of_a_weaker_source(monkeypatch: pytest.MonkeyPatch, home_file: Path) -> None:
    write(home_file, 'allow_upstream = ["https://file.example"]')
    monkeypatch.setenv("AGENT_LOGGER_ALLOW_UPSTREAM", " https://a.example, https://b.example,https://a.example ")
    assert value(load(), "allow_upstream") == ("https://a.example", "https://b.example")
    assert value(load({"allow_upstream": ()}), "allow_upstream") == ("https://a.example", "https://b.example")
    assert value(load({"allow_upstream": ("https://c.example",)}), "allow_upstream") == ("https://c.example",)


def test_an_invalid_value_is_an_error_even_if_a_stronger_source_overrides_it(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setenv("AGENT_LOGGER_PORT", "many")
    with pytest.raises(ConfigError, match="AGENT_LOGGER_PORT"):
        load({"port": "8080"})


def test_an_empty_variable_counts_as_not_set(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setenv("AGENT_LOGGER_PORT", "")
    monkeypatch.setenv("AGENT_LOGGER_HOME", "")
    assert load().sources["port"] == "default"
    assert load().home == tmp_path / "home" / ".agent-logger"


def test_relative_folders_are_resolved_against_the_working_folder(tmp_path: Path, home_file: Path) -> None:
    write(home_file, 'log_dir = "in-file"\nsessions_dir = "~/s"\n')
    settings = load()
    assert settings.log_dir == tmp_path / "work" / "in-file"
    assert settings.sessions_dir == tmp_path / "home" / "s"
    assert load({"log_dir": "../flag"}).log_dir == tmp_path / "work" / ".." / "flag"


def test_the_home_is_set_by_the_environment(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setenv("AGENT_LOGGER_HOME", str(tmp_path / "other"))
    (tmp_path / "other").mkdir(mode=0o700)
    write(tmp_path / "other" / "config.toml", "port = 5\n")
    assert (config.home(), load().port) == (tmp_path / "other", 5)


def test_the_error_for_a_user_without_a_home_names_the_variables_to_set(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setenv("AGENT_LOGGER_HOME", "~nobody-of-this-name/x")
    with pytest.raises(ConfigError, match="set HOME or AGENT_LOGGER_HOME"):
        load()


def test_a_missing_working_folder_is_an_error_only_if_a_setting_needs_it(tmp_path: Path) -> None:
    (tmp_path / "work").rmdir()
    with pytest.raises(ConfigError, match="working folder no longer exists"):
        load()
    assert load({"log_dir": "/l", "sessions_dir": "/s"}).log_dir == Path("/l")


# ---- the file


def test_a_config_file_in_the_working_folder_is_not_read(tmp_path: Path) -> None:
    for name in ("config.toml", ".agent-logger.toml", "agent-logger.toml"):
        write(tmp_path / "work" / name, "port = 1\n")
    (tmp_path / "work" / ".agent-logger").mkdir()
    write(tmp_path / "work" / ".agent-logger" / "config.toml", "port = 1\n")
    assert (load().port, load().file) == (8080, None)


def test_the_given_file_is_read_instead_of_the_file_in_the_home(tmp_path: Path, home_file: Path) -> None:
    write(home_file, "port = 1\nworkers = 9\n")
    write(tmp_path / "work" / "mine.toml", "port = 2\n")
    settings = load(file="mine.toml")
    assert (settings.port, settings.workers) == (2, 1)
    assert settings.file == tmp_path / "work" / "mine.toml"
    assert settings.sources["port"] == str(settings.file)


def test_dev_null_is_a_file_without_settings(home_file: Path) -> None:
    write(home_file, "port = 1\n")
    assert load(file="/dev/null").port == 8080


BROKEN = [
    pytest.param("prot = 1", "unknown setting prot; did you mean port?", id="mistyped"),
    pytest.param('log-dir = "x"', "unknown setting log-dir; did you mean log_dir?", id="a flag's spelling"),
    pytest.param("[proxy]\nport = 1", "unknown setting proxy; ", id="a table"),
    pytest.param("zzz = 1", f"the settings are {', '.join(SETTINGS)}", id="like nothing"),
    pytest.param("port = ", "not a TOML file: Invalid value", id="not TOML"),
    pytest.param("port = 1\nport = 2", "not a TOML file: ", id="twice"),
    pytest.param("port = " + "[" * 100_000, "not a TOML file: ", id="nested too deep"),
    pytest.param("port = 2026-01-01", 'port = "2026-01-01" is not allowed; use a whole number', id="a date"),
]


@pytest.mark.parametrize(("text", "complaint"), BROKEN)
def test_a_broken_file_is_an_error_that_names_the_file(text: str, complaint: str, home_file: Path) -> None:
    write(home_file, text)
    with pytest.raises(ConfigError) as caught:
        load()
    assert str(caught.value).startswith(f"{home_file}: ")
    assert complaint in str(caught.value)


def test_a_file_that_is_not_text_is_an_error(home_file: Path) -> None:
    home_file.write_bytes(b'log_dir = "\xff"')
    home_file.chmod(0o600)
    with pytest.raises(ConfigError, match="not a TOML file"):
        load()


def test_a_given_file_must_exist(tmp_path: Path, home_file: Path) -> None:
    with pytest.raises(ConfigError, match=r"nowhere\.toml: No such file"):
        load(file="nowhere.toml")
    with pytest.raises(ConfigError, match="Is a directory"):
        load(file=str(tmp_path))
    home_file.symlink_to("nowhere")
    with pytest.raises(ConfigError, match="No such file"):
        load()


@pytest.mark.parametrize("mode", [0o620, 0o602, 0o666])
def test_a_file_writable_by_others_is_refused(mode: int, home_file: Path) -> None:
    write(home_file, "port = 1\n", mode)
    with pytest.raises(ConfigError, match=f"{re.escape(str(home_file))}: other users can write to it"):
        load()


@pytest.mark.parametrize("depth", [0, 1])
def test_a_file_in_a_folder_writable_by_others_is_refused(depth: int, home_file: Path) -> None:
    write(home_file, "port = 1\n")
    folder = home_file.parents[depth]
    folder.chmod(0o777)
    with pytest.raises(ConfigError, match=f"{re.escape(str(folder))}: other users can write to it"):
        load()
    folder.chmod(0o1777)  # sticky: others cannot replace what is not theirs
    assert load().port == 1


def test_a_link_to_a_folder_writable_by_others_is_refused(tmp_path: Path, home_file: Path) -> None:
    (tmp_path / "open").mkdir(mode=0o700)
    write(tmp_path / "open" / "real.toml", "port = 1\n")
    home_file.symlink_to(tmp_path / "open" / "real.toml")
    assert load().port == 1
    (tmp_path / "open").chmod(0o777)
    with pytest.raises(ConfigError, match="open: other users can write to it"):
        load()


def test_a_file_of_another_user_is_refused(home_file: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    write(home_file, "port = 1\n")
    if os.geteuid() == 0:
        os.chown(home_file, 65534, -1)
    else:
        mine = os.geteuid()
        monkeypatch.setattr(os, "geteuid", lambda: mine + 1)
    with pytest.raises(ConfigError, match="belongs to another user"):
        load()


# ---- values


@given(st.integers(1, 9999), st.sampled_from("smhd"))
def test_a_displayed_duration_parses_to_the_same_value(count: int, unit: str) -> None:
    seconds = Duration().check(f"{count}{unit}")
    assert seconds == count * {"s": 1, "m": 60, "h": 3600, "d": 86400}[unit]
    assert Duration().check(Duration().show(seconds)) == seconds


@given(st.text("0123456789smhd never+-_.٣", max_size=8))
def test_other_texts_are_not_durations(text: str) -> None:
    if re.fullmatch("never|[1-9][0-9]{0,3}[smhd]", text):
        return
    with pytest.raises(ValueError):
        Duration().check(text)


names = st.from_regex(r"[a-zA-Z][a-zA-Z0-9_]{0,20}(\.[a-z][a-z0-9]{0,10}){0,3}", fullmatch=True)
hosts = names | st.ip_addresses(v=4).map(str) | st.ip_addresses(v=6).map(lambda address: f"[{address}]")


@given(hosts, st.integers(1, 65535))
def test_an_origin_is_parsed_case_insensitively_into_scheme_host_and_port(host: str, port: int) -> None:
    origin = Origin.parse(f"HTTP://{host.upper()}:{port}")
    assert (origin.scheme, origin.port) == ("http", port)
    assert origin == Origin.parse(f"http://{host.lower()}:{port}") == Origin.parse(str(origin))
    secure = Origin.parse(f"https://{host}")
    assert secure.port == 443
    assert str(secure) == f"https://{host.lower()}"


@given(st.text("htps:/[]@%#?.-_019afxzK ſ\n\0", max_size=24).map(lambda rest: f"https://{rest}"))
def test_an_accepted_origin_has_one_spelling(text: str) -> None:
    try:
        origin = Origin.parse(text)
    except ValueError:
        return
    assert origin == Origin.parse(str(origin))
    assert re.fullmatch(r"[a-z0-9._:-]+", origin.host)
    assert not set("@/?#% \n\0") & set(text.removeprefix("https://"))


def test_the_error_for_an_invalid_upstream_does_not_repeat_the_password() -> None:
    with pytest.raises(ConfigError) as caught:
        load({"allow_upstream": ("https://ada:hunter2@llm.example",)})
    assert "hunter2" not in str(caught.value)
    assert "llm.example" in str(caught.value)


# ---- click


def test_a_command_has_only_the_requested_flags_and_gets_all_settings(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    @click.command()
    @click.argument("word")
    @settings_options("port", "allow_upstream")
    def command(settings: Configuration, word: str) -> None:
        click.echo(f"{word} {settings.port} {settings.workers} {value(settings, 'allow_upstream')}")

    monkeypatch.setenv("AGENT_LOGGER_WORKERS", "7")
    upstreams = ["--allow-upstream", "https://a.example", "--allow-upstream", "https://b.example"]
    got = CliRunner().invoke(command, ["hello", "--port", "9", *upstreams])
    assert got.output == "hello 9 7 ('https://a.example', 'https://b.example')\n"
    assert CliRunner().invoke(command, ["hello", "--workers", "2"]).exit_code == 2
    help_text = CliRunner().invoke(command, ["--help"]).output
    assert set(re.findall(r"--[a-z-]+", help_text)) == {"--port", "--allow-upstream", "--config", "--help"}


# ---- the house


def test_settings_load_without_click_or_a_toml_parser() -> None:
    script = "import sys; from agent_logger.config import load; load(); print(*sys.modules)"
    done = subprocess.run([sys.executable, "-c", script], capture_output=True, text=True, check=True)
    modules = done.stdout.split()
    assert "agent_logger.config" in modules
    assert not {"click", "tomllib", "msgspec", "rich"} & set(modules)


# ---- the documents


def generate(root: Path, *arguments: str) -> subprocess.CompletedProcess[str]:
    command = [sys.executable, str(root / "docs" / "generate.py"), *arguments]
    return subprocess.run(command, capture_output=True, text=True, check=False)


def copy_docs(root: Path) -> None:
    shutil.copytree(ROOT / "docs", root / "docs")
    shutil.copy(ROOT / "config.toml.example", root)
    shutil.copytree(ROOT / "src/agent_logger/schemas", root / "src/agent_logger/schemas")
    shutil.copy(ROOT / "src/agent_logger/__init__.pyi", root / "src/agent_logger")
    (root / "tests").symlink_to(ROOT / "tests")


@pytest.mark.parametrize(
    ("page", "generated"),
    [
        ("FORMATS.md", "| `assistant` | `AssistantRecord` |"),
        ("catalog.md", "CREATE TABLE"),
        ("commands/du.md", "Usage: agent-logger du"),
    ],
)
def test_a_manual_change_in_a_generated_part_of_a_page_is_reported_as_stale(
    tmp_path: Path, page: str, generated: str
) -> None:
    copy_docs(tmp_path)
    path = tmp_path / "docs" / page
    path.write_text(path.read_text("utf-8").replace(generated, f"{generated} by hand", 1), "utf-8")
    done = generate(tmp_path, "--check")
    assert (done.returncode, done.stderr) == (1, f"stale docs/{page}\n")


@pytest.mark.parametrize(
    ("page", "marker"),
    [
        ("FORMATS.md", "<!-- generated by docs/generate.py from src/"),
        ("FORMATS.md", "<!-- end -->"),
        ("catalog.md", "```sql\n"),
        ("commands/du.md", "```\n"),
    ],
)
def test_a_page_without_the_marker_for_generated_text_is_an_error(tmp_path: Path, page: str, marker: str) -> None:
    copy_docs(tmp_path)
    path = tmp_path / "docs" / page
    text = path.read_text("utf-8").replace(marker, "")
    path.write_text(text, "utf-8")
    (tmp_path / "docs/config.md").unlink()
    done = generate(tmp_path)
    assert done.returncode == 2
    assert done.stderr.startswith(f"generate.py: docs/{page}: needs ")
    assert path.read_text("utf-8") == text
    assert not (tmp_path / "docs/config.md").exists()


def test_a_stale_document_is_reported_and_regenerated(tmp_path: Path) -> None:
    copy_docs(tmp_path)
    (tmp_path / "config.toml.example").unlink()
    (tmp_path / "docs" / "config.md").unlink()
    missing = generate(tmp_path, "--check")
    assert missing.returncode == 1
    assert set(missing.stderr.splitlines()) == {"stale docs/config.md", "stale config.toml.example"}
    assert generate(tmp_path).returncode == 0
    assert generate(tmp_path, "--check").returncode == 0
    with (tmp_path / "docs" / "config.md").open("a") as page:
        page.write("by hand\n")
    edited = generate(tmp_path, "--check")
    assert (edited.returncode, edited.stderr) == (1, "stale docs/config.md\n")


def test_the_example_file_contains_the_defaults(tmp_path: Path) -> None:
    example = (ROOT / "config.toml.example").read_text("utf-8")
    write(tmp_path / "as-is.toml", example)
    uncommented = re.sub("^#(?! )", "", example, flags=re.MULTILINE)
    write(tmp_path / "uncommented.toml", uncommented)
    assert list(tomllib.loads(uncommented)) == list(SETTINGS)
    as_is, full = load(file=str(tmp_path / "as-is.toml")), load(file=str(tmp_path / "uncommented.toml"))
    assert set(as_is.sources.values()) == {"default"}
    assert set(full.sources.values()) == {str(tmp_path / "uncommented.toml")}
    for name in SETTINGS:
        assert value(as_is, name) == value(full, name) == value(load(), name)


def test_an_invalid_value_is_shown_as_it_was_written() -> None:
    with pytest.raises(ConfigError, match='redact = "ünlü 日本"'):
        load({"redact": "ünlü 日本"})


def test_the_words_to_mask_are_read_from_the_table_of_the_file(tmp_path: Path) -> None:
    file = tmp_path / "config.toml"
    file.write_text('port = 8080\n[mask]\nwords = ["Acme", "project-x"]\n')
    assert load({}, str(file)).mask_words == ("Acme", "project-x")


@pytest.mark.parametrize("table", ['words = "Acme"', "words = [1]", 'names = ["Acme"]', 'words = [" "]'])
def test_a_mask_table_that_is_not_understood_is_refused(tmp_path: Path, table: str) -> None:
    file = tmp_path / "config.toml"
    file.write_text(f"[mask]\n{table}\n")
    with pytest.raises(ConfigError, match="mask"):
        load({}, str(file))
