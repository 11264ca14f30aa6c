"""``python -m local.admin doctor``: a checkup that uses a server as a team would, and reports
faults."""
