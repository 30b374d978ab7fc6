#!/usr/bin/env bash
# kvlift trace as its user meets it: exit codes, one-line errors, files whole or absent; the README's commands.
set -u
kvlift=${KVLIFT_BIN:?path of the program}
source_folder=${KVLIFT_SOURCE:?path of the source tree}
small=$source_folder/traces/small.jsonl
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
  "$kvlift" trace "$@" >"$work/out" 2>"$work/err"
  local got=$?
  [ "$got" -eq "$code" ] || fail "trace $*: exit $got, not $code: $(head -c 300 "$work/err")"
}

# refuses PATTERN ARGUMENTS...: exit 2, nothing on stdout, one line on stderr that holds the pattern.
refuses() {
  local pattern=$1
  shift
  expect 2 "$@"
  [ ! -s "$work/out" ] || fail "trace $*: stdout is not empty"
  [ "$(wc -l <"$work/err")" -eq 1 ] || fail "trace $*: stderr has $(wc -l <"$work/err") lines"
  grep -qF -- "$pattern" "$work/err" || fail "trace $*: no \"$pattern\" in: $(cat "$work/err")"
}

absent() { [ -z "$(find "$work" -name "$1*")" ] || fail "$1 is there: $2"; }
same() { cmp -s "$1" "$2" || fail "$1 and $2 differ: $3"; }

# gen: the shipped trace, by the command that README.md gives for it.
command=$(sed -n 's/^ *kvlift trace gen --out traces\/small.jsonl //p' "$source_folder/traces/README.md")
[ -n "$command" ] || fail "traces/README.md does not say how small.jsonl was made"
# shellcheck disable=SC2086
expect 0 gen --out small.jsonl $command
same small.jsonl "$small" "README.md's command"
expect 0 gen --out default.jsonl.gz --requests 100
expect 0 gen --out default.jsonl --requests 400 --scale 0.25
gzip -dc default.jsonl.gz | cmp -s - default.jsonl || fail "gzip by name, and --scale"
for arrivals in poisson fixed bursty; do
  expect 0 gen --out "$arrivals.jsonl" --requests 300 --arrivals "$arrivals"
done
cmp -s poisson.jsonl fixed.jsonl && fail "--arrivals does nothing"
refuses "not in {poisson,fixed,bursty}" gen --out x --arrivals other
refuses "output.sigma: expected 0 to 5, found 6" gen --out x --output-sigma 6
refuses "--seed" gen --out x --seed -1
grep -q '00000000' "$work/err" && fail "a bound is printed digit by digit: $(cat "$work/err")"
refuses "--burst-on-s: is for --arrivals bursty only" gen --out x --burst-on-s 5
refuses "--burst-off-s: is for --arrivals bursty only" gen --out x --arrivals fixed --burst-off-s 5
refuses "--conversations-max: Value 0 not in range" gen --out x --conversations-max 0
refuses "--rate-per-s: nan is not a number" gen --out x --rate-per-s nan
refuses "--out is required" gen
refuses "cannot be written" gen --out absent/x
refuses "is not a regular file" gen --out /dev/null
absent x "a refused gen"

# info
expect 0 info "$small" --block-tokens 512
grep -q '200 requests, blocks of 512 tokens' out || fail "info: $(cat out)"
expect 0 info default.jsonl.gz --block-tokens 512 --format json
python3 -c "import json; d=json.load(open('out')); assert d['requests'] == 100 and d['misplaced_ids'] == 0 and len(d['lru']) == 7" ||
  fail "info --format json: $(cat out)"
refuses "--block-tokens is required" info "$small"
refuses "small.jsonl:1: hash_ids: expected" info "$small" --block-tokens 256
refuses "cannot be read: No such file" info none.jsonl --block-tokens 512
refuses "--block-tokens" info "$small" --block-tokens 0

# convert: there and back again
expect 0 convert "$small" packed --block-tokens 512 --gzip
expect 0 convert packed back.gz --block-tokens 512 --plain
same back.gz "$small" "packed and unpacked"
expect 0 convert "$small" few.jsonl --block-tokens 512 --limit 7
head -n 7 "$small" | cmp -s - few.jsonl || fail "--limit"
expect 0 convert "$small" fast.jsonl --block-tokens 512 --scale-time 0.5
expect 0 convert fast.jsonl same.jsonl --block-tokens 512
same fast.jsonl same.jsonl "a converted trace"
printf '%s\n' '{"timestamp": 0, "input_length": 1, "output_length": 1, "hash_ids": [0]}' >tick.jsonl
cat tick.jsonl tick.jsonl tick.jsonl >ticks.jsonl
sed 's/0,/3000,/' tick.jsonl >>ticks.jsonl
expect 0 convert ticks.jsonl even.jsonl --block-tokens 512 --spread even
[ "$(sed 's/[^0-9]*\([0-9]*\).*/\1/' even.jsonl | tr '\n' ' ')" = "0 1000 2000 3000 " ] || fail "--spread even: $(cat even.jsonl)"
grep -q '4 requests on 2 stamps 3000 to 3000 ms apart, up to 3 on one; spread: even' err || fail "report: $(cat err)"
expect 0 convert ticks.jsonl uniform.jsonl --block-tokens 512 --spread uniform --spread-seed 3
refuses "not in {none,even,uniform}" convert ticks.jsonl x --block-tokens 512 --spread odd
refuses "--scale-time" convert ticks.jsonl x --block-tokens 512 --scale-time 0
refuses "excludes" convert ticks.jsonl x --block-tokens 512 --gzip --plain
head -c 300 packed >cut.gz
refuses "cut.gz: gzip data end early: the file is truncated" convert cut.gz x --block-tokens 512
{ head -n 3 "$small"; echo '{"timestamp": 99999999, "input_len": 5}'; } >bad.jsonl
refuses 'bad.jsonl:4: unknown field "input_len", the nearest known name is "input_length"' \
  convert bad.jsonl x --block-tokens 512
absent x "a refused convert"
cp "$small" itself.jsonl
expect 0 convert itself.jsonl itself.jsonl --block-tokens 512
same itself.jsonl "$small" "a trace converted onto itself"
refuses "A subcommand is required" # trace alone

exit $((failures > 0))
