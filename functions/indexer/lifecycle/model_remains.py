"""Completes what killed requests have begun and a repeated request would not find: deletes what the
deletion of a renamed registered model left in the partition of the model's first name, and moves
grants that a rename left on the former name."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from mlcore.models.registry import RegisteredModel
from mlcore.repos.registry import homes, registered_models
from mlcore.repos.removal import model_grants


def project(records: Sequence[Mapping[str, Any]]) -> None:
    """Handles stream records of removed registered models. Such a record also comes from a rename
    or a move to another workspace; then the model still exists, and nothing is deleted. Grants that
    a killed rename left on the former name follow the model."""
    for record in records:
        image = record["OldImage"]
        model, home = RegisteredModel.of(image), registered_models.home_of(image)
        if home != model.PK:
            homes.clear(home, model.incarnation, executed=False)
        model_grants.follow_renames(model, home)
