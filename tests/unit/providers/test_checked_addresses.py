"""Addresses of providers are resolved once in a while, and checked at each use."""

from __future__ import annotations

import ipaddress
import socket
import time
from collections.abc import Iterator
from typing import Any

import pytest

from mlcore import process_cache
from mlcore.errors import GatewayCallFailed
from mlcore.providers.checked_addresses import RESOLVED_SECONDS, checked_address


class Resolver:
    """A name that has another address each time."""

    def __init__(self, *answers: str) -> None:
        self.answers = list(answers)

    def __call__(self, host: str, *_: Any, **__: Any) -> list[Any]:
        assert host == "models.example", "an address needs no resolver"
        return [(0, 0, 0, "", (self.answers.pop(0), 0))]


@pytest.fixture
def clock(monkeypatch: pytest.MonkeyPatch) -> Iterator[list[float]]:
    now = [1000.0]
    process_cache.clear()
    monkeypatch.setattr(time, "monotonic", lambda: now[0])
    yield now
    process_cache.clear()


def test_a_name_keeps_its_address_for_a_while(
    clock: list[float], monkeypatch: pytest.MonkeyPatch
) -> None:
    """Else a kept connection would not be found again."""
    monkeypatch.setattr(socket, "getaddrinfo", Resolver("8.8.8.8", "8.8.4.4"))
    for expected in ("8.8.8.8", "8.8.8.8", "8.8.4.4", "8.8.4.4"):
        assert checked_address("models.example", guarded=True) == expected
        clock[0] += RESOLVED_SECONDS / 2


def test_a_name_is_resolved_again_after_the_function_was_frozen(
    clock: list[float], monkeypatch: pytest.MonkeyPatch
) -> None:
    """The monotonic clock stood still, and the address may be somebody else's by now. The wall
    clock may also have been set back."""
    monkeypatch.setattr(socket, "getaddrinfo", Resolver("8.8.8.8", "8.8.4.4", "1.1.1.1"))
    wall = time.time()
    for moved, expected in (
        (0.0, "8.8.8.8"),
        (RESOLVED_SECONDS / 2, "8.8.8.8"),
        (RESOLVED_SECONDS + 1, "8.8.4.4"),
        (-3600.0, "1.1.1.1"),
        (-3600.0 + RESOLVED_SECONDS / 2, "1.1.1.1"),
    ):
        monkeypatch.setattr(time, "time", lambda moved=moved: wall + moved)
        assert checked_address("models.example", guarded=True) == expected


def test_a_private_address_is_refused_at_each_use(
    clock: list[float], monkeypatch: pytest.MonkeyPatch
) -> None:
    """Also if a call that may use private ones has resolved it."""
    monkeypatch.setattr(socket, "getaddrinfo", Resolver("10.0.0.1", "8.8.8.8", "127.0.0.1"))
    assert checked_address("models.example", guarded=False) == "10.0.0.1"
    for _ in range(2):
        with pytest.raises(GatewayCallFailed, match="not a public IP address"):
            checked_address("models.example", guarded=True)
    clock[0] += RESOLVED_SECONDS
    assert checked_address("models.example", guarded=True) == "8.8.8.8"
    clock[0] += RESOLVED_SECONDS
    with pytest.raises(GatewayCallFailed):
        checked_address("models.example", guarded=True)


@pytest.mark.parametrize("text", ["8.8.8.8", "2606:4700::1111"])
def test_an_address_needs_no_resolver(text: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(socket, "getaddrinfo", Resolver())
    assert checked_address(text, guarded=True) == str(ipaddress.ip_address(text))


@pytest.mark.parametrize("text", ["127.0.0.1", "169.254.169.254", "::1", "::ffff:10.0.0.1"])
def test_private_addresses_are_refused(text: str) -> None:
    with pytest.raises(GatewayCallFailed, match="not a public IP address"):
        checked_address(text, guarded=True)
