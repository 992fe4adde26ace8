#!/bin/sh
# Stands in front of Slurm's srun for the scripts that the adaptor runs: it starts one process here, within the
# processors of its task. A step of its own would be one of the pilot's job, with all of the pilot's processors.

fail() {
    echo "srun: error: $1: not supported where the adaptor runs a script; one process here is" >&2
    exit 1
}

one() { # NAME VALUE: a number that may only be 1
    [ "$2" = 1 ] || [ "$2" = 1-1 ] || fail "$1 $2"
}

chdir='' input='' output='' error='' mode=truncate
stepname=''

# Each round takes one option; NAME is its long form, VALUE what belongs to it.
while [ $# -gt 0 ]; do
    name=$1 value='' given=no
    case $1 in
    --) shift; break ;;
    --*=*) name=${1%%=*} value=${1#*=} given=yes ;;
    --*) ;;
    -[ceiJnNtDpwmdTAGCqrSxgu]?*) name=$(printf %.2s "$1") value=${1#??} given=yes ;;
    -?) ;;
    -*) fail "$1" ;;
    *) break ;;
    esac
    shift
    # Options without a value; -u cannot have one.
    case $name in
    --exclusive | --unbuffered | --overlap | --exact | --overcommit | --oversubscribe | --quiet | --verbose | \
        --no-kill | --kill-on-bad-exit | --propagate | --whole | --pty | --disable-status | -[uOQsvKkX])
        [ "$name" = -u ] && [ "$given" = yes ] && fail "-u$value"
        [ "$name" = --pty ] && fail --pty
        continue
        ;;
    --label | -l | --multi-prog | --no-allocate | -Z) fail "$name" ;;
    esac
    case $name in
    --ntasks | -n | --nodes | -N | --ntasks-per-node | --cpus-per-task | -c | --mem | --mem-per-cpu | --mem-bind | \
        --cpu-bind | --distribution | -m | --mpi | --job-name | -J | --time | -t | --threads | -T | --gres | --gpus | \
        -G | --gpus-per-task | --gpus-per-node | --gpu-bind | --hint | --partition | -p | --account | -A | --qos | \
        -q | --chdir | -D | --input | -i | --output | -o | --error | -e | --open-mode | --export | --signal | \
        --wait | --accel-bind | --comment | --threads-per-core | --cpu-freq)
        if [ $given = no ]; then
            [ $# -gt 0 ] || fail "$name without a value"
            value=$1
            shift
        fi
        ;;
    *) fail "$name" ;;
    esac
    case $name in
    --ntasks | -n) one --ntasks "$value" ;;
    --nodes | -N) one --nodes "$value" ;;
    --ntasks-per-node) one "$name" "$value" ;;
    --cpus-per-task | -c)
        case $value in '' | *[!0-9]*) fail "--cpus-per-task $value" ;; esac
        if [ "$value" -gt "${ADAPTOR_CPUS:-1}" ]; then
            echo "srun: error: --cpus-per-task $value: the task has ${ADAPTOR_CPUS:-1}" >&2
            exit 1
        fi
        SLURM_CPUS_PER_TASK=$value
        export SLURM_CPUS_PER_TASK
        ;;
    --job-name | -J) stepname=$value ;;
    --chdir | -D) chdir=$value ;;
    --input | -i) input=$value ;;
    --output | -o) output=$value ;;
    --error | -e) error=$value ;;
    --open-mode) case $value in [aA]*) mode=append ;; esac ;;
    --export) case $value in ALL) ;; *) fail "--export=$value" ;; esac ;;
    --time | -t | --signal) fail "$name" ;;
    esac
done
[ $# -gt 0 ] || fail "a call without a program"
[ "${SLURM_NTASKS:-1}" = 1 ] || fail "a job of $SLURM_NTASKS processes"
case $input$output$error in
*%*) fail "a name of a file with %" ;;
esac

SLURM_NTASKS=1 SLURM_NPROCS=1 SLURM_PROCID=0 SLURM_LOCALID=0 SLURM_NODEID=0 SLURM_STEP_NUM_TASKS=1
SLURM_STEP_NUM_NODES=1 SLURM_STEP_TASKS_PER_NODE=1 SLURM_STEP_ID=0 SLURM_STEPID=0 SLURM_STEP_NODELIST=$SLURM_NODELIST
export SLURM_NTASKS SLURM_NPROCS SLURM_PROCID SLURM_LOCALID SLURM_NODEID SLURM_STEP_NUM_TASKS
export SLURM_STEP_NUM_NODES SLURM_STEP_TASKS_PER_NODE SLURM_STEP_ID SLURM_STEPID SLURM_STEP_NODELIST
if [ -n "$stepname" ]; then
    SLURM_JOB_NAME=$stepname
    export SLURM_JOB_NAME
fi
if [ -n "$input" ] && [ "$input" != all ]; then
    [ "$input" = none ] && input=/dev/null
    exec <"$input" || exit 1
fi
if [ -n "$output" ]; then
    [ "$output" = none ] && output=/dev/null
    [ $mode = append ] || [ ! -f "$output" ] || : >"$output" || exit 1
    exec >>"$output" || exit 1
    [ -n "$error" ] || exec 2>&1
fi
if [ -n "$error" ]; then
    [ "$error" = none ] && error=/dev/null
    [ $mode = append ] || [ ! -f "$error" ] || [ "$error" = "$output" ] || : >"$error" || exit 1
    exec 2>>"$error" || exit 1
fi
if [ -n "$chdir" ]; then
    cd "$chdir" || exit 1
fi
exec "$@"
