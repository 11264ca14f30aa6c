"""``python -m local.admin replay --job-queue``: sends the queue messages of all jobs that have not
ended, for a table that was restored without its queue."""

from __future__ import annotations

import os
import sys
from importlib import import_module

from operate.module_loading import load_modules


def run(queue_url: str) -> int:
    """Sends the message of each unfinished job of the table to the queue of jobs. The judge runner
    continues the job, or stores that it has timed out and ends its run. A second message of a job
    has no further effect. Returns 0, or 1 if the table cannot be read or the queue takes no
    messages.

    Args:
        queue_url: URL of the SQS queue of jobs.
    """
    _, errors = load_modules()
    jobs = import_module("mlcore.repos.evaluation.jobs")
    workspaces = import_module("mlcore.repos.workspaces.workspaces")
    job_queue = import_module("mlcore.job_queue")
    ended = import_module("mlcore.entities.evaluation.jobs").FINAL
    os.environ[job_queue.QUEUE_URL] = queue_url
    sent = 0
    try:
        for workspace in workspaces.names():
            for job in jobs.of_workspace(workspace):
                if job.status not in ended:
                    job_queue.send(job_queue.JobMessage(workspace, job.job_id))
                    sent += 1
    except errors.MlflowError as error:
        print(f"{error.message} Run the command again.", file=sys.stderr)
        return 1
    finally:
        print(f"messages of {sent} unfinished jobs sent")
    return 0
