"""Exports from the page: the bytes of `agent-logger export`, as attachments, without keys."""

import asyncio
import json
import os
from collections.abc import Iterator
from pathlib import Path

import pytest
from starlette.testclient import TestClient

from agent_logger.exports import formats
from agent_logger.exports.base import ExportContext, ExportedSession, ExportPiece, Format
from agent_logger.home.homes import Homes
from agent_logger.web.app import page_app
from agent_logger.web.catalog_pool import CatalogPool
from agent_logger.web.pages import export
from agent_logger.web.tokens import PageTokens
from tests.commands import run_command
from tests.web import homes
from tests.web.page_process import Page, showing

FORMATS = [
    *(("md", "md"), ("html", "html"), ("json", "json"), ("wire", "jsonl")),
    *(("messages", "messages.jsonl"), ("atif", "atif.json")),
]


@pytest.fixture(scope="module")
def home(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return tmp_path_factory.mktemp("home")


@pytest.fixture(scope="module")
def demo(home: Path) -> str:
    return homes.demo(home)


@pytest.fixture(scope="module")
def page(home: Path, demo: str) -> Iterator[Page]:
    with showing(home) as page:
        yield page


@pytest.mark.parametrize(("form", "suffix"), FORMATS)
def test_an_export_is_what_the_command_writes(page: Page, home: Path, demo: str, form: str, suffix: str) -> None:
    answer = page.ask(f"/sessions/{demo}/export/{form}", cookie=page.let_in)
    assert answer.status == 200
    assert answer.headers["content-disposition"] == f'attachment; filename="session-{demo}.{suffix}"'
    assert "default-src 'none'" in answer.headers["content-security-policy"]
    environment = {"PATH": os.environ["PATH"], "HOME": str(home), "TZ": "UTC"}
    (log,) = (home / "demo" / "logs" / "anthropic").glob("*.jsonl")
    name = log.stem if form == "wire" else demo
    done = run_command(["export", name, "--to", form], environment, folder=home)
    assert done.returncode == 0, done.stderr
    if form == "json":  # sets have no order
        assert sorted(json.loads(answer.body)) == sorted(json.loads(done.stdout))
        assert sorted(answer.body) == sorted(done.stdout.encode())
    else:
        assert answer.body.decode() == done.stdout


def test_unknown_formats_and_sessions_are_not_found(page: Page, demo: str) -> None:
    assert page.ask(f"/sessions/{demo}/export/pdf", cookie=page.let_in).status == 404
    assert page.ask("/sessions/none/export/md", cookie=page.let_in).status == 404


def test_an_export_needs_the_cookie(page: Page, demo: str) -> None:
    assert page.ask(f"/sessions/{demo}/export/md").status == 401


@pytest.mark.parametrize("form", ["md", "html", "json", "messages", "atif", "wire"])
def test_a_masked_export_is_what_the_command_writes(page: Page, home: Path, demo: str, form: str) -> None:
    answer = page.ask(f"/sessions/{demo}/export/{form}?mask=paths,names,emails", cookie=page.let_in)
    assert answer.status == 200
    environment = {"PATH": os.environ["PATH"], "HOME": str(home), "TZ": "UTC"}
    done = run_command(["export", demo, "--to", form, "--mask", "paths,names,emails"], environment, folder=home)
    assert str(home).encode() not in answer.body
    if form not in ("json", "wire"):  # sets have no order; the command searches for the log by its name
        assert answer.body.decode() == done.stdout


def test_an_unknown_mask_is_a_bad_request(page: Page, demo: str) -> None:
    assert page.ask(f"/sessions/{demo}/export/md?mask=hats", cookie=page.let_in).status == 400


def test_no_part_of_an_export_is_made_in_the_event_loop(home: Path, demo: str, monkeypatch: pytest.MonkeyPatch) -> None:
    made_in_loop: list[bool] = []

    def pieces_of(form: Format, session: ExportedSession, context: ExportContext) -> Iterator[ExportPiece]:
        for piece in formats.pieces_of(form, session, context):
            made_in_loop.append(asyncio._get_running_loop() is not None)
            yield piece

    monkeypatch.setattr(export, "pieces_of", pieces_of)
    pool, tokens = CatalogPool(Homes(home / ".agent-logger")), PageTokens(b"k" * 32, 8081, "run")
    try:
        with TestClient(page_app(pool, tokens, 8081), base_url="http://127.0.0.1:8081") as client:
            client.get(tokens.link())
            assert client.get(f"/sessions/{demo}/export/md").status_code == 200
    finally:
        pool.close()
    assert made_in_loop and not any(made_in_loop)
