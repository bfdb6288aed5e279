"""A small world with a known answer, played by an expert with a flaw."""
