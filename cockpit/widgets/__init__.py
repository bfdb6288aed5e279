"""The cockpit's widgets, one a file."""
