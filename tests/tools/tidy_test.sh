#!/usr/bin/env bash
# Every rule of tools/tidy fires on a tree made to break it, where it should and nowhere else.
set -euo pipefail
tidy=$KVLIFT_SOURCE/tools/tidy
tree=$(mktemp -d)
trap 'rm -rf "$tree"' EXIT
fail() { echo "FAILED: $*"; exit 1; }

clean_tree() {
  rm -rf "${tree:?}"/*
  mkdir -p "$tree"/{core,sim,real,traces,tools,configs,tests/step}
  local folder
  for folder in core sim real traces tools configs tests; do echo "# $folder" >"$tree/$folder/README.md"; done
  printf '// What it is for.\n#pragma once\n\n#include <vector>\n\n#include "core/b.hpp"\n' >"$tree/core/a.hpp"
}

# breaks <rule> <file:line> <file> <content>: the file breaks that rule there and no other.
breaks() {
  clean_tree
  printf "$4" >"$tree/$3"
  local output
  output=$("$tidy" "$tree") && fail "$1: silent on $3"
  [[ $(wc -l <<<"$output") == 1 && $output == "$2: $1: "* ]] || fail "expected $2: $1, got: $output"
}

# holds <file> <content>: breaks nothing.
holds() {
  clean_tree
  printf "$2" >"$tree/$1"
  "$tidy" "$tree" || fail "$1 is right"
}

lines() { printf '// x\\n#pragma once\\n'; printf 'int x;\\n%.0s' $(seq 3 "$1"); }

clean_tree
"$tidy" "$tree" || fail "a clean tree is clean"

for header in thread mutex iostream fstream chrono random unistd.h sys/types.h nlohmann/json.hpp simgrid/s4u.hpp; do
  breaks include core/a.cpp:1 core/a.cpp "#include <$header>\n"
done
for pair in core:sim core:tests/step core:traces sim:real sim:traces sim:tools sim:tests/step real:sim traces:sim \
            tests/step:sim tools:tests/core; do
  breaks include "${pair%%:*}/a.cpp:2" "${pair%%:*}/a.cpp" "\n#include \"${pair##*:}/x.hpp\"\n"
done
breaks include core/a.cpp:1 core/a.cpp '#include "a.hpp"\n'
breaks include traces/a.cpp:1 traces/a.cpp '#include <simgrid/s4u.hpp>\n'
holds traces/a.cpp '#include <zlib.h>\n#include <nlohmann/json.hpp>\n#include <fstream>\n#include "core/a.hpp"\n'
holds sim/a.cpp '#include <simgrid/s4u.hpp>\n#include "core/a.hpp"\n#include "sim/a.hpp"\n'
holds real/a.cpp '#include <sys/mman.h>\n#include "core/a.hpp"\n'
holds tools/a.cpp '#include <spdlog/spdlog.h>\n#include "sim/a.hpp"\n#include "tests/step/a.hpp"\n'

breaks pragma-once sim/a.hpp:1 sim/a.hpp '// x\n'
breaks opening-comment core/c.hpp:1 core/c.hpp '#pragma once\n'
breaks length sim/a.cpp:601 sim/a.cpp "$(lines 601)"
holds sim/a.cpp "$(lines 600)"
holds sim/a.hpp "$(lines 221)"
[[ $("$tidy" "$tree" 2>&1) == "sim/a.hpp: note: 221 lines"* ]] || fail "a long header is noted"
breaks name sim/a.cpp:1 sim/a.cpp 'class LeaseManager;\n'
breaks name sim/a.cpp:1 sim/a.cpp 'class StringUtils;\n'
breaks name sim/a.cpp:1 sim/a.cpp 'class Impl2;\n'
holds sim/a.cpp 'double Utilization();\n'
breaks unfinished tools/a.cpp:2 tools/a.cpp '\n// TODO: more\n'
breaks unfinished core/a.cpp:1 core/a.cpp '// Not implemented\n'
breaks unfinished sim/a.cpp:1 sim/a.cpp '// a stub\n'
holds tests/step/a.cpp '// a stub\n'
breaks machine-path configs/a.json:1 configs/a.json '"/home/me/trace.jsonl"\n'
holds configs/a.json '"https://example.org/home/me/work/x"\n'
breaks tab tools/a.sh:1 tools/a.sh '\tx\n'
breaks last-newline tools/a.sh:1 tools/a.sh 'x'

clean_tree
rm "$tree/sim/README.md"
[[ $("$tidy" "$tree") == "sim:1: readme: "* ]] || fail "readme"
[[ -z $("$tidy" --only tab "$tree") ]] || fail "--only"
echo passed
