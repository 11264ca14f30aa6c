"""The skill registry under concurrent writers, repeated requests, and calls that end anywhere."""

from __future__ import annotations

import itertools
from concurrent.futures import ThreadPoolExecutor
from typing import Any

import pytest

from mlcore.auth.permissions import SKILL, Grant
from mlcore.db import capacity
from mlcore.entities.skills import SkillIdentity
from mlcore.optimistic_retry import WriteConflict
from mlcore.repos import skills
from mlcore.repos.users import grants, users
from tests.contract.api import Api
from tests.contract.conftest import Store, enable_workspaces
from tests.contract.skill_api import Reply, ask
from tests.contract.skill_requests import DIGEST, GIT, get, send, version
from tests.doubles.faulty import Fault
from tests.doubles.fixtures import Doubles

ENDS = (Fault.DEAD, Fault.DEAD_AFTER, Fault.ANSWER_LOST)
FAULTS = pytest.mark.parametrize("fault", ENDS, ids=lambda fault: fault.name)


def _all(*calls: Any, **how: Any) -> list[Reply]:
    with ThreadPoolExecutor(8) as pool:
        return list(pool.map(lambda call: ask(call, **how), calls))


def _bulk(names: list[str], **more: Any) -> Any:
    each = [{"name": name, "source": GIT, "digest": DIGEST, **more} for name in names]
    return send("POST", "/bulk-register", {"skills": each})


def test_each_of_many_creators_gets_a_number_of_its_own(store: Store) -> None:
    """MLflow's server gives up on some of them."""
    replies = _all(*[version("busy", ref=str(number)) for number in range(30)])
    assert {reply.status for reply in replies} == {200}
    assert sorted(reply.body["version"] for reply in replies) == list(range(1, 31))
    stored = ask(get("/busy/versions?max_results=1000")).body["skill_versions"]
    assert {(each["version"], each["ref"]) for each in stored} == {
        (reply.body["version"], reply.body["ref"]) for reply in replies
    }


def test_one_of_many_creators_of_a_skill_wins(store: Store) -> None:
    replies = _all(*[send("POST", "", {"name": "one"})] * 16)
    assert sorted(reply.status for reply in replies) == [200, *[400] * 15]
    assert {reply.code for reply in replies} == {"", "RESOURCE_ALREADY_EXISTS"}


def test_equal_batches_at_once_make_one_version(store: Store) -> None:
    replies = _all(*[_bulk(["b1", "b2"])] * 8)
    assert {reply.status for reply in replies} == {200}
    numbers = {version["version"] for reply in replies for version in reply.body["skill_versions"]}
    assert numbers == {1}
    assert ask(get("/b1")).body["latest_version"] == 1


def test_changes_of_a_skill_at_once_are_all_kept(store: Store) -> None:
    ask(version("shared"))
    tags = [send("POST", "/shared/tags", {"key": f"k{n}", "value": "v"}) for n in range(12)]
    aliases = [send("POST", "/shared/aliases", {"alias": f"a{n}", "version": 1}) for n in range(12)]
    assert {reply.status for reply in _all(*tags, *aliases)} == {200}
    skill = ask(get("/shared")).body
    assert (len(skill["tags"]), len(skill["aliases"])) == (12, 12)


def test_a_deleted_version_has_no_alias_whoever_was_first(store: Store) -> None:
    for number in range(1, 9):
        ask(version("race", status="draft"))
        gone = send("DELETE", f"/race/versions/{number}")
        named = send("POST", "/race/aliases", {"alias": "prod", "version": number})
        statuses = [reply.status for reply in _all(gone, named)]
        assert statuses[0] == 200
        assert statuses[1] in {200, 404}
        assert ask(get("/race/aliases/prod")).status == 404
        assert ask(get("/race")).body["aliases"] == []


def test_a_skill_made_again_is_not_changed_by_who_read_the_former_one(store: Store) -> None:
    """Even though the revisions are equal."""
    identity = SkillIdentity("", "again")
    ask(version("again"))
    skill, old = skills.find_with_version("default", identity, 1)
    assert skill is not None
    assert old is not None
    ask(send("DELETE", "/again"))
    ask(version("again", ref="new"))
    with pytest.raises(WriteConflict):
        skills.write_version(old._replace(tags={"k": "v"}))
    with pytest.raises(WriteConflict):
        skills.write(skill._replace(description="old"))
    body = ask(get("/again/versions/1")).body
    assert (body["ref"], body["tags"]) == ("new", {})


@FAULTS
def test_a_batch_that_was_cut_off_is_completed_by_its_repetition(
    broken: tuple[Api, Doubles], fault: Fault
) -> None:
    """Larger than a transaction; what was written is complete, and nothing is made twice."""
    _, doubles = broken
    for nth in itertools.count(1):
        names = [f"s{nth}-{number}" for number in range(100)]
        doubles.faulty.arm(fault, nth)
        ask(_bulk(names))
        fired = doubles.faulty.fired
        doubles.faulty.heal()
        for name in names[::9]:
            skill = ask(get(f"/{name}"))
            assert skill.status == 404 or skill.body["latest_version"] == 1
        reply = ask(_bulk(names))
        assert [each["name"] for each in reply.body["skill_versions"]] == names
        assert {each["version"] for each in reply.body["skill_versions"]} == {1}
        if not fired:
            break


@FAULTS
def test_deleting_a_skill_of_many_versions_is_completed_by_its_repetition(
    broken: tuple[Api, Doubles], fault: Fault
) -> None:
    _, doubles = broken
    user = users.create(f"deleter {fault.name}", "", is_admin=False)
    for nth in itertools.count(1):
        name = f"large-{nth}"
        for _ in range(45):
            assert ask(version(name), user=user.username).status == 200
        assert ask(send("DELETE", f"/{name}/versions/45"), user=user.username).status == 400
        doubles.faulty.arm(fault, nth)
        ask(send("DELETE", f"/{name}"), user=user.username)
        fired = doubles.faulty.fired
        doubles.faulty.heal()
        assert ask(send("DELETE", f"/{name}"), user=user.username).status in {200, 403, 404}
        assert ask(get(f"/{name}")).status == 404
        assert grants.find(user, "default", SKILL, name) is None
        fresh = ask(version(name), user=user.username)
        assert (fresh.status, fresh.body["version"]) == (200, 1)
        listed = ask(get(f"/{name}/versions"), user=user.username).body["skill_versions"]
        assert [each["version"] for each in listed] == [1]
        if not fired:
            break


@FAULTS
def test_the_creator_manages_what_exists(broken: tuple[Api, Doubles], fault: Fault) -> None:
    _, doubles = broken
    for nth in itertools.count(1):
        user = users.create(f"maker {fault.name} {nth}", "", is_admin=False)
        for call, names in (
            (send("POST", "", {"name": f"made-{nth}"}), [f"made-{nth}"]),
            (version(f"versioned-{nth}"), [f"versioned-{nth}"]),
            (_bulk([f"b-{nth}", f"c-{nth}"]), [f"b-{nth}", f"c-{nth}"]),
        ):
            doubles.faulty.arm(fault, nth)
            reply = ask(call, user=user.username)
            fired = doubles.faulty.fired
            doubles.faulty.heal()
            for name in names:
                there = skills.find("default", SkillIdentity("", name)) is not None
                assert there or reply.status != 200
                held = grants.find(user, "default", SKILL, name)
                assert (held is not None) == there
        if not fired:
            break


def test_registering_is_refused_when_the_skill_changed_hands_meanwhile(
    store: Store, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Between the check of the rights and the write somebody else makes the skill."""
    for name in ("amy", "ben"):
        users.create(name, "", is_admin=False)
    find = skills.find

    def made_meanwhile(workspace: str, identity: SkillIdentity) -> Any:
        monkeypatch.setattr(skills, "find", find)
        assert ask(version(identity.name), user="amy").status == 200
        return find(workspace, identity)

    monkeypatch.setattr(skills, "find", made_meanwhile)
    reply = ask(version("taken", ref="of-ben"), user="ben")
    assert (reply.status, reply.code) == (409, "RESOURCE_CONFLICT")
    assert "already exists; this registration expected to create it." in reply.body["message"]
    assert ask(get("/taken")).body["latest_version"] == 1


def test_many_grants_go_with_their_skill(store: Store) -> None:
    guests = [users.create(f"guest {number}", "", is_admin=False) for number in range(60)]
    ask(version("granted"), user=guests[0].username)
    for guest in guests[1:]:
        grants.create(guest, "default", Grant(SKILL, "granted", "EDIT"))
    assert ask(send("DELETE", "/granted"), user=guests[0].username).status == 200
    assert not grants.holders("default", SKILL, "granted")


def test_workspaces_hold_skills_of_the_same_name(
    store: Store, monkeypatch: pytest.MonkeyPatch
) -> None:
    enable_workspaces(monkeypatch, "team")
    for number in range(3):
        assert ask(version("same", ref=str(number)), workspace="team").status == 200
    assert ask(get("/same")).status == 404
    assert ask(version("same")).body["version"] == 1
    assert ask(get("/same"), workspace="team").body["latest_version"] == 3
    page = ask(get("/same/versions?max_results=1"), workspace="team").body
    token = page["next_page_token"]
    assert token
    refused = ask(get(f"/same/versions?max_results=1&page_token={token}"))
    assert "different query scope" in refused.body["message"]
    assert ask(get(""), workspace="nope").status == 404


def test_pages_hold_every_skill_once_while_others_come_and_go(store: Store) -> None:
    names = [f"p{number:03d}" for number in range(40)]
    ask(_bulk(names))
    listed: list[str] = []
    token = ""
    for turn in itertools.count():
        page = ask(get(f"?max_results=7&order_by=name+DESC&page_token={token}")).body
        listed += [skill["name"] for skill in page["skills"]]
        ask(send("POST", "", {"name": f"z{turn}"}))
        ask(send("DELETE", f"/{listed[0]}"))
        token = page["next_page_token"]
        if not token:
            break
    assert listed == names[::-1]


def test_budgets(store: Store) -> None:
    """Round trips, and capacity that does not grow with other skills."""

    def cost(call: Any) -> tuple[int, float, float]:
        assert ask(call).status == 200
        last = capacity.last_measurement()
        assert last is not None
        return last.round_trips, last.read_units, last.write_units

    ask(version("measured"))
    reads = [cost(get(path)) for path in ("/measured", "/measured/versions/1")]
    ask(_bulk([f"other-{number}" for number in range(120)]))
    assert [cost(get(path)) for path in ("/measured", "/measured/versions/1")] == reads
    assert [read[0] for read in reads] == [1, 1]
    assert max(read[1] for read in reads) <= 2
    trips, _, written = cost(version("measured"))
    assert (trips, written <= 4) == (2, True), written
    trips, _, written = cost(_bulk([f"batch-{number}" for number in range(30)]))
    assert (trips, written <= 2 * 60 + 2) == (2, True), written
