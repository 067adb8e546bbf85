"""People, devices and tokens of the hub."""

import sqlite3
import threading
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path

import pytest

from agent_logger.clock import Clock
from agent_logger.hub.database import HubDatabase
from agent_logger.hub.people import DAY_SECONDS, People, PersonNameError, Role, ThrottledError, UnknownPersonError
from agent_logger.hub.throttle import FAILURES


@dataclass
class Time:
    seconds: float = 1_700_000_000.0

    def __call__(self) -> float:
        return self.seconds


@pytest.fixture
def time() -> Time:
    return Time()


@pytest.fixture
def people(tmp_path: Path, time: Time) -> Iterator[People]:
    database = HubDatabase(tmp_path / "hub")
    yield People(database, Clock(time, time))
    database.close()


def test_the_first_person_is_admin_and_the_others_members(people: People) -> None:
    people.invite("ana")
    people.invite("ben")
    people.invite("cleo", Role.LEAD)
    assert [(person.name, person.role) for person in people.people()] == [
        ("ana", Role.ADMIN),
        ("ben", Role.MEMBER),
        ("cleo", Role.LEAD),
    ]


def test_an_invite_is_exchanged_once(people: People) -> None:
    invite = people.invite("ana")
    token = people.exchange_invite(invite, "laptop")
    assert token
    device = people.device_of(token)
    assert device
    assert (device.person.name, device.machine) == ("ana", "laptop")
    assert people.exchange_invite(invite, "other") is None
    assert [device.machine for device in people.devices()] == ["laptop"]


def test_an_invite_is_exchanged_once_by_many_at_the_same_time(people: People) -> None:
    invite, tokens = people.invite("ana"), list[str | None]()

    def join(number: int) -> None:
        tokens.append(people.exchange_invite(invite, f"machine-{number}", f"10.0.0.{number}"))

    threads = [threading.Thread(target=join, args=(number,)) for number in range(8)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert len([token for token in tokens if token]) == 1
    assert len(people.devices()) == 1


def test_an_invite_is_valid_for_a_day(people: People, time: Time) -> None:
    early, late = people.invite("ana"), people.invite("ben")
    time.seconds += DAY_SECONDS - 1
    assert people.exchange_invite(early, "laptop")
    time.seconds += 1
    assert people.exchange_invite(late, "laptop") is None


def test_a_token_is_good_for_its_kind_only(people: People) -> None:
    tokens = {"invite": people.invite("ana"), "reader": people.reader_token("ana"), "link": people.link_token("ana")}
    tokens["device"] = people.exchange_invite(people.invite("ana"), "laptop") or ""
    tokens["page"] = people.redeem_link(people.link_token("ana")) or ""
    uses: dict[str, Callable[[str, str], object]] = {
        "device": people.device_of,
        "reader": people.reader_of,
        "page": people.page_reader_of,
        "link": people.redeem_link,
        "invite": lambda token, peer: people.exchange_invite(token, "laptop", peer),
    }
    accepted = {
        (kind, use) for use, ask in uses.items() for kind, token in tokens.items() if ask(token, f"{kind}-{use}")
    }
    assert accepted == {(kind, kind) for kind in tokens}


@pytest.mark.parametrize("token", ["", "x", "x" * 43, "é" * 43, "' OR 1=1 --", "x" * 100_000, "\0"])
def test_values_that_are_no_tokens_are_refused_and_noted(people: People, token: str) -> None:
    people.invite("ana")
    assert people.device_of(token, "10.0.0.1") is None
    assert people.reader_of(token, "10.0.0.2") is None
    assert people.page_reader_of(token, "10.0.0.3") is None
    assert people.redeem_link(token, "10.0.0.4") is None
    assert people.exchange_invite(token, "laptop", "10.0.0.5") is None
    noted = {(event.peer, event.detail) for event in people.events() if event.event == "refused"}
    assert noted == {
        ("10.0.0.5", "invite"),
        ("10.0.0.4", "link"),
        ("10.0.0.3", "page token"),
        ("10.0.0.2", "reader token"),
        ("10.0.0.1", "device token"),
    }


def test_tokens_are_stored_only_as_hashes(people: People, tmp_path: Path) -> None:
    tokens = [people.invite("ana"), people.reader_token("ana"), people.link_token("ana")]
    tokens.append(people.exchange_invite(people.invite("ana"), "laptop") or "")
    tokens.append(people.redeem_link(people.link_token("ana")) or "")
    stored = b"".join(path.read_bytes() for path in (tmp_path / "hub").iterdir())
    assert b"laptop" in stored
    assert all(len(token) == 43 for token in tokens)
    assert not [token for token in tokens if token.encode() in stored]


def test_a_revoked_device_is_refused_and_others_go_on(people: People) -> None:
    old = people.exchange_invite(people.invite("ana"), "old") or ""
    new = people.exchange_invite(people.invite("ana"), "new") or ""
    device = people.device_of(old)
    assert device
    people.revoke_device(device)
    assert people.device_of(old) is None
    assert people.device_of(new)


def test_a_revoked_person_has_no_token_until_invited_again(people: People) -> None:
    device = people.exchange_invite(people.invite("ana"), "laptop") or ""
    reader, link, invite = people.reader_token("ana"), people.link_token("ana"), people.invite("ana")
    page = people.redeem_link(people.link_token("ana")) or ""
    people.revoke_person("ana")
    assert not (people.device_of(device) or people.reader_of(reader) or people.page_reader_of(page))
    assert not (people.redeem_link(link) or people.exchange_invite(invite, "laptop"))
    with pytest.raises(UnknownPersonError, match="revoked"):
        people.reader_token("ana")
    assert people.exchange_invite(people.invite("ana"), "laptop")
    assert not (people.device_of(device) or people.reader_of(reader) or people.page_reader_of(page))


def test_revoked_reading_tokens_leave_devices_pushing(people: People) -> None:
    device, reader = people.exchange_invite(people.invite("ana"), "laptop") or "", people.reader_token("ana")
    people.revoke_tokens("ana")
    assert people.reader_of(reader) is None
    assert people.device_of(device)


def test_a_peer_with_many_wrong_tokens_is_refused_for_a_minute_without_harm_to_valid_ones(
    people: People, time: Time
) -> None:
    people.invite("ana")
    used, fresh = people.reader_token("ana"), people.reader_token("ana")
    assert people.reader_of(used, "10.0.0.1")
    for _ in range(FAILURES):
        assert people.reader_of("x" * 43, "10.0.0.1") is None
    with pytest.raises(ThrottledError):
        people.reader_of(fresh, "10.0.0.1")
    with pytest.raises(ThrottledError):
        people.exchange_invite(people.invite("ana"), "laptop", "10.0.0.1")
    assert people.reader_of(used, "10.0.0.1")  # it was used here before
    assert people.reader_of(fresh, "10.0.0.2")
    assert len([event for event in people.events(1000) if event.event == "refused"]) == FAILURES
    time.seconds += 61
    assert people.exchange_invite(people.invite("ana"), "laptop", "10.0.0.1")


def test_addresses_of_one_ipv6_network_are_one_peer(people: People) -> None:
    people.invite("ana")
    for number in range(FAILURES):
        people.reader_of("x" * 43, f"2001:db8::{number:x}")
    with pytest.raises(ThrottledError):
        people.reader_of("x" * 43, "2001:db8::ffff")
    assert people.reader_of("x" * 43, "2001:db8:0:1::1") is None


@pytest.mark.parametrize("name", ["", " ", "-x", "a/b", "a\nb", "a\x1b[31m", "a" * 65, "<b>", "a;b", 'a"b'])
def test_names_that_could_mislead_are_refused(people: People, name: str) -> None:
    with pytest.raises(PersonNameError):
        people.invite(name)
    assert people.people() == []


@pytest.mark.parametrize("machine", ["", "a/b", "a\\b", "a\nb", "a" * 65, "\x1b[31m"])
def test_a_machine_name_that_could_mislead_costs_no_invite(people: People, machine: str) -> None:
    invite = people.invite("ana")
    assert people.exchange_invite(invite, machine) is None
    assert people.exchange_invite(invite, "laptop")


def test_a_name_is_one_person_however_its_letters_are_composed(people: People) -> None:
    people.invite("Ren\u00e9 O'Neil")
    people.invite(" Rene\u0301 O'Neil ")
    assert [person.name for person in people.people()] == ["Ren\u00e9 O'Neil"]


def test_the_audit_cannot_be_changed_or_shortened(people: People) -> None:
    people.invite("ana")
    for statement in ("DELETE FROM audit", "UPDATE audit SET event = 'x'"):
        with pytest.raises(sqlite3.IntegrityError, match="append-only"):
            people.database.execute(statement)
    assert len(people.events()) == 1


def test_reads_of_contents_are_shown_to_their_owner(people: People) -> None:
    people.invite("ana")
    people.invite("ben")
    people.note_read(people.person("ana"), "ben", "s1", "session")
    assert [(event.person, event.session) for event in people.reads_of("ben")] == [("ana", "s1")]
    assert people.reads_of("ana") == []


def test_a_failed_join_leaves_the_invite_as_it_was(people: People, monkeypatch: pytest.MonkeyPatch) -> None:
    invite = people.invite("ana")

    def fail(*_: object) -> str:
        raise sqlite3.OperationalError("disk full")

    with monkeypatch.context() as patch:
        patch.setattr(people, "_add_token", fail)
        with pytest.raises(sqlite3.OperationalError):
            people.exchange_invite(invite, "laptop")
    assert people.devices() == []
    assert people.exchange_invite(invite, "laptop")


def test_only_this_user_can_read_the_database(people: People, tmp_path: Path) -> None:
    people.invite("ana")
    modes = {path.name: path.stat().st_mode & 0o777 for path in [tmp_path / "hub", *(tmp_path / "hub").iterdir()]}
    assert set(modes.values()) <= {0o600, 0o700}, modes
