"""Judges that ask an endpoint of the gateway: they are kept with its id and shown with its name, so
that it can be renamed, and the endpoint names who is bound to it."""

from __future__ import annotations

import json
from collections.abc import Sequence
from typing import Any, NamedTuple

from mlcore import errors, ids
from mlcore.entities.evaluation.scorers import ScorerVersion
from mlcore.entities.gateway import SCORER_RESOURCE, Binding, Configuration
from mlcore.limits.evaluation.scorers import asking, endpoint_asked
from mlcore.repos.gateway import configuration
from mlcore.settle import settle


class Judge(NamedTuple):
    """What of a scorer is kept."""

    serialized_scorer: str
    endpoint_id: str | None
    """Of the endpoint that it asks."""


def judge(serialized_scorer: str, data: dict[str, Any], workspace: str) -> Judge:
    """Raises InvalidParameterValue, ResourceDoesNotExist: the endpoint that it asks is not there.

    Args:
        data: what the text holds.
    """
    name = endpoint_asked(data)
    if name is None:
        return Judge(serialized_scorer, None)
    found = configuration.read(workspace).endpoint_named(name)
    if found is None:
        raise errors.ResourceDoesNotExist(f"GatewayEndpoint not found (name='{name}')")
    return Judge(json.dumps(asking(data, found.endpoint_id)), found.endpoint_id)


def shown(versions: Sequence[ScorerVersion], workspace: str) -> list[ScorerVersion]:
    """With names of endpoints; who asked one that is gone asks none. Reads the gateway's
    configuration if any asks one."""
    # Few judges ask an endpoint; most texts need not be parsed to know it.
    if not any("gateway:/" in version.serialized_scorer for version in versions):
        return list(versions)
    known = configuration.read(workspace)
    return [_named(version, known) for version in versions]


def _named(version: ScorerVersion, known: Configuration) -> ScorerVersion:
    data = json.loads(version.serialized_scorer)
    endpoint_id = endpoint_asked(data)
    if endpoint_id is None:
        return version
    endpoint = known.endpoints.get(endpoint_id)
    data = asking(data, None if endpoint is None else endpoint.name)
    return version._replace(serialized_scorer=json.dumps(data))


def asks_endpoint(version: ScorerVersion) -> bool:
    return (
        "gateway:/" in version.serialized_scorer
        and endpoint_asked(json.loads(version.serialized_scorer)) is not None
    )


def bind(version: ScorerVersion, endpoint_id: str | None, workspace: str) -> None:
    """The scorer to this endpoint and to no other; None: to none at all. An endpoint that has gone
    meanwhile is bound to nobody."""
    made = Binding(SCORER_RESOURCE, version.scorer_id, ids.now_ms(), None, version.name)

    def attempt() -> None:
        known = configuration.to_change(workspace)
        changed = []
        for endpoint in known.endpoints.values():
            kept = tuple(one for one in endpoint.bindings if one[:2] != made[:2])
            if endpoint.endpoint_id == endpoint_id:
                kept = (*kept, made)
            if kept != endpoint.bindings:
                changed.append(endpoint._replace(bindings=kept))
        if changed:
            configuration.write(known, puts=changed)

    settle("gateway's configuration", attempt)
