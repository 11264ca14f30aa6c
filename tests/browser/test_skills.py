"""The skill registry in the UI: the list of skills, and a skill with its versions, its uploaded
files, its aliases and its tags."""

from __future__ import annotations

import pytest

from tests.browser.conftest import Data
from tests.browser.visitor import Visitor
from tests.contract.skill_archives import FILES, MULTIPART, archive, upload
from tests.differential.rest import Call

pytestmark = [
    pytest.mark.e2e,
    pytest.mark.timeout(300),
]
ROOT = "/api/3.0/mlflow/skills"
GIT = "https://github.com/acme/skills.git"


def test_skills(visitor: Visitor, data: Data) -> None:
    data.ask(
        Call(
            "POST", f"{ROOT}/weather/versions",
            {"source": GIT, "ref": "main", "subpath": "skills/weather"},
        )
    )  # fmt: skip
    data.ask(
        Call(
            "POST", f"{ROOT}/weather/versions", raw=upload(archive(FILES)),
            content_type=MULTIPART,
        )
    )  # fmt: skip
    data.ask(Call("PATCH", f"{ROOT}/weather", {"description": "Forecasts for sailors"}))
    data.ask(Call("POST", f"{ROOT}/weather/aliases", {"alias": "champion", "version": 1}))
    visitor.open("/skills")
    visitor.looks("skills", "weather", "Forecasts for sailors")
    visitor.go("/skills/weather")
    visitor.looks("skill", "Forecasts for sailors", "champion")
