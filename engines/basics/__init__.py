"""What everything else is built on: files, logs, locks, errors, amounts; knows nothing of runs."""
