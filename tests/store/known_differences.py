"""Where the store follows the documentation of DynamoDB and dynoxide does not. The comparison of
streams knows one more: dynoxide writes records for items that did not change; "if you perform a
PutItem or UpdateItem operation that does not change any data in an item, DynamoDB Streams does not
write a stream record for that operation" (DynamoDB developer guide, "Change data capture for
DynamoDB Streams").
"""

from __future__ import annotations

from typing import Any

Raw = dict[str, Any]


def is_known(operation: str, parameters: Raw, ours: Raw, theirs: Raw) -> bool:
    """Whether two answers differ as one of the rules of this file says, and in nothing else."""
    return any(rule(operation, parameters, ours, theirs) for rule in _RULES)


def _local_index_fetches(operation: str, parameters: Raw, ours: Raw, theirs: Raw) -> bool:
    """A query of a local index that needs attributes of the table: "you are charged for read
    capacity units for every base table item fetched" (developer guide, "Local secondary indexes",
    read capacity units). dynoxide adds the sizes up before it rounds."""
    return (
        operation == "Query"
        and str(parameters.get("IndexName")).startswith("LSI")
        and _without(ours, "ConsumedCapacity") == _without(theirs, "ConsumedCapacity")
    )


def _units_of_index_scans(operation: str, parameters: Raw, ours: Raw, theirs: Raw) -> bool:
    """ReturnConsumedCapacity INDEXES names the units of "each table and secondary index that was
    accessed" (API reference, Scan). dynoxide names those of a scanned index as the table's."""
    return (
        operation == "Scan"
        and "IndexName" in parameters
        and _without(ours, "ConsumedCapacity") == _without(theirs, "ConsumedCapacity")
        and _units(ours) == _units(theirs)
    )


def _units_of_repeated_transactions(
    operation: str, parameters: Raw, ours: Raw, theirs: Raw
) -> bool:
    """A transaction with a token that was used returns "the number of read capacity units consumed
    in reading the item" (API reference, TransactWriteItems). dynoxide takes the items of the first
    call."""
    return (
        operation == "TransactWriteItems"
        and "ClientRequestToken" in parameters
        and "ReadCapacityUnits" in str(ours)
        and "ReadCapacityUnits" in str(theirs)
        and _without(ours, "ConsumedCapacity") == _without(theirs, "ConsumedCapacity")
    )


def _old_attributes_of_nothing(operation: str, parameters: Raw, ours: Raw, theirs: Raw) -> bool:
    """ALL_OLD and UPDATED_OLD return attributes "as they appeared before the UpdateItem operation"
    (API reference, UpdateItem): there are none of an item that did not exist. dynoxide returns its
    key."""
    return (
        operation == "UpdateItem"
        and parameters.get("ReturnValues") == "ALL_OLD"
        and theirs.get("Attributes") == parameters["Key"]
        and ours == _without(theirs, "Attributes")
    )


def _key_conditions_of_other_types(operation: str, parameters: Raw, ours: Raw, theirs: Raw) -> bool:
    """DynamoDB refuses a key condition about a value of another type than the key's ("Condition
    parameter type does not match schema type"). dynoxide finds nothing."""
    values = parameters.get("ExpressionAttributeValues") or {}
    return (
        operation == "Query"
        and ours.get("error") == "ValidationException"
        and any("S" not in value for value in values.values())
        and theirs.get("Items") == []
    )


def _updated_members_of_lists(operation: str, parameters: Raw, ours: Raw, theirs: Raw) -> bool:
    """UPDATED_OLD and UPDATED_NEW return "only the updated attributes" (API reference, UpdateItem):
    of a list its updated members. dynoxide returns the list."""
    return (
        operation == "UpdateItem"
        and str(parameters.get("ReturnValues")).startswith("UPDATED")
        and "[" in parameters.get("UpdateExpression", "")
        and _without(ours, "Attributes") == _without(theirs, "Attributes")
    )


def _units_of_projections(operation: str, parameters: Raw, ours: Raw, theirs: Raw) -> bool:
    """A read costs the size of the item, not of what is projected of it (developer guide, "Capacity
    unit consumption for reads"). dynoxide takes the size of the projection."""
    return (
        operation == "GetItem"
        and "ProjectionExpression" in parameters
        and _without(ours, "ConsumedCapacity") == _without(theirs, "ConsumedCapacity")
    )


def _scanned_counts_of_cut_pages(operation: str, parameters: Raw, ours: Raw, theirs: Raw) -> bool:
    """Without a filter, "ScannedCount is the same as Count" (API reference, Query). dynoxide counts
    the item, too, for which a page of 1 MB had no room."""
    return (
        operation == "Query"
        and "FilterExpression" not in parameters
        and ours.get("ScannedCount") == ours.get("Count")
        and "LastEvaluatedKey" in ours
        and _without(ours, "ScannedCount", "ConsumedCapacity")
        == _without(theirs, "ScannedCount", "ConsumedCapacity")
    )


def _statically_wrong_operations(operation: str, parameters: Raw, ours: Raw, theirs: Raw) -> bool:
    """An operation of a transaction that is wrong whatever the item is, such as ADD of a text:
    DynamoDB validates the request before it looks at items, and answers ValidationException.
    dynoxide evaluates it as it evaluates conditions."""
    return (
        operation == "TransactWriteItems"
        and ours.get("error") == "ValidationException"
        and "ValidationError" in [code for code, _ in theirs.get("reasons", ())]
    )


def _units(answer: Raw) -> Any:
    return (answer.get("ConsumedCapacity") or {}).get("CapacityUnits")


def _without(answer: Raw, *names: str) -> Raw:
    return {name: value for name, value in answer.items() if name not in names}


_RULES = (
    _key_conditions_of_other_types,
    _local_index_fetches,
    _old_attributes_of_nothing,
    _statically_wrong_operations,
    _scanned_counts_of_cut_pages,
    _units_of_index_scans,
    _units_of_projections,
    _units_of_repeated_transactions,
    _updated_members_of_lists,
)
