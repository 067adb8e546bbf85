"""Write the generated files of this repository; with `--check`, name those that are stale.

A new one is a function that returns the file's whole text, and a row in `GENERATED`.
"""

import inspect
import json
import re
import sys
from collections.abc import Callable
from functools import partial
from pathlib import Path
from types import UnionType
from typing import Any, get_args, get_origin

import compatibility
import msgspec
from click.testing import CliRunner

import agent_logger
from agent_logger.agents.claude_code.context import Context
from agent_logger.agents.claude_code.transcript import records as claude_records
from agent_logger.archive.collect import ArchiveReport
from agent_logger.archive.restore import RestoreReport
from agent_logger.catalog.discovery.installed_agents import InstalledAgent
from agent_logger.catalog.joining.calls import CallDetail
from agent_logger.catalog.ledger.metrics import ToolUsage
from agent_logger.catalog.live.moments import Moment
from agent_logger.catalog.sqlite.schema import CATALOG, TEXT_INDEX
from agent_logger.catalog.summary import Hit
from agent_logger.catalog.tree import SessionNode
from agent_logger.cli import COMMANDS, NAME, _checks, _explain, config, find, ls, rm, run, shell, show, tag, usage
from agent_logger.config import SETTINGS, Setting, SettingList, Written
from agent_logger.exports.report import ExportReport
from agent_logger.hub.roles import table_text
from agent_logger.imports.run import ImportResult
from agent_logger.logs import verify
from agent_logger.logs.disk_usage import FolderUsage
from agent_logger.model.origin import ImportOrigin
from agent_logger.model.records import KINDS, Kind
from agent_logger.model.records import tag as type_tag
from agent_logger.model.session import Session, Turn
from agent_logger.proxy import status as proxy_status
from agent_logger.proxy.forward import ca_report
from agent_logger.web.api.openapi import clean_descriptions

ROOT = Path(__file__).resolve().parent.parent

CONFIG_PAGE = """\
<!-- Written by docs/generate.py from the table in src/agent_logger/config.py. -->

# Settings

Each setting can be given in three ways; the first one that is present is used:

1. a flag of the command, such as `--log-dir ~/logs`;
2. an environment variable, such as `AGENT_LOGGER_LOG_DIR=~/logs` (an empty one counts as not set);
3. a line in the TOML file, such as `log_dir = "~/logs"`.

Otherwise the default applies. A command has only the flags that it needs; `agent-logger config` has all
of them, and shows every value with its source. A value that is not allowed is an error (exit code 2),
even if a source with higher priority overrides it.

The file is `~/.agent-logger/config.toml`, or the one that `--config FILE` names. It is never read from
the working folder: a repository must not choose where your traffic goes or which command is run. For
the same reason, a file is refused if another user owns it, or can write to it or to a folder above it
(a folder with the sticky bit, such as `/tmp`, is fine). [config.toml.example](../config.toml.example)
has every line with its default.

Relative folders, also those in the file, are relative to the working folder. A list replaces the list
of a source with lower priority; the two are not joined.

Commands that read know every folder that was ever recorded to on this machine. `./logs` and `./sessions`
of the working folder are also read if this installation wrote them, so a project that was moved is
found again; logs of others there are named, and not read ([security](SECURITY.md)). To read logs that
were written elsewhere, name their folder once:
`AGENT_LOGGER_LOG_DIR=~/from-the-server agent-logger ls`; from then on it is known too. This also works
if the home cannot be written to (read-only or full): the folder is read for this command, the catalog
is kept in memory, and a line says so and why.

## The settings
"""

OTHER_VARIABLES = """
## Tables

`[mask]`, in the file alone: `words = ["Acme", "project-x"]` are words that
[`export --mask names`](commands/export.md) replaces.

`[share.levels]` and `[share.names]`, in the file alone: how much of which projects is shared with a hub, and under
which names; [`share`](commands/share.md) writes the levels.

```toml
[share.levels]
"*" = "numbers"
"~/work/*" = "contents"

[share.names]
"~/work/secret" = "a customer"
```

## Other variables

| variable | meaning |
|---|---|
| `AGENT_LOGGER_HOME` | our own folder, instead of `~/.agent-logger` |
| `AGENT_LOGGER_DEBUG` | `1`: unexpected errors show their traceback |
| `NO_COLOR` | any value: no colour; `TERM=dumb` does the same |
| `PAGER` | the program for output of more than one screen of a terminal, otherwise `less`; empty: none |
"""

EXAMPLE = """\
# Settings of agent-logger: ~/.agent-logger/config.toml, or the file that --config names.
# Every line shows its default. Flags and the environment override this file.
# Only you may have write access to it (chmod go-w).
"""


def config_page() -> str:
    return CONFIG_PAGE + "".join(map(_section, SETTINGS.values())) + OTHER_VARIABLES


def _section(setting: Setting) -> str:
    repeatable = ", may be repeated" if isinstance(setting.kind, SettingList) else ""
    commas = ", separated by commas" if isinstance(setting.kind, SettingList) else ""
    return f"""
### `{setting.name}`

{setting.help}

- Allowed: {setting.kind.allowed}
- Default: `{_toml(setting.default)}`
- Flag: `{setting.flag} {setting.kind.metavar}`{repeatable}
- Variable: `{setting.variable}`{commas}
"""


def config_example() -> str:
    return EXAMPLE + "".join(map(_example, SETTINGS.values()))


def _example(setting: Setting) -> str:
    return f"""
# {setting.help}
# Allowed: {setting.kind.allowed}
#{setting.name} = {_toml(setting.default)}
"""


def _toml(value: Written) -> str:
    return json.dumps(value)  # numbers, plain strings and lists of them look alike in both


def log_schema(kind: Kind) -> str:
    records = KINDS[kind]
    one_of, definitions = msgspec.json.schema_components(records, ref_template="#/$defs/{name}")
    lines = [*one_of, _message_schema(kind)] if kind == "transcript" else list(one_of)
    return _schema(f"a record of the {kind} log", {"oneOf": lines, "$defs": definitions})


def _message_schema(kind: Kind) -> dict[str, object]:
    """The schema of the lines that are no records: an agent's messages, as it gave them."""
    ours = {"enum": [type_tag(record) for record in KINDS[kind]]}
    return {
        "title": "Message",
        "description": "A message of the session, in the shape of Claude Code's lines.",
        "type": "object",
        "properties": {"type": {"type": "string", "not": ours}},
        "required": ["type"],
    }


def report_schema(title: str, report: Any) -> str:
    return _schema(title, msgspec.json.schema(report, schema_hook=lambda _: {"type": "string"}))  # paths


def _schema(title: str, schema: dict[str, object]) -> str:
    head = {"$schema": "https://json-schema.org/draft/2020-12/schema", "title": title}
    return json.dumps({**head, **clean_descriptions(schema)}, indent=2) + "\n"


class MarkerError(Exception):
    """A page does not have the places for its generated text."""


def _filled(name: str, places: re.Pattern[str], *texts: str) -> str:
    """The page as it is, with one text between the two groups of each place. Raises `MarkerError` if the page has more
    or fewer places than there are texts."""
    path = ROOT / name
    page = path.read_text("utf-8") if path.exists() else ""
    count = len(places.findall(page))
    if count != len(texts):
        wanted = f"{len(texts)} place{'s' * (len(texts) != 1)} for generated text"
        raise MarkerError(f"{name}: needs {wanted}, has {count}; a place matches {places.pattern!r}")
    rest = iter(texts)
    return places.sub(lambda place: f"{place[1]}{next(rest)}{place[2]}", page)


FIRST_BLOCK = re.compile(r"\A((?:(?!```).)*```\n).*?(```)", re.DOTALL)


def command_page(name: str) -> str:
    """The page as it is, its first block of code replaced by the command's help."""
    # On 80 columns click fills 78.
    help_text = CliRunner().invoke(shell, [name, "--help"], prog_name=NAME, terminal_width=78).stdout
    return _filled(f"docs/commands/{name}.md", FIRST_BLOCK, help_text)


CLAUDE_SOURCE = Path(claude_records.__file__).relative_to(Path(agent_logger.__file__).parent.parent)
CLAUDE_TABLE = re.compile(
    rf"(<!-- generated by docs/generate\.py from src/{re.escape(CLAUDE_SOURCE.as_posix())} -->\n).*?(<!-- end -->)",
    re.DOTALL,
)
CLAUDE_TYPES: tuple[type[msgspec.Struct], ...] = (
    claude_records.SessionRecord,
    *claude_records.RECORDS.values(),
    claude_records.ClaudeMessage,
    claude_records.MessageUsage,
    claude_records.TokenUsage,
)


def formats_page() -> str:
    """The page as it is, with the table of Claude Code's lines."""
    rows = "".join(f"{_claude_row(record)}\n" for record in CLAUDE_TYPES)
    table = f"| `type` | in Python | what it is | fields |\n|---|---|---|---|\n{rows}"
    return _filled("docs/FORMATS.md", CLAUDE_TABLE, table)


def _claude_row(record: type[msgspec.Struct]) -> str:
    kind = record.__dict__.get("TYPE")
    name = f"`{kind}`" if kind else "every line" if record is claude_records.SessionRecord else ""
    # Fields of a base that has a row of its own stand there.
    bases = [base for base in CLAUDE_TYPES if base is not record and issubclass(record, base)]
    inherited = {field.name for base in bases for field in msgspec.structs.fields(base)}
    own = [field for field in msgspec.structs.fields(record) if field.name not in inherited]
    fields = ", ".join(f"`{field.encode_name}` {_kind_of(field.type)}" for field in own)
    first_paragraph = inspect.cleandoc(record.__doc__ or "").partition("\n\n")[0]
    return f"| {name} | `{record.__name__}` | {' '.join(first_paragraph.split())} | {fields} |"


CLAUDE_KINDS = {
    str: "text",
    bool: "true or false",
    int: "number",
    float: "number",
    list: "list",
    dict: "object",
}


def _kind_of(kind: Any) -> str:
    choices = get_args(kind) if isinstance(kind, UnionType) else (kind,)
    names = (
        CLAUDE_KINDS.get(get_origin(choice) or choice, "anything" if choice is Any else "object")
        for choice in choices
        if choice is not type(None)
    )
    return " or ".join(dict.fromkeys(names))


def public_names_stub() -> str:
    """The names of `agent_logger` for type checkers, which cannot follow the table in its `__init__.py`."""
    names = sorted((module, name) for name, module in vars(agent_logger)["_HOME_OF"].items())
    imports = [f"from {module} import {name} as {name}" for module, name in names]
    former = [f"{old} = {new}  # its former name" for old, new in vars(agent_logger)["_FORMER"].items()]
    head = "# Written by docs/generate.py from the table in __init__.py."
    return "\n".join([head, *imports, "", "__version__: str", *former, ""])


TABLES = re.compile(r"(```sql\n).*?(```)", re.DOTALL)


ROLE_TABLE = re.compile(r"(it has:\n\n```\n).*?(```)", re.DOTALL)


def hub_page() -> str:
    return _filled("docs/hub.md", ROLE_TABLE, table_text() + "\n")


def catalog_page() -> str:
    """The page as it is, with the tables of the catalog's two files."""
    tables = [f"{schema.sql.strip()}\n" for schema in (CATALOG, TEXT_INDEX)]
    return _filled("docs/catalog.md", TABLES, *tables)


SCHEMAS = "src/agent_logger/schemas"  # part of the package: `agent-logger schema` prints them

# Schemas of what commands print with `--json`, by name: title and type.
REPORTS: dict[str, tuple[str, Any]] = {
    "archive": ("agent-logger archive --json", ArchiveReport),
    "restore": ("agent-logger archive --restore --json", RestoreReport),
    "context": ("agent-logger context --json", Context),
    "ca": ("agent-logger ca --json", ca_report.CaReport),
    "config": ("agent-logger config --json", config.SettingsReport),
    "doctor": ("agent-logger doctor --json", _checks.Examined),
    "du": ("agent-logger du --json", list[FolderUsage]),
    "tree": ("agent-logger tree --json", SessionNode),
    "tail": ("a line of agent-logger tail --json", Moment),
    "export": ("agent-logger export --json", ExportReport),
    "import": ("agent-logger import --json", list[ImportResult]),
    "import-list": ("agent-logger import --list --json", list[ImportOrigin]),
    "find-agents": ("agent-logger find --json, without an ID", list[InstalledAgent]),
    "find": ("agent-logger find --json", list[find.FoundFile]),
    "ls": ("agent-logger ls --json", list[ls.SessionRow]),
    "rm": ("agent-logger rm --json and prune --json", list[rm.Removed]),
    "run": ("agent-logger run --json", run.RunReport),
    "search": ("agent-logger search --json", list[Hit]),
    "show": ("agent-logger show --json", Session),
    "show-turn": ("agent-logger show --turn N --json", Turn),
    "show-wire": ("agent-logger show --turn N --wire --json", list[CallDetail]),
    "show-tools": ("agent-logger show --tools --json", list[ToolUsage]),
    "show-files": ("agent-logger show --files --json", show.TouchedFiles),
    "status": ("agent-logger status --json", list[proxy_status.ProxyReport]),
    "tag": ("agent-logger tag --json", list[tag.MarkedSession]),
    "usage": ("agent-logger usage --json", usage.UsageReport),
    "usage-block": ("agent-logger usage block --json", usage.BlockReport),
    "usage-explain": ("agent-logger usage --explain ID --json", _explain.Explanation),
    "verify": ("agent-logger verify --json", verify.LogReport),
}

GENERATED: dict[str, Callable[[], str]] = {
    "config.toml.example": config_example,
    "src/agent_logger/__init__.pyi": public_names_stub,
    "docs/FORMATS.md": formats_page,
    "docs/catalog.md": catalog_page,
    "docs/hub.md": hub_page,
    "docs/COMPATIBILITY.md": compatibility.page,
    "docs/config.md": config_page,
    **{f"{SCHEMAS}/{name}.json": partial(report_schema, *report) for name, report in REPORTS.items()},
    **{f"{SCHEMAS}/{kind}-log.json": partial(log_schema, kind) for kind in KINDS},
    **{f"docs/commands/{name}.md": partial(command_page, name) for name in COMMANDS},
}


def main(arguments: list[str]) -> int:
    if arguments not in ([], ["--check"]):
        sys.stderr.write("usage: generate.py [--check]\n")
        return 2
    try:
        texts = {ROOT / name: make() for name, make in GENERATED.items()}
    except MarkerError as error:
        sys.stderr.write(f"generate.py: {error}\n")
        return 2
    stale = [path for path, text in texts.items() if not path.exists() or path.read_text("utf-8") != text]
    for path in stale:
        if not arguments:
            path.parent.mkdir(parents=True, exist_ok=True)
            path.write_text(texts[path], "utf-8")
        sys.stderr.write(f"{'stale' if arguments else 'wrote'} {path.relative_to(ROOT)}\n")
    return 1 if stale and arguments else 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
