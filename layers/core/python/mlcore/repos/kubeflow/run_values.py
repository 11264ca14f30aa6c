"""Stub."""

from mlcore.repos.kubeflow.entities import entity_of


def entities_of(raws):
    return [entity_of(r) for r in raws]
