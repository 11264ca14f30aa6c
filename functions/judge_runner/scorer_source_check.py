"""Refuses to run the source of a registered scorer if it differs from the source with which the job
was submitted."""

from __future__ import annotations

import threading
import time
from collections.abc import Sequence
from typing import Final

from mlcore import errors
from mlcore.entities.evaluation.code_scorers import CodeScorer
from mlcore.entities.evaluation.jobs import Job
from mlcore.entities.evaluation.judges import Judge
from mlcore.entities.evaluation.scorers import SealedSource
from mlcore.repos.evaluation import scorers
from mlcore.repos.experiments import experiments

RECHECK_SECONDS: Final = 60.0
"""While a job works, a scorer's source is compared again after this many seconds."""


class SourceCheck:
    """Checks that the scorer version of a job is still registered unchanged, and that its source is
    what the job would run. May be used from several threads."""

    def __init__(self, job: Job, source: SealedSource, text: str) -> None:
        """
        Args:
            source: the scorer version with which the job was submitted.
            text: the scorer's JSON in the job, which is what would run.
        """
        self._job = job
        self._source = source
        self._text = text
        self._lock = threading.Lock()
        self._checked_at: float | None = None

    def check(self) -> None:
        """Compares the scorer's JSON in the job with the registered scorer version, unless the last
        comparison is less than :data:`RECHECK_SECONDS` old. Must be called before each judgement.

        Raises:
            InvalidParameterValue: the version was deleted, registered anew or changed, or the job
                has other JSON.
        """
        with self._lock:
            now = time.monotonic()
            if self._checked_at is not None and now - self._checked_at < RECHECK_SECONDS:
                return
            self._compare()
            self._checked_at = now

    def _compare(self) -> None:
        name, number = self._source.name, self._source.version
        known = experiments.find_existing([self._job.params["experiment_id"]], self._job.workspace)
        version = scorers.find(known[0], name, number) if known else None
        if (
            version is None
            or not version.is_intact()
            or version.source() != self._source
            or version.serialized_scorer != self._text
        ):
            raise errors.InvalidParameterValue(
                f"Version {number} of scorer '{name}' was deleted or replaced after this job was "
                "submitted, so its source was not run."
            )


def of_job(
    job: Job, parsed: Sequence[Judge | CodeScorer], texts: Sequence[str]
) -> list[SourceCheck | None]:
    """Checks the source code of a job's scorers once, and returns the checks in the order of the
    scorers. None stands for a judge, and for code that was in the request instead of a registered
    version.

    Raises:
        InvalidParameterValue: as :meth:`SourceCheck.check`, or the job names a version of a scorer
            that is code and does not say which source it had.
    """
    sources = job.params.get("sealed_sources") or [None] * len(texts)
    numbers = job.params.get("scorer_versions") or [job.params.get("scorer_version")] * len(texts)
    checks: list[SourceCheck | None] = []
    for scorer, text, source, number in zip(parsed, texts, sources, numbers, strict=True):
        if not isinstance(scorer, CodeScorer):
            checks.append(None)
        elif source is not None:
            checks.append(SourceCheck(job, SealedSource(*source), text))
        elif number is None:
            checks.append(None)
        else:
            raise errors.InvalidParameterValue(
                f"The job does not say which source version {number} of scorer '{scorer.name}' "
                "had, so its source was not run."
            )
    for check in checks:
        if check is not None:
            check.check()
    return checks
