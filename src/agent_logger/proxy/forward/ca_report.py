"""What there is to say about the CA of a home, for people and programs."""

from pathlib import Path

import msgspec

from agent_logger.clock import timestamp
from agent_logger.proxy.forward.ca_files import CERTIFICATE, KEY, PREVIOUS, CaPairs, SigningPair, overlap_end
from agent_logger.proxy.forward.certificates import Authority


class CertificateReport(msgspec.Struct, frozen=True, kw_only=True):
    """A CA certificate."""

    # Its subject's common name.
    name: str
    # SHA-256 of the certificate, as `openssl x509 -fingerprint -sha256` prints it.
    fingerprint: str
    valid_from: str
    expires: str
    # The DNS names that it permits, each with all names below it; it permits no IP address.
    permits: tuple[str, ...]
    # Paths of the certificate and its private key.
    certificate: str
    key: str


class CaReport(msgspec.Struct, frozen=True, kw_only=True):
    """The CA of the forward door."""

    current: CertificateReport
    # The one before the last renewal, while its key still signs.
    previous: CertificateReport | None
    # When the previous key stops signing.
    previous_until: str | None
    # Hosts that the forward door records.
    hosts: tuple[str, ...]
    # Files of trusted certificates for children.
    bundles: tuple[str, ...]
    # What was wrong with the files, and what was done.
    notices: tuple[str, ...]


def report(home: Path, authority: Authority) -> CaReport:
    """Report on the CA. One that is missing or damaged is made. Raises `StoreError`."""
    pairs: CaPairs = authority.pairs()
    folder = home / "ca"
    previous = pairs.previous
    return CaReport(
        current=_certificate(folder, pairs.current, ""),
        previous=_certificate(folder, previous, PREVIOUS) if previous else None,
        previous_until=timestamp(overlap_end(pairs.current)) if previous else None,
        hosts=authority.hosts.names,
        bundles=tuple(sorted(str(path) for kind in ("bundle", "extra") for path in folder.glob(f"{kind}*.pem"))),
        notices=authority.notices,
    )


def _certificate(folder: Path, pair: SigningPair, prefix: str) -> CertificateReport:
    certificate = pair.certificate
    return CertificateReport(
        name=certificate.name,
        fingerprint=certificate.fingerprint,
        valid_from=timestamp(certificate.validity.start),
        expires=timestamp(certificate.validity.end),
        permits=certificate.subtrees,
        certificate=str(folder / f"{prefix}{CERTIFICATE}"),
        key=str(folder / f"{prefix}{KEY}"),
    )
