"""Changes MLflow's page: adds the bar with links to this server's own pages
(``dashboards/bar.js``), hides the assistant, because this server has no backend for it, and hides
the message that MLflow collects usage data, because this server collects and forwards none.

Why this is here, and when it can go: MLflow's bundle offers its assistant when it is loaded from
localhost, and opens it by itself in a new profile. The added script and style mark the assistant as
opened before and hide it, and mark the message as read and the collection as switched off. The keys
of ``localStorage`` are those that the bundle reads. The bundle itself is not changed. Each part can
go when MLflow has a setting for it.

Run as ``python local/http/ui_page.py FILE`` on the page of the mlflow package. Repeating it changes
nothing.
"""

from __future__ import annotations

import sys
from pathlib import Path
from typing import Final

_HEAD_ENDS: Final = "</head>"
ADDED: Final = (
    "<script>"
    'localStorage.setItem("mlflow.assistant.fab.autoOpenedOnFirstLoad_v1", "true");'
    'localStorage.setItem("mlflow.assistant.panelOpen_v1", "false");'
    'localStorage.setItem("mlflow.telemetry.info.alert.dismissed_v1", "true");'
    'localStorage.setItem("mlflow.settings.telemetry.enabled_v1", "false");'
    "</script>"
    "<style>"
    # In this order: the button in the corner, the panel and the button of a trace; the button
    # beside experiments; a tab of empty pages; the buttons of a trace's drawer, of an evaluation
    # run, of charts' menus, and of a comparison. The attribute selectors at the end give these
    # rules a higher specificity than MLflow's own !important rules.
    ":is("
    '[data-assistant-ui="true"],'
    'div:has(>div[role="button"][tabindex="0"][aria-pressed]),'
    '[role="tab"][id$="-trigger-assistant"],'
    '[data-component-id$=".modal.analyze-trace"],'
    '[data-component-id$=".run-view-evaluations.analyze-button"],'
    '[data-component-id$=".insight.assistant"],'
    '[data-component-id$=".ask-assistant"]'
    ",[a][b][c][d])"
    "{display:none!important}"
    "</style>"
    '<link href="static-files/dashboards/bar.css" rel="stylesheet">'
    '<script defer src="static-files/dashboards/bar.js"></script>'
)


def with_head_elements(page: str) -> str:
    """Returns MLflow's HTML page with this module's script and style, and the bar of links to this
    server's own pages, added to its head. A page that has them already is returned unchanged.

    Raises:
        ValueError: the page has no head.
    """
    if ADDED in page:
        return page
    head, end, rest = page.partition(_HEAD_ENDS)
    if not end:
        raise ValueError("The page has no head.")
    return head + ADDED + end + rest


if __name__ == "__main__":
    file = Path(sys.argv[1])
    page = with_head_elements(file.read_text(encoding="utf-8"))
    # The file may be a hard link to the installer's cache: replace it, so that the cache is not
    # changed.
    file.unlink()
    file.write_text(page, encoding="utf-8")
