"""Searches skills and their versions. All items of a workspace or a skill are read with consistent
reads and filtered in memory."""

from __future__ import annotations

import base64
import binascii
import heapq
import json
import re
from collections.abc import Callable, Iterable
from typing import Any, Final, NamedTuple, TypeVar

from mlcore import errors, paging
from mlcore.auth.permissions import SKILL
from mlcore.entities.skills import Skill, SkillVersion, latest_version
from mlcore.http import Request
from mlcore.limits import skills as limits
from mlcore.repos import skills
from mlcore.responses import skills as responses
from mlcore.search import grammar, skill_fields, sort_keys
from mlcore.search.fields import ATTRIBUTE, NUMBER, TAG, SearchableEntity
from mlcore.search.grammar import Comparison, OrderBy
from mlcore.search.match import Predicate, predicate
from mlcore.wire.json_text import load_json
from skills import messages as m
from skills.skills import identity_of

T = TypeVar("T")

_SEARCH = m.SearchSkills | m.SearchSkillVersions

_SPACES: Final = re.compile(r"\s+")


class _SkillRow(NamedTuple):
    """The fields of a skill that filters and orders use."""

    skill: Skill
    name: str
    organization: str
    description: str | None
    search_text: str
    status: str | None
    source_type: str | None
    created_at: int
    last_updated_at: int
    tags: dict[str, str]

    @property
    def description_order(self) -> str:
        return _order_text(self.description)

    @property
    def status_order(self) -> str:
        return _order_text(self.status)

    @property
    def source_type_order(self) -> str:
        return _order_text(self.source_type)


class _VersionRow(NamedTuple):
    """The fields of a version that filters and orders use."""

    entity: SkillVersion
    version: int
    organization: str
    status: str
    source_type: str
    digest: str | None
    created_at: int
    last_updated_at: int
    tags: dict[str, str]

    @property
    def status_order(self) -> str:
        return _order_text(self.status)

    @property
    def source_type_order(self) -> str:
        return _order_text(self.source_type)

    @property
    def digest_order(self) -> str:
        return _order_text(self.digest)


def search_skills(message: m.SearchSkills, request: Request) -> dict[str, Any]:
    """Returns a page of the matching skills that the caller may read."""
    selected = None
    if message.has("include_skill_identities"):
        selected = limits.identities_of(message.include_skill_identities)
    entity = skill_fields.SKILL
    page = _Page(message, entity, f"workspace:{request.workspace}:skills")
    matches = _predicate(message.filter_string, entity)
    may_read = request.may_read(SKILL)
    rows = (
        _skill_row(skill)
        for skill in skills.of_workspace(request.workspace)
        if (selected is None or skill.identity in selected) and may_read(skill.identity.resource_id)
    )
    return page.answer("skills", filter(matches, rows), lambda row: responses.skill(row.skill))


def search_skill_versions(message: m.SearchSkillVersions, request: Request) -> dict[str, Any]:
    """Returns a page of the matching versions of a skill; an empty one if the skill does not
    exist."""
    identity = identity_of(message)
    entity = skill_fields.SKILL_VERSION
    scope = f"workspace:{request.workspace}:skill_versions:{'/'.join(identity)}"
    page = _Page(message, entity, scope)
    matches = _predicate(message.filter_string, entity)
    skill, versions = skills.find_with_versions(request.workspace, identity)

    def response(row: _VersionRow) -> dict[str, Any]:
        if skill is None:
            raise AssertionError  # a missing skill has no versions
        return responses.version(row.entity, skill)

    rows = filter(matches, map(_version_row, versions))
    return page.answer("skill_versions", rows, response)


class _Page:
    """A page of a search: its order, and the position after which it begins."""

    def __init__(self, message: _SEARCH, entity: SearchableEntity, scope: str) -> None:
        """
        Args:
            scope: identifies the searched list; a page token of another list is refused.
        """
        limits.check_page_size(message.max_results)
        self._query = {
            "filter_string": message.filter_string or None,
            "order_by": list(message.order_by) or None,
            "query_scope": scope,
        }
        token = _decoded(message.page_token, self._query) if message.page_token else None
        ordering = _ordering(message.order_by, entity)
        self._key_of = sort_keys.sort_key(ordering, entity)
        self._limit = message.max_results
        self._after: sort_keys.Key | None = None
        if token is not None:
            try:
                self._after = sort_keys.restore_key(token, ordering, entity)
            except errors.InvalidParameterValue:
                raise _malformed_token() from None

    def answer(
        self, name: str, rows: Iterable[T], response_of: Callable[[T], dict[str, Any]]
    ) -> dict[str, Any]:
        """Returns the rows after the position, up to ``max_results`` and the size of a response,
        and a token if more follow.

        Args:
            name: the field of the answer that holds the rows.
        """
        keyed = ((self._key_of(row), row) for row in rows)
        following = (pair for pair in keyed if self._after is None or pair[0] > self._after)
        next_rows = heapq.nsmallest(self._limit + 1, following, key=lambda pair: pair[0])
        row_responses = [response_of(row) for _, row in next_rows[: self._limit]]
        fitting = paging.fitting(row_responses, lambda row: len(json.dumps(row)))
        token = None
        if len(fitting) < len(row_responses) or len(next_rows) > self._limit:
            content = {**self._query, "position": next_rows[len(fitting) - 1][0]}
            token = base64.b64encode(json.dumps(content).encode()).decode()
        return {name: fitting, "next_page_token": token}


def _decoded(token: str, query: dict[str, Any]) -> list[object]:
    """Returns the position in a page token. Raises InvalidParameterValue if the token is malformed
    or belongs to another query."""
    try:
        content = load_json(base64.b64decode(token.encode()))
    except (binascii.Error, ValueError):
        raise errors.InvalidParameterValue("Invalid page token: could not decode.") from None
    if not isinstance(content, dict) or content.keys() != {*query, "position"}:
        raise _malformed_token()
    for field, value in query.items():
        if (content[field] or None) != value:
            noun = "query scope" if field == "query_scope" else field
            raise errors.InvalidParameterValue(
                f"Page token was issued for a different {noun} and cannot be used with the current "
                "request."
            )
    position = content["position"]
    if not isinstance(position, list) or not all(map(paging.is_scalar, position)):
        raise _malformed_token()
    return position


def _malformed_token() -> errors.InvalidParameterValue:
    return errors.InvalidParameterValue("Invalid page token: missing or malformed fields.")


def _ordering(texts: Iterable[str], entity: SearchableEntity) -> list[OrderBy]:
    """Parses the orderings in a request's ``order_by``. Raises InvalidParameterValue."""
    ordering: dict[str, OrderBy] = {}
    for text in texts:
        field, ascending = grammar.parse_direction(text, entity.words)
        key = grammar.strip_quotes(grammar.strip_quotes(field, "'\""), "`")
        if key not in entity.attributes:
            raise errors.InvalidParameterValue(
                f"Invalid order_by key '{key}'. Valid keys: {sorted(entity.attributes)}"
            )
        if key in ordering:
            raise errors.InvalidParameterValue(f"Duplicate order_by field: '{key}'")
        ordering[key] = OrderBy(ATTRIBUTE, skill_fields.NULLABLE.get(key, key), ascending)
    return list(ordering.values())


def _predicate(text: str, entity: SearchableEntity) -> Predicate:
    """Returns the predicate of a filter. Raises InvalidParameterValue."""
    comparisons = grammar.parse_filter(text, entity)
    for comparison in comparisons:
        _check(comparison, entity)
    return predicate(comparisons, entity)


def _check(comparison: Comparison, entity: SearchableEntity) -> None:
    kind, key, sign, _ = comparison
    if kind not in (ATTRIBUTE, TAG):
        noun = "parameter" if kind == "param" else kind
        raise errors.InvalidParameterValue(
            f"Invalid filter type '{noun}' for '{key}'. Only attributes and tags.<key> are "
            "supported."
        )
    is_number = kind == ATTRIBUTE and entity.attributes[key].type == NUMBER
    if kind == TAG:
        allowed = skill_fields.TAG_OPERATORS
    else:
        allowed = skill_fields.NUMBER_OPERATORS if is_number else skill_fields.TEXT_OPERATORS
    if sign not in allowed:
        raise errors.InvalidParameterValue(
            f"Invalid comparator '{sign}' for {kind} '{key}'. "
            f"Supported comparators: {sorted(allowed)}"
        )


def _order_text(text: str | None) -> str:
    """Returns a text that sorts like ``text``; None sorts before all texts."""
    return "" if text is None else f"={text}"


def _skill_row(skill: Skill) -> _SkillRow:
    number = latest_version(skill)
    state = None if number is None else skill.versions[number]
    words = (skill.identity.name, _SPACES.sub(" ", skill.description or "").strip())
    return _SkillRow(
        skill=skill,
        name=skill.identity.name,
        organization=skill.identity.organization,
        description=skill.description,
        search_text=" ".join(filter(None, words)),
        status=None if state is None else state.status,
        source_type=None if state is None else state.source_type,
        created_at=skill.created_at,
        last_updated_at=skill.last_updated_at,
        tags=skill.tags,
    )


def _version_row(version: SkillVersion) -> _VersionRow:
    return _VersionRow(
        entity=version,
        version=version.number,
        organization=version.identity.organization,
        status=version.status,
        source_type=version.source.source_type,
        digest=version.source.digest,
        created_at=version.created_at,
        last_updated_at=version.last_updated_at,
        tags=version.tags,
    )
