"""The CA of the forward door and its leaves, as strict clients see them."""

import contextlib
import os
import shutil
import ssl
import stat
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pytest
from cryptography import x509
from cryptography.hazmat.primitives.hashes import SHA256
from cryptography.hazmat.primitives.serialization import Encoding, PublicFormat

from agent_logger.clock import Clock
from agent_logger.errors import StoreError
from agent_logger.proxy.forward import certificates
from agent_logger.proxy.forward.certificates import Authority
from agent_logger.proxy.forward.hosts import RecordedHosts
from agent_logger.proxy.forward.issuing import Validity, issue_leaf, key_pem, new_key, pem_of
from tests.proxy.forward.handshakes import client_context, shake_hands

HOURS = 3600
DAYS = 24 * HOURS
HOSTS = RecordedHosts.parse(["api.example.com", "*.models.example.org"])
MORE = RecordedHosts.parse(["llm.example.net"])


class SetClock:
    """A clock that stands at a time given in seconds from now."""

    def __init__(self) -> None:
        self.offset = 0.0

    @property
    def clock(self) -> Clock:
        return Clock(wall=lambda: time.time() + self.offset)


@pytest.fixture
def home(tmp_path: Path) -> Path:
    return tmp_path / "home"


def opened(home: Path, hosts: RecordedHosts = HOSTS, clock: SetClock | None = None) -> Authority:
    return Authority(home, hosts, (clock or SetClock()).clock)


def accepts(trusted: tuple[bytes, ...], authority: Authority, host: str = "api.example.com") -> bool:
    """Whether a client that trusts these certificates, now or at another time, accepts the server of a host."""
    client = client_context(trusted, at_any_time=True)
    try:
        shake_hands(authority.server_context(host), client, host)
    except ssl.SSLError:
        return False
    return True


def ca_of(authority: Authority) -> x509.Certificate:
    return x509.load_pem_x509_certificate(authority.certificates()[0])


def key_file(home: Path) -> Path:
    return home / "ca" / "ca-key.pem"


def ca_file(home: Path) -> Path:
    return home / "ca" / "ca.pem"


# ---- the certificates


@pytest.mark.parametrize(
    "host", ["api.example.com", "eu.models.example.org", "a.b.models.example.org", "API.Example.com."]
)
def test_a_strict_client_accepts_a_recorded_host(home: Path, host: str) -> None:
    authority = opened(home)
    assert authority.opens(host)
    name = host.rstrip(".").lower()
    client = shake_hands(authority.server_context(host), client_context(authority.certificates()), name)
    assert client.version() == "TLSv1.3"


def test_a_client_with_tls_1_2_alone_is_served(home: Path) -> None:
    authority = opened(home)
    client = client_context(authority.certificates())
    client.maximum_version = ssl.TLSVersion.TLSv1_2
    assert shake_hands(authority.server_context("api.example.com"), client, "api.example.com").version() == "TLSv1.2"


@pytest.mark.parametrize(("offered", "chosen"), [(["h2", "http/1.1"], "http/1.1"), (["h2"], None), ([], None)])
def test_http_1_1_alone_is_agreed_on(home: Path, offered: list[str], chosen: str | None) -> None:
    authority = opened(home)
    client = client_context(authority.certificates())
    client.set_alpn_protocols(offered)
    assert (
        shake_hands(authority.server_context("api.example.com"), client, "api.example.com").selected_alpn_protocol()
        == chosen
    )


def leaf_with_stolen_key(authority: Authority, host: str, folder: Path) -> ssl.SSLContext:
    """The server that a thief of the CA's key can set up."""
    pair, now = authority.pairs().current, int(time.time())
    key, pem = issue_leaf(host, pair.certificate, pair.key, Validity(now - HOURS, now + HOURS))
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    path = folder / "stolen.pem"
    path.write_bytes(pem + key_pem(key))
    context.load_cert_chain(path)
    return context


@pytest.mark.parametrize("host", ["example.com", "bank.example", "models.example", "xapi.example.com"])
def test_a_stolen_key_serves_no_other_host(home: Path, host: str) -> None:
    authority = opened(home)
    client = client_context(authority.certificates())
    with pytest.raises(ssl.SSLCertVerificationError, match="permitted subtree violation"):
        shake_hands(leaf_with_stolen_key(authority, host, home), client, host)


def test_no_certificate_is_issued_for_another_host(home: Path) -> None:
    authority = opened(home)
    assert not authority.opens("bank.example")
    with pytest.raises(StoreError, match=r"does not permit bank\.example"):
        authority.server_context("bank.example")


def test_the_certificate_has_what_strict_verifiers_ask_for(home: Path) -> None:
    certificate = ca_of(opened(home))
    extensions = {extension.oid: extension for extension in certificate.extensions}
    constraints = certificate.extensions.get_extension_for_class(x509.NameConstraints)
    assert constraints.critical
    permitted = constraints.value.permitted_subtrees or []
    assert [name.value for name in permitted] == ["api.example.com", "models.example.org"]
    assert [str(name.value) for name in constraints.value.excluded_subtrees or []] == ["0.0.0.0/0", "::/0"]
    basic = certificate.extensions.get_extension_for_class(x509.BasicConstraints)
    assert basic.critical and basic.value.ca and basic.value.path_length == 0
    assert extensions[x509.KeyUsage.oid].critical
    assert {x509.SubjectKeyIdentifier.oid, x509.AuthorityKeyIdentifier.oid} <= extensions.keys()
    lifetime = certificate.not_valid_after_utc - certificate.not_valid_before_utc
    assert lifetime.days == 366


def test_a_leaf_is_valid_since_yesterday_for_a_month(home: Path) -> None:
    authority = opened(home)
    client = shake_hands(
        authority.server_context("api.example.com"), client_context(authority.certificates()), "api.example.com"
    )
    leaf = x509.load_der_x509_certificate(client.getpeercert(binary_form=True) or b"")
    assert (leaf.not_valid_after_utc - leaf.not_valid_before_utc).days == 30
    assert abs(leaf.not_valid_before_utc.timestamp() + DAYS - time.time()) < HOURS


# ---- the files


def test_the_key_is_for_its_owner_alone_whatever_the_umask(home: Path) -> None:
    before = os.umask(0)
    try:
        opened(home).certificates()
    finally:
        os.umask(before)
    modes = {path.name: stat.S_IMODE(path.stat().st_mode) for path in [home / "ca", *(home / "ca").iterdir()]}
    assert modes == {"ca": 0o700, "ca.pem": 0o600, "ca-key.pem": 0o600}


def test_nothing_is_written_before_the_first_call(home: Path) -> None:
    authority = opened(home)
    assert not authority.opens("bank.example")
    assert not home.exists()


def test_cryptography_is_not_imported_before_the_first_certificate() -> None:
    code = (
        "import sys, agent_logger.proxy.forward.certificates as c, agent_logger.proxy.forward.hosts as h, pathlib;"
        "c.Authority(pathlib.Path('/nonexistent'), h.RecordedHosts.configured([])).opens('bank.example');"
        "sys.exit('cryptography' in sys.modules)"
    )
    assert subprocess.run([sys.executable, "-c", code], check=False).returncode == 0


def test_a_second_process_uses_the_same_key(home: Path) -> None:
    first, second = opened(home), opened(home)
    certificates = first.certificates()
    assert second.certificates() == certificates
    assert accepts(certificates, second)


OPEN_AT_ONCE = """
import pathlib, sys
from agent_logger.proxy.forward.certificates import Authority
from agent_logger.proxy.forward.hosts import RecordedHosts
import agent_logger.proxy.forward.ca_files
hosts = RecordedHosts.parse(["api.example.com", sys.argv[2]])
authority = Authority(pathlib.Path(sys.argv[1]), hosts)
print("ready", flush=True)
sys.stdin.readline()
authority.server_context("api.example.com")
assert authority.opens(sys.argv[2])
print(authority.certificates()[0].decode(), flush=True)
sys.stdin.readline()
assert authority.opens(sys.argv[2])
print(authority.certificates()[0].decode(), flush=True)
"""


def test_processes_that_open_it_at_once_make_one_key_that_serves_the_hosts_of_all(home: Path) -> None:
    hosts = [f"host{number}.example.net" for number in range(6)]
    processes = [
        subprocess.Popen([sys.executable, "-c", OPEN_AT_ONCE, str(home), host], stdin=-1, stdout=-1, text=True)
        for host in hosts
    ]

    def certificate(process: "subprocess.Popen[str]") -> x509.Certificate:
        assert process.stdout
        lines = iter(process.stdout.readline, "")
        return x509.load_pem_x509_certificate("".join(_until_end(lines)).encode())

    def tell_all() -> None:
        for process in processes:
            assert process.stdin
            process.stdin.write("\n")
            process.stdin.flush()

    try:
        for process in processes:
            assert process.stdout and process.stdout.readline() == "ready\n"
        tell_all()
        keys = {key_bytes(certificate(process)) for process in processes}
        tell_all()
        final = set(map(certificate, processes))
        assert [process.wait(60) for process in processes] == [0] * len(processes)
    finally:
        for process in processes:
            process.kill()
            process.communicate()
    assert len(keys) == len(final) == 1
    [ca] = final
    permitted = ca.extensions.get_extension_for_class(x509.NameConstraints).value.permitted_subtrees or []
    assert {name.value for name in permitted} == {"api.example.com", *hosts}


def key_bytes(certificate: x509.Certificate) -> bytes:
    return certificate.public_key().public_bytes(Encoding.DER, PublicFormat.SubjectPublicKeyInfo)


def _until_end(lines: Iterator[str]) -> Iterator[str]:
    for line in lines:
        yield line
        if line.startswith("-----END"):
            return


def test_threads_share_one_context_for_a_host(home: Path) -> None:
    authority = opened(home)
    with ThreadPoolExecutor(8) as threads:
        contexts = list(threads.map(lambda _: authority.server_context("api.example.com"), range(64)))
    assert len(set(map(id, contexts))) == 1


def test_the_leaves_of_a_wildcard_are_bounded(home: Path) -> None:
    authority = opened(home)
    for number in range(300):
        authority.server_context(f"host{number}.models.example.org")
    assert len(authority._leaves) <= 256


# ---- hosts that are added


def test_the_certificate_for_more_hosts_has_the_same_key_and_subject(home: Path) -> None:
    earlier = opened(home)
    before = ca_of(earlier)
    old_client = earlier.certificates()
    assert not earlier.opens("llm.example.net")
    authority = opened(home, HOSTS | MORE)
    after = ca_of(authority)
    assert authority.opens("llm.example.net")
    assert (after.public_key(), after.subject) == (before.public_key(), before.subject)
    assert after.not_valid_after_utc == before.not_valid_after_utc
    assert accepts(old_client, authority)
    assert accepts(authority.certificates(), authority)
    assert accepts(authority.certificates(), authority, "llm.example.net")
    assert not accepts(old_client, authority, "llm.example.net")


def test_a_process_notices_hosts_that_another_one_added(home: Path) -> None:
    first = opened(home)
    before = first.certificates()
    second = opened(home, HOSTS | MORE)
    assert before != second.certificates() == first.certificates()
    assert accepts(second.certificates(), first)


def test_a_process_with_fewer_hosts_takes_none_from_the_others(home: Path) -> None:
    opened(home, HOSTS | MORE).certificates()
    fewer = opened(home)
    assert accepts(fewer.certificates(), opened(home, HOSTS | MORE), "llm.example.net")
    assert not fewer.opens("llm.example.net")  # not recorded by this one


# ---- renewal


def test_after_a_renewal_clients_that_run_are_served_for_a_day(home: Path) -> None:
    clock = SetClock()
    authority = opened(home, clock=clock)
    old_client = authority.certificates()
    clock.offset = 5 * DAYS
    authority.renew()
    new_client = authority.certificates()
    assert len(new_client) == 2 and new_client[1:] == old_client
    assert ca_of(authority).subject != x509.load_pem_x509_certificate(old_client[0]).subject
    assert accepts(old_client, authority) and accepts(new_client, authority)
    other = opened(home, clock=clock)
    assert other.certificates() == new_client and accepts(old_client, other)
    clock.offset = 6 * DAYS + HOURS
    assert authority.certificates() == other.certificates() == new_client[:1]
    assert accepts(new_client, authority) and not accepts(old_client, authority)
    assert sorted(path.name for path in (home / "ca").iterdir()) == ["ca-key.pem", "ca.pem"]


def test_a_process_notices_that_another_one_renewed_the_key(home: Path) -> None:
    running, command = opened(home), opened(home)
    old_client = running.certificates()
    command.renew()
    assert running.certificates() == command.certificates() != old_client
    assert accepts(old_client, running) and accepts(command.certificates(), running)


def test_a_host_that_the_old_certificate_does_not_permit_is_signed_with_the_new_key(home: Path) -> None:
    running = opened(home)
    old_client = running.certificates()
    running.renew()
    authority = opened(home, HOSTS | MORE)
    assert accepts(authority.certificates(), authority, "llm.example.net")
    assert accepts(old_client, authority)


def test_a_renewal_drops_hosts_that_are_no_longer_recorded(home: Path) -> None:
    opened(home, HOSTS | MORE).certificates()
    authority = opened(home)
    authority.renew()
    assert authority.pairs().current.certificate.subtrees == HOSTS.subtrees


def test_a_renewal_that_nobody_asked_for_keeps_the_hosts_of_other_processes(home: Path) -> None:
    clock = SetClock()
    opened(home, HOSTS | MORE, clock).certificates()
    clock.offset = 340 * DAYS
    assert "llm.example.net" in opened(home, clock=clock).pairs().current.certificate.subtrees


def test_the_key_is_renewed_a_month_before_the_certificate_expires(home: Path) -> None:
    clock = SetClock()
    authority = opened(home, clock=clock)
    old_client = authority.certificates()
    clock.offset = 334 * DAYS
    assert authority.certificates() == old_client
    clock.offset = 336 * DAYS
    assert authority.certificates()[1:] == old_client
    clock.offset = 337 * DAYS + HOURS
    assert len(authority.certificates()) == 1


def test_a_certificate_that_has_expired_is_not_used_again(home: Path) -> None:
    clock = SetClock()
    old_client = opened(home, clock=clock).certificates()
    clock.offset = 400 * DAYS
    authority = opened(home, clock=clock)
    [certificate] = authority.certificates()
    assert certificate != old_client[0]
    assert authority.pairs().previous is None


def test_a_clock_that_is_set_back_gets_a_certificate_that_is_valid_then(home: Path) -> None:
    clock = SetClock()
    authority = opened(home, clock=clock)
    key = ca_of(authority).public_key()
    authority.server_context("api.example.com")
    clock.offset = -400 * DAYS
    certificate = ca_of(authority)
    now = time.time() + clock.offset
    assert certificate.not_valid_before_utc.timestamp() < now < certificate.not_valid_after_utc.timestamp()
    assert certificate.public_key() == key
    clock.offset = 0
    assert accepts(authority.certificates(), authority)


def test_a_leaf_is_issued_again_before_it_expires(home: Path) -> None:
    clock = SetClock()
    authority = opened(home, clock=clock)
    context = authority.server_context("api.example.com")
    clock.offset = 14 * DAYS
    assert authority.server_context("api.example.com") is context
    clock.offset = 16 * DAYS
    assert authority.server_context("api.example.com") is not context


# ---- files that cannot be used


def put_fifo(path: Path) -> None:
    path.unlink()
    os.mkfifo(path)


def put_dead_link(path: Path) -> None:
    path.unlink()
    path.symlink_to("nowhere")


DAMAGE: dict[str, Callable[[Path], object]] = {
    "cut": lambda path: path.write_bytes(path.read_bytes()[:100]),
    "empty": lambda path: path.write_bytes(b""),
    "bytes": lambda path: path.write_bytes(os.urandom(2000)),
    "another key": lambda path: path.write_bytes(key_pem(new_key())),
    "a FIFO": put_fifo,
    "a dead link": put_dead_link,
}


@pytest.mark.parametrize("damage", DAMAGE.values(), ids=DAMAGE)
@pytest.mark.parametrize("name", ["ca.pem", "ca-key.pem"])
def test_damaged_files_are_made_again_and_named(home: Path, name: str, damage: Callable[[Path], object]) -> None:
    opened(home).certificates()
    damage(home / "ca" / name)
    authority = opened(home)
    assert accepts(authority.certificates(), authority)
    assert any(str(home / "ca") in notice for notice in authority.notices)
    assert stat.S_IMODE(key_file(home).stat().st_mode) == 0o600
    assert opened(home).certificates() == authority.certificates()


def test_a_damaged_certificate_keeps_its_key(home: Path) -> None:
    old_client = opened(home).certificates()
    ca_file(home).write_bytes(b"damaged")
    assert accepts(old_client, opened(home))


def test_a_key_that_others_could_read_is_replaced(home: Path) -> None:
    old_client = opened(home).certificates()
    key_file(home).chmod(0o640)
    authority = opened(home)
    assert old_client[0] not in authority.certificates()
    assert [str(key_file(home)) in notice and "mode 640" in notice for notice in authority.notices] == [True]
    assert stat.S_IMODE(key_file(home).stat().st_mode) == 0o600
    assert not accepts(old_client, authority)


def test_a_key_in_a_folder_that_others_could_write_to_is_replaced(home: Path) -> None:
    old_client = opened(home).certificates()
    (home / "ca").chmod(0o777)
    authority = opened(home)
    assert old_client[0] not in authority.certificates()
    assert stat.S_IMODE((home / "ca").stat().st_mode) == 0o700
    assert any("other users could write" in notice for notice in authority.notices)


def test_a_foreign_certificate_beside_the_key_is_not_used(home: Path, tmp_path: Path) -> None:
    """One without name constraints would let a stolen key impersonate everything."""
    authority = opened(home)
    pair = authority.pairs().current
    certificate = (
        x509.CertificateBuilder()
        .subject_name(pair.certificate.certificate.subject)
        .issuer_name(pair.certificate.certificate.subject)
        .public_key(pair.key.public_key())
        .serial_number(1)
        .not_valid_before(pair.certificate.certificate.not_valid_before_utc)
        .not_valid_after(pair.certificate.certificate.not_valid_after_utc)
        .add_extension(x509.BasicConstraints(ca=True, path_length=None), critical=True)
        .sign(pair.key, SHA256())
    )
    ca_file(home).write_bytes(pem_of(certificate))
    assert ca_of(opened(home)).extensions.get_extension_for_class(x509.NameConstraints).critical


def test_clients_that_run_are_served_although_the_files_were_removed(home: Path) -> None:
    authority = opened(home)
    old_client = authority.certificates()
    shutil.rmtree(home / "ca")
    assert accepts(old_client, authority)
    new_client = opened(home).certificates()  # of another process
    assert accepts(new_client, authority)


def fill(disk: Path) -> None:
    with (disk / "filler").open("wb", buffering=0) as file, contextlib.suppress(OSError):
        while file.write(b"x" * 4096):
            pass


def test_without_room_for_a_key_no_host_is_opened_until_there_is_room(
    small_disk: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    home = small_disk / "home"
    home.mkdir()
    fill(small_disk)
    authority = opened(home)
    assert not authority.opens("api.example.com")
    assert authority.problem and str(home / "ca") in authority.problem and "No space" in authority.problem
    with pytest.raises(StoreError, match="No space"):
        authority.server_context("api.example.com")
    (small_disk / "filler").unlink()
    monkeypatch.setattr(certificates, "_RETRY_SECONDS", 0.0)
    assert accepts(opened(home).certificates(), opened(home))


def test_without_room_hosts_that_were_permitted_before_are_opened(small_disk: Path) -> None:
    home = small_disk / "home"
    client = opened(home).certificates()
    fill(small_disk)
    authority = opened(home, HOSTS | MORE)
    assert accepts(client, authority)
    assert not authority.opens("llm.example.net")
    assert any("No space" in notice and "remains in use" in notice for notice in authority.notices)
    assert authority.certificates() == client


def test_a_read_only_home_with_a_certificate_is_used(small_disk: Path) -> None:
    home = small_disk / "home"
    client = opened(home).certificates()
    subprocess.run(["mount", "-o", "remount,ro", str(small_disk)], check=True)
    try:
        assert accepts(client, opened(home))
        with pytest.raises(StoreError, match="Read-only"):
            opened(home).renew()
    finally:
        subprocess.run(["mount", "-o", "remount,rw", str(small_disk)], check=True)


def test_a_read_only_home_without_a_certificate_is_one_clear_line(small_disk: Path) -> None:
    (small_disk / "home").mkdir()
    subprocess.run(["mount", "-o", "remount,ro", str(small_disk)], check=True)
    try:
        authority = opened(small_disk / "home")
        assert not authority.opens("api.example.com")
        assert authority.problem == f"cannot use {small_disk / 'home' / 'ca'}: Read-only file system"
    finally:
        subprocess.run(["mount", "-o", "remount,rw", str(small_disk)], check=True)


def test_a_ca_folder_that_is_a_link_is_not_used(home: Path, tmp_path: Path) -> None:
    (tmp_path / "elsewhere").mkdir()
    home.mkdir(exist_ok=True)
    (home / "ca").symlink_to(tmp_path / "elsewhere")
    authority = opened(home)
    assert not authority.opens("api.example.com")
    assert authority.problem and "symbolic link" in authority.problem
    assert list((tmp_path / "elsewhere").iterdir()) == []


KILLED_AT = """
import itertools, os, pathlib, sys
from agent_logger import platform
from agent_logger.proxy.forward.certificates import Authority
from agent_logger.proxy.forward.hosts import RecordedHosts
steps, last = itertools.count(), int(sys.argv[2])

def dying(function):
    def step(*arguments, **options):
        if next(steps) == last:
            os.kill(os.getpid(), 9)
        return function(*arguments, **options)
    return step

for name in ("open_file", "move_file", "sync"):
    setattr(platform, name, dying(getattr(platform, name)))
os.link = dying(os.link)
authority = Authority(pathlib.Path(sys.argv[1]), RecordedHosts.parse(["api.example.com"]))
authority.certificates()
authority.renew()
"""


@pytest.mark.parametrize("step", range(18))
def test_a_process_that_is_killed_leaves_files_that_can_be_used(home: Path, step: int) -> None:
    done = subprocess.run([sys.executable, "-c", KILLED_AT, str(home), str(step)], check=False)
    assert done.returncode in (0, -9)
    authority = opened(home)
    assert accepts(authority.certificates(), authority)
    assert all("ca.pem belongs to another key" in notice for notice in authority.notices)
    assert {path.name for path in (home / "ca").iterdir() if path.name.startswith(".ca-key")} == set()
    assert opened(home).certificates() == authority.certificates()
