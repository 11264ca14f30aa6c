"""The built product, deployed to an emulator of AWS by the stock SAM CLI, and driven there."""
