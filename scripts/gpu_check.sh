#!/bin/sh
# What this machine's GPU does with the four projects, then the tests that need one, within 280 seconds.
#   sh scripts/gpu_check.sh [FOLDER]
# Needs Python ≥ 3.11 with torch and numpy (python3, or $PYTHON) and no network: what else it imports is taken from the
# wheels in the folder `wheels` beside this checkout's files (or $WHEELS), listed in scripts/gpu_wheels.txt.
# FOLDER (gpu_check) gets facts.jsonl, errors.log and the tests' junit.xml; the facts are printed too.
set -u
began=$(date +%s)
root=$(dirname -- "$(dirname -- "$(readlink -f -- "$0")")")
folder=${1:-gpu_check}
python=${PYTHON:-python3}
mkdir -p -- "$folder" && folder=$(readlink -f -- "$folder") || exit
work=$(mktemp -d) || exit
trap 'rm -rf -- "$work"' EXIT
cd -- "$root" || exit
unset PYTHONHOME
export PYTHONPATH="$root:$work" PYTHONUNBUFFERED=1 PYTHONDONTWRITEBYTECODE=1 COCKPIT_RUNS="$work/runs" COCKPIT_QUEUE="$work/queue"

# The wheels unpacked, and the projects as an installation would name them.
"$python" -P - "$work" "${WHEELS:-$root/wheels}" <<'PYTHON' || exit
import pathlib, sys, tomllib, zipfile
work, wheels = map(pathlib.Path, sys.argv[1:])
for wheel in sorted(wheels.glob("*.whl")):
    zipfile.ZipFile(wheel).extractall(work)
project = tomllib.loads(pathlib.Path("pyproject.toml").read_text())["project"]
info = work / f"cockpit-{project['version']}.dist-info"
info.mkdir()
(info / "METADATA").write_text(f"Metadata-Version: 2.1\nName: cockpit\nVersion: {project['version']}\n")
points = "\n".join(f"{name} = {place}" for name, place in project["entry-points"]["cockpit.projects"].items())
(info / "entry_points.txt").write_text(f"[cockpit.projects]\n{points}\n")
PYTHON

"$python" -P -m tests.gpu.facts --seconds "$((185 - $(date +%s) + began))" --out "$folder/facts.jsonl" 2>"$folder/errors.log"
facts=$?

"$python" -P -c 'import pytest' 2>/dev/null || { echo "no pytest here: the facts are all" >&2; exit $facts; }
left=$((275 - $(date +%s) + began))
[ "$left" -ge 20 ] || { echo "no time left for the tests: this machine is slow or busy" >&2; exit $facts; }
cd tests/gpu || exit
timeout -s INT -k 5 "$left" "$python" -P -m pytest -c pytest.ini -m gpu -q -rsf --tb=short --durations=0 \
    --junit-xml="$folder/junit.xml" test_step.py test_driver.py test_mamba.py test_runs.py test_check.py
tests=$?
[ "$tests" -eq 5 ] && tests=0  # no test for what is here
[ "$facts" -eq 0 ] && exit $tests
exit $facts
