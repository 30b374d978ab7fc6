#!/usr/bin/env bash
# The program as its user meets it: exit codes, one-line errors, stdout apart from stderr, files whole or absent.
set -u
kvlift=${KVLIFT_BIN:?path of the program}
source_folder=${KVLIFT_SOURCE:?path of the source tree}
export KVLIFT_CONFIGS=$source_folder/configs
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
cd "$work" || exit 1
failures=0

fail() {
  echo "FAILED: $1" >&2
  failures=$((failures + 1))
}

# expect EXIT ARGUMENTS...: runs the program; leaves stdout and stderr in files.
expect() {
  local code=$1
  shift
  "$kvlift" "$@" >out 2>err
  local got=$?
  [ "$got" -eq "$code" ] || { fail "kvlift $*: exit $got, not $code: $(head -c 300 err)"; return; }
}

# refuses PATTERN ARGUMENTS...: exit 2, nothing on stdout, one line on stderr that holds the pattern.
refuses() {
  local pattern=$1
  shift
  expect 2 "$@"
  [ ! -s out ] || fail "kvlift $*: stdout is not empty"
  [ "$(wc -l <err)" -eq 1 ] || fail "kvlift $*: stderr has $(wc -l <err) lines"
  grep -qF -- "$pattern" err || fail "kvlift $*: no \"$pattern\" in: $(cat err)"
}

json() { python3 -c "import json,sys; d=json.load(open('out')); sys.exit(0 if ($1) else 1)" || fail "$2: not so: $1"; }

cat >small.json <<'JSON'
{
  "cluster": { "hosts": [{ "nodes": 2, "segment_bytes": "4MiB" }] },  // room for a part of the prompts
  "store": { "master": { "kv_lease_ttl_ms": 100 }, "holder": { "bucket_keys": 1, "heartbeat_period_ms": 100 } },
  "engine": { "ranks": 2, "block_tokens": 100, "bytes_per_token": 1000 },
  "workload": {
    "prompt_tokens": 1000,
    "phases": [
      { "name": "fill", "prompts": 8 },
      { "name": "settle", "kind": "pause", "span_s": 5 },
      { "name": "r1", "prompts": 8, "concurrency": 2, "measured": true }
    ]
  },
  "arms": { "A": { "policy": "none" }, "B": { "policy": "rfc-4271" } }
}
JSON

# Help and version.
expect 0 --version
grep -qE '^kvlift [0-9]+\.[0-9]+\.[0-9]+' out || fail "--version says $(cat out)"
expect 0 --help
grep -q 'Examples:' out || fail "--help has no examples"
for command in run compare replay sweep designs scenario; do
  expect 0 $command --help
done

# Results.
for driver in step sim; do
  expect 0 compare small.json --driver $driver --format json
  cp out first
  json "list(d['phases']) == ['r1'] and d['phases']['r1']['arms']['A']['requests'] == 8" "compare, $driver"
  json "set(d['phases']['r1']['exercised']) == {'B'}" "compare, $driver"
  expect 0 compare small.json --driver $driver --format json --jobs 4
  cmp -s out first || fail "compare, $driver: --jobs changes the bytes"
done
expect 0 compare small.json --driver step --seeds 3 --format json
json "d['seeds'] == [1, 2, 3] and 'ttft_mean_ms_ci95' in d['phases']['r1']['arms']['A']" "three seeds"
expect 0 run small.json --driver step --arm A --format json
json "list(d['phases']) == ['fill', 'r1'] and list(d['phases']['r1']['arms']) == ['A']" "run"
expect 0 compare small.json --driver step
grep -q 'TTFT split' out || fail "the table has no split"
expect 0 sweep small.json --driver step --vary 'workload.phases[2].concurrency=1,2' --phase r1 --format csv
[ "$(wc -l <out)" -eq 3 ] || fail "sweep: $(wc -l <out) lines"
expect 0 designs small.json --driver step --designs rfc-4271,router-3417,oracle --seeds 2 --format csv
[ "$(wc -l <out)" -ge 5 ] || fail "designs: $(wc -l <out) lines"
expect 0 scenario check a2-c2-clean rfc4271-a2-c2 rfc4271-a2-c4 rfc4271-h20-c4 conversation-hour small.json
expect 0 scenario explain a2-c2-clean --arm B
grep -q ASSUMED out || fail "explain marks nothing as assumed"
expect 0 scenario schema --format json
json "d['properties']['engine']['properties']['ranks']['minimum'] == 1" "schema"

# The planner warns before a run, of the arms that are run (RC-70): 8 prompts of 1 MB in 4 MiB.
pinned=(--set store.master.kv_lease_ttl_ms=60000 --set 'cluster.hosts[0].segment_bytes=2MiB')
expect 0 scenario check small.json "${pinned[@]}"
grep -q 'warning: small: arm B, phase .*, estimated: a lease of 60 s' err || fail "no planner's warning: $(cat err)"
expect 0 run small.json --driver step --arm A "${pinned[@]}"
head -n 1 err | grep -q 'arm A, phase .*, estimated: a lease' || fail "no warning before a run: $(cat err)"
! grep -q 'arm B' err || fail "a warning of an arm that is not run"

# A trace.
for i in 0 1 2 3 4 5; do
  echo "{\"timestamp\": $((i / 2 * 3000)), \"input_length\": 1024, \"output_length\": 2, \"hash_ids\": [0, $((i / 3 + 1))]}"
done >trace.jsonl
expect 0 replay trace.jsonl --config conversation-hour --driver step --format json
json "d['phases']['replay']['arms']['none']['requests'] == 6" "replay"
grep -q 'requests/s' err || fail "replay does not say how fast it was"
sed '3s/1024/-5/' trace.jsonl >broken.jsonl
refuses 'broken.jsonl:3' replay broken.jsonl --config conversation-hour --driver step --format json
for driver in step sim; do
  { cat trace.jsonl && echo '{"x": 1}'; } >tail.jsonl
  refuses 'tail.jsonl:7: unknown field "x"' replay tail.jsonl --driver $driver
done
sed 's/"output_length": 2/"output_length": 0/' trace.jsonl >fill.jsonl
expect 0 replay fill.jsonl --driver step --format json
refuses 'trace.jsonl: is read by this run' replay trace.jsonl --driver step --requests trace.jsonl
refuses '--set: workload.trace.path: replay takes the trace' replay trace.jsonl --set workload.trace.path=x
refuses 'none is measured' replay trace.jsonl --set 'workload.phases[0].measured=false'
echo '{ "based_on": "conversation-hour", "workload": { "trace": { "path": "other.jsonl" } } }' >own.json
expect 0 replay trace.jsonl --config own.json --driver step --format json
grep -q 'own.json: workload.trace.path is replaced by TRACE' err || fail "replay replaces a trace and says nothing"
refuses 'no trace is given' compare conversation-hour --driver step

# Files.
expect 0 run small.json --driver step --seeds 2 --out results --timeline trace.json --requests requests.jsonl
for file in results/result.json results/scenario.json trace.json; do
  python3 -m json.tool "$file" >/dev/null || fail "$file is not JSON"
done
cmp -s results/requests.jsonl requests.jsonl || fail "--out and --requests differ"
[ "$(wc -l <requests.jsonl)" -eq 64 ] || fail "$(wc -l <requests.jsonl) requests, not 2 arms x 2 seeds x 16"
expect 0 run results/scenario.json --driver step --seeds 2 --requests again.jsonl
cmp -s requests.jsonl again.jsonl || fail "the scenario that --out kept gives another run"

# What is wrong is said in one line.
echo '{ "engine": { "rank": 2 } }' >unknown.json
printf '{\n  "seeds": 1,\n}\n' >syntax.json
echo '{ "seeds": 1, "seeds": 2 }' >twice.json
refuses 'unknown.json: engine.rank: unknown; did you mean "ranks"?' compare unknown.json
refuses 'syntax.json:3:1: ' compare syntax.json
refuses 'twice.json: seeds: given twice' compare twice.json
refuses 'missing.json: cannot be read: No such file or directory' compare missing.json
refuses 'results: cannot be read: it is a directory' compare results
refuses 'a2-c2-claen: no such scenario; did you mean "a2-c2-clean"?' compare a2-c2-claen
refuses 'cannot hold one object' compare small.json --set 'cluster.hosts[0].segment_bytes=1KiB'
refuses 'must be a number from 1000000 to 1000000000000000, not 0' compare small.json --set 'cluster.hosts[0].ssd.read_bandwidth_bytes_per_s=0'
refuses 'did you mean "rfc-4271"?' compare small.json --set arms.B.policy=rfc-4272
refuses 'no arm "C"' run small.json --arm C
refuses 'no phase "r3"' sweep small.json --vary engine.max_num_seqs=1,2 --phase r3
refuses 'did you mean "rfc-4271"' designs small.json --designs rfc-4217
refuses 'has no effect' designs small.json --set policy=none
refuses '--driver: no driver "simm"; did you mean "sim"? (there are: real, sim, step)' run small.json --driver simm
refuses '--driver: no driver "nonsense" (there are: real, sim, step)' run small.json --driver nonsense
refuses 'workload.trace.path: is not used: no phase is open_loop' replay trace.jsonl --config small.json
refuses 'missing.jsonl' replay missing.jsonl --config conversation-hour
refuses 'kvlift --help' compare
refuses 'kvlift --help'
refuses 'kvlift --help' frobnicate
refuses 'kvlift --help' compare small.json --format xml
refuses 'kvlift --help' compare small.json --seeds 0
refuses 'nowhere/x.json: cannot be written' compare small.json --driver step --timeline nowhere/x.json
refuses 'unknown' run small.json --out half --set engine.rnks=1
# Targets that are no files, or the same, or read. Of our own, as root could replace a device.
mkfifo pipe
mkdir folder
for option in --requests --timeline; do
  refuses 'pipe: cannot be written: it is not a regular file' run small.json --driver step $option pipe
  refuses 'folder: cannot be written: it is a directory' run small.json --driver step $option folder
  refuses 'small.json: is read by this run' run small.json --driver step $option small.json
done
refuses 'pipe: cannot be made' run small.json --driver step --out pipe
refuses './same: is asked for twice' run small.json --driver step --requests same --timeline ./same
refuses 'half/result.json: is asked for twice' run small.json --driver step --out half --timeline half/result.json
refuses 'nowhere/x: cannot be written' run small.json --driver step --out half --timeline nowhere/x
echo old >target
ln -s target link
expect 0 run small.json --driver step --requests link
[ -L link ] && [ "$(wc -l <target)" -eq 32 ] || fail "a link is replaced instead of its target"

# Values that mean nothing.
for option in --out --timeline --requests --arm --driver; do
  refuses "$option: must not be empty" run small.json $option ''
done
refuses 'SCENARIO: must not be empty' run ''
refuses '--slo-ttft-ms: nan is not a number' run small.json --slo-ttft-ms nan
refuses 'not in range 0.000001 to 1000000000.000000' run small.json --slo-ttft-ms -1
refuses '/dev/zero: cannot be read: it is longer than 16 MiB' run /dev/zero
refuses '--vary: seeds: is not a parameter' sweep small.json --vary seeds=1,2
refuses '--vary: engine.rnks: unknown' sweep small.json --vary engine.rnks=1
refuses 'takes about' run small.json --set 'workload.phases[1].span_s=31536000'
refuses "?[31m" run "$(printf '\033[31m')"
[ ! -e half ] || fail "an error leaves the folder of --out"
ls | grep -q part && fail "an error leaves a temporary file"

[ "$failures" -eq 0 ] && echo "all checks passed"
exit $((failures > 0))
