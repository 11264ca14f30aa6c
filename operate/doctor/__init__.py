"""``python -m local.admin doctor``: uses a server as a team would, and says what is wrong."""
