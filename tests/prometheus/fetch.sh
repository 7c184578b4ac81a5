#!/usr/bin/env bash
# Unpacks Debian's Prometheus into target/prometheus, for tests: installed, it would run as a service. Needs apt-get.
set -euo pipefail
cd "$(dirname "$0")/../.."
out=$(realpath -m "${CARGO_TARGET_DIR:-target}/prometheus")
[ ! -x "$out/usr/bin/promtool" ] || exit 0
command -v apt-get dpkg-deb >/dev/null || { echo "prometheus: there is no apt-get to fetch it with" >&2; exit 1; }
rm -rf "$out.new"
mkdir -p "$out.new"
download() { (cd "$out.new" && apt-get download -qq -o APT::Sandbox::User=root prometheus); }
download 2>/dev/null || { apt-get update -qq; download; }
dpkg-deb -x "$out.new"/*.deb "$out.new"
rm "$out.new"/*.deb
rm -rf "$out"
mv "$out.new" "$out"
