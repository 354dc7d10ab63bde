"""Makes greeks_vectors.json: delta, vanna and charm of European options with 50 digits, printed with 25.

Delta is e^((b-r)T) N(d1) of a call and that minus e^((b-r)T) of a put. Vanna and charm are numerical derivatives of this
delta, by sigma and by -T, with the carry b and the rate r constant: no closed formula of them is used. Below 15 minutes,
sigma, b and the derivatives are those of 15 minutes, times the discount of the true T. Usage: python3 greeks_vectors.py
"""
import json
from mpmath import mp, mpf, diff, erfc, exp, log, sqrt

mp.dps = 50

def delta(S, K, T, sigma, b, r, right):
    d1 = (log(S / K) + (b + sigma ** 2 / 2) * T) / (sigma * sqrt(T))
    side = 1 if right == "C" else -1
    return side * exp((b - r) * T) * erfc(-side * d1 / sqrt(2)) / 2

vectors = []
cases = [  # spot, strike, right, seconds, rate, forward, v
    (7000.0, 7000.0, 864000, 0.04, 7005.5, 0.025), (7000.0, 7350.0, 864000, 0.04, 7005.5, 0.025),
    (7000.0, 6500.0, 864000, 0.04, 7005.5, 0.04), (7728.2002, 7730.0, 30, 0.04, 7728.200119130326, 0.00085605845745036500),
    (7728.2002, 7728.0, 899, 0.04, 7728.5, 0.002), (7728.2002, 7731.0, 901, 0.04, 7728.5, 0.002), (7728.2002, 7720.0, 1, 0.04, 7727.9, 0.0011),
    (6800.25, 6000.0, 31536000, 0.055, 6500.0, 0.21), (6800.25, 8200.0, 31536000, 0.055, 6500.0, 0.18), (6800.25, 6800.0, 5184000, 0.0, 6700.0, 0.08),
    (6800.25, 6500.0, 5184000, -0.01, 6850.0, 0.09), (5000.0, 1000.0, 63072000, 0.04, 5200.0, 0.7), (5000.0, 12000.0, 63072000, 0.04, 5200.0, 0.5),
    (41.5, 40.0, 604800, 0.02, 41.6, 0.06), (100.0, 100.0, 31536000, 0.05, 100.0, 0.2), (60000.0, 66000.0, 2592000, 0.04, 60100.0, 0.12),
]
for S, K, seconds, r, F, v in cases:
    for right in "CP":
        T = mpf(seconds) / (365 * 86400)
        floored = max(T, mpf(900) / (365 * 86400))
        sigma, b = mpf(v) / sqrt(floored), log(mpf(F) / mpf(S)) / floored
        scale = exp(mpf(r) * (floored - T))
        at = lambda s, t: delta(mpf(S), mpf(K), t, s, b, mpf(r), right)
        numbers = {"delta": scale * at(sigma, floored), "vanna": scale * diff(lambda s: at(s, floored), sigma),
                   "charm": -scale * diff(lambda t: at(sigma, t), floored)}
        vectors.append({"right": right, "spot": S, "strike": K, "seconds": seconds, "rate": r, "forward": F, "v": v}
                       | {name: mp.nstr(x, 25) for name, x in numbers.items()})
with open("greeks_vectors.json", "w") as f:
    f.write("[\n" + ",\n".join(" " + json.dumps(v) for v in vectors) + "\n]\n")
