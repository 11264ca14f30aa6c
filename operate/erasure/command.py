"""``python -m local.admin erase-user``: removes a person from the DynamoDB table and from the
audit."""

from __future__ import annotations

import os
from collections import Counter
from pathlib import Path
from typing import Final

from local.audit_file import AuditFile
from mlcore import errors
from mlcore.system_tables import storage
from mltables import audit_chain, audit_erasure, audit_publishing, publisher
from mltables.lake import Lake
from operate.audit_log import erase as erase_from_audit
from operate.erasure import items
from operate.module_loading import CannotRun

SHOWN: Final = 50
"""How many mentions are printed at most, in addition to their number."""


def publish_waiting() -> None:
    """Publishes the audited requests that a local server left in its audit file when it stopped. To
    be called only while no local server uses the data folder."""
    AuditFile(Path(os.environ[storage.FOLDER])).land()
    publisher.publish()


def run(name: str, *, dry: bool) -> int:
    """Erases a user, or with ``dry`` prints what an erasure would do. Returns 1 if texts still
    mention the name, so that a person must check them; otherwise 0.

    Raises:
        CannotRun: the name is empty, or an item or the audit could not be written; then the command
            can be repeated.
    """
    if not name.strip():
        raise CannotRun("erase-user: name a user")
    with Lake() as lake:
        pseudonym = audit_chain.pseudonym(
            name, audit_publishing.key_of(audit_publishing.open_table(lake))
        )
    counts: Counter[str] = Counter()
    mentions = []
    try:
        if not dry:
            counts["delete"] = items.close_logins(name)
        for reference in items.find(name):
            counts[reference.kind] += 1
            if reference.kind == "mention":
                mentions.append(str(reference))
            elif dry:
                print(reference)
            else:
                items.erase(reference, name, pseudonym)
    except errors.MlflowError as error:
        raise CannotRun(f"{error.message} Repeat the command: it continues.") from error
    rows = audit_erasure.rows_about(name) if dry else erase_from_audit(name)
    for line in mentions[:SHOWN]:
        print(line)
    does = "would be " if dry else ""
    print(
        f"{counts['delete']} items {does}deleted, in {counts['replace']} items and {rows} rows of "
        f"the audit {does}{pseudonym} in place of the name"
    )
    print(f"{counts['mention']} other items mention the name in texts, and are not changed")
    return 1 if mentions else 0
