"""`agent-logger schema`: print the JSON schemas of what we print and write."""

from importlib.resources import files
from typing import TYPE_CHECKING

import click
import msgspec

from agent_logger.cli import _output

if TYPE_CHECKING:
    from importlib.resources.abc import Traversable


class SchemaHead(msgspec.Struct, frozen=True):
    title: str


def _schemas() -> "dict[str, Traversable]":
    """The files of all schemas, by name."""
    folder = files("agent_logger") / "schemas"
    paths = (path for path in folder.iterdir() if path.name.endswith(".json"))
    return dict(sorted((path.name.removesuffix(".json"), path) for path in paths))


def _complete(_ctx: click.Context, _argument: click.Parameter, incomplete: str) -> list[str]:
    return [name for name in _schemas() if name.startswith(incomplete)]


@click.command()
@click.argument("name", required=False, shell_complete=_complete)
def command(name: str | None) -> None:
    """Print the JSON schema of a command's JSON or of a log.

    Without NAME, lists all schemas: those of what commands print with --json, and those of the records in our own logs,
    whose names end in -log.

    \b
    Examples:
      agent-logger schema                         all names
      agent-logger schema usage                   of 'agent-logger usage --json'
      agent-logger schema wire-log > wire.json    a record of the proxy
    """
    schemas = _schemas()
    if name is None:
        heads = {name: msgspec.json.decode(path.read_bytes(), type=SchemaHead) for name, path in schemas.items()}
        _output.table(("schema", "describes"), [(name, head.title) for name, head in heads.items()])
    elif name in schemas:
        click.echo(schemas[name].read_text("utf-8"), nl=False)
    else:
        raise click.UsageError(f"no schema {name!r}; {_advice(name, list(schemas))}")


def _advice(name: str, names: list[str]) -> str:
    from difflib import get_close_matches

    near = get_close_matches(name, names)
    return f"did you mean {' or '.join(near)}?" if near else "'agent-logger schema' lists them"
