"""Certificates and key pairs for a federation on one machine, to try what Flower has of both.

Between real machines use those of your own authority: `openssl` and `ssh-keygen` make the same.
"""

from datetime import UTC, datetime, timedelta
from ipaddress import ip_address
from pathlib import Path

from cryptography import x509
from cryptography.hazmat.primitives import hashes, serialization as form
from cryptography.hazmat.primitives.asymmetric import ec

DAYS = 2  # that a certificate is good for


def certify(folder: Path, host: str) -> None:
    """Write ``ca.crt``, an authority of its own, and ``server.pem`` and ``.key`` for ``host``."""
    authority, server = (ec.generate_private_key(ec.SECP384R1()) for _ in range(2))
    own, theirs = _name("lgfed authority"), _name(host)
    ends = x509.BasicConstraints(ca=True, path_length=0)
    root = _certificate(own, own, authority, authority, ends)
    there = x509.SubjectAlternativeName([x509.IPAddress(ip_address(host))])
    leaf = _certificate(theirs, own, server, authority, there)
    (folder / "ca.crt").write_bytes(root.public_bytes(form.Encoding.PEM))
    (folder / "server.pem").write_bytes(leaf.public_bytes(form.Encoding.PEM))
    _secret(folder / "server.key", server, form.PrivateFormat.PKCS8)


def pair(path: Path) -> Path:
    """Write a node's private key to ``path`` and its public half beside it; the latter's path."""
    key, public = ec.generate_private_key(ec.SECP384R1()), path.with_suffix(".pub")
    _secret(path, key, form.PrivateFormat.OpenSSH)
    kind = form.Encoding.OpenSSH, form.PublicFormat.OpenSSH
    public.write_bytes(key.public_key().public_bytes(*kind))
    return public


def _certificate(
    subject: x509.Name,
    issuer: x509.Name,
    of: ec.EllipticCurvePrivateKey,
    by: ec.EllipticCurvePrivateKey,
    extension: x509.ExtensionType,
) -> x509.Certificate:
    now = datetime.now(UTC)
    made = x509.CertificateBuilder(issuer, subject, of.public_key(), x509.random_serial_number())
    made = made.not_valid_before(now - timedelta(hours=1))
    made = made.not_valid_after(now + timedelta(days=DAYS))
    return made.add_extension(extension, critical=True).sign(by, hashes.SHA384())


def _name(text: str) -> x509.Name:
    return x509.Name([x509.NameAttribute(x509.NameOID.COMMON_NAME, text)])


def _secret(path: Path, key: ec.EllipticCurvePrivateKey, kind: form.PrivateFormat) -> None:
    path.touch(0o600)
    path.write_bytes(key.private_bytes(form.Encoding.PEM, kind, form.NoEncryption()))
