"""The command that explains rights: resources, verdicts with their reasons, and tables of them."""
