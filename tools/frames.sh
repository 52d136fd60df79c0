#!/bin/sh
# Shows that two commits write the same frames, byte for byte, at the same moments,
# and that their golden vectors are the same:
#
#	tools/frames.sh [-quick] BEFORE [AFTER]
#
# AFTER is the working tree where it is not given. tools/frames of the working tree
# runs in both, on the working tree's captures. The exit code is 0 if each line of
# BEFORE is one of AFTER, too; new vectors are no difference. Otherwise the lines that
# differ are shown, and the exit code is 1.
set -eu
GO="${GO:-go}"
export LC_ALL=C # as comm expects it

quick=
if [ "${1-}" = -quick ]; then
	quick=$1
	shift
fi
if [ $# -lt 1 ] || [ $# -gt 2 ]; then
	echo 'usage: tools/frames.sh [-quick] BEFORE [AFTER]' >&2
	exit 2
fi
cd "$(git rev-parse --show-toplevel)"
top=$PWD
captures=$(realpath -m "${CAPTURES:-../shared/captures}")
tmp=$(mktemp -d)
clean() {
	for name in before after; do
		if [ -d "$tmp/$name" ]; then
			git -C "$top" worktree remove --force "$tmp/$name"
		fi
	done
	rm -rf "$tmp"
}
trap clean EXIT
trap 'exit 1' HUP INT TERM

# lines NAME [COMMIT] writes what the commit has to say, in order.
lines() {
	if [ $# -eq 2 ]; then
		git worktree add -q --detach "$tmp/$1" "$2"
		rm -rf "$tmp/$1/tools/frames"
		mkdir -p "$tmp/$1/tools"
		cp -R tools/frames "$tmp/$1/tools/frames"
		cd "$tmp/$1"
	fi
	"$GO" run ./tools/frames $quick "$top/testdata" "$captures" >"$tmp/$1.lines"
	cd "$top"
	sort -o "$tmp/$1.lines" "$tmp/$1.lines"
}
lines before "$1"
lines after ${2+"$2"}

gone=$(comm -23 "$tmp/before.lines" "$tmp/after.lines")
if [ -n "$gone" ]; then
	diff "$tmp/before.lines" "$tmp/after.lines" || exit 1
fi
awk -F '\t' '
	$1 == "vector" { vectors++; next }
	{ names[$1]; split($3, up, /[ \/]/); split($4, down, /[ \/]/); frames += up[2] + down[2] }
	END { n = 0; for (name in names) n++; printf "%d captures, %d frames, %d vectors, all the same\n", n, frames, vectors; exit n == 0 }' "$tmp/before.lines"
