"""Deletes what a killed deletion of a renamed registered model left in the partition of the model's
first name. A repeated request does not find it: it knows only the last name."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from mlcore.models.registry import RegisteredModel
from mlcore.repos.registry import homes, registered_models


def project(records: Sequence[Mapping[str, Any]]) -> None:
    """Handles stream records of removed registered models. Such a record also comes from a rename
    or a move to another workspace; then the model still exists, and nothing is deleted."""
    for record in records:
        image = record["OldImage"]
        model, home = RegisteredModel.of(image), registered_models.home_of(image)
        if home != model.PK:
            homes.clear(home, model.incarnation, executed=False)
