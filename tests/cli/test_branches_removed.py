"""A branch begins in the log of the session it was forked from: whatever is deleted, no other loses its history."""

import json
import os
import tempfile
import time
from pathlib import Path

from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from tests.commands import run_command
from tests.journal.wire_logs import calls, fork, own, start
from tests.journal.wire_logs import write as write_log
from tests.logs.wire_log.wire_records import ts

from agent_logger import Catalog
from agent_logger.errors import StoreError
from agent_logger.files.parts import PartFile
from agent_logger.home.facts import register_log_folder
from agent_logger.journal.seal import seal
from agent_logger.journal.sync import UPKEEP
from agent_logger.model.records import Identity, WireStart

ROOT = "20261115-080000-abcd"


class World:
    def __init__(self, root: Path) -> None:
        self.root, self.home = root, root / ".agent-logger"
        self.folder = root / "logs" / "anthropic"
        register_log_folder(self.home, root / "logs")

    def write(self, name: str, parent: str | None, client: str | None = None, *, sealed: bool = False) -> None:
        began = start(name)
        if client:
            identity = Identity(id=client, source="session_header", confidence="certain")
            began = WireStart(
                ts=ts(0), provider="anthropic", upstream="api.anthropic.com", session=name, identity=identity
            )
        forked = [fork(parent, 1)] if parent else []
        path = write_log(self.folder, name, [began, *forked, *calls(1, 2)])
        UPKEEP.finish()
        if sealed:
            assert seal(PartFile(self.folder, name))
        else:
            os.utime(path, (time.time() - 7200,) * 2)

    def run(self, *arguments: str, code: int = 0) -> str:
        environment = {"PATH": os.environ["PATH"], "HOME": str(self.root)}
        done = run_command([*arguments], environment, folder=self.root)
        assert done.returncode == code, done.stderr
        return done.stdout + done.stderr

    def shown(self) -> dict[str, int]:
        """How many exchanges each session shows."""
        with Catalog.open(self.home) as catalog:
            sessions = {it.id: catalog.session(it.id) for it in catalog.sessions()}
            return {name: len(it.exchanges) for name, it in sessions.items() if it}


def test_rm_of_a_parent_lists_and_deletes_its_branches(tmp_path: Path) -> None:
    world = World(tmp_path)
    world.write(ROOT, None)
    world.write(f"{ROOT}_b1", ROOT, "0b1e0000-0000-4000-8000-000000000001")
    world.write("other", None)
    told = json.loads(world.run("rm", ROOT, "--dry-run", "--json"))
    assert [it["branch_of"] for it in told] == [None, ROOT]
    assert len(world.shown()) == 3
    said = world.run("rm", ROOT, "--yes")
    assert f"branch of {ROOT}" in said and str(world.folder / f"{ROOT}_b1.jsonl") in said
    assert world.shown() == {"other": 2}


def test_prune_keeps_the_parent_of_a_branch_that_is_kept(tmp_path: Path) -> None:
    """The branch of the branch is small, so it stays, and with it all that it begins in."""
    world = World(tmp_path)
    world.write(ROOT, None)
    world.write(f"{ROOT}_b1", ROOT)
    write_log(world.folder, f"{ROOT}_b2", own(f"{ROOT}_b2", f"{ROOT}_b1", 1))
    UPKEEP.finish()
    os.utime(world.folder / f"{ROOT}_b2.jsonl", (time.time() - 7200,) * 2)
    before = world.shown()
    size = (world.folder / f"{ROOT}_b2.jsonl").stat().st_size
    said = world.run("prune", "--larger-than", f"{size}B", "--yes")
    assert f"{ROOT} is kept, because its branch {ROOT}_b1 is kept" in said
    assert world.shown() == before
    world.run("prune", "--larger-than", "0B", "--yes")
    assert world.shown() == {}


# Of each log the number of the one it was forked from, the session it is of, and whether it is sealed.
logs = st.lists(
    st.tuples(st.integers(-1, 7), st.sampled_from([None, None, "a", "b"]), st.booleans()),
    min_size=1,
    max_size=7,
)


@settings(max_examples=20, deadline=None, suppress_health_check=[HealthCheck.too_slow])
@given(logs, st.data())
def test_removal_never_shortens_a_remaining_session(
    given_logs: list[tuple[int, str | None, bool]], data: st.DataObject
) -> None:
    with tempfile.TemporaryDirectory() as folder:
        world = World(Path(folder).resolve())
        for number, (parent, client, sealed) in enumerate(given_logs):
            above = f"log{parent}" if 0 <= parent < number else None
            world.write(f"log{number}", above, client and f"client-{client}", sealed=sealed)
        before = world.shown()
        doomed = data.draw(st.lists(st.sampled_from(sorted(before)), min_size=1, max_size=2, unique=True))
        with Catalog.open(world.home) as catalog:
            branches = catalog.branches(*doomed)
            try:
                catalog.remove(*doomed)
            except StoreError:
                assert branches
                assert world.shown() == before
                catalog.remove(*doomed, *branches)
            else:
                assert not branches
        left = world.shown()
        assert left == {name: count for name, count in before.items() if name in left}
        assert set(left) == set(before) - {*doomed, *branches}
        with Catalog.open(world.root / "anew") as catalog:  # and in a catalog that is made later
            register_log_folder(world.root / "anew", world.root / "logs")
            catalog.refresh()
            again = {it.id: catalog.session(it.id) for it in catalog.sessions()}
            assert {name: len(it.exchanges) for name, it in again.items() if it} == left
