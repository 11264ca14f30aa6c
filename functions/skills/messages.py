"""Requests of the skill registry, in the field order of MLflow's FastAPI models."""

from __future__ import annotations

from typing import Any, Final

from mlcore.icons import ICONS
from mlcore.limits.skills import MAX_BULK
from mlcore.wire import json_body as j
from mlcore.wire.json_body import Fields, JsonBody, JsonField

_TEXT: Final = JsonField(j.text)
_REQUIRED: Final = JsonField(j.text, required=True)
_OPTIONAL: Final = JsonField(j.optional(j.text))


def _path_name(value: Any, path: j.JsonPath, misfits: j.Misfits) -> Any:
    """Reads a skill's name in a path, where a first ``@`` would begin an organization."""
    if value.startswith("@"):
        message = "String should match pattern '^[^@/][^/]*$'"
        misfits.note(path, message, "string_pattern_mismatch", value)
    return value


_NAME: Final[Fields] = {"name": JsonField(_path_name)}
_VERSION: Final[Fields] = {**_NAME, "version": JsonField(j.number_in_path)}

_PAGE: Final[Fields] = {
    "filter_string": JsonField(j.word),
    "max_results": JsonField(j.whole_number),
    "order_by": JsonField(j.words),
    "page_token": JsonField(j.word),
}


class CreateSkill(JsonBody):
    name: str
    organization: str
    description: Any
    icons: Any
    body = {
        "name": _REQUIRED,
        "organization": _TEXT,
        "description": _OPTIONAL,
        "icons": JsonField(ICONS),
    }
    forbid = True


class SearchSkills(JsonBody):
    filter_string: str
    max_results: int = 100
    order_by: list[str]
    page_token: str
    include_skill_identities: list[str]
    query = {**_PAGE, "include_skill_identities": JsonField(j.words)}


class NamedSkill(JsonBody):
    """A request that only names a skill."""

    organization: str
    name: str
    path = _NAME


class UpdateSkill(JsonBody):
    organization: str
    name: str
    description: Any
    icons: Any
    path = _NAME
    body = {"description": _OPTIONAL, "icons": JsonField(ICONS)}
    forbid = True


class SearchSkillVersions(JsonBody):
    organization: str
    name: str
    filter_string: str
    max_results: int = 100
    order_by: list[str]
    page_token: str
    path = _NAME
    query = _PAGE


class NamedVersion(JsonBody):
    """A request that only names a version of a skill."""

    organization: str
    name: str
    version: int
    path = _VERSION


class UpdateSkillVersion(JsonBody):
    organization: str
    name: str
    version: int
    status: Any
    path = _VERSION
    body = {"status": _OPTIONAL}
    forbid = True


class NamedAlias(JsonBody):
    """A request that only names an alias of a skill."""

    organization: str
    name: str
    alias: str
    path = _NAME


class SetSkillAlias(JsonBody):
    organization: str
    name: str
    alias: str
    version: int
    path = _NAME
    body = {"alias": _REQUIRED, "version": JsonField(j.integer, required=True)}
    forbid = True


_TAG: Final[Fields] = {"key": _REQUIRED, "value": _REQUIRED}


class SetSkillTag(JsonBody):
    organization: str
    name: str
    key: str
    value: str
    path = _NAME
    body = _TAG
    forbid = True


class DeleteSkillTag(JsonBody):
    organization: str
    name: str
    key: str
    path = _NAME


class SetSkillVersionTag(JsonBody):
    organization: str
    name: str
    version: int
    key: str
    value: str
    path = _VERSION
    body = _TAG
    forbid = True


class DeleteSkillVersionTag(JsonBody):
    organization: str
    name: str
    version: int
    key: str
    path = _VERSION


_BULK_SKILL: Final = j.object_of(
    {
        "name": _REQUIRED,
        "source_type": _OPTIONAL,
        "source": _REQUIRED,
        "ref": _OPTIONAL,
        "subpath": _OPTIONAL,
        "digest": _REQUIRED,
        "status": _TEXT,
    },
    forbid=True,
)


class BulkRegisterSkills(JsonBody):
    organization: str
    skills: list[Any]
    body = {
        "organization": _TEXT,
        "skills": JsonField(j.list_of(_BULK_SKILL, MAX_BULK, 1), required=True),
    }
    forbid = True
