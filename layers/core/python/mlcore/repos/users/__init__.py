"""Users, roles, grants and wrong passwords."""
