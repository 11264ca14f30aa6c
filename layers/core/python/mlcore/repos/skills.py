"""Skills: one item each, all of a workspace in one partition; each version has an item too. All
reads are strongly consistent.

The skill's item is the source of truth: it holds the next version number, the states of its
versions and its aliases. So one condition on this item prevents a number that is given twice, an
alias to a deleted version, and a new version of a deleted skill. A version item that the skill does
not list is ignored. The item of a deleted version stays until its skill is deleted, because it
names the files that were uploaded for it; they are removed after the item.
"""

from __future__ import annotations

import json
from collections.abc import Iterable, Sequence
from typing import Any, Final

from mlcore.artifacts.skill_uploads import path_of_upload
from mlcore.db import keys
from mlcore.db.expression import ConditionExpression, Raw
from mlcore.db.keys import Key
from mlcore.db.table import Delete, Operation, Put, key_of_item, table
from mlcore.entities.skills import (
    DELETED,
    MLFLOW,
    Skill,
    SkillIdentity,
    SkillSource,
    SkillVersion,
    VersionState,
)
from mlcore.ids import now_ms
from mlcore.models.skills import Skill as SkillItem
from mlcore.models.skills import SkillVersion as VersionItem
from mlcore.repos.workspaces import guarded_writes, versioned_moves
from mlcore.repos.workspaces.versioned_moves import VersionedMove, item_at

_VERSIONS_AT_ONCE: Final = 40
"""Versions deleted in one transaction, which leaves room for the grants on the skill."""
MAX_OPERATIONS: Final = 90
"""Operations of one transaction; DynamoDB allows 100."""


def find(workspace: str, identity: SkillIdentity) -> Skill | None:
    """Returns a skill without the content of its versions; None if the workspace has none of this
    name. One consistent GetItem."""
    raw = table.get(keys.skill(workspace, *identity))
    return None if raw is None else _skill(workspace, raw)


def find_many(
    workspace: str, identities: Sequence[SkillIdentity]
) -> dict[SkillIdentity, Skill | None]:
    """Returns the skills with the given identities (organization and name), None for missing ones;
    one consistent BatchGetItem per 100."""
    raws = table.batch_get([keys.skill(workspace, *identity) for identity in identities])
    return {
        identity: None if raw is None else _skill(workspace, raw)
        for identity, raw in zip(identities, raws, strict=True)
    }


def find_with_version(
    workspace: str, identity: SkillIdentity, number: int
) -> tuple[Skill | None, SkillVersion | None]:
    """Returns (skill, version). The version is None if it is missing or deleted; both are None if
    the skill is missing. One consistent BatchGetItem."""
    places = [
        keys.skill(workspace, *identity),
        keys.skill_version(workspace, *identity, number),
    ]
    skill_raw, version_raw = table.batch_get(places)
    if skill_raw is None:
        return None, None
    skill = _skill(workspace, skill_raw)
    return skill, None if version_raw is None else _live(skill, version_raw)


def of_workspace(workspace: str) -> list[Skill]:
    """Returns all skills of a workspace; one Query per MB."""
    pk = keys.skill(workspace, "", "").pk
    return [_skill(workspace, raw) for raw in table.query_all(pk, prefix=keys.skill_prefix())]


def find_versions(wanted: Sequence[tuple[Skill, int]]) -> list[SkillVersion | None]:
    """Returns for each (skill, number) pair the version, in the order of the pairs; None for
    missing or deleted ones. One consistent BatchGetItem per 100."""
    raws = table.batch_get(
        [keys.skill_version(skill.workspace, *skill.identity, number) for skill, number in wanted]
    )
    return [
        None if raw is None else _live(skill, raw)
        for (skill, _), raw in zip(wanted, raws, strict=True)
    ]


def find_with_versions(
    workspace: str, identity: SkillIdentity
) -> tuple[Skill | None, list[SkillVersion]]:
    """Returns a skill and its versions that are not deleted; (None, []) if there is no such skill.
    Reads the skill's item and the versions' items in parallel."""
    reads: list[Any] = table.parallel(
        [lambda: find(workspace, identity), lambda: _version_items(workspace, identity)]
    )
    skill, raws = reads
    if skill is None:
        return None, []
    versions = [_live(skill, raw) for raw in raws]
    return skill, [version for version in versions if version is not None]


def has_uploads(skill: Skill) -> bool:
    """Whether files were uploaded for any version of a skill, a deleted one included."""
    items = map(VersionItem.of, _version_items(skill.workspace, skill.identity))
    return any(item.source_type == MLFLOW for item in items)


def upload_paths(workspace: str, identity: SkillIdentity) -> set[str]:
    """Returns the paths of the files that were uploaded for the versions of a skill, deleted ones
    included; none if there is no such skill. One round trip per megabyte of versions."""
    reads: list[Any] = table.parallel(
        [lambda: find(workspace, identity), lambda: _version_items(workspace, identity)]
    )
    skill, raws = reads
    sources = [VersionItem.of(raw).source for raw in raws if skill is not None]
    return {path for source in sources if (path := path_of_upload(source)) is not None}


def write(
    skill: Skill, *, puts: Sequence[SkillVersion] = (), also: Sequence[Operation] = ()
) -> None:
    """Writes a new or changed skill, with versions of it, in one transaction.

    Args:
        puts: new or changed versions to write.
        also: further operations of the transaction.

    Raises:
        WriteConflict: the skill or a version was written by another request since it was read, or a
            condition of ``also`` does not hold.
        ResourceDoesNotExist: the skill is new and its workspace was deleted.
    """
    guarded_writes.write(
        [*writing(skill, puts), *also], creates_in=None if skill.revision else skill.workspace
    )


def writing(skill: Skill, puts: Sequence[SkillVersion] = ()) -> list[Operation]:
    """Returns the operations that write a skill with versions of it, for a transaction."""
    return [Put(_item(skill), _unchanged(skill)), *map(_putting, puts)]


def write_all(workspace: str, groups: Sequence[Sequence[Operation]], *, creates: bool) -> None:
    """Executes groups of write operations on skills in their order, as many in one transaction as
    fit; a group is never split.

    Args:
        creates: whether an operation creates something, so that the workspace must exist.

    Raises:
        WriteConflict: an item changed since it was read. Groups before the group of that item may
            have been written.
        ResourceDoesNotExist: the workspace was deleted.
    """
    creates_in = workspace if creates else None
    operations: list[Operation] = []
    for group in groups:
        if operations and len(operations) + len(group) > MAX_OPERATIONS:
            guarded_writes.write(operations, creates_in=creates_in)
            operations = []
        operations += group
    if operations:
        guarded_writes.write(operations, creates_in=creates_in)


def write_version(version: SkillVersion) -> None:
    """Writes a changed version of a skill. Raises WriteConflict if it was written since it was
    read."""
    guarded_writes.write([_putting(version)])


def delete(skill: Skill, also: Sequence[Operation] = ()) -> None:
    """Deletes a skill with its versions. Versions that do not fit into one transaction are deleted
    before it, so an interrupted call leaves a skill with fewer versions. Raises WriteConflict if
    the skill was written since it was read."""
    places = [
        keys.skill_version(skill.workspace, *skill.identity, VersionItem.of(raw).number)
        for raw in _version_items(skill.workspace, skill.identity)
    ]
    while len(places) > _VERSIONS_AT_ONCE:
        batch, places = places[:_VERSIONS_AT_ONCE], places[_VERSIONS_AT_ONCE:]
        skill = _without(skill, batch)
        guarded_writes.write([*writing(skill), *map(Delete, batch)])
        skill = skill._replace(revision=skill.revision + 1)
    key = keys.skill(skill.workspace, *skill.identity)
    guarded_writes.write([Delete(key, _unchanged(skill)), *map(Delete, places), *also])


def is_taken(skill: Skill, workspace: str) -> bool:
    """Whether another skill in ``workspace`` has the name of ``skill``. A copy of ``skill`` that
    release 0.1.0 made there before it was interrupted does not count."""
    other = None if skill.is_moved else find(workspace, skill.identity)
    return other is not None and not versioned_moves.is_copy(other, skill)


def move(skill: Skill, workspace: str) -> None:
    """Moves a skill without uploaded files to a workspace that has no other skill of its name.
    Idempotent. A copy that an interrupted call of release 0.1.0 has made is complete and stays.
    Raises WriteConflict if the skill or one of its versions is changed meanwhile."""
    raw = table.get(keys.skill(skill.workspace, *skill.identity))
    if raw is None:
        return
    stored = _skill(skill.workspace, raw)
    if stored.is_moved or versioned_moves.execute(
        _moving(raw, stored, workspace),
        lambda other: versioned_moves.is_copy(_skill(workspace, other), stored),
    ):
        left = find(skill.workspace, skill.identity)
        if left is not None and left.is_moved:
            _delete_left(left, workspace)
        if left is not None:
            delete(left)


def _delete_left(skill: Skill, workspace: str) -> None:
    """Deletes the versions that the move of a skill to a workspace has left."""

    def is_copy_of(there: Raw, item: Raw) -> bool:
        return VersionItem.of(there).created_at == VersionItem.of(item).created_at

    def copy_of(item: Raw) -> Raw:
        return _version_copy(item, workspace)

    items = _version_items(skill.workspace, skill.identity)
    versioned_moves.delete_left(items, copy_of, is_copy_of, VersionItem)


def _moving(raw: Raw, skill: Skill, workspace: str) -> VersionedMove:
    key = keys.skill(skill.workspace, *skill.identity)
    copies, deletions = list[Raw](), list[Delete]()
    for item in _version_items(skill.workspace, skill.identity):
        version, same = VersionItem.of(item), ConditionExpression()
        same.require_equal(VersionItem.version, version.version)
        deletions.append(Delete(key_of_item(item), same))
        if version.number in skill.versions:
            copies.append(_version_copy(item, workspace))
    copy = item_at(keys.skill(workspace, *skill.identity), raw)
    deletion = Delete(key, _unchanged(skill))
    return VersionedMove(
        copy, copies, deletion, deletions, versioned_moves.mark(key, skill, SkillItem)
    )


def _version_items(workspace: str, identity: SkillIdentity) -> list[Raw]:
    pk = keys.skill_version(workspace, *identity, 0).pk
    return list(table.query_all(pk, prefix=keys.skill_version_prefix()))


def _version_copy(item: Raw, workspace: str) -> Raw:
    """Returns the item of a version as it is to be stored in another workspace."""
    version = VersionItem.of(item)
    place = keys.skill_version(workspace, version.organization, version.name, version.number)
    there = {VersionItem.workspace.attr_name: VersionItem.workspace.raw(workspace)}
    return item_at(place, item) | there


def _without(skill: Skill, places: Iterable[Key]) -> Skill:
    gone = set(places)
    versions = {
        number: state
        for number, state in skill.versions.items()
        if keys.skill_version(skill.workspace, *skill.identity, number) not in gone
    }
    aliases = {alias: number for alias, number in skill.aliases.items() if number in versions}
    return skill._replace(versions=versions, aliases=aliases)


def _putting(version: SkillVersion) -> Put:
    """Returns the put of a version, with the condition that it was not written since it was read. A
    new version may overwrite an item that an interrupted move left."""
    return Put(_version_item(version), _unchanged(version) if version.revision else None)


def _unchanged(entity: Skill | SkillVersion) -> ConditionExpression:
    """Returns the condition that a skill's or version's item was neither written nor deleted and
    created again since it was read; for a new entity, that there is no item."""
    item_type = SkillItem if isinstance(entity, Skill) else VersionItem
    condition = ConditionExpression()
    if entity.revision:
        condition.require_equal(item_type.version, entity.revision)
        condition.require_equal(item_type.created_at, entity.created_at)
    else:
        condition.require_absent(item_type.PK)
    return condition


def _item(skill: Skill) -> Raw:
    key = keys.skill(skill.workspace, *skill.identity)
    item = SkillItem(
        PK=key.pk,
        SK=key.sk,
        name=skill.identity.name,
        organization=skill.identity.organization,
        description=skill.description,
        icons=None if skill.icons is None else _json(skill.icons),
        tags=_json(skill.tags) if skill.tags else None,
        aliases=_json(skill.aliases) if skill.aliases else None,
        states=_json(skill.versions) if skill.versions else None,
        last_number=skill.last_number,
        created_by=skill.created_by,
        last_updated_by=skill.last_updated_by,
        created_at=skill.created_at,
        last_updated_at=skill.last_updated_at,
        is_moved=skill.is_moved or None,
        version=skill.revision + 1,
        updated_at=now_ms(),
    )
    return item.serialize()


def _skill(workspace: str, raw: Raw) -> Skill:
    item = SkillItem.of(raw)
    states: dict[str, list[str]] = json.loads(item.states or "{}")
    return Skill(
        workspace=workspace,
        identity=SkillIdentity(item.organization, item.name),
        description=item.description,
        icons=None if item.icons is None else json.loads(item.icons),
        tags=json.loads(item.tags or "{}"),
        aliases=json.loads(item.aliases or "{}"),
        versions={int(number): VersionState(*state) for number, state in states.items()},
        last_number=item.last_number,
        created_by=item.created_by,
        last_updated_by=item.last_updated_by,
        created_at=item.created_at,
        last_updated_at=item.last_updated_at,
        revision=item.version,
        is_moved=bool(item.is_moved),
    )


def _version_item(version: SkillVersion) -> Raw:
    key = keys.skill_version(version.workspace, *version.identity, version.number)
    source = version.source
    item = VersionItem(
        PK=key.pk,
        SK=key.sk,
        workspace=version.workspace,
        organization=version.identity.organization,
        name=version.identity.name,
        number=version.number,
        source_type=source.source_type,
        source=source.source,
        ref=source.ref,
        subpath=source.subpath,
        digest=source.digest,
        tags=_json(version.tags) if version.tags else None,
        created_by=version.created_by,
        last_updated_by=version.last_updated_by,
        created_at=version.created_at,
        last_updated_at=version.last_updated_at,
        version=version.revision + 1,
        updated_at=now_ms(),
    )
    return item.serialize()


def _live(skill: Skill, raw: Raw) -> SkillVersion | None:
    """Returns the version that an item holds, with the status that its skill's item has for it;
    None if it is deleted or the skill does not list it."""
    item = VersionItem.of(raw)
    state = skill.versions.get(item.number)
    if state is None or state.status == DELETED:
        return None
    return SkillVersion(
        workspace=skill.workspace,
        identity=skill.identity,
        number=item.number,
        source=SkillSource(item.source_type, item.source, item.ref, item.subpath, item.digest),
        tags=json.loads(item.tags or "{}"),
        created_by=item.created_by,
        last_updated_by=item.last_updated_by,
        created_at=item.created_at,
        last_updated_at=item.last_updated_at,
        status=state.status,
        revision=item.version,
    )


def _json(value: Any) -> str:
    return json.dumps(value, separators=(",", ":"))
