#!/usr/bin/env bash
# Packs a tree of files as an .rpm: rpm.sh TREE VERSION ARCHITECTURE OUT, at SOURCE_DATE_EPOCH.
set -euo pipefail
tree=$(realpath "$1") version=$2 arch=$3 out=$(realpath "$4")
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
cat > "$work/idlewise.spec" <<TEXT
Name: idlewise
Version: $version
Release: 1
Summary: Scrub disks in their idle times, within a slowdown that you choose
License: (Apache-2.0 OR MIT) AND LGPL-2.1-or-later AND LGPL-3.0-or-later
AutoReqProv: no
%description
Scrubbing reads a whole disk to find blocks that have become unreadable. idlewise learns when a disk is idle from its own
requests, and reads only then, so that the mean slowdown of other requests stays within a goal. It also analyses traces of disk
requests and simulates policies for background work on them.
%install
cp -a $tree/. %{buildroot}/
mkdir -p %{buildroot}/usr/share/zsh/site-functions
mv %{buildroot}/usr/share/zsh/vendor-completions/_idlewise %{buildroot}/usr/share/zsh/site-functions/
rmdir %{buildroot}/usr/share/zsh/vendor-completions
%post
[ ! -d /run/systemd/system ] || systemctl daemon-reload
%preun
[ "\$1" != 0 ] || [ ! -d /run/systemd/system ] || systemctl disable --now idlewised.service idlewised.socket idlewise-web.socket idlewise-notify.path
%postun
[ ! -d /run/systemd/system ] || systemctl daemon-reload
[ "\$1" != 1 ] || [ ! -d /run/systemd/system ] || systemctl try-restart idlewised.service
%files
%defattr(-,root,root,-)
/usr/bin/idlewise
%doc /usr/share/doc/idlewise
/usr/share/man/man1/*
/usr/lib/systemd/system/*
/usr/share/bash-completion/completions/idlewise
/usr/share/zsh/site-functions/_idlewise
/usr/share/fish/vendor_completions.d/idlewise.fish
TEXT
rpmbuild -bb --quiet --target "$arch" --buildroot "$work/root" --define "_topdir $work" --define "_rpmdir $out" \
    --define "_rpmfilename %%{NAME}-%%{VERSION}-%%{RELEASE}.%%{ARCH}.rpm" --define "__os_install_post %{nil}" \
    --define "use_source_date_epoch_as_buildtime 1" --define "clamp_mtime_to_source_date_epoch 1" --define "_buildhost localhost" \
    --define "_build_id_links none" "$work/idlewise.spec"
