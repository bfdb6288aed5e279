"""What a run will take, found out without it: memory, disk, time and cost, by reckoning or by trying."""
