#!/usr/bin/env bash
# Installs what a package holds besides the command and what that makes of itself: units, documents, alerts. Usage: files.sh TREE.
set -euo pipefail
cd "$(dirname "$0")/.."
tree=$1
doc=$tree/usr/share/doc/idlewise
install -D -m 644 -t "$tree/usr/lib/systemd/system" packaging/systemd/*
install -D -m 644 -t "$doc" SECURITY.md README.md
# What the README points to.
install -D -m 644 -t "$doc/docs" docs/*.md
install -D -m 644 -t "$doc/prometheus" packaging/prometheus/*
# These pages of the site include a file of the repository.
install -m 644 ARCHITECTURE.md "$doc/docs/architecture.md"
install -m 644 CONTRIBUTING.md "$doc/docs/contributing.md"
