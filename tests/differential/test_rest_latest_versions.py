"""In which order the latest versions of the stages are listed: the first one is what users take."""

from __future__ import annotations

import pytest

from tests.differential.calls import name as fresh
from tests.differential.pair import Pair
from tests.differential.registry_requests import (
    MODELS,
    VERSIONS,
    get_model,
    latest,
    model,
    move,
    version,
)
from tests.differential.rest import delete, get, patch, post

pytestmark = pytest.mark.e2e


def test_order_of_latest_versions(both: Pair) -> None:
    """One model's follow the earliest version of each stage, those of a search their stages."""
    name = fresh()
    moves = [
        *(move(name, number, stage) for number, stage in (("4", "Archived"), ("2", "Staging"))),
        *(move(name, number, stage) for number, stage in (("5", "Staging"), ("3", "Production"))),
        move(name, "1", "Production"),
        move(name, "6", "Production", archive=True),
        delete(f"{VERSIONS}/delete", {"name": name, "version": "2"}),
        move(name, "1", "none"),
        move(name, "3", "Staging"),
        move(name, "7", "Archived", archive=False),
    ]
    both.send_all([model(name), *(version(name) for _ in range(7))])
    for moved in moves:
        both.send_all(
            [
                moved,
                get_model(name),
                latest(name),
                latest(name, "Staging", "None", "Production"),
                get(f"{MODELS}/search", filter=f"name = '{name}'"),
            ]
        )
    renamed = {"name": name, "new_name": f"{name} new"}
    described = {"name": f"{name} new", "description": "d"}
    both.send_all(
        [post(f"{MODELS}/rename", renamed), patch(f"{MODELS}/update", described)],
    )
