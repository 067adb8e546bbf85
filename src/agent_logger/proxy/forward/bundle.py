"""The files of trusted certificates that children get in variables: the roots that they trusted anyway, and ours.

`bundle.pem` has the roots of the system, those of every file that the user's variables name, and our certificate; a
variable such as `SSL_CERT_FILE` replaces a client's roots by it. `extra.pem` has ours and the user's additions, for
`NODE_EXTRA_CA_CERTS`, which adds to a client's roots. If the variables name files that add something, the names have a
hash of their paths: a child that runs must not lose a root when another shell starts a run.

Only certificates are copied, without comments. What is no certificate is passed over, and a notice names its file.
"""

import base64
import binascii
import hashlib
import os
import re
import ssl
import subprocess
import sys
import time
from collections.abc import Iterable, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path

from agent_logger import platform
from agent_logger.errors import StoreError
from agent_logger.model.plurals import pluralize

# Variables that name a file of certificates, or a folder of such files.
CA_VARIABLES = (
    *("SSL_CERT_FILE", "REQUESTS_CA_BUNDLE", "CURL_CA_BUNDLE", "NODE_EXTRA_CA_CERTS", "PIP_CERT", "GIT_SSL_CAINFO"),
    *("CODEX_CA_CERTIFICATE", "CARGO_HTTP_CAINFO", "DENO_CERT", "AWS_CA_BUNDLE", "NIX_SSL_CERT_FILE"),
)
EXTRA_VARIABLE = "NODE_EXTRA_CA_CERTS"
# With fewer, a client would not reach hosts that it reaches without us.
FEWEST_ROOTS = 50

# The system's roots as one file: Debian, Fedora, openSUSE, RHEL, Alpine and macOS, FreeBSD, Homebrew, Termux.
_SYSTEM_FILES = (
    "/etc/ssl/certs/ca-certificates.crt",
    "/etc/pki/tls/certs/ca-bundle.crt",
    "/etc/ssl/ca-bundle.pem",
    "/etc/pki/ca-trust/extracted/pem/tls-ca-bundle.pem",
    "/etc/ssl/cert.pem",
    "/usr/local/etc/ssl/cert.pem",
    "/usr/local/share/certs/ca-root-nss.crt",
    "/opt/homebrew/etc/openssl@3/cert.pem",
    "/usr/local/etc/openssl@3/cert.pem",
    "/data/data/com.termux/files/usr/etc/tls/cert.pem",
)
_SYSTEM_FOLDERS = ("/etc/ssl/certs", "/etc/pki/tls/certs", "/system/etc/security/cacerts")
# Where an administrator's own roots are on macOS.
_KEYCHAIN_COMMAND = ("/usr/bin/security", "find-certificate", "-a", "-p", "/Library/Keychains/System.keychain")

_LARGEST_FILE = 16 << 20
_MOST_FILES_OF_A_FOLDER = 2000
_UNUSED_SECONDS = 90 * 86_400

_BLOCK = re.compile(rb"-----BEGIN ((?:[A-Z0-9]+ )*CERTIFICATE)-----([^-]*)-----END \1-----")
_BEGIN = re.compile(rb"-----BEGIN (?:[A-Z0-9]+ )*CERTIFICATE-----")
_OWN_NAME = re.compile(rb"agent-logger CA [0-9a-f]{8}")


@dataclass(frozen=True, slots=True)
class TrustFiles:
    """The files that were written for a child."""

    # For variables that replace a client's roots.
    bundle: Path
    # For `NODE_EXTRA_CA_CERTS`.
    extra: Path
    # How many certificates of others `bundle` has.
    roots: int
    # Which files were passed over and why, for people.
    notices: tuple[str, ...]

    @property
    def is_complete(self) -> bool:
        """Whether `bundle` has the roots that clients need. If not, only `extra` is to be set."""
        return self.roots >= FEWEST_ROOTS


@dataclass(frozen=True, slots=True)
class SystemRoots:
    """Where the system has its roots. The first file with enough of them counts, otherwise a folder."""

    files: Sequence[str]
    folders: Sequence[str]
    # A command that prints further ones.
    command: Sequence[str] = ()

    @classmethod
    def here(cls) -> "SystemRoots":
        paths = ssl.get_default_verify_paths()
        command = _KEYCHAIN_COMMAND if sys.platform == "darwin" else ()
        return cls((paths.openssl_cafile, *_SYSTEM_FILES), (paths.openssl_capath, *_SYSTEM_FOLDERS), command)


def write_trust_files(
    home: Path, own: Sequence[bytes], environment: Mapping[str, str], system: SystemRoots | None = None
) -> TrustFiles:
    """Write the files for a child with this environment. `own`: the certificates of `Authority.certificates()`. Raises
    `StoreError`."""
    collection = _Collection()
    ours = [certificate for pem in own for certificate in collection.parse(pem, "our certificate")]
    roots = dict.fromkeys(collection.system(system or SystemRoots.here()))
    # One of ours that an outer run put there may permit fewer hosts, and a client could choose it.
    own_names = {name for certificate in ours for name in _OWN_NAME.findall(certificate)}
    contributing: list[str] = []
    for path in dict.fromkeys(path for name in CA_VARIABLES if (path := environment.get(name))):
        certificates = _without(own_names, collection.read(path))
        contributing += [] if roots.keys() >= set(certificates) else [path]
        roots |= dict.fromkeys(certificates)
    extra_path = environment.get(EXTRA_VARIABLE)
    additions = _without(own_names, collection.read(extra_path)) if extra_path else []
    folder = home / "ca"
    bundle = folder / f"bundle{_ending(folder, contributing)}.pem"
    extra = folder / f"extra{_ending(folder, [extra_path] if extra_path and additions else [])}.pem"
    _write(home, {bundle: [*roots, *ours], extra: [*additions, *ours]})
    return TrustFiles(bundle, extra, len(roots), tuple(dict.fromkeys(collection.notices)))


def _without(names: set[bytes], certificates: Iterable[bytes]) -> list[bytes]:
    unique = dict.fromkeys(certificates)
    return [certificate for certificate in unique if names.isdisjoint(_OWN_NAME.findall(certificate))]


class _Collection:
    """Reads certificates, as DER, and remembers what could not be read."""

    def __init__(self) -> None:
        self.notices: list[str] = []
        self._checker = ssl.SSLContext(ssl.PROTOCOL_TLS_CLIENT)
        self._valid: set[bytes] = set()

    def system(self, system: SystemRoots) -> list[bytes]:
        best: list[bytes] = []
        for read, paths in ((self._file, system.files), (self._folder, system.folders)):
            for path in dict.fromkeys(paths):
                if len(best) < FEWEST_ROOTS:
                    best = max(best, read(Path(path)), key=len)
        return best + self._printed(system.command)

    def read(self, path: str) -> list[bytes]:
        """Return the certificates of a file, or of all files of a folder."""
        place = Path(path)
        if place.is_dir():
            return self._folder(place)
        if not place.exists():
            self.notices.append(f"{place} does not exist")
            return []
        return self._file(place)

    def _folder(self, folder: Path) -> list[bytes]:
        """Return the certificates of a folder, where each has two names at least."""
        try:
            names = sorted(os.listdir(folder))[:_MOST_FILES_OF_A_FOLDER]
        except OSError:
            return []
        paths = {os.path.realpath(folder / name) for name in names}
        return [certificate for path in sorted(paths) for certificate in self._file(Path(path), only_pem=True)]

    def _file(self, path: Path, *, only_pem: bool = False) -> list[bytes]:
        try:
            fd = os.open(path, os.O_RDONLY | os.O_CLOEXEC | os.O_NONBLOCK)
            with os.fdopen(fd, "rb") as file:
                data = file.read(_LARGEST_FILE + 1)
        except FileNotFoundError:
            return []
        except OSError as error:
            if not path.is_dir():
                self.notices.append(f"{path} cannot be read: {error.strerror}")
            return []
        if len(data) > _LARGEST_FILE:
            self.notices.append(f"{path} is larger than {_LARGEST_FILE >> 20} MB; it is left out")
            return []
        if only_pem and not _BEGIN.search(data):
            return []
        return self.parse(data, str(path))

    def _printed(self, command: Sequence[str]) -> list[bytes]:
        if not command:
            return []
        try:
            done = subprocess.run(command, capture_output=True, stdin=subprocess.DEVNULL, timeout=10, check=True)
        except (OSError, subprocess.SubprocessError) as error:
            self.notices.append(f"{command[0]} failed: {error}")
            return []
        return self.parse(done.stdout, command[0])

    def parse(self, pem: bytes, source: str) -> list[bytes]:
        blocks = list(_BLOCK.finditer(pem))
        certificates = [der for block in blocks if (der := self._certificate(block)) is not None]
        if damaged := len(_BEGIN.findall(pem)) - len(certificates):
            self.notices.append(f"{source} has {pluralize(damaged, 'damaged certificate')}; left out")
        return certificates

    def _certificate(self, block: re.Match[bytes]) -> bytes | None:
        if block[1] == b"TRUSTED CERTIFICATE":  # with uses that only OpenSSL understands
            return None
        try:
            der = base64.b64decode(b"".join(block[2].split()), validate=True)
            if der not in self._valid:
                self._checker.load_verify_locations(cadata=der)
        except (binascii.Error, ssl.SSLError, ValueError):
            return None
        self._valid.add(der)
        return der


def _ending(folder: Path, paths: Sequence[str]) -> str:
    """Return what tells the files of one set of variables from those of another."""
    if not paths:
        return ""
    match [Path(path) for path in paths]:
        case [path] if path.parent == folder:  # a run inside of a run
            return path.stem[path.stem.find("-") :] if "-" in path.stem else ""
    return f"-{hashlib.sha256(os.fsencode(chr(0).join(sorted(paths)))).hexdigest()[:8]}"


def _write(home: Path, files: Mapping[Path, Sequence[bytes]]) -> None:
    folder = home / "ca"
    try:
        platform.make_folder(home)
        platform.make_folder(folder, top=home)
        for path, certificates in files.items():
            data = b"".join(map(_pem, certificates))
            if _is_content(path, data):
                os.utime(path)
            else:
                platform.replace_file(path, data, top=home)
    except OSError as error:
        raise StoreError(f"cannot write to {folder}: {error.strerror}") from error
    with suppress(OSError):
        _remove_unused(folder)


def _pem(certificate: bytes) -> bytes:
    return ssl.DER_cert_to_PEM_cert(certificate).encode()


def _is_content(path: Path, data: bytes) -> bool:
    try:
        return not path.is_symlink() and path.stat().st_size == len(data) and path.read_bytes() == data
    except OSError:
        return False


def _remove_unused(folder: Path) -> None:
    """Remove the files of variables that nobody has set for months."""
    before = time.time() - _UNUSED_SECONDS
    for path in [*folder.glob("bundle-*.pem"), *folder.glob("extra-*.pem")]:
        if path.stat().st_mtime < before:
            path.unlink()
