"""What goes for good, with its files."""
