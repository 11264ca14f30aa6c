"""Names of the column types of SQL results in Databricks' notation."""

from __future__ import annotations

import re
from typing import Final

_WORDS: Final = {
    "VARCHAR": "STRING",
    "TIMESTAMP WITH TIME ZONE": "TIMESTAMP",
    "TIMESTAMP": "TIMESTAMP_NTZ",
    "INTEGER": "INT",
    "HUGEINT": "BIGINT",
    "UBIGINT": "DECIMAL(20,0)",
    "UINTEGER": "BIGINT",
    "FLOAT": "FLOAT",
    "BLOB": "BINARY",
    '"NULL"': "VOID",
    "NULL": "VOID",
    "INTERVAL": "INTERVAL DAY TO SECOND",
    "JSON": "STRING",
}


def databricks_type(kind: str) -> str:
    """Converts DuckDB's name of a column type, such as ``MAP(VARCHAR, VARCHAR)``, to Databricks'
    name: ``MAP<STRING,STRING>``."""
    kind = kind.strip()
    if kind.endswith("[]"):
        return f"ARRAY<{databricks_type(kind[:-2])}>"
    if kind.startswith("MAP("):
        key, value = _parts(kind[4:-1])
        return f"MAP<{databricks_type(key)},{databricks_type(value)}>"
    if kind.startswith("STRUCT("):
        fields = (_field(part) for part in _parts(kind[7:-1]))
        return f"STRUCT<{','.join(f'{name}:{databricks_type(of)}' for name, of in fields)}>"
    return _WORDS.get(kind, kind)


def _field(text: str) -> tuple[str, str]:
    text = text.strip()
    if text.startswith('"'):
        match = re.match(r'"((?:[^"]|"")*)"\s+(.*)', text, re.DOTALL)
        if match:
            return match[1].replace('""', '"'), match[2]
    name, _, kind = text.partition(" ")
    return name, kind


def _parts(text: str) -> list[str]:
    """Splits a text at commas that are outside of parentheses and quotes."""
    parts, depth, quoted, start = [], 0, False, 0
    for index, letter in enumerate(text):
        if letter == '"':
            quoted = not quoted
        elif quoted:
            continue
        elif letter == "(":
            depth += 1
        elif letter == ")":
            depth -= 1
        elif letter == "," and not depth:
            parts.append(text[start:index])
            start = index + 1
    return [*parts, text[start:]]
