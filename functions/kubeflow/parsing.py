"""Parses the paths, queries and bodies of requests to Kubeflow's registry. Each function here
returns a parser for one form of request."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, Final

from mlcore.http import Parse, Sent
from mlcore.http.kubeflow_responses import arguments, check_path
from mlcore.kubeflow import body
from mlcore.kubeflow.errors import invalid
from mlcore.kubeflow.kinds import ARTIFACT_KINDS, ARTIFACTS, SERVE_MODEL, EntityKind
from mlcore.kubeflow.registry_request import RegistryRequest

ARTIFACT: Final = EntityKind("artifact", "Artifact", "artifact")
"""The kind that stands for artifacts of any kind, where the path has an artifact's id and not its
kind."""

_Content = Callable[[dict[str, Any]], tuple[EntityKind, body.Values]]


def without_body(path_kind: EntityKind | None = None) -> Parse:
    """Returns the parser of a request to Kubeflow's API without a body.

    Args:
        path_kind: the kind of entity that the id in the path names; None if the path has no id.
    """
    return lambda sent: _parsed(sent, path_kind)


def find_one() -> Parse:
    """Returns the parser of a request for one entity of Kubeflow's registry by its name or external
    id."""

    def parse(sent: Sent) -> RegistryRequest:
        parsed = _parsed(sent, None)
        if not (parsed.arguments.get("name") or parsed.arguments.get("externalId")):
            raise invalid("invalid parameters call, supply either name or externalId")
        return parsed

    return parse


def find_child(*artifact_kinds: str) -> Parse:
    """Returns the parser of a request to Kubeflow's API for one entity, by its name and its
    parent's id, or by its external id.

    Args:
        artifact_kinds: the kinds of artifacts to look for; empty if the entity is not an artifact.
    """

    def parse(sent: Sent) -> RegistryRequest:
        parsed = _parsed(sent, None)._replace(artifact_kinds=artifact_kinds)
        name, parent = parsed.arguments.get("name"), parsed.arguments.get("parentResourceId")
        if name and parent:
            return parsed._replace(parent=body.number(parent))
        if parsed.arguments.get("externalId"):
            return parsed
        raise invalid(
            "invalid parameters call, supply either (name and parentResourceId), or externalId"
        )

    return parse


def list_artifacts(path_kind: EntityKind | None = None) -> Parse:
    """Returns the parser of a request for a list of Kubeflow's artifacts: of the kind in
    ``artifactType``, by default of all kinds."""

    def parse(sent: Sent) -> RegistryRequest:
        parsed = _parsed(sent, path_kind)
        artifact_type = parsed.arguments.get("artifactType")
        if not artifact_type:
            return parsed._replace(artifact_kinds=ARTIFACT_KINDS)
        kind = ARTIFACTS.get(artifact_type)
        if kind is None:
            raise invalid(f"invalid artifactType: {artifact_type[:50]}")
        return parsed._replace(artifact_kinds=(kind.name,))

    return parse


def entity(kind: EntityKind, use: str, path_kind: EntityKind | None = None) -> Parse:
    """Returns the parser of a request to Kubeflow's API whose body holds an entity.

    Args:
        kind: the kind of the entity in the body.
        use: what the body is for: :data:`body.CREATE`, :data:`body.UPDATE` or :data:`body.UPSERT`.
        path_kind: see :func:`without_body`.
    """

    def content(data: dict[str, Any]) -> tuple[EntityKind, body.Values]:
        return kind, body.values_of(kind, data, use)

    return lambda sent: _parsed(sent, path_kind, content)


def artifact(use: str, path_kind: EntityKind | None = None) -> Parse:
    """Returns the parser of a request whose body holds a Kubeflow artifact and names its kind;
    otherwise like :func:`entity`."""

    def content(data: dict[str, Any]) -> tuple[EntityKind, body.Values]:
        kind = body.artifact_kind(data)
        return kind, body.values_of(kind, data, use)

    return lambda sent: _parsed(sent, path_kind, content)


def _parsed(
    sent: Sent, path_kind: EntityKind | None, content: _Content | None = None
) -> RegistryRequest:
    check_path(sent)
    kind, values = (None, {}) if content is None else content(body.parse(sent.body()))
    path_id = sent.parameters.get("id", "")
    serve_id = sent.parameters.get("serve_id")
    return RegistryRequest(
        id=0 if path_kind is None else body.number(path_id, path_kind.words),
        serve_id=0 if serve_id is None else body.number(serve_id, SERVE_MODEL.words),
        arguments=arguments(sent),
        kind=kind,
        values=values,
    )
