"""Makes volatility_vectors.json: the figures of volatility/{u} of a made chain with 30 digits, printed with 20.

The quotes are prices of a smile rounded to the tick, some of them locked, wide, one-sided or missing. The figures come from the quotes by
METHODS.md §1.11: a forward by parity, volatilities and crossings by bisection. Usage: python3 volatility_vectors.py
"""
import datetime as dt
import json
from mpmath import mp, mpf, erfc, exp, log, sqrt

mp.dps = 30
RATE, YEAR = mpf("0.04"), 365 * 86400
Q = dt.datetime(2026, 8, 11, 12)  # New York, in summer time as all dates
SERIES = [("SPXW", dt.date(2026, 8, 12), 16, 10), ("SPXW", dt.date(2026, 9, 4), 16, 50), ("SPXW", dt.date(2026, 9, 9), 16, 50),
          ("SPXW", dt.date(2026, 9, 11), 16, 50), ("SPX", dt.date(2026, 10, 16), 9.5, 75)]

def N(x):
    return erfc(-x / sqrt(mpf(2))) / 2

def black(call, F, K, v):
    d1 = log(F / K) / v + v / 2
    return F * N(d1) - K * N(d1 - v) if call else K * N(v - d1) - F * N(-d1)

def bisect(rises, low, high):
    while high - low > mpf(10) ** -25:
        middle = (low + high) / 2
        low, high = (middle, high) if rises(middle) else (low, middle)
    return (low + high) / 2

rows, expirations, levels = [], [], []
for n, (root, date, hour, step) in enumerate(SERIES):
    T = mpf((dt.datetime(date.year, date.month, date.day) + dt.timedelta(hours=hour) - Q).total_seconds()) / YEAR
    forward = 7000 * exp(mpf("0.031") * T)
    quotes = {}  # by strike: (bid, ask) of call and put
    for i in range(-20, 20):
        K = 7000 + step * i
        x = log(mpf(K) / forward) / sqrt(T)
        iv = mpf("0.13") + mpf(n) / 200 - x * mpf("0.1") + x * x * mpf("0.25")
        sides = []
        for call in (True, False):
            price = float(black(call, forward, mpf(K), iv * sqrt(T)) * exp(-RATE * T))
            tick = 0.05 if price < 3 else 0.1
            bid, ask = round(price / tick - 0.3 - i % 3 / 2) * tick, round(price / tick + 0.8 + i % 5 / 3) * tick
            if i % 7 == 3:
                bid = ask  # locked
            if (i + n) % 9 == 4 and call or i in (-15, 13) and n % 2:
                bid = 0.0
            if (i + 2 * n) % 11 == 5 and call == n % 2:
                bid = ask = 0.0  # no quote
            sides.append((round(max(bid, 0), 2), round(ask, 2)))
        quotes[K] = sides
        for letter, (bid, ask) in zip("CP", sides):
            rows.append([f"{root}{date:%y%m%d}{letter}{K * 1000:08d}", bid, ask])
    mid = {K: [(mpf(b) + mpf(a)) / 2 if 0 < b <= a and round(a / b, 9) <= 3 else None for b, a in sides] for K, sides in quotes.items()}
    both = {K: c - p for K, (c, p) in mid.items() if c and p}
    votes = sorted(K + exp(RATE * T) * both[K] for _, K in sorted((round(float(abs(d)), 6), K) for K, d in both.items())[:7])
    F = votes[3]
    points = []
    for K in quotes:
        call = K >= F
        price = mid[K][not call]
        if price:
            target = price * exp(RATE * T)
            v = bisect(lambda v: black(call, F, mpf(K), v) < target, mpf("1e-6"), mpf(2))
            points.append((log(K / F), v * v))
    def w(x, a, b):
        return a[1] + (x - a[0]) / (b[0] - a[0]) * (b[1] - a[1])
    pairs = list(zip(points, points[1:]))
    zero = next(w(0, a, b) for a, b in pairs if a[0] <= 0 <= b[0])
    def crossing(d1):
        found = []
        for a, b in pairs:
            above = lambda x: -x / sqrt(w(x, a, b)) + sqrt(w(x, a, b)) / 2 > d1
            if above(a[0]) != above(b[0]):
                x = bisect(lambda x: above(x) == above(a[0]), a[0], b[0])
                found.append((abs(x), w(x, a, b)))
        return 100 * sqrt(min(found)[1] / T)
    row = {"forward": F, "atm_volatility": 100 * sqrt(zero / T), "expected_move": zero}
    for name, tail in (("25", mpf("0.25")), ("10", mpf("0.1"))):
        z = bisect(lambda z: N(z) < 1 - tail, mpf(0), mpf(3))
        call, put = crossing(-z), crossing(z)
        row["risk_reversal_" + name], row["butterfly_" + name] = call - put, (call + put) / 2 - row["atm_volatility"]
    K = min(quotes, key=lambda K: (abs(K - F), K))
    row["atm_straddle"] = sum(mid[K])
    center = max(K for K in both if K <= F)
    chosen = [(center, sum(mid[center]) / 2)]
    for side, strikes in ((1, sorted((K for K in quotes if K < center), reverse=True)), (0, [K for K in quotes if K > center])):
        unbid = 0
        for K in strikes:
            price, (bid, ask) = mid[K][side], quotes[K][side]
            unbid = 0 if price else unbid + (bid == 0 < ask)
            if unbid == 2:
                break
            around = [(a, b) for a, b in pairs if a[0] <= log(K / F) <= b[0]]
            if not price and around and not bid == 0 < ask:
                price = exp(-RATE * T) * black(not side, F, mpf(K), sqrt(w(log(K / F), *around[0])))
            if price:
                chosen.append((K, price))
        assert chosen[-1][1] <= mpf("0.05") * chosen[0][1]
    chosen.sort()
    total = 0
    for i, (K, price) in enumerate(chosen):
        low, high = max(i - 1, 0), min(i + 1, len(chosen) - 1)
        total += mpf(chosen[high][0] - chosen[low][0]) / (high - low) / K ** 2 * exp(RATE * T) * price
    row["model_free_volatility"] = 100 * sqrt((2 * total - (F / center - 1) ** 2) / T)
    expirations.append((T, row))

def month(name, near, far):
    (t1, a), (t2, b) = expirations[near], expirations[far]
    T = mpf(30) / 365
    return sqrt((a[name] ** 2 * t1 * (t2 - T) + b[name] ** 2 * t2 * (T - t1)) / (t2 - t1) / T)

(t1, a), (t2, b) = expirations[2], expirations[3]
underlying = {
    "atm_30d": month("atm_volatility", 2, 3), "model_free_30d": month("model_free_volatility", 1, 3),  # Wednesdays are not of the VIX
    "risk_reversal_25_30d": (a["risk_reversal_25"] * (t2 - mpf(30) / 365) + b["risk_reversal_25"] * (mpf(30) / 365 - t1)) / (t2 - t1)}
underlying["term_slope"] = expirations[4][1]["atm_volatility"] - underlying["atm_30d"]
for T, row in expirations:  # S is the implied spot of the fit over the dates to 60 days, or the index: here the index
    row["expected_move"] = 7000 * sqrt(row["expected_move"])
text = lambda row: {name: mp.nstr(x, 20) for name, x in row.items()}
with open("volatility_vectors.json", "w") as f:
    f.write('{"underlying": ' + json.dumps(text(underlying)) + ',\n "expirations": [\n  '
            + ",\n  ".join(json.dumps(text(row)) for _, row in expirations) + '],\n "rows": [\n  '
            + ",\n  ".join(json.dumps(row) for row in rows) + "]}\n")
