home=$1 seconds=$2 line=$3
exec 3<&0 </dev/null 2>&1
trap 'exit 124' TERM
{ cat <&3 >/dev/null; kill -TERM $$; } &
mkdir -p "$home" && cd "$home" || exit 125
if [ -e .git ]; then
    git -c safe.directory='*' -c core.quotePath=off ls-files 2>/dev/null | while IFS= read -r file; do
        [ -e "/starling/$file" ] || [ -L "/starling/$file" ] || rm -f -- "$file"
    done
fi
cp -RPf /starling/. . || exit 125
if [ -d /opt/miniconda3/envs/testbed/bin ]; then
    PATH=/opt/miniconda3/envs/testbed/bin:$PATH
    export PATH
fi
echo @starling-begun
{ sleep "$seconds"; kill -TERM $$; } 3<&- &
/bin/sh -c "$line" 3<&- &
wait $!
status=$?
if grep -qs '^oom_kill [1-9]' /sys/fs/cgroup/memory.events /sys/fs/cgroup/memory/memory.oom_control; then
    echo @starling-no-memory
fi
exit "$status"
