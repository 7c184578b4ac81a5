#!/usr/bin/env python3
"""The licences of everything inside the command, with their texts: licences.py TRIPLE.

Which crates are inside is cargo's own answer; the texts are those that the crates bring."""
import json
import re
import subprocess
import sys
from pathlib import Path

triple = sys.argv[1]
TEXTS = re.compile(r"^(licen[cs]e|copying|unlicense|notice|copyright)", re.IGNORECASE)
DEBIAN, COMMON = Path("/usr/share/doc"), Path("/usr/share/common-licenses")
# C libraries that are linked in, and where Debian keeps what they say. Those that crates bring come with them.
LIBRARIES = [
    ("glibc: LGPL-2.1-or-later", [DEBIAN / "libc6/copyright", COMMON / "LGPL-2.1"]),
    ("libelf of elfutils: LGPL-3.0-or-later OR GPL-2.0-or-later",
     [DEBIAN / "libelf-dev/copyright", COMMON / "LGPL-3", COMMON / "GPL-3"]),
    ("zlib: Zlib", [DEBIAN / "zlib1g-dev/copyright"]),
]


def cargo(*arguments):
    return subprocess.run(["cargo", *arguments], check=True, capture_output=True, text=True).stdout


tree = cargo("tree", "--locked", "--workspace", "-p", "idlewise-cli", "--edges", "normal", "--features", "static",
             "--target", triple, "--prefix", "none", "--format", "{p}")
inside = {tuple(line.split()[:2]) for line in tree.splitlines() if line.strip()}
packages = json.loads(cargo("metadata", "--locked", "--format-version", "1"))["packages"]
parts, texts = [], {}
for package in sorted(packages, key=lambda package: package["name"]):
    if (package["name"], "v" + package["version"]) not in inside or not package["source"]:
        continue
    folder = Path(package["manifest_path"]).parent
    # At most two folders down, where crates keep the C sources that they bring.
    found = sorted(path for pattern in ["*", "*/*", "*/*/*"] for path in folder.glob(pattern)
                   if path.is_file() and TEXTS.match(path.name) and path.suffix not in (".c", ".h", ".rs"))
    named = package["license"] or (package["license_file"] and "see its text")
    if not named:
        sys.exit(f"licences: {package['name']} names no licence")
    parts.append((package["name"], package["version"], named, package["repository"] or ""))
    for path in found:
        texts.setdefault(path.read_text(errors="replace").strip(), []).append(package["name"])

print("What is inside the idlewise command, and under which licences. The source of idlewise and its build files are free, so\n"
      "that it can be linked again with changed versions of these libraries.\n\nC libraries:\n")
for name, _ in LIBRARIES:
    print("  " + name)
print("\nRust crates, with the C sources that they bring:\n")
for name, version, licence, home in parts:
    print(f"  {name} {version}: {licence}" + (f"; {home}" if home else ""))
for name, paths in LIBRARIES:
    for path in paths:
        texts.setdefault(path.read_text(errors="replace").strip(), []).append(name)
for text, names in texts.items():
    print("\n" + "-" * 78 + "\n" + ", ".join(sorted(set(names))) + ":\n\n" + text)
