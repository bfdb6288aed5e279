"""A second project, of tests alone: what `controls` does not use of the contracts, all at once."""
