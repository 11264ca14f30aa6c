"""What each function may have to ask of AWS, as its code says."""

from __future__ import annotations

import ast
import functools
import importlib
import re
from collections.abc import Iterator
from typing import Any

from mlcore.policies import route_authorization
from tests.arch.references import Name, Use, modules, reached

Right = tuple[str, str]
"""An action of IAM, and what it is done to."""

TABLE, BUCKET, FILES, INTERNAL = (
    "Table",
    "ArtifactBucket",
    "ArtifactBucket/*",
    "ArtifactBucket/.internal/*",
)

TABLE_ACTIONS = {
    "get": "GetItem",
    "batch_get": "BatchGetItem",
    "put": "PutItem",
    "update": "UpdateItem",
    "delete": "DeleteItem",
    "batch_write": "BatchWriteItem",
}
QUERIES = ("query", "query_all")
_QUERY = "dynamodb:Query"
NO_CALL = ("transact", "parallel", "measure")
OPERATIONS = {
    "Put": "PutItem",
    "Change": "UpdateItem",
    "Delete": "DeleteItem",
    "Check": "ConditionCheckItem",
}
"""What a transaction is made of is allowed as if it were alone."""

_READ, _WRITE, _REMOVE = "s3:GetObject", "s3:PutObject", "s3:DeleteObject"
_LIST = "s3:ListBucket"
STORE_ACTIONS = {
    # Without the right to list, S3 answers 403 for a file that is not there.
    "get": (_READ, _LIST),
    "read": (_READ, _LIST),
    "open": (_READ, _LIST),
    "download_url": (_READ, _LIST),
    "list": (_LIST,),
    "is_directory": (_LIST,),
    "below": (_LIST,),
    "put": (_WRITE,),
    "create": (_WRITE,),
    "upload_url": (_WRITE,),
    "create_upload": (_WRITE,),
    "part_url": (_WRITE,),
    "complete_upload": (_WRITE, _READ, _LIST),
    "abort_upload": ("s3:AbortMultipartUpload",),
    "delete": (_REMOVE,),
    "delete_tree": (_REMOVE, _LIST),
    "delete_older": (_REMOVE, _LIST),
}
INTERNAL_FILES = (
    "catalog_loader.file_store",
    "mlcore.repos.runs.history.history_files",
    "mlcore.repos.traces.span_packs",
    "mlcore.repos.traces.traces",
)
"""Modules that read and write below ``.internal`` alone."""
SKILL_FILES = tuple(f"{BUCKET}/{folder}skills/*" for folder in ("", "workspaces/*/"))
"""What ``skills.uploaded_files`` writes: the folders of skills, of each workspace."""

TABLES = "SystemTablesBucket"
_LANDING, _SYSTEM = f"{TABLES}/landing/*", f"{TABLES}/system/*"
BELOW = {
    "mlcore.system_tables.alert_files": f"{TABLES}/alerts/*",
    "mlcore.system_tables.backfill_landing": f"{TABLES}/landing/backfill.json",
}
"""Modules that read and write one place of the system tables' bucket, and no landing objects."""
ENGINES = {
    "publisher": {
        *(("dynamodb:BatchGetItem", TABLE), (_QUERY, TABLE)),
        *((action, _SYSTEM) for action in (_READ, _WRITE, _REMOVE)),
        *((action, _LANDING) for action in (_READ, _REMOVE)),
        (_LIST, TABLES),
        *((_READ, INTERNAL), (_LIST, BUCKET)),
    },
    "sql": {(_READ, _SYSTEM), (_LIST, TABLES)},
}
"""What is done by the layer of the system tables, whose engines speak to S3 themselves: read from
its documentation, not from code."""

SERVICES = {
    Name("mlcore.secrets", "seal"): ("kms:Encrypt", "SecretsKey"),
    Name("mlcore.secrets", "open_sealed"): ("kms:Decrypt", "SecretsKey"),
    Name("mlcore.queues", "send"): ("sqs:SendMessage", "WebhookQueue"),
    Name("mlcore.file_removal_queue", "send"): ("sqs:SendMessage", "FileRemovalQueue"),
    Name("mlcore.queues", "postpone"): ("sqs:ChangeMessageVisibility", "WebhookQueue"),
    Name("mlcore.job_queue", "send"): ("sqs:SendMessage", "JobQueue"),
    Name("mlcore.job_queue", "postpone"): ("sqs:ChangeMessageVisibility", "JobQueue"),
    Name("mlcore.scorer_cage.remote_cage", "judge"): (
        "lambda:InvokeFunction",
        "CodeScorersFunction.Alias",
    ),
}

OWN_KEYS = Name("mlcore.aws_clients", "process_credentials")
"""The role's own credentials, with which models of Amazon Bedrock are called."""

LANDED = Name("mlcore.system_tables.storage", "store")

BOUNDARY = (
    LANDED,
    "mlcore.db.table",
    "mlcore.db.client",
    "mlcore.artifacts.s3_store",
    "mlcore.artifacts.local_folder_store",
    Name("mlcore.artifacts", "store"),
    "mlcore.secrets",
    "mlcore.queues",
    Name("mlcore.file_removal_queue", "send"),
    Name("mlcore.job_queue", "send"),
    Name("mlcore.job_queue", "postpone"),
    Name("mlcore.scorer_cage.remote_cage", "judge"),
    # Of the policies a function asks those of its own routes.
    Name("mlcore.policies.route_authorization", "load_rules"),
)

SIGNERS = "mlcore.policies.iam_callers"
"""Asked with Authentication=iam alone."""

_INDEX = re.compile(r"[LG]SI[1-5]")


class Unclear(Exception):
    """A call whose right cannot be told from the code."""


def of(domain: str, *closed: str) -> frozenset[Right]:
    """The rights of a function; without what only ``closed`` modules do."""
    roots = [Name(f"{domain}.app", "handler"), *_policies(domain)]
    reach = reached(roots, closed=(*BOUNDARY, *closed))
    rights: set[Right] = set(ENGINES.get(domain, ()))
    for user, use in reach.uses:
        rights |= set(_rights(user, use))
    if any(action == _QUERY for action, _ in rights):
        indexes = {
            text
            for module, text in reach.texts
            if _INDEX.fullmatch(text) and not module.startswith(("mlcore.db", "mlcore.models"))
        }
        rights |= {(_QUERY, f"{TABLE}/index/{index}") for index in indexes}
    return frozenset(right for right in rights if right[1])


def signs(domain: str) -> bool:
    """Whether a function may send requests of another service than the table in its role's name."""
    reach = reached([Name(f"{domain}.app", "handler")], closed=BOUNDARY)
    return any(use.target == OWN_KEYS for _, use in reach.uses)


def of_backfill() -> frozenset[Right]:
    """Of whoever lands what the table holds already."""
    # Runs are asked of experiments that are there: none is made on the way.
    default = Name("mlcore.repos.experiments.experiments", "_default_item")
    reach = reached(
        [Name("mlcore.system_tables.backfill_landing", "land")], closed=(*BOUNDARY, default)
    )
    rights = {right for user, use in reach.uses for right in _rights(user, use) if right[1]}
    # Runs of both stages are in order in LSI2 alone; GSI5 lists the models.
    indexes = ("GSI2", "GSI5", "LSI2")
    return frozenset(rights | {(_QUERY, f"{TABLE}/index/{index}") for index in indexes})


def _rights(user: Name, use: Use) -> Iterator[Right]:
    target = use.target
    if target in SERVICES:
        yield SERVICES[target]
    elif target == Name("mlcore.db.table", "table"):
        if use.attribute in TABLE_ACTIONS:
            yield f"dynamodb:{TABLE_ACTIONS[use.attribute]}", TABLE
        elif use.attribute in QUERIES:
            yield _QUERY, "" if _is_of_an_index(use.call) else TABLE
        elif use.attribute not in NO_CALL:
            raise Unclear(f"{user}: table.{use.attribute}")
    elif target.module == "mlcore.db.table" and target.name in OPERATIONS:
        yield f"dynamodb:{OPERATIONS[target.name]}", TABLE
    elif target == LANDED and use.attribute:
        for action in STORE_ACTIONS[use.attribute.removeprefix("().")]:
            below = BELOW.get(user.module, _LANDING)
            yield action, TABLES if action == _LIST else below
    elif target == Name("mlcore.artifacts", "store") and use.attribute:
        where: tuple[str, ...] = (INTERNAL,) if user.module in INTERNAL_FILES else (FILES,)
        if user.module == "skills.uploaded_files":
            where = SKILL_FILES
        for action in STORE_ACTIONS[use.attribute.removeprefix("().")]:
            yield from (
                (action, resource) for resource in ((BUCKET,) if action == _LIST else where)
            )


def _is_of_an_index(call: ast.Call | None) -> bool:
    """Whether a query names its index itself; one that is handed an index may be handed none."""
    if call is None:
        return False
    named = [keyword.value for keyword in call.keywords if keyword.arg == "index"]
    return bool(named) and isinstance(named[0], ast.Constant)


def _policies(domain: str) -> Iterator[Name]:
    """The policies of a function's own routes, and what follows them."""
    app = importlib.import_module(f"{domain}.app")
    routes = [route for name in ("RPCS", "PLAIN_ROUTES") for route in getattr(app, name, ())]
    for route in routes:
        for rule in route_authorization.load_rules(route.policy, route.follow, route.hides):
            yield from _functions(rule)


def _functions(value: Any) -> Iterator[Name]:
    """A function and those that it was made of."""
    if isinstance(value, functools.partial):
        for part in (value.func, *value.args, *value.keywords.values()):
            yield from _functions(part)
    elif callable(value) and getattr(value, "__module__", "") in modules():
        yield Name(value.__module__, value.__qualname__.split(".")[0])
        for cell in getattr(value, "__closure__", None) or ():
            yield from _functions(cell.cell_contents)
