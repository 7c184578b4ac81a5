#!/usr/bin/env bash
# Records the demo's foreground trace: PostgreSQL under pgbench with think times, on a loop device, watched by
# `idlewise capture`. Usage: record-trace.sh OUT.csv.gz [SECONDS]. Needs root and PostgreSQL (apt: postgresql).
set -euo pipefail

out=$(realpath -m "${1:?where to write the trace, such as testbed/traces/pgbench.csv.gz}")
seconds=${2:-75}
clients=3
think_ms=450 # mean, exponential: bursts of transactions, and silence between them
scale=40     # about 600 MB of tables

cd "$(dirname "$0")/.."
cargo build --release --quiet --workspace --bin idlewise
idlewise=$PWD/target/release/idlewise
postgres=$(ls -d /usr/lib/postgresql/*/bin 2>/dev/null | tail -n 1 || true)
export PATH=$postgres:$PATH
for tool in initdb pg_ctl pgbench mkfs.ext4 losetup; do
    command -v "$tool" >/dev/null || { echo "record-trace: $tool is missing (apt install postgresql e2fsprogs)" >&2; exit 1; }
done

work=$(mktemp -d)
device=
cleanup() {
    su nobody -s /bin/bash -c "PATH=$PATH pg_ctl -D $work/mnt/db -m immediate stop" >/dev/null 2>&1 || true
    umount "$work/mnt" 2>/dev/null || true
    [ -z "$device" ] || losetup -d "$device" || true
    rm -rf "$work"
}
trap cleanup EXIT

truncate -s 4G "$work/image"
device=$(losetup --find --show --direct-io=on "$work/image")
mkfs.ext4 -q "$device"
mkdir "$work/mnt"
chmod 755 "$work"
mount -o noatime "$device" "$work/mnt"
mkdir "$work/mnt/db"
chown nobody "$work/mnt/db"
run() { su nobody -s /bin/bash -c "cd $work/mnt/db && PATH=$PATH $*"; }

run initdb -D "$work/mnt/db" --auth=trust --no-sync >/dev/null
cat >>"$work/mnt/db/postgresql.conf" <<CONF
shared_buffers = 16MB
checkpoint_timeout = 30s
listen_addresses = ''
unix_socket_directories = '$work/mnt/db'
CONF
run pg_ctl -w -D "$work/mnt/db" -l log start >/dev/null
pg="-h $work/mnt/db -U nobody"
run createdb $pg bench
run pgbench $pg -i -q -s $scale bench 2>/dev/null

cat >"$work/mnt/db/think.sql" <<SQL
\set aid random(1, 100000 * :scale)
\set tid random(1, 10 * :scale)
\set bid random(1, 1 * :scale)
\set delta random(-5000, 5000)
\set think random_exponential(1, 10 * $think_ms, 10)
BEGIN;
UPDATE pgbench_accounts SET abalance = abalance + :delta WHERE aid = :aid;
SELECT abalance FROM pgbench_accounts WHERE aid = :aid;
UPDATE pgbench_tellers SET tbalance = tbalance + :delta WHERE tid = :tid;
UPDATE pgbench_branches SET bbalance = bbalance + :delta WHERE bid = :bid;
INSERT INTO pgbench_history (tid, bid, aid, delta, mtime) VALUES (:tid, :bid, :aid, :delta, CURRENT_TIMESTAMP);
END;
\sleep :think ms
SQL
sync
echo 3 >/proc/sys/vm/drop_caches
"$idlewise" capture "$device" --for "${seconds}s" --out "$out" &
run pgbench $pg -n -f think.sql -s $scale -c $clients -T "$((seconds + 2))" bench | grep -E 'transactions|tps' || true
wait %1
