#!/bin/sh
# Runs every fuzz target of the module for FUZZTIME each, three at a time, one
# worker each. A finding is printed with the input's file, and is an error. A
# target that ends with "context deadline exceeded" and no input found nothing:
# go test says so, now and then, when the time ends while an input is running.
set -eu
export GO="${GO:-go}" FUZZTIME="${FUZZTIME:-30s}"

targets() {
	for dir in $(grep -rl --include='*_test.go' '^func Fuzz' . | xargs -n1 dirname | sort -u); do
		grep -h '^func Fuzz' "$dir"/*_test.go | sed "s|func \(Fuzz[A-Za-z0-9_]*\).*|$dir \1|" | sort
	done
}

# Built once each, so that two runs do not build the same package twice.
targets | cut -d' ' -f1 | sort -u | xargs "$GO" vet
targets | xargs -P 3 -L 1 sh -c '
	out=$(mktemp)
	trap "rm -f $out" EXIT
	said() { echo "$1: $(grep -c "^fuzz:" "$out") reports, $2"; }
	if "$GO" test -run "^\$" -fuzz "^$2\$" -fuzztime "$FUZZTIME" -parallel 1 "$1" >"$out" 2>&1; then
		said "$1 $2" "nothing found"
	elif grep -q "^ *context deadline exceeded" "$out" && ! grep -q "Failing input written" "$out"; then
		said "$1 $2" "nothing found when the time ended in the middle of an input"
	else
		echo "$1 $2 FAILED"
		cat "$out"
		exit 255
	fi' fuzz
