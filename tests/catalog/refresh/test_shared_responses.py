"""What a session has in common with others is in its details as it is in the ledger, whichever file was found first."""

import shutil
from collections.abc import Callable, Sequence
from itertools import permutations
from pathlib import Path

import pytest

from agent_logger import Catalog
from agent_logger.catalog import details
from agent_logger.catalog.session_details import SessionDetails, details_of
from agent_logger.catalog.summary import SessionSummary
from tests.catalog.catalogs import ID, assistant, claude_file, made_anew, tool, user
from tests.catalog.postgres.answers import indexed

EARLY, LATE, FORK = map(ID.format, (1, 2, 3))


@pytest.fixture
def home(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.setenv("HOME", str(tmp_path))
    return tmp_path / ".agent-logger"


def copied_files(root: Path) -> list[Path]:
    """Write two sessions, and a third that has a copy of each, in two projects."""
    early = claude_file(root, EARLY, [*conversation(EARLY, 10), *conversation(EARLY, 20)], "-p-1")
    late = claude_file(root, LATE, conversation(LATE, 30), "-p-2")
    return [early, late, *(Path(shutil.copy(path, path.with_name(f"{FORK}.jsonl"))) for path in (early, late))]


def conversation(session: str, number: int) -> list[dict[str, object]]:
    lines = [user(number, f"part {number}", session), assistant(number + 1, "done", session)]
    return lines + tool(number + 2, session, "Bash", {"command": "make"}, "refused", failed=True)


def in_order(catalog: Catalog) -> list[SessionSummary]:
    return sorted(catalog.sessions(), key=lambda session: session.id)


def sessions_anew(home: Path) -> list[SessionSummary]:
    with made_anew(home, home.with_name("anew")) as catalog:
        catalog.refresh()
        return in_order(catalog)


@pytest.mark.parametrize("order", list(permutations(range(4))), ids=str)
def test_details_are_the_same_in_whichever_order_files_are_found(
    home: Path, tmp_path: Path, order: Sequence[int]
) -> None:
    files = copied_files(tmp_path)
    hidden = [path.rename(path.with_suffix(".hidden")) for path in files]
    with Catalog.open(home) as catalog:
        for number in order:
            hidden[number].rename(files[number])
            catalog.refresh()
            assert in_order(catalog) == sessions_anew(home)
        for path in files[:2]:
            path.unlink()
            catalog.refresh()
            assert in_order(catalog) == sessions_anew(home)


@pytest.mark.parametrize("opened", [Catalog.open, pytest.param(indexed, marks=pytest.mark.needs("postgresql"))])
@pytest.mark.parametrize("read", [Catalog.sessions, Catalog.index])
def test_details_that_a_change_overtakes_are_read_again(
    home: Path,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    request: pytest.FixtureRequest,
    opened: Callable[..., Catalog],
    read: Callable[[Catalog], object],
) -> None:
    database = () if opened == Catalog.open else (request.getfixturevalue("postgres_url"),)
    files = copied_files(tmp_path)
    hidden = [path.rename(path.with_suffix(".hidden")) for path in files[:2]]

    def overtaken(*given: object) -> SessionDetails:
        result = details_of(*given)  # type: ignore[arg-type]
        for path, found in zip(hidden, files, strict=False):
            if path.exists():
                path.rename(found)
        with opened(home, *database) as other:
            other.refresh()
        return result

    with opened(home, *database) as catalog:
        catalog.refresh()
        monkeypatch.setattr(details, "details_of", overtaken)
        read(catalog)
        monkeypatch.undo()
        monkeypatch.setenv("HOME", str(tmp_path))
        assert not any(path.exists() for path in hidden)
        assert in_order(catalog) == sessions_anew(home)
