"""Hashes of passwords."""

from __future__ import annotations

from mlcore.auth.passwords import UNMATCHABLE_HASH, check_password, hash_password


def test_a_password_fits_its_own_hash_alone() -> None:
    first, second = hash_password("correct horse"), hash_password("correct horse")
    assert first != second
    assert check_password("correct horse", first)
    assert check_password("correct horse", second)
    assert not check_password("correct horsf", first)
    assert "correct" not in first


def test_nobody_has_a_password() -> None:
    assert not check_password("", UNMATCHABLE_HASH)
