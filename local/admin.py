"""``python -m local.admin``: runs the administration commands of the package :mod:`operate`."""

from __future__ import annotations

import sys

from operate.admin_commands import main

if __name__ == "__main__":
    sys.exit(main())
