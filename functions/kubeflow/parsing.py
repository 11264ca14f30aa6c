"""Parsers of requests to Kubeflow's registry: the one place where their paths, queries and bodies
are read."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, Final

from mlcore.http import Parse, Sent
from mlcore.http.kubeflow import arguments, check_path
from mlcore.kubeflow import body
from mlcore.kubeflow.asked import Asked
from mlcore.kubeflow.errors import bad
from mlcore.kubeflow.kinds import ARTIFACT_KINDS, ARTIFACTS, SERVE_MODEL, Kind

ARTIFACT: Final = Kind("artifact", "Artifact", "artifact")
"""An artifact of any kind, as the path names it."""

_Content = Callable[[dict[str, Any]], tuple[Kind, body.Values]]


def reading(named: Kind | None = None) -> Parse:
    """A request without a body.

    Args:
        named: what the path's id names; None where the path has none.
    """
    return lambda sent: _asked(sent, named)


def finding() -> Parse:
    """One entity, by its name or its external id."""

    def parse(sent: Sent) -> Asked:
        asked = _asked(sent, None)
        if not (asked.arguments.get("name") or asked.arguments.get("externalId")):
            raise bad("invalid parameters call, supply either name or externalId")
        return asked

    return parse


def finding_child(*artifact_kinds: str) -> Parse:
    """One entity, by its name and its parent's id, or by its external id.

    Args:
        artifact_kinds: of artifacts, which kinds count.
    """

    def parse(sent: Sent) -> Asked:
        asked = _asked(sent, None)._replace(artifact_kinds=artifact_kinds)
        name, parent = asked.arguments.get("name"), asked.arguments.get("parentResourceId")
        if name and parent:
            return asked._replace(parent=body.number(parent))
        if asked.arguments.get("externalId"):
            return asked
        raise bad(
            "invalid parameters call, supply either (name and parentResourceId), or externalId"
        )

    return parse


def listing_artifacts(named: Kind | None = None) -> Parse:
    """Artifacts of the kind that ``artifactType`` names, by default of all."""

    def parse(sent: Sent) -> Asked:
        asked = _asked(sent, named)
        wanted = asked.arguments.get("artifactType")
        if not wanted:
            return asked._replace(artifact_kinds=ARTIFACT_KINDS)
        kind = ARTIFACTS.get(wanted)
        if kind is None:
            raise bad(f"invalid artifactType: {wanted[:50]}")
        return asked._replace(artifact_kinds=(kind.name,))

    return parse


def entity(kind: Kind, use: str, named: Kind | None = None) -> Parse:
    """A request whose body holds an entity of a kind.

    Args:
        use: what the body is for: :data:`body.CREATE`, :data:`body.UPDATE` or :data:`body.WHOLE`.
        named: as in :func:`reading`.
    """

    def content(data: dict[str, Any]) -> tuple[Kind, body.Values]:
        return kind, body.values_of(kind, data, use)

    return lambda sent: _asked(sent, named, content)


def artifact(use: str, named: Kind | None = None) -> Parse:
    """A request whose body holds an artifact of the kind that it names itself; as
    :func:`entity`."""

    def content(data: dict[str, Any]) -> tuple[Kind, body.Values]:
        kind = body.artifact_kind(data)
        return kind, body.values_of(kind, data, use)

    return lambda sent: _asked(sent, named, content)


def _asked(sent: Sent, named: Kind | None, content: _Content | None = None) -> Asked:
    check_path(sent)
    kind, values = (None, {}) if content is None else content(body.parse(sent.body()))
    identity = 0 if named is None else body.number(sent.parameters.get("id", ""), named.words)
    serve = sent.parameters.get("serve_id")
    return Asked(
        id=identity,
        serve_id=0 if serve is None else body.number(serve, SERVE_MODEL.words),
        arguments=arguments(sent),
        kind=kind,
        values=values,
    )
