"""The training engine: loop, batches, checkpoints, schedule, precision, stages."""
