"""What a request that registers a version of a skill gets wrong, in MLflow's words."""

from __future__ import annotations

from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from mlcore.errors import InvalidParameterValue
from skills import registration_body

api = pytest.importorskip("mlflow.server.skill_registry_api")
pydantic = pytest.importorskip("pydantic")

FIELDS = ["name", "organization", "source", "source_type", "ref", "digest", "status", "sub_path"]
SCALARS = st.one_of(st.none(), st.booleans(), st.integers(), st.text("aé'\"\n", max_size=60))
VALUES = st.one_of(SCALARS, st.lists(SCALARS, max_size=9), st.dictionaries(st.just("k"), SCALARS))


@given(st.dictionaries(st.sampled_from(FIELDS), VALUES))
@settings(database=None, deadline=None)
def test_the_words_are_pydantics_without_its_links(metadata: dict[str, Any]) -> None:
    try:
        api.CreateSkillVersionRequest.model_validate(metadata)
        words = None
    except pydantic.ValidationError as error:
        lines = str(error).split("\n")
        words = [line for line in lines if not line.startswith("    For further information")]
    place = (metadata.get("organization", ""), metadata.get("name", "s"))
    try:
        registration_body._read(metadata, *place)
        ours = None
    except InvalidParameterValue as refusal:
        ours = str(refusal).removeprefix("Invalid registration metadata: ").split("\n")
    assert ours == words
