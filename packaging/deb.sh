#!/usr/bin/env bash
# Packs a tree of files as a .deb: deb.sh TREE VERSION ARCHITECTURE OUT, at SOURCE_DATE_EPOCH. The tree gets what only Debian wants. COMPRESSION may be
# another than xz.
set -euo pipefail
tree=$1 version=$2 arch=$3 out=$4
doc=$tree/usr/share/doc/idlewise
# A control file must have an address; nobody has this one.
maintainer="The idlewise maintainers <nobody@idlewise.invalid>"

cat <<TEXT | gzip -9n > "$doc/changelog.gz"
idlewise ($version) unstable; urgency=medium

  * See CHANGELOG.md.gz in this folder.

 -- $maintainer  $(date -R -u -d "@$SOURCE_DATE_EPOCH")
TEXT
mkdir -p "$tree/usr/share/lintian/overrides" "$tree/DEBIAN"
cat > "$tree/usr/share/lintian/overrides/idlewise" <<'TEXT'
# One command for every Linux of this architecture, whatever libraries it has.
idlewise: statically-linked-binary
idlewise: embedded-library
idlewise: shared-library-lacks-prerequisites
TEXT
cat > "$tree/DEBIAN/control" <<TEXT
Package: idlewise
Version: $version
Architecture: $arch
Maintainer: $maintainer
Installed-Size: $(du -sk --exclude=DEBIAN "$tree" | cut -f 1)
Section: admin
Priority: optional
Description: scrub disks in their idle times, within a slowdown that you choose
 Scrubbing reads a whole disk to find blocks that have become unreadable.
 idlewise learns when a disk is idle from its own requests, and reads only then,
 so that the mean slowdown of other requests stays within a goal. It also
 analyses traces of disk requests, and simulates policies for background work.
TEXT
cat > "$tree/DEBIAN/postinst" <<'TEXT'
#!/bin/sh
set -e
# It verifies no disk before somebody wants it: systemctl enable --now idlewised.
if [ "$1" = configure ] && [ -d /run/systemd/system ]; then
    systemctl daemon-reload || true
    # The next version goes on where the one before has saved.
    systemctl try-restart idlewised.service || true
fi
TEXT
chmod 755 "$tree/DEBIAN/postinst"
cat > "$tree/DEBIAN/prerm" <<'TEXT'
#!/bin/sh
set -e
# Scrubs that run are ended as by Ctrl-C, so that they save where they are: else they would go on without a command to ask them.
running() {
    # Of root alone, by who has started it: what others run may lie on file systems that never answer, and so does what is asked of it.
    for status in $(grep -ls '^Uid:[[:space:]]*0[[:space:]]' /proc/[0-9]*/status); do
        process=${status%/status}
        # The very file, by its link: another system on this machine has one of that name.
        if [ "$(readlink "$process/exe")" = /usr/bin/idlewise ] &&
            [ "$(readlink "$process/ns/mnt")" = "$(readlink /proc/self/ns/mnt)" ]; then
            process=${process#/proc/}
            # What `idlewise run` runs is somebody's own, and gets the signals that are sent to it.
            [ "$(timeout 5 tr '\0' '\n' < "/proc/$process/cmdline" | sed -n 2p)" = run ] || echo "$process"
        fi
    done
}
if [ "$1" = remove ]; then
    if [ -d /run/systemd/system ]; then
        systemctl disable --now idlewised.service idlewised.socket idlewise-web.socket idlewise-notify.path || true
    fi
    for process in $(running); do
        echo "idlewise: ending process $process; a scrub can go on from there after another installation"
        kill -INT "$process" || true
    done
    for _ in 1 2 3 4 5 6 7 8 9 10; do
        [ -n "$(running)" ] || break
        sleep 1
    done
fi
TEXT
chmod 755 "$tree/DEBIAN/prerm"
cat > "$tree/DEBIAN/postrm" <<'TEXT'
#!/bin/sh
set -e
# Checkpoints and locks; a log of repairs is worth keeping until the package is purged.
if [ -d /run/systemd/system ]; then
    systemctl daemon-reload || true
fi
if [ "$1" = purge ]; then
    rm -rf /var/lib/idlewise /etc/idlewise
    # Where containers share it, it is a mount, and not ours alone.
    mountpoint -q /run/idlewise || rm -rf /run/idlewise
fi
TEXT
chmod 755 "$tree/DEBIAN/postrm"
(cd "$tree" && find usr -type f -print0 | sort -z | xargs -0 md5sum) > "$tree/DEBIAN/md5sums"
chmod -R go-w "$tree"
dpkg-deb --root-owner-group --build -Z"${COMPRESSION:-xz}" "$tree" "$out/idlewise_${version}_$arch.deb" >/dev/null
