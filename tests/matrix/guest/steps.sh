# shellcheck shell=sh
# What a job consists of. Every step prints "@@result NAME ok|failed DETAIL", and reasons before it.

# kernel_step METHOD [FILTER…]: the kernel tests, with this attach method forced ("auto": none).
kernel_step() {
  method=$1
  shift
  {
    TACHO_TEST_ATTACH=$method /work/kernel_tests -d yes "$@" 2>&1
    echo $? >/tmp/status
  } | while IFS= read -r line; do
    echo "@@test $line"
  done
  echo "@@result kernel $(cat /tmp/status)"
}

# hide_types_step NAME: the kernel's own types are gone, and a file has them. Without the flag tacho must say what to do.
tacho_options=
hide_types_step() {
  cp /sys/kernel/btf/vmlinux /tmp/types
  mount -t tmpfs tmpfs /sys/kernel/btf
  write_config auto "cgroup: /e2e"
  /work/tacho plan --config.file=/tmp/tacho.yaml >/tmp/log 2>&1
  status=$?
  if [ "$status" = 1 ] && grep -q -e '--btf.path' /tmp/log; then
    echo "@@result $1 0"
  else
    sed 's/^/@@log /' /tmp/log
    echo "@@result $1 1"
  fi
  tacho_options=--btf.path=/tmp/types
}

# The programs that were verified, and the hooks that are in use: "@@plan …", "@@program NAME INSTRUCTIONS".
plan_step() {
  write_config "$1" "cgroup: /e2e"
  # shellcheck disable=SC2086 # no option or one
  /work/tacho plan $tacho_options --config.file=/tmp/tacho.yaml >/tmp/log 2>&1
  status=$?
  sed 's/^/@@plan /' /tmp/log
  echo "@@result plan $status"
}

# hooks_step NAME: those in use by the tacho that runs, as plan_step prints them.
hooks_step() {
  wget -q -O - http://127.0.0.1:9435/metrics |
    sed -n 's/^tacho_probe_attached{probe="\([^"]*\)",hook="\([^"]*\)",method="\([^"]*\)"} .*/@@plan   \1.\2: \3/p'
  echo "@@result $1 0"
}

# Every probe of exporter/config/probe_list.h is attached by the method.
write_config() {
  probes=$(sed -n "s/^ *PROBE(\([a-z]*\),.*/\1: {attach: $1},/p" /work/probe_list.h | tr '\n' ' ')
  cat >/tmp/tacho.yaml <<END
targets: [{name: t, $2}]
probes: {${probes}anatomy: {enabled: true}}
END
}

target=t
value_of() {
  wget -q -O - http://127.0.0.1:9435/metrics 2>/dev/null | sed -n "s/^tacho_$1{target=\"$target\"[^}]*} //p" | head -n 1
}

# wait_for SECONDS COMMAND…: polls, since nothing announces it to a shell.
wait_for() {
  left=$(($1 * 10))
  shift
  until "$@"; do
    left=$((left - 1))
    [ "$left" -gt 0 ] || return 1
    usleep 100000
  done
}

serves() {
  [ -n "$(value_of requests_total)" ]
}

counts() {
  [ "$(value_of requests_total)" = "$1" ]
}

# with_tacho METHOD SELECTOR: starts it, unless it runs already, and waits until the target is there.
tacho=
with_tacho() {
  [ -z "$tacho" ] || return 0
  write_config "$1" "$2"
  # shellcheck disable=SC2086,SC2154 # words; the job sets the prefix
  $tacho_prefix /work/tacho $tacho_options --config.file=/tmp/tacho.yaml --web.listen-address=127.0.0.1:9435 >/tmp/tacho.log 2>&1 &
  tacho=$!
  wait_for 120 serves || sed 's/^/@@log /' /tmp/tacho.log
}

end_tacho() {
  kill "$tacho" 2>/dev/null
  wait "$tacho"
}

# Sends that the kernel kept from tacho's programs.
skipped_sends() {
  wget -q -O - http://127.0.0.1:9435/metrics | sed -n 's/^tacho_probe_misses_total{probe="socket",program="socket_fexit_.*sendmsg"} //p' |
    { total=0 && while read -r number; do total=$((total + number)); done && echo $total; }
}

# verdict NAME EXPECTED: has tacho counted exactly so many requests since the last verdict? Where tacho_forgives is set,
# as many may be missing as sends were skipped, which tacho tells.
counted=0
skipped=0
verdict() {
  if wait_for 10 counts $((counted + $2)); then
    echo "@@result $1 0"
  elif [ -n "${tacho_forgives:-}" ] && [ "$(value_of requests_total)" -lt $((counted + $2)) ] &&
    [ $((counted + $2 - $(value_of requests_total))) -le $(($(skipped_sends) - skipped)) ]; then
    echo "@@log $1: $2 requests were sent, tacho counted $(($(value_of requests_total) - counted)), and tells of skipped sends"
    skipped=$(skipped_sends)
    echo "@@result $1 0"
  else
    echo "@@log $1: $2 requests were sent, tacho counted $(($(value_of requests_total) - counted))"
    sed 's/^/@@log /' /tmp/tacho.log
    echo "@@result $1 1"
  fi
  counted=$(value_of requests_total)
}

# Where hierarchies of cgroups are mounted.
hierarchies() {
  for mount in /sys/fs/cgroup /sys/fs/cgroup/*; do
    [ -e "$mount/cgroup.procs" ] || continue
    case $mount in /sys/fs/cgroup/*) [ ! -e /sys/fs/cgroup/cgroup.procs ] || continue ;; esac
    echo "$mount"
  done
}

# in_group NAME COMMAND…: runs it in a cgroup of its own, in every hierarchy that is there.
in_group() {
  (
    for mount in $(hierarchies); do
      mkdir -p "$mount/$1"
      sh -c 'echo $PPID' >"$mount/$1/cgroup.procs"
    done
    shift
    exec "$@"
  )
}

# exact_step METHOD SELECTOR NAME ADDRESS: the exact server and client over one kind of socket. The first server is older
# than tacho.
exact_step() {
  in_group e2e /work/exact_server --listen="$4" --mode=epoll >"/tmp/$3.log" 2>&1 &
  server=$!
  wait_for 20 grep -qs listening "/tmp/$3.log"
  with_tacho "$1" "$2"
  /work/exact_client --connect="$(sed -n 's/^listening //p' "/tmp/$3.log")" --requests=1009 --connections=7 \
    --requests-per-connection=50 >/tmp/client.log 2>&1 || sed 's/^/@@log /' /tmp/client.log
  verdict "$3" 1009
  kill "$server"
  wait "$server"
}

# redis_step NAME: redis-benchmark asks CONFIG GET twice before its requests, in one or two turns.
redis_step() {
  in_group e2e /work/redis-server --port 6379 --save '' --appendonly no --dir /tmp >"/tmp/$1.log" 2>&1 &
  server=$!
  wait_for 20 grep -qs 'Ready to accept' "/tmp/$1.log"
  /work/redis-benchmark -p 6379 -n 2003 -c 5 -t get >/tmp/client.log 2>&1 || sed 's/^/@@log /' /tmp/client.log
  expected=2004
  counts $((counted + 2005)) && expected=2005
  verdict "$1" "$expected"
  kill "$server"
  wait "$server"
}

# clock_step NAME: the wall clock leaps a day ahead and two back. Each request is counted once, with its duration, and tacho is well.
clock_step() {
  in_group e2e /work/exact_server --listen=127.0.0.1:0 --mode=epoll >"/tmp/$1.log" 2>&1 &
  server=$!
  wait_for 20 grep -qs listening "/tmp/$1.log"
  for leap in 86400 -172800; do
    date -s "@$(($(date +%s) + leap))" >/dev/null
    /work/exact_client --connect="$(sed -n 's/^listening //p' "/tmp/$1.log")" --requests=503 --connections=7 \
      --requests-per-connection=50 >/tmp/client.log 2>&1 || sed 's/^/@@log /' /tmp/client.log
  done
  verdict "$1.count" 1006
  # A day would be 86 400 s.
  durations=$(value_of request_duration_seconds_sum)
  echo "@@log all requests together took $durations s"
  awk -v sum="$durations" 'BEGIN { exit !(sum > 0 && sum < 600) }' && wget -q -O - http://127.0.0.1:9435/-/healthy >/dev/null
  echo "@@result $1 $?"
  kill "$server"
  wait "$server"
}

# parts_step NAME: does anatomy say of all that was counted who served it, and do the parts add up to the durations?
parts_step() {
  wget -q -O - http://127.0.0.1:9435/metrics >/tmp/page
  if awk -v target="target=\"$target\"" '
    index($0, target) == 0 { next }
    /^tacho_requests_total[{]/ { requests = $NF }
    /^tacho_request_serving_total[{]/ { served += $NF }
    /^tacho_request_serving_total[{].*mode="unknown"/ { unknown = $NF }
    /^tacho_request_duration_seconds_sum[{]/ { durations = $NF }
    /^tacho_request_time_seconds_total[{]/ { parts += $NF }
    /^tacho_request_time_seconds_total[{].*part="cpu"/ { cpu = $NF }
    END {
      off = parts > durations ? parts - durations : durations - parts
      printf "%d requests, %d with a mode, %d of them unknown; %.9f s, parts %.9f s, CPU %.9f s\n", requests, served, unknown, durations, parts, cpu
      exit !(requests > 0 && served == requests && unknown == 0 && cpu > 0 && off <= .001 * durations)
    }' /tmp/page >/tmp/parts.log; then
    sed 's/^/@@parts /' /tmp/parts.log
    echo "@@result $1 0"
  else
    sed 's/^/@@log /' /tmp/parts.log
    echo "@@result $1 1"
  fi
}

# in_all_groups COMMAND NAME COUNT: mkdir or rmdir of that many in every hierarchy that is there.
in_all_groups() {
  for mount in $(hierarchies); do
    seq "$3" | sed "s:^:$mount/$2:" | xargs "$1"
  done
}

watches() {
  [ "$(wget -q -O - http://127.0.0.1:9435/metrics 2>/dev/null | sed -n 's/^tacho_targets //p')" = "$1" ]
}

# many_step NAME: 200 targets more, of the same rule, are watched within five seconds. Before Linux 6.8 the kernel waits
# for a grace period behind each element that a map of maps is given.
many_step() {
  before=$(wget -q -O - http://127.0.0.1:9435/metrics | sed -n 's/^tacho_targets //p')
  began=$(sed 's/[.]//; s/ .*//' /proc/uptime)
  in_all_groups mkdir e2e 200
  wait_for 20 watches $((before + 200)) || sed 's/^/@@log /' /tmp/tacho.log
  took=$(($(sed 's/[.]//; s/ .*//' /proc/uptime) - began))
  echo "@@log 200 targets more: watched after $took hundredths of a second"
  [ "$took" -lt 500 ]
  echo "@@result $1 $?"
  in_all_groups rmdir e2e 200
}

# spare_cpu_step NAME: the last CPU goes offline before tacho starts.
late_cpu=
spare_cpu_step() {
  online=$(cat /sys/devices/system/cpu/online)
  late_cpu=${online##*[-,]}
  echo 0 >"/sys/devices/system/cpu/cpu$late_cpu/online"
  echo "@@log online $online of possible $(cat /sys/devices/system/cpu/possible)"
  [ "$(cat /sys/devices/system/cpu/online)" != "$online" ] && [ "$(cat "/sys/devices/system/cpu/cpu$late_cpu/online")" = 0 ]
  echo "@@result $1 $?"
}

# late_cpu_step METHOD SELECTOR NAME: that CPU comes online while tacho runs, and serves while another one asks.
late_cpu_step() {
  echo 1 >"/sys/devices/system/cpu/cpu$late_cpu/online"
  in_group e2e taskset -c "$late_cpu" /work/exact_server --listen=127.0.0.1:0 --mode=epoll >"/tmp/$3.log" 2>&1 &
  server=$!
  wait_for 20 grep -qs listening "/tmp/$3.log"
  with_tacho "$1" "$2"
  taskset -c 0 /work/exact_client --connect="$(sed -n 's/^listening //p' "/tmp/$3.log")" --requests=1009 --connections=7 \
    --requests-per-connection=50 >/tmp/client.log 2>&1 || sed 's/^/@@log /' /tmp/client.log
  verdict "$3" 1009
  kill "$server"
  wait "$server"
}
