"""Every command, setting and record type has its place in docs/, and what is shown there is true."""

import re
import subprocess
import sys
from pathlib import Path

import msgspec
import pytest

import agent_logger
from agent_logger.agents.claude_code.transcript import records as claude_records
from agent_logger.agents.registry import reader_of
from agent_logger.cli import COMMANDS
from agent_logger.config import SETTINGS
from agent_logger.model import records
from agent_logger.model.records import Kind, Record
from tests.commands import run_command

DOCS = Path(__file__).parents[1] / "docs"
ROOT = DOCS.parent
FORMATS = (DOCS / "FORMATS.md").read_text()
TYPES = [(kind, it) for kind, types in records.KINDS.items() for it in types]
PAGES = sorted([*ROOT.glob("*.md"), *DOCS.rglob("*.md"), *(ROOT / "tests").glob("*/README.md")])


@pytest.mark.parametrize(("kind", "record"), TYPES, ids=lambda it: getattr(it, "__name__", it))
def test_every_record_type_is_explained_field_by_field(kind: Kind, record: type[Record]) -> None:
    assert f"**`{records.tag(record)}`**" in FORMATS
    for field in msgspec.structs.fields(record):
        shown = f"**`{field.name}`**" if field.required else f"`{field.name}`"
        assert shown in FORMATS, f"{field.name} of {records.tag(record)}"


@pytest.mark.parametrize("record", claude_records.RECORDS.values(), ids=lambda it: it.__name__)
def test_every_line_of_claude_codes_is_in_the_table(record: type[msgspec.Struct]) -> None:
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
def test_the_specifications_records_are_public_with_its_fields(name: str) -> None:
    record = getattr(agent_logger, name)
    fields = {it.encode_name for it in msgspec.structs.fields(record)}
    assert set(APPENDIX_A[name]) <= fields
    assert name in agent_logger.__all__


def test_every_example_of_a_record_can_be_read() -> None:
    lines = [
        line for block in re.findall(r"```json\n(.*?)```", FORMATS, re.DOTALL) for line in block.splitlines()
    ]
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
def test_every_setting_is_explained(setting: str) -> None:
    assert f"### `{setting}`" in (DOCS / "config.md").read_text()


@pytest.mark.parametrize(
    "folder", sorted((ROOT / "tests/data").glob("*/*/")), ids=lambda it: it.as_posix()[-30:]
)
def test_every_recorded_version_of_an_agent_is_listed(folder: Path) -> None:
    agent = {"claude-cli": "claude-code"}.get(folder.parent.name, folder.parent.name)
    if reader_of(agent):
        page = (DOCS / "COMPATIBILITY.md").read_text()
        assert f"| {agent} | {folder.name} |" in page
        assert f"## {agent}\n\n- " in page


def test_what_is_generated_is_not_stale() -> None:
    command = [sys.executable, str(DOCS / "generate.py"), "--check"]
    checked = subprocess.run(command, capture_output=True, text=True, check=False)
    assert (checked.returncode, checked.stderr) == (0, ""), "run ./dev docs"


@pytest.mark.parametrize("page", PAGES, ids=lambda it: it.relative_to(ROOT).as_posix())
def test_every_link_leads_somewhere(page: Path) -> None:
    for target in re.findall(r"\]\(([^)#]+)[^)]*\)", page.read_text()):
        if "://" not in target:
            assert (page.parent / target).exists(), target


def test_every_module_is_on_the_map() -> None:
    named = re.findall(r"`([\w/.]+)`", (DOCS / "ARCHITECTURE.md").read_text())
    known = {name.rstrip("/").removesuffix(".py").split("/")[-1] for name in named} | set(COMMANDS)
    modules = (ROOT / "src/agent_logger").rglob("*.py")
    assert {it.stem for it in modules if not it.stem.startswith("__")} <= known


def test_every_module_on_the_map_is_there() -> None:
    """As the first column of its tables names them."""
    rows = re.findall(r"^\| (`[^|]+) \|", (DOCS / "ARCHITECTURE.md").read_text(), re.MULTILINE)
    named = {name for row in rows for name in re.findall(r"`([a-z_/]+(?:\.py)?)`", row)}
    source = ROOT / "src/agent_logger"
    there = {it.stem for it in source.rglob("*.py")} | {it.name for it in source.rglob("*") if it.is_dir()}
    assert {it for it in named if it.rstrip("/").removesuffix(".py").split("/")[-1] not in there} == set()


def test_the_readme_shows_the_demo_as_it_is(tmp_path: Path) -> None:
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
    return re.sub(r"(?:\d{4}-)?\d\d-\d\d \d\d:\d\d|[\d.]+ m?s\b", "(time)", text)
