"""Guessing passwords: it is stopped, it stops nobody else, and it fills no table."""

from __future__ import annotations

import itertools
import os
from concurrent.futures import ThreadPoolExecutor

import pytest

from authorizer import basic_authentication
from mlcore.auth import passwords
from mlcore.auth.passwords import check_password, hash_password
from mlcore.repos.users import users, wrong_passwords
from tests.contract.api import Api
from tests.contract.conftest import Store, forget
from tests.contract.logins import Logins, named, proves
from tests.doubles.faulty import Fault
from tests.doubles.fixtures import Doubles
from users import service

PASSWORD = "password-of-some-length"
GUESSES = int(os.environ.get("PASSWORD_GUESSES", "1000"))
THREADS = 8


@pytest.fixture
def tried(monkeypatch: pytest.MonkeyPatch) -> list[str]:
    """The passwords that were really tried, and hashes that cost nothing."""
    results: list[str] = []

    def counted(password: str, hashed: str) -> bool:
        results.append(password)
        return check_password(password, hashed)

    monkeypatch.setattr(passwords, "_N", 2)
    monkeypatch.setattr(basic_authentication, "check_password", counted)
    monkeypatch.setattr(basic_authentication, "UNMATCHABLE_HASH", hash_password("x" * 40))
    monkeypatch.setattr(wrong_passwords, "_window", lambda: 42)
    forget()
    return results


def test_guesses_of_one_name(store: Store, tried: list[str]) -> None:
    """After twenty in a minute not even the right password is tried; elsewhere it is."""
    for name in ("ada", "bob"):
        users.create(name, hash_password(PASSWORD), is_admin=False)
    assert not any(proves("ada", f"guess {number}") for number in range(200))
    assert len(tried) == wrong_passwords.MAXIMUM_FAILURES
    assert not proves("ada", PASSWORD)
    assert proves("ada", PASSWORD, "192.0.2.2")
    assert proves("bob", PASSWORD)


def test_thousands_of_guesses_at_once(store: Store, tried: list[str]) -> None:
    """From one address, the right password among them: nobody gets in, and others come and go."""
    for name in ("ada", "bob"):
        users.create(name, hash_password(PASSWORD), is_admin=False)
    right = GUESSES // 2

    def guess(number: int) -> bool:
        return proves("ada", PASSWORD if number == right else f"guess {number}")

    with ThreadPoolExecutor(THREADS) as pool:
        guesses = pool.map(guess, range(GUESSES))
        others = [
            (proves("bob", PASSWORD), proves("ada", PASSWORD, "192.0.2.2")) for _ in range(20)
        ]
        assert not any(guesses)
    assert others == [(True, True)] * 20
    # Those that were on their way when the last of them was counted may have been tried, too.
    assert (
        len([password for password in tried if password != PASSWORD])
        <= wrong_passwords.MAXIMUM_FAILURES + THREADS
    )


def test_minute_ends(store: Store, tried: list[str], monkeypatch: pytest.MonkeyPatch) -> None:
    users.create("ada", hash_password(PASSWORD), is_admin=False)
    for number in range(30):
        proves("ada", f"guess {number}")
    assert not proves("ada", PASSWORD)
    monkeypatch.setattr(wrong_passwords, "_window", lambda: 43)
    assert proves("ada", PASSWORD)


def test_who_is_logged_in_stays_so(store: Store, tried: list[str]) -> None:
    users.create("ada", hash_password(PASSWORD), is_admin=False)
    assert proves("ada", PASSWORD)
    for number in range(30):
        proves("ada", f"guess {number}")
    assert proves("ada", PASSWORD)
    users.update("ada", password_hash=hash_password("another" + PASSWORD))
    assert not proves("ada", PASSWORD)


def test_missing_names_look_like_others(store: Store, tried: list[str]) -> None:
    """As many tries, of the same cost, count as much."""
    users.create("ada", hash_password(PASSWORD), is_admin=False)
    for name in ("ada", "nobody"):
        tried.clear()
        for number in range(40):
            proves(name, f"guess {number}")
        assert len(tried) == wrong_passwords.MAXIMUM_FAILURES


def test_many_names_share_counters(
    store: Store, tried: list[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(wrong_passwords, "COUNTERS", 16)
    for number in range(120):
        proves(f"name {number}", "guess")
    counted = [item for item in store.items() if item["PK"]["S"].startswith("LOGIN#")]
    assert len(counted) <= 16
    assert sum(int(item["failures"]["N"]) for item in counted) == 120
    assert all("ttl" in item for item in counted)


def test_neighbours_in_ipv6_are_one_caller(store: Store, tried: list[str]) -> None:
    addresses = (f"2001:db8:0:1::{number:x}" for number in itertools.count(1))
    users.create("ada", hash_password(PASSWORD), is_admin=False)
    for _ in range(40):
        proves("ada", "guess", next(addresses))
    assert len(tried) == wrong_passwords.MAXIMUM_FAILURES
    assert proves("ada", PASSWORD, "2001:db8:0:2::1")


def test_user_without_a_password_has_none(store: Store, tried: list[str]) -> None:
    users.ensure("from elsewhere")
    for password in ("", " ", "None", "$", "x" * 40):
        assert not proves("from elsewhere", password)


def test_who_knows_only_the_former_password_changes_nothing(
    store: Store, tried: list[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    """Of two changes at once that name the same current password, one succeeds."""
    users.create("ada", hash_password(PASSWORD), is_admin=False)
    change = {"username": "ada", "current_password": PASSWORD}

    def changed(new: str) -> int:
        caller, path = named("ada"), "2.0/mlflow/users/update-password"
        return Logins().ask(caller, "PATCH", path, **change, password=new).status

    def after_another_change(password: str) -> str:
        monkeypatch.setattr(service, "hash_password", hash_password)
        assert changed("the new password of Ada") == 200
        return hash_password(password)

    monkeypatch.setattr(service, "hash_password", after_another_change)
    assert changed("the password of a thief") == 400
    assert proves("ada", "the new password of Ada")
    assert not proves("ada", "the password of a thief")


@pytest.mark.parametrize("fault", [Fault.ANSWER_LOST, Fault.ANSWER_500, Fault.REPEATED])
def test_a_change_whose_answer_was_lost(broken: tuple[Api, Doubles], fault: Fault) -> None:
    """Succeeds: the write that is sent again meets the new password, which is its own."""
    _, doubles = broken
    users.create("ada", hash_password(PASSWORD), is_admin=False)
    fields = {"username": "ada", "current_password": PASSWORD, "password": "another" + PASSWORD}
    doubles.faulty.arm(fault, 1, frozenset({"UpdateItem"}))
    path = "2.0/mlflow/users/update-password"
    assert Logins().ask(named("ada"), "PATCH", path, **fields).status == 200
    assert doubles.faulty.fired
    assert check_password(fields["password"], users.get("ada").password_hash or "")
