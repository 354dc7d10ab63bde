#!/usr/bin/env node
// Polls the gamma exposure of the SPX politely, with Node 18.3 or newer and nothing else:
//   client.mjs [--count N] [--max-wait SECONDS] BASE_URL [API_KEY]
// It ends after N polls, or never without --count. --max-wait is for tests. The key may also be in the variable API_KEY:
// other users of the machine can read arguments.
import { setTimeout as sleep } from "node:timers/promises";
import { parseArgs } from "node:util";

const day = 86400; // longest wait in seconds; with a wait over 24 days, setTimeout overflows and does not wait at all

// Failed is a failed poll. after is how many seconds the server asks the client to wait, if it asks.
class Failed extends Error {
  constructor(why, after) {
    super(why);
    this.after = after;
  }
}

// Refused is an error that another request cannot help.
class Refused extends Error {}

// line returns the line to print for an answer, and throws if the JSON is not an answer.
function line({ data, meta }) {
  let text = `changed as_of=${meta.as_of} spot=${data.spot} flip=${data.zero_gamma_flip} regime=${data.gamma_regime} source=${meta.source}`;
  if (meta.source === "simulated") text += " WARNING: simulated, no number is real";
  if (meta.freshness.state === "stale") text += ` WARNING: stale, ${meta.freshness.reason}`;
  return text;
}

// fresh returns for how many seconds an answer stays fresh: max-age less the Age that a cache has added.
function fresh(headers) {
  const found = /\bmax-age=(\d+)/i.exec(headers.get("Cache-Control") ?? "");
  return (found ? Number(found[1]) : 30) - (Number(headers.get("Age")) || 0);
}

// retryAfter returns how many seconds the answer asks the client to wait, given as a number or as a date, if it asks.
function retryAfter(status, headers) {
  const text = status === 429 || status === 503 ? headers.get("Retry-After") ?? "" : "";
  if (/^\d+$/.test(text)) return Number(text);
  const at = Date.parse(text);
  return Number.isNaN(at) ? undefined : (at - Date.now()) / 1000;
}

// poll sends one request and prints a new document. It returns the tag of the document, and how long the document is fresh.
async function poll(url, headers, tag) {
  const answer = await fetch(url, {
    headers: tag ? { ...headers, "If-None-Match": tag } : headers,
    redirect: "manual", // a redirect would send the key to the host that the redirect names
    signal: AbortSignal.timeout(10_000),
  });
  const body = await answer.text();
  const { status, headers: got } = answer;
  if (status === 200) {
    console.log(line(JSON.parse(body)));
    return [got.get("ETag"), fresh(got)];
  }
  if (status === 304) {
    console.log("unchanged");
    return [tag, fresh(got)];
  }
  if (status === 408 || status === 429 || status >= 500) throw new Failed(`status ${status}`, retryAfter(status, got));
  throw new Refused(`status ${status} ${body.slice(0, 300)}`);
}

async function main() {
  const { values, positionals } = parseArgs({
    options: { count: { type: "string", default: "0" }, "max-wait": { type: "string", default: String(day) } },
    allowPositionals: true,
  });
  const [base, key = process.env.API_KEY] = positionals;
  if (!/^https?:\/\//.test(base)) throw new Refused("usage: client.mjs [--count N] [--max-wait SECONDS] BASE_URL [API_KEY], with http:// or https:// in BASE_URL");
  const url = base.replace(/\/+$/, "") + "/api/v1/gex/spx/summary";
  const headers = key ? { "X-API-Key": key } : {};
  const [count, most] = [Number(values.count), Number(values["max-wait"])];
  let tag, wait, failures = 0;
  for (let polls = 1; ; polls++) {
    try {
      [tag, wait] = await poll(url, headers, tag);
      wait = Math.min(Math.max(wait, 1), most);
      failures = 0;
    } catch (e) {
      if (e instanceof Refused) throw e;
      failures++;
      wait = Math.min(2 ** Math.min(failures - 1, 6), 60, most);
      if (e.after !== undefined) wait = Math.min(Math.max(e.after, 1), day); // --max-wait does not shorten Retry-After
      console.error(`failed: ${e.cause?.code ?? e.message}; again in ${wait} s`);
    }
    if (polls === count) return failures ? 1 : 0;
    await sleep(wait * 1000 * (1 + Math.random() / 10) + 10); // so that clients do not poll all at once
  }
}

try {
  process.exitCode = await main();
} catch (e) {
  console.error(`refused: ${e.message}`);
  process.exitCode = 1;
}
