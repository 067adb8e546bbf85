"""What a user installs: the wheel, and nothing that is not in it."""

import ast
import json
import re
import subprocess
import sys
import tarfile
import tomllib
import venv
import zipfile
from pathlib import Path

import pytest

from agent_logger.cli import COMMANDS

ROOT = Path(__file__).parents[1]

# Few, and each of them well kept.
RUNTIME = {
    "ahocorasick_rs",
    "backports.zstd",
    "brotli",
    "click",
    "cryptography",
    "jinja2",
    "markdown_it_py",
    "markupsafe",
    "msgspec",
    "pygments",
    "rich",
    "starlette",
    "truststore",
    "uvicorn",
    "uvloop",
    "websockets",
}

IMPORTED = {"markdown_it_py": "markdown_it"}  # where the name is another one


@pytest.fixture(scope="module")
def wheel(tmp_path_factory: pytest.TempPathFactory) -> Path:
    out = tmp_path_factory.mktemp("wheel")
    command = [
        sys.executable,
        "-m",
        "pip",
        "wheel",
        "--quiet",
        "--no-deps",
        "--wheel-dir",
        str(out),
        str(ROOT),
    ]
    subprocess.run(command, check=True, capture_output=True)
    [path] = out.glob("*.whl")
    return path


def test_the_wheel_contains_only_the_package(wheel: Path) -> None:
    names = zipfile.ZipFile(wheel).namelist()
    assert [it for it in names if it.endswith(".pth")] == []
    assert {it.split("/")[0] for it in names} == {"agent_logger", "agent_logger-0.1.0.dist-info"}
    assert {"agent_logger/py.typed", "agent_logger/model/prices.json"} <= set(names)
    source = {
        f"agent_logger/{path.relative_to(ROOT / 'src/agent_logger').as_posix()}"
        for path in (ROOT / "src/agent_logger").rglob("*")
        if path.is_file() and "__pycache__" not in path.parts
    }
    assert {it for it in names if it.startswith("agent_logger/")} == source


@pytest.mark.skipif(not (ROOT / ".git").exists(), reason="not a checkout")
def test_the_sdist_holds_every_file_of_the_repository(tmp_path: Path) -> None:
    """So its tests run: `./dev bare` runs them."""
    build = [sys.executable, "-m", "hatchling", "build", "-t", "sdist", "-d", str(tmp_path)]
    subprocess.run(build, check=True, cwd=ROOT, capture_output=True)
    listed = ["git", "ls-files", "-z", "--cached", "--others", "--exclude-standard"]
    tracked = subprocess.run(listed, check=True, cwd=ROOT, capture_output=True, text=True).stdout.split("\0")
    [path] = tmp_path.glob("*.tar.gz")
    with tarfile.open(path) as sdist:
        names = {name.partition("/")[2] for name in sdist.getnames()}
    assert {name for name in tracked if name and (ROOT / name).exists()} <= names
    assert "dev" in names and "constraints.txt" in names


def test_the_wheel_depends_only_on_the_runtime_packages(wheel: Path) -> None:
    metadata = zipfile.ZipFile(wheel).read("agent_logger-0.1.0.dist-info/METADATA").decode()
    required = re.findall(r"^Requires-Dist: ((?!.*extra ==).+)", metadata, re.MULTILINE)
    names = {re.match(r"[\w.-]+", line)[0].replace("-", "_") for line in required}  # type: ignore[index]
    assert names == {name.replace(".", "_") for name in RUNTIME}


def test_the_only_extra_of_the_wheel_is_the_hub(wheel: Path) -> None:
    """The tools of developers are dependency groups, which no user sees."""
    metadata = zipfile.ZipFile(wheel).read("agent_logger-0.1.0.dist-info/METADATA").decode()
    assert re.findall("^Provides-Extra: (.+)", metadata, re.MULTILINE) == ["hub"]
    packages = re.findall(r"^Requires-Dist: ([\w-]+).*; extra == 'hub'", metadata, re.MULTILINE)
    assert packages == ["obstore", "psycopg"]


def test_the_wheel_names_the_pages_of_the_project(wheel: Path) -> None:
    metadata = zipfile.ZipFile(wheel).read("agent_logger-0.1.0.dist-info/METADATA").decode()
    urls = dict(re.findall(r"^Project-URL: (\w+), (\S+)$", metadata, re.MULTILINE))
    assert set(urls) == {"Homepage", "Documentation", "Changelog", "Issues", "Source"}
    for url in urls.values():
        assert url.startswith(urls["Homepage"])
        path = url.removeprefix(urls["Homepage"]).partition("/main/")[2]
        assert (ROOT / path).exists(), "a page of this repository"


def test_every_dependency_is_used_by_the_package() -> None:
    source = "\n".join(path.read_text() for path in (ROOT / "src").rglob("*.py"))
    for name in RUNTIME:
        top, _, rest = IMPORTED.get(name, name).partition(".")
        assert re.search(rf"(import {top}|from {top}[. ].*{rest})", source), name


@pytest.fixture(scope="module")
def programs(wheel: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The folder of the programs of a clean environment with the wheel."""
    folder = tmp_path_factory.mktemp("venv")
    venv.create(folder)  # without pip: ours installs there
    python = folder / "bin" / "python"
    constraints = ["--constraint", str(ROOT / "constraints.txt")]
    install = [
        sys.executable,
        "-m",
        "pip",
        f"--python={python}",
        "--disable-pip-version-check",
        "install",
        "--quiet",
        "--no-compile",
        *constraints,
        str(wheel),
    ]
    subprocess.run(install, check=True, capture_output=True)
    return folder / "bin"


def test_the_wheel_works_in_a_clean_environment(programs: Path, tmp_path: Path) -> None:
    modules = [
        ".".join(path.relative_to(ROOT / "src").with_suffix("").parts)
        for path in (ROOT / "src/agent_logger").rglob("*.py")
        if path.name not in ("__main__.py", "bucket.py")
        and path.parent.name != "postgres"  # the extra has what they need
    ]
    script = "import importlib\n" + "".join(f"importlib.import_module({it!r})\n" for it in sorted(modules))
    clean = {"HOME": str(tmp_path), "TMPDIR": str(tmp_path), "PATH": "/usr/bin:/bin"}
    subprocess.run([str(programs / "python"), "-I", "-c", script], check=True, env=clean, cwd=tmp_path)
    command = [str(programs / "agent-logger"), "demo", "--once"]
    shown = subprocess.run(command, check=True, env=clean, cwd=tmp_path, capture_output=True, text=True)
    assert "no damage" in shown.stdout


def test_an_installed_copy_names_no_file_that_it_does_not_have(programs: Path, tmp_path: Path) -> None:
    """Help, and what else is printed, points at commands: pages of docs/ are not in the wheel."""
    clean = {"HOME": str(tmp_path), "PATH": "/usr/bin:/bin", "COLUMNS": "200"}
    command = [str(programs / "agent-logger")]
    for arguments in ([], *([name] for name in COMMANDS)):
        done = subprocess.run(
            [*command, *arguments, "--help"],
            check=True,
            env=clean,
            cwd=tmp_path,
            capture_output=True,
            text=True,
        )
        assert DOCS_FILE.findall(done.stdout) == [], arguments
    source = ROOT / "src/agent_logger"
    for path in source.rglob("*.py"):
        assert [text for text in printed_strings(path) if DOCS_FILE.search(text)] == [], path
    for path in (*source.rglob("*.html"), *source.rglob("*.js")):
        assert DOCS_FILE.findall(path.read_text()) == [], path
    schema = [*command, "schema", "wire-log"]
    printed = subprocess.run(schema, check=True, env=clean, cwd=tmp_path, capture_output=True).stdout
    assert json.loads(printed)["title"] == "a record of the wire log"


DOCS_FILE = re.compile(r"\bdocs/\S+|\bREADME\b|\bschemas/\S+\.json")


def printed_strings(path: Path) -> list[str]:
    """The string literals of a module that are not docstrings."""
    tree = ast.parse(path.read_text())
    documented = [
        node.body[0]
        for node in ast.walk(tree)
        if isinstance(node, ast.Module | ast.ClassDef | ast.FunctionDef | ast.AsyncFunctionDef) and node.body
    ]
    docstrings = {id(node.value) for node in documented if isinstance(node, ast.Expr)}
    return [
        node.value
        for node in ast.walk(tree)
        if isinstance(node, ast.Constant) and isinstance(node.value, str) and id(node) not in docstrings
    ]


def test_the_constraints_contain_only_pinned_versions() -> None:
    lines = (ROOT / "constraints.txt").read_text().splitlines()
    assert all(re.fullmatch(r"[A-Za-z0-9._-]+==[A-Za-z0-9.+!]+", line) for line in lines)


def test_the_project_version_matches_the_package_version() -> None:
    import agent_logger

    project = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]
    assert project["version"] == agent_logger.__version__
