"""What runs beside the work inside an engine's own process: commands heard, a full disk waited out, a log kept."""
