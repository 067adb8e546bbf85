"""`agent-logger tree`: show a session's forks and sub-agents."""

from collections.abc import Iterator, Mapping, Sequence
from typing import TYPE_CHECKING

import click

from agent_logger import config
from agent_logger.cli import _output
from agent_logger.cli._catalog import homes_option, open_catalog
from agent_logger.cli._pager import paged, pager_option
from agent_logger.cli._select import resolve_id, short_ids
from agent_logger.cli._settings import settings_options
from agent_logger.errors import SourceError
from agent_logger.home.homes import Homes
from agent_logger.model.plurals import pluralize
from agent_logger.views.figures import dollars
from agent_logger.views.lists import sources_text
from agent_logger.views.terminal import screen

if TYPE_CHECKING:
    from agent_logger.catalog.tree import AgentNode, BranchNode, SessionNode

    Node = AgentNode | BranchNode | SessionNode


@click.command()
@click.argument("session", metavar="ID")
@click.option("--json", "as_json", is_flag=True, help="Print JSON; 'agent-logger schema tree' describes it.")
@pager_option()
@settings_options()
@homes_option(with_database=True)
def command(settings: config.Configuration, homes: Homes, session: str, as_json: bool, pager: bool) -> None:
    """Show a session's sub-agents and forks.

    The tree begins with the session that all others were forked from; a star marks the session with this ID. Each row
    has the number of turns and their cost. For a session, these include its sub-agents, and the row has its sources, as
    in ls. A branch is where a session was resumed from an earlier point.

    \b
    Examples:
      agent-logger tree 1f320356
      agent-logger tree 1f320356 --json | jq '.forks[].id'
    """
    with open_catalog(settings, homes) as catalog:
        root = catalog.tree(resolve_id(catalog, session))
        ids = short_ids(catalog, _ids(root)) if root else {}
    if root is None:
        raise SourceError(f"the files of session {session!r} can no longer be read")
    with paged(pager):
        if as_json:
            _output.hidden_json(root)
            return
        for line in session_lines(root, ids, screen.columns()):
            _output.echo(line)


def _ids(node: "SessionNode") -> Iterator[str]:
    yield node.id
    for fork in node.forks:
        yield from _ids(fork)


def session_lines(
    node: "SessionNode", ids: Mapping[str, str], width: int, first: str = "", rest: str = ""
) -> Iterator[str]:
    """The lines of a session and of everything below it. `first` is put before its own line, `rest` before those below
    it."""
    mark = " *" if node.is_selected else ""
    live = " (live)" if node.live else ""
    started = screen.day_and_time(node.started) if node.started else ""
    name = f"{first}{'fork ' if first else ''}{ids[node.id]}{mark}{live}"
    facts = (started, pluralize(node.turns, "turn"), _cost(node), sources_text(node.witnesses))
    yield _line(name, node.title or "", facts, width)
    below: list[Node] = [*node.agents, *node.branches, *node.forks]
    for number, child in enumerate(below, 1):
        yield from _below(child, ids, width, rest, last=number == len(below))


def _below(node: "Node", ids: Mapping[str, str], width: int, before: str, *, last: bool) -> Iterator[str]:
    from agent_logger.catalog.tree import BranchNode, SessionNode

    first, rest = (f"{before}└─ ", f"{before}   ") if last else (f"{before}├─ ", f"{before}│  ")
    if isinstance(node, SessionNode):
        yield from session_lines(node, ids, width, first, rest)
    elif isinstance(node, BranchNode):
        yield screen.cut(f"{first}branch {node.log}  from {node.parent} after call {node.from_call}", width)
    else:
        name = f"{first}agent {node.thread.partition(':')[2][:12]}"
        title = ": ".join(filter(None, (node.kind, node.description)))
        yield _line(name, title, ("", pluralize(node.turns, "turn"), _cost(node), ""), width)
        for number, agent in enumerate(node.agents, 1):
            yield from _below(agent, ids, width, rest, last=number == len(node.agents))


COLUMNS = (">11", ">9", ">8", ">4")  # time, turns, cost, sources


def _line(name: str, title: str, facts: Sequence[str], width: int) -> str:
    """The line of a node: its facts in columns at the right, as many of the last as there is room for, and the title
    cut to what is left."""
    cells = [f"  {fact:{form}}" for fact, form in zip(facts, COLUMNS, strict=True)]
    while cells and screen.width(name) + sum(map(len, cells)) > width:
        del cells[0]
    right = "".join(cells)
    text = _output.printable(" ".join(_output.hidden(title).split()))
    left = screen.cut(f"{name}  {text}", width - len(right))
    return f"{left}{' ' * (width - screen.width(left) - len(right))}{right}".rstrip()


def _cost(node: "AgentNode | SessionNode") -> str:
    """The cost of a node. A node that copied everything from its parent has cost nothing."""
    if node.cost_usd is None:
        return "unknown" if node.turns else "-"
    return dollars(node.cost_usd)
