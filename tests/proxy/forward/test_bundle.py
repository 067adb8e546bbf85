"""The files of trusted certificates for children."""

import datetime
import functools
import os
import ssl
import stat
from pathlib import Path

import pytest
from cryptography import x509
from cryptography.hazmat.primitives.asymmetric import ec
from cryptography.hazmat.primitives.hashes import SHA256
from cryptography.hazmat.primitives.serialization import Encoding
from cryptography.x509.oid import NameOID

from agent_logger.errors import StoreError
from agent_logger.proxy.forward import bundle
from agent_logger.proxy.forward.bundle import SystemRoots, TrustFiles, write_trust_files
from agent_logger.proxy.forward.certificates import Authority
from agent_logger.proxy.forward.hosts import RecordedHosts

SYSTEM = [f"root {number}" for number in range(60)]


@functools.cache
def root(name: str) -> bytes:
    """A CA certificate of that name, as PEM."""
    key, now = ec.generate_private_key(ec.SECP256R1()), datetime.datetime.now(datetime.UTC)
    subject = x509.Name([x509.NameAttribute(NameOID.COMMON_NAME, name)])
    builder = x509.CertificateBuilder().subject_name(subject).issuer_name(subject).public_key(key.public_key())
    builder = builder.serial_number(x509.random_serial_number()).not_valid_before(now)
    builder = builder.not_valid_after(now + datetime.timedelta(1))
    builder = builder.add_extension(x509.BasicConstraints(ca=True, path_length=None), critical=True)
    return builder.sign(key, SHA256()).public_bytes(Encoding.PEM)


def roots(*names: str) -> bytes:
    return b"".join(map(root, names))


def names_in(path: Path) -> list[str]:
    """The names of the certificates in a file, ours as `CA`."""
    subjects = (certificate.subject for certificate in x509.load_pem_x509_certificates(path.read_bytes()))
    names = [str(subject.get_attributes_for_oid(NameOID.COMMON_NAME)[0].value) for subject in subjects]
    return ["CA" if name.startswith("agent-logger CA") else name for name in names]


@pytest.fixture
def home(tmp_path: Path) -> Path:
    return tmp_path / "home"


@pytest.fixture
def system(tmp_path: Path) -> SystemRoots:
    (tmp_path / "system.pem").write_bytes(b"# comment \xc3\xa9\n" + roots(*SYSTEM))
    return SystemRoots([str(tmp_path / "missing.pem"), str(tmp_path / "system.pem")], [str(tmp_path / "no-folder")])


def certificates(home: Path, *hosts: str) -> tuple[bytes, ...]:
    return Authority(home, RecordedHosts.parse(["api.example.com", *hosts])).certificates()


def written(home: Path, system: SystemRoots, **variables: str) -> TrustFiles:
    return write_trust_files(home, certificates(home), variables, system)


def test_the_bundle_has_the_roots_of_the_system_and_ours(home: Path, system: SystemRoots) -> None:
    files = written(home, system)
    assert (files.bundle, files.extra) == (home / "ca" / "bundle.pem", home / "ca" / "extra.pem")
    assert names_in(files.bundle) == [*SYSTEM, "CA"]
    assert names_in(files.extra) == ["CA"]
    assert (files.roots, files.is_complete, files.notices) == (60, True, ())
    assert stat.S_IMODE(files.bundle.stat().st_mode) == 0o600


@pytest.mark.parametrize("variable", bundle.CA_VARIABLES)
def test_the_bundle_has_the_certificates_that_the_users_variables_name(
    home: Path, system: SystemRoots, tmp_path: Path, variable: str
) -> None:
    (tmp_path / "corporate.pem").write_bytes(roots("corporate", SYSTEM[3]))
    files = written(home, system, **{variable: str(tmp_path / "corporate.pem")})
    assert names_in(files.bundle) == [*SYSTEM, "corporate", "CA"]
    extra = ["corporate", SYSTEM[3]] if variable == "NODE_EXTRA_CA_CERTS" else []
    assert names_in(files.extra) == [*extra, "CA"]


def test_a_child_keeps_its_roots_when_another_shell_starts_a_run(
    home: Path, system: SystemRoots, tmp_path: Path
) -> None:
    (tmp_path / "corporate.pem").write_bytes(root("corporate"))
    first = written(home, system, SSL_CERT_FILE=str(tmp_path / "corporate.pem"))
    written(home, system)
    written(home, system, NODE_EXTRA_CA_CERTS=system.files[1])
    assert names_in(first.bundle) == [*SYSTEM, "corporate", "CA"]
    assert names_in(first.extra) == ["CA"]


def test_variables_that_name_the_roots_of_the_system_add_nothing(home: Path, system: SystemRoots) -> None:
    files = written(home, system, SSL_CERT_FILE=system.files[1], NODE_EXTRA_CA_CERTS=system.files[1])
    assert files.bundle.name == "bundle.pem"
    assert names_in(files.extra) == [*SYSTEM, "CA"]


def test_a_run_inside_of_a_run_gets_the_same_roots(home: Path, system: SystemRoots, tmp_path: Path) -> None:
    (tmp_path / "corporate.pem").write_bytes(root("corporate"))
    outer = written(home, system, NODE_EXTRA_CA_CERTS=str(tmp_path / "corporate.pem"))
    variables = {"SSL_CERT_FILE": str(outer.bundle), "NODE_EXTRA_CA_CERTS": str(outer.extra)}
    inner = write_trust_files(home, certificates(home, "added.example.com"), variables, system)
    assert (inner.bundle, inner.extra) == (outer.bundle, outer.extra)
    assert names_in(inner.bundle) == [*SYSTEM, "corporate", "CA"]
    assert names_in(inner.extra) == ["corporate", "CA"]
    assert certificates(home)[0] in inner.bundle.read_bytes().replace(b"\r", b"")  # the newer one


def test_the_certificate_of_another_home_stays(home: Path, system: SystemRoots, tmp_path: Path) -> None:
    """Its proxy may stand before ours, and opens hosts that ours does not."""
    outer = written(tmp_path / "other", system)
    assert names_in(written(home, system, SSL_CERT_FILE=str(outer.bundle)).bundle) == [*SYSTEM, "CA", "CA"]


@pytest.mark.parametrize(
    ("content", "reason"),
    [
        pytest.param(b"-----BEGIN CERTIFICATE-----\n!!!\n-----END CERTIFICATE-----\n", "1 damaged", id="no base64"),
        pytest.param(root("cut")[:200], "1 damaged", id="cut"),
        pytest.param(
            b"-----BEGIN CERTIFICATE-----\nMAA=\n-----END CERTIFICATE-----\n", "1 damaged", id="no certificate"
        ),
        pytest.param(root("a")[:200] + b"\n", "1 damaged", id="cut before another one"),
        pytest.param(b"", "", id="empty"),
    ],
)
def test_damaged_certificates_are_passed_over_and_their_file_is_named(
    home: Path, system: SystemRoots, tmp_path: Path, content: bytes, reason: str
) -> None:
    path = tmp_path / "mixed.pem"
    path.write_bytes(root("before") + content + root("after"))
    files = written(home, system, CURL_CA_BUNDLE=str(path))
    assert names_in(files.bundle) == [*SYSTEM, "before", "after", "CA"]
    assert [notice.startswith(f"{path} has {reason}") for notice in files.notices] == [True] * bool(content)
    ssl.create_default_context(cafile=str(files.bundle))


def test_a_named_file_that_is_not_there_is_named(home: Path, system: SystemRoots, tmp_path: Path) -> None:
    files = written(home, system, PIP_CERT=str(tmp_path / "gone.pem"), SSL_CERT_FILE="")
    assert files.notices == (f"{tmp_path / 'gone.pem'} does not exist",)
    assert files.bundle.name == "bundle.pem" and files.is_complete


def test_a_file_that_blocks_or_never_ends_is_passed_over(home: Path, system: SystemRoots, tmp_path: Path) -> None:
    os.mkfifo(tmp_path / "fifo")
    files = written(home, system, PIP_CERT=str(tmp_path / "fifo"), SSL_CERT_FILE="/dev/zero")
    assert names_in(files.bundle) == [*SYSTEM, "CA"]


def test_a_named_folder_gives_the_certificates_of_its_files(home: Path, system: SystemRoots, tmp_path: Path) -> None:
    folder = tmp_path / "hashed"
    folder.mkdir()
    (folder / "one.pem").write_bytes(root("one"))
    (folder / "a1b2c3d4.0").symlink_to("one.pem")
    (folder / "readme").write_text("no certificates here")
    files = written(home, system, REQUESTS_CA_BUNDLE=str(folder))
    assert names_in(files.bundle) == [*SYSTEM, "one", "CA"]
    assert files.notices == ()


def test_with_few_roots_the_bundle_is_not_complete(home: Path, tmp_path: Path) -> None:
    (tmp_path / "few.pem").write_bytes(roots(*SYSTEM[:49]))
    files = written(home, SystemRoots([str(tmp_path / "few.pem")], []))
    assert (files.roots, files.is_complete) == (49, False)
    assert names_in(files.extra) == ["CA"]


def test_without_a_file_the_roots_come_from_a_folder(home: Path, tmp_path: Path) -> None:
    for name in SYSTEM:
        (tmp_path / f"{name}.crt").write_bytes(root(name))
    assert written(home, SystemRoots([], [str(tmp_path)])).roots == 60


def test_certificates_that_a_command_prints_count_too(home: Path, system: SystemRoots, tmp_path: Path) -> None:
    (tmp_path / "keychain.pem").write_bytes(root("administrator"))
    printing = SystemRoots(system.files, [], ["/bin/cat", str(tmp_path / "keychain.pem")])
    assert names_in(written(home, printing).bundle) == [*SYSTEM, "administrator", "CA"]
    failing = written(home, SystemRoots(system.files, [], ["/bin/false"]))
    assert failing.roots == 60 and "/bin/false failed" in failing.notices[0]


def test_this_system_has_enough_roots(home: Path) -> None:
    files = write_trust_files(home, certificates(home), {})
    if not any(map(os.path.exists, SystemRoots.here().files)):
        pytest.skip("the system has no file of roots")
    assert files.is_complete
    ssl.create_default_context(cafile=str(files.bundle))


def test_after_a_renewal_the_bundle_has_both_certificates(home: Path, system: SystemRoots) -> None:
    authority = Authority(home, RecordedHosts.parse(["api.example.com"]))
    authority.renew()
    authority.renew()
    assert names_in(write_trust_files(home, authority.certificates(), {}, system).bundle)[60:] == ["CA", "CA"]


def test_files_of_variables_that_nobody_has_set_for_months_are_removed(
    home: Path, system: SystemRoots, tmp_path: Path
) -> None:
    (tmp_path / "corporate.pem").write_bytes(root("corporate"))
    old = written(home, system, SSL_CERT_FILE=str(tmp_path / "corporate.pem"))
    written(home, system)
    assert old.bundle.exists()
    os.utime(old.bundle, (0, 0))
    written(home, system)
    assert not old.bundle.exists()


def test_a_folder_that_cannot_be_written_to_is_named(home: Path, system: SystemRoots) -> None:
    own = certificates(home)
    (home / "ca" / "bundle.pem").mkdir()
    with pytest.raises(StoreError, match=r"cannot write to .*ca"):
        write_trust_files(home, own, {}, system)
