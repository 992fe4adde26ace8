# --- Slurm, behind its wrappers of Torque's commands: makes what Torque gives a job --------------------
if [[ $1 != on-node ]]; then
    trap 'echo "$?" >"$ADAPTOR_DIRECTORY/pilot.end"' EXIT
    PBS_NODEFILE=$(mktemp)
    export PBS_NODEFILE PBS_WALLTIME
    # When this job ends. Older versions of Slurm do not tell the job; then squeue is asked once.
    PBS_WALLTIME=${SLURM_JOB_END_TIME:-$(SLURM_TIME_FORMAT=%s timeout 20 squeue -h -j "$SLURM_JOB_ID" -o %e)}
    PBS_WALLTIME=$((PBS_WALLTIME - $(date +%s)))
    # The processors of this job on each of its nodes: "4(x2),2" means 4, 4 and 2.
    processors=()
    IFS=, read -ra groups <<<"$SLURM_JOB_CPUS_PER_NODE"
    for group in "${groups[@]}"; do
        times=1
        [[ $group =~ \(x([0-9]+)\) ]] && times=${BASH_REMATCH[1]}
        for ((; times > 0; times--)); do processors+=("${group%%(*}"); done
    done
    while read -r node; do
        for ((lines = processors[0]; lines > 0; lines--)); do echo "$node"; done
        processors=("${processors[@]:1}")
    done < <(scontrol show hostnames "$SLURM_JOB_NODELIST") >"$PBS_NODEFILE"
fi

# As `pbsdsh -u PROGRAM…`: once on each node, which finds its first line of the node file by PBS_VNODENUM.
pbsdsh() {
    local node first
    shift
    for node in $(sort -u "$PBS_NODEFILE"); do
        first=$(($(grep -nxm1 "$node" "$PBS_NODEFILE" | cut -d: -f1) - 1))
        PBS_VNODENUM=$first srun --nodes=1 --ntasks=1 --nodelist="$node" --whole --overlap --export=ALL \
            --input=none "$@" &
    done
    wait
}
# -------------------------------------------------------------------------------------------------------
