#!/usr/bin/env python3
"""Polls the gamma exposure of the SPX politely, with Python's standard library.

It ends after --count polls, or never without --count. The key may also be in the variable API_KEY: other users of the
machine can read arguments.
"""
import argparse
import email.utils
import gzip
import http.client
import json
import os
import random
import re
import sys
import time
import urllib.error
import urllib.request
import zlib

DAY = 86400


class Failed(Exception):
    """A failed poll. after is how many seconds the server asks the client to wait, or None."""

    def __init__(self, why, after=None):
        super().__init__(why)
        self.after = after


class NoRedirect(urllib.request.HTTPRedirectHandler):
    """Follows no redirect, which would send the key to the host that it names."""

    def redirect_request(self, *_):
        return None


opener = urllib.request.build_opener(NoRedirect)


def fetch(url, headers):
    """Returns the status, the header fields and the body of an answer."""
    try:
        answer = opener.open(urllib.request.Request(url, headers=headers), timeout=10)
    except urllib.error.HTTPError as e:  # every status but 2xx, also 304
        answer = e
    with answer:
        body = answer.read()
        if answer.headers.get("Content-Encoding") == "gzip":
            body = gzip.decompress(body)
        return answer.status, answer.headers, body


def line(answer):
    """Returns the line to print for an answer, and fails if the JSON is not an answer."""
    data, meta = answer["data"], answer["meta"]
    spot, flip, regime = ("null" if data[k] is None else data[k] for k in ("spot", "zero_gamma_flip", "gamma_regime"))
    text = f"changed as_of={meta['as_of']} spot={spot} flip={flip} regime={regime} source={meta['source']}"
    if meta["source"] == "simulated":
        text += " WARNING: simulated, no number is real"
    if meta["freshness"]["state"] == "stale":
        text += f" WARNING: stale, {meta['freshness']['reason']}"
    return text


def fresh(headers):
    """Returns for how many seconds an answer stays fresh: max-age less the Age that a cache has added."""
    found = re.search(r"\bmax-age=(\d+)", headers.get("Cache-Control", ""), re.IGNORECASE)
    age = headers.get("Age", "")
    return (int(found[1]) if found else 30) - (int(age) if age.isdecimal() else 0)


def retry_after(status, headers):
    """Returns how many seconds the answer asks the client to wait, by a number or a date; None if it does not ask."""
    text = headers.get("Retry-After", "") if status in (429, 503) else ""
    if text.isdecimal():
        return int(text)
    try:
        return email.utils.parsedate_to_datetime(text).timestamp() - time.time()
    except (TypeError, ValueError):
        return None


def poll(url, headers, tag):
    """Sends one request and prints a new document. Returns its tag, and for how many seconds it is fresh."""
    status, got, body = fetch(url, {**headers, "If-None-Match": tag} if tag else headers)
    if status == 200:
        print(line(json.loads(body)), flush=True)
        return got.get("ETag"), fresh(got)
    if status == 304:
        print("unchanged", flush=True)
        return tag, fresh(got)
    if status in (408, 429) or status >= 500:
        raise Failed(f"status {status}", retry_after(status, got))
    sys.exit(f"refused: status {status} {body[:300].decode(errors='replace')}")


def main():
    args = argparse.ArgumentParser(description=__doc__)
    args.add_argument("--count", type=int, default=0, help="end after this many polls; 0: never")
    args.add_argument("--max-wait", type=float, default=DAY, help="for tests: longest wait in seconds, except after Retry-After")
    args.add_argument("base_url")
    args.add_argument("api_key", nargs="?", default=os.environ.get("API_KEY"))
    args = args.parse_args()
    if not args.base_url.startswith(("http://", "https://")):
        sys.exit(f"refused: not a URL with http:// or https://: {args.base_url}")
    url = args.base_url.rstrip("/") + "/api/v1/gex/spx/summary"
    headers = {"Accept-Encoding": "gzip"}
    if args.api_key:
        headers["X-API-Key"] = args.api_key
    tag, polls, failures = None, 0, 0
    while True:
        polls += 1
        try:
            tag, wait = poll(url, headers, tag)
            wait, failures = min(max(wait, 1), args.max_wait), 0
        except (Failed, OSError, EOFError, http.client.HTTPException, zlib.error, ValueError, KeyError, TypeError, OverflowError) as e:
            failures += 1
            wait = min(2 ** min(failures - 1, 6), 60, args.max_wait)
            after = getattr(e, "after", None)
            if after is not None:  # --max-wait does not shorten Retry-After
                wait = min(max(after, 1), DAY)
            print(f"failed: {e or type(e).__name__}; again in {wait:g} s", file=sys.stderr, flush=True)
        if polls == args.count:
            sys.exit(1 if failures else 0)
        time.sleep(wait * random.uniform(1, 1.1) + 0.01)  # so that clients do not poll all at once


if __name__ == "__main__":
    try:
        main()
    except KeyboardInterrupt:
        sys.exit(130)
