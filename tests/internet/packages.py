"""Files that a site serves to git, pip, npm and cargo, and what these are asked to get from it."""

import base64
import hashlib
import io
import json
import os
import subprocess
import tarfile
import zipfile
from collections.abc import Mapping
from pathlib import Path

NAME, VERSION = "thing", "1.0.0"
GIT_HOST, PIP_HOST, NPM_HOST, CARGO_HOST = (f"{tool}.example.test" for tool in ("git", "pip", "npm", "cargo"))
QUIET_GIT = {"GIT_CONFIG_GLOBAL": "/dev/null", "GIT_CONFIG_SYSTEM": "/dev/null", "GIT_TERMINAL_PROMPT": "0"}


def publish_git(folder: Path) -> None:
    """Put a repository with one commit there."""
    work = folder.with_name(f"{folder.name}-work")
    for path in (work, folder):
        path.mkdir(parents=True)
    (work / "thing.txt").write_text("a thing\n")
    identity = {
        f"GIT_{role}_{key}": "test@example.test" for role in ("AUTHOR", "COMMITTER") for key in ("NAME", "EMAIL")
    }

    def git(*arguments: str) -> None:
        environment = {"PATH": os.environ["PATH"], **QUIET_GIT, **identity}
        subprocess.run(["git", *arguments], cwd=work, env=environment, check=True, capture_output=True)

    git("init", "-q")
    git("add", ".")
    git("commit", "-q", "-m", "One")
    git("clone", "-q", "--bare", ".", str(folder / "thing.git"))
    git("--git-dir", str(folder / "thing.git"), "update-server-info")


def publish_pip(folder: Path) -> None:
    """Put an index with one wheel there."""
    name, info = f"{NAME}-{VERSION}-py3-none-any.whl", f"{NAME}-{VERSION}.dist-info"
    files = {
        f"{NAME}.py": "answer = 42\n",
        f"{info}/METADATA": f"Metadata-Version: 2.1\nName: {NAME}\nVersion: {VERSION}\n",
        f"{info}/WHEEL": "Wheel-Version: 1.0\nGenerator: test\nRoot-Is-Purelib: true\nTag: py3-none-any\n",
    }
    files[f"{info}/RECORD"] = "".join(f"{path},,\n" for path in (*files, f"{info}/RECORD"))
    place = folder / "simple" / NAME
    place.mkdir(parents=True)
    with zipfile.ZipFile(place / name, "w") as wheel:
        for path, text in files.items():
            wheel.writestr(path, text)
    (place / "index.html").write_text(f'<!doctype html><a href="{name}">{name}</a>')


def publish_npm(folder: Path) -> None:
    """Put a registry with one package there."""
    package = {"name": NAME, "version": VERSION, "main": "index.js"}
    archive = _tar({"package/package.json": json.dumps(package), "package/index.js": "module.exports = 42\n"})
    folder.mkdir(parents=True)
    (folder / f"{NAME}.tgz").write_bytes(archive)
    digest = base64.b64encode(hashlib.sha512(archive).digest()).decode()
    dist = {"tarball": f"https://{NPM_HOST}/{NAME}.tgz", "integrity": f"sha512-{digest}"}
    document = {"name": NAME, "dist-tags": {"latest": VERSION}, "versions": {VERSION: {**package, "dist": dist}}}
    (folder / NAME).write_text(json.dumps(document))


def publish_cargo(folder: Path) -> None:
    """Put a sparse index with one crate there."""
    manifest = f'[package]\nname = "{NAME}"\nversion = "{VERSION}"\nedition = "2021"\n'
    root = f"{NAME}-{VERSION}"
    crate = _tar({f"{root}/Cargo.toml": manifest, f"{root}/src/lib.rs": "pub fn answer() -> u8 { 42 }\n"})
    index, files = folder / "index", folder / "crates"
    (index / "th" / "in").mkdir(parents=True)
    files.mkdir()
    (files / f"{NAME}-{VERSION}.crate").write_bytes(crate)
    line = {
        "name": NAME,
        "vers": VERSION,
        "deps": [],
        "cksum": hashlib.sha256(crate).hexdigest(),
        "features": {},
        "yanked": False,
    }
    (index / "th" / "in" / NAME).write_text(json.dumps(line) + "\n")
    url = f"https://{CARGO_HOST}/crates/{{crate}}-{{version}}.crate"
    (index / "config.json").write_text(json.dumps({"dl": url}))


def _tar(files: Mapping[str, str]) -> bytes:
    buffer = io.BytesIO()
    with tarfile.open(fileobj=buffer, mode="w:gz") as archive:
        for path, text in files.items():
            entry = tarfile.TarInfo(path)
            entry.size = len(text)
            archive.addfile(entry, io.BytesIO(text.encode()))
    return buffer.getvalue()


PUBLISHED = {GIT_HOST: publish_git, PIP_HOST: publish_pip, NPM_HOST: publish_npm, CARGO_HOST: publish_cargo}
