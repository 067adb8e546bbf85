"""Every command, setting and record type has its place in docs/, and what is shown there is true."""

import ast
import re
import subprocess
import sys
from pathlib import Path

import msgspec
import pytest

import agent_logger
from agent_logger.agents.claude_code.transcript import records as claude_records
from agent_logger.agents.registry import readable_agent
from agent_logger.cli import COMMANDS
from agent_logger.config import SETTINGS
from agent_logger.model import records
from agent_logger.model.records import Kind, Record
from tests.commands import run_command
from tests.test_doors import public_names
from tests.test_imports import MAY_IMPORT

DOCS = Path(__file__).parents[1] / "docs"
ROOT = DOCS.parent
SOURCE = ROOT / "src/agent_logger"
ARCHITECTURE = (DOCS / "ARCHITECTURE.md").read_text()
FORMATS = (DOCS / "FORMATS.md").read_text()
TYPES = [(kind, it) for kind, types in records.KINDS.items() for it in types]
PAGES = sorted([*ROOT.glob("*.md"), *DOCS.rglob("*.md"), *(ROOT / "tests").glob("*/README.md")])


@pytest.mark.parametrize(("kind", "record"), TYPES, ids=lambda it: getattr(it, "__name__", it))
def test_every_field_of_every_record_type_is_documented(kind: Kind, record: type[Record]) -> None:
    assert f"**`{records.tag(record)}`**" in FORMATS
    for field in msgspec.structs.fields(record):
        shown = f"**`{field.name}`**" if field.required else f"`{field.name}`"
        assert shown in FORMATS, f"{field.name} of {records.tag(record)}"


@pytest.mark.parametrize("record", claude_records.RECORDS.values(), ids=lambda it: it.__name__)
def test_every_record_of_claude_code_is_in_the_table(record: type[msgspec.Struct]) -> None:
    (row,) = re.findall(rf"^\| .*`{record.__name__}` \|.*$", FORMATS, re.MULTILINE)
    every = {it.encode_name for it in msgspec.structs.fields(claude_records.SessionRecord)}
    for name in {it.encode_name for it in msgspec.structs.fields(record)} - every:
        assert f"`{name}`" in row


APPENDIX_A = {
    "UserRecord": ["type", "timestamp", "sessionId", "uuid", "parentUuid", "message"],
    "AssistantRecord": ["message", "gitBranch", "isSidechain", "requestId", "userType", "version"],
    "ToolUseRecord": ["name", "input", "tool_use_id"],
    "ToolResultRecord": ["content", "tool_use_id", "is_error"],
    "SummaryRecord": ["summary"],
    "SystemRecord": ["message"],
    "ResultRecord": ["type", "result", "session_id", "duration_ms", "num_turns", "total_cost_usd"],
    "TokenUsage": ["contextTokens", "outputTokens"],
}


@pytest.mark.parametrize("name", APPENDIX_A)
def test_the_records_of_the_specification_are_public_with_their_fields(name: str) -> None:
    record = getattr(agent_logger, name)
    fields = {it.encode_name for it in msgspec.structs.fields(record)}
    assert set(APPENDIX_A[name]) <= fields
    assert name in public_names("agent_logger")


def test_every_example_of_a_record_can_be_read() -> None:
    lines = [line for block in re.findall(r"```json\n(.*?)```", FORMATS, re.DOTALL) for line in block.splitlines()]
    kind: Kind | None = None
    seen = set()
    for line in lines:
        kind = records.kind_of(line.encode()) or kind
        assert kind is not None
        found = records.decode(line.encode(), kind)
        assert isinstance(found, Record), line
        seen.add(type(found))
    assert seen == {record for _, record in TYPES}


@pytest.mark.parametrize("command", COMMANDS)
def test_every_command_has_a_page_that_shows_its_help(command: str) -> None:
    clean = {"COLUMNS": "80", "PATH": "/usr/bin:/bin"}
    shown = run_command([command, "--help"], clean).stdout
    assert shown.strip() in (DOCS / "commands" / f"{command}.md").read_text()
    assert all(len(line) <= 80 for line in shown.splitlines())
    assert "agent-logger " in shown.partition("Options:")[0].partition("\n")[2], "an example"


@pytest.mark.parametrize("setting", SETTINGS)
def test_every_setting_is_documented(setting: str) -> None:
    assert f"### `{setting}`" in (DOCS / "config.md").read_text()


@pytest.mark.parametrize("folder", sorted((ROOT / "tests/data").glob("*/*/")), ids=lambda it: it.as_posix()[-30:])
def test_every_recorded_version_of_an_agent_is_listed(folder: Path) -> None:
    agent = {"claude-cli": "claude-code"}.get(folder.parent.name, folder.parent.name)
    if readable_agent(agent):
        page = (DOCS / "COMPATIBILITY.md").read_text()
        assert f"| {agent} | {folder.name} |" in page
        assert f"## {agent}\n\n- " in page


def test_generated_documents_are_up_to_date() -> None:
    command = [sys.executable, str(DOCS / "generate.py"), "--check"]
    checked = subprocess.run(command, capture_output=True, text=True, check=False)
    assert (checked.returncode, checked.stderr) == (0, ""), "run ./dev docs"


@pytest.mark.parametrize("page", PAGES, ids=lambda it: it.relative_to(ROOT).as_posix())
def test_every_relative_link_has_a_target(page: Path) -> None:
    for target in re.findall(r"\]\(([^)#]+)[^)]*\)", page.read_text()):
        if "://" not in target:
            assert (page.parent / target).exists(), target


REGISTRY_HOST = re.compile(r"\b(?:pypi|pythonhosted|npmjs|yarnpkg|crates)\.(?:org|com|io)\b")


@pytest.mark.parametrize(
    "page", [*PAGES, ROOT / "pyproject.toml", ROOT / "dev"], ids=lambda it: it.relative_to(ROOT).as_posix()
)
def test_a_package_is_named_without_the_address_of_a_registry(page: Path) -> None:
    assert REGISTRY_HOST.findall(page.read_text()) == []


# ---------------------------------------------------------------- docs/ARCHITECTURE.md

ANYTHING = {room for room, allowed in MAY_IMPORT.items() if allowed is None}  # but cli
PLACEHOLDER = re.compile(r"<[a-z]+>")  # `agents/<agent>/` stands for every folder there


def rooms_on_the_map() -> list[str]:
    """The folders and modules in the first column of the table of rooms, in its order."""
    section = ARCHITECTURE.partition("\n## Rooms\n")[2].partition("\n## ")[0]
    first_columns = re.findall(r"^\| ([^|]+) \|", section, re.MULTILINE)
    return [name for column in first_columns for name in re.findall(r"`([^`]+)`", column)]


def test_every_folder_with_modules_is_on_the_architecture_map() -> None:
    """Modules beside the folders are rooms too."""
    patterns = [re.compile(PLACEHOLDER.sub("[^/]+", re.escape(room))) for room in rooms_on_the_map()]
    modules = [path.relative_to(SOURCE) for path in SOURCE.rglob("*.py")]
    folders = {f"{module.parent.as_posix()}/" for module in modules if len(module.parts) > 1}
    single = {module.name for module in modules if len(module.parts) == 1 and module.name[:2] != "__"}
    rooms = folders | single
    assert {room for room in rooms if not any(pattern.fullmatch(room) for pattern in patterns)} == set()


def test_every_path_in_the_architecture_document_exists() -> None:
    """Paths are those of the repository or of the package."""
    spans = re.findall(r"`([a-z_][\w./<>-]*)`", ARCHITECTURE)
    paths = {name for name in spans if "/" in name or name.endswith((".py", ".md", ".html"))}
    assert set(rooms_on_the_map()) <= paths
    globs = {name: PLACEHOLDER.sub("*", name).rstrip("/") for name in paths}
    assert {name for name, glob in globs.items() if not any(any(root.glob(glob)) for root in (ROOT, SOURCE))} == set()


STEP = re.compile(r"^\| [^|]*\| (`[^|]+\.py`) \| ([^|]+) \|$", re.MULTILINE)


def paths_through_the_code() -> list[tuple[str, str]]:
    """The files of each step, and the functions that are named beside them."""
    section = ARCHITECTURE.partition("\n## Four paths through the code\n")[2].partition("\n## ")[0]
    return STEP.findall(section)


def defined_names(path: Path) -> set[str]:
    """The names that a module defines: functions, classes, constants, and methods as `Class.method`."""
    names = set()
    for node in ast.parse(path.read_text()).body:
        if isinstance(node, ast.ClassDef):
            names |= {f"{node.name}.{method.name}" for method in node.body if isinstance(method, ast.FunctionDef)}
        elif isinstance(node, ast.FunctionDef):
            names.add(node.name)
        elif isinstance(node, ast.Assign):
            names |= {target.id for target in node.targets if isinstance(target, ast.Name)}
    return names


def test_the_steps_of_the_architecture_document_name_functions_of_their_files() -> None:
    """A name behind "call" is the function that is called, which is in another file."""
    assert len(paths_through_the_code()) > 25
    for files, functions in paths_through_the_code():
        names = set(re.findall(r"`([\w.]+)`", functions.partition(" call")[0].partition(" returns")[0]))
        defined = {name for file in re.findall(r"`([^`]+)`", files) for name in defined_names(SOURCE / file)}
        assert names, files
        assert names <= defined, files


def test_packages_may_import_only_packages_above_them_on_the_map() -> None:
    rooms = [name.rstrip("/").removesuffix(".py") for name in rooms_on_the_map()]
    assert set(MAY_IMPORT) <= set(rooms)
    place_of = {room: place for place, room in enumerate(rooms)}
    below = {
        (room, other)
        for room, allowed in MAY_IMPORT.items()
        for other in (allowed if allowed is not None else set(MAY_IMPORT) - ANYTHING)
        if place_of[other] >= place_of[room]
    }
    assert below == set()


def test_every_module_has_a_docstring() -> None:
    modules = [path for path in SOURCE.rglob("*.py") if path.stat().st_size]
    silent = [path for path in modules if not ast.get_docstring(ast.parse(path.read_text()))]
    assert [path.relative_to(SOURCE).as_posix() for path in silent] == []


def test_the_readme_matches_the_output_of_the_demo(tmp_path: Path) -> None:
    command = [sys.executable, "-m", "agent_logger", "demo", "--once"]
    clean = {"COLUMNS": "80", "PATH": "/usr/bin:/bin", "HOME": str(tmp_path), "TMPDIR": str(tmp_path)}
    shown = subprocess.run(command, check=True, capture_output=True, text=True, env=clean).stdout
    readme = _untimed((ROOT / "README.md").read_text())
    for line in _untimed(shown).splitlines():
        own = r" *session |log:|.* bytes,| +\d+  (?:main|agent:\w+) "  # of this run
        if not re.match(own, line):
            assert line in readme, line


def _untimed(text: str) -> str:
    """What took time says so only if it was much, so a busy machine says more."""
    text = re.sub(r"  [\d.]+ s$", "", text, flags=re.MULTILINE)
    text = re.sub(r"(?:\d{4}-)?\d\d-\d\d \d\d:\d\d|[\d.]+ m?s\b", "(time)", text)
    return re.sub(r", \(time\) active ·\s+", " · ", text)
