"""Who names which files of the store."""
