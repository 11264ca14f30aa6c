"""Users, roles, grants, and counters of failed logins."""
