"""The command that explains rights: who may do what with a resource, and which grant decides it."""
