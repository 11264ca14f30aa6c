"""The command ``rights``: prints who may do what with a resource, and by which grant."""
