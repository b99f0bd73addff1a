#!/bin/bash
# SPDX-License-Identifier: Apache-2.0
# Runs clang-tidy with the arguments given and prints its findings only: it tells on stderr how many
# warnings of system headers it suppressed.
set -euo pipefail
out=$(clang-tidy-14 --quiet "$@" -- 2>&1) && exit 0
noise='^[0-9]+ (warning|error).*(generated|treated)|^Suppressed|^Use -header|^Error while'
printf '%s\n' "$out" | grep -vE "$noise" || true
exit 1
