"""Who may do what in the skill registry: each request by users whose grants differ, against
stock."""

from __future__ import annotations

import json
import re
from typing import Any

import pytest

from tests.contract import skill_archives as archives
from tests.contract.skill_requests import DIGEST, GIT, ROOT
from tests.differential.auth_pair import Both
from tests.differential.rest import Call, Reply, Side
from tests.servers import ADMIN

pytestmark = [pytest.mark.e2e, pytest.mark.timeout(240)]
Login = tuple[str, str]
LEVELS = ("READ", "EDIT", "MANAGE", "DENY")
GRANTS = "/api/3.0/mlflow/users/permissions"
FILES = "/api/2.0/mlflow-artifacts/artifacts"


def _plain(reply: Reply) -> tuple[int, str]:
    """Without times, ids and tokens. The text of a refusal by an error code is not compared."""
    body = reply.body
    if isinstance(body, dict) and "detail" in body:
        body = "refused"
    if reply.status == 403:
        return 403, ""
    text = json.dumps(body, sort_keys=True)
    text = re.sub(r'"next_page_token": "[^"]+"', "<token>", text)
    text = re.sub(r"\b[0-9a-f]{32}\b", "<upload>", text)
    return reply.status, re.sub(r"\b1[0-9]{12}\b", "<time>", text)


def send(method: str, path: str, body: Any = None, **more: Any) -> Call:
    return Call(method, ROOT + path, body, **more)


def read(path: str, **query: Any) -> Call:
    return Call("GET", ROOT + path, query=query or None)


def _upload(skill: str) -> Call:
    content = archives.upload(archives.archive(archives.FILES))
    return Call(
        "POST",
        f"{ROOT}/{skill}/versions",
        raw=content,
        content_type=archives.MULTIPART,
        saves={"source": "source"},
    )


def _requests(skill: str, name: str) -> list[Call]:
    """Reads first, then what changes, at last what takes away."""
    source = {"source": GIT}
    new_skill = {"name": name, "source": GIT, "digest": DIGEST}
    organization = skill[1:].partition("/")[0] if skill.startswith("@") else ""
    return [
        read("", filter_string=f"name = '{name}'"),
        read("", include_skill_identities=skill),
        read(f"/{skill}"),
        read(f"/{skill}/versions"),
        read(f"/{skill}/versions/1"),
        read(f"/{skill}/versions/99"),
        read(f"/{skill}/aliases/champion"),
        read(f"/{skill}/aliases/latest"),
        Call("GET", FILES, query={"path": f"skills/{skill}"}),
        Call("GET", f"{FILES}/skills/{skill}/none/SKILL.md"),
        send("PATCH", f"/{skill}", {"description": "x"}),
        send("PATCH", f"/{skill}", {"description": 7}),
        send("POST", f"/{skill}/tags", {"key": "k", "value": "v"}),
        send("POST", f"/{skill}/tags", {"key": 7}),
        send("POST", f"/{skill}/aliases", {"alias": "a", "version": 1}),
        send("POST", f"/{skill}/versions/1/tags", {"key": "k", "value": "v"}),
        send("POST", f"/{skill}/versions", source),
        send("POST", f"/{skill}/versions", {}),
        _upload(skill),
        send("POST", "", {"name": name, "organization": organization}),
        send("POST", "/bulk-register", {"organization": organization, "skills": [new_skill]}),
        send("PATCH", f"/{skill}/versions/2", {"status": "draft"}),
        send("PATCH", f"/{skill}/versions/2", {"status": "deleted"}),
        send("DELETE", f"/{skill}/tags/k"),
        send("DELETE", f"/{skill}/aliases/a"),
        send("DELETE", f"/{skill}/versions/1/tags/k"),
        send("PATCH", f"/{skill}/versions/1", {"status": "draft"}),
        send("DELETE", f"/{skill}/versions/1"),
        send("DELETE", f"/{skill}"),
    ]


@pytest.mark.parametrize("organization", ["", "acme"])
def test_rights(guarded: list[Side], organization: str) -> None:
    both = Both(guarded)
    owner, *others = both.users("owner", *LEVELS, "nobody")
    differences = []

    def compare(login: Login, call: Call) -> None:
        stock, ours = map(_plain, both.replies(login, call))
        if stock != ours:
            differences.append(f"{login[0]}: {call}\n  {stock}\n  {ours}")

    for number, other in enumerate(others):
        name = f"s-{both.name}-{number}"
        skill = f"@{organization}/{name}" if organization else name
        compare(owner, _upload(skill))
        compare(owner, send("POST", f"/{skill}/aliases", {"alias": "champion", "version": 1}))
        if number < len(LEVELS):
            fields = {"username": other[0], "resource_type": "skill", "resource_id": skill}
            granted = {**fields, "permission": LEVELS[number]}
            replies = both.replies(ADMIN, Call("POST", f"{GRANTS}/grant", granted))
            assert [reply.status for reply in replies] == [200, 200], replies
        for call in _requests(skill, name):
            compare(other, call)
        compare(ADMIN, read(f"/{skill}"))
        compare(owner, send("DELETE", f"/{skill}"))
        for call in _requests(skill, name)[:4]:
            compare(other, call)
        compare(other, send("PATCH", f"/{skill}", {"description": "x"}))
        compare(other, send("DELETE", f"/{skill}"))
        compare(other, send("POST", f"/{skill}-own/versions", {"source": GIT}))
        compare(other, read(f"/{skill}-own"))
        made = {"name": f"{name}-made", "organization": organization}
        compare(other, send("POST", "", made))
        compare(other, send("PATCH", f"/{skill}-made", {"description": "mine"}))
        compare(other, send("DELETE", f"/{skill}-made"))
        compare(other, send("DELETE", f"/{skill}-own"))
        compare(other, Call("GET", FILES, query={"path": "skills"}))
        compare(other, Call("GET", FILES, query={"path": "skills/@acme"}))
        for path in (f"skills/{skill}/x", "skills/x", "Skills/x", "%73kills/x"):
            compare(other, Call("PUT", f"{FILES}/{path}", raw=b"x", content_type="text/plain"))
            compare(other, Call("DELETE", f"{FILES}/{path}"))
            compare(ADMIN, Call("DELETE", f"{FILES}/{path}"))
    both.check()
    assert not differences, f"{len(differences)} differences\n" + "\n".join(differences)


def test_grants_of_skills(guarded: list[Side]) -> None:
    both = Both(guarded)
    (user,) = both.users("granted")
    for resource in (
        "a",
        "@acme/a",
        "*",
        "",
        "@acme",
        "@/a",
        "a/b",
        "@a/b/c",
        "Bad_",
        "never-made",
    ):
        for level in ("READ", "USE", "EDIT", "MANAGE", "DENY", "NO_PERMISSIONS", "none"):
            fields = {"username": user[0], "resource_type": "skill", "resource_id": resource}
            both.ask(ADMIN, Call("POST", f"{GRANTS}/grant", {**fields, "permission": level}))
            both.ask(ADMIN, Call("GET", f"{GRANTS}/get", query=fields))
            both.ask(ADMIN, Call("POST", f"{GRANTS}/revoke", fields))
            both.ask(user, Call("POST", f"{GRANTS}/grant", {**fields, "permission": level}))
    both.check()
