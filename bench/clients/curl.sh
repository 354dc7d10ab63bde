#!/bin/sh
# Polls the gamma exposure of the SPX politely, with curl 7.70 or newer and jq:
#   curl.sh [--count N] [--max-wait SECONDS] BASE_URL [API_KEY]
# It ends after N polls, or never without --count. --max-wait is for tests. The key may also be in the variable API_KEY:
# other users of the machine can read arguments.
set -eu

count=0 most=86400
while [ $# -gt 0 ]; do
	case $1 in
	--count) count=${2:?} && shift 2 ;;
	--max-wait) most=${2:?} && shift 2 ;;
	-*) set -- ;;
	*) break ;;
	esac
done
url=${1:?usage: curl.sh [--count N] [--max-wait SECONDS] BASE_URL [API_KEY]}
url=${url%/}/api/v1/gex/spx/summary
key=${2:-${API_KEY:-}}

dir=$(mktemp -d)
trap 'rm -rf "$dir"' EXIT
trap 'exit 130' INT TERM
: >"$dir/key"
if [ -n "$key" ]; then printf 'X-API-Key: %s\n' "$key" >"$dir/key"; fi # in a file: other users can read the arguments of curl

show='if .success != true or .meta.as_of == null then error("not an answer") else . end
	| "changed as_of=\(.meta.as_of) spot=\(.data.spot) flip=\(.data.zero_gamma_flip) regime=\(.data.gamma_regime) source=\(.meta.source)"
	+ (if .meta.source == "simulated" then " WARNING: simulated, no number is real" else "" end)
	+ (if .meta.freshness.state == "stale" then " WARNING: stale, \(.meta.freshness.reason)" else "" end)'

# field NAME prints a header field of the last answer.
field() {
	awk -v name="$1" '{ sub(/\r$/, "") } index(tolower($0), name ":") == 1 { sub(/^[^:]*:[ \t]*/, ""); v = $0 } END { print v }' "$dir/head"
}

# bounded SECONDS MOST prints the seconds, at least 1 and at most MOST.
bounded() { awk -v s="$1" -v most="$2" 'BEGIN { s = s < 1 ? 1 : s + 0; most += 0; print (s < most ? s : most) }'; }

# pause SECONDS waits, and up to a tenth longer, so that clients do not poll all at once.
pause() {
	sleep "$(awk -v s="$1" -v n="$(od -An -N2 -tu2 /dev/urandom)" 'BEGIN { printf "%.2f", s * (1 + n / 655360) + 0.01 }')"
}

# fresh prints for how many seconds the answer stays fresh: max-age less the Age that a cache has added.
fresh() {
	max=$(field cache-control | tr A-Z a-z | sed -n 's/.*max-age=\([0-9][0-9]*\).*/\1/p')
	awk -v max="${max:-30}" -v age="$(field age)" 'BEGIN { print max - age }'
}

# retry_after prints how many seconds the answer asks the client to wait, given as a number or as a date, if it asks.
retry_after() {
	after=$(field retry-after)
	case $after in
	'') ;;
	*[!0-9]*) # an HTTP date; not every date program can read one
		if at=$(date -d "$after" +%s 2>/dev/null); then echo $((at - $(date +%s) + 1)); fi ;;
	*) echo "$after" ;;
	esac
}

polls=0 failures=0
while :; do
	: >"$dir/head" && rm -f "$dir/etag.new" "$dir/body"
	set --
	if [ -s "$dir/etag" ]; then set -- --etag-compare "$dir/etag"; fi
	status=$(curl -sS --max-time 10 --compressed -H "@$dir/key" "$@" --etag-save "$dir/etag.new" \
		-D "$dir/head" -o "$dir/body" -w '%{http_code}' "$url" 2>"$dir/error") || status=000
	problem=
	case $status in
	200) # the tag is kept only after the document has been read
		if [ -s "$dir/body" ] && jq -r "$show" "$dir/body" 2>"$dir/error"; then
			mv "$dir/etag.new" "$dir/etag" 2>/dev/null || : >"$dir/etag" # no tag
		else
			problem=$(cat "$dir/error")
			problem=${problem:-empty answer}
		fi ;;
	304) echo unchanged ;;
	000) problem=$(cat "$dir/error") ;;
	408 | 429 | 5??) problem="status $status" ;;
	*)
		echo "refused: status $status $(head -c 300 "$dir/body" 2>/dev/null)" >&2
		exit 1 ;;
	esac
	polls=$((polls + 1))
	if [ -z "$problem" ]; then
		failures=0
		wait=$(bounded "$(fresh)" "$most")
	else
		failures=$((failures + 1))
		after=
		case $status in 429 | 503) after=$(retry_after) ;; esac
		if [ -n "$after" ]; then # --max-wait does not shorten Retry-After
			wait=$(bounded "$after" 86400)
		else
			wait=$(bounded "$(awk -v n="$failures" 'BEGIN { print (n > 6 ? 60 : 2 ^ (n - 1)) }')" "$most")
		fi
		echo "failed: $problem; again in $wait s" >&2
	fi
	if [ "$polls" -eq "$count" ]; then
		if [ -n "$problem" ]; then exit 1; fi
		exit 0
	fi
	pause "$wait"
done
