#!/bin/sh
# Everything that needs a GPU, with whatever Python and torch are there; figures, results and logs go into FOLDER.
#   sh tests/gpu/run.sh FOLDER [pytest arguments …]
set -u
root=$(dirname -- "$(dirname -- "$(dirname -- "$(readlink -f -- "$0")")")")
cd -- "$root"
folder=$1
shift
export PYTHONUNBUFFERED=1 PYTHONDONTWRITEBYTECODE=1
nvidia-smi --query-gpu=name,driver_version,memory.used,memory.total --format=csv || exit
python3 -c 'import sys, torch; print("Python", sys.version.split()[0], "torch", torch.__version__, torch.version.cuda)'
timeout -s INT 400 python3 -m pytest tests/gpu -m gpu -p no:cacheprovider -q -rsf --tb=short --durations=0 \
    --junit-xml="$folder/junit.xml" "$@"
status=$?
timeout 90 python3 -c '
from benchmarks import measure, step_overhead
step_overhead.SECONDS = 25.0
print(measure.as_table(step_overhead.measure()))'
exit $status
