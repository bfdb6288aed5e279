#!/bin/sh
# What this machine's GPU does with the four projects, then the tests that need one, within 280 seconds.
#   sh scripts/gpu_check.sh [FOLDER [SECONDS]]
# Needs Python ≥ 3.11 with torch and numpy (python3, or $PYTHON) and no network: what else it imports is taken from the
# wheels in the folder `wheels` of this checkout (or $WHEELS); docs/gpu.md says how to fetch them.
# FOLDER (gpu_check) gets facts.jsonl, errors.log and the tests' junit.xml; the facts are printed too. Two thirds of the
# SECONDS (280) are for the facts. Exit code 0: every fact and every test that has what it needs here went well.
set -u
began=$(date +%s)
say() { echo "gpu_check: $*" >&2; }
root=$(dirname -- "$(dirname -- "$(readlink -f -- "$0")")")
folder=${1:-gpu_check}
seconds=${2:-280}
wheels=${WHEELS:-$root/wheels}
asked=${PYTHON:-python3}
python=$(command -v -- "$asked") || { say "there is no $asked here: set PYTHON to a Python 3.11 or newer that has torch"; exit 1; }
# A link to Python is left as it is: an environment's Python knows its packages by it.
case $python in /*) ;; *) python=$PWD/$python ;; esac
case $wheels in /*) ;; *) wheels=$PWD/$wheels ;; esac
"$python" -c 'import sys; sys.exit(sys.version_info < (3, 11))' || {
    say "$python is not Python 3.11 or newer: set PYTHON to one that has torch"; exit 1; }
mkdir -p -- "$folder" && folder=$(readlink -f -- "$folder") || exit
work=$(mktemp -d) || exit
trap 'rm -rf -- "$work"' EXIT
trap 'exit 130' INT TERM HUP
cd -- "$root" || exit
# Nothing of the user's own is read or written: runs, choices, caches and what is temporary are in a folder of their own.
mkdir "$work/packages" "$work/tmp"
unset PYTHONHOME
export PYTHONPATH="$root:$work/packages" PYTHONUNBUFFERED=1 PYTHONDONTWRITEBYTECODE=1 TMPDIR="$work/tmp"
export COCKPIT_RUNS="$work/runs" COCKPIT_QUEUE="$work/queue" PYTEST_DISABLE_PLUGIN_AUTOLOAD=1
export XDG_CONFIG_HOME="$work/config" XDG_STATE_HOME="$work/state" XDG_CACHE_HOME="$work/cache"

"$python" -P -m scripts.unpack_wheels "$work/packages" "$wheels" || exit

"$python" -P -m tests.gpu.facts --seconds "$((seconds * 2 / 3 - $(date +%s) + began))" --out "$folder/facts.jsonl" 2>"$folder/errors.log"
facts=$?
[ "$facts" -eq 0 ] || say "$(tail -n 1 -- "$folder/errors.log")"

left=$((seconds - 15 - $(date +%s) + began))  # the last seconds are for the tests' processes to end in
[ "$left" -ge 20 ] || { say "no time left for the tests: allow more than $seconds s, as in 'gpu_check.sh FOLDER 900'"; exit 1; }
cd tests/gpu || exit
timeout --foreground -s INT -k 12 "$left" "$python" -P -m pytest -c pytest.ini -m gpu -q -rsf --tb=short --durations=0 \
    --junit-xml="$folder/junit.xml" test_step.py test_driver.py test_mamba.py test_runs.py test_check.py
tests=$?
case $tests in
5) tests=0 ;;  # no test for what is here
124 | 137) say "the tests were ended after $left s: allow more than $seconds s, as in 'gpu_check.sh FOLDER 900'" ;;
esac
[ "$facts" -eq 0 ] && exit $tests
exit $facts
