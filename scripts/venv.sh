# Sourced by ./run and ./test, which set $root: is .venv ready to use, and if not, make it so.

# What .venv was made from: when any of it changes, the next start brings .venv up to date.
checksum() {
    cat "$root/pyproject.toml" "$root/constraints.txt" "$root/scripts/set_up.py" | cksum
}

# ready NAME: .venv was completed for NAME (run or test), in this place, from these files, with the extras that are
# asked for, and its Python and torch are still there. Runs at every start, so it starts no Python.
ready() {
    [ -x "$root/.venv/bin/python" ] && [ -f "$root/.venv/ready-$1" ] || return 1
    extras=
    {
        IFS= read -r place && IFS= read -r sum && IFS= read -r torch || return 1
        IFS= read -r extras || :
    } <"$root/.venv/ready-$1"
    [ "$place" = "$root" ] && [ "$sum" = "$(checksum)" ] && [ -e "$torch" ] && has_extras ",$extras,"
}

# has_extras ,a,b,: all that COCKPIT_EXTRAS asks for is among them. In a shell of its own, whose settings end with it.
has_extras() (
    set -f
    IFS=', '
    for extra in ${COCKPIT_EXTRAS:-}; do
        case $1 in *",$extra,"*) ;; *) exit 1 ;; esac
    done
)

# find_python: sets $python to the first fit interpreter that has torch, else to the first fit one.
find_python() {
    if [ -n "${PYTHON:-}" ]; then
        set -- "$PYTHON"
    else
        set -- python python3 python3.14 python3.13 python3.12 python3.11
    fi
    python=
    for candidate; do
        status=0
        "$candidate" -E -P "$root/scripts/set_up.py" --probe >/dev/null 2>&1 || status=$?
        case $status in
            0) python=$candidate && return ;;
            3) python=${python:-$candidate} ;; # fit, but without torch
        esac
    done
    [ -n "$python" ] || {
        echo "cockpit: found no Python 3.11 or newer with its venv module (tried $*): install one (on Debian and" \
            "Ubuntu the package python3-venv), or name one, as in PYTHON=/path/to/python $0" >&2
        return 1
    }
}

# prepare NAME: .venv is ready for NAME when this returns; ends the script where that cannot be.
prepare() {
    ready "$1" && return
    find_python || exit 1
    "$python" -E -P "$root/scripts/set_up.py" "$1" "$(checksum)" || exit
}
