"""Two releases side by side: each call goes to a process of the one or of the other, as in a
deployment whose aliases move one by one."""

from __future__ import annotations

import contextlib
import os
import pickle
import random
import subprocess
import sys
from collections import Counter
from collections.abc import Iterator, Sequence
from importlib import import_module
from pathlib import Path
from typing import Any

import pytest

from tests.contract import release_process
from tests.contract.conftest import Store
from tests.contract.release_source import import_paths
from tests.contract.route_world import DOMAINS, World
from tests.engines import REGION, ROOT

Event = dict[str, Any]


class Release:
    """A running process of one release's functions."""

    def __init__(self, source: Path, store: Store, folder: Path) -> None:
        paths = [*import_paths(source), str(ROOT)]
        self._process = subprocess.Popen(
            [sys.executable, "-P", release_process.__file__, str(folder)],
            env={
                **os.environ,
                "PYTHONPATH": os.pathsep.join(paths),
                "AWS_ENDPOINT_URL_DYNAMODB": store.endpoint,
                "AWS_DEFAULT_REGION": REGION,
                "TABLE_NAME": store.table,
                "ARTIFACT_FOLDER": str(folder),
                "SECRETS_KEY_ID": "key",
            },
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
        )
        path = self._read()
        assert path == str(source / "layers/core/python/mlcore"), path

    def call(self, domain: str, event: Event) -> Any:
        assert self._process.stdin is not None
        pickle.dump((domain, event), self._process.stdin)
        self._process.stdin.flush()
        return self._read()

    def _read(self) -> Any:
        assert self._process.stdout is not None
        try:
            return pickle.load(self._process.stdout)
        except EOFError:
            raise AssertionError(f"the release ended with {self._process.wait()}") from None

    def stop(self) -> None:
        for pipe in (self._process.stdin, self._process.stdout):
            assert pipe is not None
            pipe.close()
        self._process.wait(30)


class Mixture:
    """``releases`` are asked in turns that the random numbers decide; ``only`` narrows them."""

    def __init__(self, releases: Sequence[Release]) -> None:
        self.releases = releases
        self.only: Release | None = None
        self.rng = random.Random(0)
        self.calls: Counter[tuple[str, int]] = Counter()

    def call(self, domain: str, event: Event) -> Any:
        chosen = self.only or self.rng.choice(self.releases)
        self.calls[domain, self.releases.index(chosen)] += 1
        return chosen.call(domain, event)


@contextlib.contextmanager
def mixed(store: Store, sources: Sequence[Path], folder: Path) -> Iterator[tuple[Mixture, World]]:
    """Every handler of this process hands its calls to the releases until the block ends."""
    with contextlib.ExitStack() as stack:
        releases = []
        for source in sources:
            releases.append(release := Release(source, store, folder))
            stack.callback(release.stop)
        mixture = Mixture(releases)
        patch = stack.enter_context(pytest.MonkeyPatch.context())
        for domain in (*DOMAINS, "indexer", "kubeflow"):

            def handler(event: Event, _context: Any, domain: str = domain) -> Any:
                return mixture.call(domain, event)

            patch.setattr(import_module(f"{domain}.app"), "handler", handler)
        world = World()
        world._users = lambda event, _context: mixture.call("users", dict(event))
        yield mixture, world
