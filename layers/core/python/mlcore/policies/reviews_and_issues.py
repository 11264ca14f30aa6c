"""Permission checks for requests about label schemas, review queues and issues."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Final

from mlcore import errors
from mlcore.auth.permissions import ANY, EXPERIMENT, RUN
from mlcore.auth.requirements import NOT_DENIED, Requirement
from mlcore.entities.evaluation.review_queues import CUSTOM, ReviewQueue
from mlcore.policies.access import Access
from mlcore.policies.shared_rules import Policy, are_in_workspace, create_inside, inside
from mlcore.repos.evaluation import entity_experiments, review_queues
from mlcore.repos.experiments import experiments

REVIEW_QUEUE: Final = "review_queue"

Json = dict[str, Any]


def on_entity(field: str, action: str) -> Policy:
    """Returns the policy that requires the action on the experiment of the label schema or issue
    that a field names. A missing one is refused like one without a grant, so that ids cannot be
    probed."""

    def policy(access: Access, message: Any) -> bool:
        experiment_id = entity_experiments.experiment_of(getattr(message, field))
        return (
            experiment_id is not None
            and access.allows(Requirement(EXPERIMENT, experiment_id, action))
            and are_in_workspace(access, [experiment_id])
        )

    return policy


def on_queue(action: str) -> Policy:
    def policy(access: Access, message: Any) -> bool:
        return _may_on_queues(access, _find_queue(access, message).experiment_id, action)

    return policy


def create_queue(access: Access, message: Any) -> bool:
    return access.allows(*create_inside(message.experiment_id, REVIEW_QUEUE))


def view(access: Access, message: Any) -> bool:
    """Allows reading a review queue to callers who may read the experiment's queues, if they are
    members of this queue, or own it and may update the experiment's queues, or may manage the
    experiment's queues."""
    return _may_view(access, _find_queue(access, message))


def view_by_name(access: Access, message: Any) -> bool:
    if not _may_on_queues(access, message.experiment_id, "read"):
        return False
    if _may_on_queues(access, message.experiment_id, "manage"):
        return True
    experiment = experiments.find(message.experiment_id, access.workspace)
    if experiment is None:
        return False
    queue = review_queues.find_by_name(experiment, message.name)
    return queue is not None and _may_view(access, queue)


def update(access: Access, message: Any) -> bool:
    """Allows all changes of a review queue to callers who may manage queues. Allows the queue's
    owner all changes but naming another owner."""
    queue = _find_queue(access, message)
    if _may_on_queues(access, queue.experiment_id, "manage"):
        return True
    return not message.has("new_owner") and _owns(access, queue)


def prune(access: Access, message: Any) -> bool:
    queue = _find_queue(access, message)
    if _may_on_queues(access, queue.experiment_id, "manage"):
        return True
    return queue.queue_type == CUSTOM and _owns(access, queue)


def review(access: Access, message: Any) -> bool:
    queue = _find_queue(access, message)
    return _may_on_queues(access, queue.experiment_id, "update") and _is_member(access, queue)


def search_issues(access: Access, message: Any) -> bool:
    """Requires the right to read the issues' experiment. DENY on runs refuses a filter by run."""
    if not message.experiment_id:
        return False
    not_denied = (
        [Requirement(RUN, ANY, NOT_DENIED)] if "source_run_id" in message.filter_string else []
    )
    return access.allows(Requirement(EXPERIMENT, message.experiment_id, "read"), *not_denied)


def hide_queues(access: Access, message: Any, body: Json) -> None:
    """Removes from the answer the review queues that the caller may not see. A caller who may
    update queues sees all, one who may only read them sees those of which the caller is a member,
    and any other sees none."""
    queues = body.get("review_queues")
    if not queues or _may_on_queues(access, message.experiment_id, "update"):
        return
    may_read = _may_on_queues(access, message.experiment_id, "read")
    own_queues = [
        queue
        for queue in queues
        if may_read and _normalized_username(access) in queue.get("users", ())
    ]
    del body["review_queues"]
    if own_queues:
        body["review_queues"] = own_queues


def hide_source_runs(access: Access, message: Any, body: Mapping[str, Any]) -> None:
    """Removes source runs from the issues in a response ``body`` if the caller is denied runs."""
    issues = [issue for issue in (body.get("issue"), *body.get("issues", ())) if issue]
    if any("source_run_id" in issue for issue in issues) and not access.allows(
        Requirement(RUN, ANY, NOT_DENIED)
    ):
        for issue in issues:
            issue.pop("source_run_id", None)


def _find_queue(access: Access, message: Any) -> ReviewQueue:
    """Returns the queue that a message names. Raises ResourceDoesNotExist if it is missing."""
    queue = review_queues.find(message.queue_id, access.workspace)
    if queue is not None:
        return queue
    raise errors.ResourceDoesNotExist(f"Review queue with id '{message.queue_id}' not found.")


def _may_on_queues(access: Access, experiment_id: str, action: str) -> bool:
    return access.allows(*inside(experiment_id, REVIEW_QUEUE, action))


def _may_view(access: Access, queue: ReviewQueue) -> bool:
    if not _may_on_queues(access, queue.experiment_id, "read"):
        return False
    return (
        _may_on_queues(access, queue.experiment_id, "manage")
        or _is_member(access, queue)
        or _owns(access, queue)
    )


def _owns(access: Access, queue: ReviewQueue) -> bool:
    """Whether the caller created the queue and may still update the experiment's queues."""
    return (queue.created_by or "").strip().lower() == _normalized_username(
        access
    ) and _may_on_queues(access, queue.experiment_id, "update")


def _is_member(access: Access, queue: ReviewQueue) -> bool:
    return _normalized_username(access) in queue.users


def _normalized_username(access: Access) -> str:
    return access.username.strip().lower()


read_schema = on_entity("schema_id", "read")
manage_schema = on_entity("schema_id", "manage")
update_queue = on_queue("update")
read_issue = on_entity("issue_id", "read")
update_issue = on_entity("issue_id", "update")
