"""Who may let judges run, and whose the jobs are in which they do."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

from mlcore.auth.permissions import (
    ANY,
    ASSESSMENT,
    EXPERIMENT,
    GATEWAY_ENDPOINT,
    RUN,
    SCORER,
    SCORER_VERSION,
    TRACE,
    scorer_pattern,
)
from mlcore.auth.requirements import NOT_DENIED, Requirement, Rung
from mlcore.limits.evaluation.scorers import endpoint_in
from mlcore.policies.access import Access
from mlcore.policies.requests import creating, subject
from mlcore.repos.evaluation import jobs
from mlcore.repos.gateway import configuration


def invoke_scorer(access: Access, message: Any) -> bool:
    """To judge traces is to write on them; a scorer that is registered must not be denied, nor the
    endpoint that it asks."""
    experiment_id = str(subject(message, "experiment_id"))
    required = [
        Requirement(EXPERIMENT, experiment_id, "update"),
        Requirement(TRACE, ANY, NOT_DENIED),
    ]
    if message.log_assessments:
        required.append(Requirement(ASSESSMENT, ANY, NOT_DENIED))
    rungs: tuple[Rung, ...] = ()
    if isinstance(message.scorer_name, str) and message.scorer_name:
        pattern = scorer_pattern(experiment_id, message.scorer_name)
        required.append(Requirement(SCORER, pattern, NOT_DENIED))
        rungs = (Rung(SCORER, pattern, NOT_DENIED),)
    required.append(Requirement(SCORER_VERSION, ANY, NOT_DENIED, rungs))
    return access.allows(*required) and uses_endpoints(access, [message.serialized_scorer])


def invoke_evaluation(access: Access, message: Any) -> bool:
    texts = message.serialized_scorers
    return access.allows(*creating(subject(message, "experiment_id"), RUN)) and uses_endpoints(
        access, texts if isinstance(texts, list) else ()
    )


def invoke_issue_detection(access: Access, message: Any) -> bool:
    return access.allows(*creating(str(subject(message, "experiment_id")), RUN))


def own_job(access: Access, message: Any) -> bool:
    """Jobs have no experiment. One that is missing is refused like one of somebody else."""
    found = jobs.find(access.workspace, message.job_id)
    return found is not None and found.creator == access.username


def uses_endpoints(access: Access, texts: Iterable[Any]) -> bool:
    """Whether the caller may use the endpoints of the gateway that scorers ask, for their jobs call
    them in the caller's name. What asks none, or one that is missing, needs no right."""
    names = {name for text in texts if (name := endpoint_in(text)) is not None}
    if access.is_admin or not names:
        return True
    known = configuration.read(access.workspace)
    found = [known.endpoint_named(name) or known.endpoints.get(name) for name in names]
    return access.allows(
        *(Requirement(GATEWAY_ENDPOINT, one.endpoint_id, "use") for one in found if one is not None)
    )
