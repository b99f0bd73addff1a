#!/bin/bash
# SPDX-License-Identifier: Apache-2.0
# source.sh FOLDER: the source in that folder, which is made: what git knows of this working tree,
# committed or not, else everything but build/.
set -euo pipefail
cd "$(dirname "$0")/.."

mkdir -p "$1"
export GIT_AUTHOR_NAME=source GIT_AUTHOR_EMAIL=source
export GIT_COMMITTER_NAME=source GIT_COMMITTER_EMAIL=source
if tree=$(git stash create 2>/dev/null); then
	git archive "${tree:-HEAD}" | tar -x -C "$1"
else
	tar -c --exclude=./build --exclude=./.git . | tar -x -C "$1"
fi
