"""Where the files of an artifact are in words that others than MLflow's clients know.

MLflow names files ``mlflow-artifacts:/1/…`` or ``models:/m-…``. What reads files itself, such as
KServe's storage initializer, knows neither. Where files are kept in a bucket, Kubeflow's API shows
``s3://<bucket>/1/…`` instead; written back so, it is what was stored.
"""

from __future__ import annotations

import os
from typing import Final

from mlcore.artifacts.locations import PROXIED, locate, scheme
from mlcore.errors import InvalidParameterValue
from mlcore.kubeflow.entity import RESOLVED, Entity
from mlcore.models.kubeflow import Artifact

_BY_NAME: Final = ("models", "runs")
"""Schemes of URIs that name a model or a run, whose files are in its location."""


def resolved(uri: str, location: str | None, workspace: str) -> str | None:
    """The place of an artifact's files in the deployment's bucket; None if its URI says where they
    are, or they are not there.

    Args:
        location: where the files are that the URI names, if it is known.
    """
    bucket = os.environ.get("ARTIFACT_BUCKET")
    if not bucket or os.environ.get("ARTIFACT_FOLDER"):
        return None
    place = location if scheme(uri) in _BY_NAME else uri
    if place is None or scheme(place) not in (*PROXIED, "s3"):
        return None
    try:
        found = f"s3://{bucket}/{locate(place, workspace)}"
    except InvalidParameterValue:
        found = place if scheme(place) == "s3" else uri
    return None if found == uri else found


def shown(entity: Entity, location: str | None, workspace: str) -> Entity:
    """An entity that shows where its files are."""
    uri = entity.fields.get("uri")
    place = resolved(uri, location, workspace) if isinstance(uri, str) else None
    if place is None and RESOLVED not in entity.fields:
        return entity
    fields = {name: value for name, value in entity.fields.items() if name != RESOLVED}
    return entity._replace(fields=fields if place is None else {**fields, RESOLVED: place})


def written(before: Entity, after: Entity, item: Artifact) -> Entity:
    """An artifact as it is to be stored: the place that was shown means the URI that it was shown
    for."""
    uri = before.fields.get("uri")
    if after.fields.get("uri") == before.fields.get(RESOLVED) is not None:
        after = after._replace(fields={**after.fields, "uri": uri})
    location = item.location if after.fields.get("uri") == uri else None
    return shown(after, location, item.workspace)
