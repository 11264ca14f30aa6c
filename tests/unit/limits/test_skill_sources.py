"""Sources of skills that are much longer than a source may be."""

from __future__ import annotations

import time

import pytest

from mlcore.errors import InvalidParameterValue
from mlcore.limits import skill_sources


@pytest.mark.parametrize(
    "text", ["-" + "a." * 500_000, "-" * 1_000_000, "http://" + "a." * 500_000]
)
def test_long_sources_and_refs_are_refused_in_time(text: str) -> None:
    began = time.process_time()
    for source, ref in ((text, None), ("https://git.example/r.git", text)):
        with pytest.raises(InvalidParameterValue):
            skill_sources.remote_source(source, "git", ref, None, None)
    # The patterns that hide secrets would take hours.
    assert time.process_time() - began < 20
