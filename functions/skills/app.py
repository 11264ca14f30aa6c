"""The routes of the skill registry: skills, their versions, aliases and tags. Each route whose path
names a skill exists twice, for skills without and with an organization."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from functools import partial
from typing import Any

from mlcore.http import Rpc, delete, get, lambda_handler, patch, post
from skills import messages as m
from skills import registration, search, skills, versions
from skills.registration_body import RegisterSkillVersion

_SKILLS = "/mlflow/skills"

_get, _post = (partial(verb, version="3.0", since="3.18") for verb in (get, post))
_patch, _delete = (partial(verb, version="3.0", since="3.18") for verb in (patch, delete))


def _twice(verb: Callable[..., Rpc], path: str, *arguments: Any, **more: Any) -> Iterator[Rpc]:
    """Yields two declarations of an RPC: for skills with an organization in the path, and for those
    without."""
    for skill in ("@{organization}/{name}", "{name}"):
        yield verb(f"{_SKILLS}/{skill}{path}", *arguments, **more)


# Of the paths that match, the first one with the request's method counts, as in MLflow's server.
RPCS = (
    _post(
        _SKILLS, m.CreateSkill, skills.create_skill, "skills.create", hides="created_skill", cost=1
    ),
    _get(
        _SKILLS,
        m.SearchSkills,
        search.search_skills,
        "shared_rules.anybody",
        hides="skills",
        cost=1,
    ),
    _post(
        f"{_SKILLS}/bulk-register",
        m.BulkRegisterSkills,
        registration.bulk_register_skills,
        "skills.register_all",
        cost=2,
        deviation="A batch of skills that is too large for one transaction of DynamoDB is written "
        "in several transactions.",
    ),
    *_twice(_get, "", m.NamedSkill, skills.get_skill, "skills.read", hides="skill", cost=1),
    *_twice(_patch, "", m.UpdateSkill, skills.update_skill, "skills.update", hides="skill", cost=2),
    *_twice(
        _delete,
        "",
        m.NamedSkill,
        skills.delete_skill,
        "skills.manage",
        follow="remaining_grants.skill_deleted",
        cost=3,
    ),
    *_twice(
        _post,
        "/versions",
        RegisterSkillVersion,
        registration.register_skill_version,
        "skills.register",
        cost=2,
    ),
    *_twice(
        _get,
        "/versions",
        m.SearchSkillVersions,
        search.search_skill_versions,
        "skills.read",
        cost=1,
    ),
    *_twice(
        _get,
        "/versions/{version}",
        m.NamedVersion,
        versions.get_skill_version,
        "skills.read",
        cost=1,
    ),
    *_twice(
        _patch,
        "/versions/{version}",
        m.UpdateSkillVersion,
        versions.update_skill_version,
        "skills.update_version",
        cost=2,
    ),
    *_twice(
        _delete,
        "/versions/{version}",
        m.NamedVersion,
        versions.delete_skill_version,
        "skills.manage",
        cost=2,
    ),
    *_twice(
        _get,
        "/aliases/{alias}",
        m.NamedAlias,
        versions.get_version_by_alias,
        "skills.read",
        cost=2,
    ),
    *_twice(_post, "/aliases", m.SetSkillAlias, skills.set_skill_alias, "skills.update", cost=2),
    *_twice(
        _delete,
        "/aliases/{alias}",
        m.NamedAlias,
        skills.delete_skill_alias,
        "skills.manage",
        cost=2,
    ),
    *_twice(_post, "/tags", m.SetSkillTag, skills.set_skill_tag, "skills.update", cost=2),
    *_twice(
        _delete,
        "/tags/{key+}",
        m.DeleteSkillTag,
        skills.delete_skill_tag,
        "skills.update",
        cost=2,
    ),
    *_twice(
        _post,
        "/versions/{version}/tags",
        m.SetSkillVersionTag,
        versions.set_skill_version_tag,
        "skills.update",
        cost=2,
    ),
    *_twice(
        _delete,
        "/versions/{version}/tags/{key+}",
        m.DeleteSkillVersionTag,
        versions.delete_skill_version_tag,
        "skills.manage",
        cost=2,
    ),
)

handler = lambda_handler(RPCS)
