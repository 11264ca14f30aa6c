# Much is given wrongly on purpose.
# mypy: disable-error-code="arg-type, assignment, dict-item, abstract"
"""The skill registry: skills, their versions, aliases and tags, archives, searches."""

from __future__ import annotations

import io
import tarfile
import tempfile
from pathlib import Path

from mlflow import MlflowClient

from .record import Record

GIT = "https://git.example.com/a/skills.git"
DIGEST = "a" * 64
SOURCES = (
    *(GIT, "git@git.example.com:a/b.git", "ssh://git@git.example.com/r.git", "oci://reg/image:1"),
    *(
        "https://example.com/a.zip",
        "git://h/a",
        "https://example.com/s",
        "/etc/passwd",
        "runs:/x/y",
    ),
    *("https://u:p@git.example.com/a.git", "https://example.com/a.zip?sig=1", "oci://", "", None),
    *("ftp://example.com/a.zip", "oci://UPPER/X", "-https://example.com/a.git", "models:/m/1"),
)
FILTERS = (
    *(
        "name LIKE '{}%'",
        "name = '{}-1'",
        "name ILIKE '{}%' AND tags.team = 'a'",
        "status = 'active'",
    ),
    *("name LIKE '{}%' AND status IN ('active', 'draft')", "source_type = 'git'", "foo = 'x'"),
    *("name LIKE '{}%' AND created_at > 0", "name > 'a'", "search_text LIKE '{}%'", "   ", "name"),
    *(
        "name IN ('a')",
        "name LIKE '{}%' OR name = 'x'",
        "organization = 'acme' AND name LIKE '{}%'",
    ),
)
VERSION_FILTERS = (
    *("status = 'active'", "version > 1", "version = '2'", "digest LIKE 'a%'", "tags.k = 'v'"),
    *("source_type != 'git'", "status NOT IN ('draft')", "foo = 1", "last_updated_at <= 1"),
)
ORDERS = ("name", "name DESC", "`name` asc", "foo", "tags.k", "name SIDEWAYS", "status DESC")


def registry(record: Record, client: MlflowClient, name: str) -> None:
    do, first = record.do, f"{name}-1"
    do("create_skill", client.create_skill, name=first, description="Reviews  code")
    do("create_skill again", client.create_skill, name=first)
    for bad in ("Upper", "", "x" * 65, "a--b", "-a", "a_b", "a/b"):
        do(f"create_skill {bad[:5]}", client.create_skill, name=bad)
    for organization in ("acme", "Acme", "a..b", "x" * 65):
        do(
            f"create_skill @{organization[:5]}",
            client.create_skill,
            name=first,
            organization=organization,
        )
    for number, source in enumerate(SOURCES):
        do(
            f"create_skill_version {source}",
            client.create_skill_version,
            name=f"{name}-of-{number}",
            source=source,
            digest=DIGEST,
        )
    for status in ("draft", "active", "deprecated", "bogus"):
        given = {"name": first, "source": GIT, "status": status}
        do(f"create_skill_version {status}", client.create_skill_version, **given)
    for digest in ("b" * 64, "B" * 64, "short"):
        given = {"name": first, "source": GIT, "digest": digest}
        do(f"create_skill_version digest {digest[:2]}", client.create_skill_version, **given)
    _upload(record, client, name)
    _change(record, client, first)
    _search(record, client, name)
    _bulk(record, client, name)
    for version, status in ((2, "deprecated"), (2, "deleted"), (1, "deleted"), (99, "active")):
        given = {"name": first, "version": version, "status": status}
        do(f"update_skill_version {version} {status}", client.update_skill_version, **given)
    for version in (1, 2, 3, 99, 0):
        do(
            f"delete_skill_version {version}",
            client.delete_skill_version,
            name=first,
            version=version,
        )
    do("get_latest after", client.get_latest_skill_version, name=first)
    for _ in range(2):
        do("delete_skill", client.delete_skill, name=first)
    do("create_skill_version after", client.create_skill_version, name=first, source=GIT)


def _search(record: Record, client: MlflowClient, name: str) -> None:
    do, first, mine = record.do, f"{name}-1", f"name LIKE '{name}%'"
    for text in FILTERS:
        filled = text.format(*[name] * text.count("{}"))
        scoped = filled if name in filled or "foo" in text else f"{mine} AND {filled}"
        do(f"search_skills {text}", client.search_skills, filter_string=scoped)
    for order in ORDERS:
        do(f"search_skills {order}", client.search_skills, filter_string=mine, order_by=[order])
    for most in (0, 1, 3, 1001):
        do(f"search_skills {most}", client.search_skills, filter_string=mine, max_results=most)
    for identities in ([first], [f"@acme/{first}", first], ["x/y"], ["@acme"]):
        do(
            f"search_skills {identities}".replace(name, ""),
            client.search_skills,
            include_skill_identities=identities,
        )
    for text in VERSION_FILTERS:
        do(f"search versions {text}", client.search_skill_versions, name=first, filter_string=text)
    do("search versions", client.search_skill_versions, name=first, order_by=["version DESC"])
    do("search versions of none", client.search_skill_versions, name=f"{name}-none")
    do("search versions 1", client.search_skill_versions, name=first, max_results=1)


def _upload(record: Record, client: MlflowClient, name: str) -> None:
    upload = client._register_local_skill
    cases: dict[str, list[tuple[str, bytes]]] = {
        "one": [
            ("SKILL.md", b"---\nname: up\ndescription: d\n---\nbody\n"),
            ("s/run.sh", b"echo\n"),
        ],
        "no head": [("a.txt", b"a")],
        "nothing": [],
        "outside": [("../x", b"x")],
        "twice": [("a.md", b"1"), ("A.md", b"2")],
        "percent": [("a%b", b"1")],
        "both": [("a", b"1"), ("a/b", b"2")],
        "device": [("con.txt", b"1")],
    }
    with tempfile.TemporaryDirectory() as folder:
        for what, files in cases.items():
            archive = Path(folder) / "content.tar.gz"
            with tarfile.open(archive, "w:gz") as packed:
                for path, data in files:
                    entry = tarfile.TarInfo(path)
                    entry.size = len(data)
                    packed.addfile(entry, io.BytesIO(data))
            record.do(f"upload {what}", upload, archive=archive, name=f"{name}-up")
            wrong = {"archive": archive, "name": f"{name}-up", "digest": DIGEST}
            record.do(f"upload {what} with a digest", upload, **wrong)
        archive.write_bytes(b"no archive")
        record.do("upload no archive", upload, archive=archive, name=f"{name}-up")


def _change(record: Record, client: MlflowClient, first: str) -> None:
    do = record.do
    for named in ({"name": first}, {"name": "none"}, {"name": first, "organization": "none"}):
        what = " ".join(named).replace(first, "")
        do(f"get_skill {what}", client.get_skill, **named)
        do(f"get_latest {what}", client.get_latest_skill_version, **named)
        do(f"update_skill {what}", client.update_skill, **named, description="other")
        do(f"update_skill clears {what}", client.update_skill, **named, description=None)
        for version in (1, 2, 99):
            do(f"get version {version} {what}", client.get_skill_version, **named, version=version)
        for alias in ("prod", "Prod", "latest", "v1", "a b", "x" * 256):
            given = {**named, "alias": alias}
            do(f"set_alias {alias[:6]} {what}", client.set_skill_alias, **given, version=2)
            do(f"by alias {alias[:6]} {what}", client.get_skill_version_by_alias, **given)
        for alias in ("Prod", "Prod", "latest"):
            do(f"delete_alias {alias} {what}", client.delete_skill_alias, **named, alias=alias)
        for key, value in (
            ("team", "a"),
            ("a/b c", ""),
            ("", "v"),
            ("x" * 251, "v"),
            ("../a", "v"),
        ):
            do(f"set_tag {key[:5]} {what}", client.set_skill_tag, **named, key=key, value=value)
            of_version = {**named, "version": 2, "key": key}
            do(
                f"set version tag {key[:5]} {what}",
                client.set_skill_version_tag,
                **of_version,
                value=value,
            )
        for key in ("a/b c", "a/b c", "none"):
            do(f"delete_tag {key} {what}", client.delete_skill_tag, **named, key=key)
            of_version = {**named, "version": 2, "key": key}
            do(f"delete version tag {key} {what}", client.delete_skill_version_tag, **of_version)
        do(f"get_skill after {what}", client.get_skill, **named)


def _bulk(record: Record, client: MlflowClient, name: str) -> None:
    one = {"name": f"{name}-b1", "source": GIT, "digest": DIGEST}
    two = {**one, "name": f"{name}-b2", "subpath": "skills/two"}
    cases = (
        *([one, two], [one, two], [one, one], [], [{**one, "digest": "b" * 64}, two]),
        *([{**one, "status": "draft"}, two], [{**one, "source": "oci://a/b"}], [{"name": "x"}]),
        *([{**one, "ref": "main"}, two], [{**one, "digest": "bad"}], [{**one, "subpath": "/abs"}]),
    )
    for number, definitions in enumerate(cases):
        bulk = client.bulk_register_skills
        record.do(f"bulk {number}", bulk, skill_definitions=definitions, organization="acme")
