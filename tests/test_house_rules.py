"""The rules of the house that a machine can check: names, folders, and where things are known."""

import ast
import re
from collections import Counter
from collections.abc import Iterator
from functools import cache
from graphlib import TopologicalSorter
from pathlib import Path

import click
import pytest

from agent_logger.agents.registry import AGENTS
from agent_logger.cli import COMMANDS, module_of, shell

SOURCE = Path(__file__).parents[1] / "src" / "agent_logger"
MODULES = sorted(SOURCE.rglob("*.py"))
FOLDERS = sorted({path.parent for path in MODULES})
MOST_MODULES = 16  # in one folder

# Names that say nothing without their sentence.
VAGUE = {
    *("it", "its", "told", "found", "said", "known", "kept", "seen", "asked", "wanted", "served"),
    *("shown", "came", "went", "who", "whose"),
}
CENTRAL = ("Session", "Exchange", "Turn", "Block", "Call", "Thread", "Record", "Part", "Segment", "Ledger")


@cache
def parsed(path: Path) -> ast.Module:
    return ast.parse(path.read_text())


def relative(path: Path) -> str:
    return path.relative_to(SOURCE).as_posix()


def strings(path: Path) -> set[str]:
    constants = (node.value for node in ast.walk(parsed(path)) if isinstance(node, ast.Constant))
    return {value for value in constants if isinstance(value, str)}


def test_agent_names_are_written_only_in_the_folder_of_the_agent() -> None:
    assert {relative(path): names for path in MODULES if (names := foreign_agent_names(path))} == {}


def foreign_agent_names(path: Path) -> set[str]:
    room, *rest = path.relative_to(SOURCE).parts
    own = rest[0] if room == "agents" and len(rest) > 1 else None
    names = {agent.name for agent in AGENTS if agent.name.replace("-", "_") != own}
    return set() if room == "demo" else strings(path) & names


@pytest.mark.parametrize("folder", FOLDERS, ids=relative)
def test_a_folder_has_at_most_16_modules(folder: Path) -> None:
    """But for `cli`, which has one for each command."""
    is_cli = folder == SOURCE / "cli"
    modules = [path for path in folder.glob("*.py") if not is_cli or path.stem.startswith("_")]
    assert len(modules) <= MOST_MODULES


def test_helper_modules_of_commands_start_with_an_underscore() -> None:
    commands = {module_of(name).rpartition(".")[2].replace("-", "_") for name in COMMANDS}
    modules = {path.stem for path in (SOURCE / "cli").glob("*.py") if not path.stem.startswith("_")}
    assert modules <= commands


def test_a_class_name_is_used_once() -> None:
    names = Counter(
        node.name
        for path in MODULES
        for node in ast.walk(parsed(path))
        if isinstance(node, ast.ClassDef) and not node.name.startswith("_")
    )
    assert [name for name, count in names.items() if count > 1] == []
    assert {name: names[name] for name in CENTRAL if names[name] > 1} == {}


def test_json_that_cannot_be_decoded_is_caught_as_a_value_error() -> None:
    # msgspec raises UnicodeDecodeError, which is none of its own errors, for bytes in a string that are no text.
    caught = [
        f"{relative(path)}:{handler.lineno}"
        for path in MODULES
        for handler in ast.walk(parsed(path))
        if isinstance(handler, ast.ExceptHandler) and handler.type and "MsgspecError" in ast.unparse(handler.type)
    ]
    assert caught == []


def bound_names(tree: ast.Module) -> Iterator[tuple[int, str]]:
    for node in ast.walk(tree):
        match node:
            case ast.Name(id=name, ctx=ast.Store()) | ast.arg(arg=name) | ast.alias(asname=str(name)):
                yield node.lineno, name
            case ast.ClassDef(name=name) | ast.FunctionDef(name=name) | ast.AsyncFunctionDef(name=name):
                yield node.lineno, name
            case ast.Attribute(attr=name, ctx=ast.Store()):
                yield node.lineno, name
            case ast.keyword(arg=str(name)):
                yield node.value.lineno, name


def test_no_name_is_a_pronoun_or_a_bare_participle() -> None:
    vague = [
        f"{relative(path)}:{line} {name}"
        for path in MODULES
        for line, name in bound_names(parsed(path))
        if name.strip("_").lower() in VAGUE
    ]
    assert vague == []


# A pronoun that stands for something above, or a fragment that lacks its beginning.
ODD_BEGINNINGS = {
    *("it", "its", "they", "their", "that", "those", "these", "this", "who", "whose", "of", "in", "as", "by"),
    *(
        "for",
        "with",
        "from",
        "without",
        "on",
        "before",
        "after",
        "until",
        "to",
        "over",
        "at",
        "behind",
        "but",
    ),
    *("or", "if", "so", "not", "also", "up", "told", "made", "written"),
}


def docstrings(path: Path) -> Iterator[tuple[int, str]]:
    kinds = ast.Module, ast.ClassDef, ast.FunctionDef, ast.AsyncFunctionDef
    for node in ast.walk(parsed(path)):
        if isinstance(node, kinds) and (text := ast.get_docstring(node)):
            yield getattr(node, "lineno", 1), text


def test_a_docstring_can_be_read_alone() -> None:
    """It begins with a verb or a noun phrase, not with a pronoun that stands for something above it."""
    odd = [
        f"{relative(path)}:{line} {text[:40]}"
        for path in MODULES
        for line, text in docstrings(path)
        if (word := re.match(r"\W*(\w*)", text)) and word[1].lower() in ODD_BEGINNINGS
    ]
    assert odd == []


# The verbs with which the help of commands starts; a new command adds its verb.
HELP_VERBS = {
    *(
        "check",
        "copy",
        "delete",
        "export",
        "follow",
        "import",
        "join",
        "keep",
        "leave",
        "list",
        "open",
        "print",
        "read",
        "record",
        "run",
        "search",
        "send",
        "serve",
    ),
    *("set", "show", "start", "store", "withdraw", "write"),
}


def first_word(text: str) -> str:
    return re.split(r"[\s:,;.]", text, maxsplit=1)[0].lower()


@pytest.mark.parametrize("name", COMMANDS)
def test_the_help_of_a_command_starts_with_a_verb(name: str) -> None:
    """Both its line in the list of commands and the first line of its own help."""
    command = shell.get_command(click.Context(shell), name)
    assert command is not None and command.help is not None
    assert {first_word(COMMANDS[name]), first_word(command.help)} <= HELP_VERBS


# Words with which a help does not start: they need the sentence before, or the name of the option.
HELP_FRAGMENTS = re.compile(
    r"(?:it|its|they|those|these|that|this|one|all|of|in|as|by|for|with|without|from|on|up|until|before|after|to|not"
    r"|how many|only (?:those|say))\b",
    re.IGNORECASE,
)


@pytest.mark.parametrize("name", COMMANDS)
def test_the_help_of_an_option_can_be_read_alone(name: str) -> None:
    command = shell.get_command(click.Context(shell), name)
    assert command is not None
    options = [parameter for parameter in command.params if isinstance(parameter, click.Option)]
    assert [(option.name, option.help) for option in options if not option.help] == []
    assert [option.help for option in options if HELP_FRAGMENTS.match(option.help or "")] == []


def test_the_three_renderers_are_in_views() -> None:
    assert (SOURCE / "views/markdown.py").is_file()
    for drawer in ("terminal", "html"):
        assert (SOURCE / "views" / drawer / "session.py").is_file()


APIS = {"anthropic", "bedrock", "embeddings", "gemini", "ollama", "openai_chat", "openai_responses"}
# Our own transcripts have the form of Claude Code's: their types are a door, and are used where ours are read.
OWN_TRANSCRIPTS = {"", "logs", "transcripts"}


def imported_modules(path: Path) -> Iterator[str]:
    for node in ast.walk(parsed(path)):
        if isinstance(node, ast.Import):
            yield from (alias.name for alias in node.names)
        elif isinstance(node, ast.ImportFrom) and node.module:
            yield node.module
            yield from (f"{node.module}.{alias.name}" for alias in node.names)


def test_modules_do_not_import_each_other() -> None:
    """Imports in functions count, those for types alone do not: they are never carried out."""
    names = {module_name(path): path for path in MODULES}
    imports = {name: {*names} & {*imports_when_run(path)} - {"agent_logger"} for name, path in names.items()}
    assert list(TopologicalSorter(imports).static_order())


def module_name(path: Path) -> str:
    return ".".join(path.relative_to(SOURCE.parent).with_suffix("").parts).removesuffix(".__init__")


def imports_when_run(path: Path) -> Iterator[str]:
    for_types = (
        child
        for node in ast.walk(parsed(path))
        if isinstance(node, ast.If) and ast.unparse(node.test) == "TYPE_CHECKING"
        for child in ast.walk(node)
    )
    skipped = {id(node) for node in for_types}
    for node in ast.walk(parsed(path)):
        if isinstance(node, ast.ImportFrom) and node.module and id(node) not in skipped:
            modules = [f"{node.module}.{alias.name}" for alias in node.names]
            yield from (name if is_module(name) else node.module for name in modules)


def is_module(name: str) -> bool:
    path = SOURCE.parent.joinpath(*name.split("."))
    return path.is_dir() or path.with_suffix(".py").is_file()


def test_agent_lines_and_api_responses_are_parsed_in_one_module_each() -> None:
    misplaced = [f"{relative(path)}: {name}" for path in MODULES for name in misplaced_imports(path)]
    assert misplaced == []


def misplaced_imports(path: Path) -> Iterator[str]:
    *rooms, _ = path.relative_to(SOURCE).parts
    room, inner = (*rooms, "", "")[:2]
    for name in imported_modules(path):
        match name.removeprefix("agent_logger.").split("."):
            case ["providers", api, *_] if api in APIS and room != "providers":
                yield name
            case ["agents", agent, *_, "lines" | "output" | "records" | "wire"] if inner != agent:
                if agent != "claude_code" or room not in OWN_TRANSCRIPTS:
                    yield name


# Words that hide the subject of a sentence, and one that engineers do not use.
OLD_BEGINNINGS = {"what", "who", "whoever", "whatever", "nobody"}
OLD_WORDS = {"anew", "told"}


def test_a_test_name_states_a_fact_in_plain_words() -> None:
    names = [
        node.name
        for path in sorted(Path(__file__).parent.rglob("test_*.py"))
        for node in ast.walk(parsed(path))
        if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef) and node.name.startswith("test_")
    ]
    words = {name: name.split("_")[1:] for name in names}
    assert [name for name in names if words[name][0] in OLD_BEGINNINGS or OLD_WORDS & {*words[name]}] == []
