"""A deployment's monthly costs, idle and used by a team."""
