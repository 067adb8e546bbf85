"""X.509 certificates of the forward door, made from plain values. Importing this takes 80 ms, for it loads
`cryptography`.

A CA certificate permits the recorded DNS names and excludes all IP addresses: names alone would leave addresses free.
Everything that strict verifiers ask for is there: key identifiers, and critical basic constraints and key usage.
"""

import datetime
from collections.abc import Sequence
from dataclasses import dataclass
from ipaddress import ip_network

from cryptography import x509
from cryptography.exceptions import InvalidSignature
from cryptography.hazmat.primitives import hashes, serialization
from cryptography.hazmat.primitives.asymmetric import ec
from cryptography.x509.oid import ExtendedKeyUsageOID, NameOID

PrivateKey = ec.EllipticCurvePrivateKey
ORGANIZATION = "agent-logger"
_LONGEST_COMMON_NAME = 64  # X.520


@dataclass(frozen=True, slots=True)
class Validity:
    """The time between two instants, in whole seconds since 1970."""

    start: int
    end: int

    def __contains__(self, instant: float) -> bool:
        return self.start <= instant < self.end


@dataclass(frozen=True, slots=True)
class CaCertificate:
    """A CA certificate of ours."""

    certificate: x509.Certificate
    # The DNS names that it permits, each with all names below it.
    subtrees: tuple[str, ...]

    @property
    def pem(self) -> bytes:
        return pem_of(self.certificate)

    @property
    def validity(self) -> Validity:
        return Validity(
            int(self.certificate.not_valid_before_utc.timestamp()),
            int(self.certificate.not_valid_after_utc.timestamp()),
        )

    @property
    def fingerprint(self) -> str:
        return self.certificate.fingerprint(hashes.SHA256()).hex(":").upper()

    @property
    def name(self) -> str:
        return str(self.certificate.subject.get_attributes_for_oid(NameOID.COMMON_NAME)[0].value)

    def is_of(self, key: PrivateKey) -> bool:
        return self.certificate.public_key() == key.public_key()


def new_key() -> PrivateKey:
    return ec.generate_private_key(ec.SECP256R1())


def key_pem(key: PrivateKey, password: bytes | None = None) -> bytes:
    encryption = serialization.BestAvailableEncryption(password) if password else serialization.NoEncryption()
    return key.private_bytes(serialization.Encoding.PEM, serialization.PrivateFormat.PKCS8, encryption)


def read_key(pem: bytes) -> PrivateKey:
    """Read a private key of ours. `ValueError`: it is none."""
    try:
        key = serialization.load_pem_private_key(pem, None)
    except Exception as error:  # the library has many kinds, and a private key has few bytes
        raise ValueError("not a private key") from error
    if not isinstance(key, PrivateKey) or not isinstance(key.curve, ec.SECP256R1):
        raise ValueError("not a P-256 key")
    return key


def pem_of(certificate: x509.Certificate) -> bytes:
    return certificate.public_bytes(serialization.Encoding.PEM)


def read_certificate(pem: bytes) -> CaCertificate:
    """Read a CA certificate of ours. `ValueError`: it is none, or somebody changed it."""
    try:
        certificate = x509.load_pem_x509_certificate(pem)
        certificate.verify_directly_issued_by(certificate)
        constraints = certificate.extensions.get_extension_for_class(x509.NameConstraints)
        permitted = constraints.value.permitted_subtrees or ()
        excluded = set(constraints.value.excluded_subtrees or ())
        subtrees = tuple(name.value for name in permitted if isinstance(name, x509.DNSName))
    except (ValueError, TypeError, InvalidSignature, x509.ExtensionNotFound, x509.DuplicateExtension) as error:
        raise ValueError("not a certificate of ours") from error
    if not subtrees or len(subtrees) != len(permitted) or not constraints.critical or not excluded >= set(_ADDRESSES):
        raise ValueError("not a certificate of ours")
    return CaCertificate(certificate, subtrees)


_ADDRESSES = [x509.IPAddress(ip_network("0.0.0.0/0")), x509.IPAddress(ip_network("::/0"))]


def issue_ca(key: PrivateKey, subtrees: Sequence[str], validity: Validity) -> CaCertificate:
    """Issue a CA certificate that permits leaves for these names, and for nothing else.

    The subject depends on the key alone. So a certificate that is issued again replaces the old one, and leaves are
    valid under both.
    """
    identifier = x509.SubjectKeyIdentifier.from_public_key(key.public_key())
    # Two CAs with one name would be taken for each other.
    subject = _name(f"{ORGANIZATION} CA {identifier.digest.hex()[:8]}")
    certificate = (
        _builder(subject, subject, key.public_key(), validity)
        .add_extension(x509.BasicConstraints(ca=True, path_length=0), critical=True)
        .add_extension(_key_usage(signs_certificates=True), critical=True)
        .add_extension(_TLS_SERVERS, critical=False)
        .add_extension(x509.NameConstraints([x509.DNSName(name) for name in subtrees], _ADDRESSES), critical=True)
        .add_extension(identifier, critical=False)
        .add_extension(_issued_by(key), critical=False)
        .sign(key, hashes.SHA256())
    )
    return CaCertificate(certificate, tuple(subtrees))


_TLS_SERVERS = x509.ExtendedKeyUsage([ExtendedKeyUsageOID.SERVER_AUTH])


def issue_leaf(host: str, ca: CaCertificate, ca_key: PrivateKey, validity: Validity) -> tuple[PrivateKey, bytes]:
    """Issue a certificate for one host. Returns its key, and the PEM of the certificate."""
    key = new_key()
    name = _name(host if len(host) <= _LONGEST_COMMON_NAME else None)
    certificate = (
        _builder(name, ca.certificate.subject, key.public_key(), validity)
        .add_extension(x509.BasicConstraints(ca=False, path_length=None), critical=True)
        .add_extension(_key_usage(signs_certificates=False), critical=True)
        .add_extension(_TLS_SERVERS, critical=False)
        .add_extension(x509.SubjectAlternativeName([x509.DNSName(host)]), critical=False)
        .add_extension(x509.SubjectKeyIdentifier.from_public_key(key.public_key()), critical=False)
        .add_extension(_issued_by(ca_key), critical=False)
        .sign(ca_key, hashes.SHA256())
    )
    return key, pem_of(certificate)


def _name(common_name: str | None) -> x509.Name:
    attributes = [x509.NameAttribute(NameOID.ORGANIZATION_NAME, ORGANIZATION)]
    if common_name:
        attributes.append(x509.NameAttribute(NameOID.COMMON_NAME, common_name))
    return x509.Name(attributes)


def _builder(
    subject: x509.Name, issuer: x509.Name, key: ec.EllipticCurvePublicKey, validity: Validity
) -> x509.CertificateBuilder:
    def instant(seconds: int) -> datetime.datetime:
        return datetime.datetime.fromtimestamp(seconds, datetime.UTC)

    return (
        x509.CertificateBuilder()
        .subject_name(subject)
        .issuer_name(issuer)
        .public_key(key)
        .serial_number(x509.random_serial_number())
        .not_valid_before(instant(validity.start))
        .not_valid_after(instant(validity.end))
    )


def _issued_by(ca_key: PrivateKey) -> x509.AuthorityKeyIdentifier:
    return x509.AuthorityKeyIdentifier.from_issuer_public_key(ca_key.public_key())


def _key_usage(*, signs_certificates: bool) -> x509.KeyUsage:
    return x509.KeyUsage(
        digital_signature=not signs_certificates,
        content_commitment=False,
        key_encipherment=False,
        data_encipherment=False,
        key_agreement=False,
        key_cert_sign=signs_certificates,
        crl_sign=signs_certificates,
        encipher_only=False,
        decipher_only=False,
    )
