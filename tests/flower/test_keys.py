"""Certificates and keys made for one machine: what trusts them, what does not, and who may read."""

import ssl
from contextlib import suppress

import pytest

pytest.importorskip("cryptography", reason="comes with the extra 'flower'")

from cryptography.hazmat.primitives.serialization import load_ssh_private_key, load_ssh_public_key

from lgfed_core.flower import keys


def shake_hands(server, client, name: str) -> str:
    """Both ends of TLS in one process, a message at a time; the version that they agree on."""
    here, there = (ssl.MemoryBIO(), ssl.MemoryBIO()), (ssl.MemoryBIO(), ssl.MemoryBIO())
    ends = [
        client.wrap_bio(here[0], here[1], server_hostname=name),
        server.wrap_bio(there[0], there[1], server_side=True),
    ]
    for _ in range(4):
        for end in ends:
            with suppress(ssl.SSLWantReadError):
                end.do_handshake()
        there[0].write(here[1].read())
        here[0].write(there[1].read())
    return ends[0].version()


def test_who_trusts_the_authority_takes_the_server_for_its_address_and_nobody_else(tmp_path):
    for name in ("ours", "other"):
        (tmp_path / name).mkdir()
        keys.certify(tmp_path / name, "127.0.0.1")
    server = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    server.load_cert_chain(tmp_path / "ours" / "server.pem", tmp_path / "ours" / "server.key")
    client = ssl.create_default_context(cafile=tmp_path / "ours" / "ca.crt")
    assert shake_hands(server, client, "127.0.0.1").startswith("TLS")
    with pytest.raises(ssl.SSLCertVerificationError, match="IP address mismatch"):
        shake_hands(server, client, "127.0.0.2")
    stranger = ssl.create_default_context(cafile=tmp_path / "other" / "ca.crt")
    with pytest.raises(ssl.SSLCertVerificationError):
        shake_hands(server, stranger, "127.0.0.1")
    assert (tmp_path / "ours" / "server.key").stat().st_mode & 0o077 == 0


def test_a_nodes_public_key_is_the_half_of_its_private_one_which_nobody_else_may_read(tmp_path):
    public = keys.pair(tmp_path / "node-0")
    assert public == tmp_path / "node-0.pub" and (tmp_path / "node-0").stat().st_mode & 0o077 == 0
    private = load_ssh_private_key((tmp_path / "node-0").read_bytes(), None)
    told = load_ssh_public_key(public.read_bytes())
    assert private.public_key().public_numbers() == told.public_numbers()
