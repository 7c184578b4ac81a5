#!/bin/bash
# Runs under the systemd of boot.sh: the life of idlewised, step by step. Each line of /out.txt is a step and what was seen.
exec > /out.txt 2>&1
disk=$1
used=$2
tell() { echo "$1: $2"; }
page() { curl -s --max-time 10 "http://127.0.0.1:9927$1"; }
# What the service says of a disk: a field of its status.
said() { curl -s --max-time 10 --unix-socket /run/idlewise/control.sock "http://localhost/v1/disks/$(basename "${2:-$disk}")" | grep -o "\"$1\": \"[^\"]*\"" | head -n 1 | cut -d '"' -f 4; }
until_it() {
    for _ in $(seq 1200); do
        "${@:2}" && { tell "$1" yes; return; }
        sleep 0.1
    done
    tell "$1" "no: $(systemctl status idlewised --no-pager 2>&1 | tail -n 20; idlewise status "$disk"; said why)"
}
is_state() { [ "$(said state "${2:-}")" = "$1" ]; }
main() { systemctl show -P MainPID idlewised; }

# Takes what is posted to it, one message after the other.
python3 -c '
import http.server
class Hook(http.server.BaseHTTPRequestHandler):
    def do_POST(self):
        with open("/tmp/posted", "ab") as file: file.write(self.rfile.read(int(self.headers["Content-Length"])) + b"\n")
        self.send_response(200); self.end_headers()
    def log_message(self, *_): pass
http.server.HTTPServer(("127.0.0.1", 8099), Hook).serve_forever()' &
# Somebody uses the other disk until it is verified.
python3 -c '
import mmap, os, random, sys, time
disk, buffer = os.open(sys.argv[1], os.O_RDONLY | os.O_DIRECT), mmap.mmap(-1, 4096)
while not os.path.exists("/tmp/enough"):
    os.preadv(disk, [buffer], random.randrange(4096) * 4096)
    time.sleep(random.expovariate(20))' "$used" &
# As the documents say. No package is known here: ours needs none.
mkdir -p /var/lib/dpkg/info /var/lib/dpkg/updates
touch /var/lib/dpkg/status
dpkg --install /packages/idlewise_1.0_*.deb
tell installed "$(idlewise --version | cut -d ' ' -f 1)"
systemctl enable --now idlewised
until_it running is_state running
tell "page before it is wanted" "$(page / | grep -c 'class="disks"')"
systemctl enable idlewise-web.socket
systemctl restart idlewised
until_it "running again" is_state running
# Whoever is in the service cannot write to a disk, root or not.
tell "may write" "$(echo $BASHPID > /sys/fs/cgroup/system.slice/idlewised.service/cgroup.procs; dd if=/dev/zero of="$disk" bs=512 count=1 conv=notrunc 2>&1 | grep -o 'Operation not permitted')"
tell page "$(page / | grep -c 'class="disks"')"
tell metrics "$(page /metrics | grep -c '^idlewise_disk_state')"
tell "network orders" "$(curl -s -o /dev/null -w '%{http_code}' -X POST http://127.0.0.1:9927/v1/pause)"
idlewise pause "$disk" --why test > /dev/null
until_it paused is_state paused
tell "status of it" "$(idlewise status --json | tr -d ' \n' | grep -o "\"device\":\"$disk\",[^}]*" | grep -o '"state":"[a-z]*"')"
idlewise resume "$disk" > /dev/null
until_it resumed is_state running
cp /etc/idlewise/idlewise.toml /tmp/good.toml
echo 'unknown = 1' >> /etc/idlewise/idlewise.toml
systemctl reload idlewised
until_it "wrong file refused" sh -c 'curl -s --unix-socket /run/idlewise/control.sock http://localhost/v1/status | grep -q "unknown field"'
tell "status of the file" "$(idlewise status 2>&1 > /dev/null | grep -o 'goes on with its configuration as it was before')"
# What is to be told meanwhile is told later, however often that cannot be.
mkdir -p -m 700 /var/lib/idlewise/outbox
echo '{"version":1,"unix_s":1.0,"kind":"Behind","device":"later","identity":"a","subject":"late","text":"It is late.\n","before":0,"first_unix_s":0.5}' > /tmp/1.json
mv /tmp/1.json /var/lib/idlewise/outbox/0000000000001.000-0.json
until_it "cannot be told" sh -c 'systemctl show -P Result idlewise-notify | grep -q exit-code'
until_it "messages are stuck" sh -c 'idlewise status 2>&1 | grep -q "messages reach nobody"'
cp /tmp/good.toml /etc/idlewise/idlewise.toml
systemctl reload idlewised
until_it "told later" grep -qs "Behind later" /tmp/hook
until_it "file read again" sh -c '! curl -s --unix-socket /run/idlewise/control.sock http://localhost/v1/status | grep -q "unknown field"'
before=$(main)
began() { idlewise status "$disk" --json | tr -d ' \n' | grep -o '"started_unix_s":[0-9]*' | head -n 1; }
pass=$(began)
kill -9 "$before"
is_another() { now=$(main); [ "$now" != 0 ] && [ "$now" != "$before" ] && is_state running; }
until_it "goes on after a kill" is_another
tell "the same pass" "$([ -n "$pass" ] && [ "$(began)" = "$pass" ] && echo yes)"
until_it complete is_state complete
until_it "complete beside a load" is_state complete "$used"
touch /tmp/enough
tell "what it cost" "$(idlewise history "$used" --json | tr -d ' \n' | grep -o '"foreground_requests":[0-9]*,"mean_slowdown_s":[-0-9.e]*')"
# Since the kill, by how much they were slowed: the last buckets are those above 50 ms.
tell "by slowdown" "$(curl -s --unix-socket /run/idlewise/control.sock "http://localhost/v1/disks/$(basename "$used")" | tr -d ' \n' | grep -o '"slowdowns":\[[0-9,]*' | tail -n 1 | cut -d '[' -f 2)"
tell found "$(idlewise status "$disk" --json | tr -d ' \n' | grep -o '"lba":[0-9]*,"blocks":[0-9]*' | head -n 1)"
tell status "$(idlewise status | grep -c "$disk.*daemon: verified; the next pass begins in .*; due 20")"
tell history "$(idlewise history "$disk" --json | grep -c completed_unix_s)"
until_it mailed grep -qs "Subject: idlewise on .*: $disk: 2 blocks cannot be read, or are wrong" /tmp/mail
tell "mail says" "$(grep -c "idlewise acknowledge" /tmp/mail)"
until_it commanded grep -qs "UnreadableBlocks $disk" /tmp/hook
until_it posted grep -qs '"kind":"UnreadableBlocks"' /tmp/posted
sleep 1
tell waiting "$(find /var/lib/idlewise/outbox -name '*.json' | wc -l)"
systemctl stop idlewised
tell "left running" "$(pgrep -c -x idlewise)"
idlewise status > /dev/null
page / > /dev/null
sleep 1
tell "started by who asks" "$(systemctl is-active idlewised)"
systemctl start idlewised
until_it "started again" is_state complete
tell "page again" "$(page / | grep -c 'class="disks"')"
systemctl stop idlewised
tell result "$(systemctl show -P Result idlewised)"
# Another version goes on where this one is.
systemctl start idlewised
until_it "ready for another version" is_state complete
before=$(main)
dpkg --install /packages/idlewise_1.1_*.deb
is_new() { now=$(main); [ "$now" != 0 ] && [ "$now" != "$before" ] && is_state complete; }
until_it "upgraded" is_new
tell "passes kept" "$(idlewise history "$disk" --json | grep -c completed_unix_s)"
dpkg --purge idlewise
tell "left running after the purge" "$(pgrep -c -x idlewise)"
tell "left behind" "$(find /etc /run /usr/bin /usr/lib/systemd /usr/share /var -name '*idlewise*' -not -path '/etc/systemd/system/idlewised.service.d*' | tr '\n' ' ')"
systemctl exit 0
