"""Random requests in DynamoDB's JSON, valid ones and invalid ones, about few keys."""

from __future__ import annotations

import copy
import random
from collections.abc import Callable
from typing import Any

from tests.store.given import Given
from tests.store.invalid_requests import invalid_requests

Raw = dict[str, Any]

PARTITIONS = ("p", "q")
SORT_KEYS = ("a", "a#", "b", "b\u00e4", "c", "\ud7ff", "\ue000", "\U0001f600", "d" * 40)
TEXTS = ("x", "y", "yz", "\u00e9", "\U0001f600", "z" * 30)
NUMBERS = (
    *("0", "1", "-1", "2.5", "1.50", "1e3", "007", "-0", "12345678901234567890", "1E-5"),
    *("1e28", "0.1", "9" * 38, "-" + "9" * 38, "1." + "3" * 37, "1e37", "9.9e125", "1e-130"),
)
LOCAL = ("lsi1sk", "lsi2sk", "lsi3sk")
GLOBAL = ("gsi1pk", "gsi1sk", "gsi2pk", "gsi2sk")
ATTRIBUTES = ("n", "s", "m", "l", "ss", "ns", "b", "flag", "none")
MAP_KEYS = ("k", "k.1", "key two", "")


class Operations:
    """A source of requests; the same seed gives the same ones."""

    def __init__(self, seed: int, table: str) -> None:
        self.random = random.Random(seed)
        self._transactions: list[Raw] = []
        self._table = table

    def draw(self) -> tuple[str, Raw]:
        """The next request: operation and parameters."""
        kinds: dict[Callable[[], tuple[str, Raw]], int] = {
            self._put: 16,
            self._update: 30,
            self._delete: 8,
            self._get: 6,
            self._query: 16,
            self._batch_get: 4,
            self._batch_write: 6,
            self._transaction: 12,
            self._transact_get: 2,
            self._repeated: 2,
            self._invalid: 6,
            self._scan: 2,
        }
        (kind,) = self.random.choices(list(kinds), list(kinds.values()))
        operation, parameters = kind()
        if not operation.startswith(("Batch", "Transact")):
            parameters["TableName"] = self._table
        if self._often(0.5):
            parameters["ReturnConsumedCapacity"] = self._one(("TOTAL", "INDEXES"))
        return operation, parameters

    def _often(self, share: float) -> bool:
        return self.random.random() < share

    def _one(self, values: Any) -> Any:
        return self.random.choice(values)

    def _key(self) -> Raw:
        return {"PK": {"S": self._one(PARTITIONS)}, "SK": {"S": self._one(SORT_KEYS)}}

    def _value(self, depth: int = 0) -> Raw:
        kind = self._one(("S", "N", "B", "BOOL", "NULL", "M", "L", "SS", "NS", "BS", "S", "N"))
        if kind in ("M", "L") and depth > 1:
            kind = "S"
        return {kind: self._content(kind, depth)}

    def _content(self, kind: str, depth: int) -> Any:
        if kind == "S":
            return self._one((*TEXTS, "", "w" * self._one((900, 1100, 5000))))
        if kind == "N":
            return self._one(NUMBERS)
        if kind == "B":
            return self._one(("", "AAE=", "/w==", "YWJj"))
        if kind == "BOOL":
            return self._often(0.5)
        if kind == "NULL":
            return True
        if kind == "M":
            names = self.random.sample(MAP_KEYS, self.random.randrange(len(MAP_KEYS)))
            return {name: self._value(depth + 1) for name in names if name}
        if kind == "L":
            return [self._value(depth + 1) for _ in range(self.random.randrange(4))]
        members = {"SS": TEXTS, "NS": ("1", "2", "10", "-3.5"), "BS": ("AAE=", "/w==")}[kind]
        return self.random.sample(members, self.random.randrange(1, len(members) + 1))

    def _typed(self, name: str) -> Raw:
        """A value of the type that an attribute mostly has."""
        kinds = {"n": "N", "s": "S", "m": "M", "l": "L", "ss": "SS", "ns": "NS", "b": "B"}
        kind = kinds.get(name)
        if kind is None or self._often(0.1):
            return self._value()
        return {kind: self._content(kind, 0)}

    def _item(self) -> Raw:
        item = self._key()
        for name in ATTRIBUTES:
            if self._often(0.4):
                item[name] = self._typed(name)
        for name in (*LOCAL, *GLOBAL):
            if self._often(0.4):
                item[name] = {"S": self._one(TEXTS)}
        if self._often(0.3):
            item["type"] = {"S": self._one(("run", "tag"))}
        return item

    # -- expressions -------------------------------------------------------------------------------

    def _condition(self, given: Given, depth: int = 0) -> str:
        choice = self.random.random()
        if depth < 2 and choice < 0.25:
            parts = [self._condition(given, depth + 1) for _ in range(self._one((2, 2, 3)))]
            return f"({self._one((' AND ', ' OR ')).join(parts)})"
        if depth < 2 and choice < 0.32:
            return f"NOT {self._condition(given, depth + 1)}"
        path = self._path(given)
        if choice < 0.5:
            return f"{self._one(('attribute_exists', 'attribute_not_exists'))}({path})"
        if choice < 0.53:
            amount = given.value({"N": self._one(("0", "1", "2", "30", "1100"))})
            return f"size({path}) {self._one(('=', '<', '>=', '<>'))} {amount}"
        if choice < 0.56:
            kind = self._one(("S", "N", "M", "L", "SS", "BOOL"))
            return f"attribute_type({path}, {given.value({'S': kind})})"
        if choice < 0.62:
            return f"begins_with({path}, {given.value({'S': self._one(TEXTS)})})"
        if choice < 0.68:
            return f"contains({path}, {given.value(self._scalar())})"
        if choice < 0.72:
            low, high = sorted((self._one(TEXTS), self._one(TEXTS)), key=str.encode)
            return f"{path} BETWEEN {given.value({'S': low})} AND {given.value({'S': high})}"
        if choice < 0.77:
            values = ", ".join(given.value(self._scalar()) for _ in range(self._one((1, 3))))
            return f"{path} IN ({values})"
        comparison = self._one(("=", "<>", "<", "<=", ">", ">="))
        if choice < 0.85:
            other = self._path(given)  # DynamoDB refuses two operands of one path
            if other != path:
                return f"{path} {comparison} {other}"
        return f"{path} {comparison} {given.value(self._scalar())}"

    def _scalar(self) -> Raw:
        kind = self._one(("S", "N", "B", "S", "N"))
        return {kind: self._content(kind, 0)}

    def _path(self, given: Given) -> str:
        name = self._one((*ATTRIBUTES, "PK", *LOCAL[:1], "missing"))
        path = given.name(name)
        if name == "m" and self._often(0.6):
            path += f".{given.name(self._one(MAP_KEYS[:3]))}"
        if name == "l" and self._often(0.5):
            path += f"[{self.random.randrange(4)}]"
        return path

    def _conditional(self, request: Raw, given: Given, share: float = 0.4) -> Raw:
        conditions = list(given.required)
        if self._often(share):
            conditions.append(self._condition(given))
        if conditions:
            request["ConditionExpression"] = " AND ".join(conditions)
            if self._often(0.6):
                request["ReturnValuesOnConditionCheckFailure"] = "ALL_OLD"
        given.put_into(request)
        return request

    def _update_expression(self, given: Given, *, distinct: bool = False) -> str:
        """With ``distinct`` no two paths overlap: dynoxide looks at that in UpdateItem alone."""
        clauses: dict[str, list[str]] = {}
        names = [self._one((*ATTRIBUTES, *ATTRIBUTES, *LOCAL, *GLOBAL)) for _ in range(5)]
        names = names[: self._one((1, 1, 2, 3, 5))]
        for name in dict.fromkeys(names) if distinct else names:
            path = given.name(name)
            choice = self.random.random()
            if name == "m" and choice < 0.7:
                path += f".{given.name(self._one(MAP_KEYS[:3]))}"
            if name == "l" and choice < 0.5:
                path += f"[{self.random.randrange(4)}]"
            verb, clause = self._clause(name, path, given)
            clauses.setdefault(verb, []).append(clause)
        return " ".join(f"{verb} {', '.join(parts)}" for verb, parts in clauses.items())

    def _clause(self, name: str, path: str, given: Given) -> tuple[str, str]:
        choice = self.random.random()
        if name in (*LOCAL, *GLOBAL):
            if choice < 0.3:
                return "REMOVE", path
            return "SET", f"{path} = {given.value({'S': self._one(TEXTS)})}"
        if choice < 0.2:
            if "." in path or "[" in path:
                # dynoxide ignores what DynamoDB refuses: to remove from what is not there.
                kind = given.value({"S": name.upper()})
                given.required.append(f"attribute_type({given.name(name)}, {kind})")
            return "REMOVE", path
        if name == "n" and choice < 0.6:
            amount = given.value({"N": self._one(NUMBERS)})
            if choice < 0.4:
                return "ADD", f"{path} {amount}"
            return "SET", f"{path} = {path} {self._one('+-')} {amount}"
        if name in ("ss", "ns") and choice < 0.7:
            members = given.value({name.upper(): self._content(name.upper(), 0)})
            return self._one(("ADD", "DELETE")), f"{path} {members}"
        if name == "l" and "[" not in path and choice < 0.5:
            parts = [path, given.value({"L": [self._scalar()]})]
            self.random.shuffle(parts)
            return "SET", f"{path} = list_append({', '.join(parts)})"
        if "." in path:
            # DynamoDB refuses to set an entry of what is no map; dynoxide makes some of it a map.
            kind, attribute = given.value({"S": "M"}), given.name(name)
            given.required.append(
                f"(attribute_not_exists({attribute}) OR attribute_type({attribute}, {kind}))"
            )
        if "[" in path:
            # Behind the end DynamoDB appends; dynoxide fills the list up to the position.
            given.required.append(f"attribute_exists({path})")
        if choice < 0.4:
            return "SET", f"{path} = {self._path(given)}"
        value = given.value(self._value(1) if "." in path or "[" in path else self._typed(name))
        if choice < 0.55:
            return "SET", f"{path} = if_not_exists({self._path(given)}, {value})"
        return "SET", f"{path} = {value}"

    # -- operations --------------------------------------------------------------------------------

    def _put(self) -> tuple[str, Raw]:
        request: Raw = {"Item": self._item(), "ReturnValues": self._one(("NONE", "ALL_OLD"))}
        return "PutItem", self._conditional(request, Given())

    def _update(self) -> tuple[str, Raw]:
        given = Given()
        request: Raw = {
            "Key": self._key(),
            "ReturnValues": self._one(
                ("NONE", "ALL_NEW", "ALL_NEW", "ALL_OLD", "UPDATED_NEW", "UPDATED_OLD")
            ),
        }
        if self._often(0.97):
            request["UpdateExpression"] = self._update_expression(given)
        return "UpdateItem", self._conditional(request, given)

    def _delete(self) -> tuple[str, Raw]:
        request: Raw = {"Key": self._key(), "ReturnValues": self._one(("NONE", "ALL_OLD"))}
        return "DeleteItem", self._conditional(request, Given())

    def _projection(self, request: Raw, given: Given) -> None:
        if self._often(0.3):
            paths = {self._path(given) for _ in range(self._one((1, 2, 4)))}
            request["ProjectionExpression"] = ", ".join(sorted(paths))

    def _get(self) -> tuple[str, Raw]:
        request: Raw = {"Key": self._key(), "ConsistentRead": self._often(0.7)}
        given = Given()
        self._projection(request, given)
        given.put_into(request)
        return "GetItem", request

    def _keys(self, count: int) -> list[Raw]:
        keys = {
            (key["PK"]["S"], key["SK"]["S"]): key for key in (self._key() for _ in range(count))
        }
        return list(keys.values())

    def _batch_get(self) -> tuple[str, Raw]:
        wanted: Raw = {"Keys": self._keys(self._one((1, 3, 8))), "ConsistentRead": self._often(0.5)}
        given = Given()
        self._projection(wanted, given)
        given.put_into(wanted)
        return "BatchGetItem", {"RequestItems": {self._table: wanted}}

    def _transact_get(self) -> tuple[str, Raw]:
        keys = self._keys(self._one((1, 4)))
        gets = [{"Get": {"TableName": self._table, "Key": key}} for key in keys]
        return "TransactGetItems", {"TransactItems": gets}

    def _batch_write(self) -> tuple[str, Raw]:
        requests = []
        for key in self._keys(self._one((1, 4, 9))):
            if self._often(0.7):
                requests.append({"PutRequest": {"Item": {**self._item(), **key}}})
            else:
                requests.append({"DeleteRequest": {"Key": key}})
        return "BatchWriteItem", {"RequestItems": {self._table: requests}}

    def _transaction(self) -> tuple[str, Raw]:
        operations: list[Raw] = []
        for key in self._keys(self._one((1, 2, 4))):
            given = Given()
            base: Raw = {"TableName": self._table}
            choice = self.random.random()
            if choice < 0.3:
                put = self._conditional({**base, "Item": {**self._item(), **key}}, given, 0.3)
                operations.append({"Put": put})
            elif choice < 0.6:
                expression = self._update_expression(given, distinct=True)
                update = {**base, "Key": key, "UpdateExpression": expression}
                operations.append({"Update": self._conditional(update, given, 0.2)})
            elif choice < 0.8:
                delete = self._conditional({**base, "Key": key}, given, 0.2)
                operations.append({"Delete": delete})
            else:
                check = self._conditional({**base, "Key": key}, given, 1.0)
                operations.append({"ConditionCheck": check})
        request: Raw = {"TransactItems": operations}
        if self._often(0.8):
            request["ClientRequestToken"] = f"token-{self.random.randrange(10**12)}"
            self._transactions.append(request)
        return "TransactWriteItems", copy.deepcopy(request)

    def _repeated(self) -> tuple[str, Raw]:
        """A transaction that was sent before, or another one with its token."""
        if not self._transactions:
            return self._transaction()
        request = copy.deepcopy(self._one(self._transactions[-20:]))
        if self._often(0.2):
            request["TransactItems"] = self._transaction()[1]["TransactItems"]
        return "TransactWriteItems", request

    def _query(self) -> tuple[str, Raw]:
        index = self._one((None, None, "LSI1", "LSI2", "LSI3", "GSI1", "GSI2"))
        partition, sort = "PK", "SK"
        if index:
            number = index[3:]
            sort = f"lsi{number}sk" if index.startswith("LSI") else f"gsi{number}sk"
            partition = "PK" if index.startswith("LSI") else f"gsi{number}pk"
        is_global = partition != "PK"
        given = Given()
        partition_key = self._one(TEXTS if is_global else PARTITIONS)
        condition = f"{given.name(partition)} = {given.value({'S': partition_key})}"
        if self._often(0.6):
            condition += " AND " + self._range(given, sort, SORT_KEYS if not index else TEXTS)
        request: Raw = {
            "KeyConditionExpression": condition,
            "ScanIndexForward": self._often(0.5),
            "ConsistentRead": not is_global and self._often(0.7),
        }
        if index:
            request["IndexName"] = index
        if self._often(0.4):
            request["Limit"] = self.random.randrange(1, 6)
        choice = self.random.random()
        if choice < 0.3:
            names = [partition, sort, "PK", "SK"][: self._one((1, 2, 4))]
            projected = {given.name(name) for name in names}
            request["ProjectionExpression"] = ", ".join(sorted(projected))
        elif choice < 0.5 and not is_global:
            request["Select"] = "ALL_ATTRIBUTES"
        elif choice < 0.55:
            request["Select"] = "COUNT"
        if self._often(0.15) and request.get("Select") != "COUNT":
            request["FilterExpression"] = self._filter(given)
        given.put_into(request)
        return "Query", request

    def _range(self, given: Given, sort: str, texts: tuple[str, ...]) -> str:
        name = given.name(sort)
        low, high = sorted((self._one(texts), self._one(texts)), key=str.encode)
        kind = self._one(("BETWEEN", "begins_with", "=", "<", "<=", ">", ">="))
        if kind == "BETWEEN":
            return f"{name} BETWEEN {given.value({'S': low})} AND {given.value({'S': high})}"
        if kind == "begins_with":
            return f"begins_with({name}, {given.value({'S': low[:1]})})"
        return f"{name} {kind} {given.value({'S': low})}"

    def _filter(self, given: Given) -> str:
        """A filter may not name the keys of what is queried."""
        name = given.name(self._one(ATTRIBUTES))
        if self._often(0.5):
            return f"attribute_exists({name})"
        return f"{name} = {given.value(self._scalar())}"

    def _scan(self) -> tuple[str, Raw]:
        """A scan of an index has no order that both have: it comes in one page."""
        index = self._one((None, None, "LSI1", "GSI1"))
        request: Raw = {"IndexName": index} if index else {"ConsistentRead": True}
        if self._often(0.3):
            given = Given()
            request["FilterExpression"] = self._filter(given)
            given.put_into(request)
        return "Scan", request

    def _invalid(self) -> tuple[str, Raw]:
        operation, parameters = self._one(invalid_requests(self._table, self._key()))
        return operation, dict(parameters)
