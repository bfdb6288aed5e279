"""What the parent of an engine does: processes, budget, waiting, watching, recording, the end."""
