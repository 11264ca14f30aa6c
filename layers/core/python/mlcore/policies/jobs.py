"""Permission checks for starting jobs that run judges, and for reading a job."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Iterator
from typing import Any

from mlcore.auth.permissions import (
    ANY,
    ASSESSMENT,
    EXPERIMENT,
    GATEWAY_ENDPOINT,
    GATEWAY_SECRET,
    RUN,
    SCORER,
    SCORER_VERSION,
    TRACE,
    scorer_pattern,
)
from mlcore.auth.requirements import NOT_DENIED, InheritedFrom, Requirement
from mlcore.entities.evaluation.job_model import JobModel
from mlcore.limits.evaluation.judge_endpoints import endpoint_in_text
from mlcore.limits.evaluation.scorers import name_in_text
from mlcore.policies.access import Access
from mlcore.policies.shared_rules import create_inside, subject
from mlcore.repos.evaluation import jobs
from mlcore.repos.gateway import configuration


def invoke_scorer(access: Access, message: Any) -> bool:
    """Allows running a judge on traces to callers for whom :func:`may_judge` is true."""
    return may_judge(
        access,
        str(subject(message, "experiment_id")),
        message.serialized_scorer,
        message.scorer_name,
        writes=bool(message.log_assessments),
    )


def may_judge(
    access: Access, experiment_id: str, serialized_scorer: Any, scorer_name: Any, *, writes: bool
) -> bool:
    """Whether the caller may update the experiment (judging writes assessments on its traces), is
    denied neither its traces, nor assessments if they are written, nor the registered scorer, and
    may use the endpoint that the scorer calls.

    Args:
        scorer_name: the name of a registered scorer; None if the request has the scorer's text.
        writes: whether the assessments are written.
    """
    required = [
        Requirement(EXPERIMENT, experiment_id, "update"),
        Requirement(TRACE, ANY, NOT_DENIED),
    ]
    if writes:
        required.append(Requirement(ASSESSMENT, ANY, NOT_DENIED))
    parents: tuple[InheritedFrom, ...] = ()
    if isinstance(scorer_name, str) and scorer_name:
        pattern = scorer_pattern(experiment_id, scorer_name)
        required.append(Requirement(SCORER, pattern, NOT_DENIED))
        parents = (InheritedFrom(SCORER, pattern, NOT_DENIED),)
    required.append(Requirement(SCORER_VERSION, ANY, NOT_DENIED, parents))
    return access.allows(*required) and uses_endpoints(access, [serialized_scorer])


def invoke_evaluation(access: Access, message: Any) -> bool:
    """Allows evaluating traces to callers for whom :func:`may_evaluate` is true."""
    texts = message.serialized_scorers if isinstance(message.serialized_scorers, list) else []
    names = _registered_names(texts, message.scorer_versions)
    experiment_id = str(subject(message, "experiment_id"))
    return names is not None and may_evaluate(access, experiment_id, texts, names)


def may_evaluate(
    access: Access, experiment_id: str, texts: Iterable[Any], names: Iterable[str]
) -> bool:
    """Whether the caller may create runs in the experiment, is not denied any registered scorer,
    and may use the endpoints that the scorers call.

    Args:
        texts: the serialized scorers.
        names: the names of those that are registered.
    """
    required = create_inside(experiment_id, RUN)
    return access.allows(*required, *_not_denied_scorers(experiment_id, names)) and uses_endpoints(
        access, texts
    )


def _registered_names(texts: list[Any], versions: Any) -> list[str] | None:
    """Returns the names of the registered scorers in a request: those with a version. None if a
    name cannot be read, so that its scorer cannot be checked."""
    if not isinstance(versions, list):
        return []
    names = []
    for text, version in zip(texts, versions, strict=False):  # the function refuses other lengths
        if version is None:
            continue
        name = name_in_text(text)
        if name is None:
            return None
        names.append(name)
    return names


def _not_denied_scorers(experiment_id: str, names: Iterable[str]) -> Iterator[Requirement]:
    for name in dict.fromkeys(names):
        pattern = scorer_pattern(experiment_id, name)
        yield Requirement(SCORER, pattern, NOT_DENIED)
        parents = (InheritedFrom(SCORER, pattern, NOT_DENIED),)
        yield Requirement(SCORER_VERSION, ANY, NOT_DENIED, parents)


def invoke_issue_detection(access: Access, message: Any) -> bool:
    """Allows detecting issues if the caller may create runs and update the experiment, is not
    denied its traces or assessments, and may use the endpoint or the saved key by which the model
    is called. A missing endpoint or key is refused like one without a grant, so that names cannot
    be probed."""
    experiment_id = str(subject(message, "experiment_id"))
    if not may_detect_issues(access, experiment_id):
        return False
    if message.endpoint_name:
        return _may_use_endpoints(access, [message.endpoint_name])
    # The function refuses a request with neither.
    return not message.secret_id or _may_use_secret(access, message.secret_id)


def schedule_issue_detection(access: Access, message: Any) -> bool:
    """Allows confirming a schedule of issue detection if the caller may detect issues in the
    experiment. A tag of the experiment names the model, so the route's function, which reads the
    tag, checks the right to use the model."""
    return may_detect_issues(access, str(subject(message, "experiment_id")))


def may_detect_issues(access: Access, experiment_id: str) -> bool:
    """Whether the caller may create runs in the experiment and is denied neither traces nor
    assessments, as the detection of issues requires. The right to use the model is checked
    separately."""
    return access.allows(
        *create_inside(experiment_id, RUN),
        Requirement(TRACE, ANY, NOT_DENIED),
        Requirement(ASSESSMENT, ANY, NOT_DENIED),
    )


def may_use_models(access: Access, models: Collection[JobModel]) -> bool:
    """Whether the caller may use the gateway endpoints and saved API keys by which a job would call
    these models. A missing endpoint or API key is refused like one without a grant."""
    keys = [model.saved_key for model in models if model.saved_key is not None]
    names = [model.endpoint_name for model in models if model.saved_key is None]
    return all(_may_use_secret(access, key.secret_id) for key in keys) and _may_use_endpoints(
        access, names
    )


def _may_use_secret(access: Access, secret_id: str) -> bool:
    return access.allows(Requirement(GATEWAY_SECRET, secret_id, "use"))


def own_job(access: Access, message: Any) -> bool:
    """Allows access to a job only to the user who created it, and not to a later user of the same
    name. A missing job is refused like another user's, so that ids cannot be probed."""
    job = jobs.find(access.workspace, message.job_id)
    return (
        job is not None
        and job.creator == access.username
        and job.creator_id in (None, access.user_id())
    )


def own_jobs(access: Access, message: Any) -> bool:
    """Allows every user to list jobs, because the answer contains only the caller's own. API keys
    with scopes are refused, as by :func:`own_job`, because the policy requires no right that a
    scope could cover."""
    return True


def _may_use_endpoints(access: Access, names: Collection[str]) -> bool:
    """Whether the caller may use the gateway endpoints of these names. A missing one is refused
    like one without a grant."""
    if access.is_admin or not names:
        return True
    settings = configuration.read(access.workspace)
    endpoints = [settings.endpoint_named(name) for name in names]
    return all(
        endpoint is not None
        and access.allows(Requirement(GATEWAY_ENDPOINT, endpoint.endpoint_id, "use"))
        for endpoint in endpoints
    )


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
