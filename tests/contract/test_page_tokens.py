"""Page tokens of every listing, used by another user and in another workspace, forged, mutilated or
another listing's, show nothing foreign and are at worst the caller's mistake."""

from __future__ import annotations

import base64
import binascii
import json
import random
from collections.abc import Iterator
from pathlib import Path
from typing import Any, Final, NamedTuple

import pytest

from mlcore.auth.permissions import Grant
from mlcore.environment import AUTHENTICATION
from mlcore.repos.settings import system_tables_readers
from mlcore.repos.users import grants, users
from tests.contract.conftest import EXAMPLES, Store, enable_workspaces
from tests.contract.kubeflow_users import caller_of
from tests.contract.page_listings import (
    LISTINGS,
    SECRET,
    SECRET_VALUE,
    WITHOUT_PAGES,
    Listing,
    TeamWorld,
    pages,
    routes_with_tokens,
)
from tests.contract.sealing import seal_here

TEAMS: Final = ("team-a", "team-b")
THINGS: Final = 3
"""What each user makes of what a listing has."""
FORGED: Final = 30 if EXAMPLES == 1 else 60 * EXAMPLES
SCALARS: Final[list[Any]] = [
    *(None, True, "", "x", "\ud800", "é" * 3000, 0, -1, 10**400, -(10**400), 2**63, -(2**63) - 1),
    *(1.5, 1e308, float("nan"), float("inf"), [], [1], {}, {"a": 1}, "2026-01-01", 10**18, 10**14),
]
RUBBISH: Final = (
    *("%%%", "a", "é", "====", "AAAA", "A" * 1_000_000, "🙂", "\x00", "null", "0", "-1"),
    *(base64.urlsafe_b64encode(text).decode() for text in (b"[" * 100_000, b"9" * 5000, b"\xff")),
)
OTHER_TYPES: Final = (5, True, 1.5, [], ["x"], {}, {"a": 1})


class Worlds(NamedTuple):
    amy: TeamWorld
    """Makes what others may not see, in the first team."""
    others: tuple[TeamWorld, ...]
    """Another user in the same and in another workspace, and the owner in another workspace."""


@pytest.fixture
def worlds(store: Store, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Worlds:
    monkeypatch.setenv("DEFAULT_PERMISSION", "NO_PERMISSIONS")
    monkeypatch.setenv(AUTHENTICATION, "basic")
    enable_workspaces(monkeypatch, *TEAMS)
    seal_here(monkeypatch, tmp_path)
    users.create("admin", "", is_admin=True)
    for name in ("amy", "ben"):
        users.ensure(name)
        system_tables_readers.grant(name, TEAMS)
        for team in TEAMS:
            grants.put(users.get(name), team, Grant("workspace", "*", "USE"))
    amy, ben = caller_of("basic", "amy"), caller_of("basic", "ben")
    places = ((ben, "team-a"), (ben, "team-b"), (amy, "team-b"))
    return Worlds(
        TeamWorld(amy, "team-a", SECRET),
        tuple(TeamWorld(caller, team, "own") for caller, team in places),
    )


def make(worlds: Worlds, listing: Listing) -> None:
    """Everybody makes what the listing has; then the other user leaves the owner's team."""
    for world in (worlds.amy, *worlds.others):
        for _ in range(THINGS):
            world.make(listing)
    grants.delete(users.get("ben"), "team-a", "workspace", "*")
    system_tables_readers.grant("ben", TEAMS[1:])


def decoded(token: str) -> Any:
    """The JSON in a token; None if it has none."""
    try:
        return json.loads(base64.urlsafe_b64decode(token))
    except (binascii.Error, ValueError, RecursionError):
        return None


def encoded(content: Any) -> str:
    return base64.urlsafe_b64encode(json.dumps(content).encode()).decode()


def changed(content: Any) -> Iterator[Any]:
    """Copies of the JSON in a token, each with a scalar replaced or with another shape."""
    if isinstance(content, list):
        for place, part in enumerate(content):
            for new in changed(part):
                yield [*content[:place], new, *content[place + 1 :]]
        yield from (content[:-1], [*content, 0], [content], [*content, *content])
    elif isinstance(content, dict):
        for key, part in content.items():
            for new in changed(part):
                yield {**content, key: new}
        yield from ({}, {**content, "other": 1}, [content])
    else:
        yield from SCALARS


def forged(token: str, rng: random.Random) -> Iterator[str]:
    contents = list(changed(decoded(token)))
    yield from map(encoded, rng.sample(contents, min(FORGED, len(contents))))
    for place in rng.choices(range(1, len(token)), k=FORGED // 8):
        yield token[:place]
        yield token[:place] + rng.choice("ABab019_-=+/% é\0") + token[place + 1 :]


def transplanted(token: str, position: str) -> str:
    """A token of a query with the position in another token."""
    query, place = decoded(token), decoded(position)
    if isinstance(query, list) and isinstance(place, list):
        return encoded([query[0], *place[1:]])
    return encoded(
        {**place, **query} if isinstance(query, dict) and isinstance(place, dict) else place
    )


def foreign(owner: TeamWorld, text: str, token: str = "") -> list[str]:
    """What an answer shows of the owner's, but for what the token says."""
    said = json.dumps(decoded(token)) if token else ""
    markers = (SECRET, str(SECRET_VALUE), *owner.ids)
    return [marker for marker in markers if marker in text and marker not in said]


def test_every_listing_is_known() -> None:
    assert {listing.route for listing in LISTINGS} | set(WITHOUT_PAGES) == routes_with_tokens()


@pytest.mark.parametrize("listing", LISTINGS, ids=lambda listing: listing.route)
def test_tokens_show_nothing_foreign(worlds: Worlds, listing: Listing) -> None:
    make(worlds, listing)
    amy = worlds.amy
    failed: list[tuple[Any, ...]] = []
    listed = list(pages(amy, listing))
    tokens = [token for _, token in listed if token]
    assert len(tokens) >= THINGS - 1
    assert listing.is_shared or any(foreign(amy, text) for text, _ in listed)
    for world in worlds.others:
        own = list(pages(world, listing)) if world.page(listing)[0] == 200 else []
        made_up = [transplanted(own[0][1], token) for token in tokens if own and own[0][1]]
        for token in ("", *tokens, *made_up):
            for owner in (world, amy):
                status, text = world.page(listing, token, owner)
                shown = foreign(amy, text, token) if status == 200 or owner is world else []
                if status not in {200, 400, 403, 404} or (shown and not listing.is_shared):
                    failed.append((world.workspace, owner.marker, token, status, shown, text[:300]))
    rng = random.Random(listing.route)
    for sent in (*forged(tokens[0], rng), *RUBBISH, *OTHER_TYPES):
        status, text = amy.page(listing, sent)
        if status not in {200, 400, 422}:
            failed.append((str(sent)[:200], status, text[:300]))
        elif status == 200 and isinstance(sent, str):
            assert len(list(pages(amy, listing, sent))) <= len(listed)
    assert not failed, "\n".join(map(str, failed))


def test_positions_of_other_listings_fail_nothing(worlds: Worlds) -> None:
    amy, tokens = worlds.amy, {}
    for listing in LISTINGS:
        for _ in range(THINGS):
            amy.make(listing)
        tokens[listing.route] = next(pages(amy, listing))[1]
    failed = []
    for listing in LISTINGS:
        amy.make(listing)  # the listing is of what was named last
        for other, token in tokens.items():
            for sent in (token, transplanted(tokens[listing.route], token)):
                status, text = amy.page(listing, sent)
                if status not in {200, 400, 422}:
                    failed.append((listing.route, other, status, text[:200]))
    assert not failed, "\n".join(map(str, failed))
