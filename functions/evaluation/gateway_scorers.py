"""Scorers whose model is an endpoint of the AI gateway. They are stored with the endpoint's id and
shown with its name, so that endpoints can be renamed. The endpoint's bindings list its scorers."""

from __future__ import annotations

import json
from collections.abc import Sequence
from typing import Any, NamedTuple

from mlcore import ids
from mlcore.entities.evaluation.scorers import ScorerVersion
from mlcore.entities.gateway import SCORER_RESOURCE, Binding, Configuration
from mlcore.limits.evaluation.judge_endpoints import judge_endpoint, with_endpoint
from mlcore.optimistic_retry import retry_on_conflict
from mlcore.repos.gateway import configuration


class StoredScorer(NamedTuple):
    """A scorer in the form in which it is stored."""

    serialized_scorer: str
    endpoint_id: str | None
    """The gateway endpoint that the scorer calls; None for other models."""


def to_stored(serialized_scorer: str, data: dict[str, Any], workspace: str) -> StoredScorer:
    """Returns the scorer as it is stored: with its gateway endpoint's id in place of the endpoint's
    name, and with that id beside it; unchanged and with None if its model is no gateway endpoint.

    Args:
        data: the parsed ``serialized_scorer``.

    Raises:
        InvalidParameterValue: the scorer's model is malformed.
        ResourceDoesNotExist: there is no endpoint of that name.
    """
    name = judge_endpoint(data)
    if name is None:
        return StoredScorer(serialized_scorer, None)
    endpoint = configuration.read(workspace).existing_endpoint(name)
    return StoredScorer(json.dumps(with_endpoint(data, endpoint.endpoint_id)), endpoint.endpoint_id)


def with_endpoint_names(versions: Sequence[ScorerVersion], workspace: str) -> list[ScorerVersion]:
    """Returns the scorer versions with the names of gateway endpoints in place of their ids; the
    reference to a deleted endpoint is removed. Reads the gateway's configuration only if a scorer's
    text contains ``gateway:/``."""
    # Few scorers use an endpoint; this test saves parsing the JSON of the others.
    if not any("gateway:/" in version.serialized_scorer for version in versions):
        return list(versions)
    gateway = configuration.read(workspace)
    return [_with_endpoint_name(version, gateway) for version in versions]


def _with_endpoint_name(version: ScorerVersion, known: Configuration) -> ScorerVersion:
    data = json.loads(version.serialized_scorer)
    endpoint_id = judge_endpoint(data)
    if endpoint_id is None:
        return version
    endpoint = known.endpoints.get(endpoint_id)
    data = with_endpoint(data, None if endpoint is None else endpoint.name)
    return version._replace(serialized_scorer=json.dumps(data))


def uses_endpoint(version: ScorerVersion) -> bool:
    return (
        "gateway:/" in version.serialized_scorer
        and judge_endpoint(json.loads(version.serialized_scorer)) is not None
    )


def bind_endpoint(version: ScorerVersion, endpoint_id: str | None, workspace: str) -> None:
    """Stores at the gateway endpoint ``endpoint_id`` that the scorer uses it (a binding), and
    removes the scorer's bindings at all other endpoints of the workspace. If ``endpoint_id`` is
    None, or the endpoint was deleted meanwhile, it only removes."""
    new = Binding(SCORER_RESOURCE, version.scorer_id, ids.now_ms(), None, version.name)

    def attempt() -> None:
        known = configuration.to_change(workspace)
        changed = []
        for endpoint in known.endpoints.values():
            kept = tuple(binding for binding in endpoint.bindings if binding[:2] != new[:2])
            if endpoint.endpoint_id == endpoint_id:
                kept = (*kept, new)
            if kept != endpoint.bindings:
                changed.append(endpoint._replace(bindings=kept))
        if changed:
            configuration.write(known, puts=changed)

    retry_on_conflict("gateway's configuration", attempt)
