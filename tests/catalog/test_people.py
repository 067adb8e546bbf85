"""Homes of several people in one folder, as a hub has them: person as a dimension, and one person's sessions alone."""

import json
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from agent_logger import Catalog, Filter
from agent_logger.archive.run import archive_all
from agent_logger.catalog.summary import Ownership
from agent_logger.home.homes import Homes
from tests.catalog.catalogs import ID, assistant, claude_file, user

ANN, BEN, BOTH = ID.format(1), ID.format(2), ID.format(3)
HomeMaker = Callable[..., Path]


@pytest.fixture
def hub(tmp_path: Path) -> Path:
    return tmp_path / "hub"


@pytest.fixture
def device(tmp_path: Path, hub: Path, monkeypatch: pytest.MonkeyPatch) -> HomeMaker:
    """Makes a home with sessions as a device of a person would push them."""

    def make(name: str, person: str, machine: str, *sessions: str) -> Path:
        folder, home = tmp_path / "machines" / name, hub / "homes" / name
        for session in sessions:
            number = int(session[:8], 16) * 100
            text = f"prompt of {session[:8]}"
            claude_file(folder, session, [user(number, text, session), assistant(number + 1, "done", session)])
        home.mkdir(parents=True, exist_ok=True)
        with monkeypatch.context() as there:
            there.setenv("HOME", str(folder))
            archive_all(home)
        (home / "machine.json").write_text(json.dumps({"machine": machine, "person": person, "v": 1}))
        return home

    return make


@pytest.fixture
def catalog(hub: Path, device: HomeMaker) -> Iterator[Catalog]:
    device("d1", "ann", "laptop", ANN, BOTH)
    device("d2", "ben", "laptop", BEN, BOTH)
    with Catalog(Homes(hub / "catalog", has_own=False, below=hub / "homes")) as catalog:
        yield catalog


def test_sessions_have_people_and_machines(catalog: Catalog) -> None:
    rows = {session.id: (session.people, session.machines) for session in catalog.sessions()}
    assert rows == {
        ANN: (("ann",), ("laptop (ann)",)),
        BEN: (("ben",), ("laptop (ben)",)),
        BOTH: (("ann", "ben"), ("laptop (ann)", "laptop (ben)")),
    }
    assert catalog.choices().people == ("ann", "ben")


def test_sessions_and_usage_are_filtered_by_person_in_any_case(catalog: Catalog) -> None:
    assert {session.id for session in catalog.sessions(Filter(person="ANN"))} == {ANN, BOTH}
    assert catalog.sessions(Filter(person="nobody")) == []
    assert {session.id for session in catalog.sessions(Filter(person="ann", machine="laptop (ben)"))} == set()
    assert catalog.total(Filter(person="ben")).responses == 1  # the other is counted for the one that had it first


def test_usage_by_person_adds_up_machines(catalog: Catalog, device: HomeMaker) -> None:
    device("d3", "ann", "desk", ID.format(4))
    catalog.refresh()
    by_person = catalog.usage("person")
    assert {name: total.responses for name, total in by_person.items()} == {"ann": 3, "ben": 1}
    assert {name: total.responses for name, total in catalog.usage("machine").items()} == {
        "desk": 1,
        "laptop (ann)": 2,
        "laptop (ben)": 1,
    }
    (month,) = catalog.usage_over_time("month", "person").values()
    assert {name: total.responses for name, total in month.items()} == {"ann": 3, "ben": 1}


def test_a_device_that_joins_later_is_in_the_same_catalog(catalog: Catalog, device: HomeMaker, hub: Path) -> None:
    assert catalog.count() == 3
    device("d3", "cleo", "desk", ID.format(4))
    catalog.refresh()
    assert {session.people for session in catalog.sessions(Filter(person="cleo"))} == {("cleo",)}
    assert (hub / "catalog" / "catalog.db").is_file()
    assert sorted(path.name for path in hub.iterdir()) == ["catalog", "homes"]


def test_search_is_limited_to_a_person(catalog: Catalog) -> None:
    catalog.index()
    assert {hit.session for hit in catalog.search("prompt person:ann")} == {ANN, BOTH}
    with pytest.raises(ValueError, match="person:ann"):
        catalog.search("person:")


def ownership(hub: Path, *devices: str, shared: tuple[str, ...] = ()) -> Ownership:
    return Ownership(homes=frozenset(str(hub / "homes" / name) for name in devices), shared=frozenset(shared))


def test_a_limited_catalog_has_only_sessions_that_nobody_else_has(catalog: Catalog, hub: Path) -> None:
    catalog.index()
    own = catalog.owned_by(ownership(hub, "d2"))
    assert [session.id for session in own.sessions()] == [BEN]
    assert own.count() == 1
    assert own.total().responses == 1
    assert {row.session for row in own.ledger()} == {BEN}
    assert list(own.usage("session")) == [BEN]
    assert {hit.session for hit in own.search("prompt")} == {BEN}
    assert own.count_hits("prompt") == 1
    assert [session.id for session in own.matching("prompt", limit=9)] == [BEN]
    assert own.choices().people == ("ben",)
    assert own.choices().machines == ("laptop (ben)",)
    assert list(own.short_ids()) == list(own.stamps()) == list(own.headings([ANN, BEN, BOTH])) == [BEN]


@pytest.mark.parametrize("other", [ANN, BOTH])
def test_in_a_limited_catalog_sessions_of_others_do_not_exist(catalog: Catalog, hub: Path, other: str) -> None:
    own = catalog.owned_by(ownership(hub, "d2"))
    answers: list[object] = [own.resolve(other), own.resolve(other[:8]), own.summary(other), own.session(other)]
    answers += [own.read(other), own.tree(other), own.places(other), own.sources(other), own.calls(other)]
    answers += [own.logs(other), own.counted_elsewhere(other), own.uncounted(other), own.titles_beside(other)]
    assert not any([*answers, own.damaged_files(other)])
    assert list(own.ledger(session=other)) == []
    assert catalog.session(other) is not None


def test_a_session_that_two_people_have_belongs_to_the_first(catalog: Catalog, hub: Path) -> None:
    assert {session.id for session in catalog.owned_by(ownership(hub, "d1", shared=(BOTH,))).sessions()} == {ANN, BOTH}
    assert {session.id for session in catalog.owned_by(ownership(hub, "d2", shared=())).sessions()} == {BEN}
    # To have claimed a session is not enough: it must be in a home of the person.
    assert catalog.owned_by(ownership(hub, "d2", shared=(ANN,))).summary(ANN) is None


def test_a_person_without_devices_owns_nothing(catalog: Catalog) -> None:
    own = catalog.owned_by(Ownership(homes=frozenset()))
    assert own.sessions() == []
    assert own.total().responses == 0
