# Arrays of each layout, errors put behind their backs while they are written to, and what finds them.

modprobe loop
export DM_DISABLE_UDEV=1
KIB=12288
ERRORS=100
keeper=

# array NAME LEVEL LAYOUT CHUNK DISK...: starts /dev/NAME without metadata; zeros fit in every layout. With parities it has a list of bad
# blocks, as metadata of 1.2 have it: these are kept by this script, which has nothing to keep but that it is written to.
array() {
    name=$1
    echo "$name" > /sys/module/md_mod/parameters/new_array
    md=/sys/block/$name/md
    level=$2 layout=$3 chunk=$4
    shift 4
    if [ "$level" = raid6 ]; then echo external:here; else echo none; fi > "$md/metadata_version"
    echo "$level" > "$md/level"
    echo $# > "$md/raid_disks"
    [ "$level" = raid1 ] || { echo "$layout" > "$md/layout"; echo "$chunk" > "$md/chunk_size"; }
    echo $KIB > "$md/component_size"
    slot=0
    for member in "$@"; do
        cat "/sys/block/${member#/dev/}/dev" > "$md/new_dev"
        echo $slot > "$md/dev-${member#/dev/}/slot"
        [ "$level" != raid6 ] || echo external_bbl > "$md/dev-${member#/dev/}/state"
        slot=$((slot + 1))
    done
    echo none > "$md/resync_start"
    echo active > "$md/array_state"
    if [ "$level" = raid6 ]; then
        echo 0 > "$md/safe_mode_delay"
        (while echo active > "/sys/block/$name/md/array_state"; do sleep 0.1; done) 2>/dev/null &
        keeper=$!
    fi
}

# mapped NAME KIND CHUNK DISK...: the same by device-mapper, on volumes of its own as LVM has them.
mapped() {
    name=$1 kind=$2 chunk=$3
    shift 3
    sectors=$((KIB * 2))
    case $kind in
        raid1) length=$sectors ;;
        raid5*) length=$((sectors * ($# - 1))) ;;
        raid6*) length=$((sectors * ($# - 2))) ;;
        raid10*) length=$((sectors * $# / 2)) ;;
    esac
    members=
    slot=0
    for disk in "$@"; do
        dmsetup create "$name-rimage_$slot" --table "0 $sectors linear $disk 0"
        truncate -s 256K "/tmp/$name-rmeta_$slot.img"
        below=$(losetup -f)
        losetup "$below" "/tmp/$name-rmeta_$slot.img"
        dmsetup create "$name-rmeta_$slot" --table "0 512 linear $below 0"
        members="$members /dev/mapper/$name-rmeta_$slot /dev/mapper/$name-rimage_$slot"
        slot=$((slot + 1))
    done
    dmsetup create "$name" --table "0 $length raid $kind 1 $chunk $#$members" || return
    for _ in $(seq 300); do
        dmsetup status "$name" | awk '{ split($7, share, "/"); exit !(share[1] == share[2] && $8 == "idle") }' && return
        sleep 0.2
    done
    echo "$name is not in order after a minute: $(dmsetup status "$name")"
}

# The array of this name, its members where they are named by who is wrong, and how many mismatches its own check counts.
path_of() { if [ -e "/dev/mapper/$1" ]; then echo "/dev/mapper/$1"; else echo "/dev/$1"; fi; }
counted() {
    if [ -e "/dev/mapper/$1" ]; then
        dmsetup message "$1" 0 check
        until dmsetup status "$1" | awk '{ exit $8 != "idle" }'; do sleep 0.2; done
        dmsetup status "$1" | awk '{ print $9 }'
    else
        echo check > "/sys/block/$1/md/sync_action"
        until grep -q idle "/sys/block/$1/md/sync_action"; do sleep 0.2; done
        cat "/sys/block/$1/md/mismatch_cnt"
    fi
}

# write_by_fio DEVICE FIRST COUNT: pieces of up to 64 KiB at random, four at a time, into these blocks of 4 KiB, until /tmp/writing is
# removed. Of two writes to the same place at once nobody knows which one a member has last: no two overlap. An array that is never idle is
# never scrubbed.
write_by_fio() {
    fio --name=writer --filename="$1" --offset=$(($2 * 4))k --size=$(($3 * 4))k --rw=randwrite --bsrange=4k-64k --direct=1 \
        --ioengine=libaio --iodepth=4 --serialize_overlap=1 --refill_buffers --thinktime=20ms --thinktime_blocks=4 \
        --time_based --runtime=2h --thread > /tmp/fio.out 2>&1 &
    fio=$!
    while [ -e /tmp/writing ]; do
        sleep 0.1
        kill -0 $fio 2>/dev/null || { echo "fio has ended: $(cat /tmp/fio.out)"; return 1; }
    done
    kill $fio
    wait $fio
}

# Writes into the last fifth of an array, until the file is removed.
write_to() {
    device=$(path_of "$1")
    blocks=$(($(blockdev --getsz "$device") / 8))
    write_by_fio "$device" $((blocks * 4 / 5)) $((blocks / 5))
}

# inject MEMBERS SECTION SEED: where, and what; each place once. The last fifth of each section is written to.
inject() {
    awk -v members="$1" -v section="$2" -v total=$((KIB * 2)) -v errors=$ERRORS -v seed="$3" 'BEGIN {
        srand(seed)
        while (made < errors) {
            member = int(rand() * members)
            sector = int(rand() * (section * 3 / 4)) + section * int(rand() * int(total / section))
            if ((member, sector) in seen) continue
            seen[member, sector] = 1
            print member, sector, made++ % 5
        }
    }'
}

damage() {
    image=/tmp/$1-$2.img
    case $4 in
        # A bit; all of it; what belongs elsewhere; what was there before; half of what was written.
        0)
            byte=$(dd if="$image" bs=1 skip=$(($3 * 512 + 77)) count=1 2>/dev/null | od -An -tu1)
            # shellcheck disable=SC2059
            printf "\\$(printf %03o $((byte ^ 16)))" |
                dd of="$image" bs=1 seek=$(($3 * 512 + 77)) conv=notrunc 2>/dev/null
            ;;
        1) dd if=/dev/urandom of="$image" bs=512 seek="$3" count=1 conv=notrunc 2>/dev/null ;;
        2) dd if="$image" of="$image" bs=512 skip=$(($3 + 1)) seek="$3" count=1 conv=notrunc 2>/dev/null ;;
        3) dd if=/dev/zero of="$image" bs=512 seek="$3" count=1 conv=notrunc 2>/dev/null ;;
        4) dd if=/dev/zero of="$image" bs=256 seek=$(($3 * 2)) count=1 conv=notrunc 2>/dev/null ;;
    esac
}

# make_disks NAME MEMBERS: loop devices, in $disks.
make_disks() {
    disks=
    for member in $(seq 0 $(($2 - 1))); do
        truncate -s ${KIB}K "/tmp/$1-$member.img"
        disks="$disks $(losetup -f)"
        losetup "$(losetup -f)" "/tmp/$1-$member.img"
    done
}

# make_array NAME LEVEL LAYOUT CHUNK DISK...
make_array() {
    case $1 in
        md*) array "$@" ;;
        dm*)
            named=$1 kind=$2 size=$4
            shift 4
            mapped "$named" "$kind" "$size" "$@"
            ;;
    esac
}

# remove_array NAME: with its disks.
remove_array() {
    case $1 in
        md*)
            [ -z "$keeper" ] || kill "$keeper"
            keeper=
            echo clear > "/sys/block/$1/md/array_state"
            ;;
        dm*)
            dmsetup remove "$1"
            for volume in /dev/mapper/"$1"-*; do dmsetup remove "$volume"; done
            ;;
    esac
    for disk in $disks; do losetup -d "$disk"; done
    rm -f /tmp/"$1"-*.img
}

# repair NAME: where it is known which member is right; then, of RAID 6, where its parities tell it. Others write meanwhile.
repair() {
    md=/sys/block/$1/md
    touch /tmp/writing
    write_to "$1" &
    writer=$!
    step "$1-foreseen" idlewise repair "/dev/$1" --md --state-dir /tmp/states
    for trust in '' --trust-parities; do
        # shellcheck disable=SC2086
        step "$1-repair$trust" idlewise repair "/dev/$1" --md $trust --allow-writes --max-blocks 1000 --state-dir /tmp/states --json
        # shellcheck disable=SC2086
        step "$1-after$trust" idlewise scrub "/dev/$1" $PACE --restart
        [ "$1" = md6 ] || break
        # What md has just read it has in memory: 240 pages of 256 that it keeps.
        echo 1920 > "$md/sync_max"
        echo check > "$md/sync_action"
        until grep -q 1920 "$md/sync_completed"; do sleep 0.2; done
        echo idle > "$md/sync_action"
        echo 0 > "$md/sync_min"
        echo max > "$md/sync_max"
    done
    rm /tmp/writing
    wait "$writer"
    step "$1-limits" cat "$md/sync_min" "$md/sync_max" "$md/sync_action" "$md/suspend_lo" "$md/suspend_hi"
    step "$1-bad-blocks" cat "$md"/dev-*/bad_blocks
    step "$1-same" same_as_before "$1"
}

# same_as_before NAME: which sectors of its members are others than before anything was damaged. The last fifth was written to since.
same_as_before() {
    for member in $(seq 0 4); do
        [ -e "/tmp/$1-$member.before" ] || continue
        cmp -l -n $((KIB * 1024 / 4 * 3)) "/tmp/$1-$member.img" "/tmp/$1-$member.before" |
            awk -v member="$member" '{ sector = int(($1 - 1) / 512); if (sector != last) print member, sector; last = sector }'
    done
    rm -f /tmp/"$1"-*.before
}

# try NAME LEVEL LAYOUT CHUNK MEMBERS SECTION
try() {
    make_disks "$1" "$5"
    # shellcheck disable=SC2086
    make_array "$1" "$2" "$3" "$4" $disks
    path=$(path_of "$1")
    dd if=/dev/urandom of="$path" bs=1M oflag=direct 2>/dev/null
    echo "@@ $1-disks"
    case $1 in
        md*) echo "$disks" ;;
        dm*) for slot in $(seq 0 $(($5 - 1))); do echo "dm-$(dmsetup info -c --noheadings -o minor "$1-rimage_$slot")"; done ;;
    esac
    echo "@@ errors"
    echo "@@ exit 0"
    # shellcheck disable=SC2086
    step "$1-clean" idlewise scrub "$path" $PACE --restart
    case $1 in md12 | md6) for image in /tmp/"$1"-*.img; do cp "$image" "${image%.img}.before"; done ;; esac
    inject "$5" "$6" "$5$6" > /tmp/injected
    step "$1-injected" cat /tmp/injected
    while read -r member sector kind; do
        damage "$1" "$member" "$sector" "$kind"
    done < /tmp/injected
    touch /tmp/writing
    write_to "$1" &
    writer=$!
    # shellcheck disable=SC2086
    step "$1-found" idlewise scrub "$path" $PACE --restart
    rm /tmp/writing
    wait "$writer"
    step "$1-counted" counted "$1"
    case $1 in md11 | md12 | md6) repair "$1" ;; esac
    case $1 in
        dm1 | dm12)
            sleep 100 < "$path" &
            holder=$!
            step "$1-held" idlewise repair "$path" --md --allow-writes --max-blocks 1000 --state-dir /tmp/states --json
            kill "$holder"
            step "$1-repair" idlewise repair "$path" --md --allow-writes --max-blocks 1000 --state-dir /tmp/states --json
            # shellcheck disable=SC2086
            step "$1-after" idlewise scrub "$path" $PACE --restart
            ;;
    esac
    remove_array "$1"
}

for module in raid1 raid10 raid456; do modprobe $module; done
all=$((KIB * 2))
