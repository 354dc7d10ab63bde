#!/usr/bin/env python3
"""Verifies an answer of strikecache, gex/{u}, gex/{u}/matrix, volatility/{u} or {u}-max-pain, with Python's standard library alone.

The program reads the answer and the documents that its receipt names, and checks every digest. Then it computes the
figures again from the documents, as the methods page says (compute/METHODS.md; § names a section of that page). It
prints a table of what was served, what was recomputed and the difference. Of a list, it prints the worst cell of each
column.

Exit code: 0 if all agrees, 1 if something differs or a document is missing, 2 if the usage is bad or there is no answer.
"""
import argparse
import collections
import datetime as dt
import functools
import gzip
import hashlib
import json
import math
import os
import pathlib
import re
import statistics
import sys
import urllib.request

DAY = dt.timedelta(days=1)
YEAR = 365 * 86400  # seconds, §1.1
INDICES = {"SPX": {"SPX": "am", "SPXW": "pm"}, "XSP": {"XSP": "pm"}, "NDX": {"NDX": "am", "NDXP": "pm"},
           "RUT": {"RUT": "am", "RUTW": "pm"}}  # settlement by root, §1. Every other symbol is a fund or a stock
FUNDS = """SPY QQQ IWM DIA XLB XLC XLE XLF XLI XLK XLP XLRE XLU XLV XLY EEM EFA IWN IWO KBE KRE MDY OEF XHB XME XRT""".split()
PAYOUTS = "call_payout_dollars", "put_payout_dollars", "total_payout_dollars"
further = {"closed": (), "early": ()}  # dates that the operator added to the calendar: the input state/closed-dates


# §0: the calendar, the clocks, the numbers

def nth(year, month, weekday, n):
    """Returns the nth weekday, 0 for Monday, of a month."""
    first = dt.date(year, month, 1)
    return first + DAY * ((weekday - first.weekday()) % 7 + 7 * (n - 1))


@functools.lru_cache
def holidays(year):
    """Returns the dates of a year, 1982 to 2048, on which the New York exchanges are closed."""
    moon = (19 * (year % 19) + 24) % 30  # Easter, by the rule of Gauss
    easter = dt.date(year, 3, 22) + DAY * (moon + (2 * (year % 4) + 4 * (year % 7) + 6 * moon + 5) % 7)
    fixed = [dt.date(year, 1, 1), dt.date(year, 7, 4), dt.date(year, 12, 25)] + [dt.date(year, 6, 19)] * (year >= 2022)
    observed = {d + DAY * {5: -1, 6: 1}.get(d.weekday(), 0) for d in fixed}  # a New Year on a Saturday is not observed in its year
    return observed | {
        easter - 2 * DAY, nth(year, 1, 0, 3), nth(year, 2, 0, 3), nth(year, 6, 0, 1) - 7 * DAY, nth(year, 9, 0, 1), nth(year, 11, 3, 4),
        dt.date(2018, 12, 5), dt.date(2025, 1, 9)}  # the last two were days of mourning


def closing(day):
    """Returns the hour at which the session of a date ends, 16 or 13, or None for a date without a session."""
    if day.weekday() > 4 or day in holidays(day.year) or str(day) in further["closed"]:
        return None
    early = (day.month, day.day) in ((7, 3), (12, 24)) or day == nth(day.year, 11, 3, 4) + DAY
    return 13 if early or str(day) in further["early"] else 16


def new_york(day):
    """Returns the time zone of a date in New York, by the rule since 2007. Some systems have no time zone data."""
    return dt.timezone(dt.timedelta(hours=-4 if nth(day.year, 3, 6, 2) <= day < nth(day.year, 11, 6, 1) else -5))


def at(day, hour, minute=0):
    """Returns an hour of a New York date as an instant."""
    return dt.datetime.combine(day, dt.time(hour, minute), new_york(day))


def rfc3339(instant):
    return f"{instant.astimezone(dt.timezone.utc):%Y-%m-%dT%H:%M:%SZ}"


def quote_instant(as_of, captured_at, overnight, tail):
    """Returns q, the instant that the quotes of options describe. overnight: they trade in the night, tail: to 16:15 and not 16:00."""
    def ends(day):
        return at(day, 17) if overnight and closing(day) == 16 else at(day, closing(day), 15 * tail)
    q = max(as_of, captured_at - dt.timedelta(minutes=15))
    day = q.astimezone(new_york(q.date())).date()
    trades = day + DAY if overnight and q >= at(day, 20, 15) else day  # the session day whose hours q may be in
    if closing(trades) and q <= ends(trades) and (overnight or q >= at(day, 9, 30)):
        return q
    while not closing(day) or q < ends(day):
        day -= DAY
    return ends(day)


def number(x, most):
    """Returns a number of a document, or None for a number that counts as absent: it is neither 0 nor from 1e-6 to most."""
    return x if isinstance(x, (int, float)) and (x == 0 or 1e-6 <= x <= most) else None


# §1.1: the rows of a chain

# sign is 1 for a call, -1 for a put. mid is None without bid > 0 and ask >= bid, wide says that ask > 3·bid. F and v come with Chain.price.
Row = collections.namedtuple("Row", "symbol sign oi volume mid wide iv K T settles F v", defaults=(None, None))


class Chain:
    """A document such as options/_SPX.json. series[root, date][strike in thousandths][right] is a row with T > 0."""

    def __init__(self, symbol, document):
        data = document["data"]
        self.american, self.settlement = symbol not in INDICES, INDICES.get(symbol, {symbol: "pm"})
        as_of = dt.datetime.fromisoformat(data["last_trade_time"])
        self.as_of = as_of.replace(tzinfo=new_york(as_of.date()))
        self.captured_at = dt.datetime.fromisoformat(document["timestamp"]).replace(tzinfo=dt.timezone.utc)
        self.q = quote_instant(self.as_of, self.captured_at, symbol in ("SPX", "XSP"), symbol in INDICES or symbol in FUNDS)
        self.session = as_of.date()
        while not closing(self.session):
            self.session -= DAY
        self.spot = number(data.get("current_price"), 1e6) or number(data.get("close"), 1e6)
        percent, price = data.get("price_change_percent"), number(data.get("current_price"), 1e6)
        self.change = percent if isinstance(percent, (int, float)) and -100 <= percent <= 1000 else None
        if price and isinstance(data.get("price_change"), (int, float)) and number(price - data["price_change"], 1e6):
            percent = data["price_change"] / (price - data["price_change"]) * 100
            self.change = percent if -100 <= percent <= 1000 else self.change
        self.settles, self.years = {}, {}  # the instant of settlement and T of each series
        self.series = collections.defaultdict(lambda: collections.defaultdict(dict))
        self.skipped, self.unread = collections.Counter(), {}  # unread: when the rows with a bad open interest settle
        seen = set()
        for option in data["options"]:
            self.skipped[self.add(option, seen)] += 1
        self.listed = len(data["options"])

    def add(self, option, seen):
        """Adds a row, or returns the first reason to skip the row."""
        symbol = option["option"]
        found = re.fullmatch(r"(?!.{22})([A-Z]+\d*)(\d{6})([CP])(\d{8})", symbol)
        try:
            root, date, right, strike = found.groups()
            key = root, dt.date(2000 + int(date[:2]), int(date[2:4]), int(date[4:]))
        except (AttributeError, ValueError):  # no match, or no date
            return "bad_symbol"
        if symbol in seen:
            return "duplicate"
        seen.add(symbol)
        oi, bid, ask = (number(option.get(name), most) for name, most in (("open_interest", 1e8), ("bid", 1e6), ("ask", 1e6)))
        settles = at(key[1], 9, 30) if self.settlement.get(root) == "am" else at(key[1], closing(key[1]) or 16)
        if oi is None:
            self.unread.update({symbol: settles} if root in self.settlement else {})
            return "bad_number"
        if root not in self.settlement:
            return "unknown_root"
        if key not in self.years:
            self.settles[key] = settles
            self.years[key] = (self.settles[key] - self.q).total_seconds() / YEAR
        if self.years[key] <= 0:
            return "settled"
        mid = (bid + ask) / 2 if bid and ask and 0 < bid <= ask else None
        self.series[key][int(strike)][right] = Row(
            symbol, 1 if right == "C" else -1, oi, number(option.get("volume"), 1e8) or 0, mid, mid and round(ask / bid, 9) > 3, number(option.get("iv"), 100) or 0,
            int(strike) / 1000, self.years[key], self.settles[key])
        return None

    def price(self, rate):
        """Sets the spot, the forwards, and rows, by symbol the rows with F and v, which is 0 without a volatility."""
        parity = {key: f for key, s in self.series.items() if (f := parity_forward(s, self.years[key], rate))}
        self.rate, self.implied = rate, implied_spot(self, parity)
        self.gap = (self.implied / self.spot - 1) * 100 if self.implied else None
        in_step = self.q - self.as_of <= dt.timedelta(minutes=5) and (self.gap is None or abs(self.gap) <= 0.15)
        self.source = "last" if self.american else "index" if in_step else "implied" if self.implied else "index_stale"
        self.S = self.implied if self.source == "implied" else self.spot
        self.mismatch = self.gap is not None and abs(self.gap) > 10  # the document contradicts itself: dollars are null
        self.forwards, self.rows = forwards(self, parity, self.S), {}
        for key, strikes in self.series.items():
            v_of = volatilities(strikes, self.forwards[key][0], self.years[key], rate)
            self.rows.update({row.symbol: row._replace(F=self.forwards[key][0], v=v_of[k])
                              for k, rights in strikes.items() for row in rights.values()})
        self.used = [row for row in self.rows.values() if row.oi and row.v]
        self.net = self.G(self.S) if self.used and not self.mismatch else None
        return self

    def gex(self, row, S):  # the forward moves with the spot, and v stays with the strike
        return row.sign * row.oi * 100 * gamma(S, row.F / self.S * S, row.K, row.v, row.T, self.rate) * S ** 2 * 0.01

    def G(self, S):
        return sum(self.gex(row, S) for row in self.used)


# §§1.0 and 1.1: forwards, implied spot, volatility, gamma

def parity_forward(strikes, T, rate):
    """Returns the forward of a series by put-call parity, or None."""
    votes = []
    for k, rights in strikes.items():
        if len(rights) == 2 and rights["C"].mid and rights["P"].mid:
            difference = rights["C"].mid - rights["P"].mid
            votes.append((round(abs(difference), 6), k, k / 1000 + math.exp(rate * T) * difference))
    forward = statistics.median(f for _, _, f in sorted(votes)[:7]) if len(votes) >= 3 else 0
    return forward if forward > 0 else None


def implied_spot(chain, parity):
    """Returns exp(intercept) of the least squares of ln F on T, or None without a fit."""
    points = [(chain.years[key], math.log(forward)) for key, forward in parity.items() if chain.years[key] <= 60 / 365]
    if len(points) < 5 or max(points)[0] - min(points)[0] < 7 / 365:
        return None
    mean_T, mean_y = (statistics.fmean(column) for column in zip(*points))
    slope = sum((T - mean_T) * (y - mean_y) for T, y in points) / sum((T - mean_T) ** 2 for T, _ in points)
    return number(math.exp(mean_y - slope * mean_T), 1e6)


def forwards(chain, parity, S):
    """Returns the forward of every series and its source."""
    curve = [(0, 0)] + sorted((chain.years[key], math.log(forward / S)) for key, forward in parity.items())
    beyond, ends, out = chain.rate, [chain.settles[key] for key in parity], {}  # beyond: the carry after the last parity forward
    if parity and max(ends) - min(ends) >= 30 * DAY:
        mean_T, mean_y = (statistics.fmean(column) for column in zip(*curve[1:]))
        slope = sum((T - mean_T) * (y - mean_y) for T, y in curve[1:]) / sum((T - mean_T) ** 2 for T, _ in curve[1:])
        beyond = max(-1, min(slope, 1))
    for root, date in chain.series:
        key, T = (root, date), chain.years[root, date]
        own = [parity[r, date] for r in (root, *chain.settlement) if (r, date) in parity]
        if own:
            out[key] = own[0], "parity" if key in parity else "other_settlement"
        elif parity and T < curve[-1][0]:
            (t0, y0), (t1, y1) = max(p for p in curve if p[0] <= T), min(p for p in curve if p[0] > T)
            out[key] = S * math.exp(y0 + (y1 - y0) * (T - t0) / (t1 - t0)), "interpolated"
        elif parity:
            out[key] = S * math.exp(curve[-1][1] + beyond * (T - curve[-1][0])), "extrapolated"
        else:
            out[key] = S, "none"
    return out


def implied_volatility(price, F, K, call):
    """Solves the Black formula for v = σ√T. The price is undiscounted. None outside the no-arbitrage bounds.

    The price is convex in v below √(2|ln(F/K)|) and concave above, so Newton's steps from there do not overshoot the root.
    """
    def normal(x):
        return math.erfc(-x / math.sqrt(2)) / 2
    if not max(F - K if call else K - F, 0) < price < (F if call else K):
        return None
    x = math.log(F / K)
    v = math.sqrt(2 * abs(x)) or 1e-9
    for _ in range(100):
        d1, d2 = x / v + v / 2, x / v - v / 2
        value = F * normal(d1) - K * normal(d2) if call else K * normal(-d2) - F * normal(-d1)
        step = (value - price) / (F * math.exp(-d1 * d1 / 2) / math.sqrt(2 * math.pi))
        v -= step
        if abs(step) <= 1e-13:
            break
    return v


def volatilities(strikes, F, T, rate):
    """Returns v of each strike (in thousandths) of a series that has one."""
    v_of = {}
    for k, rights in strikes.items():
        call = k / 1000 >= F
        near, far = (rights.get(right) for right in ("CP" if call else "PC"))  # near is out of the money
        if near and near.mid:
            v_of[k] = implied_volatility(near.mid * math.exp(rate * T), F, k / 1000, call)
        if not v_of.get(k):
            iv = next((row.iv for row in (near, far) if row and row.iv > 0), 0)
            v_of[k] = iv * math.sqrt(max(T, 900 / YEAR))
    priced = {k: v for k, v in v_of.items() if v}
    for k in v_of.keys() - priced.keys() if priced else ():
        below, above = max((p for p in priced if p < k), default=None), min((p for p in priced if p > k), default=None)
        part = math.log(k / below) / math.log(above / below) if below and above else 1 if below == 0 and above else 0  # of the way from below to above in ln K
        nearest = [p for p in (below, above) if p is not None]
        v_of[k] = math.sqrt(priced[nearest[0]] ** 2 * (1 - part) + priced[nearest[-1]] ** 2 * part)
    return v_of


def gamma(S, F, K, v, T, rate):
    d1 = (math.log(F / K) if K else math.inf) / v + v / 2
    return F / S * math.exp(-rate * T) * math.exp(-d1 * d1 / 2) / math.sqrt(2 * math.pi) / (S * v)


# The table

def off(a, b):
    """Returns the size of the difference of two numbers. Other values differ by 0 or by infinity."""
    return abs(a - b) if {type(a), type(b)} <= {int, float} else 0 if a == b else math.inf


class Table:
    """Prints a line for each figure, and remembers the names of those that differ."""

    def __init__(self):
        self.checks, self.differing = 0, []
        print(f"{'':54}{'served':>21}{'recomputed':>21}{'difference':>12}")

    def show(self, name, own):
        """Prints a figure that the answer does not have."""
        print(f"{name:54}{'':21}{own:>21}")

    def check(self, name, served, own, tolerance=0):
        self.checks += 1
        differs = not off(served, own) <= tolerance  # so that NaN differs
        if differs:
            self.differing.append(name)
        texts = [f"{x:.12g}" if isinstance(x, float) else json.dumps(x).strip('"')[:20] for x in (served, own)]
        print(f"{name:54}{texts[0]:>21}{texts[1]:>21}{off(served, own):12.3g}{'  DIFFERS' if differs else ''}")

    def columns(self, name, served, own, tolerances):
        """Checks a list: its keys in order, and of each column the worst cell."""
        if list(served) != list(own):
            self.check(f"{name}, keys", list(served), list(own))
            return
        for column, tolerance in tolerances.items() if own else ():
            key = max(own, key=lambda key: off(served[key][column], own[key][column]))
            self.check(f"{name}[{key}].{column}", served[key][column], own[key][column], tolerance)


# §1: gex/{u}. The tolerances are those of §7.

EXPOSURES = ("delta_dollars", "vanna_dollars_per_vol_point", "charm_dollars_per_day", "charm_ex_zero_dte_dollars_per_day")
SIDES = [side + kind for kind in ("_gex_dollars", "_open_interest", "_volume") for side in ("call", "put")]


def exposures(S, F, K, v, T, rate, side):
    """§1.4: the exposures of one contract with s·OI·M = 1."""
    floored = max(T, 900 / (365 * 86400))
    D, b, d1 = F / S * math.exp(-rate * T), math.log(F / S) / floored, math.log(F / K) / v + v / 2 if K else math.inf
    phi, Phi = math.exp(-d1 * d1 / 2) / math.sqrt(2 * math.pi), math.erfc(-side * d1 / math.sqrt(2)) / 2
    vanna = -D * phi * (d1 - v) / (v / math.sqrt(floored)) if phi else 0
    slope = phi * (b / v - (d1 - v) / (2 * floored)) if phi else 0
    return S * D * side * Phi, S * 0.01 * vanna, S / 365 * -D * (slope + side * (b - rate) * Phi)


def strike_tolerances(dollars):
    return {name: dollars if "dollars" in name else 0.5 for name in (*SIDES, "net_gex_dollars")}


def near_spot(by_strike, S, reach, mismatch):
    """Returns the strikes with open interest that are at most a share of the spot away. After a contradiction, dollars are null."""
    rows = {K: dict(cells, net_gex_dollars=cells["call_gex_dollars"] + cells["put_gex_dollars"]) for K, cells in sorted(by_strike.items())
            if abs(K - S) <= reach * S and cells["call_open_interest"] + cells["put_open_interest"] > 0}
    for cells in rows.values() if mismatch else ():
        cells.update({name: None for name in cells if "dollars" in name})
    return rows


def verify_matrix(table, data, cells, session, by_strike, mismatch):
    """§1.6. cells has the net GEX of used contracts by (date, settlement), and in it by strike. by_strike has the sums by strike
    of the expirations up to a date."""
    dollars = max(1e-6 * sum(abs(x) for column in cells.values() for x in column.values()), 1)
    S, shown = data["effective_spot"], lambda x: None if mismatch else x
    by_date = sorted((key for key, column in cells.items() if column))
    rows = sorted({K for column in cells.values() for K in column if abs(K - S) <= 0.1 * S})
    expirations = {f"{e['expiration']} {e['settlement']}": e for e in data["expirations"]}
    table.columns("§1.6 expirations", expirations, {
        f"{date} {settlement}": {"net_gex_dollars": shown(sum(cells[date, settlement].values()))}
        for date, settlement in by_date[:16]}, {"net_gex_dollars": dollars})
    table.columns("§1.6 strikes", {row["strike"]: row for row in data["strikes"]}, {
        K: {"net_gex_dollars": shown(sum(column.get(K, 0) for column in cells.values()))} for K in rows}, {"net_gex_dollars": dollars})
    for j, key in enumerate(by_date[:16]):
        table.columns(f"§1.6 {key[0]} {key[1]}", {K: {"cell": row[j]} for K, row in zip(rows, data["net_gex_dollars"])},
                      {K: {"cell": shown(cells[key].get(K))} for K in rows}, {"cell": dollars})
    ends = {"zero_dte": session, "this_week": session + DAY * (4 - session.weekday())}
    table.check("§1.6 parts", [[part["name"], part["from"], part["to"]] for part in data["parts"]],
                [[name, str(session), str(end)] for name, end in ends.items()])
    for part, (name, end) in zip(data["parts"], ends.items()):
        table.columns(f"§1.6 {name}", {row["strike"]: row for row in part["by_strike"]}, near_spot(by_strike[end], S, 0.1, mismatch),
                      strike_tolerances(dollars))


def verify_gamma(table, answer, chain, previous, strike):
    data, gap_served = answer["data"], answer["meta"]["quality"]["spot_gap_pct"]
    rate = answer["meta"]["receipt"]["parameters"]["risk_free_rate"]
    S, mismatch = chain.price(rate).S, chain.mismatch
    table.show("§1.0 implied spot", f"{chain.implied:.6f}" if chain.implied else "no fit")
    table.check("§1.0 spot_gap_pct", gap_served, chain.gap, 2e-4)
    if "spot_source" in data:
        table.check("§1.0 spot_source", data["spot_source"], chain.source)
        table.check("§1.0 spot_change_pct", data["spot_change_pct"], chain.change, 1e-4)
    table.check("§1.0 effective_spot", data["effective_spot"], S, 0.01)

    by_expiration, cells, beyond = {}, {}, 0
    friday = chain.session + DAY * (4 - chain.session.weekday())
    until = {last: collections.defaultdict(lambda: dict.fromkeys(SIDES, 0)) for last in (dt.date.max, chain.session, friday)}
    by_strike = until[dt.date.max]
    chosen = strike or min((k / 1000 for strikes in chain.series.values() for k in strikes), key=lambda K: abs(K - S), default=0)
    for root, date in sorted(chain.series, key=lambda key: key[::-1]):
        settlement, (forward, forward_source) = chain.settlement[root], chain.forwards[root, date]
        sums, others = {"call": 0, "put": 0}, dict.fromkeys(EXPOSURES, 0)
        column = cells.setdefault((str(date), settlement), collections.Counter())
        for row in (chain.rows[row.symbol] for rights in chain.series[root, date].values() for row in rights.values()):
            K, side = row.K, "call" if row.sign > 0 else "put"
            totals = [rows[K] for last, rows in until.items() if date <= last]
            for total in totals:
                total[side + "_open_interest"] += row.oi
                total[side + "_volume"] += row.volume
            if not row.oi or not row.v:
                chain.skipped["no_volatility" if row.oi else "no_open_interest"] += 1
                continue
            gex = chain.gex(row, S)
            beyond += abs(gex) * (row.T > 60 / 365)
            for total in totals:
                total[side + "_gex_dollars"] += gex
            sums[side] += gex
            column[K] += gex
            greeks = exposures(S, forward, K, row.v, row.T, rate, row.sign)
            for name, x in zip(EXPOSURES, (*greeks, greeks[2] * (date != chain.session))):
                others[name] += row.sign * row.oi * 100 * x
            if K == chosen and (strike or not by_expiration):
                table.show(f"§1.1 {root} {date} {K:g} {side}: volatility", f"{row.v / math.sqrt(row.T):.10f}")
                table.show(f"§1.1 {root} {date} {K:g} {side}: gamma, GEX", f"{gamma(S, forward, K, row.v, row.T, rate):.6e} {gex:.0f}")
        by_expiration[f"{date} {settlement}"] = {
            "forward": forward, "forward_source": forward_source,
            "net_gex_dollars": sums["call"] + sums["put"], "gross_gex_dollars": sums["call"] - sums["put"], **others}
    call, put = (sum(cells[side + "_gex_dollars"] for cells in by_strike.values()) for side in ("call", "put"))
    gross = call - put
    table.check("§1.8 gross_beyond_60_days_pct", answer["meta"]["quality"].get("gross_beyond_60_days_pct"),
                beyond / gross * 100 if chain.american and gross and not mismatch else None, 2e-4)
    if answer["meta"]["endpoint"].endswith("/matrix"):
        return verify_matrix(table, data, cells, chain.session, until, mismatch)

    dollars = max(1e-6 * gross, 1)
    for name, own in (("net", call + put), ("call", call), ("put", put), ("gross", gross)):
        table.check(f"§1.3 {name}_gex_dollars", data[name + "_gex_dollars"], None if chain.net is None else own, dollars)
    table.check("§1.3 gamma_tilt", data["gamma_tilt"], call / -put if put and chain.net is not None else None, 2e-4)
    tolerances = {name: max(1, 1e-6 * sum(abs(row[name]) for row in by_expiration.values())) for name in EXPOSURES}
    for name in EXPOSURES:
        own = None if chain.net is None else sum(row[name] for row in by_expiration.values())
        table.check(f"§1.4 {name}", data["exposures"][name], own, tolerances[name])
    table.check("§1.3 contracts_analyzed", data["contracts_analyzed"], len(chain.used))
    for cells in by_expiration.values():
        cells["gross_share_pct"] = cells["gross_gex_dollars"] / gross * 100 if gross and not mismatch else None
        cells.update({name: None for name in cells if mismatch and "dollars" in name})
    table.columns("§1.3 by_strike", {row["strike"]: row for row in data["by_strike"]}, near_spot(by_strike, S, 0.15, mismatch),
                  strike_tolerances(dollars))
    table.columns("§1.3 by_expiration", {f"{row['expiration']} {row['settlement']}": row for row in data["by_expiration"]}, by_expiration,
                  {"forward": 0.01, "forward_source": 0, "net_gex_dollars": dollars, "gross_gex_dollars": dollars, "gross_share_pct": 2e-4, **tolerances})
    prices = sorted((flip["price"] for flip in data["flips"]), key=lambda price: (abs(price - S), price))
    chain.flip = prices[0] if prices else None
    verify_levels(table, data, chain, by_strike)
    verify_parts(table, data, chain, gross, dollars)
    table.check("§1.2 zero_gamma_flip", data["zero_gamma_flip"], chain.flip)
    table.check("§1.2 flip_status", data["flip_status"], flip_status(chain, prices))
    table.check("§1.3 flip_distance_pct", data["flip_distance_pct"], (S - prices[0]) / S * 100 if prices else None, 6e-4)
    for i, flip in enumerate(data["flips"]):
        rises = check_root(table, f"§1.2 flips[{i}].price", flip["price"], S, chain.G)
        table.check(f"§1.2 flips[{i}].direction", flip["direction"], "negative_to_positive" if rises else "positive_to_negative")
    verify_changes(table, answer, chain, previous and previous.price(rate), dollars)


def check_root(table, name, price, S, G):
    """Checks that a served flip is a root of G, and says whether G rises there. Other roots of G are not searched."""
    most = min(0.02, 0.02 * S / 5000 + 0.005)  # a served price has 2 decimals
    below, above = G(price - most), G(price + most)
    table.check(name, price, price + most * (below + above) / (below - above) if (below < 0) != (above < 0) else math.inf, most)
    return below < 0


def flip_status(chain, flips):
    """§1.2: the status that belongs to the served flips."""
    if chain.mismatch or flips:
        return "spot_mismatch" if chain.mismatch else "found" if len(flips) == 1 else "multiple"
    top = max((chain.G(chain.S * (1 + j / 500)) for j in range(-75, 76)), key=abs)  # 151 points show which lobe is the largest
    return "none_all_positive" if top > 0 else "none_all_negative" if top else "insufficient_data"


def verify_levels(table, data, chain, by_strike):
    """§1.3: the walls and what rests on them."""
    S = chain.S
    rows = {K: dict(cells, call=cells["call_gex_dollars"], put=-cells["put_gex_dollars"], net=cells["call_gex_dollars"] + cells["put_gex_dollars"])
            for K, cells in by_strike.items()} if chain.net is not None else {}

    def wall(value, side=0):  # side: 1 for the strikes from the spot upwards, -1 downwards, 0 for all
        best = max(((value(row), -abs(K - S), -K) for K, row in rows.items() if (K - S) * side >= 0), default=(0, 0, 0))
        return -best[2] if best[0] > 0 else None
    call_wall, put_wall = wall(lambda row: row["call"], 1), wall(lambda row: row["put"], -1)
    between = [K for K in rows if put_wall is not None and call_wall is not None and put_wall < K < call_wall]
    least = 0.05 * max((abs(row["net"]) for row in rows.values()), default=0)
    for name, own in (
            ("call_wall", call_wall), ("put_wall", put_wall), ("abs_gamma_strike", wall(lambda row: row["call"] + row["put"])),
            ("vol_trigger", min((K for K in between if rows[K]["net"] > 0 and rows[K]["net"] >= least), default=None))):
        table.check(f"§1.3 {name}", data[name], own)
    for kind, call, put in (("gross", lambda row: row["call"], lambda row: row["put"]), ("net", lambda row: row["net"], lambda row: -row["net"]),
                            ("open_interest", lambda row: row["call_open_interest"], lambda row: row["put_open_interest"])):
        table.check(f"§1.3 walls.{kind}", data["walls"][kind], {"call": wall(call), "put": wall(put)})


def verify_parts(table, data, chain, gross, dollars):
    """§§1.2 and 1.3: the scenarios, what rests on them, and what expires on the session date."""
    S, flips = chain.S, {row["name"]: row["zero_gamma_flip"] for row in data["scenarios"]}
    dates = [row.settles.date() for row in chain.used]
    nearest = min(dates, default=None)

    def check(name, served, rows, known):
        def G(S):
            return sum(chain.gex(row, S) for row in rows)
        table.check(f"{name}.net_gex_dollars", served["net_gex_dollars"], G(S) if known and not chain.mismatch else None, dollars)
        if served["zero_gamma_flip"] is not None:
            check_root(table, f"{name}.zero_gamma_flip", served["zero_gamma_flip"], S, G)
    rows = {"vol_down_10": [row._replace(v=0.9 * row.v) for row in chain.used], "vol_up_10": [row._replace(v=1.1 * row.v) for row in chain.used],
            "no_carry": [row._replace(F=S) for row in chain.used],
            "ex_nearest_expiration": [row for row, date in zip(chain.used, dates) if date > nearest],
            "within_90_days": [row for row, date in zip(chain.used, dates) if date <= chain.session + 90 * DAY]}
    table.check("§1.2 scenarios", list(flips), list(rows))
    for row in data["scenarios"]:
        check(f"§1.2 {row['name']}", row, rows[row["name"]], rows[row["name"]])
    ends = sorted(flip for flip in (chain.flip, *flips.values()) if flip is not None)
    table.check("§1.2 flip_band", data["flip_band"], {"low": ends[0], "high": ends[-1]} if ends else None)
    ends = [flips["vol_down_10"], flips["vol_up_10"]]
    neutral = abs(chain.net or 0) < 0.01 * gross or chain.net == 0 or None not in ends and min(ends) <= S <= max(ends)
    table.check("§1.3 gamma_regime", data["gamma_regime"],
                None if chain.net is None else "neutral" if neutral else "positive" if chain.net > 0 else "negative")
    points = {j: S * (1 + j / 1000) for j in range(-60, 61, 20)}  # some of the 121, because each costs as much as net
    table.columns("§1.3 profile", {j: data["profile"][j + 60] for j in points}, {
        j: {"spot": x, "net_gex_dollars": None if chain.net is None else chain.G(x)} for j, x in points.items()}, {"spot": 0.01, "net_gex_dollars": dollars})
    settled = chain.q >= at(chain.session, closing(chain.session))
    rows = [row for row, date in zip(chain.used, dates) if date == chain.session]
    for name, own in (("settled", settled), ("contracts", 0 if settled else len(rows))):
        table.check(f"§1.3 zero_dte.{name}", data["zero_dte"][name], own)
    if settled:
        table.check("§1.3 zero_dte", [data["zero_dte"][name] for name in ("net_gex_dollars", "gross_share_pct", "zero_gamma_flip")], [None] * 3)
    else:
        check("§1.3 zero_dte", data["zero_dte"], rows, True)
        share = sum(abs(chain.gex(row, S)) for row in rows) / gross * 100 if gross and not chain.mismatch else None
        table.check("§1.3 zero_dte.gross_share_pct", data["zero_dte"]["gross_share_pct"], share, 2e-4)


def verify_changes(table, answer, now, before, dollars):
    """§1.5. now and before are priced chains. before is None without a reference."""
    served, interest = answer["data"]["changes"], answer["data"]["open_interest_changes"]
    held = {symbol: row for symbol, row in now.rows.items() if row.v}
    listed = {symbol: row for symbol, row in before.rows.items() if row.settles > now.q} if before else {}
    was = {symbol: row for symbol, row in listed.items() if row.v}
    least = len(listed) * (0.9 if before and abs(now.S / before.S - 1) > 0.2 else 0.5)
    reason = ("no_reference" if not before else "split" if now.american and len(listed.keys() & now.rows) < least else
              "net_unknown" if now.net is None else "reference_net_unknown" if before.net is None else None)
    table.check("§1.5 changes_reason", answer["meta"]["quality"]["changes_reason"], reason)
    unread = {symbol for side in (before, now) if side for symbol, settles in side.unread.items() if settles > now.q}
    table.check("§1.5 open_interest_unread", answer["meta"]["quality"]["open_interest_unread"],
                None if reason in ("no_reference", "split") else len(unread))
    sides = {symbol: [side[symbol].oi if symbol in side else 0 for side in (listed, now.rows)]
             for symbol in {**listed, **now.rows} if symbol not in unread}
    largest = sorted((-abs(b - a), symbol, a, b) for symbol, (a, b) in sides.items() if a != b)[:10]
    table.check("§1.5 open_interest_changes", interest and [(row["contract"], row["from"], row["to"]) for row in interest],
                None if reason in ("no_reference", "split") else [row[1:] for row in largest])
    if reason:
        return table.check("§1.5 changes", served, None)
    nets = [before.net, *[0] * 5, now.net]  # the net after each part
    for symbol, old in was.items():
        steps, new = [before.gex(old, before.S)] * 5, held.get(symbol)
        if new:
            later = old._replace(F=old.F / before.S * now.S, T=new.T, v=old.v * math.sqrt(new.T / old.T))
            steps[1:] = before.gex(old, now.S), now.gex(later, now.S), now.gex(new._replace(oi=old.oi), now.S), now.gex(new, now.S)
        nets[1:6] = map(sum, zip(nets[1:6], steps))
    parts = before.net, *(b - a for a, b in zip(nets, nets[1:])), now.net
    for name, own in zip("from expired spot time volatility open_interest listed to".split(), parts):
        table.check(f"§1.5 net_gex_dollars.{name}", served["net_gex_dollars"][name], own, dollars)
    table.check("§1.5 reference_as_of", served["reference_as_of"], rfc3339(before.as_of))
    table.check("§1.5 flip.to", served["flip"]["to"], now.flip)
    if served["flip"]["from"] is not None:
        check_root(table, "§1.5 flip.from", served["flip"]["from"], before.S, before.G)


# §1.11: volatility/{u}

DELTAS = {"25": 0.6744897501960817, "10": 1.2815515655446004}
SMILE = "atm_volatility risk_reversal_25 risk_reversal_10 butterfly_25 butterfly_10 expected_move model_free_volatility".split()


def w_at(a, b, x):
    return a[1] + (b[1] - a[1]) * (x - a[0]) / (b[0] - a[0])


def smile(chain, key):
    """Returns the points (x, w, mid) of a root and date."""
    (F, _), points = chain.forwards[key], []
    for k, rights in sorted(chain.series[key].items()):
        call = k / 1000 >= F
        row = rights.get("C" if call else "P")
        if row and row.mid and not row.wide and k and row.mid * math.exp(chain.rate * row.T) < (F if call else row.K):
            points.append((math.log(row.K / F), chain.rows[row.symbol].v ** 2, row.mid))
    return points


def at_the_money(points):
    """Returns w(0), or the reason why it is unknown."""
    if len(points) < 5:
        return "few_strikes"
    above, below = [p for p in points if p[0] >= 0], [p for p in points if p[0] < 0]
    if not above or not below and above[0][0] > 0:
        return "not_bracketed"
    if len(above) > 1 and above[0][2] <= above[-1][2] or len(below) > 1 and below[-1][2] <= below[0][2]:
        return "flat_prices"
    if above[0][0] == 0:
        return above[0][1]
    w = w_at(below[-1], above[0], 0)
    return w if max(-below[-1][0], above[0][0]) <= math.sqrt(w) else "wide_gap"


def w_at_d1(points, d1):
    """Returns w where d1 has a value, at the crossing nearest the forward, or None."""
    def beyond(x, w):
        return -x / math.sqrt(w) + math.sqrt(w) / 2 > d1
    found = []
    for a, b in zip(points, points[1:]):
        if beyond(*a[:2]) != beyond(*b[:2]):
            low, high = a[0], b[0]
            while high - low > 1e-12:
                x = (low + high) / 2
                low, high = (x, high) if beyond(x, w_at(a, b, x)) == beyond(*a[:2]) else (low, x)
            found.append((abs(low), w_at(a, b, low)))
    return min(found)[1] if found else None


def model_free(chain, key):
    """Returns the variance a year by the formula of the VIX, or the reason why it is unknown."""
    strikes, T, (F, _) = chain.series[key], chain.years[key], chain.forwards[key]
    both = [k for k, rights in strikes.items() if len(rights) == 2 and all(row.mid for row in rights.values()) and 0 < k / 1000 <= F]
    if not both:
        return "not_bracketed"
    center = max(both)
    Q = {center: sum(row.mid for row in strikes[center].values()) / 2}
    at = Q[center]
    for right, side in (("P", sorted((k for k in strikes if 0 < k < center), reverse=True)), ("C", sorted(k for k in strikes if k > center))):
        unquoted, last = 0, at
        for row in (strikes[k][right] for k in side if right in strikes[k]):
            if row.mid:
                unquoted, last = 0, row.mid
                Q[round(row.K * 1000)] = row.mid
            else:
                unquoted += 1
            if unquoted == 2:
                if last > 0.05 * at:
                    return "quote_gap"
                break
    if len(Q) < 5:
        return "few_strikes"
    K = [k / 1000 for k in sorted(Q)]
    widths = [(K[min(i + 1, len(K) - 1)] - K[max(i - 1, 0)]) / (2 if 0 < i < len(K) - 1 else 1) for i in range(len(K))]
    total = sum(width / strike ** 2 * math.exp(chain.rate * T) * Q[round(strike * 1000)] for width, strike in zip(widths, K))
    variance = 2 / T * total - (F / (center / 1000) - 1) ** 2 / T
    return variance if variance > 0 else "not_positive"


def put_call(rows, unknown):
    out = {}
    for name, of in (("put_call_open_interest", "oi"), ("put_call_volume", "volume")):
        call, put = (sum(getattr(row, of) for row in rows if row.sign == sign) for sign in (1, -1))
        out[name] = put / call if call else None
        if not call:
            unknown[name] = "no_calls"
    return out


def date_volatility(chain, key):
    """Returns the row of a root and date."""
    strikes, T, (F, _), why = chain.series[key], chain.years[key], chain.forwards[key], {}
    row = {"forward": F, **dict.fromkeys(SMILE), **put_call([row for rights in strikes.values() for row in rights.values()], why), "unknown": why}
    nearest = min(strikes, key=lambda k: (abs(k / 1000 - F), k))
    mids = [row.mid for row in strikes[nearest].values()]
    row["atm_straddle"] = sum(mids) if len(mids) == 2 and all(mids) else None
    if row["atm_straddle"] is None:
        why["atm_straddle"] = "no_quote"
    points = smile(chain, key)
    w = at_the_money(points)
    if isinstance(w, str):
        why.update(dict.fromkeys(SMILE, w))
        return row
    def sigma(w):
        return 100 * math.sqrt(w / T)
    row["atm_volatility"] = sigma(w)
    row["expected_move"] = None if chain.mismatch else chain.S * math.sqrt(w)
    if chain.mismatch:
        why["expected_move"] = "spot_mismatch"
    for name, d1 in DELTAS.items():
        call, put = w_at_d1(points, -d1), w_at_d1(points, d1)
        if call and put:
            row["risk_reversal_" + name], row["butterfly_" + name] = sigma(call) - sigma(put), (sigma(call) + sigma(put)) / 2 - sigma(w)
        else:
            why["risk_reversal_" + name] = why["butterfly_" + name] = "not_bracketed"
    variance = model_free(chain, key)
    if isinstance(variance, str):
        why["model_free_volatility"] = variance
    else:
        row["model_free_volatility"] = 100 * math.sqrt(variance)
    return row


def third_friday(day):
    return nth(day.year, day.month, 4, 3)


def of_the_vix(chain, key):
    """Says whether Cboe takes a root and date for VIX."""
    friday = key[1] + DAY * ((4 - key[1].weekday()) % 7)
    last = friday
    while not closing(last):
        last -= DAY
    return key[1] == last and (friday == third_friday(friday)) == (chain.settlement[key[0]] == "am")


def month(rows, name, power=1):
    """Returns the figure for 30 days, or None. power 2: of total variance."""
    T = 30 / 365
    near = max((t for t in rows if 7 / 365 <= t <= T and rows[t][name] is not None), default=None)
    far = min((t for t in rows if t > T and rows[t][name] is not None), default=None)
    if near is None or far is None:
        return None
    if power == 2:
        a, b = rows[near][name] ** 2 * near, rows[far][name] ** 2 * far
        return math.sqrt((a + (b - a) * (T - near) / (far - near)) / T)
    a, b = rows[near][name], rows[far][name]
    return a + (b - a) * (T - near) / (far - near)


def realised(days, n):
    """Returns the realised volatility of the last n closes, or the reason why it is unknown."""
    closes = [(dt.date.fromisoformat(day["session"]), day["close"]) for day in days if day["close"] is not None][-n - 1:]
    if len(closes) <= n:
        return "few_sessions"
    first, last = closes[0][0], closes[-1][0]
    m = sum(1 for i in range((last - first).days) if closing(first + DAY * (i + 1)))
    if m > 1.25 * n:
        return "missing_sessions"
    moves = [math.log(b / a) for (_, a), (_, b) in zip(closes, closes[1:])]
    if any(abs(move) > math.log(1.5) for move in moves):
        return "price_jump"
    return 100 * math.sqrt(252 / m * sum(move * move for move in moves))


def verify_history(table, data, unknown, chain, own, days):
    """Checks the figures that rest on the stored sessions. own has those of the chain, and gets the reasons."""
    why, now = own["unknown"], own["atm_30d"]
    over = chain.q >= at(chain.session, closing(chain.session))
    days = days + [{"session": str(chain.session), "close": chain.spot if over else None, "atm_30d": now}]
    values = [day["atm_30d"] for day in days if day["atm_30d"] is not None]
    own.update(sessions=len(values), rank_1y=None, percentile_1y=None, implied_minus_realised=None)
    reason = "no_expirations" if now is None else "few_sessions" if len(values) < 60 else None
    if reason:
        why.update(rank_1y=reason, percentile_1y=reason)
    else:
        own["percentile_1y"] = 100 * sum((x < now) + (x == now) / 2 for x in values) / len(values)
        if max(values) > min(values):
            own["rank_1y"] = 100 * (now - min(values)) / (max(values) - min(values))
        else:
            why["rank_1y"] = "no_range"
    for name, n in (("realised_20d", 20), ("realised_60d", 60)):
        x = realised(days, n)
        own[name] = None if isinstance(x, str) else x
        if isinstance(x, str):
            why[name] = x
    if own["realised_20d"] is None:
        why["implied_minus_realised"] = why["realised_20d"]
    elif now is None:
        why["implied_minus_realised"] = "no_expirations"
    else:
        own["implied_minus_realised"] = now - own["realised_20d"]
    del own["unknown"]
    for name, x in own.items():
        table.check(f"§1.11 {name}", data[name], x, 2e-3 if name in ("rank_1y", "percentile_1y") else 2e-4)
    table.check("§1.11 unknown", unknown, why)


def verify_volatility(table, answer, chain, days):
    data, quality = answer["data"], answer["meta"]["quality"]
    chain.price(answer["meta"]["receipt"]["parameters"]["risk_free_rate"])
    for row in chain.rows.values():
        if not row.oi or not row.v:
            chain.skipped["no_volatility" if row.oi else "no_open_interest"] += 1
    table.check("§1.0 spot_gap_pct", quality["spot_gap_pct"], chain.gap, 2e-4)
    table.check("§1.0 effective_spot", data["effective_spot"], chain.S, 0.01)
    rows, by_T, counts = {}, {}, collections.Counter(listed=len(chain.series), used=0, under_one_hour=0, no_parity_forward=0)
    for key in sorted(chain.series, key=lambda key: (key[1], chain.settlement[key[0]])):
        near = chain.settles[key] - chain.q < dt.timedelta(hours=1)
        kept = not near and chain.forwards[key][1] == "parity"
        counts["used" if kept else "under_one_hour" if near else "no_parity_forward"] += 1
        if kept:
            by_T[key] = rows[f"{key[1]} {chain.settlement[key[0]]}"] = date_volatility(chain, key)
    table.check("§1.11 quality.expirations", quality["expirations"], dict(counts))
    tolerances = {"forward": 0.01, **dict.fromkeys(SMILE, 2e-4), "expected_move": 0.01, "atm_straddle": 0.01, "put_call_open_interest": 2e-4,
                  "put_call_volume": 2e-4, "unknown": 0}
    table.columns("§1.11 expirations", {f"{row['expiration']} {row['settlement']}": row for row in data["expirations"]}, rows, tolerances)
    dates = {chain.years[key]: row for key, row in by_T.items()}
    vix = {chain.years[key]: row for key, row in by_T.items() if data["symbol"] != "SPX" or of_the_vix(chain, key)}
    why = {}
    own = {"atm_30d": month(dates, "atm_volatility", 2), "model_free_30d": month(vix, "model_free_volatility", 2),
           "risk_reversal_25_30d": None, "term_slope": None, **put_call(chain.rows.values(), why), "unknown": why}
    quarter = [t for t, row in dates.items() if row["atm_volatility"] is not None and 45 / 365 <= t <= 135 / 365]
    if own["atm_30d"] is not None:
        with_atm = {t: row for t, row in dates.items() if row["atm_volatility"] is not None}
        around = max(t for t in with_atm if 7 / 365 <= t <= 30 / 365), min(t for t in with_atm if t > 30 / 365)
        own["risk_reversal_25_30d"] = month({t: dates[t] for t in around}, "risk_reversal_25")
        if quarter:
            own["term_slope"] = dates[min(quarter, key=lambda t: (abs(t - 90 / 365), t))]["atm_volatility"] - own["atm_30d"]
    for name, reason in (("atm_30d", "no_expirations"), ("model_free_30d", "no_expirations"), ("term_slope", "no_expirations"),
                         ("risk_reversal_25_30d", "no_expirations" if own["atm_30d"] is None else "not_bracketed")):
        if own[name] is None:
            why[name] = reason
    verify_history(table, data, quality["unknown"], chain, own, days)


# §4: {u}-max-pain

def pain(series, spot):
    """Returns the figures of the series of a date, one settlement or both, and the payout curve."""
    calls, puts = ([(k, s[k][right].oi) for s in series for k in s if right in s[k]] for right in "CP")
    payouts = {}  # in tenths of a dollar: of 100 contracts, and strikes in thousandths
    for X in sorted({k for s in series for k in s}):
        payouts[X] = sum(oi * (X - k) for k, oi in calls if X > k), sum(oi * (k - X) for k, oi in puts if k > X)
    call, put, least = sum(oi for _, oi in calls), sum(oi for _, oi in puts), min(map(sum, payouts.values()))
    figures = dict.fromkeys(("max_pain", "max_pain_range", "flatness", "payout_at_max_pain_dollars", "distance_pct"))
    if call + put > 0:
        flat, near = ([X / 1000 for X, sides in payouts.items() if 100 * sum(sides) <= n * least] for n in (100, 101))
        best = min(flat, key=lambda X: (abs(X - spot), X))
        figures = {"max_pain": best, "max_pain_range": [flat[0], flat[-1]], "flatness": {"low": near[0], "high": near[-1]},
                   "payout_at_max_pain_dollars": least / 10, "distance_pct": (best - spot) / spot * 100}
    figures.update(call_open_interest=call, put_open_interest=put, put_call_oi_ratio=put / call if call else None)
    return figures, {X / 1000: dict(zip(PAYOUTS, (c / 10, p / 10, (c + p) / 10))) for X, (c, p) in payouts.items()}


def open_interest(series):
    """Returns strike, calls and puts of each strike with open interest."""
    sums = collections.defaultdict(lambda: [0, 0])
    for k, rights in ((k, rights) for strikes in series for k, rights in strikes.items()):
        for right, row in rights.items():
            sums[k]["CP".index(right)] += row.oi
    return [[k / 1000, *sides] for k, sides in sorted(sums.items()) if any(sides)]


def verify_pain(table, answer, chain):
    data = answer["data"]
    dates = {}
    for (root, date), strikes in sorted(chain.series.items(), key=lambda item: (item[0][1], item[0][0])):
        row = dates.setdefault(str(date), {"settlement": chain.settlement[root], "open_interest": 0})
        row["settlement"] = row["settlement"] if row["settlement"] == chain.settlement[root] else "mixed"
        row["open_interest"] += sum(row.oi for rights in strikes.values() for row in rights.values())
    table.columns("§4 expirations", {row["expiration"]: row for row in data["expirations"]}, dates, {"settlement": 0, "open_interest": 0})
    date = dt.date.fromisoformat(data["expiration"])
    series = {settlement: chain.series[root, date] for root, settlement in chain.settlement.items() if (root, date) in chain.series}
    if not series:
        table.check("§4 expiration", data["expiration"], None)
        return
    figures, _ = pain(list(series.values()), chain.spot)
    figures.update(settlement="mixed" if len(series) > 1 else next(iter(series)), days_to_expiration=(date - chain.session).days)
    tolerances = {"payout_at_max_pain_dollars": 1, "distance_pct": 2e-4, "put_call_oi_ratio": 2e-4}
    for name, own in figures.items():
        table.check(f"§4 {name}", data[name], own, tolerances.get(name, 0))
    own = {side: pain([s], chain.spot)[0] for side, s in series.items()}
    table.columns("§4 by_settlement", {side: row for side, row in data["by_settlement"].items() if row}, own,
                  {name: tolerances.get(name, 0) for name in next(iter(own.values()))})
    parts = ("", data, [*series.values()]), *((side + ".", row, [series[side]]) for side, row in data["by_settlement"].items() if row and side in series)
    for name, part, of in parts:
        table.columns(f"§4 {name}payout_curve", {row["settlement_price"]: row for row in part["payout_curve"]}, pain(of, chain.spot)[1],
                      dict.fromkeys(PAYOUTS, 1))
        table.check(f"§4 {name}open_interest", [[row["strike"], row["call"], row["put"]] for row in part["open_interest"]], open_interest(of))


# §0: the receipt

def verify_receipt(table, body, receipt, folder):
    """Checks every digest. Returns the documents that the receipt names, by name, without altered ones."""
    text = body.decode()
    start = text.index('"data":') + len('"data":')
    _, end = json.JSONDecoder().raw_decode(text, start)
    table.check("§0 data_sha256", receipt["data_sha256"], hashlib.sha256(text[start:end].encode()).hexdigest())
    table.check("§0 input_sha256", receipt["input_sha256"], [i["sha256"] for i in receipt["inputs"]])
    documents = {}
    for name, digest in ((i["name"], i["sha256"]) for i in receipt["inputs"]):
        own = None
        try:
            path = pathlib.Path(folder, os.path.basename(digest))
            packed = path.with_name(path.name + ".gz")
            document = gzip.decompress(packed.read_bytes()) if packed.exists() else path.read_bytes()
            own = hashlib.sha256(document).hexdigest()
        except OSError as e:
            print(e, file=sys.stderr)
        table.check(f"§0 input {name}", digest, own)
        if own == digest:
            documents[name] = document
    return documents


def verify(table, answer, documents, strike):
    """Recomputes an answer from its documents."""
    meta, contracts = answer["meta"], answer["meta"]["quality"]["contracts"]
    for kind, dates in json.loads(documents.get("state/closed-dates", "{}")).items():
        further[kind] = dates or ()
    symbol = answer["data"]["symbol"]
    name = f"options/{'_' * (symbol in INDICES)}{symbol}.json"
    chain, previous = (Chain(symbol, json.loads(documents[n])) if n in documents else None for n in (name, "previous/" + name))
    table.check("§0 as_of", meta["as_of"], rfc3339(chain.as_of))
    table.check("§0 captured_at", meta["captured_at"], rfc3339(chain.captured_at))
    table.check("§0 session_date", meta["session_date"], str(chain.session))
    table.show("§0 q, the quote instant", rfc3339(chain.q))
    table.check("§0 spot", answer["data"]["spot"], chain.spot, 0.01)
    if meta["receipt"]["method"] == "gex/6":
        verify_gamma(table, answer, chain, previous, strike)
    elif meta["receipt"]["method"] == "volatility/2":
        verify_volatility(table, answer, chain, json.loads(documents["state/volatility-history"]))
    else:
        verify_pain(table, answer, chain)
    table.check("§1.7 listed", contracts["listed"], chain.listed)
    for reason, served in contracts["skipped"].items():
        table.check(f"§1.7 skipped.{reason}", served, chain.skipped[reason])


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("answer", help="URL of an answer, such as http://127.0.0.1:8080/api/v1/gex/spx, or a file")
    parser.add_argument("--documents", metavar="DIR", required=True, help="documents of the server, <data-dir>/<source>/objects, or a folder "
                        "of decoded files <sha256>")
    parser.add_argument("--strike", type=float, help="show volatility and gamma of this strike in every expiration; default: "
                        "of the strike nearest to the spot, in the first expiration")
    args = parser.parse_args()
    try:
        url = args.answer if "://" in args.answer else pathlib.Path(args.answer).resolve().as_uri()
        with urllib.request.urlopen(url, timeout=10) as response:
            body = response.read()
        answer = json.loads(body)
        receipt = answer["meta"]["receipt"]
        if receipt["method"] not in ("gex/6", "volatility/2", "maxpain/2"):
            parser.error(f"the answer has method {receipt['method']}; this program knows gex/6, volatility/2 and maxpain/2")
    except (OSError, ValueError, LookupError, TypeError) as e:
        parser.error(f"no answer in {args.answer}: {e!r}")
    table = Table()
    documents = verify_receipt(table, body, receipt, args.documents)
    if len(documents) == len(receipt["inputs"]):
        verify(table, answer, documents, args.strike)
    else:
        print("Nothing is recomputed without the documents that the receipt names.")
    print(f"{table.checks} checks, {len(table.differing)} differ", *table.differing, sep="\n  ")
    return 1 if table.differing else 0


if __name__ == "__main__":
    sys.exit(main())
