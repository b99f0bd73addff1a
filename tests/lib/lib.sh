# shellcheck shell=bash
# SPDX-License-Identifier: Apache-2.0
# The library for tests with real container runtimes: source this file, it brings the others.
#
# Settings of the caller, all optional: B (the folder of the programs under test, build by
# default), GPUSHARE_RUNTIME (another program in the place of its gpushare-runtime),
# GPUSHARE_TEST_CACHE (where built tools are kept).

GS_LIB=$(cd "$(dirname "${BASH_SOURCE[0]}")" && pwd)
GS_TOP=$(cd "$GS_LIB/../.." && pwd)
GS_BUILD=$GS_TOP/build
GS_BIN=$(cd "$GS_TOP" && cd "${B:-build}" && pwd)
GS_RUNTIME=${GPUSHARE_RUNTIME:-$GS_BIN/gpushare-runtime}
GS_PROBE=$GS_BUILD/programs/probe
# Not the first python3 of PATH: that one may lack the distribution's packages.
GS_PYTHON=/usr/bin/python3
# No test waits for ever for a container (bats reads this).
export BATS_TEST_TIMEOUT=120
export GS_LIB GS_TOP GS_BUILD GS_BIN GS_RUNTIME GS_PROBE GS_PYTHON

# shellcheck source=tests/lib/node.sh
source "$GS_LIB/node.sh"
# shellcheck source=tests/lib/assert.sh
source "$GS_LIB/assert.sh"
# shellcheck source=tests/lib/devices.sh
source "$GS_LIB/devices.sh"
# shellcheck source=tests/lib/image.sh
source "$GS_LIB/image.sh"
# shellcheck source=tests/lib/tools.sh
source "$GS_LIB/tools.sh"
# shellcheck source=tests/lib/config.sh
source "$GS_LIB/config.sh"
# shellcheck source=tests/lib/bundle.sh
source "$GS_LIB/bundle.sh"
# shellcheck source=tests/lib/containerd.sh
source "$GS_LIB/containerd.sh"
# shellcheck source=tests/lib/cri.sh
source "$GS_LIB/cri.sh"
# shellcheck source=tests/lib/debian.sh
source "$GS_LIB/debian.sh"
# shellcheck source=tests/lib/docs.sh
source "$GS_LIB/docs.sh"
# shellcheck source=tests/lib/podman.sh
source "$GS_LIB/podman.sh"
# shellcheck source=tests/lib/docker.sh
source "$GS_LIB/docker.sh"
