"""What every function shares: keys, models, repositories, wire format, search, errors."""
