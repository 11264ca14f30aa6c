"""Attacks on the sign-in over HTTPS, through CloudFront: each is a function of a victim's and of an
attacker's browser that tries to get in, and returns whether it did."""

from __future__ import annotations

from collections.abc import Callable
from typing import Final
from urllib.parse import urlencode

from tests.rehearsal.site import ATTEMPT, SESSION, Visitor, fields_of

EVIL: Final = "evil.example"
Attack = Callable[[Visitor, Visitor], bool]


def _answered(visitor: Visitor, address: str) -> bool:
    """Whether an answer of the issuer lets somebody in."""
    reply = visitor.finish(address)
    assert b"<script" not in reply.content
    return reply.status != 400 or SESSION in visitor.cookies or ATTEMPT in visitor.cookies


def _changed(address: str, **fields: str) -> str:
    base = address.partition("?")[0]
    return f"{base}?{urlencode({**fields_of(address), **fields})}"


def _of_another_browser(victim: Visitor, attacker: Visitor) -> bool:
    """Login CSRF: the victim would work in the attacker's account."""
    victim.begin()
    return _answered(victim, attacker.site.provider.answer(attacker.begin(), "eve"))


def _without_an_attempt(victim: Visitor, attacker: Visitor) -> bool:
    return _answered(victim, attacker.site.provider.answer(attacker.begin(), "eve"))


def _injected_code(victim: Visitor, attacker: Visitor) -> bool:
    """The victim's code in the attacker's attempt: PKCE."""
    stolen = fields_of(victim.site.provider.answer(victim.begin(), "ada"))
    own = attacker.site.provider.answer(attacker.begin(), "eve")
    return _answered(attacker, _changed(own, code=stolen["code"]))


def _other_nonce(victim: Visitor, attacker: Visitor) -> bool:
    address = _changed(attacker.begin(), nonce="another")
    return _answered(attacker, victim.site.provider.answer(address, "eve"))


def _other_state(victim: Visitor, attacker: Visitor) -> bool:
    address = _changed(attacker.begin(), state="another")
    return _answered(attacker, victim.site.provider.answer(address, "eve"))


def _other_issuer(victim: Visitor, attacker: Visitor) -> bool:
    own = victim.site.provider.answer(attacker.begin(), "eve")
    return _answered(attacker, _changed(own, iss=f"https://{EVIL}"))


def _replayed(victim: Visitor, attacker: Visitor) -> bool:
    address = victim.site.provider.answer(victim.begin(), "ada")
    attempt = dict(victim.cookies)
    assert victim.finish(address).status == 302
    attacker.cookies = attempt
    return _answered(attacker, address)


def _attempt_as_session(victim: Visitor, attacker: Visitor) -> bool:
    victim.begin()
    attacker.cookies = {SESSION: victim.cookies[ATTEMPT]}
    return attacker.name() is not None


def _session_as_attempt(victim: Visitor, attacker: Visitor) -> bool:
    victim.sign_in("ada")
    own = attacker.site.provider.answer(attacker.begin(), "eve")
    attacker.cookies = {ATTEMPT: victim.cookies[SESSION]}
    return _answered(attacker, own)


def _plain_name(victim: Visitor, attacker: Visitor) -> bool:
    """A cookie that a neighbour of the domain may set, because its name has no prefix."""
    victim.sign_in("ada")
    attacker.cookies = {"mlflow-session": victim.cookies[SESSION]}
    return attacker.name() is not None


def _fixed_session(victim: Visitor, attacker: Visitor) -> bool:
    """The attacker's session, planted in a browser, would become its owner's."""
    attacker.sign_in("eve")
    victim.cookies = dict(attacker.cookies)
    victim.sign_in("ada")
    return attacker.name() is not None or victim.name() != "ada@example.org"


def _changed_session(victim: Visitor, attacker: Visitor) -> bool:
    victim.sign_in("ada")
    key, _, sealed = victim.cookies[SESSION].partition(".")
    attacker.cookies = {SESSION: f"{key}.{'B' if sealed[0] == 'A' else 'A'}{sealed[1:]}"}
    return attacker.name() is not None


ATTACKS: Final[tuple[Attack, ...]] = (
    *(_of_another_browser, _without_an_attempt, _injected_code, _other_nonce, _other_state),
    *(_other_issuer, _replayed, _attempt_as_session, _session_as_attempt, _plain_name),
    *(_fixed_session, _changed_session),
)
