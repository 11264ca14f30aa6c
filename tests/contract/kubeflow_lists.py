"""Lists of Kubeflow models of many pages."""

from __future__ import annotations

import json
from collections.abc import Iterator
from typing import Any

from mlcore.entities.workspaces import DEFAULT_WORKSPACE
from mlcore.kubeflow.kinds import REGISTERED_MODEL
from mlcore.models.registry import RegisteredModel
from mlcore.repos.kubeflow_keys import list_keys
from tests.contract.conftest import Store
from tests.contract.kubeflow_api import KubeflowApi

FIRST = 1_000_000


def more_models(store: Store, count: int) -> Iterator[dict[str, Any]]:
    """Copies of a model's item, as lists find it."""
    KubeflowApi().model("other")
    is_model = RegisteredModel.pattern.name
    (copied,) = (json.dumps(item) for item in store.items() if item["type"]["S"] == is_model)
    # Their numbers are above those that the counter gives here.
    for at in range(FIRST, FIRST + count):
        copy = json.loads(copied.replace("other", f"other {at}"))
        time = int(copy["creation_time"]["N"])
        listed = list_keys.numbered_item_keys(
            DEFAULT_WORKSPACE, REGISTERED_MODEL.name, at, time, time
        )
        yield {**copy, **listed, "number": {"N": str(at)}}
