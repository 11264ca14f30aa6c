"""One deployed stack for all tests of the rehearsal; the long ones only for `make rehearse`."""

from __future__ import annotations

import os
import shutil
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.browser import provider
from tests.browser.provider import Provider
from tests.rehearsal import site as sites
from tests.rehearsal.empty_layers import with_empty_layers
from tests.rehearsal.emulator import MACHINE
from tests.rehearsal.layer_builds import build as built_layer
from tests.rehearsal.site import Site, Visitor
from tests.rehearsal.stack import NoInterpreter, Stack, build, deployed, interpreter

WHOLE = os.environ.get("REHEARSAL") == "whole"
collect_ignore = (
    []
    if WHOLE
    else [
        "test_builds.py",
        "test_kubeflow.py",
        "test_package.py",
        "test_releases.py",
        "test_sdks_in_aws.py",
        "test_signed_in.py",
        "test_versions.py",
        "test_wheel_deployment.py",
        "test_whole.py",
    ]
)


@pytest.fixture(scope="package")
def built(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """What `sam build` makes of this source; `make rehearse` deploys all of its layers."""
    folder = tmp_path_factory.mktemp("built")
    template = None if WHOLE else with_empty_layers(folder)
    try:
        return build(interpreter(), folder / "build", template=template)
    except NoInterpreter as missing:
        if WHOLE:
            raise
        pytest.skip(str(missing))


@pytest.fixture(scope="package")  # the emulator takes a third of a processor while it is there
def stack(built: Path, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Stack]:
    with deployed(tmp_path_factory.mktemp("rehearsal"), built) as running_stack:
        yield running_stack


@pytest.fixture(scope="package")
def issuer(stack: Stack, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Provider]:
    """An OpenID provider that knows the stack's web UI."""
    with provider.running(tmp_path_factory.mktemp("issuer"), stack.outputs["UiUrl"]) as running:
        yield running


@pytest.fixture(scope="module")
def site(
    stack: Stack, issuer: Provider, tmp_path_factory: pytest.TempPathFactory
) -> Iterator[Site]:
    """The stack with sign-in of people; afterwards it is as it was."""
    folder = tmp_path_factory.mktemp("signing-in")
    layer = built_layer("TokensLayer", "layers/tokens", interpreter(), folder, MACHINE)
    tokens = Path(shutil.make_archive(str(folder / "tokens"), "zip", layer))
    with sites.signing_in(stack, issuer, tokens, folder) as served:
        served.provider.put_into(ada=[sites.ADMINISTRATORS])
        yield served


@pytest.fixture(scope="module")
def ada(site: Site) -> Visitor:
    """An administrator, who has signed in."""
    visitor = Visitor(site)
    visitor.sign_in("ada")
    return visitor
