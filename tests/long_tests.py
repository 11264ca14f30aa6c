"""Tests of minutes: ``make test`` leaves them out, ``make test-long`` runs them alone, each night
and before a release. A call of pytest without these targets runs whatever it names.
"""

from __future__ import annotations

import os
import sys
from typing import Final

WHICH: Final = os.environ.get("LONG_TESTS", "with")
"""``without`` them, them ``only``, or ``with`` them."""

_KUBEFLOW: Final = "tests/e2e/test_kubeflow.py::"
_OTHER_CLIENT: Final = "clients of other versions stay"
_INTERPRETER: Final = f"3.{sys.version_info.minor}"

LONG: Final = {
    "tests/browser/test_crawl.py": "all pages of MLflow's UI; test_pages.py opens the main ones",
    "tests/contract/test_publication_requests.py::test_a_publication_makes"
    "_as_many_requests_as_the_bill_says[publication of five": "115 traces in each publication",
    "tests/contract/test_large_traces.py": "hundreds of megabytes of spans, in half the memory",
    "tests/contract/test_no_crash.py": "4,200 random requests to 176 routes",
    "tests/e2e/test_gateway_limits.py::test_many_processes": "sixteen, each limit in one minute",
    "tests/e2e/test_offline_folder.py::test_a_folder_of_runs": "kills at every stage of a push",
    "tests/e2e/test_sdks.py": "six SDKs at the gateway, in an environment of 360 MB",
    "tests/e2e/test_sdks_bedrock.py": "three more SDKs in that environment",
    "tests/e2e/test_round_trip.py": "from stock and back; test_export.py compares the way out",
    "tests/e2e/test_export.py::test_a_killed_export": "kills; the other tests compare one export",
    "tests/e2e/test_export.py::test_what_was_exported_can_be_imported": "three commands in turn",
    "tests/rehearsal/test_doctor.py": "`make rehearse` runs it, too; the checkup of a laptop stays",
    "tests/rehearsal/test_upgrades.py": "`make rehearse` runs it, too; deploys a second time",
    "tests/rehearsal/test_sam_local_template.py::test_start_api": "builds; also in `make rehearse`",
    "tests/rehearsal/test_protection.py": "`make rehearse` runs it, too; changes the stack again",
    "tests/e2e/test_code_scorers.py::test_a_server_stops": "test_limits.py stops cages",
    "tests/e2e/test_isolation.py::test_nothing_of_one_workspace_shows_in_another[bravo": (
        "the default workspace stays, and those who log in have bravo as well"
    ),
    "tests/e2e/test_gateway_bench.py": "measures calls whose answers other tests check",
    "tests/e2e/test_example.py": "the browser's tests train as well, in an experiment of their own",
    "tests/e2e/test_export.py::test_a_target_that_cannot_be_used[http": "as the next",
    "tests/e2e/test_export.py::test_a_target_that_cannot_be_used[postgresql": (
        "MLflow itself tries for a minute; that of a folder stays"
    ),
    "tests/e2e/test_import.py::test_a_killed_import_goes_on[three": "that of one kill stays",
    "tests/e2e/test_files.py::test_a_folder[2.22.1": _OTHER_CLIENT,
    "tests/e2e/test_files.py::test_older_clients_go_on_to_send_small_files_through_a_function[2.": (
        _OTHER_CLIENT
    ),
    "tests/e2e/test_caller_limits.py::test_clients_wait_and_lose_nothing[2.9.2": _OTHER_CLIENT,
    "tests/e2e/test_clients.py::test_client[3.1.4]": _OTHER_CLIENT,
    "tests/e2e/test_clients.py::test_client[3.6.0]": _OTHER_CLIENT,
    "tests/e2e/test_clients.py::test_client[3.17.2]": _OTHER_CLIENT,
    "tests/e2e/test_login.py::test_accounts[3.7.0]": _OTHER_CLIENT,
    "tests/e2e/test_registry.py::test_client[registry_script.py-3.1.4]": _OTHER_CLIENT,
    "tests/e2e/test_registry.py::test_client[prompt_script.py-3.1.4]": _OTHER_CLIENT,
    "tests/e2e/test_key_clients.py::test_mlflow[3.1.4]": _OTHER_CLIENT,
    "tests/e2e/test_key_clients.py::test_mlflow[3.6.0]": _OTHER_CLIENT,
    "tests/e2e/test_key_clients.py::test_mlflow[3.7.0]": _OTHER_CLIENT,
    "tests/e2e/test_key_clients.py::test_model_registry[model-registry 0.3.14]": _OTHER_CLIENT,
    _KUBEFLOW + "test_all_that_a_client_offers[model-registry 0.3.14]": _OTHER_CLIENT,
    _KUBEFLOW + "test_both_clients[model-registry 0.3.14]": _OTHER_CLIENT,
    **{
        f"tests/e2e/test_wheel.py::{name}[{version}]": "other interpreters stay"
        for name in (
            "test_an_empty_home_serves_the_product",
            "test_the_command_explains_itself",
            "test_the_image_runs_so_and_writes_into_its_volume_only",
        )
        for version in ("3.11", "3.12", "3.13")
        if version != _INTERPRETER and (version, name[:13]) != ("3.13", "test_an_empty")
    },
}
"""Beginnings of node ids, and what they do."""


def is_left_out(nodeid: str) -> bool:
    """Whether this run of pytest leaves a test out."""
    is_long = nodeid.startswith(tuple(LONG))
    return WHICH == "without" if is_long else WHICH == "only"
