"""Attacks on logins by name: each is a function that tries to get in, and returns whether it
did."""

from __future__ import annotations

import json
import time
from collections.abc import Callable, Iterator, Mapping
from hashlib import sha256
from typing import Any, Final

import jwt

from authorizer import app as authorizer
from mlcore.repos.users import api_keys, users
from mlcore.sign_in import cookies
from tests import issuer as issuers
from tests.contract.attacked_site import ADA, Site
from tests.contract.sign_in_attacks import (
    ANSWERS,
    CLAIMS,
    REDIRECTS,
    TOKENS,
    by_public_key,
    forged,
)
from tests.contract.sign_in_browser import (
    CLIENT,
    HOST,
    OTHER,
    SECURE,
    SESSION,
    SIGN_IN,
    Browser,
)

FOREIGN: Final[tuple[Mapping[str, str], ...]] = (
    {"sec-fetch-site": "cross-site", "origin": "https://evil.example"},
    {"sec-fetch-site": "same-site", "origin": f"https://other.{HOST}"},
    {"sec-fetch-site": "none"},
    {"sec-fetch-site": "cross-site"},
    {"sec-fetch-site": ""},
    {"sec-fetch-site": "same-origin, cross-site"},
    {"sec-fetch-site": "SAME-ORIGIN"},
    {"origin": "null"},
    {"origin": "https://evil.example"},
    {"origin": f"https://{HOST}.evil.example"},
    {"origin": f"https://{HOST}:8443"},
    {"origin": f"https://evil@{HOST}"},
    {"origin": "http://localhost:5000"},
    {"origin": ""},
)
"""What browsers send with a request that a page of another site makes."""
SPOOFED: Final = (
    *("x-forwarded-user", "x-mlflow-user", "remote-user", "x-amzn-oidc-data", "x-user"),
    *(
        "x-amzn-oidc-identity",
        "x-auth-request-email",
        "x-webauth-user",
        "username",
        "x-remote-user",
    ),
    *("proxy-authorization", "x-authorization", "www-authenticate", "x-api-key", "cookie"),
)


Attack = Callable[[Site], bool]


def _answered(browser: Browser, query: Any) -> bool:
    page = browser.open("/login/callback", query)
    assert "<script" not in page.body
    return page.status != 400 or browser.user() is not None or SIGN_IN in browser.cookies


def _claims(claims: dict[str, Any]) -> Attack:
    def attack(site: Site) -> bool:
        browser = Browser()
        return browser.sign_in(site.issuer, **claims).status != 400 or browser.cookies != {}

    return attack


def _token(make: Callable[..., Any]) -> Attack:
    def attack(site: Site) -> bool:
        browser = Browser()
        begun = browser.begin()
        query = browser.answer(begun, site.issuer)
        claims = {"aud": CLIENT, "nonce": begun.query()["nonce"]}
        issued = site.issuer.codes[query["code"]]
        issued["id_token"] = make(issued["id_token"], site.issuer, claims)
        return _answered(browser, query)

    return attack


def _answer(change: Callable[..., Any]) -> Attack:
    def attack(site: Site) -> bool:
        browser = Browser()
        return _answered(browser, change(browser.answer(browser.begin(), site.issuer)))

    return attack


def _redirect(address: str) -> Attack:
    def attack(site: Site) -> bool:
        browser = Browser()
        begun = browser.begin(**{"return": address})
        page = browser.open("/login/callback", browser.answer(begun, site.issuer))
        return (page.status, page.location) != (302, "/")

    return attack


def _foreign(headers: Mapping[str, str], method: str) -> Attack:
    return lambda site: site.knows({SESSION: site.session}, method, **dict(headers))


def _spoofed(header: str) -> Attack:
    def attack(site: Site) -> bool:
        values = (ADA, f"Bearer {site.key}", f"{SESSION}={ADA}", site.token())
        return any(site.knows(**{header: value}) for value in values)

    return attack


# ------------------------------------------------------------------ sign-in


def _of_another_browser(site: Site) -> bool:
    victim, attacker = Browser(), Browser()
    victim.begin()
    return _answered(victim, attacker.answer(attacker.begin(), site.issuer, email="eve@x.example"))


def _without_an_attempt(site: Site) -> bool:
    attacker = Browser()
    return _answered(Browser(), attacker.answer(attacker.begin(), site.issuer))


def _injected_code(site: Site) -> bool:
    victim, attacker = Browser(), Browser()
    stolen = victim.answer(victim.begin(), site.issuer)
    state = attacker.begin().query()["state"]
    return _answered(attacker, {**stolen, "state": state})


def _injected_without_pkce(site: Site) -> bool:
    victim, attacker = Browser(), Browser()
    stolen = victim.answer(victim.begin(), site.issuer)
    del site.issuer.challenges[stolen["code"]]
    state = attacker.begin().query()["state"]
    return _answered(attacker, {**stolen, "state": state})


def _replayed_answer(site: Site) -> bool:
    browser = Browser()
    query = browser.answer(browser.begin(), site.issuer)
    before = dict(browser.cookies)
    assert browser.open("/login/callback", query).status == 302
    browser.cookies = before
    return _answered(browser, query)


def _fixed_session(site: Site) -> bool:
    """Whether the attacker's session, planted in a browser, becomes its owner's."""
    attacker, victim = Browser(), Browser()
    attacker.sign_in(site.issuer, email="eve@example.org", sub="eve")
    victim.cookies = dict(attacker.cookies)
    victim.sign_in(site.issuer)
    return attacker.user() is not None or victim.cookies == attacker.cookies


def _same_name_of_another_account(site: Site) -> bool:
    browser = Browser()
    browser.sign_in(site.issuer, sub="somebody else")
    return browser.user() is not None


def _attempt_cookie_as_session(site: Site) -> bool:
    browser = Browser()
    browser.begin()
    return site.knows({SESSION: browser.cookies[SIGN_IN]})


def _host_of_the_attacker(site: Site) -> bool:
    """Whether a forwarded host becomes the address to which the issuer returns."""
    page = Browser().open("/login", **{"x-forwarded-host": "evil.example"})
    return "evil.example" in page.location


# ------------------------------------------------------------------ sessions


def _cookie(change: Callable[[str], str]) -> Attack:
    return lambda site: site.knows({SESSION: change(site.session)})


def _part(session: str, at: int) -> str:
    return session.partition(".")[0 if at == 0 else 2]


def _twice(site: Site) -> bool:
    event = {
        "rawPath": "/",
        "headers": dict(SECURE),
        "cookies": [f"{SESSION}={site.session}", f"{SESSION}=planted"],
        "requestContext": {"http": {"method": "GET", "sourceIp": "192.0.2.1"}},
    }
    return "username" in authorizer.handler(event, None)["context"]


def _after_logout(site: Site) -> bool:
    browser = Browser()
    browser.sign_in(site.issuer)
    stolen = dict(browser.cookies)
    browser.open("/logout")
    return site.knows(stolen)


def _after_the_user(site: Site) -> bool:
    browser = Browser()
    browser.sign_in(site.issuer, email="gone@example.org", sub="gone")
    stolen = dict(browser.cookies)
    users.delete(users.get_profile("gone@example.org"))
    users.create("gone@example.org", "", is_admin=True)
    return site.knows(stolen)


def _beside_a_wrong_login(login: str) -> Attack:
    return lambda site: site.knows({SESSION: site.session}, authorization=login)


# ------------------------------------------------------------------ keys


def _key(change: Callable[[str, str, str], str]) -> Attack:
    return lambda site: site.bearer(change(*site.key.split("_", 2)))


def _fresh_key(site: Site, **fields: Any) -> api_keys.TokenOfKey:
    given = {"name": "k", "workspace": "default", "scopes": None, "expires_at": None, **fields}
    return api_keys.create(site.owner, **given)


def _expired_key(site: Site) -> bool:
    return site.bearer(_fresh_key(site, expires_at=int(time.time() * 1000) - 1).token)


def _revoked_key(site: Site) -> bool:
    made = _fresh_key(site)
    assert site.bearer(made.token)
    api_keys.delete(made.key.key_id)
    return site.bearer(made.token)


def _rotated_key(site: Site) -> bool:
    made = _fresh_key(site)
    api_keys.expire(made.key, int(time.time() * 1000) - 1)
    return site.bearer(made.token)


def _key_of_a_deleted_user(site: Site) -> bool:
    user = users.create("leaver", "", is_admin=True)
    made = api_keys.create(user, "k", "default", None, None)
    users.delete(users.get_profile("leaver"))
    users.create("leaver", "", is_admin=True)
    return site.bearer(made.token)


def _id_of_another_key(site: Site) -> bool:
    prefix, key_id, _ = _fresh_key(site).token.split("_", 2)
    return site.bearer("_".join((prefix, key_id, site.key.split("_", 2)[2])))


def _attacks() -> Iterator[tuple[str, Attack]]:
    for name, claims in CLAIMS.items():
        yield f"ID token: {name}", _claims(claims)
    for name, make in TOKENS.items():
        yield f"ID token: {name}", _token(make)
    for name, change in ANSWERS.items():
        yield f"callback: {name}", _answer(change)
    for address in REDIRECTS:
        yield f"redirect: {address[:40]!r}", _redirect(address)
    for headers in FOREIGN:
        for method in ("POST", "DELETE"):
            yield f"other site: {method} {json.dumps(headers)}", _foreign(headers, method)
    for header in SPOOFED:
        yield f"header: {header}", _spoofed(header)
    for login in ("Bearer wrong", "Basic x", "Digest y", "Negotiate z"):
        yield f"session beside a wrong login: {login}", _beside_a_wrong_login(login)
    yield from SIGN_IN_ATTACKS.items()
    yield from SESSION_ATTACKS.items()
    yield from BEARER_ATTACKS.items()
    yield from KEY_ATTACKS.items()


SIGN_IN_ATTACKS: Final[dict[str, Attack]] = {
    "sign-in: the answer to another browser's attempt": _of_another_browser,
    "sign-in: an answer without an attempt": _without_an_attempt,
    "sign-in: a stolen code, bound by PKCE": _injected_code,
    "sign-in: a stolen code, bound by the nonce alone": _injected_without_pkce,
    "sign-in: the same answer again": _replayed_answer,
    "sign-in: a planted session": _fixed_session,
    "sign-in: the name of another account": _same_name_of_another_account,
    "sign-in: the cookie of an attempt as a session": _attempt_cookie_as_session,
    "sign-in: x-forwarded-host": _host_of_the_attacker,
}
SESSION_ATTACKS: Final[dict[str, Attack]] = {
    "session: empty": _cookie(lambda _: ""),
    "session: without its key": _cookie(lambda session: _part(session, 1)),
    "session: without its content": _cookie(lambda session: f"{_part(session, 0)}."),
    "session: cut": _cookie(lambda session: session[:-2]),
    "session: one bit changed": _cookie(
        lambda session: (
            f"{_part(session, 0)}.{chr(ord(_part(session, 1)[0]) ^ 1)}{_part(session, 1)[1:]}"
        )
    ),
    "session: an unknown key": _cookie(lambda session: f"{'0' * 26}.{_part(session, 1)}"),
    "session: a path as a key": _cookie(lambda session: f"../{session}"),
    "session: too long": _cookie(lambda session: session + "x" * 5_000),
    "session: a guessed id": lambda site: site.knows({SESSION: cookies.seal([ADA, "id"], SESSION)}),
    "session: sealed for another cookie": lambda site: site.knows(
        {SESSION: cookies.seal([ADA, "id"], SIGN_IN)}
    ),
    "session: a name without __Host-": lambda site: site.knows({"mlflow-session": site.session}),
    "session: twice": _twice,
    "session: after the logout": _after_logout,
    "session: of a former user of the name": _after_the_user,
    "session: as a bearer token": lambda site: site.bearer(site.session),
    "session: in the query": lambda site: site.knows(query=f"{SESSION}={site.session}"),
}
BEARER_ATTACKS: Final[dict[str, Attack]] = {
    "bearer: no signature": lambda site: site.bearer(
        forged(site.token(), alg="none").rpartition(".")[0] + "."
    ),
    "bearer: the public key as a secret": lambda site: site.bearer(by_public_key(site.token())),
    "bearer: RS512": lambda site: site.bearer(
        site.issuer.token("k", algorithm="RS512", aud=CLIENT)
    ),
    "bearer: PS256": lambda site: site.bearer(
        site.issuer.token("k", algorithm="PS256", aud=CLIENT)
    ),
    "bearer: another issuer's key": lambda site: site.bearer(
        site.issuer.token("k", OTHER, aud=CLIENT)
    ),
    "bearer: a key in the header": lambda site: site.bearer(
        forged(
            site.issuer.token("k", OTHER, aud=CLIENT),
            jwk=jwt.algorithms.RSAAlgorithm.to_jwk(OTHER.public_key()),
        )
    ),
    "bearer: an elliptic key": lambda site: site.bearer(
        site.issuer.token("k", issuers.ec_key(), aud=CLIENT)
    ),
    "bearer: a list as the key's id": lambda site: site.bearer(forged(site.token(), kid=["k"])),
    "bearer: critical fields": lambda site: site.bearer(forged(site.token(), crit=["exp"])),
    "bearer: expired": lambda site: site.bearer(site.token(exp=int(time.time()) - 61)),
    "bearer: without an end": lambda site: site.bearer(site.token(exp=None)),
    "bearer: not valid yet": lambda site: site.bearer(site.token(nbf=int(time.time()) + 10_000)),
    "bearer: another audience": lambda site: site.bearer(site.token(aud="another")),
    "bearer: another issuer": lambda site: site.bearer(site.token(iss="https://elsewhere")),
    "bearer: an unchecked address": lambda site: site.bearer(site.token(email_verified=False)),
    "bearer: as a password": lambda site: site.basic(ADA, site.token()),
    "bearer: in the query": lambda site: site.knows(query=f"access_token={site.token()}"),
    "bearer: too long": lambda site: site.bearer(site.token() + "x" * 20_000),
}
KEY_ATTACKS: Final[dict[str, Attack]] = {
    "key: expired": _expired_key,
    "key: revoked": _revoked_key,
    "key: rotated": _rotated_key,
    "key: of a former user of the name": _key_of_a_deleted_user,
    "key: the id of another key": _id_of_another_key,
    "key: upper case": _key(lambda *parts: "_".join(parts).upper()),
    "key: cut": _key(lambda *parts: "_".join(parts)[:-1]),
    "key: extended": _key(lambda *parts: "_".join(parts) + "A"),
    "key: a zero byte": _key(lambda *parts: "_".join(parts) + "\0"),
    "key: a space inside": _key(lambda prefix, key_id, secret: f"{prefix}_{key_id}_ {secret}"),
    "key: an unknown id": _key(lambda prefix, key_id, secret: f"{prefix}_0{key_id}_{secret}"),
    "key: another secret": _key(lambda prefix, key_id, _: f"{prefix}_{key_id}_{'A' * 43}"),
    "key: the secret alone": _key(lambda _prefix, _id, secret: secret),
    "key: the id alone": _key(lambda prefix, key_id, _: f"{prefix}_{key_id}_"),
    "key: its hash": _key(
        lambda prefix, key_id, secret: (
            f"{prefix}_{key_id}_"
            + sha256("_".join((prefix, key_id, secret)).encode()).hexdigest()[:43]
        )
    ),
    "key: under another name": lambda site: site.basic("eve", site.key),
    "key: under the name in capitals": lambda site: site.basic(ADA.upper(), site.key),
    "key: as the name": lambda site: site.basic(site.key, ""),
    "key: in a cookie": lambda site: site.knows({SESSION: site.key}),
    "key: in the query": lambda site: site.knows(query=f"api_key={site.key}"),
    "key: two schemes": lambda site: site.knows(authorization=f"Bearer Bearer {site.key}"),
    "key: two logins": lambda site: site.knows(authorization=f"Bearer {site.key}, Bearer x"),
}
ATTACKS: Final = dict(_attacks())
