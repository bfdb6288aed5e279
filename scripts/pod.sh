#!/bin/sh
# What a rented pod starts with, as its start command: see docs/runpod.md. Runs, settings and packages go to the network volume
# ($VOLUME), so that they outlive the pod; when the pod is taken away, every run is saved first.
set -u
VOLUME=${VOLUME:-/workspace}
root=$(dirname -- "$(dirname -- "$(readlink -f -- "$0")")")

# Every shell on the pod reads these, over SSH too.
cat >"$VOLUME/env.sh" <<END
export COCKPIT_RUNS=$VOLUME/runs XDG_CONFIG_HOME=$VOLUME/.config PIP_CACHE_DIR=$VOLUME/.cache/pip HF_HOME=$VOLUME/.cache/huggingface
export LC_ALL=C.UTF-8 RUNPOD_POD_ID=${RUNPOD_POD_ID:-}
ulimit -c 0
cd $root
END
grep -qs "$VOLUME/env.sh" "$HOME/.bashrc" || echo ". $VOLUME/env.sh" >>"$HOME/.bashrc"
. "$VOLUME/env.sh"

# A pod gets SIGTERM seconds before it is killed, and only its first process does.
idle=
trap './run stop --all; kill $idle 2>/dev/null; exit 0' TERM INT

./run doctor
while :; do
    sleep 86400 &
    idle=$!
    wait $idle
done
