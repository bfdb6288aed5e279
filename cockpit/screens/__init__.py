"""The cockpit's screens, one a file, its style sheet beside it."""
