"""MLflow's JSON of skills and their versions. Every field is present, null if unknown."""

from __future__ import annotations

from mlcore.entities.skills import Json, Skill, SkillVersion, latest_version


def skill(entity: Skill) -> Json:
    """Returns the JSON of a skill; its status and type of source are those of its latest
    version."""
    number = latest_version(entity)
    state = None if number is None else entity.versions[number]
    return {
        "name": entity.identity.name,
        "organization": entity.identity.organization,
        "workspace": entity.workspace,
        "description": entity.description,
        "icons": entity.icons,
        "status": None if state is None else state.status,
        "latest_version": number,
        "source_type": None if state is None else state.source_type,
        "aliases": [
            {"alias": alias, "version": named} for alias, named in sorted(entity.aliases.items())
        ],
        "tags": entity.tags,
        **_times(entity),
    }


def version(entity: SkillVersion, skill: Skill) -> Json:
    """Returns the JSON of a skill version.

    Args:
        skill: the version's skill, whose aliases of the version are included.
    """
    source = entity.source
    return {
        "name": entity.identity.name,
        "version": entity.number,
        "organization": entity.identity.organization,
        "workspace": entity.workspace,
        "source_type": source.source_type,
        "source": source.source,
        "ref": source.ref,
        "subpath": source.subpath,
        "digest": source.digest,
        "status": entity.status,
        "aliases": sorted(
            alias for alias, number in skill.aliases.items() if number == entity.number
        ),
        "tags": entity.tags,
        **_times(entity),
    }


def _times(entity: Skill | SkillVersion) -> Json:
    return {
        "created_by": entity.created_by,
        "last_updated_by": entity.last_updated_by,
        "creation_timestamp": entity.created_at,
        "last_updated_timestamp": entity.last_updated_at,
    }
