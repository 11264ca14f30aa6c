"""Searches of skills and of their versions, good and bad."""

from __future__ import annotations

from collections.abc import Iterator
from urllib.parse import urlencode

from tests.contract.skill_requests import DIGEST, Call, get, send, version


def searches() -> Iterator[Call]:
    for number, (name, organization) in enumerate(
        [("s-alpha", ""), ("s-beta", ""), ("s-beta", "zeta"), ("s-gamma", "acme"), ("s-none", "")]
    ):
        path = f"@{organization}/{name}" if organization else name
        yield send(
            "POST",
            "",
            {"name": name, "organization": organization, "description": f"Text  {number}\n of"},
        )
        yield send("POST", f"/{path}/tags", {"key": "team", "value": f"t{number % 2}"})
        yield send("POST", f"/{path}/tags", {"key": "a.b c", "value": "x"})
        if name != "s-none":
            yield version(path, status="draft" if number == 1 else "active", digest=DIGEST)
            yield send("POST", f"/{path}/versions/1/tags", {"key": "v", "value": "1"})
    filters = (
        *("name LIKE 's-%'", "name LIKE 'S-%'", "name ILIKE 'S-%'", "name = 's-beta'"),
        *("name != 's-beta' AND name LIKE 's-%'", "organization = ''", "organization != ''"),
        *("organization = 'acme'", "`organization` = 'zeta'", "ORGANIZATION = 'acme'"),
        *("status = 'active' AND name LIKE 's-%'", "status != 'active'", "status IN ('draft')"),
        *("status NOT IN ('active', 'draft')", "status IN ()", "status IN 'a'", "status = ('a')"),
        *("name IN ('s-beta')", "source_type = 'git' AND name LIKE 's-%'", "source_type = 'x'"),
        *(
            "description LIKE '%3%'",
            "search_text LIKE '%Text 2 of%'",
            "search_text ILIKE 's-b%TE%'",
        ),
        *("search_text = 's-none Text 4 of'", "tags.team = 't1'", "tag.team = 't1'"),
        *("tags.`a.b c` = 'x'", "tags.team LIKE 't%' and name like 's-%'", "tags.team != 't1'"),
        *("tags.team > 'a'", "tags.team IN ('t1')", "tags.team IS NULL", "tags.team = 1"),
        *("attribute.name = 's-beta'", "attributes.name = 's-beta'", "attr.name = 's-beta'"),
        *("created_at > 0 AND name = 's-beta'", "created_at < 5", "last_updated_at >= 1"),
        *("created_at > '1'", "created_at > 1.5", "created_at LIKE '1'", "created_at != 1.0"),
        *("created_at IN (1)", "foo = 'x'", "metrics.x = 1", "params.x = 'a'", "params.x = 1"),
        *("name = s-beta", "name = 5", 'name = "s-beta"', "name", "name =", "= 'x'", " ", ""),
        *("name = 'a' OR name = 'b'", "(name = 's-beta')", "name BETWEEN 'a' AND 'b'"),
        *("name = 's-beta' AND", "NOT name = 'x'", "version = 1", "digest = 'a'", "run.name = 'x'"),
        *("name > 'a'", "name == 's-beta'", "name <> 's-beta'", "name RLIKE 's'", "name IS NULL"),
        *("name = 's-beta';", "name = 's-beta' -- x", "datasets.name = 'x'", "name='s-beta'"),
        *("tags.team = 't1' AND tags.team = 't0'", "status = active", "'name' = 's-beta'"),
        *(
            "name = ''",
            "description != 'x' AND name LIKE 's-%'",
            "name LIKE '%\\_%'",
            "a.b.c = '1'",
        ),
    )
    for text in filters:
        yield get(f"?{_query(filter_string=text)}")
        yield get(f"/s-beta/versions?{_query(filter_string=text)}")
    for text in (
        *("version = 1", "version > 0", "version = '1'", "version != 1", "version LIKE '1'"),
        *("version IN (1)", "version = 1.0", f"digest = '{DIGEST}'", "digest LIKE 'a%'"),
        *("tags.v = '1'", "organization = ''", "status = 'draft'", "`version` >= 1", "VERSION = 1"),
    ):
        yield get(f"/s-beta/versions?{_query(filter_string=text)}")
        yield get(f"/@zeta/s-beta/versions?{_query(filter_string=text)}")
    for order in (
        *(
            "name",
            "name ASC",
            "name DESC",
            "name desc",
            "organization DESC",
            "status",
            "status DESC",
        ),
        *("source_type", "description DESC", "search_text", "created_at DESC", "last_updated_at"),
        *("foo", "name SIDEWAYS", "name, status", "", " ", "tags.team", "version", "version DESC"),
        *("`name` DESC", '"name"', "'name' ASC", "name ASC ASC", "attributes.name", "digest"),
        *("organization", "`organization`", "ORGANIZATION", "Name"),
    ):
        query = _query(order_by=order, filter_string="name LIKE 's-%'")
        yield get(f"?{query}")
        yield get(f"/s-beta/versions?{_query(order_by=order)}")
    yield get("?order_by=name&order_by=name+DESC")
    yield get("?order_by=status&order_by=name+DESC&filter_string=name+LIKE+%27s-%25%27")
    for most in ("0", "-1", "1", "1000", "1001", "x", "1.0", "", "1e3"):
        yield get("?" + _query(max_results=most, filter_string="name = 's-beta'"))
        yield get(f"/s-beta/versions?max_results={most}")
    for token in ("x", "e30=", "W10=", "eyJvZmZzZXQiOiAxfQ==", "%"):
        yield get(f"?{_query(page_token=token)}")
    yield get("?page_token=")
    for identities in (
        *(["s-beta"], ["@zeta/s-beta", "s-alpha"], [""], ["nope"], ["@zeta"], ["@/x"], ["Bad_"]),
        *(["", "s-beta"], ["s-beta", "s-beta"], ["@zeta/s-beta/x"], ["zeta/s-beta"]),
    ):
        pairs = [("include_skill_identities", each) for each in identities]
        yield get(f"?{_pairs(pairs)}")


def _query(**fields: str) -> str:
    return _pairs(list(fields.items()))


def _pairs(pairs: list[tuple[str, str]]) -> str:
    return urlencode(pairs)
