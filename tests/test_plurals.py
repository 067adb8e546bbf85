"""A number and its noun agree: `1 turn`, `2 turns`. Checked in what is written, and in what is printed and shown."""

import ast
import html
import re
from collections.abc import Iterator
from functools import cache
from pathlib import Path

import pytest

from agent_logger.home.facts import register_log_folder
from agent_logger.model.plurals import noun, pluralize
from tests.catalog.catalogs import ID, assistant, claude_file, tool, user
from tests.commands import run_command
from tests.web.page_process import Page, showing

SOURCE = Path(__file__).parents[1] / "src" / "agent_logger"


@pytest.mark.parametrize(
    ("number", "nouns", "text"),
    [
        (0, ["turn"], "0 turns"),
        (1, ["turn"], "1 turn"),
        (1204, ["tool call"], "1,204 tool calls"),
        (1, ["proxy", "proxies"], "1 proxy"),
        (2, ["proxy", "proxies"], "2 proxies"),
    ],
)
def test_a_noun_agrees_with_its_number(number: int, nouns: list[str], text: str) -> None:
    assert pluralize(number, *nouns) == text
    assert text.endswith(noun(number, *nouns))


# ---------------------------------------------------------------- what is written

# Rooms below `model`, which has the function. Their errors name limits, which are never one.
BELOW = ("files", "protocols")
TEMPLATES = sorted(SOURCE.rglob("*.html"))
MODULES = [path for path in sorted(SOURCE.rglob("*.py")) if path.relative_to(SOURCE).parts[0] not in BELOW]
FILTER = re.compile(r"\| (?:pluralize|noun)\(\"([\w ]+)\"(?:, \"([\w ]+)\")?\)")


@cache
def nouns_in_use() -> str:
    """The plurals of all nouns that are counted anywhere, for a regular expression."""
    plurals = {plural or f"{one}s" for path in TEMPLATES for one, plural in FILTER.findall(path.read_text())}
    for text in (path.read_text() for path in MODULES):
        for node in ast.walk(ast.parse(text)) if "pluralize(" in text else ():
            if isinstance(node, ast.Call) and isinstance(node.func, ast.Name) and node.func.id == "pluralize":
                words = [word.value for word in node.args[1:] if isinstance(word, ast.Constant)]
                plurals |= {f"{word}s" for word in words[:1] if isinstance(word, str)}
    return "|".join(sorted({plural.rpartition(" ")[2] for plural in plurals}))


def fixed_plurals(path: Path) -> Iterator[str]:
    """The places of f-strings with a number before a noun that is always plural."""
    fixed_plural = re.compile(rf"\A\+? (?:\w+ )?(?:{nouns_in_use()})\b")
    for node in ast.walk(ast.parse(path.read_text())):
        if isinstance(node, ast.JoinedStr):
            for value, text in zip(node.values, node.values[1:], strict=False):
                is_counted = isinstance(value, ast.FormattedValue) and is_number(value)
                if is_counted and isinstance(text, ast.Constant) and fixed_plural.match(str(text.value)):
                    yield f"{path.relative_to(SOURCE)}:{node.lineno} {ast.unparse(node)}"


def is_number(value: ast.FormattedValue) -> bool:
    """Whether it can be a count; constants in capitals are known not to be one."""
    expression = ast.unparse(value.value)
    is_text = isinstance(value.value, ast.Call) and not expression.startswith("len(")
    return not is_text and not expression.isupper() and value.conversion == -1


@pytest.mark.parametrize("path", MODULES, ids=lambda path: path.relative_to(SOURCE).as_posix())
def test_no_text_has_a_number_before_a_fixed_plural(path: Path) -> None:
    assert list(fixed_plurals(path)) == []


@pytest.mark.parametrize("path", TEMPLATES, ids=lambda path: path.name)
def test_no_template_has_a_number_before_a_fixed_plural(path: Path) -> None:
    assert re.findall(rf"\}}\}}\+?(?:</\w+>)? ?(?:<\w+>)?(?:\w+ )?(?:{nouns_in_use()})\b", path.read_text()) == []


# ---------------------------------------------------------------- what is printed and shown

WORDS_OF_ONE = {"ms", "status", "was", "is", "has", "as", "this", "its", "class", "across", "less", "minutes"}
ONE_OF_MANY = re.compile(r"(?<![\w.,:#/-])1\+? (?:(?:more|other|tool|side|damaged|torn|log|model) )?([a-z]+s)\b")
SESSION, FORK = ID.format(1), ID.format(2)
PROMPT = "Look at one thing"


def wrong_plurals(text: str) -> list[str]:
    return [match[0] for match in ONE_OF_MANY.finditer(text) if match[1] not in WORDS_OF_ONE]


@pytest.fixture(scope="module")
def home(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A session of one exchange, one turn, one tool call and one damaged line, and one fork of it."""
    home = tmp_path_factory.mktemp("home")
    lines = [
        user(1, PROMPT, SESSION),
        *tool(2, SESSION, "Read", {"file_path": "/p/shop/a.py", "limit": 1}, "1→x"),
    ]
    claude_file(home, SESSION, lines)
    claude_file(home, FORK, [*lines, user(5, "Again", FORK), assistant(6, "Done", FORK, model="nobody-1")])
    file = next(home.rglob(f"{SESSION}.jsonl"))
    file.write_text(file.read_text() + '{"broken\n')
    register_log_folder(home / ".agent-logger", home / "logs")
    return home


COMMANDS = (
    "ls",
    "ls --limit 1",
    f"show {SESSION}",
    f"show {SESSION} --turn 0",
    f"show {SESSION} --turn 1",
    f"show {SESSION} --tools",
    f"show {FORK}",
    f"tree {SESSION}",
    "usage",
    "usage tool",
    f"usage --explain {SESSION}",
    "search thing",
    "doctor",
    "du",
    "status",
    "verify .claude",
    f"export {SESSION} --to md",
    f"export {SESSION} --to html",
    "archive",
    f"rm {SESSION} --dry-run",
    "prune --older-than 1d --dry-run",
)


@pytest.mark.parametrize("line", COMMANDS)
def test_a_command_counts_one_in_the_singular(home: Path, line: str) -> None:
    environment = {"HOME": str(home), "PATH": "/usr/bin:/bin", "TZ": "UTC"}
    done = run_command(line.split(), environment, folder=home)
    assert done.stdout + done.stderr
    assert wrong_plurals(done.stdout + done.stderr) == []


VIEWS = (
    "/",
    "/sessions",
    "/live",
    "/health",
    "/why",
    "/search?q=thing",
    *(f"/sessions/{SESSION}{tab}" for tab in ("", "/timeline", "/wire", "/tree", "/why", "/find?q=one")),
    f"/sessions/{FORK}",
    f"/sessions/{FORK}/tree",
    f"/sessions/{SESSION}/beside/{FORK}",
)


@pytest.fixture(scope="module")
def page(home: Path) -> Iterator[Page]:
    with showing(home) as page:
        page.settle()
        yield page


@pytest.mark.parametrize("path", VIEWS)
def test_a_page_counts_one_in_the_singular(page: Page, path: str) -> None:
    answer = page.ask(path, cookie=page.let_in)
    assert answer.status == 200, answer.text
    visible = re.sub(r"<[^>]*>", "", answer.text)
    titles = "\n".join(re.findall(r'(?:title|aria-label)="([^"]*)"', answer.text))
    assert wrong_plurals(" ".join(html.unescape(f"{visible}\n{titles}").split())) == []
