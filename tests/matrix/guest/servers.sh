# shellcheck shell=sh
# Servers of a guest, each in a cgroup of its own, and what is asked of them: tests/matrix/requests.
# shellcheck disable=SC2317,SC2329 # called by name

listens() {
  grep -q ":$(printf %04X "$1") 00000000:0000 0A" /proc/net/tcp /proc/net/tcp6
}

# start NAME PORT COMMAND…: in a cgroup of that name, until it listens.
start() {
  name=$1 port=$2
  shift 2
  in_group "$name" "$@" >"/tmp/$name.log" 2>&1 &
  wait_for 60 listens "$port" || sed 's/^/@@log /' "/tmp/$name.log"
}

start_nginx() {
  mkdir -p /tmp/nginx
  cat >/tmp/nginx/conf <<END
user root;
daemon off;
worker_processes 1;
pid /tmp/nginx/pid;
events { worker_connections 64; }
http {
  access_log off;
  keepalive_requests 1000000000;
  client_body_temp_path /tmp/nginx/body;
  proxy_temp_path /tmp/nginx/proxy;
  fastcgi_temp_path /tmp/nginx/fastcgi;
  uwsgi_temp_path /tmp/nginx/uwsgi;
  scgi_temp_path /tmp/nginx/scgi;
  server { listen 127.0.0.1:8001; location / { return 200 "ok\n"; } }
}
END
  start nginx 8001 nginx -e stderr -c /tmp/nginx/conf
}
ask_nginx() { ask 8001 http /; }

start_redis() { start redis 8002 redis-server --port 8002 --save '' --appendonly no --dir /tmp; }
ask_redis() { ask 8002 redis 'SET a b'; }

start_memcached() {
  start memcached 8003 memcached -u root -l 127.0.0.1 -p 8003 -U 0 -m 64
  printf 'set a 0 0 1\r\nb\r\nquit\r\n' | nc 127.0.0.1 8003 >/dev/null
}
ask_memcached() { ask 8003 memcached 'get a'; }

start_postgres() {
  chown -R 65534:65534 /data
  chmod 700 /data
  start postgres 8004 /work/setpriv --reuid=65534 --regid=65534 --clear-groups /usr/lib/postgresql/*/bin/postgres -D /data -p 8004 \
    -h 127.0.0.1 -k /tmp -c fsync=off -c autovacuum=off -c dynamic_shared_memory_type=mmap
}
ask_postgres() { ask 8004 postgres 'SELECT 1'; }

start_gunicorn() {
  (cd /tests/support/servers/programs && start gunicorn 8005 python3 -B -m gunicorn --bind 127.0.0.1:8005 --workers 2 application:application)
}
ask_gunicorn() { ask 8005 http / --reconnect; }

start_grpc() { start grpc 8006 python3 -B -u /tests/support/servers/grpc_echo.py 8006; }
ask_grpc() { program_cost "$counter" python3 -B /work/grpc_client.py 8006 "$seconds"; }

# ask PORT PROTOCOL REQUEST [OPTION…]: over four connections, each asks again when it has its reply.
ask() {
  port=$1 protocol=$2 request=$3
  shift 3
  program_cost "$counter" open_loop_client --connect "127.0.0.1:$port" --protocol "$protocol" --request "$request" --connections 4 "$@" </tmp/load
}

# measure WAY COUNTER SECONDS SERVER…: what all programs take while each of the servers is asked.
measure() {
  way=$1 counter=$2 seconds=$3
  shift 3
  echo "0 $seconds 1" >/tmp/load
  for server; do
    sleep 1
    "ask_$server" 2>&1 | sed "s/^/@@cost $way $server /"
  done
}

# observe WAY SECONDS PROBES SERVER…: the same with tacho, which watches all of them.
observe() {
  observed=$1 lasting=$2 probes=$3
  shift 3
  {
    echo "targets:"
    for each; do
      echo "  - {name: $each, cgroup: /$each, http2: $([ "$each" = grpc ] && echo true || echo false)}"
    done
    echo "probes: {$probes}"
  } >/tmp/tacho.yaml
  /work/tacho --config.file=/tmp/tacho.yaml --web.listen-address=127.0.0.1:9435 >/tmp/tacho.log 2>&1 &
  tacho=$!
  target=$1
  wait_for 120 serves || sed 's/^/@@log /' /tmp/tacho.log
  sleep 10
  measure "$observed" none "$lasting" "$@"
  for target; do
    echo "@@cost $observed $target counted $(value_of requests_total)"
  done
  kill "$tacho"
  wait "$tacho"
}
