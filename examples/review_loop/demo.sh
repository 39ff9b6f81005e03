#!/usr/bin/env bash
# A review loop from first draft to signature, with a crash in the middle.
set -euo pipefail

here=$(cd "$(dirname "${BASH_SOURCE[0]}")" && pwd)
place=${1:-$(mktemp -d "${TMPDIR:-/tmp}/signoff-demo.XXXXXX")}
mkdir -p "$place"
cp "$here"/release_notes.py "$here"/playback.py "$here"/drafts.txt "$place"
cd "$place"

say() { printf '\n\033[1m%s\033[0m\n' "$*"; }
show() { printf '\033[2m$ %s\033[0m\n' "$*"; "$@"; }

signoff init > /dev/null 2>&1
cat >> .signoff/config.yaml <<'YAML'

agents:
  writer:
    kind: playback:Playback
    drafts: drafts.txt
YAML

say "1. A run starts, and its process is killed while the writer is at work."
signoff run release_notes.py --name demo --no-input &
run=$!
sleep 4
kill -9 "$run" 2>/dev/null || true
wait "$run" 2>/dev/null || true
show signoff show demo || true

say "2. It is resumed: what was finished is not asked for again. Then it waits for you."
show signoff resume demo --no-input || [ $? -eq 10 ]

say "3. You sign off exactly what you were shown, and the file is written."
show signoff answer demo publish --by "the demo" --resume

say "The artifact, its history and everything the agents were asked:"
printf '\n%s\n' "$(cat .signoff/runs/demo/final/release-notes.md)"
printf '\n  artifact  %s\n  history   %s\n' \
  "$place/.signoff/runs/demo/final/release-notes.md" "$place/.signoff/runs/demo/"
printf '  (the writer is a playback of %s: no model was called, nothing was spent)\n' "drafts.txt"
