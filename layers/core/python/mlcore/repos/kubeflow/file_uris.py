"""Converts artifact locations to URIs that programs other than MLflow's clients understand.

MLflow names files ``mlflow-artifacts:/1/…`` or ``models:/m-…``, which for example KServe's storage
initializer cannot read. If files are kept in a bucket, Kubeflow's API shows ``s3://<bucket>/1/…``
instead, and stores the original when a client writes that URI back.
"""

from __future__ import annotations

from typing import Final

from mlcore.artifacts.storage_keys import PROXIED, locate, scheme
from mlcore.environment import artifact_bucket
from mlcore.errors import InvalidParameterValue
from mlcore.kubeflow.entity import RESOLVED, Entity
from mlcore.models.kubeflow import Artifact

_BY_NAME: Final = ("models", "runs")
"""URI schemes that name a model or run, whose location has the files."""


def resolved(uri: str, location: str | None, workspace: str) -> str | None:
    """Returns the ``s3://`` URI of the files of a Kubeflow artifact; None if ``uri``, the
    artifact's URI, is this one, if the files are not in S3, or if the deployment has no bucket.

    Args:
        location: where the files are, if ``uri`` only names a run or model; None if unknown.
    """
    bucket = artifact_bucket()
    if bucket is None:
        return None
    resolved_uri = location if scheme(uri) in _BY_NAME else uri
    if resolved_uri is None or scheme(resolved_uri) not in (*PROXIED, "s3"):
        return None
    try:
        location_uri = f"s3://{bucket}/{locate(resolved_uri, workspace)}"
    except InvalidParameterValue:
        location_uri = resolved_uri if scheme(resolved_uri) == "s3" else uri
    return None if location_uri == uri else location_uri


def shown(entity: Entity, location: str | None, workspace: str) -> Entity:
    """Returns a Kubeflow artifact with one more field: where its files are, as an ``s3://`` URI;
    without the field if :func:`resolved` gives no such URI."""
    uri = entity.fields.get("uri")
    resolved_uri = resolved(uri, location, workspace) if isinstance(uri, str) else None
    if resolved_uri is None and RESOLVED not in entity.fields:
        return entity
    fields = {name: value for name, value in entity.fields.items() if name != RESOLVED}
    return entity._replace(
        fields=fields if resolved_uri is None else {**fields, RESOLVED: resolved_uri}
    )


def written(before: Entity, after: Entity, item: Artifact) -> Entity:
    """Returns a changed Kubeflow artifact with the URI to store. If its client sent back the
    ``s3://`` URI that it had been shown in place of the stored one, the stored one is kept."""
    uri = before.fields.get("uri")
    if after.fields.get("uri") == before.fields.get(RESOLVED) is not None:
        after = after._replace(fields={**after.fields, "uri": uri})
    location = item.location if after.fields.get("uri") == uri else None
    return shown(after, location, item.workspace)
