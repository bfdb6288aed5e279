"""A rover's view and telemetry through a frozen language model to risk, reason and action (SIM v0)."""
