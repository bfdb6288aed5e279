"""Ratios measured side by side in one run: `python -m benchmarks NAME [--json]`. No timing is asserted in a test."""
