"""The last release and this version side by side, over one table: calls of every function and the
stream's batches go to the one or the other at random, and nobody notices."""

from __future__ import annotations

import random
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

import indexer.app
from indexer.verification import rebuild
from mlcore import artifacts
from tests.contract import release_source, released_data
from tests.contract.conftest import EXAMPLES, Store, forget
from tests.contract.release_mixture import Mixture, mixed
from tests.contract.route_world import World
from tests.contract.sealing import seal_here
from tests.contract.streams import following
from tests.contract.trace_calls import info, start, tell
from tests.engines import DYNOXIDE, ROOT

# 0.1.0 knows no store, so both releases ask an engine.
pytestmark = pytest.mark.parametrize("table_engine", [DYNOXIDE], indirect=True)

OFTEN = 0.1
"""How often the indexer follows before a request."""


@pytest.fixture(scope="module")
def last(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return release_source.unpack(released_data.LAST_RELEASE, tmp_path_factory.mktemp("release"))


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Path]:
    path = tmp_path_factory.mktemp("files")
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("ARTIFACT_FOLDER", str(path))
        seal_here(patch, path)
        artifacts.store.cache_clear()
        yield path
    artifacts.store.cache_clear()


def disagreements(store: Store, mixture: Mixture, world: World, seed: int) -> list[Any]:
    """Writes one of everything by a mixture that the seed decides, then asks each release for all
    of it, the older first. Returns what they answered differently, and what the index has wrong.

    Raises:
        AssertionError: a request failed.
    """
    mixture.only, mixture.rng = None, random.Random(seed)
    with following(store, latest=True) as stream:

        def follow() -> None:
            while records := stream.fresh():
                middle = mixture.rng.randrange(len(records))
                for batch in filter(None, (records[:middle], records[middle:])):
                    answer = indexer.app.handler({"Records": batch}, None)
                    assert not answer.get("batchItemFailures")

        sends = world.send

        def send(method: str, path: str, fields: dict[str, Any]) -> Any:
            if mixture.rng.random() < OFTEN:
                follow()
            return sends(method, path, fields)

        world.send = send
        try:
            requests = released_data.make(store, world)
        finally:
            world.send = sends
        follow()
    answers = []
    for release in mixture.releases:
        mixture.only = release
        answers.append(released_data.answers(world, requests))
    forget()
    wrong = [
        (experiment_id, report.findings)
        for experiment_id in rebuild.experiment_ids()
        if (report := rebuild.verify(experiment_id)).findings
    ]
    differ = [
        (before, now)
        for before, now in zip(*answers, strict=True)
        if released_data.as_before(now.answer, before.answer) != before.answer
    ]
    return [*differ, *wrong]


@pytest.mark.parametrize("seed", range(2 * EXAMPLES if EXAMPLES > 1 else 1))
def test_any_mixture_answers_as_one(seed: int, store: Store, last: Path, folder: Path) -> None:
    with mixed(store, (last, ROOT), folder) as (mixture, world):
        assert disagreements(store, mixture, world, seed) == []
        domains = {domain for domain, _ in mixture.calls}
        assert {"indexer", "kubeflow", "runs", "users"} <= domains
        assert all(mixture.calls[domain, number] for domain in domains for number in (0, 1))


@pytest.mark.parametrize("first", [0, 1])
def test_an_assessment_is_repeated_and_updated_by_the_other_release(
    store: Store, last: Path, folder: Path, first: int
) -> None:
    with mixed(store, (last, ROOT), folder) as (mixture, _):
        trace_id = f"tr-assessed-{first}"
        tell("POST", "3.0/traces", start("0", trace_id))
        path, time = f"3.0/traces/{trace_id}/assessments", "2026-01-01T00:00:00Z"
        names = ["c", "a", "b"]
        for name in names:
            made = {
                "assessment_id": f"a-{name}",
                "assessment_name": name,
                "source": {"source_type": "CODE", "source_id": "c"},
                "feedback": {"value": 1},
                "create_time": time,
                "last_update_time": time,
            }
            for number in (first, 1 - first):
                mixture.only = mixture.releases[number]
                tell("POST", path, {"assessment": made})
        mixture.only = mixture.releases[0]
        changed = {"assessment": {"rationale": "because"}, "update_mask": "rationale"}
        tell("PATCH", f"{path}/a-c", changed)
        mixture.only = mixture.releases[1]
        shown = [each["assessment_name"] for each in info(trace_id)["assessments"]]
        assert shown == (names if first else sorted(names))


def another_key(source: Path) -> None:
    """A release that keeps runs under another key."""
    path = source / "layers/core/python/mlcore/db/keys/experiments.py"
    text = path.read_text()
    assert '"R#<run_id>' in text
    path.write_text(text.replace('"R#<run_id>', '"r#<run_id>'))


def test_a_release_that_reads_another_form_is_noticed(
    store: Store, folder: Path, tmp_path: Path
) -> None:
    other = release_source.unpack(released_data.LAST_RELEASE, tmp_path)
    another_key(other)
    with mixed(store, (other, ROOT), folder) as (mixture, world), pytest.raises(AssertionError):
        assert disagreements(store, mixture, world, 1) == []
