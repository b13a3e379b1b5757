"""Values that only who has the key can read, each at its own place."""

from __future__ import annotations

from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from wallflower.errors import SourceError, StateError
from wallflower.machine.vault import SIZE, OpenVault, SealedStore, Vault, make_key, read_vault

KEY = bytes(range(SIZE))


@given(st.binary(max_size=100), st.integers(0, 9), st.integers(0, 2000))
def test_what_is_sealed_opens_at_its_place_and_unchanged(value: bytes, place: int, at: int) -> None:
    vault = Vault(KEY)
    sealed = vault.seal(value, "frames", place)
    assert vault.unseal(sealed, "frames", place) == value
    assert len(value) < 8 or value not in sealed
    changed = bytearray(sealed)
    changed[at % len(sealed)] ^= 1
    for other, body, row in (
        (vault, sealed, place + 1),
        (vault, bytes(changed), place),
        (vault, sealed[:-1], place),
        (vault, b"", place),
        (Vault(bytes(SIZE)), sealed, place),
    ):
        with pytest.raises(SealedStore, match="does not open"):
            other.unseal(body, "frames", row)
    with pytest.raises(SealedStore):
        vault.unseal(sealed, f"frames{place}")
    assert issubclass(SealedStore, StateError)


def test_a_key_is_a_file_of_its_owner(tmp_path: Path) -> None:
    path = tmp_path / "store.key"
    make_key(path)
    assert path.stat().st_mode & 0o777 == 0o600
    sealed = read_vault(path).seal(b"x")
    assert read_vault(path).unseal(sealed) == b"x"
    with pytest.raises(SourceError, match="not there yet"):
        make_key(path)
    assert read_vault(path).unseal(sealed) == b"x"
    make_key(tmp_path / "other.key")
    with pytest.raises(SealedStore):
        read_vault(tmp_path / "other.key").unseal(sealed)
    assert isinstance(read_vault(None), OpenVault)


@pytest.mark.parametrize("body", [b"", b"00", b"zz" * SIZE, "ü".encode() * SIZE, KEY, b"00" * (SIZE + 1)])
def test_what_is_no_key_is_refused(tmp_path: Path, body: bytes) -> None:
    path = tmp_path / "store.key"
    path.write_bytes(body)
    with pytest.raises(SourceError, match="others than its owner"):
        read_vault(path)
    path.chmod(0o600)
    with pytest.raises(SourceError, match="not a key for stores"):
        read_vault(path)
    with pytest.raises(SourceError, match="No such file"):
        read_vault(tmp_path / "nothing.key")
