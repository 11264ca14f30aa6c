"""Permission checks for starting jobs that run judges, and for reading a job."""

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
from mlcore.auth.requirements import NOT_DENIED, InheritedFrom, Requirement
from mlcore.limits.evaluation.scorers import endpoint_in_text
from mlcore.policies.access import Access
from mlcore.policies.requests import create_inside, subject
from mlcore.repos.evaluation import jobs
from mlcore.repos.gateway import configuration


def invoke_scorer(access: Access, message: Any) -> bool:
    """Allows running a judge on traces if the caller may update the experiment (judging writes
    assessments on its traces), is not denied the registered scorer, and may use the endpoint that
    the scorer calls."""
    experiment_id = str(subject(message, "experiment_id"))
    required = [
        Requirement(EXPERIMENT, experiment_id, "update"),
        Requirement(TRACE, ANY, NOT_DENIED),
    ]
    if message.log_assessments:
        required.append(Requirement(ASSESSMENT, ANY, NOT_DENIED))
    rungs: tuple[InheritedFrom, ...] = ()
    if isinstance(message.scorer_name, str) and message.scorer_name:
        pattern = scorer_pattern(experiment_id, message.scorer_name)
        required.append(Requirement(SCORER, pattern, NOT_DENIED))
        rungs = (InheritedFrom(SCORER, pattern, NOT_DENIED),)
    required.append(Requirement(SCORER_VERSION, ANY, NOT_DENIED, rungs))
    return access.allows(*required) and uses_endpoints(access, [message.serialized_scorer])


def invoke_evaluation(access: Access, message: Any) -> bool:
    texts = message.serialized_scorers
    return access.allows(*create_inside(subject(message, "experiment_id"), RUN)) and uses_endpoints(
        access, texts if isinstance(texts, list) else ()
    )


def invoke_issue_detection(access: Access, message: Any) -> bool:
    return access.allows(*create_inside(str(subject(message, "experiment_id")), RUN))


def own_job(access: Access, message: Any) -> bool:
    """Allows access to a job only to its creator. A missing job is refused like another user's, so
    that ids cannot be probed."""
    job = jobs.find(access.workspace, message.job_id)
    return job is not None and job.creator == access.username


def uses_endpoints(access: Access, texts: Iterable[Any]) -> bool:
    """Whether the caller may use every gateway endpoint that the serialized scorers call, since
    jobs call them in the caller's name. A scorer without an endpoint, or with a missing one, needs
    no right."""
    names = {name for text in texts if (name := endpoint_in_text(text)) is not None}
    if access.is_admin or not names:
        return True
    settings = configuration.read(access.workspace)
    endpoints = [settings.endpoint_named(name) or settings.endpoints.get(name) for name in names]
    return access.allows(
        *(
            Requirement(GATEWAY_ENDPOINT, endpoint.endpoint_id, "use")
            for endpoint in endpoints
            if endpoint is not None
        )
    )
