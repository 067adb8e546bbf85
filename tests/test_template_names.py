"""The names in templates say what a value is: no pronoun, no bare participle."""

from collections.abc import Iterator
from pathlib import Path

import pytest
from jinja2 import Environment, nodes

SOURCE = Path(__file__).parents[1] / "src" / "agent_logger"
VAGUE = {
    *("it", "its", "told", "found", "said", "known", "kept", "seen", "asked", "wanted", "served"),
    *("shown", "came", "went", "who", "whose"),
}
TEMPLATES = [path.relative_to(SOURCE).as_posix() for path in sorted(SOURCE.rglob("templates/*.html"))]

NAME_FIELDS: tuple[tuple[type[nodes.Node], str], ...] = (
    (nodes.Name, "name"),  # loop targets and the arguments of macros are such
    (nodes.Macro, "name"),
    (nodes.Block, "name"),
    (nodes.Filter, "name"),
    (nodes.Test, "name"),
    (nodes.Getattr, "attr"),
    (nodes.NSRef, "attr"),
    (nodes.Keyword, "key"),
    (nodes.Import, "target"),
)


def names_in(template: str) -> Iterator[tuple[int, str]]:
    """Lines and names: variables, loop targets, macros, their arguments, attributes, filters, tests, imports."""
    tree = Environment().parse(template)
    for kind, field in NAME_FIELDS:
        yield from ((node.lineno, getattr(node, field)) for node in tree.find_all(kind))
    for node in tree.find_all(nodes.FromImport):
        yield from ((node.lineno, name if isinstance(name, str) else name[1]) for name in node.names)


def vague_names(template: str) -> set[tuple[int, str]]:
    return {(line, name) for line, name in names_in(template) if name.strip("_").lower() in VAGUE}


@pytest.mark.parametrize("name", TEMPLATES)
def test_a_template_names_its_values_by_nouns(name: str) -> None:
    vague = vague_names((SOURCE / name).read_text())
    assert not vague, f"{name}: {sorted(vague)}"


def test_the_templates_of_the_page_and_of_the_exported_file_are_checked() -> None:
    assert {"web/templates/base.html", "views/html/templates/turns.html"} <= set(TEMPLATES)


@pytest.mark.parametrize(
    "template",
    [
        "{{ it.title }}",
        "{% if wanted %}{% endif %}",
        "{% for told in rows %}{% endfor %}",
        "{% for number, its in rows %}{% endfor %}",
        "{% set found = 1 %}",
        "{% set page.found = 1 %}",
        "{% macro shown(row) %}{% endmacro %}",
        "{% macro cell(it) %}{% endmacro %}",
        "{% call(who) table() %}{% endcall %}",
        "{{ row.kept }}",
        "{{ cell(seen=1) }}",
        "{{ row | told }}",
        "{{ row is known }}",
        "{% import 'a.html' as its %}",
        "{% from 'a.html' import cell as said %}",
    ],
)
def test_a_vague_name_is_detected_in_every_position(template: str) -> None:
    assert vague_names(template)
