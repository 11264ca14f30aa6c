"""Sources of model versions that are percent-encoded again and again."""

from __future__ import annotations

import time

import pytest

from mlcore.errors import InvalidParameterValue
from mlcore.limits import model_sources


@pytest.mark.parametrize("times", [0, 1, 2, 15])
def test_a_path_upwards_is_noticed_however_often_it_is_encoded(times: int) -> None:
    upwards = "%" + "25" * (times - 1) + "2e%2e" if times else ".."
    for path in (f"/a/{upwards}/b", f"/a/b/{upwards}"):
        with pytest.raises(InvalidParameterValue, match="absolute path"):
            model_sources.check_absolute(model_sources.parse(f"s3://bucket{path}"))
    plain = "%" + "25" * (times - 1) + "41" if times else "A"
    model_sources.check_absolute(model_sources.parse(f"s3://bucket/a/{plain}"))
    assert model_sources.is_below(model_sources.parse(f"s3://b/A/{plain}/c"), "s3://b/A/A")


@pytest.mark.parametrize("length", [100, 500_000])
def test_a_source_that_is_encoded_without_end_is_refused_in_time(length: int) -> None:
    source = model_sources.parse("s3://bucket/%" + "25" * length + "41")
    began = time.process_time()
    for check in (model_sources.check_absolute, model_sources.is_proxied):
        with pytest.raises(InvalidParameterValue, match="more than 16 times"):
            check(source)
    # To decode it until nothing changes would take hours.
    assert time.process_time() - began < 20


def test_a_local_path_that_no_system_opens_is_in_no_directory() -> None:
    for path in ("/tmp/a\0", "/tmp/a%00b", "file:///tmp/\0", "/tmp/" + "a/" * 500_000):
        assert not model_sources.is_inside_directory(model_sources.parse(path), "/tmp")
    assert not model_sources.is_inside_directory(model_sources.parse("/tmp/a"), "/tmp/\0")
    assert model_sources.is_inside_directory(model_sources.parse("/tmp/a"), "/tmp")
