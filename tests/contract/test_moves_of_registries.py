"""Moves of webhooks, MCP servers and skills to another workspace that are killed and repeated, and
that meet a change: nothing is lost, and nothing that was deleted comes back."""

from __future__ import annotations

import itertools
from collections.abc import Callable
from pathlib import Path
from typing import Any, NamedTuple

import pytest

from mlcore.db import item_size
from mlcore.db.table import table
from mlcore.entities.mcp_servers import MCPServer, MCPServerVersion
from mlcore.entities.mcp_servers import VersionState as ServerVersionState
from mlcore.entities.skills import (
    GIT,
    Skill,
    SkillIdentity,
    SkillSource,
    SkillVersion,
    VersionState,
)
from mlcore.entities.webhooks import ACTIVE, Webhook
from mlcore.entities.workspaces import Workspace
from mlcore.optimistic_retry import WriteConflict, retry_on_conflict
from mlcore.repos import mcp_servers, skills, webhooks
from mlcore.repos.removal import workspace_moves
from mlcore.repos.workspaces import workspaces
from mlcore.webhooks import secret_values
from tests.contract.interleaved_calls import Act, meetings
from tests.contract.logged_runs import killed_at
from tests.contract.sealing import seal_here
from tests.contract.workspace_calls import world

__all__ = ["world"]


@pytest.fixture(autouse=True)
def key(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    seal_here(monkeypatch, tmp_path)


MADE = 1_700_000_000_000
NUMBERS = range(1, 4)
names = itertools.count()


class Kind(NamedTuple):
    """How entities of a kind are made, moved, changed and read. A function gets a workspace and a
    name."""

    make: Callable[[str, str], Any]
    move: Callable[[str, str], None]
    change: Callable[[Any], Any]
    delete: Callable[[Any], None]
    find: Callable[[str, str], Any]
    content: Callable[[str, str], Any]


def new_server(workspace: str, name: str) -> None:
    versions = {str(n): ServerVersionState("active", MADE) for n in NUMBERS}
    server = MCPServer(
        *(workspace, name, None, None, None, {}, {"a": "1"}, versions, {}, None, None, MADE, MADE)
    )
    mcp_servers.write(
        server,
        puts=[
            MCPServerVersion(workspace, name, n, {}, None, None, None, {}, None, None, MADE, MADE)
            for n in versions
        ],
    )


def new_skill(workspace: str, name: str) -> None:
    identity, source = SkillIdentity("", name), SkillSource(GIT, "git@x", None, None, None)
    states = {n: VersionState("active", GIT, source.fingerprint()) for n in NUMBERS}
    skill = Skill(
        *(workspace, identity, None, None, {}, {"a": 1}, states, 3, None, None, MADE, MADE)
    )
    skills.write(
        skill,
        puts=[
            SkillVersion(workspace, identity, n, source, {}, None, None, MADE, MADE, "active")
            for n in NUMBERS
        ],
    )


def found_skill(workspace: str, name: str) -> Any:
    return skills.find(workspace, SkillIdentity("", name))


def moved_by(find: Callable[[str, str], Any], move: Callable[[Any, str], None]) -> Any:
    """The move of what a workspace has when it begins, as the removal of a workspace does it."""

    def repeated(workspace: str, name: str) -> None:
        def attempt() -> None:
            if (entity := find(workspace, name)) is not None:
                move(entity, "default")

        retry_on_conflict("entity", attempt)

    return repeated


def change_version(entity: Any) -> Any:
    """The last version, which does not change the item of its server or skill."""
    if isinstance(entity, MCPServer):
        _, versions = mcp_servers.find_with_versions(entity.workspace, entity.name)
        return lambda: mcp_servers.write_version(versions[-1]._replace(tags={"new": "1"}))
    _, listed = skills.find_with_versions(entity.workspace, entity.identity)
    return lambda: skills.write_version(listed[-1]._replace(tags={"new": "1"}))


def server_content(workspace: str, name: str) -> Any:
    server, versions = mcp_servers.find_with_versions(workspace, name)
    tags = [(version.version, version.tags) for version in versions]
    return server and (server.description, server.aliases, tags)


def skill_content(workspace: str, name: str) -> Any:
    skill, versions = skills.find_with_versions(workspace, SkillIdentity("", name))
    tags = [(version.number, version.tags) for version in versions]
    return skill and (skill.description, skill.aliases, skill.last_number, tags)


def webhook_content(workspace: str, name: str) -> Any:
    hook = webhooks.find(workspace, name)
    return hook and (hook.name, hook.description, secret_values.open_secret(hook))


def new_webhook(workspace: str, name: str) -> None:
    sealed = secret_values.seal("secret", workspace, name)
    webhooks.put(Webhook(name, workspace, name, "https://x", (), ACTIVE, "", sealed, MADE, MADE))


def changing_webhook(entity: Webhook) -> Act:
    def change() -> None:
        if webhooks.change(entity, {"description": "new"}) is None:
            raise LookupError(entity.webhook_id)

    return change


KINDS = {
    "webhook": Kind(
        new_webhook,
        moved_by(webhooks.find, workspace_moves.webhook),
        changing_webhook,
        webhooks.delete,
        webhooks.find,
        webhook_content,
    ),
    "server": Kind(
        new_server,
        moved_by(mcp_servers.find, mcp_servers.move),
        lambda server: lambda: mcp_servers.write(server._replace(description="new")),
        mcp_servers.delete,
        mcp_servers.find,
        server_content,
    ),
    "skill": Kind(
        new_skill,
        moved_by(found_skill, skills.move),
        lambda skill: lambda: skills.write(skill._replace(description="new")),
        skills.delete,
        found_skill,
        skill_content,
    ),
}
KINDS["version of a server"] = KINDS["server"]._replace(change=change_version)
KINDS["version of a skill"] = KINDS["skill"]._replace(change=change_version)


def made(kind: Kind) -> tuple[str, str]:
    """A workspace with an entity; returns both names."""
    name = f"team-{next(names)}"
    workspaces.create(Workspace(name, None))
    kind.make(name, name)
    return name, name


@pytest.mark.parametrize(
    ("named", "operations", "size"),
    [
        ("webhook", 100, 10_000),
        ("server", 100, 10_000),
        ("skill", 100, 10_000),
        ("server", 100, 1),
        ("skill", 4, 10_000),
        ("server", 4, 1),
    ],
)
def test_what_was_deleted_after_a_killed_move_stays_deleted(
    world: Any, monkeypatch: pytest.MonkeyPatch, named: str, operations: int, size: int
) -> None:
    """And what was not is complete, and in one workspace only; with transactions that have room for
    all, for no copies of the versions, and for few deletions."""
    monkeypatch.setattr(item_size, "TRANSACTION_OPERATIONS", operations)
    monkeypatch.setattr(item_size, "TRANSACTION_BYTES", size)
    kind = KINDS[named]
    for step in itertools.count():
        request, deletes = divmod(step, 2)
        workspace, name = made(kind)
        content = kind.content(workspace, name)
        with killed_at(request, []) as arrived:
            kind.move(workspace, name)
        is_there = kind.find("default", name) is not None
        if deletes and is_there:
            assert kind.content("default", name) == content
            kind.delete(kind.find("default", name))
        kind.move(workspace, name)
        assert kind.find(workspace, name) is None, arrived
        assert not list(table.query_all(f"MCPSERVER#{workspace}#{name}"))
        assert not list(table.query_all(f"SKILL#{workspace}##{name}"))
        expected = None if deletes and is_there else content
        assert kind.content("default", name) == expected, arrived
        if len(arrived) < request:
            return


@pytest.mark.parametrize(
    ("named", "operations"),
    [
        *((named, 100) for named in KINDS),
        ("version of a server", 4),
        ("version of a skill", 4),
    ],
)
def test_a_change_beside_a_move_is_kept(
    world: Any, monkeypatch: pytest.MonkeyPatch, named: str, operations: int
) -> None:
    """If it was acknowledged; also that of a version for which the transaction has no room."""
    monkeypatch.setattr(item_size, "TRANSACTION_OPERATIONS", operations)
    kind, places = KINDS[named], list[tuple[str, str]]()

    def prepare() -> tuple[Act, Act]:
        workspace, name = made(kind)
        places.append((workspace, name))
        return lambda: kind.move(workspace, name), kind.change(kind.find(workspace, name))

    kept = 0
    for moved, changed in meetings(prepare):
        assert moved is None
        workspace, name = places[-1]
        has_change = "new" in str(kind.content("default", name))
        assert kind.find(workspace, name) is None
        assert has_change == (not isinstance(changed, Exception)), changed
        kept += has_change
    assert 0 < kept < len(places)


@pytest.mark.parametrize("named", ["server", "skill"])
def test_a_move_overwrites_nothing_of_that_name(world: Any, named: str) -> None:
    """That another request creates while versions are copied."""
    kind, places = KINDS[named], list[tuple[str, str]]()

    def prepare() -> tuple[Act, Act]:
        places.append(made(kind))
        workspace, name = places[-1]

        def create() -> None:
            kind.make("default", name)
            versioned = kind.find("default", name)
            change_version(versioned)()

        return lambda: kind.move(workspace, name), create

    for _, created in meetings(prepare):
        if created is None:
            assert "new" in str(kind.content("default", places[-1][1]))


@pytest.mark.parametrize("named", ["server", "skill"])
def test_an_entity_that_has_more_than_its_twin_is_not_given_up(world: Any, named: str) -> None:
    """The default workspace has one with the same name and time, for example from an import of the
    same server before."""
    kind, repo = KINDS[named], {"server": mcp_servers, "skill": skills}[named]
    for changed in ({"description": "new", "last_updated_at": MADE + 1}, {"versions": {}}):
        workspace, name = made(kind)
        kind.make("default", name)
        changing = kind.find("default" if "versions" in changed else workspace, name)
        repo.write(changing._replace(**changed))
        here = kind.find(workspace, name)
        content = kind.content(workspace, name)
        assert repo.is_taken(here, "default")
        with pytest.raises(WriteConflict):
            repo.move(here, "default")
        assert kind.content(workspace, name) == content


@pytest.mark.parametrize("named", ["server", "skill"])
def test_what_a_killed_move_left_replaces_nothing_newer(
    world: Any, monkeypatch: pytest.MonkeyPatch, named: str
) -> None:
    """The moved one is deleted and another one of its name created, with a version that was changed
    less often than the one that is left."""
    monkeypatch.setattr(item_size, "TRANSACTION_OPERATIONS", 4)
    kind, left = KINDS[named], 0
    for request in itertools.count():
        workspace, name = made(kind)
        change_version(kind.find(workspace, name))()
        with killed_at(request, []) as arrived:
            kind.move(workspace, name)
        is_left = kind.find(workspace, name) is not None
        if (moved := kind.find("default", name)) is not None:
            kind.delete(moved)
            with monkeypatch.context() as later:
                later.setattr(f"{__name__}.MADE", MADE + 1)
                kind.make("default", name)
            content = kind.content("default", name)
            kind.move(workspace, name)
            assert kind.content("default", name) == content, arrived
            left += is_left
        if len(arrived) < request:
            assert left
            return
