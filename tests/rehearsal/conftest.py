"""One deployed stack for all tests of the rehearsal; the long ones only for `make rehearse`."""

from __future__ import annotations

import os
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.rehearsal.stack import NoInterpreter, Stack, build, deployed, interpreter

WHOLE = os.environ.get("REHEARSAL") == "whole"
collect_ignore = (
    []
    if WHOLE
    else [
        "test_builds.py",
        "test_kubeflow.py",
        "test_package.py",
        "test_versions.py",
        "test_wheel_deployment.py",
        "test_whole.py",
    ]
)


@pytest.fixture(scope="package")
def built(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """What `sam build` makes of this source."""
    try:
        return build(interpreter(), tmp_path_factory.mktemp("built") / "build")
    except NoInterpreter as missing:
        if WHOLE:
            raise
        pytest.skip(str(missing))


@pytest.fixture(scope="package")  # the emulator takes a third of a processor while it is there
def stack(built: Path, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Stack]:
    with deployed(tmp_path_factory.mktemp("rehearsal"), built) as found:
        yield found
