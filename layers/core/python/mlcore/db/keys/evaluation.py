"""Keys of evaluation datasets, scorers, jobs, label schemas, review queues and issues."""

from __future__ import annotations

from mlcore.db.keys.pattern import UPPER_BOUND, Key, Pattern

_EXP = "EXP#<experiment_id>"

EVALUATION_DATASET = Pattern(
    "evaluation_dataset",
    "EVALDATASETS#<workspace>",
    "EVALDATASET#<evaluation_dataset_id>",
    "an evaluation dataset with its tags and the experiments that it belongs to",
)
EVALUATION_RECORD = Pattern(
    "evaluation_record",
    "EVALRECORDS#<evaluation_dataset_id>",
    "RECORD#<record_id>",
    "a record of an evaluation dataset, found by its inputs",
)
LSI2_EVALUATION_RECORD = Pattern(
    "lsi2_evaluation_record",
    "EVALRECORDS#<evaluation_dataset_id>",
    "RECORD#<time>#<number>#<record_id>",
    "records in the order of their creation",
    index="LSI2",
)
SCORER_VERSION = Pattern(
    "scorer_version", _EXP, "SCORER#<scorer_name>#V#<version>", "a version of a scorer"
)
ONLINE_SCORER = Pattern(
    "online_scorer",
    "ONLINESCORERS",
    "ONLINESCORER#<workspace>#<experiment_id>#<scorer_name>",
    "the settings by which a scorer judges an experiment's new traces automatically",
)
ONLINE_PROGRESS = Pattern(
    "online_progress",
    "ONLINESCORERS",
    "ONLINEPROGRESS#<workspace>#<experiment_id>",
    "up to which trace the online scorers of an experiment have judged",
)
JOB = Pattern(
    "job",
    "JOBS#<workspace>",
    "JOB#<job_id>",
    "work that continues after its request; ids sort by time",
)
JOB_CALL = Pattern(
    "job_call",
    "JOBCALLS#<job_id>",
    "JOBCALL#<request_digest>#<number>",
    "the answer to a model call of a job: the first, second … with this request",
)
ISSUE_DETECTION = Pattern(
    "issue_detection",
    "ISSUEDETECTIONS#<workspace>",
    "ISSUEDETECTION#<experiment_id>",
    "the job that detects issues in an experiment, so that only one does",
)
DETECTION_SCHEDULE = Pattern(
    "detection_schedule",
    "DETECTIONSCHEDULES",
    "DETECTIONSCHEDULE#<workspace>#<experiment_id>",
    "when issues of an experiment are detected without a request, and in whose name",
)
LSI2_DETECTION_SCHEDULE = Pattern(
    "lsi2_detection_schedule",
    "DETECTIONSCHEDULES",
    "DETECTIONSCHEDULE#<time>#<workspace>#<experiment_id>",
    "schedules of issue detection in the order in which they are due",
    index="LSI2",
)
LABEL_SCHEMA = Pattern(
    "label_schema", _EXP, "LABELSCHEMA#<label_schema_id>", "a question to reviewers"
)
LABEL_SCHEMA_NAME = Pattern(
    "label_schema_name",
    _EXP,
    "LABELSCHEMANAME#<label_schema_name>",
    "makes the label schema's name unique",
)
REVIEW_QUEUE = Pattern("review_queue", _EXP, "REVIEWQUEUE#<queue_id>", "a review queue")
REVIEW_QUEUE_NAME = Pattern(
    "review_queue_name",
    _EXP,
    "REVIEWQUEUENAME#<queue_name>",
    "makes the queue's name unique; in lower case",
)
REVIEW_QUEUE_ITEM = Pattern(
    "review_queue_item", _EXP, "REVIEWQUEUEITEM#<queue_id>#<item_id>", "a trace to review"
)
ISSUE = Pattern("issue", _EXP, "ISSUE#<issue_id>", "an issue that was found in traces")
ENTITY_REF = Pattern(
    "entity_ref",
    "ENTITY#<entity_id>",
    "ENTITY#REF",
    "the experiment of the scorer, label schema, review queue or issue with this id",
)

EVALUATION_INDEX_PATTERNS = (LSI2_EVALUATION_RECORD, LSI2_DETECTION_SCHEDULE)

EVALUATION_PATTERNS = (
    EVALUATION_DATASET,
    EVALUATION_RECORD,
    SCORER_VERSION,
    ONLINE_SCORER,
    ONLINE_PROGRESS,
    JOB,
    JOB_CALL,
    ISSUE_DETECTION,
    DETECTION_SCHEDULE,
    LABEL_SCHEMA,
    LABEL_SCHEMA_NAME,
    REVIEW_QUEUE,
    REVIEW_QUEUE_NAME,
    REVIEW_QUEUE_ITEM,
    ISSUE,
    ENTITY_REF,
)


def evaluation_dataset(workspace: str, dataset_id: str) -> Key:
    return Key(EVALUATION_DATASET.pk.build(workspace), EVALUATION_DATASET.sk.build(dataset_id))


def evaluation_dataset_prefix() -> str:
    return EVALUATION_DATASET.sk.prefix()


def evaluation_record(dataset_id: str, record_id: str) -> Key:
    return Key(EVALUATION_RECORD.pk.build(dataset_id), EVALUATION_RECORD.sk.build(record_id))


def dataset_of_record(pk: str) -> str:
    """Returns the id of the evaluation dataset whose records have this partition key. Raises
    ValueError for other partition keys."""
    fields = EVALUATION_RECORD.pk.parse(pk)
    if fields is None:
        raise ValueError(f"{pk!r} is not the partition of a dataset's records")
    dataset_id: str = fields["evaluation_dataset_id"]
    return dataset_id


def workspace_of_dataset(pk: str) -> str:
    """Returns the workspace whose evaluation datasets have this partition key. Raises ValueError
    for other keys."""
    fields = EVALUATION_DATASET.pk.parse(pk)
    if fields is None:
        raise ValueError(f"{pk!r} is not the partition of a workspace's datasets")
    workspace: str = fields["workspace"]
    return workspace


def evaluation_record_prefix() -> str:
    return EVALUATION_RECORD.sk.prefix()


def lsi2_evaluation_record(created_time: int, number: int, record_id: str) -> str:
    return LSI2_EVALUATION_RECORD.sk.build(created_time, number, record_id)


def lsi2_evaluation_record_prefix() -> str:
    return LSI2_EVALUATION_RECORD.sk.prefix()


def lsi2_evaluation_records_after(
    created_time: int, number: int, record_id: str
) -> tuple[str, str]:
    """Returns inclusive bounds of the LSI2 sort keys of an evaluation dataset's records that follow
    the given one, by time of creation."""
    prefix = lsi2_evaluation_record_prefix()
    return lsi2_evaluation_record(created_time, number, record_id) + "\0", prefix + UPPER_BOUND


def scorer_version(experiment_id: str, name: str, version: int) -> Key:
    return Key(SCORER_VERSION.pk.build(experiment_id), SCORER_VERSION.sk.build(name, version))


def scorer_version_prefix(name: str | None = None) -> str:
    return SCORER_VERSION.sk.prefix() if name is None else SCORER_VERSION.sk.prefix(name)


def online_scorer(workspace: str, experiment_id: str, name: str) -> Key:
    return Key(ONLINE_SCORER.pk.build(), ONLINE_SCORER.sk.build(workspace, experiment_id, name))


def online_scorer_prefix(*scope: str) -> str:
    """Returns the prefix of the sort keys of online scorers: of all, of a workspace, or of an
    experiment (``scope`` is workspace and experiment id)."""
    return ONLINE_SCORER.sk.prefix(*scope)


def online_progress(workspace: str, experiment_id: str) -> Key:
    return Key(ONLINE_PROGRESS.pk.build(), ONLINE_PROGRESS.sk.build(workspace, experiment_id))


def job(workspace: str, job_id: str) -> Key:
    return Key(JOB.pk.build(workspace), JOB.sk.build(job_id))


def job_prefix() -> str:
    return JOB.sk.prefix()


def job_call(job_id: str, request_digest: str, number: int) -> Key:
    return Key(JOB_CALL.pk.build(job_id), JOB_CALL.sk.build(request_digest, number))


def job_call_prefix() -> str:
    return JOB_CALL.sk.prefix()


def issue_detection(workspace: str, experiment_id: str) -> Key:
    return Key(ISSUE_DETECTION.pk.build(workspace), ISSUE_DETECTION.sk.build(experiment_id))


def detection_schedule(workspace: str, experiment_id: str) -> Key:
    sk = DETECTION_SCHEDULE.sk.build(workspace, experiment_id)
    return Key(DETECTION_SCHEDULE.pk.build(), sk)


def lsi2_detection_schedule(fire_time: int, workspace: str, experiment_id: str) -> str:
    return LSI2_DETECTION_SCHEDULE.sk.build(fire_time, workspace, experiment_id)


def lsi2_detection_schedules_until(time: int) -> tuple[str, str]:
    """Returns inclusive bounds of the LSI2 sort keys of the schedules of issue detection that are
    due at ``time`` (milliseconds since the epoch) or earlier."""
    return LSI2_DETECTION_SCHEDULE.sk.prefix(), LSI2_DETECTION_SCHEDULE.sk.prefix(time + 1)


def label_schema(experiment_id: str, schema_id: str) -> Key:
    return Key(LABEL_SCHEMA.pk.build(experiment_id), LABEL_SCHEMA.sk.build(schema_id))


def label_schema_prefix() -> str:
    return LABEL_SCHEMA.sk.prefix()


def label_schema_name(experiment_id: str, name: str) -> Key:
    return Key(LABEL_SCHEMA_NAME.pk.build(experiment_id), LABEL_SCHEMA_NAME.sk.build(name))


def review_queue(experiment_id: str, queue_id: str) -> Key:
    return Key(REVIEW_QUEUE.pk.build(experiment_id), REVIEW_QUEUE.sk.build(queue_id))


def review_queue_prefix() -> str:
    return REVIEW_QUEUE.sk.prefix()


def review_queue_name(experiment_id: str, name: str) -> Key:
    """Returns the key of the item that reserves a review queue's name. Names that differ in case
    only have the same key."""
    folded = name.lower()
    return Key(REVIEW_QUEUE_NAME.pk.build(experiment_id), REVIEW_QUEUE_NAME.sk.build(folded))


def review_queue_item(experiment_id: str, queue_id: str, item_id: str) -> Key:
    sk = REVIEW_QUEUE_ITEM.sk.build(queue_id, item_id)
    return Key(REVIEW_QUEUE_ITEM.pk.build(experiment_id), sk)


def review_queue_item_prefix(queue_id: str) -> str:
    return REVIEW_QUEUE_ITEM.sk.prefix(queue_id)


def issue(experiment_id: str, issue_id: str) -> Key:
    return Key(ISSUE.pk.build(experiment_id), ISSUE.sk.build(issue_id))


def issue_prefix() -> str:
    return ISSUE.sk.prefix()


def entity_ref(entity_id: str) -> Key:
    return Key(ENTITY_REF.pk.build(entity_id), ENTITY_REF.sk.text)
