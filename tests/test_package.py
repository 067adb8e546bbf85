"""What a user installs: the wheel, and nothing that is not in it."""

import re
import subprocess
import sys
import tomllib
import venv
import zipfile
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[1]

# Few, and each of them well kept.
RUNTIME = {
    "ahocorasick_rs",
    "backports.zstd",
    "brotli",
    "click",
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


def test_the_wheel_holds_the_package_and_nothing_else(wheel: Path) -> None:
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


def test_the_wheel_depends_on_few_packages(wheel: Path) -> None:
    metadata = zipfile.ZipFile(wheel).read("agent_logger-0.1.0.dist-info/METADATA").decode()
    required = [
        line for line in re.findall(r"^Requires-Dist: (.+)", metadata, re.MULTILINE) if "extra ==" not in line
    ]
    names = {re.match(r"[\w.-]+", line)[0].replace("-", "_") for line in required}  # type: ignore[index]
    assert names == {name.replace(".", "_") for name in RUNTIME}


def test_every_dependency_is_used_by_the_package() -> None:
    source = "\n".join(path.read_text() for path in (ROOT / "src").rglob("*.py"))
    for name in RUNTIME:
        top, _, rest = IMPORTED.get(name, name).partition(".")
        assert re.search(rf"(import {top}|from {top}[. ].*{rest})", source), name


def test_the_wheel_works_in_a_clean_environment(wheel: Path, tmp_path: Path) -> None:
    venv.create(tmp_path / "venv")  # without pip: ours installs there
    python = tmp_path / "venv" / "bin" / "python"
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
    modules = [
        ".".join(path.relative_to(ROOT / "src").with_suffix("").parts)
        for path in (ROOT / "src/agent_logger").rglob("*.py")
        if path.name != "__main__.py"
    ]
    script = "import importlib\n" + "".join(f"importlib.import_module({it!r})\n" for it in sorted(modules))
    clean = {"HOME": str(tmp_path), "TMPDIR": str(tmp_path), "PATH": "/usr/bin:/bin"}
    subprocess.run([str(python), "-I", "-c", script], check=True, env=clean, cwd=tmp_path)
    command = [str(tmp_path / "venv" / "bin" / "agent-logger"), "demo", "--once"]
    shown = subprocess.run(command, check=True, env=clean, cwd=tmp_path, capture_output=True, text=True)
    assert "all can be read" in shown.stdout


def test_the_constraints_name_no_address() -> None:
    lines = (ROOT / "constraints.txt").read_text().splitlines()
    assert all(re.fullmatch(r"[A-Za-z0-9._-]+==[A-Za-z0-9.+!]+", line) for line in lines)


def test_the_version_is_said_once_per_place() -> None:
    import agent_logger

    project = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]
    assert project["version"] == agent_logger.__version__
