#!/bin/bash
# A service of a guest whose first process is Debian's systemd, with the package installed: runs /job once the boot is done.
export PATH=/usr/sbin:/usr/bin:/work:/work/bin LC_ALL=C
stty -echo -onlcr </dev/console 2>/dev/null
# shellcheck source=/dev/null
. /work/steps.sh

tacho_says() {
  journalctl --no-pager --output=cat --unit=tacho
}

# check WHAT COMMAND…: the step fails, and says what is not so.
check() {
  what=$1
  shift
  "$@" || {
    echo "@@log $what is not so: $*"
    broken=1
  }
}

# step NAME FUNCTION…: its result is whether all that it checks is so.
step() {
  broken=0
  name=$1
  shift
  "$@"
  [ "$broken" = 0 ] || {
    tacho_says | tail -n 30 | sed 's/^/@@log /'
    systemctl --failed --no-legend --no-pager | sed 's/^/@@log /'
  }
  echo "@@result $name $broken"
}

is() {
  [ "$1" = "$2" ]
}

metrics() {
  wget -q -O - http://127.0.0.1:9435/metrics
}

# Every hook of sends and receives is attached by this method.
attached_by() {
  metrics | sed -n 's/^tacho_probe_attached{probe="socket",hook="\(send\|receive\)",method="\([a-z_]*\)"} 1$/\2/p' | sort -u | grep -qx "$1"
}

all_attached() {
  metrics | grep -q '^tacho_probe_attached{.*} 1$' && ! metrics | grep '^tacho_probe_attached{.*} 0$'
}

# What a machine has besides services: the first process, log-ins, sockets.
no_unwanted_targets() {
  ! metrics | grep -E '^tacho_target_info\{target="(\[systemd\]|user@|init|[^"]*\.socket)'
}

# As Debian has it: the unit's capabilities have to do, by fentry.
booted() {
  check "a paranoid kernel" is "$(cat /proc/sys/kernel/perf_event_paranoid)" 3
  check "started at boot" systemctl --quiet is-active tacho
  check "enabled" systemctl --quiet is-enabled tacho
  check "nothing has failed" is "$(systemctl show --property NRestarts --value tacho)" 0
  check "sockets by $1" attached_by "$1"
  check "all is attached" all_attached
}

served_by() {
  systemctl "$1" web
  wait_for 20 wget -q -O /dev/null http://127.0.0.1:9435/metrics
  wait_for 20 grep -qs listening /run/web.log
}

# A service of the machine; the second half of its requests is asked of one that has just been started anew.
counted() {
  cat >/etc/systemd/system/web.service <<END
[Service]
ExecStart=/work/exact_server --listen=127.0.0.1:8099 --mode=epoll
StandardOutput=truncate:/run/web.log
END
  systemctl daemon-reload
  served_by start
  wait_for 30 is_target
  ask 1009
  check "1009 requests" wait_for 20 counts 1009
  served_by restart
  ask 503
  check "1512 requests" wait_for 20 counts 1512
  check "nothing else is a target" no_unwanted_targets
}

ask() {
  exact_client --connect=127.0.0.1:8099 --requests="$1" --connections=7 --requests-per-connection=50 >/tmp/client.log 2>&1 ||
    sed 's/^/@@log /' /tmp/client.log
}

is_target() {
  metrics | grep -q '^tacho_target_info{target="web.service"'
}

# The unit's rights do not suffice, which has to be said, and how it is mended; with the package's drop-in they do.
kprobes() {
  systemctl stop tacho
  echo "probes: {socket: {attach: kprobe}}" >/etc/tacho/tacho.yaml
  # shellcheck disable=SC2251 # it has to fail
  ! systemctl start tacho || check "a start that fails" false
  check "the drop-in in the log" eval 'tacho_says | grep -q /usr/share/tacho/kprobes.conf'
  install -D --mode=644 /usr/share/tacho/kprobes.conf /etc/systemd/system/tacho.service.d/kprobes.conf
  systemctl daemon-reload
  systemctl reset-failed tacho
  check "the start" systemctl start tacho
  check "sockets by kprobe" attached_by kprobe
  wait_for 30 is_target
  ask 211
  check "211 requests" wait_for 20 counts 211
}

purged() {
  dpkg --purge tacho >/dev/null 2>&1 || check "the purge" false
  check "no process is left" is "$(systemctl is-active tacho)" inactive
  check "no file is left" is "$(find /etc/tacho /etc/default/tacho /usr/bin/tacho /usr/lib/systemd/system/tacho.service 2>/dev/null)" ""
}

export target=web.service  # which value_of of steps.sh asks for
echo "@@kernel $(uname -r) $(uname -m)"
# shellcheck source=/dev/null
. /job
echo "@@end"
systemctl poweroff --force --force
