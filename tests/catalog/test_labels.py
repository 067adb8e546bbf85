"""A session is found by what its owner calls it."""

from pathlib import Path

from agent_logger import Catalog
from agent_logger.home.marks import label_session
from tests.catalog.catalogs import ID, assistant, claude_file, user

ONE, TWO = ID.format(1), ID.format(2)


def test_a_label_resolves_to_the_session_labelled_last(home: Path) -> None:
    own = home / ".agent-logger"
    own.mkdir()
    for name in (ONE, TWO):
        claude_file(home, name, [user(1, "hello", name), assistant(2, "yes", name)])
    label_session(own, ONE, "nightly")
    with Catalog.open(own) as catalog:
        assert catalog.resolve("nightly") == [ONE]
        label_session(own, TWO, "nightly")
        assert catalog.resolve("nightly") == [TWO]
        session = catalog.session("nightly")
        assert session and session.id == TWO
        assert catalog.resolve("night") == []
