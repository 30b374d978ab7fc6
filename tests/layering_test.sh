#!/usr/bin/env bash
# Arrows between layers point down: no source includes upwards, and core's objects call nothing of the system.
set -euo pipefail
"$KVLIFT_SOURCE/tools/tidy" --only include "$KVLIFT_SOURCE"

# What the standard library could not hide: clocks, threads, files, sockets, entropy.
forbidden='clock_gettime|gettimeofday|time|nanosleep|pthread_create|pthread_mutex_lock|open|openat|read|write|pread'
forbidden+='|pwrite|mmap|socket|ioctl|syscall|rand|random|srand|getenv|fopen|_ZNSt13random_device.*|_ZNSt6chrono.*'
forbidden+='|_ZNSt6thread.*|_ZSt4cout|_ZSt4cerr|_ZSt4clog'
library=$KVLIFT_BUILD/core/libkvlift_core.a
called=$(nm --undefined-only "$library" | awk '{print $2}' | sed 's/@.*//' | sort -u | grep -xE "$forbidden" || true)
if [[ -n $called ]]; then
  echo "core calls: $called"
  exit 1
fi
[[ $(nm --undefined-only "$library" | wc -l) -gt 0 ]] || { echo "$library has no symbols to look at"; exit 1; }
