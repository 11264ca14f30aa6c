"""What may be in the things that quality is judged with."""
