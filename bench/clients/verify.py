#!/usr/bin/env python3
"""Verifies answers of strikecache with Python's standard library alone.

The program reads answers and the documents that their receipts name, and checks every digest. Then it computes the figures
again from the documents, as the methods page says (compute/METHODS.md; § names a section of that page). It prints a table of
what was served, what was recomputed and the difference. Of a list, it prints the worst cell of each column.

Exit code: 0 if all agrees, 1 if something differs or a document is missing, 2 if the usage is bad or an answer could not be read.
"""
import argparse
import collections
import datetime as dt
import functools
import gzip
import hashlib
import itertools
import json
import math
import os
import pathlib
import re
import statistics
import sys
import time
import traceback
import types
import urllib.error
import urllib.request

DAY, MINUTE = dt.timedelta(days=1), dt.timedelta(minutes=1)
YEAR = 365 * 86400  # seconds, §1.1
INDICES = {"SPX": {"SPX": "am", "SPXW": "pm"}, "XSP": {"XSP": "pm"}, "NDX": {"NDX": "am", "NDXP": "pm"},
           "RUT": {"RUT": "am", "RUTW": "pm"}, "DJX": {"DJX": "am"}, "OEX": {"OEX": "pm"}, "XEO": {"XEO": "pm"},
           "MRUT": {"MRUT": "pm"}, "XND": {"XND": "pm"}}  # settlement by root, §1. Every other symbol is a fund or a stock
FUNDS = set("""DBA DBB DBC DBO DIA DRAM EEM EFA EWY EWZ FXI GLD HYG IBIT IEF IVV IWM IWN IWO IYR KBE KRE KWEB LQD MDY MOO OEF QQQ RSP SLV SMH SOXL
    SOXX SPY SVIX SVXY TIP TLT UNG UUP UVIX UVXY VIXM VIXY VOO VXX VXZ XHB XLB XLC XLE XLF XLI XLK XLP XLRE XLU XLV XLY XME XOP XRT""".split())
NIGHTS = {"SPX": [("2015-03-09", 0, (3, 0), (9, 15)), ("2021-11-22", -1, (20, 15), (9, 15)), ("2024-08-26", -1, (20, 15), (9, 25))],
          "RUT": [("2026-02-09", -1, (20, 15), (9, 25))],  # §0: from, the day on which a night begins, its hours
          "stock": [("2026-07-13", 0, (7, 30), (9, 25))]}  # only where a contract has traded in them, as in the quarter of an hour after their sessions
HOLIDAYS = {"SPX": "2022-05-30", "RUT": "2026-02-09"}  # when sessions of holidays began
added = {"closed": (), "early": ()}  # dates that the operator added to the calendar: the input state/closed-dates


# §0: the calendar, the clocks, the numbers

def nth(year, month, weekday, n):
    """Returns the nth weekday, 0 for Monday, of a month."""
    first = dt.date(year, month, 1)
    return first + DAY * ((weekday - first.weekday()) % 7 + 7 * (n - 1))


@functools.lru_cache(None)
def holidays(year):
    """Returns the dates of a year, 1982 to 2048, on which the New York exchanges are closed."""
    moon = (19 * (year % 19) + 24) % 30  # Easter, by the rule of Gauss
    easter = dt.date(year, 3, 22) + DAY * (moon + (2 * (year % 4) + 4 * (year % 7) + 6 * moon + 5) % 7)
    fixed = [dt.date(year, 1, 1), dt.date(year, 7, 4), dt.date(year, 12, 25)] + [dt.date(year, 6, 19)] * (year >= 2022)
    observed = {d + DAY * {5: -1, 6: 1}.get(d.weekday(), 0) for d in fixed}  # a New Year on a Saturday is not observed in its year
    return observed | {
        easter - 2 * DAY, nth(year, 1, 0, 3), nth(year, 2, 0, 3), nth(year, 6, 0, 1) - 7 * DAY, nth(year, 9, 0, 1), nth(year, 11, 3, 4),
        dt.date(2018, 12, 5), dt.date(2025, 1, 9)}  # the last two were days of mourning


@functools.lru_cache(None)
def closing(day):
    """Returns the hour at which the session of a date ends, 16 or 13, or None for a date without a session."""
    if day.weekday() > 4 or day in holidays(day.year) or str(day) in added["closed"]:
        return None
    early = (day.month, day.day) in ((7, 3), (12, 24)) or day == nth(day.year, 11, 3, 4) + DAY
    return 13 if early or str(day) in added["early"] else 16


def on_or_before(day):
    """Returns the last session on or before a date."""
    while not closing(day):
        day -= DAY
    return day


def sessions(first, last):
    """Returns the sessions of [first, last]."""
    return [day for day in (first + DAY * i for i in range((last - first).days + 1)) if closing(day)]


@functools.lru_cache(None)
def new_york(day):
    """Returns the time zone of a date in New York, by the rule since 2007. Some systems have no time zone data."""
    return dt.timezone(dt.timedelta(hours=-4 if nth(day.year, 3, 6, 2) <= day < nth(day.year, 11, 6, 1) else -5))


def at(day, hour, minute=0):
    """Returns an hour of a New York date as an instant."""
    return dt.datetime.combine(day, dt.time(hour, minute), new_york(day))


def in_new_york(instant):
    return instant.astimezone(new_york(instant.astimezone(new_york(instant.date())).date()))


def clock(text, zone):
    """§0: returns a time of a document as an instant. Where the text names no zone, zone(date) is its zone."""
    text = re.sub(" ?(Z|UTC|GMT)$", "+00:00", text.strip().upper())
    time = dt.datetime.fromisoformat(re.sub(" ([+-])", r"\1", text))
    return time if time.tzinfo else time.replace(tzinfo=zone(time.date()))


def rfc3339(instant):
    return f"{instant.astimezone(dt.timezone.utc):%Y-%m-%dT%H:%M:%SZ}"


def night(symbol, day):
    """Returns the hours of a date, outside the session, in which quotes of a symbol move, and whether only trades show them, or None."""
    group = {"SPX": "SPX", "XSP": "SPX", "RUT": "RUT", "MRUT": "RUT"}.get(symbol) or ("index" if symbol in INDICES or to_quarter_past(symbol, day) else "stock")
    if closing(day):
        found = [row for row in NIGHTS.get(group, ()) if row[0] <= str(day)]
        return found and (at(day + found[-1][1] * DAY, *found[-1][2]), at(day, *found[-1][3]), group == "stock") or None
    noon = day in holidays(day.year) and day.weekday() < 5 and day.month not in (3, 4, 12) and (day.month, day.day) > (1, 2)
    noon = noon and str(day) not in ("2018-12-05", "2025-01-09") and HOLIDAYS.get(group, "9") <= str(day)
    if noon or group == "SPX" and str(day) == "2025-01-09":  # the night before a day of mourning took place
        return at(day - DAY, 20, 15), at(day, 11, 30) if noon else at(day, 9, 25), False
    return None


def to_quarter_past(symbol, day):
    """Says whether options of a fund trade until 16:15 on a date."""
    return symbol in FUNDS and (symbol != "IBIT" or str(day) >= "2025-11-10")


def traded_in(traded, opens, ends):
    """Says whether a contract has its last trade in hours, but for their first 90 seconds."""
    return any(opens + 1.5 * MINUTE <= time <= ends for time in map(trade_time, traded) if time)


def quote_instant(symbol, as_of, captured_at, traded=()):
    """Returns q, the instant that the quotes of options describe. traded: when contracts traded last, as the document has it."""
    q = max(as_of, captured_at - dt.timedelta(minutes=15))
    day = in_new_york(q).date() + DAY
    while True:
        hours = []
        if closing(day):
            hours.append((at(day, 9, 30), at(day, closing(day), 15 * (symbol in INDICES or to_quarter_past(symbol, day)))))
        opens, ends, shown = night(symbol, day) or (None, None, False)
        if opens and (not shown or traded_in(traded, opens, ends)):
            hours.append((opens, ends))
        evening = closing(day) and at(day, closing(day))
        if evening and shown and traded_in(traded, evening, evening + 15 * MINUTE):
            hours.insert(0, (evening, evening + 15 * MINUTE))
        for opens, ends in hours:
            if q >= opens:
                return min(q, ends)
        day -= DAY


def futures_settle(day):
    """§0: returns the instant of the settlements of VIX futures of a date."""
    return at(day, closing(day) or 16, 15 * (str(day) < "2020-10-26"))


def open_interest_date(captured_at):
    """§1.3: returns the session whose open interest a document has, and the state of the count."""
    day = in_new_york(captured_at).date()
    if not closing(day):
        return on_or_before(on_or_before(day) - DAY), "settled"
    before = on_or_before(day - DAY)
    return (before, "settled") if captured_at >= at(day, 7, 15) else (on_or_before(before - DAY), "updating")


def number(x, low, high):
    """Returns a number of a document, or None for a number that counts as absent: one outside a range, or neither 0 nor at least 1e-6."""
    return x if isinstance(x, (int, float)) and low <= x <= high and (x == 0 or abs(x) >= 1e-6) else None


def ratio(a, b, scale=1):
    return scale * a / b if b else None


def cents(K):
    """Returns a strike, or None, as it is served: with 2 decimals, half away from zero."""
    return K and (round(K * 1000) + 5) // 10 / 100


class Quote:
    """The head of a chain, or a quote."""

    def __init__(self, document, low=1e-6, high=1e6):
        data = document["data"]
        self.as_of = clock(data["last_trade_time"], new_york)
        self.captured_at = clock(document["timestamp"], lambda date: dt.timezone.utc)
        self.session = on_or_before(in_new_york(self.as_of).date())
        price, moved, percent = (data.get(name) for name in ("current_price", "price_change", "price_change_percent"))
        self.bad_numbers = sum(bool(x) and number(x, low, high) is None for x in (price, data.get("close")))
        self.close = number(data.get("close"), low, high)
        self.spot = number(price, low, high) or self.close
        self.change = percent if isinstance(percent, (int, float)) and -100 <= percent <= 1000 else None
        self.bad_numbers += percent is not None and self.change is None
        if number(price, low, high) and isinstance(moved, (int, float)):
            percent = moved / (price - moved) * 100 if number(price - moved, low, high) else math.inf
            self.change = percent if -100 <= percent <= 1000 else self.change
            self.bad_numbers += not -100 <= percent <= 1000


# §1.1: the rows of a chain

NUMBERS = (("open_interest", 0, 1e8), ("volume", 0, 1e8), ("bid", 0, 1e6), ("ask", 0, 1e6), ("last_trade_price", 0, 1e6), ("iv", 0, 100),
           ("delta", -1, 1), ("gamma", -100, 100))
SKIPPED = "bad_symbol duplicate bad_number unknown_root settled".split()  # the reasons to skip a row, in their order


class Contract:
    """A row with T > 0. sign is 1 for a call, -1 for a put. mid is None unless the quote is usable (§1.1). counted: whether it has a volume."""
    __slots__ = "symbol sign strike oi volume bid ask last iv delta gamma traded mid counted".split()


class Strike:
    """A strike of a series: call and put, and the volatility v = σ√T of both, 0 without one. off and wrong: §1.1."""
    __slots__ = "series K call put v step floored off wrong usual".split()

    @property
    def rows(self):
        return [row for row in (self.call, self.put) if row]

    @property
    def mids(self):
        """The mids of call and put, None without both."""
        return (self.call.mid, self.put.mid) if self.call and self.put and self.call.mid and self.put.mid else None


class Series:
    """The contracts of a root and date with T > 0. Chain.price sets F and its source."""

    def __init__(self, root, date, settlement, q):
        self.root, self.date, self.settlement, self.strikes = root, date, settlement, {}
        self.unknown = []  # strike, sign and volume, or None, of the contracts whose open interest is not known
        self.session = on_or_before(date)  # in which it settles
        self.settles = at(self.session, 9, 30) if settlement == "am" else at(self.session, closing(self.session))
        self.seconds = (self.settles - q).total_seconds()
        self.T, self.name = self.seconds / YEAR, f"{date} {settlement}"

    @property
    def rows(self):
        return [row for strike in self.strikes for row in strike.rows]

    def symbol(self, K, sign):
        return f"{self.root}{self.date:%y%m%d}{'P' if sign < 0 else 'C'}{round(K * 1000):08}"

    def add_counterparts(self):
        """The exchange lists both rights: where one has no row, each contract of the other stands for a row that is missing."""
        listed = [(row.strike.K, row.sign) for row in self.rows] + [(K, sign) for K, sign, _ in self.unknown]
        if len({sign for _, sign in listed}) == 1:
            self.unknown += [(K, -sign, None) for K, sign in listed]


def not_known(some, key=lambda K: None):
    """§0: returns of which sides (key of the strike, sign) of some series over 1 % of the contracts lack open interest, and which volume."""
    rows, interest, traded = collections.Counter(), collections.Counter(), collections.Counter()
    for series in some:
        for row in series.rows:
            side = key(row.strike.K), row.sign
            rows[side] += 1
            traded[side] += not row.counted
        for K, sign, volume in series.unknown:
            rows[key(K), sign] += 1
            interest[key(K), sign] += 1
            traded[key(K), sign] += volume is None
    return tuple({side for side, n in lacking.items() if 100 * n > rows[side]} for lacking in (interest, traded))


class Chain(Quote):
    """A document such as options/_SPX.json. contracts has the rows with T > 0 by symbol, series in the order of by_expiration."""

    def __init__(self, symbol, document):
        super().__init__(document)
        self.symbol, self.shares = symbol, symbol not in INDICES
        self.american, self.settlement = self.shares or symbol == "OEX", INDICES.get(symbol, {symbol.replace(".", ""): "pm"})
        self.q = quote_instant(symbol, self.as_of, self.captured_at, {option.get("last_trade_time") for option in document["data"]["options"]})
        self.unverified = in_new_york(self.q).date() > dt.date(2027, 12, 31)  # the hours of options
        self.settled = self.q >= at(self.session, closing(self.session))  # at the close of its session
        self.contracts, self.heads, self.seen, self.rate = {}, {}, set(), None
        self.skipped = collections.Counter()
        for option in document["data"]["options"]:
            self.skipped[self.add(option)] += 1
        self.listed, rank = len(document["data"]["options"]), {"am": 0, "pm": 1}
        self.series = sorted((s for s in self.heads.values() if s and (s.strikes or s.unknown)), key=lambda s: (s.date, rank[s.settlement]))
        for series in self.series:
            series.strikes = [series.strikes[k] for k in sorted(series.strikes)]
            series.add_counterparts()

    def head(self, text):
        """Returns the series of a root and date such as SPXW261218, or None for none."""
        found = re.fullmatch(r"([A-Z]+[0-9]*)([0-9]{2})([0-9]{2})([0-9]{2})", text) if len(text) <= 12 else None
        try:
            root, date = found[1], dt.date(2000 + int(found[2]), int(found[3]), int(found[4]))
        except (TypeError, ValueError):  # no match, or no date
            return None
        return Series(root, date, self.settlement.get(root), self.q)

    def add(self, option):
        """Adds a row, or returns the first reason to skip the row."""
        symbol = option.get("option") or ""
        if len(symbol) == 21:  # OCC fills the root with spaces
            symbol = symbol[:6].rstrip(" ") + symbol[6:]
        text, right, k = symbol[:-9], symbol[-9:-8], symbol[-8:]
        if text not in self.heads:
            self.heads[text] = self.head(text)
        series = self.heads[text]
        if not series or right not in "CP" or not (k.isascii() and k.isdigit()):
            return "bad_symbol"
        given = [option.get(name) for name, _, _ in NUMBERS]
        values = [number(x, low, high) for x, (_, low, high) in zip(given, NUMBERS)]
        if None in values:
            self.bad_numbers += sum(x is not None and value is None for x, value in zip(given, values))
        if symbol in self.seen:
            return "duplicate"
        self.seen.add(symbol)
        row = Contract()
        row.oi, row.volume, row.bid, row.ask, row.last, row.iv, row.delta, row.gamma = values
        if row.oi is None:
            if series.settlement and series.seconds > 0:
                series.unknown.append((int(k) / 1000, 1 if right == "C" else -1, row.volume))
            return "bad_number"
        if not series.settlement:
            return "unknown_root"
        if series.seconds <= 0:
            return "settled"
        row.counted = row.volume is not None
        row.symbol, row.sign, row.volume, row.traded = symbol, 1 if right == "C" else -1, row.volume or 0, option.get("last_trade_time")
        row.mid = (row.bid + row.ask) / 2 if row.bid and row.ask and row.bid <= row.ask and round(row.ask / row.bid, 9) <= 3 else None
        strike = series.strikes.get(k)
        if not strike:
            strike = series.strikes[k] = Strike()
            strike.series, strike.K, strike.call, strike.put, strike.off, strike.wrong = series, int(k) / 1000, None, None, False, False
        if right == "C":
            strike.call = row
        else:
            strike.put = row
        row.strike = strike
        self.contracts[symbol] = row
        return None

    def price(self, rate):
        """Sets the spot, the forwards and the volatilities."""
        if self.rate == rate:
            return self
        self.rate, self.model = rate, None
        for series in self.series:
            series.F, series.source = parity_forward(series, rate, self.spot if self.american else None), "parity"
        self.find_spot(rate)
        parity = sorted((s for s in self.series if s.F), key=lambda s: s.T)
        beyond = carry_beyond(parity, rate)
        for series in self.series:
            if not series.F:
                series.F, series.source = other_forward(series, parity, self.S, beyond)
        for series in self.series:
            volatilities(series, rate)
        self.parity, self.used = parity, [row for series in self.series for s in series.strikes if s.v for row in s.rows if row.oi]
        return self

    def find_spot(self, rate):
        """Sets the spot and its source. A series whose forward cannot be one of this spot loses the forward."""
        moment, share, day = dt.timedelta(minutes=5), self.shares, in_new_york(self.q).date()
        beside = abs(self.q - self.as_of) <= moment
        closed = share and self.close and self.as_of - self.q > moment
        live = beside and (share or not closing(day) or self.q < at(day, closing(day)))
        self.R = R = self.close if closed else self.spot
        for series in self.series:
            series.x, series.tolerance = series.F and math.log(series.F / R), series.F and tolerance(series, rate)
        near = sorted((s for s in self.series if s.F and s.seconds <= 60 * 86400), key=lambda s: s.T)
        found = fit(near, share, closed or beside)
        self.implied = None if found is None else number(R * math.exp(found), 1e-6, 1e6)
        self.gap = (self.implied / self.spot - 1) * 100 if self.implied else None
        dividend = share and found is not None and near[0].date > day and -0.02 <= found < -near[0].tolerance
        agrees = found is None or dividend or abs(found) <= near[0].tolerance
        if self.implied:
            self.mismatch = abs(self.implied / R - 1) > 0.1  # the document contradicts itself: dollars are null
        else:
            self.mismatch = any(abs(s.x) > math.log(1.1) + s.T + s.tolerance for s in self.series if s.F)
        self.S, self.source = self.spot, "last" if share else "index" if live and agrees else "index_stale"
        if not (share and self.mismatch or live and agrees):
            if closed and (dividend or not self.implied):
                self.S, self.source = R, "close"
            elif self.implied:
                self.S, self.source = self.implied, "implied"
        self.apart = not beside and self.source in ("last", "index_stale") and not (share and self.mismatch)
        if found is not None and not share:
            for series in near:
                series.F = series.F if series.on else None
        if not self.apart and not self.mismatch:
            refuse(self.series, self.S, day if share else None)


# §§1.0 and 1.1: rate, forwards, implied spot, volatility

def own_rate(chain):
    """Returns the rate at which the quotes of a chain discount, or None."""
    rates = []
    for series in [] if chain.american else chain.series:
        if 45 * 86400 <= series.seconds <= 400 * 86400:
            points = [(s.K, s.call.mid - s.put.mid, sum(row.ask - row.bid for row in s.rows)) for s in series.strikes
                      if s.call and s.put and s.call.mid and s.put.mid]
            center = min(points, key=lambda p: (round(abs(p[1]), 6), p[0]))[0] if points else 0
            points = [(K, d, 1 / max(spread, 1e-5 * center)) for K, d, spread in points if abs(K - center) <= 0.25 * center]
            if len(points) >= 5:
                rates.append(series_rate(points, series.T))
    rates = [rate for rate in rates if rate is not None]
    return round(max(-0.01, min(statistics.median(rates), 0.1)), 6) if len(rates) >= 3 else None


def series_rate(points, T):
    """Returns the rate of a series from (K, C − P, weight), or None."""
    total = math.fsum(w for *_, w in points)
    mean_K, mean_d = (math.fsum(w * p[i] for *p, w in points) / total for i in (0, 1))
    spread = math.fsum(w * (K - mean_K) ** 2 for K, _, w in points)
    beta = math.fsum(w * (K - mean_K) * (d - mean_d) for K, d, w in points) / spread
    off = math.fsum(w * (d - mean_d - beta * (K - mean_K)) ** 2 for K, d, w in points) / (len(points) - 2)
    return -math.log(-beta) / T if beta < 0 and math.sqrt(off / spread) <= 0.005 * -beta * T else None



def parity_forward(series, rate, price):
    """Returns the forward of a series by put-call parity, or None, and says which strikes are off. price: S₀ of American options."""
    votes, D, best = [], math.exp(-rate * series.T), (0, None)
    for strike in series.strikes:
        strike.off = False
        if strike.mids:
            call, put = strike.mids
            votes.append((round(abs(call - put), 6), strike.K, call - put, strike))
    votes.sort(key=lambda vote: vote[:2])

    def middle(some):
        return statistics.median(K + difference / D for _, K, difference, _ in some[:7])

    def beyond(vote, V):
        """Returns by how much a strike is further off than its slack of European options."""
        _, K, difference, strike = vote
        spreads = sum(row.ask - row.bid for row in strike.rows)
        return round(abs(difference - D * (V - K)) - max(spreads, 0.2) - 0.05 * series.T * abs(V - K), 9)
    for i in range(0, len(votes) - 2, 7):
        V, voters = middle(votes[i:]), votes[i:i + 7]
        agree = sum(beyond(vote, V) <= 0 for vote in voters)
        best = max(best, (agree, V), key=lambda found: found[0])
        if 2 * agree > len(voters):
            break
    if not best[0]:
        return None
    V = best[1]
    for vote in votes:
        vote[3].off = beyond(vote, V) > (0 if price is None else abs(vote[1] * (1 - D)) + abs(price - D * V))
    forward = middle([vote for vote in votes if not vote[3].off])
    return forward if forward > 0 else None


def line(some, y=lambda series: math.log(series.F)):
    """Returns slope and intercept of the least squares of y, usually ln F, on T over some series."""
    points = [(series.T, y(series)) for series in some]
    mean_T, mean_y = (statistics.fmean(column) for column in zip(*points))
    slope = sum((T - mean_T) * (y - mean_y) for T, y in points) / sum((T - mean_T) ** 2 for T, _ in points)
    return slope, mean_y - slope * mean_T


def tolerance(series, rate):
    """Returns how far ln F may be off."""
    quoted = [strike for strike in series.strikes if strike.call and strike.put and strike.call.mid and strike.put.mid]
    atm = min(quoted, key=lambda strike: (abs(strike.K - series.F), strike.K))
    spread = sum(row.ask - row.bid for row in atm.rows)
    return max(0.0015, spread / 2 * math.exp(rate * series.T) / series.F)


def fit(near, share, known):
    """Returns ln(S_imp/R), or None without a fit. Of an index, series.on says whether a near series is on the line."""
    best = None
    for a in near:
        for b in near:
            if a.seconds - b.seconds >= 7 * 86400 and abs(a.x - b.x) <= a.T - b.T:
                c = (a.x - b.x) / (a.T - b.T)
                middle = sorted(abs(s.x - a.x - c * (s.T - a.T)) for s in near)[len(near) // 2]
                if best is None or middle < best[0]:
                    best = middle, c, a.x - c * a.T
    if best is None:
        return None
    _, c, L = best
    for series in near:
        series.on = share or abs(series.x - c * series.T - L) <= series.tolerance
    on = [series for series in near if series.on]
    if len(on) < 5 or 2 * len(on) <= len(near) or on[-1].seconds - on[0].seconds < 7 * 86400:
        return None
    if not share:
        return line(on, lambda series: series.x)[1]
    N = near[0].x - c * near[0].T
    return L if N < L - near[0].tolerance or N > L + 0.02 or known and abs(L) < abs(N) else N


def refuse(all_series, S, day):
    """Takes the forwards away that no arbitrage lets stand. day: of q, for a share."""
    parity = [(series, math.log(series.F / S)) for series in all_series if series.F]
    middle = statistics.median(x for _, x in parity) if parity else 0
    impossible = []
    for series, x in parity:
        most = series.T + series.tolerance
        least = -most - (0.02 if day and series.date > day else 0)
        if not least <= x <= most and abs(x - middle) > most:
            impossible.append(series)
    if 2 * len(impossible) < len(parity):
        for series in impossible:
            series.F = None


def carry_beyond(parity, rate):
    """Returns the carry per year after the last parity forward."""
    if parity and parity[-1].seconds - parity[0].seconds >= 30 * 86400:
        return max(-1, min(line(parity)[0], 1))
    return rate


def other_forward(series, parity, S, beyond):
    """Returns the forward of a series without its own, and its source."""
    if not parity:
        return S, "none"
    for other in parity:
        if other.date == series.date:
            return other.F, "other_settlement"
    T, (t0, y0) = series.T, (0, 0)
    for other in parity:
        t1, y1 = other.T, math.log(other.F / S)
        if T <= t1:
            return S * math.exp(y0 + (y1 - y0) * (T - t0) / (t1 - t0)), "interpolated"
        t0, y0 = t1, y1
    return S * math.exp(y0 + beyond * (T - t0)), "extrapolated"


def implied_volatility(price, F, K, call):
    """Solves the Black formula for v = σ√T. The price is undiscounted. None outside the no-arbitrage bounds.

    The price is convex in v below √(2|ln(F/K)|) and concave above, so Newton's steps from there do not overshoot the root.
    """
    if not max(F - K if call else K - F, 0) < price < (F if call else K):
        return None
    x, side, root = math.log(F / K), 1 if call else -1, math.sqrt(0.5)
    v = math.sqrt(2 * abs(x)) or 1e-9
    for _ in range(100):
        d1 = x / v + v / 2
        value = side / 2 * (F * math.erfc(-side * d1 * root) - K * math.erfc(side * (v - d1) * root))
        step = (value - price) / (F * math.exp(-d1 * d1 / 2) * 0.3989422804014327)
        v -= step
        if abs(step) <= 1e-13:
            break
    return v


def black(F, K, v, call):
    """Returns the undiscounted price of an option, never below 0 as the difference of two products can be by a last digit."""
    side, d1 = 1 if call else -1, math.log(F / K) / v + v / 2
    return max(side / 2 * (F * math.erfc(-side * d1 / math.sqrt(2)) - K * math.erfc(side * (v - d1) / math.sqrt(2))), 0)


def crossed(inside, side):
    """§1.1: marks wrong options of a list of (strike, row), the nearest the money first. inside are those in the money, in the same order."""
    inside, side = ([(strike, row) for strike, row in rows if row and row.mid and not strike.wrong] for rows in (inside, side))
    first, side = len(inside[:8]), inside[:8][::-1] + side
    pairs = [(j, i) for i, (_, far) in enumerate(side) for j in range(max(i - 8, 0), i) if i >= first and far.bid > side[j][1].ask]
    counts = collections.Counter(i for pair in pairs for i in pair)
    counts.update({i: 8 for i, (strike, _) in enumerate(side) if strike.off})
    for i, j in pairs:
        for one, other in ((i, j), (j, i)):
            if one >= first and counts[one] >= counts[other]:
                side[one][0].wrong = True


def between_points(points, x):
    """Returns w at x, or None outside the points (x, w, …)."""
    for a, b in zip(points, points[1:]):
        if a[0] <= x <= b[0]:
            return w_at(a, b, x)
    return points[0][1] if points and points[0][0] == x else None


def wrong_beside(series, growth):
    """§1.1: marks the options out of the money of strikes that are off, where the option in the money is nearer the others."""
    sure = [(math.log(strike.K / series.F), strike.v ** 2) for strike in series.strikes if strike.v and not strike.off]
    for strike in series.strikes if sure else ():
        if strike.v and strike.off:
            x = min(max(math.log(strike.K / series.F), sure[0][0]), sure[-1][0])
            expected, inside = math.sqrt(between_points(sure, x)), strike.K < series.F
            other = implied_volatility((strike.call if inside else strike.put).mid * growth, series.F, strike.K, inside)
            if other and abs(other - expected) < abs(strike.v - expected):
                strike.wrong, strike.v = True, None


def is_usual(iv, usual):
    return iv <= 1.25 * usual and usual <= 1.25 * iv


def usual_volatilities(series):
    """Sets usual of each strike: the median of the published iv around it, 0 where they do not agree."""
    known = []
    for strike in series.strikes:
        strike.usual = 0
        near, far = (strike.call, strike.put) if strike.K >= series.F else (strike.put, strike.call)
        iv = next((row.iv for row in (near, far) if row and (row.iv or 0) >= 0.01), None)
        if iv:
            known.append((strike, iv))
    for i, (strike, _) in enumerate(known):
        reach = min(4, i, len(known) - 1 - i)
        around = [iv for _, iv in known[i - reach:i] + known[i + 1:i + 1 + reach]]
        if reach >= 2 and 2 * sum(is_usual(iv, statistics.median(around)) for iv in around) > len(around):
            strike.usual = statistics.median(around)


def published(strike, side, far, T, D, ceiling, near_v):
    """Returns the published iv of a strike that is possible, or 0. side is the option out of the money."""
    F, call = strike.series.F, strike.K >= strike.series.F
    bid = side.bid or 0 if side and not strike.wrong and side.ask is not None and side.bid is not None and side.ask >= side.bid else 0
    for row in (side, far):
        iv = row and row.iv or 0
        if iv < 0.01 or strike.usual and not is_usual(iv, strike.usual) or 2 * iv * math.sqrt(max(T, 900 / YEAR)) < near_v:
            continue
        worth = D * black(F, strike.K, iv * math.sqrt(T), call) if strike.K else 0
        if not strike.K or worth <= 2 * ceiling and 2 * worth >= bid:
            return iv
    return 0


def volatilities(series, rate):
    """Sets v, 0 without one, and the step that gave v, of each strike of a series."""
    F, T, growth = series.F, series.T, math.exp(rate * series.T)
    calls = [(strike, strike.call, strike.put) for strike in series.strikes if strike.K >= F]
    puts = [(strike, strike.put, strike.call) for strike in series.strikes if strike.K < F][::-1]
    for strike in series.strikes:
        strike.wrong, strike.v, strike.step, strike.floored = False, None, "implied", False
    for side, others in ((puts, calls), (calls, puts)):
        crossed([(strike, far) for strike, _, far in others], [entry[:2] for entry in side])
        for strike, near, _ in side:
            if near and near.mid and not strike.wrong:
                strike.v = implied_volatility(near.mid * growth, F, strike.K, side is calls)
    wrong_beside(series, growth)
    usual_volatilities(series)
    for side in puts, calls:
        ceiling, near_v = math.inf, 0
        for strike, near, far in side:
            if near and near.ask and not strike.wrong and near.bid is not None and near.ask >= near.bid:
                ceiling = min(ceiling, near.ask)
            if strike.v:
                near_v = strike.v
                continue
            iv = published(strike, near, far, T, 1 / growth, ceiling, near_v)
            strike.v, strike.step, strike.floored = iv * math.sqrt(max(T, 900 / YEAR)), "published", iv > 0 and T < 900 / YEAR
    priced = [strike for strike in series.strikes if strike.v]
    below, after = None, 0
    for strike in series.strikes:
        if strike.v:
            below, after = strike, after + 1
            continue
        strike.step = "interpolated" if priced else "none"
        above = priced[after] if after < len(priced) else below
        if priced:
            low = below or above
            part = math.log(strike.K / low.K) / math.log(above.K / low.K) if 0 < low.K < above.K else 1 if low.K == 0 else 0
            strike.v = math.sqrt(low.v ** 2 * (1 - part) + above.v ** 2 * part)


# §1.2: G and its flips

ROOT = 1 / math.sqrt(2 * math.pi)


def legs(chain, weight=lambda row: row.oi, scale=1, carry=True):
    """Returns by date (a, b, w) of each strike: its GEX at S' is S'·w·exp(-d1²/2), with d1 = a + b·ln(S'/S). v is scaled, F = S without carry."""
    by_date = {}
    for series in chain.series:
        out, F = by_date.setdefault(series.date, []), series.F if carry else chain.S
        D = F / chain.S * math.exp(-chain.rate * series.T) * ROOT
        for strike in series.strikes:
            w = sum(row.sign * weight(row) for row in strike.rows)
            if strike.v and w and strike.K:  # at a strike of 0, gamma is 0
                v = strike.v * scale
                out.append((math.log(F / strike.K) / v + v / 2, 1 / v, w * D / v))
    return by_date


def flat(by_date, keep=lambda date: True):
    return [leg for date, found in by_date.items() if keep(date) for leg in found]


def G(some, S, x):
    """Returns the sum of the GEX of legs at a hypothetical spot."""
    y, exp = math.log(x / S), math.exp
    return x * sum([w * exp(-0.5 * (a + b * y) ** 2) for a, b, w in some])


@functools.lru_cache(maxsize=4)
def grid(S):
    """Returns points from 0.85·S to 1.15·S, evenly spaced in ln x, and at most a point apart within 3 % of S."""
    low, n = math.log(0.85), math.ceil(math.log(1.15 / 0.85) * 1.03 * (S if S >= 1000 else 5000))
    return [S * math.exp(low + math.log(1.15 / 0.85) / n * i) for i in range(n + 1)]


def curve(some, S):
    """Returns G at the points of the grid.

    Each leg is computed on the widest of the spacings step, 2·step, 4·step … that is at most a fifth of its v, and only where it
    counts: |d1| ≤ 5. Six points of a spacing then give each point of half the spacing. So G is right within about 1e-5 of the largest
    |G|, and a leg costs at most a hundred points. rows[level][i + 4] is at ln x = low + i·step·2^level.
    """
    points = grid(S)
    low, n, exp = math.log(0.85), len(points) - 1, math.exp
    step = math.log(1.15 / 0.85) / n
    counts = [n]
    while counts[-1] > 2:
        counts.append((counts[-1] + 1) // 2)
    rows = [[0.0] * (count + 9) for count in counts]
    for a, b, w in some:
        level = min(max(int(math.log2(max(0.2 / (b * step), 1))), 0), len(rows) - 1)
        z, d, row = a + b * low, b * step * 2 ** level, rows[level]
        first = math.ceil(max(-4, (-5 - z) / d))
        z += first * d
        x, factor, change = w * exp(-0.5 * z * z), exp(-d * (z + d / 2)), exp(-d * d)  # of exp(-(z + i·d)²/2), i = 0, 1, 2 …
        for i in range(first + 4, math.floor(min(counts[level] + 4, (5 - z) / d + first)) + 5):
            row[i] += x
            x *= factor
            factor *= change
    fine = rows.pop()
    while rows:
        half, own = [0.0] * (2 * len(fine)), rows.pop()
        half[0:2 * len(fine) - 4:2] = fine[2:]
        between = [(3 * (p + u) - 25 * (q + t) + 150 * (r + s)) / 256
                   for p, q, r, s, t, u in zip(fine, fine[1:], fine[2:], fine[3:], fine[4:], fine[5:])]
        half[1:2 * len(between) + 1:2] = between
        fine = [x + y for x, y in zip(own, half)]
    return [x * g for x, g in zip(points, fine[4:])]


Crossing = collections.namedtuple("Crossing", "price rises certain")


def crossings(some, S, values=None):
    """§1.2: returns the crossings of G, lowest first, and the sign of the lobe with the largest |G|, 0 without one. values: of the curve.

    The rule leaves the points free. So a crossing beside a lobe is not certain when the lobe is narrower than two points, or when its
    largest |G| can be under 1 % on other points: a parabola over w points is at its best point at least 1 − 1/w² of its height.
    """
    points, values = grid(S), values or curve(some, S)
    most = max(map(abs, values))
    material = [i for i, g in enumerate(values) if abs(g) > 0.009 * most]  # beyond the first and the last of these no crossing counts
    if most:
        first, last = material[0], material[-1]
        again = [i for i in range(first, last) if abs(values[i]) <= 1e-4 * most]
    else:
        first, last, again = 0, len(points) - 1, range(0, len(points), 1 if len(some) < 100 else 20)
    for i in again:
        values[i] = G(some, S, points[i])
    lobes, inner = [], [(x, g) for x, g in zip(points[first:last + 1], values[first:last + 1]) if g]
    for positive, run in itertools.groupby(inner, lambda point: point[1] > 0):
        run = list(run)
        lobes.append(types.SimpleNamespace(positive=positive, first=run[0][0], last=run[-1][0], most=max(abs(g) for _, g in run)))
    if not lobes:
        return [], 0
    largest = max(lobes, key=lambda lobe: lobe.most)
    for lobe in lobes:
        width = (lobe.last - lobe.first) / ((1 if S >= 1000 else S / 5000) * (1 if abs(lobe.last - S) <= 0.03 * S else 5))
        lobe.certain = width >= 2 and lobe.most * (1 - 1 / width ** 2) >= 0.0105 * largest.most

    @functools.cache
    def crossing(gap):
        return root(lambda x: G(some, S, x), lobes[gap].last, lobes[gap + 1].first)
    chosen = []  # the gaps between lobes at which G crosses: with every lobe that may count, and with those alone that count on each grid
    for counts in ((lambda lobe: lobe.most >= 0.0095 * largest.most), (lambda lobe: lobe.certain)):
        kept, gaps = [i for i, lobe in enumerate(lobes) if counts(lobe)], set()
        for i, j in zip(kept, kept[1:]):
            if lobes[i].positive != lobes[j].positive:
                gaps.add(min(range(i, j, 2), key=lambda gap: abs(crossing(gap) - S)))
        chosen.append(gaps)
    found = [Crossing(crossing(gap), lobes[gap + 1].positive, gap in chosen[0] & chosen[1]) for gap in sorted(chosen[0] | chosen[1])]
    return found, 1 if largest.positive else -1


def root(f, low, high):
    """Returns a root of f between two points: bisection, helped by the points on both sides of where a straight line has its root."""
    a, b, tiny = f(low), f(high), 2e-8 * high
    while high - low > tiny:
        x = (low * b - high * a) / (b - a) if a != b else low
        for probe in (x - tiny / 2.1, x + tiny / 2.1, (low + high) / 2):
            if high - low > tiny and low < probe < high:
                y = f(probe)
                if (y > 0) == (b > 0):
                    high, b = probe, y
                else:
                    low, a = probe, y
    return (low + high) / 2


def nearest_flips(found, S):
    """Returns which crossings may be the flip: by their distance from the spot to the first that is certain, None if none is."""
    out = []
    for crossing in sorted(found, key=lambda crossing: (abs(crossing.price - S), crossing.price)):
        out.append(crossing.price)
        if crossing.certain:
            return out
    return out + [None]


# §§1.3 and 1.4: sums at the spot

EXPOSURES = ("delta_dollars", "vanna_dollars_per_vol_point", "charm_dollars_per_day", "charm_ex_zero_dte_dollars_per_day")
SIDES = [side + kind for kind in ("_gex_dollars", "_open_interest", "_volume") for side in ("call", "put")]
STEPS = "implied", "published", "interpolated", "none"


def greeks(strike, S, rate):
    """Returns |GEX| of one contract, and s·M times the exposures of §1.4 of one call and one put."""
    series, v = strike.series, strike.v
    F, T = series.F, max(series.T, 900 / YEAR)
    D, b, d1 = F / S * math.exp(-rate * series.T), math.log(F / S) / T, math.log(F / strike.K) / v + v / 2 if strike.K else math.inf
    phi = math.exp(-0.5 * d1 * d1) * ROOT
    slope, vanna = (phi * (b / v - (d1 - v) / (2 * T)), -S * D * phi * (d1 - v) / (v / math.sqrt(T))) if phi else (0, 0)
    up, down = math.erfc(-d1 / math.sqrt(2)) / 2, math.erfc(d1 / math.sqrt(2)) / 2  # Φ(d1), Φ(-d1)
    decay = -100 * S * D / 365
    return S * D * phi / v, (100 * S * D * up, vanna, decay * (slope + (b - rate) * up)), (
        100 * S * D * down, -vanna, decay * ((b - rate) * down - slope))


class Model:
    """The sums of §1 of a priced chain: by strike, by expiration and in all."""

    def __init__(self, chain):
        self.chain, self.legs, self.skipped = chain, legs(chain), collections.Counter(chain.skipped)
        self.curves, self.found = [], None
        S, session, blank = chain.S, chain.session, functools.partial(dict.fromkeys, SIDES, 0)
        friday = session + DAY * (4 - session.weekday())
        self.until = {last: collections.defaultdict(blank) for last in (dt.date.max, session, friday)}  # by strike, of dates up to last
        self.expirations, self.cells, self.differences, self.beyond = {}, {}, [], 0
        self.interest, self.by_step, self.floored = dict.fromkeys(STEPS, 0), dict.fromkeys(STEPS, 0), 0
        for series in chain.series:
            row, cells = dict.fromkeys(("net_gex_dollars", "gross_gex_dollars", *EXPOSURES), 0), {}
            self.expirations[series.name], self.cells[series.name] = row, cells
            tables = [table for last, table in self.until.items() if series.session <= last]
            for table, (K, sign, volume) in itertools.product(tables, series.unknown):
                table[K]["call_volume" if sign > 0 else "put_volume"] += volume or 0
            for strike in series.strikes:
                one, *each = greeks(strike, S, chain.rate) if strike.v else (0, (), ())
                self.floored += strike.floored
                for contract in strike.rows:
                    self.interest[strike.step] += contract.oi
                    self.add(contract, one, each[contract.sign < 0], row, cells, [table[strike.K] for table in tables])
            if series.session != session:
                row["charm_ex_zero_dte_dollars_per_day"] = row["charm_dollars_per_day"]
        rows = self.by_strike = self.until[dt.date.max]
        self.lacking, self.lacking_volume = not_known(chain.series)
        self.known = bool(chain.used) and not chain.mismatch and not self.lacking
        self.call, self.put = (sum(row[side + "_gex_dollars"] for row in rows.values()) for side in ("call", "put"))
        self.net, self.gross = self.call + self.put, self.call - self.put

    def add(self, contract, one, exposures, row, cells, totals):
        """Adds a contract to the sums."""
        strike, oi, gex = contract.strike, contract.oi, contract.sign * contract.oi * one
        side = "call" if contract.sign > 0 else "put"
        for total in totals:
            total[side + "_gex_dollars"] += gex
            total[side + "_open_interest"] += oi
            total[side + "_volume"] += contract.volume
        if not oi or not strike.v:
            self.skipped["no_volatility" if oi else "no_open_interest"] += 1
            return
        row["net_gex_dollars"] += gex
        row["gross_gex_dollars"] += abs(gex)
        for name, x in zip(EXPOSURES, exposures):
            row[name] += oi * x
        cells[strike.K] = cells.get(strike.K, 0) + gex
        self.by_step[strike.step] += abs(gex)
        self.beyond += abs(gex) * (strike.series.seconds > 60 * 86400)
        if strike.series.seconds > 2 * 86400 and contract.gamma is not None:
            self.differences.append(abs(contract.gamma - one / self.chain.S ** 2))

    def curve(self, keep=lambda date: True):
        """Returns G at the points of the grid, of the dates to keep: the sum of the curves of groups of dates."""
        if not self.curves:
            nearest, ends = min((row.strike.series.date for row in self.chain.used), default=None), [self.chain.session + days * DAY for days in (7, 90)]
            for key in {(date == nearest, *[date <= end for end in ends]) for date in self.legs}:
                dates = {date for date in self.legs if (date == nearest, *[date <= end for end in ends]) == key}
                self.curves.append((dates, curve(flat(self.legs, dates.__contains__), self.chain.S)))
        return [sum(column) for column in zip(*(values for dates, values in self.curves if keep(min(dates))))]

    def crossings(self, keep=lambda date: True):
        return crossings(flat(self.legs, keep), self.chain.S, self.curve(keep))

    def flips(self):
        """Returns the flips that the model and each scenario may have (nearest_flips), by name."""
        if self.found is None:
            S = self.chain.S
            self.found = {"model": nearest_flips(self.crossings()[0] if self.known else [], S)}
            for name, (contracts, *some) in scenarios(self).items():
                self.found[name] = nearest_flips(crossings(some[0], S, *some[1:])[0] if contracts and self.known else [], S)
        return self.found

    def trigger(self):
        """Returns the flips that the contracts of the next 7 days may have."""
        week = self.chain.session + 7 * DAY
        return nearest_flips(self.crossings(lambda date: date <= week)[0] if self.known else [], self.chain.S)

    def shown(self, x):
        """Returns a figure that is null without a used contract, after a contradiction and where open interest is not known."""
        return x if self.known else None

    def side(self, sign):
        """Returns the sum of the calls or of the puts, or None."""
        known = self.chain.used and not self.chain.mismatch and (None, sign) not in self.lacking
        return (self.call if sign > 0 else self.put) if known else None


def model(chain, rate):
    """Returns the sums of a chain, which are computed once."""
    if not chain.price(rate).model:
        chain.model = Model(chain)
    return chain.model


def levels(m):
    """§1.3: returns the walls and what rests on them."""
    S, rows = m.chain.S, {}
    for K, sums in m.by_strike.items() if m.known else ():
        call, put = sums["call_gex_dollars"], sums["put_gex_dollars"]
        rows[K] = {"call": call, "put": -put, "net": call + put, "-net": -call - put, "gross": call - put,
                   "call_oi": sums["call_open_interest"], "put_oi": sums["put_open_interest"]}

    def wall(name, side=0):
        return largest({K: row[name] for K, row in rows.items()}, S, side)
    return {"call_wall": wall("net"), "put_wall": wall("-net"), "abs_gamma_strike": wall("gross"),
            "walls": {"by_side": {"call": wall("call", 1), "put": wall("put", -1)}, "gross": {"call": wall("call"), "put": wall("put")},
                      "net": {"call": wall("net"), "put": wall("-net")}, "open_interest": {"call": wall("call_oi"), "put": wall("put_oi")}}}


def largest(values, S, side=0):
    """Returns the strike with the largest positive value. side: 1 for strikes from the spot upwards, -1 downwards, 0 for all."""
    best = max(((x, -abs(K - S), -K) for K, x in values.items() if (K - S) * side >= 0), default=(0, 0, 0))
    return -best[2] if best[0] > 0 else None


def expected_move(chain):
    """§1.3: returns expected_move_1d, or None."""
    some = [series for series in chain.series if series.strikes] if chain.used and not chain.mismatch else ()
    for series in sorted(some, key=lambda series: series.T):
        last = series.session - DAY * (series.settlement == "am")
        if not sessions(chain.session + DAY, last):
            continue
        day, n = on_or_before(in_new_york(chain.q).date()), 0
        if day <= last:
            opens, closes = at(day, 9, 30), at(day, closing(day))
            n = min(max((closes - chain.q) / (closes - opens), 0), 1) + len(sessions(day + DAY, last))
        w = variance_at_forward(series)
        return chain.S * math.sqrt(w / n) if w and n else None
    return None


def variance_at_forward(series):
    """Returns w(0), or a substitute between the strikes around the forward. Without a volatility, it is None."""
    w, F = at_the_money(smile(series)), series.F
    if not isinstance(w, str):
        return w
    known = [strike for strike in series.strikes if strike.v]
    low, high = [strike for strike in known if strike.K < F], [strike for strike in known if strike.K >= F]
    if not low or not high:
        nearest = high[0] if high else low[-1] if low else None
        return nearest and nearest.v ** 2
    part = math.log(F / low[-1].K) / math.log(high[0].K / low[-1].K) if low[-1].K else 1
    return low[-1].v ** 2 + part * (high[0].v ** 2 - low[-1].v ** 2)


def conventions(m):
    """§1.3: returns of two conventions whether they have contracts and their legs, and the net by published gamma."""
    chain, S, session = m.chain, m.chain.S, m.chain.session
    published = [row.sign * row.gamma * row.oi * S * S for row in chain.used if row.gamma is not None]
    days = {series.date: max(1, sum((session + DAY * i).weekday() < 5 for i in range((series.date - session).days))) for series in chain.series}
    perfiliev = []
    for row in chain.used:
        if row.iv:
            v = row.iv * math.sqrt(days[row.strike.series.date] / 262)
            perfiliev.append((math.log(S / row.strike.K) / v + v / 2, 1 / v, row.sign * row.oi * ROOT / v) if row.strike.K else (0, 1, 0))
    volume = flat(legs(chain, lambda row: row.volume if row.oi else 0))
    return {"perfiliev": (perfiliev, perfiliev), "volume_weighted": (() if m.lacking_volume else chain.used, volume)}, sum(published) if published else None


def scenarios(m):
    """§1.2.5: returns of each scenario whether it has contracts, its legs, and their curve if that is a part of the model's."""
    chain, dates = m.chain, {row.strike.series.date for row in m.chain.used}
    nearest, end = min(dates, default=None), chain.session + 90 * DAY

    def part(keep):
        return any(map(keep, dates)), flat(m.legs, keep), m.curve(keep)
    return {"vol_down_10": (dates, flat(legs(chain, scale=0.9))), "vol_up_10": (dates, flat(legs(chain, scale=1.1))),
            "no_carry": (dates, flat(legs(chain, carry=False))),
            "ex_nearest_expiration": part(lambda date: date != nearest), "within_90_days": part(lambda date: date <= end)}


# The table

def off(a, b):
    """Returns the size of the difference of two numbers. Other values differ by 0 or by infinity."""
    return abs(a - b) if {type(a), type(b)} <= {int, float} else 0 if a == b else math.inf


class Table:
    """Prints a line for each figure of an answer, and remembers the names of those that differ."""

    def __init__(self, quiet):
        self.quiet, self.checks, self.differing = quiet, 0, []
        if not quiet:
            print(f"{'':54}{'served':>21}{'recomputed':>21}{'difference':>12}")

    def show(self, name, own):
        """Prints a figure that the answer does not have."""
        if not self.quiet:
            print(f"{name:54}{'':21}{own:>21}")

    def check(self, name, served, own, tolerance=0):
        self.checks += 1
        differs = not off(served, own) <= tolerance  # so that NaN differs
        if differs:
            self.differing.append(name)
        if differs or not self.quiet:
            texts = [f"{x:.12g}" if isinstance(x, float) else json.dumps(x).strip('"')[:20] for x in (served, own)]
            print(f"{name:54}{texts[0]:>21}{texts[1]:>21}{off(served, own):12.3g}{'  DIFFERS' if differs else ''}")

    def one_of(self, name, served, own, tolerance):
        """Checks a figure for which the rules leave several values free. Returns the nearest, or if none agrees the first."""
        nearest = min(own, key=lambda x: off(served, x))
        nearest = nearest if off(served, nearest) <= tolerance else own[0]
        self.check(name, served, nearest, tolerance)
        return nearest

    def columns(self, name, served, own, tolerances):
        """Checks a list: its keys in order, and of each column the worst cell."""
        if list(served) != list(own):
            self.check(f"{name}, keys", list(served), list(own))
            return
        for column, tolerance in tolerances.items() if own else ():
            key = max(own, key=lambda key: off(served[key][column], own[key][column]))
            self.check(f"{name}[{key}].{column}", served[key][column], own[key][column], tolerance)


# §1: gex/{u}. The tolerances are those of §7.

def strike_tolerances(dollars):
    return {name: dollars if "dollars" in name else 0.5 for name in (*SIDES, "net_gex_dollars")}


def near_spot(by_strike, chain, reach, last=dt.date.max):
    """Returns the strikes with open interest, or one that is not known, that are at most a share of the spot away, of dates up to last."""
    S, rows = chain.S, {}
    interest, traded = not_known([series for series in chain.series if series.date <= last], lambda K: K)
    for K, cells in sorted(by_strike.items()):
        lacks = {side for side, sign in (("call", 1), ("put", -1)) if (K, sign) in interest}
        if abs(K - S) > reach * S or not lacks and not cells["call_open_interest"] + cells["put_open_interest"]:
            continue
        row = rows[cents(K)] = dict(cells, net_gex_dollars=cells["call_gex_dollars"] + cells["put_gex_dollars"])
        row.update({name: None for name in row if chain.mismatch and "dollars" in name or lacks and name == "net_gex_dollars"})
        row.update({side + kind: None for side in lacks for kind in ("_gex_dollars", "_open_interest")})
        row.update({side + "_volume": None for side, sign in (("call", 1), ("put", -1)) if (K, sign) in traded})
    return rows


def price_tolerance(S):
    """§7, for a flip as it is served."""
    return 0.02 * (1 if S >= 1000 else S / 5000) + 0.005


def verify_gamma(table, answer, chain, previous, strike):
    data, m = answer["data"], model(chain, answer["meta"]["receipt"]["parameters"]["risk_free_rate"])
    S, dollars = chain.S, max(1e-6 * m.gross, 1)
    if "spot_source" in data:
        table.check("§1.0 spot_source", data["spot_source"], chain.source)
        table.check("§1.0 spot_change_pct", data["spot_change_pct"], chain.change, 1e-4)
    if not table.quiet:
        show_strike(table, chain, strike)
    for name, own in (("net", m.shown(m.net)), ("call", m.side(1)), ("put", m.side(-1)), ("gross", m.shown(m.gross))):
        table.check(f"§1.3 {name}_gex_dollars", data[name + "_gex_dollars"], own, dollars)
    table.check("§1.3 gamma_tilt", data["gamma_tilt"], m.shown(ratio(m.call, -m.put)), max(2e-4, 1e-6 * abs(ratio(m.call, -m.put) or 0)))
    tolerances = {name: max(1, 1e-6 * sum(abs(row[name]) for row in m.expirations.values())) for name in EXPOSURES}
    for name in EXPOSURES:
        table.check(f"§1.4 {name}", data["exposures"][name], m.shown(sum(row[name] for row in m.expirations.values())), tolerances[name])
    table.check("§1.3 contracts_analyzed", data["contracts_analyzed"], len(chain.used))
    table.columns("§1.3 by_strike", {row["strike"]: row for row in data["by_strike"]}, near_spot(m.by_strike, chain, 0.15),
                  strike_tolerances(dollars))
    by_expiration = {}
    for series in chain.series:
        sums = dict(m.expirations[series.name], gross_share_pct=ratio(m.expirations[series.name]["gross_gex_dollars"], m.gross, 100))
        unknown = chain.mismatch or not_known([series])[0]
        by_expiration[series.name] = {**{name: None if unknown or m.lacking and "share" in name else x for name, x in sums.items()},
                                      "forward": series.F, "forward_source": series.source}
    table.columns("§1.3 by_expiration", {f"{row['expiration']} {row['settlement']}": row for row in data["by_expiration"]}, by_expiration,
                  {"forward": 0.01, "forward_source": 0, "net_gex_dollars": dollars, "gross_gex_dollars": dollars, "gross_share_pct": 2e-4, **tolerances})
    for name, own in levels(m).items():
        if name == "walls":
            for kind, strikes in own.items():
                table.check(f"§1.3 walls.{kind}", data["walls"][kind], {side: cents(K) for side, K in strikes.items()})
        else:
            table.check(f"§1.3 {name}", data[name], cents(own))
    table.check("§1.3 expected_move_1d", data["expected_move_1d"], expected_move(chain), 0.02)
    for name, own in zip(("oi_settle_date", "oi_state"), open_interest_date(chain.captured_at)):
        table.check(f"§1.3 {name}", data[name], str(own))
    flip = verify_flips(table, data, m, dollars)
    verify_quality(table, answer["meta"]["quality"], m, flip)
    before = own_rate(previous) if previous else None
    verify_changes(table, answer, m, previous and model(previous, chain.rate if before is None else before), dollars, flip)


def show_strike(table, chain, chosen):
    """Shows volatility and gamma of a strike in every expiration, or of the strike nearest to the spot in the first."""
    table.show("§1.0 implied spot", f"{chain.implied:.6f}" if chain.implied else "no fit")
    strikes = [strike for series in (chain.series if chosen else chain.series[:1]) for strike in series.strikes]
    nearest = chosen or min((strike.K for strike in strikes), key=lambda K: abs(K - chain.S), default=0)
    for strike in strikes:
        if strike.K == nearest and strike.v:
            series, gex = strike.series, greeks(strike, chain.S, chain.rate)[0]
            table.show(f"§1.1 {series.root} {series.date} {strike.K:g}: volatility", f"{strike.v / math.sqrt(series.T):.10f}")
            table.show(f"§1.1 {series.root} {series.date} {strike.K:g}: gamma, GEX of one", f"{gex / chain.S ** 2:.6e} {gex:.0f}")


def verify_flips(table, data, m, dollars):
    """§§1.2 and 1.3: the flips, the scenarios, what rests on them, and what expires on the session date."""
    chain, S = m.chain, m.chain.S
    most, some = price_tolerance(S), flat(m.legs)
    found, sign = m.crossings() if m.known else ([], 0)
    prices, flips = [crossing.price for crossing in found], m.flips()
    flip = table.one_of("§1.2 zero_gamma_flip", data["zero_gamma_flip"], flips["model"], most)
    table.one_of("§1.3 vol_trigger", data["vol_trigger"], m.trigger(), most)
    served = [(row["price"], row["direction"]) for row in data["flips"]]
    for i, crossing in enumerate(found):
        own = crossing.price, "negative_to_positive" if crossing.rises else "positive_to_negative"
        price, direction = min(served, key=lambda row: abs(row[0] - own[0]), default=(None, None))
        if crossing.certain or off(price, own[0]) <= most:
            table.check(f"§1.2 flips[{i}].price", price, own[0], most)
            table.check(f"§1.2 flips[{i}].direction", direction, own[1])
    for i, (price, _) in enumerate(served):
        if min((abs(price - own) for own in prices), default=math.inf) > most:
            table.check(f"§1.2 flips[{i}], which is no root", price, None)
    none = "none_all_positive" if sign > 0 else "none_all_negative" if sign else "insufficient_data"
    table.check("§1.2 flip_status", data["flip_status"], "spot_mismatch" if chain.mismatch else "open_interest_missing" if m.lacking else
                none if flip is None else "multiple" if len(served) > 1 else "found")
    table.check("§1.3 flip_distance_pct", data["flip_distance_pct"], None if flip is None else (S - flip) / S * 100, 6e-4)

    def check(name, row, contracts, some, values=None, known=m.known):
        """Checks net and flip of some legs, and returns the flip."""
        known = contracts and known
        net = G(some, S, S) if known else None
        table.check(f"{name}.net_gex_dollars", row["net_gex_dollars"], net, max(dollars, 1e-6 * abs(net or 0)))
        own = flips.get(row.get("name")) or nearest_flips(crossings(some, S, values)[0] if known else [], S)
        return table.one_of(f"{name}.zero_gamma_flip", row["zero_gamma_flip"], own, most)
    own, band = scenarios(m), {}
    table.check("§1.2 scenarios", [row["name"] for row in data["scenarios"]], list(own))
    for row in data["scenarios"]:
        band[row["name"]] = check(f"§1.2 {row['name']}", row, *own[row["name"]])
    verify_band(table, data, m, flip, band)
    own, published = conventions(m)
    table.check("§1.3 conventions", [row["name"] for row in data["conventions"]], ["model", "published_gamma", "perfiliev", "volume_weighted"])
    for row in data["conventions"]:
        if row["name"] == "published_gamma":
            table.check("§1.3 published_gamma.net_gex_dollars", row["net_gex_dollars"], m.shown(published), max(dollars, 1e-6 * abs(published or 0)))
            table.check("§1.3 published_gamma.zero_gamma_flip", row["zero_gamma_flip"], None)
        elif row["name"] == "model":
            table.check("§1.3 model.net_gex_dollars", row["net_gex_dollars"], m.shown(m.net), dollars)
            table.check("§1.3 model.zero_gamma_flip", row["zero_gamma_flip"], flip, most)
        else:
            check(f"§1.3 {row['name']}", row, *own[row["name"]])
    points = {j: S * (1 + j / 1000) for j in range(-60, 61)}
    table.columns("§1.3 profile", dict(zip(points, data["profile"])), {
        j: {"spot": x, "net_gex_dollars": m.shown(G(some, S, x))} for j, x in points.items()}, {"spot": 0.01, "net_gex_dollars": dollars})
    verify_zero_dte(table, data, m, check)
    return flip


def verify_band(table, data, m, flip, band):
    """§§1.2 and 1.3: the band of the flips of model and scenarios, and the regime."""
    ends = sorted(x for x in (flip, *band.values()) if x is not None)
    for name, own in (("low", ends[0]), ("high", ends[-1])) if ends and data["flip_band"] else ():
        table.check(f"§1.2 flip_band.{name}", data["flip_band"][name], own, price_tolerance(m.chain.S))
    if not ends or not data["flip_band"]:
        table.check("§1.2 flip_band", data["flip_band"], ends or None)
    table.check("§1.3 gamma_regime", data["gamma_regime"], regime(m))


def regime(m):
    S, later = m.chain.S, [row["net_gex_dollars"] for series, row in zip(m.chain.series, m.expirations.values()) if series.date > m.chain.session]
    others = [G(flat(legs(m.chain, scale=scale)), S, S) for scale in (0.9, 1.1)] + [sum(later)]
    neutral = abs(m.net) < 0.01 * m.gross or m.net == 0 or any(m.net * other < 0 for other in others)
    return m.shown("neutral" if neutral else "positive" if m.net > 0 else "negative")


DAILY = {"SPX": dt.date(2022, 5, 11), "XSP": dt.date(2023, 1, 1), "SPY": dt.date(2023, 1, 1), "QQQ": dt.date(2023, 1, 1),
         "NDX": dt.date(2024, 1, 1), "RUT": dt.date(2024, 2, 1), "IWM": dt.date(2024, 7, 1)}  # from when on each session has an expiration, §1.3


def expires_today(chain):
    """§1.3: says whether the underlying must list an expiration at the close of the session date."""
    day, dates = chain.session, {series.date for series in chain.series if series.settlement == "pm"}
    if day >= DAILY.get(chain.symbol, dt.date.max):
        return True
    if day == on_or_before(third_friday(day)):
        return "am" not in chain.settlement.values()
    return {day + 7 * DAY, day + 14 * DAY} <= dates


def zero_dte(m):
    """§1.3: returns the figures of the contracts that settle on the session date, and why they are unknown."""
    chain, rows = m.chain, [series for series in m.chain.series if series.session == m.chain.session]
    count = sum(1 for row in chain.used if row.strike.series.session == chain.session)
    reason = ("settled" if chain.settled else "not_listed" if not rows and expires_today(chain) else
              "open_interest_missing" if not_known(rows)[0] else None)
    share = ratio(sum(m.expirations[series.name]["gross_gex_dollars"] for series in rows), m.gross, 100)
    return {"settled": chain.settled, "contracts": 0 if chain.settled else count,
            "gross_share_pct": None if reason or chain.mismatch or m.lacking else share}, reason


def zero_dte_strikes(m):
    """§1.3: returns the strikes of today that zero_dte names, within 10 % of the spot and with known open interest."""
    chain = m.chain
    lacks = {K for K, _ in not_known([series for series in chain.series if series.session == chain.session], lambda K: K)[0]}
    near = {K: row for K, row in m.until[chain.session].items() if abs(K - chain.S) <= 0.1 * chain.S and K not in lacks}
    if chain.mismatch or zero_dte(m)[1]:
        near = {}
    own = {"pin_strike": largest({K: row["call_gex_dollars"] - row["put_gex_dollars"] for K, row in near.items()}, chain.S)}
    for name, sign in (("call_walls", 1), ("put_walls", -1)):
        left, own[name] = {K: sign * (row["call_gex_dollars"] + row["put_gex_dollars"]) for K, row in near.items()}, []
        while len(own[name]) < 3 and largest(left, chain.S) is not None:
            K = largest(left, chain.S)
            own[name].append({"strike": K, "net_gex_dollars": sign * left.pop(K)})
    return own


def verify_zero_dte(table, data, m, check):
    own, reason = zero_dte(m)
    strikes, dollars = zero_dte_strikes(m), max(1e-6 * m.gross, 1)
    table.check("§1.3 zero_dte.pin_strike", data["zero_dte"]["pin_strike"], cents(strikes["pin_strike"]))
    for name in ("call_walls", "put_walls"):
        table.check(f"§1.3 zero_dte.{name}", [row["strike"] for row in data["zero_dte"][name]], [cents(row["strike"]) for row in strikes[name]])
        for row, x in zip(data["zero_dte"][name], strikes[name]):
            table.check(f"§1.3 zero_dte.{name} {x['strike']}", row["net_gex_dollars"], x["net_gex_dollars"], dollars)
    closing_today = [series for series in m.chain.series if series.session == m.chain.session and series.settlement == "pm" and series.strikes]
    w = variance_at_forward(closing_today[-1]) if closing_today and not m.chain.settled and not m.chain.mismatch else None
    table.check("§1.3 zero_dte.remaining_move", data["zero_dte"]["remaining_move"], m.chain.S * math.sqrt(w) if w else None, 0.02)
    for name, x in own.items():
        table.check(f"§1.3 zero_dte.{name}", data["zero_dte"][name], x, 2e-4 if name == "gross_share_pct" else 0)
    if reason or m.chain.mismatch:
        table.check("§1.3 zero_dte", [data["zero_dte"][name] for name in ("net_gex_dollars", "zero_gamma_flip")], [None, None])
    elif not own["contracts"]:
        table.check("§1.3 zero_dte", [data["zero_dte"][name] for name in ("net_gex_dollars", "zero_gamma_flip")], [0, None])
    else:
        def today(date):
            return on_or_before(date) == m.chain.session
        check("§1.3 zero_dte", data["zero_dte"], True, flat(m.legs, today), curve(flat(m.legs, today), m.chain.S), True)


def outside_calendar(dates):
    return any(not 2014 <= date.year <= 2030 for date in dates)


def verify_quality(table, quality, m, flip):
    """§1.7."""
    chain, S = m.chain, m.chain.S
    gross = {}
    if flip is not None:
        gross = dict.fromkeys(STEPS, 0)
        for strike in (strike for series in chain.series for strike in series.strikes if strike.v and strike.K):
            series, v = strike.series, strike.v
            d1 = math.log(series.F * flip / S / strike.K) / v + v / 2
            gross[strike.step] += sum(row.oi for row in strike.rows) * math.exp(-0.5 * d1 * d1 - chain.rate * series.T) * series.F / v
    columns = {"open_interest_pct": m.interest, "gross_at_spot_pct": m.by_step, "gross_at_flip_pct": gross}
    table.columns("§1.7 volatility", {row["step"]: row for row in quality["volatility"]}, {
        step: {name: ratio(sums.get(step, 0), sum(sums.values()), 100) for name, sums in columns.items()} for step in STEPS},
        {name: 0.01 if "flip" in name else 2e-4 for name in columns})
    table.check("§1.7 volatility_floored_strikes", quality["volatility_floored_strikes"], m.floored)
    table.check("§1.7 contradictory_strikes", quality["contradictory_strikes"], contradictory(chain))
    table.check("§1.7 two_sided_quote_pct", quality["two_sided_quote_pct"], ratio(sum(1 for row in chain.used if row.mid), len(chain.used), 100), 2e-4)
    table.check("§1.7 zero_dte_reason", quality["zero_dte_reason"], zero_dte(m)[1])
    sources = collections.Counter(series.source for series in chain.series)
    table.check("§1.7 forwards", {k: n for k, n in quality["forwards"].items() if n}, dict(sources))
    found, served = sorted(m.differences), quality["published_gamma_difference"]
    table.check("§1.7 published_gamma_difference.contracts", served["contracts"], len(found))
    for name, part in (("median", 0.5), ("percentile_95", 0.95)):
        table.check(f"§1.7 published_gamma_difference.{name}", served[name], percentile(found, part), 1e-7)
    table.check("§1.7 quote_age_seconds", quality["quote_age_seconds"], (chain.captured_at - chain.as_of).total_seconds())


def contradictory(chain):
    return sum(strike.off or strike.wrong for series in chain.series for strike in series.strikes)


def percentile(ordered, part):
    """Returns the linear percentile of a sorted list, None of an empty one."""
    if not ordered:
        return None
    place = (len(ordered) - 1) * part
    i = min(int(place), len(ordered) - 2) if len(ordered) > 1 else 0
    return ordered[i] + (place - i) * (ordered[i + 1] - ordered[i]) if len(ordered) > 1 else ordered[0]


def ex_date(chain):
    """§1.8: returns the date before which an ex-dividend date seems to lie, or None."""
    near = [series for series in chain.parity if series.seconds <= 60 * 86400]
    if len(near) < 4 or chain.mismatch:
        return None
    slopes = [math.log(b.F / a.F) / (b.T - a.T) for a, b in zip(near, near[1:]) if b.T > a.T]
    if len(slopes) < 3:
        return None
    carry = statistics.median(slopes)
    if near[0].date == chain.session:
        (F, T), to = (near[0].F, near[0].T), near[1]
    elif abs(chain.q - chain.as_of) <= dt.timedelta(minutes=15):
        (F, T), to = (chain.S, 0), near[0]
    else:
        return None
    fall = math.log(F) + carry * (to.T - T) - math.log(to.F)
    return to.date if fall > 0.001 and (to.date - chain.session).days <= 7 else None


def verify_common(table, answer, m):
    """§§1.0, 1.7 and 1.8: what every answer has that rests on the model of a chain."""
    chain, quality = m.chain, answer["meta"]["quality"]
    table.check("§1.0 spot_gap_pct", quality["spot_gap_pct"], chain.gap, 2e-4)
    known, usual = published_iv_ratio(chain)
    table.check("§1.7 published_iv_ratio", quality["published_iv_ratio"], known, 2e-4)
    table.check("§1.7 hours", quality["hours"] is not None, chain.unverified or known is not None and not usual[0] <= known <= usual[1])
    if "flip_status" in answer["data"]:
        table.check("§1.0 spot_note", "spot_note" in quality, chain.apart)
    if "effective_spot" in answer["data"]:
        table.check("§1.0 effective_spot", answer["data"]["effective_spot"], chain.S, 0.01)
    table.check("§1.8 gross_beyond_60_days_pct", quality.get("gross_beyond_60_days_pct"),
                ratio(m.beyond, m.gross, 100) if chain.american and not chain.mismatch and not m.lacking else None, 2e-4)
    date, note = ex_date(chain), quality.get("exercise_note")
    table.check("§1.8 exercise_note", note is not None, chain.american)
    found = re.search(r"before (\d{4}-\d\d-\d\d)", note or "")
    table.check("§1.8 ex-dividend date", found and found[1], date and chain.american and str(date) or None)
    verify_parameters(table, answer["meta"]["receipt"]["parameters"], chain)
    table.check("§1.7 used", quality["contracts"]["used"], len(chain.used))
    verify_unknown(table, quality, chain)
    return m.skipped


def verify_parameters(table, served, chain):
    own = own_rate(chain)
    table.check("§1.1 risk_free_rate_source", served["risk_free_rate_source"], "configured" if own is None else "document")
    if own is not None:
        table.check("§1.1 risk_free_rate", served["risk_free_rate"], own, 1.5e-6)
    table.check("§0 exercise", served.get("exercise"), "american_as_european" if chain.american else None)


def verify_unknown(table, quality, chain):
    """§0: the contracts whose open interest is not known."""
    signs = collections.Counter(sign for series in chain.series for _, sign, _ in series.unknown)
    table.check("§0 open_interest_unknown", quality["contracts"]["open_interest_unknown"], {"calls": signs[1], "puts": signs[-1]})


# §1.5: what changed

def gex(sign, oi, S, F, K, v, T, rate):
    d1 = math.log(F / K) / v + v / 2 if K else math.inf
    return sign * oi * F * math.exp(-rate * T - 0.5 * d1 * d1) * ROOT / v


def net_parts(now, before, was):
    """Returns the six parts. was has the contracts of the reference that have a volatility, and have not settled or have."""
    rate, S, S0 = now.rate, now.S, before.S
    nets = [0] * 7  # of the reference, after each part, of this snapshot
    for row in was:
        old, K = row.strike, row.strike.K
        T, F, v, oi = old.series.T, old.series.F, old.v, row.oi
        start = gex(row.sign, oi, S0, F, K, v, T, before.rate)
        nets[0] += start
        if old.series.settles <= now.q:
            continue
        new = now.contracts.get(row.symbol)
        if not new or not new.strike.v:
            steps = [start] * 5
        else:
            to = new.strike
            moved, T1, F1 = F / S0 * S, to.series.T, to.series.F
            steps = (start, gex(row.sign, oi, S, moved, K, v, T, before.rate), gex(row.sign, oi, S, moved, K, v * math.sqrt(T1 / T), T1, rate),
                     gex(row.sign, oi, S, F1, K, to.v, T1, rate), gex(row.sign, new.oi, S, F1, K, to.v, T1, rate))
        for i, x in enumerate(steps):
            nets[i + 1] += x
    nets[6] = sum(gex(row.sign, row.oi, S, row.strike.series.F, row.strike.K, row.strike.v, row.strike.series.T, rate) for row in now.used)
    return [b - a for a, b in zip(nets, nets[1:])]


def was_split(now, before, price, price_before):
    """§1.5: says whether the shares were split between two documents: their contracts are gone, or are others."""
    listed = [(symbol, row) for symbol, row in before.contracts.items() if row.strike.series.settles > now.q]
    both = [(now.contracts[symbol], row) for symbol, row in listed if symbol in now.contracts]
    known = [(new.oi, row.oi, row.volume) for new, row in both if row.counted]
    moved = sum(max(abs(new - old) - volume, 0) for new, old, volume in known)
    whole = before.as_of >= at(before.session, closing(before.session)) - dt.timedelta(minutes=5)
    other = whole and any(volume for *_, volume in known) and moved > 0.25 * sum(max(new, old) for new, old, _ in known)
    return now.shares and (len(both) < len(listed) * (0.9 if abs(price / price_before - 1) > 0.2 else 0.5) or other)


def verify_open_interest(table, answer, now, before):
    """§1.5: the changes of gex/{u}/open-interest."""
    data = answer["data"]
    reason = "no_reference" if not before else "split" if was_split(now, before, now.S, before.S) else None
    table.check("§1.5 changes_reason", answer["meta"]["quality"]["changes_reason"], reason)
    for name, own in zip(("oi_settle_date", "oi_state"), open_interest_date(now.captured_at)):
        table.check(f"§1.3 {name}", data[name], str(own))
    table.check("§1.5 reference_as_of", data["reference_as_of"], None if reason else rfc3339(before.as_of))
    verify_interest_changes(table, answer, now, before, reason, data["contracts"], 50)


def verify_changes(table, answer, m, reference, dollars, flip):
    now, before, quality = m.chain, reference and reference.chain, answer["meta"]["quality"]
    served = answer["data"]["changes"]
    reason = ("no_reference" if not before else "split" if was_split(now, before, now.S, before.S) else
              "net_unknown" if not m.known else "reference_net_unknown" if not reference.known else None)
    table.check("§1.5 changes_reason", quality["changes_reason"], reason)
    verify_interest_changes(table, answer, now, before, reason, answer["data"]["open_interest_changes"], 10)
    if reason:
        return table.check("§1.5 changes", served, None)
    parts = net_parts(now, before, [row for row in before.contracts.values() if row.strike.v])
    dollars = max([dollars, *(1e-6 * abs(x) for x in (reference.net, *parts))])
    for name, own in zip("from expired spot time volatility open_interest listed to".split(), (reference.net, *parts, m.net)):
        table.check(f"§1.5 net_gex_dollars.{name}", served["net_gex_dollars"][name], own, dollars)
    table.check("§1.5 reference_as_of", served["reference_as_of"], rfc3339(before.as_of))
    table.one_of("§1.5 flip.from", served["flip"]["from"], nearest_flips(reference.crossings()[0], before.S),
                 price_tolerance(before.S))
    table.check("§1.5 flip.to", served["flip"]["to"], flip, price_tolerance(now.S))

def verify_interest_changes(table, answer, now, before, reason, interest, most):
    """Checks the largest changes of open interest, and how many cannot be read."""
    quality = answer["meta"]["quality"]
    listed = {symbol: row for symbol, row in before.contracts.items() if row.strike.series.settles > now.q} if before else {}
    unread = {series.symbol(K, sign) for side in (before, now) if side for series in side.series if series.settles > now.q
              for K, sign, _ in series.unknown}
    table.check("§1.5 open_interest_unread", quality["open_interest_unread"], None if reason in ("no_reference", "split") else len(unread))
    sides = ((symbol, *(side[symbol].oi if symbol in side else 0 for side in (listed, now.contracts)))
             for symbol in {**listed, **now.contracts} if symbol not in unread)
    moved = sorted((-abs(b - a), symbol, a, b) for symbol, a, b in sides if a != b)[:most]
    table.check("§1.5 open_interest_changes", interest and [[row[name] for name in ("contract", "from", "to", "strike", "expiration", "option_type")]
                                                           for row in interest],
                None if reason in ("no_reference", "split") else [
                    [symbol, a, b, cents(int(symbol[-8:]) / 1000), f"20{symbol[-15:-13]}-{symbol[-13:-11]}-{symbol[-11:-9]}",
                     "call" if symbol[-9] == "C" else "put"] for _, symbol, a, b in moved])


# §1.6: gex/{u}/matrix

def verify_matrix(table, answer, m):
    data, chain = answer["data"], m.chain
    S, dollars = chain.S, max(1e-6 * m.gross, 1)

    def shown(x, unknown=()):
        return None if chain.mismatch or unknown else x
    lacking = {key for key, _ in not_known(chain.series, lambda K: K)[0]}
    series_of = {series.name: series for series in chain.series}
    columns = [name for name, cells in m.cells.items() if cells]
    rows = sorted({K for cells in m.cells.values() for K in cells if abs(K - S) <= 0.1 * S})
    table.columns("§1.6 expirations", {f"{row['expiration']} {row['settlement']}": row for row in data["expirations"]}, {
        name: {"net_gex_dollars": shown(sum(m.cells[name].values()), not_known([series_of[name]])[0])} for name in columns[:16]}, {"net_gex_dollars": dollars})
    table.columns("§1.6 strikes", {row["strike"]: row for row in data["strikes"]}, {
        cents(K): {"net_gex_dollars": shown(sum(cells.get(K, 0) for cells in m.cells.values()), K in lacking)} for K in rows}, {"net_gex_dollars": dollars})
    for j, name in enumerate(columns[:16]):
        unknown = {K for K, _, _ in series_of[name].unknown}
        table.columns(f"§1.6 {name}", {K: {"cell": row[j]} for K, row in zip(rows, data["net_gex_dollars"])},
                      {K: {"cell": shown(m.cells[name].get(K), K in unknown)} for K in rows}, {"cell": dollars})
    ends = dict(zip(("zero_dte", "this_week"), list(m.until)[1:]))
    ends.setdefault("this_week", chain.session)  # on a Friday both are one table
    table.check("§1.6 parts", [[part["name"], part["from"], part["to"]] for part in data["parts"]],
                [[name, str(chain.session), str(end)] for name, end in ends.items()])
    for part, (name, end) in zip(data["parts"], ends.items()):
        table.columns(f"§1.6 {name}", {row["strike"]: row for row in part["by_strike"]}, near_spot(m.until[end], chain, 0.1, end),
                      strike_tolerances(dollars))


# §1.10: gex/{u}/levels

FUTURES = {"SPX": ("ES", 0.25), "NDX": ("NQ", 0.25), "RUT": ("RTY", 0.1)}
LEVELS = ("call_wall put_wall zero_gamma_flip flip_low flip_high vol_trigger abs_gamma_strike max_pain zero_dte_call_wall zero_dte_call_wall_2 zero_dte_call_wall_3 "
          "zero_dte_put_wall zero_dte_put_wall_2 zero_dte_put_wall_3 zero_dte_pin expected_high_1d expected_low_1d").split()
FREE = "zero_gamma_flip flip_low flip_high vol_trigger expected_high_1d expected_low_1d".split()  # these have the tolerance of a root


def band_ends(m):
    """Returns which lowest and which highest flips the band may have."""
    free = [x for found in m.flips().values() for x in found]
    sure = [found[0] for found in m.flips().values() if len(found) == 1 and found[0] is not None]
    return ([x for x in free if x is None and not sure or x is not None and x <= min(sure, default=math.inf)] or [None],
            [x for x in free if x is None and not sure or x is not None and x >= max(sure, default=-math.inf)] or [None])


def key_levels(m):
    """Returns which values each level may have, by name."""
    chain, own = m.chain, levels(m)
    today = zero_dte_strikes(m)
    own["zero_dte_pin"] = today["pin_strike"]
    for side in ("call", "put"):
        own.update({f"zero_dte_{side}_wall{n}": row and row["strike"] for n, row in zip(("", "_2", "_3"), today[side + "_walls"] + 3 * [None])})
    move = expected_move(chain)
    own["expected_high_1d"], own["expected_low_1d"] = (chain.S + move, chain.S - move) if move is not None else (None, None)
    date = default_expiration(chain)
    own["max_pain"] = date and pain([series for series in chain.series if series.date == date], chain.spot)[0]["max_pain"]
    flips = dict(zip(("zero_gamma_flip", "flip_low", "flip_high", "vol_trigger"), (m.flips()["model"], *band_ends(m), m.trigger())))
    return {name: flips.get(name) or [own[name] if own[name] is not None and own[name] > 0 else None] for name in LEVELS}


def futures(chain):
    """Returns the series whose forwards the futures of an index take, the future that comes first first."""
    dates = [series for series in chain.series if chain.symbol in FUTURES and series.settlement == "am" and series.source == "parity"
             and series.date.month % 3 == 0 and series.date == on_or_before(third_friday(series.date))][:2]
    traded = (in_new_york(chain.captured_at) + dt.timedelta(hours=6)).date()
    rolls = dates and traded >= third_friday(dates[0].date) - 4 * DAY
    return dates[::-1] if rolls else dates[:1]


def verify_key_levels(table, answer, m):
    data, chain = answer["data"], m.chain
    S, own, served = chain.S, key_levels(m), {row["name"]: row for row in data["levels"]}
    own = {name: table.one_of(f"§1.10 {name}.price", served[name]["price"] if name in served else None, may, 0.03 if name in FREE else 0.005) for name, may in own.items()}
    table.check("§1.10 unknown names", [name for name in served if name not in own], [])
    for name, row in served.items():
        table.check(f"§1.10 {name}.distance_pct", row["distance_pct"], own.get(name) and (own[name] - S) / S * 100, 6e-4)
    prices = [row["price"] for row in data["levels"]]
    exact = [row["name"] for row in data["levels"] if row["name"] in own and row["name"] not in FREE]
    table.check("§1.10 order", exact, sorted(exact, key=lambda name: (-(own.get(name) or 0), LEVELS.index(name))))
    table.check("§1.10 order of the prices", prices, sorted(prices, reverse=True))
    found = futures(chain)
    symbol, tick = FUTURES.get(chain.symbol, (None, None))
    table.check("§1.10 futures", [[row["symbol"], row["month"], row["expiration"]] for row in data["futures"]],
                [[symbol, str(series.date)[:7], str(series.date)] for series in found])
    for row, series in zip(data["futures"], found):
        table.check("§1.10 forward", row["forward"], series.F, 0.01)
        table.check("§1.10 ratio", row["ratio"], series.F / S, 2e-4)
        table.check("§1.10 names of the future", [level["name"] for level in row["levels"]], [level["name"] for level in data["levels"]])
        for level, price in zip(row["levels"], prices):
            exact = (own.get(level["name"]) or math.nan) * series.F / S
            table.check(f"§1.10 {symbol} {level['name']}", level["price"], exact, tick / 2 + 0.03)
            table.check(f"§1.10 {symbol} {level['name']}, in ticks", round(level["price"] / tick, 6) % 1, 0)


# §1.11: volatility/{u}

DELTAS = {"25": 0.6744897501960817, "10": 1.2815515655446004}
SMILE = "atm_volatility risk_reversal_25 risk_reversal_10 butterfly_25 butterfly_10 expected_move model_free_volatility".split()


def third_friday(day):
    return nth(day.year, day.month, 4, 3)


def w_at(a, b, x):
    return a[1] + (b[1] - a[1]) * (x - a[0]) / (b[0] - a[0])


def smile(series):
    """Returns the points (x, w, mid) of a root and date."""
    points = []
    for strike in series.strikes:
        row = strike.call if strike.K >= series.F else strike.put
        if strike.step == "implied":
            points.append((math.log(strike.K / series.F), strike.v ** 2, row.mid))
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


def model_free(series, rate, points, atm):
    """Returns the variance a year by the formula of the VIX, or the reason why it is unknown. atm is w(0)."""
    T, F, strikes = series.T, series.F, [strike for strike in series.strikes if strike.K > 0]
    both = [strike for strike in strikes if strike.K <= F and strike.mids and not strike.off and not strike.wrong]
    if not both:
        return "not_bracketed"
    center, i = both[-1], strikes.index(both[-1])
    Q = {center.K: sum(center.mids) / 2}
    for call, side in ((False, strikes[:i][::-1]), (True, strikes[i + 1:])):
        unbid, last = 0, center.K
        for strike in side:
            row, v = strike.call if call else strike.put, None
            if not row:
                continue
            if row.mid and not strike.wrong and not (strike.off and call and strike.K < F):
                unbid, Q[strike.K], last = 0, row.mid, strike.K
            elif row.bid == 0 and row.ask:
                unbid += 1
                if unbid == 2:
                    break
            else:
                w = between_points(points, math.log(strike.K / F))
                v = math.sqrt(w) if w is not None else strike.v if row.bid and strike.step == "published" else None
            if v:
                Q[strike.K], last = math.exp(-rate * T) * black(F, strike.K, v, call), strike.K
        if Q[last] > 0.05 * Q[center.K]:
            return "quote_gap"
    if len(Q) < 5:
        return "few_strikes"
    K, end = sorted(Q), len(Q) - 1
    widths = [(K[min(j + 1, end)] - K[max(j - 1, 0)]) / (2 if 0 < j < end else 1) for j in range(len(K))]
    total = sum(width / x ** 2 * math.exp(rate * T) * Q[x] for width, x in zip(widths, K))
    variance = 2 / T * total - (F / center.K - 1) ** 2 / T
    return "not_positive" if variance <= 0 else "quote_gap" if variance < 0.81 * atm / T else variance


def put_call(some, unknown):
    """Returns puts over calls of some series."""
    out = {}
    for name, of, lacks in zip(("put_call_open_interest", "put_call_volume"), ("oi", "volume"), not_known(some)):
        call, put = (sum(getattr(row, of) for series in some for row in series.rows if row.sign == sign) for sign in (1, -1))
        if of == "volume":
            call, put = (x + sum(volume or 0 for series in some for _, side, volume in series.unknown if side == sign) for x, sign in ((call, 1), (put, -1)))
        out[name] = None if lacks else ratio(put, call)
        if out[name] is None:
            unknown[name] = {"oi": "open_interest_missing", "volume": "volume_missing"}[of] if lacks else "no_calls"
    return out


def date_volatility(chain, series):
    """Returns the row of a root and date."""
    T, F, why = series.T, series.F, {}
    row = {"forward": F, **dict.fromkeys(SMILE), **put_call([series], why), "unknown": why}
    nearest = min(series.strikes, key=lambda strike: (abs(strike.K - F), strike.K))
    row["atm_straddle"] = sum(nearest.mids) if nearest.mids and not nearest.off and not nearest.wrong else None
    if row["atm_straddle"] is None:
        why["atm_straddle"] = "no_quote"
    points = smile(series)
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
        if series.seconds < 86400:
            why["risk_reversal_" + name] = why["butterfly_" + name] = "under_one_day"
        elif call and put:
            row["risk_reversal_" + name], row["butterfly_" + name] = sigma(call) - sigma(put), (sigma(call) + sigma(put)) / 2 - sigma(w)
        else:
            why["risk_reversal_" + name] = why["butterfly_" + name] = "not_bracketed"
    variance = model_free(series, chain.rate, points, w)
    if isinstance(variance, str):
        why["model_free_volatility"] = variance
    else:
        row["model_free_volatility"] = 100 * math.sqrt(variance)
    return row


def of_the_vix(series):
    """Says whether Cboe takes a root and date for VIX."""
    friday = series.session + DAY * ((4 - series.session.weekday()) % 7)
    return series.session == on_or_before(friday) and (friday == third_friday(friday)) == (series.settlement == "am")


def month(around, name, power=1):
    """Returns the figure for 30 days of two (T, row), or None and the reason. power 2: of total variance."""
    if len(around) < 2:
        return None, "no_expirations"
    (near, a), (far, b), T = *around, 30 / 365
    if None in (a.get(name), b.get(name)):
        return None, a.get("unknown", {}).get(name) or b.get("unknown", {}).get(name) or "no_expirations"
    a, b = a[name] ** power * (near if power == 2 else 1), b[name] ** power * (far if power == 2 else 1)
    between = a + (b - a) * (T - near) / (far - near)
    return math.sqrt(between / T) if power == 2 else between, None


def around_month(chain, by_series, keep=lambda series: True):
    """Returns (T, row) of the two dates around 30 days. A date without a row has an empty one."""
    dates = {}
    for series in chain.series:  # of equal T, the earlier date: the later one is no session
        if keep(series) and series.seconds >= 7 * 86400:
            dates.setdefault(series.seconds, (series.T, by_series.get(series, {})))
    near, far = [t for t in sorted(dates) if t <= 30 * 86400], [t for t in sorted(dates) if t > 30 * 86400]
    return [dates[near[-1]], dates[far[0]]] if near and far else []


def realised(days, n):
    """Returns the realised volatility of the last n closes, or the reason why it is unknown."""
    closes = [(dt.date.fromisoformat(day["session"]), day["close"]) for day in days if day["close"] is not None][-n - 1:]
    if len(closes) <= n:
        return "few_sessions"
    m = len(sessions(closes[0][0] + DAY, closes[-1][0]))
    if m > 1.25 * n:
        return "missing_sessions"
    moves = [math.log(b / a) for (_, a), (_, b) in zip(closes, closes[1:])]
    if any(abs(move) > math.log(1.5) for move in moves):
        return "price_jump"
    return 100 * math.sqrt(252 / m * sum(move * move for move in moves))


def history(chain, own, days):
    """Adds the figures that rest on the stored sessions, and the reasons why some are unknown."""
    why, now = own["unknown"], own["atm_30d"]
    days = days + [{"session": str(chain.session), "close": chain.R if chain.settled else None, "atm_30d": now}]
    values = [day["atm_30d"] for day in days if day["atm_30d"] is not None]
    own.update(sessions=len(values), rank_1y=None, percentile_1y=None, implied_minus_realised=None)
    reason = "no_expirations" if now is None else "few_sessions" if len(values) < 60 else None
    if reason:
        why.update(rank_1y=reason, percentile_1y=reason)
    else:
        own["percentile_1y"] = hazen(values, now)
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


def hazen(values, x):
    """Returns the share of values below x in percent; equal values count half."""
    return 100 * sum((y < x) + (y == x) / 2 for y in values) / len(values)


def month_figures(chain, by_series):
    """Returns the figures of 30 days of the rows by series, and put/call of the underlying."""
    pair, why = around_month(chain, by_series), {}
    vix = around_month(chain, by_series, of_the_vix) if chain.symbol == "SPX" else pair
    own = {"term_slope": None, **put_call(chain.series, why), "unknown": why}
    for name, dates, figure, power in (("atm_30d", pair, "atm_volatility", 2), ("risk_reversal_25_30d", pair, "risk_reversal_25", 1),
                                       ("model_free_30d", vix, "model_free_volatility", 2)):
        own[name], reason = month(dates, figure, power)
        why.update({name: reason} if reason else {})
    quarter = {}
    for series, row in by_series.items():
        if row["atm_volatility"] is not None and 45 / 365 <= series.T <= 135 / 365:
            quarter.setdefault(series.T, row["atm_volatility"])
    if own["atm_30d"] is not None and quarter:
        own["term_slope"] = quarter[min(quarter, key=lambda t: (abs(t - 90 / 365), t))] - own["atm_30d"]
    else:
        why["term_slope"] = "no_expirations"
    return own


def verify_volatility(table, answer, m, days):
    data, quality, chain = answer["data"], answer["meta"]["quality"], m.chain
    by_series, counts = {}, dict(listed=len(chain.series), used=0, under_one_hour=0, no_parity_forward=0)
    for series in chain.series:
        near = series.seconds < 3600
        kept = not near and series.source == "parity"
        counts["used" if kept else "under_one_hour" if near else "no_parity_forward"] += 1
        if kept:
            by_series[series] = date_volatility(chain, series)
    table.check("§1.11 quality.expirations", quality["expirations"], counts)
    table.check("§1.11 quality.contradictory_strikes", quality["contradictory_strikes"], contradictory(chain))
    tolerances = {"forward": 0.01, **dict.fromkeys(SMILE, 2e-4), "expected_move": 0.01, "atm_straddle": 0.01, "put_call_open_interest": 2e-4,
                  "put_call_volume": 2e-4, "unknown": 0}
    table.columns("§1.11 expirations", {f"{row['expiration']} {row['settlement']}": row for row in data["expirations"]},
                  {series.name: row for series, row in by_series.items()}, tolerances)
    own = month_figures(chain, by_series)
    history(chain, own, days)
    why = own.pop("unknown")
    for name, x in own.items():
        table.check(f"§1.11 {name}", data[name], x, 2e-3 if name in ("rank_1y", "percentile_1y") else 2e-4)
    table.check("§1.11 unknown", quality["unknown"], why)


# §4: {u}-max-pain

PAINS = "max_pain", "distance_pct", "put_call_oi_ratio"
PAYOUTS = "call_payout_dollars", "put_payout_dollars", "total_payout_dollars"


def default_expiration(chain):
    """Returns the nearest date with open interest, or whose open interest is lacking, else the nearest."""
    dates = sorted({series.date for series in chain.series})
    for date in dates:
        some = [series for series in chain.series if series.date == date]
        if any(row.oi for series in some for row in series.rows) or not_known(some)[0]:
            return date
    return dates[0] if dates else None


def pain(some, spot):
    """Returns the figures of the series of a date, one settlement or both, the payout curve and the open interest."""
    lacks, partial = {sign for _, sign in not_known(some)[0]}, {round(K * 1000) for series in some for K, _, _ in series.unknown}
    strikes = collections.defaultdict(lambda: [0, 0])  # calls and puts by strike in thousandths
    for strike in (strike for series in some for strike in series.strikes):
        for row in strike.rows:
            strikes[round(strike.K * 1000)][row.sign < 0] += row.oi
    for X in partial:
        strikes[X]  # a strike of the curve, even where no contract can be read
    ordered, payouts = sorted(strikes), {}  # payouts in tenths of a dollar: of 100 contracts, and strikes in thousandths
    call, put = (sum(sides[i] for sides in strikes.values()) for i in (0, 1))
    for i, right in ((0, 1), (1, -1)):  # the calls below a price pay, and the puts above
        paid, contracts, last = 0, 0, None
        for X in ordered[::right]:
            paid += contracts * abs(X - last) if contracts else 0
            payouts.setdefault(X, [0, 0])[i] = paid
            contracts, last = contracts + strikes[X][i], X
    figures = dict.fromkeys(("max_pain", "max_pain_range", "flatness", "payout_at_max_pain_dollars", "distance_pct"))
    if call + put > 0 and not lacks:
        least = min(map(sum, payouts.values()))
        flat, near = ([X / 1000 for X in ordered if 100 * sum(payouts[X]) <= n * least] for n in (100, 101))
        best = min(flat, key=lambda X: (abs(X - spot), X))
        figures = {"max_pain": best, "max_pain_range": [cents(flat[0]), cents(flat[-1])], "flatness": {"low": cents(near[0]), "high": cents(near[-1])},
                   "payout_at_max_pain_dollars": least / 10, "distance_pct": (best - spot) / spot * 100}
    figures.update(call_open_interest=None if 1 in lacks else call, put_open_interest=None if -1 in lacks else put,
                   put_call_oi_ratio=None if lacks else ratio(put, call))
    curve = {} if lacks else {cents(X / 1000): dict(zip(PAYOUTS, (payouts[X][0] / 10, payouts[X][1] / 10, sum(payouts[X]) / 10))) for X in ordered}
    return figures, curve, [[cents(X / 1000), *strikes[X]] for X in ordered if any(strikes[X]) and X not in partial]


def verify_pain(table, answer, chain):
    data, dates = answer["data"], {}
    table.check("§0 hours", answer["meta"]["quality"]["hours"] is not None, chain.unverified)
    table.check("§4 used", answer["meta"]["quality"]["contracts"]["used"], len(chain.contracts))
    verify_unknown(table, answer["meta"]["quality"], chain)
    for series in chain.series:
        row = dates.setdefault(str(series.date), {"settlement": series.settlement, "open_interest": 0})
        row["settlement"] = row["settlement"] if row["settlement"] == series.settlement else "mixed"
        row["open_interest"] += sum(row.oi for row in series.rows)
    for date, row in dates.items():
        some = [series for series in chain.series if str(series.date) == date]
        if not_known(some)[0]:
            row["open_interest"] = None
        figures = pain(some, chain.spot)[0]
        row.update({name: figures[name] for name in (*PAINS, "call_open_interest", "put_open_interest")}, max_pain=cents(figures["max_pain"]))
    tolerances = {"distance_pct": 2e-4, "put_call_oi_ratio": 2e-4}
    table.columns("§4 expirations", {row["expiration"]: row for row in data["expirations"]}, dates,
                  {**dict.fromkeys("settlement open_interest max_pain call_open_interest put_open_interest".split(), 0), **tolerances})
    some = {series.settlement: series for series in chain.series if str(series.date) == data["expiration"]}
    if not some:
        table.check("§4 expiration", data["expiration"], None)
        return
    own = {"settlement": "mixed" if len(some) > 1 else next(iter(some)),
           "days_to_expiration": (dt.date.fromisoformat(data["expiration"]) - chain.session).days}
    for name, x in own.items():
        table.check(f"§4 {name}", data[name], x)
    table.check("§4 by_settlement", sorted(side for side, row in data["by_settlement"].items() if row), sorted(some))
    tolerances["payout_at_max_pain_dollars"] = 1
    parts = [("", data, list(some.values())), *((f"by_settlement.{side}.", data["by_settlement"][side] or {}, [series]) for side, series in some.items())]
    for name, part, of in parts if all(data["by_settlement"][side] for side in some) else parts[:1]:
        figures, curve, interest = pain(of, chain.spot)
        for field, x in figures.items():
            table.check(f"§4 {name}{field}", part[field], cents(x) if field == "max_pain" else x, tolerances.get(field, 0))
        table.columns(f"§4 {name}payout_curve", {row["settlement_price"]: row for row in part["payout_curve"]}, curve, dict.fromkeys(PAYOUTS, 1))
        table.check(f"§4 {name}open_interest", [[row["strike"], row["call"], row["put"]] for row in part["open_interest"]], interest)


# §3: sectors/rotation

SECTORS = {"Communication Services": "XLC", "Consumer Discretionary": "XLY", "Consumer Staples": "XLP", "Energy": "XLE", "Financials": "XLF",
           "Health Care": "XLV", "Industrials": "XLI", "Information Technology": "XLK", "Materials": "XLB", "Real Estate": "XLRE", "Utilities": "XLU"}
PERIODS = "day week month quarter ytd".split()


def closes_of(document, low=1e-6, high=1e6):
    """Returns the usable closes of a history by date, oldest first. Of two rows of a date the later counts."""
    out = {}
    for row in document["data"] if document else ():
        try:
            close = number(float(row["close"]), low, high)
        except (KeyError, TypeError, ValueError):
            close = None
        if close:
            out[re.sub("[Tt ].*", "", row["date"])] = close  # a date may have a time of day after it
    return dict(sorted(out.items()))


def months_back(day, n):
    """Returns the same day some calendar months before, or the last day of that month."""
    months = day.year * 12 + day.month - 1 - n
    first = dt.date(months // 12, months % 12 + 1, 1)
    last = dt.date((months + 1) // 12, (months + 1) % 12 + 1, 1) - DAY
    return min(last, first + DAY * (day.day - 1))


def ended(quotes):
    """Says whether the session of a date, as text, has ended at the latest of some quotes."""
    q = max(max(quote.as_of, quote.captured_at - dt.timedelta(minutes=15)) for quote in quotes)
    def has_ended(text):
        day = dt.date.fromisoformat(text)
        return bool(closing(day)) and at(day, closing(day)) <= q
    return has_ended


def apart(x):
    return round(max(x, 1 / x), 9)


def price_jump(symbol, quotes, closes):
    """Returns the date before the last jump of a fund's prices, "" without one, and whether it lies within the day of the quote."""
    prices, quoted = {}, {}
    for fund, quote in quotes.items():
        before = str(on_or_before(quote.session - DAY))
        quoted[fund] = before, None if quote.change in (None, -100) else quote.spot / (1 + quote.change / 100)
        prices[fund] = {before: quoted[fund][1], **{date: x for date, x in closes[fund].items() if date < str(quote.session)}, str(quote.session): quote.spot}
    session, (before, implied), found = str(quotes[symbol].session), quoted[symbol], ""
    own = sorted((date, x) for date, x in prices[symbol].items() if x)
    for (a, x), (b, y) in zip(own, own[1:]):
        x = implied or x if b == session and a == before else x
        moves = [row[b] / row[a] for fund, row in prices.items() if row.get(a) and row.get(b) and fund != symbol]
        near = moves and len(sessions(dt.date.fromisoformat(a) + DAY, dt.date.fromisoformat(b))) <= 5
        market = statistics.median(moves) if moves else 1
        if b > str(quotes[symbol].session - 400 * DAY) and apart(y / x) > 1.18 and apart(y / x / market) > (1.18 if near else 1.5):
            found, within = a, b == session
    if not found or not within:
        kept, within = closes[symbol].get(before), False
        found = before if kept and implied and apart(kept / implied) > 1.05 else found
    return found, within


def returns(quote, closes):
    """Returns the returns of a fund by period."""
    back = quote.session
    for _ in range(5):
        back = on_or_before(back - DAY)
    bases = {"week": back, "month": months_back(quote.session, 1), "quarter": months_back(quote.session, 3), "ytd": dt.date(quote.session.year - 1, 12, 31)}
    base = {name: closes.get(str(on_or_before(day))) for name, day in bases.items()}
    return {"day": quote.change, **{name: x and (quote.spot / x - 1) * 100 for name, x in base.items()}}


def z63(values):
    """Returns z of the last of each 63 values in a row, None where they are all equal."""
    out = []
    for i in range(63, len(values) + 1):
        last = values[i - 63:i]
        deviation = statistics.stdev(last)
        out.append((last[-1] - statistics.fmean(last)) / deviation if deviation else None)
    return out


def rrg(fund, benchmark):
    common = [date for date in fund if date in benchmark][-135:]
    ratios = z63([fund[date] / benchmark[date] for date in common])
    if len(common) < 135 or None in ratios:
        return None
    momentum = z63([b - a for a, b in zip(ratios, ratios[10:])])[-1]
    if momentum is None:
        return None
    x, y = 100 + ratios[-1], 100 + momentum
    return {"rs_ratio": x, "rs_momentum": y, "quadrant": ("leading" if y >= 100 else "weakening") if x >= 100 else "improving" if y >= 100 else "lagging"}


def trail(fund, benchmark):
    """Returns the dates and points of the last 8 weeks with common closes, without the weeks that have no point."""
    common = sorted(date for date in fund if date in benchmark)
    ends = {dt.date.fromisoformat(date).isocalendar()[:2]: date for date in common}  # the last date of a week stays
    points = [(end, rrg({date: x for date, x in fund.items() if date <= end}, benchmark)) for end in sorted(ends.values())[-8:]]
    return [(end, point) for end, point in points if point]


def ranks(by_fund, period):
    """Returns the rank of each fund whose return of a period is known. Ties: by the day's return, then by symbol."""
    def key(symbol):
        day = by_fund[symbol]["day"]
        return -by_fund[symbol][period], -day if day is not None else math.inf, symbol
    ordered = sorted((symbol for symbol in by_fund if by_fund[symbol][period] is not None), key=key)
    return {symbol: i + 1 for i, symbol in enumerate(ordered)}


def verify_sectors(table, answer, inputs):
    data, quality = answer["data"], answer["meta"]["quality"]
    quotes = {name[len("quotes/"):-len(".json")]: Quote(x) for name, x in inputs.items() if name.startswith("quotes/")}
    closes = {symbol: closes_of(inputs.get(f"charts/historical/{symbol}.json")) for symbol in quotes}
    newest = max(quotes.values(), key=lambda quote: quote.as_of)
    table.check("§3 as_of", answer["meta"]["as_of"], rfc3339(newest.as_of))
    table.check("§3 captured_at", answer["meta"]["captured_at"], rfc3339(max(quote.captured_at for quote in quotes.values())))
    table.check("§3 calendar", quality["calendar"] is not None, outside_calendar(quote.session for quote in quotes.values()))
    table.check("§3 benchmark.symbol", data["benchmark"]["symbol"], "SPY")
    table.check("§3 session_date", data["session_date"], str(max(quote.session for quote in quotes.values())))
    table.check("§3 mixed_session", data["mixed_session"], len({quote.session for quote in quotes.values()}) > 1)
    table.check("§3 missing", sorted(data["missing"]), sorted({"SPY", *SECTORS.values()} - quotes.keys()))
    has_ended = ended(quotes.values())
    closes = {symbol: {date: x for date, x in of.items() if has_ended(date)} for symbol, of in closes.items()}
    table.check("§3 funds", sorted([row["symbol"], row["as_of"], row["history_rows"], row["history_to"]] for row in quality["funds"]),
                sorted([symbol, rfc3339(quote.as_of), len(closes[symbol]), max(closes[symbol], default=None)] for symbol, quote in quotes.items()))
    unknown = dict.fromkeys(PERIODS)
    every = {}
    jumped = {symbol: price_jump(symbol, quotes, closes) for symbol in quotes}
    for symbol, (date, within) in jumped.items():
        table.check(f"§3 note of the price jump of {symbol}", [f"price_jump after {date}" in (row["note"] or "") or not date and "price_jump" not in (row["note"] or "")
                                                              for row in quality["funds"] if row["symbol"] == symbol], [True])
        closes[symbol] = {day: x for day, x in closes[symbol].items() if day > date}
        every[symbol] = {**returns(quotes[symbol], closes[symbol]), **({"day": None} if within else {})}
    spy, latest = every.pop("SPY", unknown), max(quote.session for quote in quotes.values())
    current = {symbol: row for symbol, row in every.items() if quotes[symbol].session == latest}
    ranked = {period: ranks(current, period) for period in PERIODS}
    table.check("§3 benchmark.price", data["benchmark"]["price"], quotes["SPY"].spot if "SPY" in quotes else None, 0.01)
    for period in PERIODS:
        table.check(f"§3 benchmark.{period}", data["benchmark"]["returns_pct"][period], spy[period], 2e-4)
    table.check("§3 sectors", [[row["symbol"], row["sector"]] for row in data["sectors"]], [[s, name] for name, s in SECTORS.items() if s in every])
    own, served = {}, {}
    for row in data["sectors"]:
        symbol = row["symbol"]
        point = rrg(closes[symbol], closes.get("SPY", {})) or {}
        own[symbol] = {"price": quotes[symbol].spot, **every[symbol], **{"quadrant": None, "rs_ratio": None, "rs_momentum": None}, **point,
                       **{period + " over SPY": None if None in (every[symbol][period], spy[period]) or quotes[symbol].session != quotes["SPY"].session
                          else every[symbol][period] - spy[period] for period in PERIODS},
                       **{period + " rank": ranked[period].get(symbol) for period in PERIODS}}
        served[symbol] = {"price": row["price"], **row["returns_pct"], **{"quadrant": None, "rs_ratio": None, "rs_momentum": None}, **(row["rrg"] or {}),
                          **{period + " over SPY": row["relative_pct"][period] for period in PERIODS},
                          **{period + " rank": row["rank"][period] for period in PERIODS}}
    path = sorted((date, list(SECTORS.values()).index(symbol), point["rs_ratio"], point["rs_momentum"]) for symbol in own
                  for date, point in trail(closes[symbol], closes.get("SPY", {})))
    table.check("§3 trail", [[row["date"], row["symbol"]] for row in data["trail"]], [[date, list(SECTORS.values())[i]] for date, i, *_ in path])
    for row, (date, _, x, y) in zip(data["trail"], path):
        table.check(f"§3 trail, {row['symbol']} on {date}, rs_ratio", row["rs_ratio"], x, 2e-4)
        table.check(f"§3 trail, {row['symbol']} on {date}, rs_momentum", row["rs_momentum"], y, 2e-4)
    names = next(iter(own.values()), {})
    table.columns("§3 sectors", served, own, {name: 0.01 if name == "price" else 0 if "rank" in name or name == "quadrant" else 2e-4 for name in names})
    verify_sector_summary(table, data, {symbol: row["day"] for symbol, row in current.items() if row["day"] is not None}, ranked["day"],
                          spy["day"] if "SPY" in quotes and quotes["SPY"].session == latest else None)


def verify_sector_summary(table, data, day, ranked, spy):
    """Checks what rests on the day's returns alone."""
    best = sorted(day, key=ranked.get)
    for name, own in (("leaders", best[:3]), ("laggards", best[::-1][:3])):
        table.check(f"§3 {name}", [row["symbol"] for row in data[name]], own)
        table.check(f"§3 {name}, sectors", [SECTORS.get(row["sector"]) for row in data[name]], own)
        table.columns(f"§3 {name}", {row["symbol"]: row for row in data[name]}, {symbol: {"return_pct": day[symbol]} for symbol in own}, {"return_pct": 2e-4})
    values = list(day.values())
    breadth = {"advancing": sum(x > 0 for x in values), "declining": sum(x < 0 for x in values), "unchanged": sum(x == 0 for x in values),
               "above_benchmark": None if spy is None else sum(x > spy for x in values)}
    for name, own in breadth.items():
        table.check(f"§3 breadth.{name}", data["breadth"][name], own)
    for name, own in (("stdev_pct", statistics.pstdev(values) if values else None), ("range_pct", max(values) - min(values) if values else None)):
        table.check(f"§3 dispersion.{name}", data["dispersion"][name], own, 2e-4)
    groups = [[day.get(symbol) for symbol in symbols.split()] for symbols in ("XLY XLF XLI XLB XLK", "XLP XLU XLV")]
    spread = None if None in groups[0] + groups[1] else statistics.fmean(groups[0]) - statistics.fmean(groups[1])
    table.check("§3 cyclical_minus_defensive_pct", data["cyclical_minus_defensive_pct"], spread, 2e-4)
    tone = None if spread is None else "risk_on" if round(spread, 9) > 0.5 else "risk_off" if round(spread, 9) < -0.5 else "mixed"
    table.check("§3 tone", data["tone"], tone)


# §6: vix-term-structure

LETTERS = "FGHJKMNQUVXZ"
CASH = "vix1d vix9d vix vix3m vix6m vix1y vvix skew vxn rvx".split()


def vix_expiration(year, month):
    """Returns the computed date of a monthly contract: by the third Friday of the next month."""
    friday = nth(year + month // 12, month % 12 + 1, 4, 3)
    wednesday = friday - 30 * DAY
    return on_or_before(wednesday - DAY) if not closing(friday) else on_or_before(wednesday)


def vix_curve(text, date):
    """Returns the monthly contracts of a settlement file that have not expired, nearest first, and the final settlement."""
    rows, final = {}, None
    for line in text.splitlines()[1:]:
        product, symbol, expiration, price = (line.split(",") + [""] * 4)[:4]
        found = re.fullmatch(r"VX/([FGHJKMNQUVXZ])(\d)", symbol)
        try:
            settlement, expires = number(float(price), 1, 1000), dt.date.fromisoformat(expiration)
        except ValueError:
            continue
        if product != "VX" or not found or not settlement or expires < date or symbol in rows:
            continue
        if expires == date:
            final = settlement
        else:
            rows[symbol] = {"month": f"{expires.year}-{LETTERS.index(found[1]) + 1:02}", "expiration": expires, "settlement": settlement}
    ordered = sorted(rows.items(), key=lambda item: item[1]["expiration"])
    return [dict(row, symbol=symbol, rank=i + 1, days_to_expiration=(row["expiration"] - date).days) for i, (symbol, row) in enumerate(ordered)], final


def vix_close(symbol, date, inputs):
    """Returns the close of an index on a date, from the first input that has it, or None."""
    for name, x in inputs.items():
        if name == f"charts/historical/_{symbol}.json":
            close = closes_of(x, 1, 1000).get(str(date))
        elif name == f"quotes/_{symbol}.json":
            quote = Quote(x, 1, 1000)
            close = quote.spot if quote.as_of.date() == date and quote.as_of >= at(date, closing(date), 0) + dt.timedelta(minutes=14) else None
        else:
            close = None
        if close:
            return close
    return None


def shape(prices):
    """Returns the shape of a curve: of its turns, by moves over 0.10 from the last extreme."""
    if not prices:
        return None
    moves, low, high = [], prices[0], prices[0]
    for price in prices:
        low, high = (min(low, price), max(high, price)) if not moves else (low, max(high, price)) if moves[-1] > 0 else (min(low, price), high)
        rose, fell = round(price - low, 6) > 0.1, round(high - price, 6) > 0.1
        if rose and (not moves or moves[-1] < 0):
            moves.append(1)
            high = price
        elif fell and (not moves or moves[-1] > 0):
            moves.append(-1)
            low = price
    names = {(): "flat", (1,): "upward", (-1,): "downward", (1, -1): "humped", (-1, 1): "trough"}
    return names.get(tuple(moves), "mixed")


def classed(x, bounds, names):
    """Returns the name of the first bound that x is under, else the last name. None for None."""
    return None if x is None else next((name for bound, name in zip(bounds, names) if round(x, 9) < bound), names[-1])


def contango_class(x):
    if x is None:
        return None
    x = round(x, 9)
    return "steep_contango" if x >= 8 else "contango" if x >= 1.5 else "flat" if x > -1.5 else "backwardation" if x > -8 else "steep_backwardation"


def vix_figures(curve, date, vix, vix3m):
    """Returns the figures of a curve."""
    M, d = [row["settlement"] for row in curve], [row["days_to_expiration"] for row in curve]

    def pair(i, j):
        return (M[j] / M[i] - 1) * 100 if len(M) > j else None
    own = {"contango_m1_m2_pct": pair(0, 1), "contango_m4_m7_pct": pair(3, 6), "front_spread": M[1] - M[0] if len(M) > 1 else None,
           "spot_basis_pct": (M[0] / vix - 1) * 100 if vix and M else None, "vix_vix3m_ratio": vix / vix3m if vix and vix3m else None,
           "roll_yield_annualized_pct": (M[0] / M[1] - 1) * 365 / (d[1] - d[0]) * 100 if len(M) > 1 else None, "cm30": None, "cm30_extrapolated": False,
           "slope_per_month": None, "shape": shape(M), "vix": vix, "vix3m": vix3m}
    if M and d[0] > 30:
        own["cm30"], own["cm30_extrapolated"] = M[0], True
    elif M and d[-1] >= 30:
        j = next(i for i in range(len(d)) if d[i] >= 30)
        own["cm30"] = M[j] if d[j] == 30 else M[j - 1] + (M[j] - M[j - 1]) * (30 - d[j - 1]) / (d[j] - d[j - 1])
    if len(M) >= 7:
        own["slope_per_month"] = sum((i - 3) * M[i] for i in range(7)) / 28
    rolls = bool(curve) and len(sessions(date + DAY, curve[0]["expiration"])) <= 2
    own["regime_basis"] = "m2_m3" if rolls else "m1_m2"
    own["regime"] = contango_class(pair(1, 2) if rolls else pair(0, 1))
    own["cash_regime"] = classed(own["vix_vix3m_ratio"], (0.85, 0.917, 1), ("deep_contango", "contango", "flattening", "inverted"))
    own["vol_level"] = classed(vix, (15, 20, 30), ("low", "normal", "elevated", "stress"))
    return own


def verify_vix(table, answer, inputs):
    data, meta = answer["data"], answer["meta"]
    name = next(name for name in inputs if name.startswith("settlement/"))
    date, stored = dt.date.fromisoformat(name[len("settlement/"):-len(".csv")]), inputs["state/vix-history"]
    table.check("§6 settlement_date", data["settlement_date"], str(date))
    table.check("§6 as_of", meta["as_of"], rfc3339(futures_settle(date)))
    until = dt.date.fromisoformat(meta["receipt"]["parameters"]["stale_sessions_to"])
    table.check("§6 stale_sessions", data["stale_sessions"], len(sessions(date + DAY, until)))
    curve, final = vix_curve(inputs[name], date)
    table.check("§6 final_settlement", data["final_settlement"], final, 1e-4)
    before = (stored[-1]["settlements"] if stored else None) or {}
    for row in curve:
        row["change"] = row["settlement"] - before[row["symbol"]] if row["symbol"] in before else None
    table.columns("§6 curve", {row["symbol"]: row for row in data["curve"]}, {row["symbol"]: dict(row, expiration=str(row["expiration"])) for row in curve},
                  {"rank": 0, "month": 0, "expiration": 0, "days_to_expiration": 0, "settlement": 1e-4, "change": 1e-4})
    own = vix_figures(curve, date, *(vix_close(symbol, date, inputs) for symbol in ("VIX", "VIX3M")))
    for field, x in own.items():
        table.check(f"§6 {field}", data[field], x, 1e-4 * (2 if field.endswith("pct") else 1))
    for field in ("contango_m1_m2_pct", "spot_basis_pct"):
        now, values = data[field], [row[field] for row in stored if row[field] is not None]
        values += [] if now is None else [now]
        rank = hazen(values, now) if now is not None and len(values) >= 20 else None
        table.check(f"§6 percentiles.{field}", data["percentiles"][field]["percentile"], rank, 2e-4)
        table.check(f"§6 percentiles.{field}.n", data["percentiles"][field]["n"], len(values))
    kinds = collections.Counter("other_products" if line[0] != "VX" else "monthly" if line[1].startswith("VX/") else "weekly"
                                for line in (text.split(",") for text in inputs[name].splitlines()[1:]))
    counts = meta["quality"]
    table.check("§6 rows", [counts["rows"], counts["monthly"] + counts["bad_rows"], counts["weekly"], counts["other_products"]],
                [sum(kinds.values()), kinds["monthly"], kinds["weekly"], kinds["other_products"]])
    differs = [row["symbol"] for row in curve if row["expiration"] != vix_expiration(*map(int, row["month"].split("-")))]
    table.check("§6 calendar", counts["calendar"] is not None, outside_calendar([date, *(row["expiration"] for row in curve)]))
    table.check("§6 expiration_differs", meta["quality"]["expiration_differs"], differs)
    unknown = []
    for field in CASH:
        quotes = [Quote(x, 1, 1000) for name, x in inputs.items() if name == f"quotes/_{field.upper()}.json"]
        quote = max(reversed(quotes), key=lambda quote: quote.captured_at, default=None)
        unknown += [] if quote else [field]
        own = quote and {"value": quote.spot, "as_of": rfc3339(quote.as_of), "change_pct": quote.change}
        if not own or not data["cash"][field]:
            table.check(f"§6.2 {field}", data["cash"][field], own)
        for name, x in own.items() if own and data["cash"][field] else ():
            table.check(f"§6.2 {field}.{name}", data["cash"][field][name], x, 1e-4)
    text = meta["quality"]["unknown"].get("cash", "")
    table.check("§6.2 unknown.cash", [field for field in CASH if re.search(rf"\b{field}\b", text, re.I)], unknown)


# §5: options/flow/{u} and options/flow/unusual

PREMIUM, VOLUME = collections.defaultdict(lambda: 25_000, SPX=250_000), collections.defaultdict(lambda: 100, SPX=500)
REJECTED = "settled not_this_session low_volume low_price low_premium".split()


def clamp(x, low=0, high=1):
    return min(max(x, low), high)


def bucket(x, bounds):
    return sum(x >= bound for bound in bounds)


@functools.lru_cache(None)
def trade_time(text):
    """Returns the instant of a last trade, or None."""
    try:
        return clock(text, new_york)
    except (AttributeError, TypeError, ValueError):
        return None


def surprises(chain):
    """Returns z of the volume of each contract among its peers, where it has at least 8."""
    peers = collections.defaultdict(list)
    for row in chain.contracts.values():
        if row.volume > 0 and row.delta is not None:
            days = (row.strike.series.date - chain.session).days
            peers[row.sign, bucket(days, (1, 8, 31, 91)), bucket(abs(row.delta), (0.1, 0.25, 0.5))].append(row)
    out = {}
    for rows in peers.values():
        sizes = [math.log(1 + row.volume) for row in rows]
        if len(rows) >= 8:
            middle = statistics.median(sizes)
            spread = max(1.4826 * statistics.median(abs(x - middle) for x in sizes), 0.25)
            out.update((row.symbol, (x - middle) / spread) for row, x in zip(rows, sizes))
    return out


def eligible(chain):
    """Returns the contracts that are scored with price and premium, and how many are not, by the first rule that they fail."""
    out, rejected = [], collections.Counter(settled=chain.skipped["settled"])
    for row in chain.contracts.values():
        traded, price = trade_time(row.traded), row.last if row.mid is None else row.mid
        traded = traded and in_new_york(traded).date() == chain.session
        price = round(price or 0, 9)
        premium = round(row.volume * price * 100, 9)
        reason = ("not_this_session" if not traded else "low_volume" if row.volume < VOLUME[chain.symbol] else
                  "low_price" if price < 0.05 else "low_premium" if premium < PREMIUM[chain.symbol] else None)
        if reason:
            rejected[reason] += 1
        else:
            out.append((row, premium))
    return out, rejected


def location(chain, row):
    """Returns L and f of the last price in the quote; f is 0 where the side is unknown."""
    half = (row.ask - row.bid) / 2 if row.mid is not None else 0
    age = max((chain.q - trade_time(row.traded)).total_seconds(), 0)
    moved = abs(row.delta or 0) * chain.spot * (row.iv or 0) * math.sqrt(max(age, 1) / (252 * 23_400))
    if row.last is None or half <= 0 or moved == 0:
        return 0, 0
    return round(clamp((row.last - row.mid) / half, -1, 1), 9), clamp(1 - age / 900) * min(1, half / (2.5 * moved))


def quote_quality(row):
    """Returns Q."""
    if not row.ask or (row.bid or 0) > row.ask:
        return 0.5
    return 1 - 0.4 * clamp((wide(row) - 0.1) / 0.4) if row.bid else 0.6


def wide(row):
    """Returns the spread over the middle of bid and ask."""
    return round((row.ask - row.bid) / ((row.ask + row.bid) / 2), 9)


def reasons(row, L, side, z, change, parts):
    """Returns the codes of the parts that raised or lowered the score, with their numbers."""
    spread = wide(row) if row.ask and row.bid and row.bid <= row.ask else 0
    code = ("NO_ASK" if not row.ask else "CROSSED" if (row.bid or 0) > row.ask else "NO_BID" if not row.bid else "WIDE_SPREAD" if spread > 0.1 else None)
    every = (("VOL_OI", ratio(row.volume, row.oi), parts["volume_oi"]), ("PREMIUM", row.volume * (row.last if row.mid is None else row.mid) * 100, parts["premium"]),
             ("SIZE", z, parts["size_surprise"]), ("AT_" + side.upper(), L, side in ("ask", "bid")), ("IV", change, parts["iv_change"]),
             (code, 100 * spread if code == "WIDE_SPREAD" else None, code))
    return {code: x for code, x, shown in every if shown}


def reads(text, x):
    """Says whether the number in a text such as 3.1M is x, rounded as it is written. None: there is no number."""
    found = re.search(r"([-+]?\d+(?:\.(\d+))?)([KMB]?)", text)
    if not found or x is None:
        return not found and x is None
    unit = {"": 1, "K": 1e3, "M": 1e6, "B": 1e9}[found[3]]
    return abs(float(found[1]) * unit - x) <= 0.50001 * unit * 10 ** -len(found[2] or "")


def flow_item(chain, row, premium, z, before):
    """Returns the fields of an observation. before: the volatility of the session before, None if unknown."""
    V, oi, right = row.volume, row.oi, 1 if row.sign > 0 else -1
    change = (row.iv - before) * 100 if row.iv and before else None
    L, f = location(chain, row)
    Q = quote_quality(row)
    parts = {"volume_oi": 30 * clamp(math.log(V / (oi + 100) / 0.5) / math.log(20)), "premium": 25 * clamp(math.log10(premium / PREMIUM[chain.symbol]) / 2),
             "size_surprise": 20 * clamp((z - 1) / 4) if z is not None else 0, "quote_location": 15 * abs(L) * f,
             "iv_change": 10 * clamp((abs(change) - 0.5) / 4.5) if change is not None else 0}
    side = "unknown" if f < 0.5 else "ask" if L >= 0.5 else "bid" if L <= -0.5 else "mid"
    lean = {"ask": right, "bid": -right, "mid": 0}.get(side)
    series = row.strike.series
    return {"id": f"{chain.session}:{row.symbol}", "symbol": chain.symbol, "contract": row.symbol, "option_type": "call" if right > 0 else "put",
            "strike": row.strike.K, "expiration": str(series.date), "days_to_expiration": (series.date - chain.session).days, "volume": V, "open_interest": oi,
            "volume_oi_ratio": ratio(V, oi), "premium": premium, "premium_basis": "last" if row.mid is None else "mid", "last_price": row.last, "bid": row.bid,
            "ask": row.ask, "implied_volatility": row.iv or None, "iv_change": change, "delta": row.delta, "moneyness_pct": (row.strike.K / chain.spot - 1) * 100,
            "underlying_price": chain.spot, "side": side, "direction": {1: "bullish", -1: "bearish", 0: "neutral"}.get(lean, "unknown"),
            "direction_confidence": 0 if side == "unknown" else min(0.6, abs(L) * f * Q), "direction_basis": "inferred_from_last_vs_quote",
            "opening_likely": V > oi, "observed_at": rfc3339(trade_time(row.traded)), "components": parts, "quality": Q,
            "reasons": reasons(row, L, side, z, change, parts), "score": Q * sum(parts.values())}


FLOW_TOLERANCES = {"volume_oi_ratio": 1e-4, "premium": 0.51, "last_price": 0.006, "bid": 0.006, "ask": 0.006, "implied_volatility": 1e-4, "iv_change": 1e-4, "delta": 1e-4,
                   "moneyness_pct": 1e-4, "underlying_price": 0.006, "direction_confidence": 1e-4, "quality": 1e-4, "score": 0.051, "strike": 0.006}


def verify_flow(table, answer, chain, previous, limit):
    """The flow of one chain."""
    data, quality, own = answer["data"], answer["meta"]["quality"], {}
    split = previous and was_split(chain, previous, chain.spot, previous.spot)
    table.check("§5 quality names a split", f"split of {chain.symbol} " in (quality["iv_change"] or ""), bool(split))
    z, (found, rejected) = surprises(chain), eligible(chain)
    for row, premium in found:
        before = previous.contracts.get(row.symbol) if previous and not split else None
        own[row.symbol] = flow_item(chain, row, premium, z.get(row.symbol), before and before.iv)
    table.check("§5 session_date", data["session_date"], str(chain.session))
    table.check("§5 universe", data["universe"], [chain.symbol])
    for reason in REJECTED:
        table.check(f"§5 rejected.{reason}", data["rejected"][reason], rejected[reason])
    table.check("§5 chains", [{"bad_numbers": 0, **row} for row in quality["chains"]], [{
        "symbol": chain.symbol, "as_of": rfc3339(chain.as_of), "listed": chain.listed, "skipped": sum(chain.skipped[reason] for reason in SKIPPED[:4]),
        "eligible": len(found), "considered": min(len(found), 100), "previous_session_iv": previous is not None, "bad_numbers": chain.bad_numbers}])
    table.check("§5 count", data["count"], len(data["items"]))
    verify_items(table, data["items"], own, limit)


def verify_merged(table, answer, inputs, known, limit):
    """The flow of all chains: of the answers that the inputs have, and these are those of this call, where they are among them."""
    meta, data = answer["meta"], answer["data"]
    flows = [(name, x) for name, x in sorted(inputs.items()) if name.startswith("state/flow/")]
    items = sorted((item for _, x in flows for item in x["data"]["items"]), key=lambda item: (-item["score"], -item["premium"], item["contract"]))
    items = items[:min(limit or len(data["items"]) or 100, 100)]
    chains = [row for _, x in flows for row in x["quality"]["chains"]]
    table.check("§5 items", data["items"], items)
    table.check("§5 count", data["count"], len(items))
    table.check("§5 universe", data["universe"], [name.rpartition("/")[2] for name, _ in flows])
    table.check("§5 session_date", [data["session_date"]] * len(flows), [x["data"]["session_date"] for _, x in flows])
    for reason in REJECTED:
        table.check(f"§5 rejected.{reason}", data["rejected"][reason], sum(x["data"]["rejected"][reason] for _, x in flows))
    table.check("§5 chains", meta["quality"]["chains"], chains)
    notes = dict.fromkeys(x["quality"]["iv_change"] for _, x in flows if x["quality"]["iv_change"])
    table.check("§5 quality.iv_change", meta["quality"]["iv_change"], "; ".join(notes) or None)
    table.check("§5 as_of", meta["as_of"], max(row["as_of"] for row in chains))
    table.check("§5 captured_at", meta["captured_at"], max(x["captured_at"] for _, x in flows))
    for name, x in flows:
        flow = known.get(x["data_sha256"])
        if flow and flow["meta"]["captured_at"] == x["captured_at"]:  # documents of two times may have equal data
            table.check(f"§5 {name}", [x["data"], x["quality"]], [flow["data"], flow["meta"]["quality"]])


def verify_items(table, items, own, limit):
    """Checks the items, that they are the first of all, and their order."""
    listed = [item["contract"] for item in items]
    table.check("§5 items that are not eligible or listed twice", [name for i, name in enumerate(listed) if name not in own or name in listed[:i]], [])
    items = [item for item in items if item["contract"] in own]
    most = min(len(own), limit or len(items))
    table.check("§5 number of items", len(items), most)
    lowest = min((item["score"] for item in items), default=math.inf)
    table.check("§5 items that are left out", [name for name, item in own.items() if name not in listed and item["score"] > lowest + 0.051][:20], [])
    keys = [(-item["score"], -item["premium"], item["contract"]) for item in items]
    table.check("§5 order", keys == sorted(keys), True)
    if not items:
        return
    served = {item["contract"]: item for item in items}
    mine = {name: own[name] for name in served}
    table.columns("§5 items", served, mine, {name: FLOW_TOLERANCES.get(name, 0) for name in items[0] if name not in ("components", "band", "reasons")})
    table.check("§5 reasons", [item["reasons"] for name, item in served.items() if [text.split()[0] for text in item["reasons"]] != list(mine[name]["reasons"])
                               or not all(reads(text.partition(" ")[2], x) for text, x in zip(item["reasons"], mine[name]["reasons"].values()))], [])
    table.columns("§5 components", {name: item["components"] for name, item in served.items()}, {name: item["components"] for name, item in mine.items()},
                  dict.fromkeys(items[0]["components"], 0.051))
    table.columns("§5 items", served, {name: {"band": "extreme" if item["score"] >= 70 else "high" if item["score"] >= 50 else "notable" if item["score"] >= 30
                                              else "low"} for name, item in served.items()}, {"band": 0})


# §§1.9, 2 and 6.1: rows that earlier answers gave

LEVEL_COLUMNS = "date session_date spot net_gex_dollars zero_gamma_flip call_wall put_wall vol_trigger abs_gamma_strike gamma_regime oi_settle_date contracts_analyzed source split method computed_at"
VOLATILITY_COLUMNS = "date atm_30d model_free_30d rank_1y realised_20d risk_reversal_25_30d put_call_open_interest method computed_at"
SECTOR_COLUMNS = ("date session_date cyclical_minus_defensive_pct tone advancing declining unchanged above_benchmark "
                  + " ".join(f"{symbol}_rs_ratio {symbol}_rs_momentum" for symbol in SECTORS.values()).lower() + " method computed_at")
CURVE_COLUMNS = "date m1 m2 m3 m4 m5 m6 m7 m8 contango_m1_m2_pct spot_basis_pct cm30 regime method computed_at"
PAIN_COLUMNS = ("date session_date spot expiration max_pain distance_pct put_call_oi_ratio monthly_expiration monthly_max_pain monthly_distance_pct "
                "monthly_put_call_oi_ratio source method computed_at")
SERIES_COLUMNS = {"volatility": VOLATILITY_COLUMNS, "vix": CURVE_COLUMNS, "max-pain": PAIN_COLUMNS, "sectors": SECTOR_COLUMNS}
TRACK_COLUMNS = ("as_of spot effective_spot net_gex_dollars zero_gamma_flip call_wall put_wall gamma_regime expected_move_1d zero_dte_net_gex_dollars "
                 "zero_dte_gross_share_pct flip_low flip_high charm_ex_zero_dte_dollars_per_day method")
STRIKES_COLUMNS = "as_of effective_spot strikes net_gex_dollars method"
UNDERLYING_FIELDS = ("spot spot_change_pct effective_spot net_gex_dollars gross_gex_dollars zero_gamma_flip flip_status flip_distance_pct gamma_regime call_wall "
                     "put_wall expected_move_1d").split()


def verify_series(table, answer, inputs, known):
    """The rows are those of the input, and each is that of its snapshot, where that is among the answers of this call."""
    data, stored = answer["data"], inputs["state/series-rows"]
    columns = next((c for kind, c in SERIES_COLUMNS.items() if kind in answer["meta"]["endpoint"]), LEVEL_COLUMNS)
    name = next(name for name in inputs if not name.startswith("state/"))
    if name.startswith("quotes/"):
        as_of = max(Quote(x).as_of for name, x in inputs.items() if name.startswith("quotes/"))
    else:
        as_of = futures_settle(dt.date.fromisoformat(name[len("settlement/"):-len(".csv")])) if name.startswith("settlement/") else inputs[name].as_of
    table.check("§2 as_of", answer["meta"]["as_of"], rfc3339(as_of))
    table.check("§2 columns", data["columns"], columns.split())
    count = len(columns.split())
    own = columns.split().index("method") - count  # from the end: a later column stands before method
    table.check("§2 rows", data["rows"], [row["row"][:own] + [None] * (count - len(row["row"])) + row["row"][own:] for row in stored])
    dates = [row[0] for row in data["rows"]]
    table.check("§2 order", dates, sorted(set(dates))[-400:])
    table.check("§2 quality.rows", answer["meta"]["quality"]["rows"], len(dates))
    for stored in stored:
        snapshot = known.get(stored["snapshot"])
        if snapshot:
            months = {f"m{row['rank']}": row["settlement"] for row in snapshot["data"].get("curve", ())}
            reason = snapshot["meta"]["quality"].get("changes_reason")
            monthly = dict.fromkeys("monthly_" + name for name in ("expiration", *PAINS))
            for row in reversed(snapshot["data"].get("expirations", ())):
                date = dt.date.fromisoformat(row["expiration"])
                if date == on_or_before(nth(date.year, date.month, 4, 3)) and "max_pain" in row:
                    monthly = {name: row[name[len("monthly_"):]] for name in monthly}
            funds = {row["symbol"]: row["rrg"] or {} for row in snapshot["data"].get("sectors", ())}
            places = {f"{symbol}_{x}".lower(): funds.get(symbol, {}).get(x) for symbol in SECTORS.values() for x in ("rs_ratio", "rs_momentum")}
            have = {**dict.fromkeys("m1 m2 m3 m4 m5 m6 m7 m8".split()), **snapshot["data"], **snapshot["data"].get("breadth", {}), **places, **months, **monthly, "source": snapshot["meta"]["source"],
                    "session_date": snapshot["meta"]["session_date"], "computed_at": snapshot["meta"]["computed_at"],
                    "date": snapshot["meta"]["as_of"][:10], "method": snapshot["meta"]["receipt"]["method"],
                    "split": None if reason == "no_reference" else reason == "split"}
            table.check(f"§2 row of {stored['row'][0]}", stored["row"], [have[column] for column in columns.split()])


def verify_rows(table, answer, chain, stored, columns):
    """Checks all but the newest row, which is returned, if the chain has one, by column. The rows before it are an input."""
    data = answer["data"]
    table.check("§2 columns", data["columns"], columns.split())
    table.check("§2 session_date", data["session_date"], str(chain.session))
    table.check("§2 date", data["date"], rfc3339(chain.as_of)[:10])
    times = [row[0] for row in data["rows"]]
    table.check("§2 order", times, sorted(set(times)))
    opens, ends = at(chain.session, 9, 30), at(chain.session, closing(chain.session), 15)
    table.check("§2 outside the session", [x for x in times if not rfc3339(opens) <= x <= rfc3339(ends)], [])
    table.check("§2 quality.rows", answer["meta"]["quality"]["rows"], len(times))
    thinned = stored if len(stored) < 1200 else [row for i, row in enumerate(stored) if i % 2 == 0 or i == len(stored)]
    table.check("§2 rows before the newest", [row for row in data["rows"] if row[0] != rfc3339(chain.as_of)], thinned)
    if not times or times[-1] != rfc3339(chain.as_of):
        return table.check("§2 as_of is in the hours of the track", not opens <= chain.as_of <= ends, True)
    row = dict(zip(columns.split(), data["rows"][-1]))
    table.check("§2 newest row, method", row["method"], answer["meta"]["receipt"]["method"])
    return row


def verify_strikes(table, answer, m, stored):
    """Net gamma by strike through a session."""
    row, S = verify_rows(table, answer, m.chain, stored, STRIKES_COLUMNS), m.chain.S
    parts = [dt.datetime.fromisoformat(each[0][:-1]).timestamp() // 300 for each in answer["data"]["rows"]]
    table.check("§2 rows of the same 5 minutes", len(parts) - len(set(parts)), 0)
    if row:
        rows = near_spot(m.by_strike, m.chain, 0.15)
        near = sorted(sorted(rows, key=lambda K: (round(abs(K - S), 9), K))[:70])
        table.check("§2 newest row, effective_spot", row["effective_spot"], S, 0.01)
        table.check("§2 newest row, strikes", row["strikes"], near)
        for K, served in zip(near, row["net_gex_dollars"], strict=True):
            own = rows[K]["net_gex_dollars"]
            table.check("§2 newest row, digits", served, served and round(float(f"{served:.2e}")))
            table.check(f"§2 newest row, net of {K}", served, own, max(1, 1e-6 * m.gross) + abs(own or 0) * 0.005)


def verify_track(table, answer, m, stored):
    """The levels through a session."""
    row, later = verify_rows(table, answer, m.chain, stored, TRACK_COLUMNS), "charm_ex_zero_dte_dollars_per_day"
    if row:
        verify_figures(table, "§2 newest row,", row, m, [
            ("as_of", rfc3339(m.chain.as_of), 0),
            (later, m.shown(sum(each[later] for each in m.expirations.values())), max(1, 1e-6 * sum(abs(each[later]) for each in m.expirations.values())))])


def verify_figures(table, where, row, m, more):
    """Checks the figures that a row of a track and the summary have, and more of them. Returns the flip."""
    chain, (today, reason), own = m.chain, zero_dte(m), levels(m)
    net = sum(m.expirations[series.name]["net_gex_dollars"] for series in chain.series if series.session == chain.session)
    dollars, wide = max(1, 1e-6 * m.gross), price_tolerance(chain.S)
    for name, x, tolerance in more + [
            ("spot", chain.spot, 0.01), ("effective_spot", chain.S, 0.01), ("net_gex_dollars", m.shown(m.net), dollars),
            ("call_wall", cents(own["call_wall"]), 0), ("put_wall", cents(own["put_wall"]), 0), ("expected_move_1d", expected_move(chain), 0.02),
            ("zero_dte_net_gex_dollars", None if reason or chain.mismatch else net, dollars),
            ("zero_dte_gross_share_pct", today["gross_share_pct"], 2e-4), ("gamma_regime", regime(m), 0)]:
        table.check(f"{where} {name}", row[name], x, tolerance)
    return [table.one_of(f"{where} {name}", row[name], own, wide)
            for name, own in zip(("zero_gamma_flip", "flip_low", "flip_high"), (m.flips()["model"], *band_ends(m)))][0]


# §1.13: gex/{u}/summary

def verify_summary(table, answer, m):
    data, quality, chain = answer["data"], answer["meta"]["quality"], m.chain
    verify_parameters(table, answer["meta"]["receipt"]["parameters"], chain)
    by_series = {series: date_volatility(chain, series) for series in chain.series if series.seconds >= 3600 and series.source == "parity"}
    month = month_figures(chain, by_series)
    flip = verify_figures(table, "§1.13", data, m, [
        ("symbol", chain.symbol, 0), ("session_date", str(chain.session), 0), ("spot_source", chain.source, 0), ("spot_change_pct", chain.change, 1e-4),
        ("put_call_open_interest", month["put_call_open_interest"], 2e-4), ("atm_30d", month["atm_30d"], 2e-4)])
    table.check("§1.13 flip_distance_pct", data["flip_distance_pct"], None if flip is None else (chain.S - flip) / chain.S * 100, 6e-4)
    table.one_of("§1.13 vol_trigger", data["vol_trigger"], m.trigger(), price_tolerance(chain.S))
    found, sign = m.crossings() if m.known else ([], 0)
    none = "none_all_positive" if sign > 0 else "none_all_negative" if sign else "insufficient_data"
    may = [none if flip is None else "multiple" if n > 1 else "found" for n in range(sum(crossing.certain for crossing in found), len(found) + 1)]
    table.one_of("§1.13 flip_status", data["flip_status"], ["spot_mismatch"] if chain.mismatch else ["open_interest_missing"] if m.lacking else may, 0)
    table.check("§1.13 quality", quality, {**quality, "contracts_used": len(chain.used), "zero_dte_reason": zero_dte(m)[1]})


def verify_underlyings(table, answer, inputs, known):
    """The rows are those of the input, and those of the answers that they name, where these are among the answers of this call."""
    rows = answer["data"]["rows"]
    table.check("§1.9 rows", rows, inputs["state/underlyings"])
    table.check("§1.9 quality.rows", answer["meta"]["quality"]["rows"], len(rows))
    table.check("§1.9 as_of", answer["meta"]["as_of"], max(row["as_of"] for row in rows))
    table.check("§1.9 captured_at", answer["meta"]["captured_at"], None)
    for row in rows:
        gamma, volatility = known.get(row["data_sha256"]), known.get(row["volatility_data_sha256"])
        if gamma:
            own = {name: gamma["data"][name] for name in UNDERLYING_FIELDS}
            own.update(symbol=gamma["data"]["symbol"], as_of=gamma["meta"]["as_of"])
            table.check(f"§1.9 {row['symbol']}, gamma", {name: row[name] for name in own}, own)
        if volatility or not row["volatility_data_sha256"]:
            fields = ("atm_30d", "rank_1y", "put_call_open_interest")
            table.check(f"§1.9 {row['symbol']}, volatility", [row[name] for name in fields], [volatility and volatility["data"][name] for name in fields])


# §0: the receipt and the answers

@functools.lru_cache(maxsize=12)
def document(folder, digest, name, closures):
    """Returns the digest of a stored document, and what it holds: a chain, a quote's or state's JSON, or text. closures keeps chains apart."""
    path = pathlib.Path(folder, os.path.basename(digest))
    packed = path.with_name(path.name + ".gz")
    body = gzip.decompress(packed.read_bytes()) if packed.exists() else path.read_bytes()
    own, kind = hashlib.sha256(body).hexdigest(), name[len("previous/"):] if name.startswith("previous/") else name
    if own != digest:
        return own, None
    if kind.startswith("options/"):
        return own, Chain(kind[len("options/"):-len(".json")].lstrip("_"), json.loads(body))
    return own, body.decode("utf-8-sig") if kind.endswith(".csv") else json.loads(body)


def verify_receipt(table, answer, data, folder):
    """Checks every digest. Returns what the receipt names, by name, without missing and altered documents."""
    receipt, found = answer["meta"]["receipt"], {}
    table.check("§0 data_sha256", receipt["data_sha256"], hashlib.sha256(data).hexdigest())
    table.check("§0 input_sha256", receipt["input_sha256"], [i["sha256"] for i in receipt["inputs"]])
    closures = next((i["sha256"] for i in receipt["inputs"] if i["name"] == "state/closed-dates"), "")
    for kind in added:
        added[kind] = ()
    closing.cache_clear()
    for name, digest in sorted(((i["name"], i["sha256"]) for i in receipt["inputs"]), key=lambda i: i[0] != "state/closed-dates"):
        own = None
        try:
            own, found[name] = document(str(folder), digest, name, closures)
        except OSError as e:
            print(e, file=sys.stderr)
        table.check(f"§0 input {name}", digest, own)
        if name == "state/closed-dates" and own == digest:
            for kind, dates in found[name].items():
                added[kind] = dates or ()
            closing.cache_clear()
    return {name: x for name, x in found.items() if x is not None}


def verify(table, answer, inputs, known, where, strike):
    """Recomputes an answer from its inputs. known: the answers of this call, by the digest of their data."""
    meta, data = answer["meta"], answer["data"]
    method = meta["receipt"]["method"].split("/")[0]
    names = [name for name in inputs if name.startswith("options/")]
    chain, previous = (inputs.get(prefix + names[0]) for prefix in ("", "previous/")) if len(names) == 1 else (None, None)
    as_of = dt.datetime.fromisoformat(meta["as_of"][:-1]).replace(tzinfo=dt.timezone.utc)
    table.check("§0 session_date", meta["session_date"], str(on_or_before(in_new_york(as_of).date())))
    if chain:
        table.check("§0 as_of", meta["as_of"], rfc3339(chain.as_of))
        table.check("§0 captured_at", meta["captured_at"], rfc3339(chain.captured_at))
        table.show("§0 q, the quote instant", rfc3339(chain.q))
    if method == "summary":
        verify_summary(table, answer, model(chain, meta["receipt"]["parameters"]["risk_free_rate"]))
    elif method in ("gex", "levels", "volatility"):
        m = model(chain, meta["receipt"]["parameters"]["risk_free_rate"])
        verify_head(table, answer, chain, verify_common(table, answer, m))
        if method == "levels":
            verify_key_levels(table, answer, m)
        elif method == "volatility":
            verify_volatility(table, answer, m, inputs["state/volatility-history"])
        elif meta["endpoint"].endswith("/matrix"):
            verify_matrix(table, answer, m)
        elif meta["endpoint"].endswith("/open-interest"):
            verify_open_interest(table, answer, chain, previous and model(previous, chain.rate).chain)
        else:
            verify_gamma(table, answer, chain, previous, strike)
    elif method == "track":
        verify_track(table, answer, model(chain, meta["receipt"]["parameters"]["risk_free_rate"]), inputs["state/track-rows"])
    elif method == "strikes":
        verify_strikes(table, answer, model(chain, meta["receipt"]["parameters"]["risk_free_rate"]), inputs["state/track-rows"])
    elif method == "maxpain":
        verify_head(table, answer, chain, chain.skipped)
        verify_pain(table, answer, chain)
    elif method == "flow":
        limit = re.search(r"limit=(\d+)", where)
        limit = int(limit[1]) if limit else 20 if "://" in where else None
        if chain:
            verify_flow(table, answer, chain, previous, limit)
        else:
            verify_merged(table, answer, inputs, known, limit)
    elif method == "sectors":
        verify_sectors(table, answer, inputs)
    elif method == "vix":
        verify_vix(table, answer, inputs)
    elif method in ("series", "vixseries"):
        verify_series(table, answer, inputs, known)
    elif method == "underlyings":
        verify_underlyings(table, answer, inputs, known)


def published_iv_ratio(chain):
    """§1.7: returns the ratio or None, and the ratios that are not noted."""
    near = sorted((s for s in chain.series if s.source == "parity" and 43200 <= s.seconds <= 864000), key=lambda s: s.seconds)[:3]
    found = []
    for series in near:
        both = []
        for strike in series.strikes:
            row = strike.call if strike.K >= series.F else strike.put
            if strike.v and strike.step == "implied" and row.iv:
                both.append((abs(strike.K - series.F), strike.K, strike.v / math.sqrt(series.T) / row.iv))
        found += [x for _, _, x in sorted(both)[:10]]
    moving = chain.q == max(chain.as_of, chain.captured_at - dt.timedelta(minutes=15))
    return statistics.median(found) if len(found) >= 5 else None, (0.99, 1.01) if moving else (0.94, 1.03)


def verify_head(table, answer, chain, skipped):
    """§§0, 1.0 and 1.7: the fields that every answer on one chain has."""
    data, quality = answer["data"], answer["meta"]["quality"]
    table.check("§0 symbol", data["symbol"], chain.symbol)
    if "spot" in data:
        table.check("§0 spot", data["spot"], chain.spot, 0.01)
    if "session_date" in data:
        table.check("§0 data.session_date", data["session_date"], str(chain.session))
    table.check("§1.7 listed", quality["contracts"]["listed"], chain.listed)
    for reason, served in quality["contracts"]["skipped"].items():
        table.check(f"§1.7 skipped.{reason}", served, skipped[reason])
    table.check("§0 bad_numbers", quality.get("bad_numbers", 0), chain.bad_numbers)
    outside = outside_calendar([chain.session, *(series.date for series in chain.series)])
    table.check("§1.7 calendar", quality["calendar"] is not None, outside)


METHODS = "gex/9 track/5 strikes/3 series/3 underlyings/3 levels/6 summary/3 volatility/4 maxpain/4 flow/7 sectors/4 vix/6 vixseries/3".split()


KEY = []  # the API key of the command line, if there is one


def fetch(where):
    """Returns the text of an answer. Over a limit, it waits for as long as the server asks, but not for the next day."""
    request = urllib.request.Request(where if "://" in where else pathlib.Path(where).resolve().as_uri())
    for key in KEY:
        request.add_unredirected_header("X-API-Key", key)
    while True:
        try:
            with urllib.request.urlopen(request, timeout=60) as response:
                return response.read().decode()
        except urllib.error.HTTPError as e:
            after = e.headers.get("Retry-After", "")
            if e.code != 429 or not after.isdecimal() or int(after) > 60:
                raise
            time.sleep(int(after))


def read(where):
    """Returns an answer and the exact bytes of its data."""
    text = fetch(where)
    answer, start = json.loads(text), text.index('"data":') + len('"data":')
    if answer["meta"]["receipt"]["method"] not in METHODS:
        raise ValueError(f"method {answer['meta']['receipt']['method']}; this program knows {', '.join(METHODS)}")
    return answer, text[start:json.JSONDecoder().raw_decode(text, start)[1]].encode()


def exists(url):
    """Says whether there is an answer. A date that was filled in later has no track."""
    try:
        return bool(fetch(url))
    except urllib.error.HTTPError as e:
        if e.code != 404:
            raise
        return False


def walk(base, history):
    """Yields the URLs of all answers of a server: its current answers, and with history those of each stored date."""
    base, unfed = base.rstrip("/"), json.loads(fetch(base.rstrip("/") + "/readyz"))["unfed"]
    for row in read(base + "/api/v1/underlyings")[0]["data"]["rows"]:
        u = row["symbol"].replace(".", "").lower()
        for path in ("gex/{}", "gex/{}/intraday", "gex/{}/strikes", "gex/{}/matrix", "gex/{}/levels", "gex/{}/summary", "gex/{}/open-interest", "volatility/{}", "gex/{}/series", "volatility/{}/series",
                     "options/flow/{}?limit=100"):
            yield f"{base}/api/v1/{path.format(u)}"
        pain = f"{base}/api/public/{u}-max-pain"
        yield from (f"{pain}?expiration={row['expiration']}" for row in read(pain)[0]["data"]["expirations"])
        yield f"{pain}/series"
        yield from (f"{pain}?date={row[0]}" for row in (read(f"{pain}/series")[0]["data"]["rows"] if history else ()))
        dates = [row[0] for row in read(f"{base}/api/v1/gex/{u}/series")[0]["data"]["rows"]] if history else ()
        for date in dates:
            yield from (f"{base}/api/v1/{path}?date={date}" for path in (f"gex/{u}/historical", f"volatility/{u}/historical"))
            yield from filter(exists, (f"{base}/api/v1/{path}date={date}" for path in (f"gex/{u}/intraday?", f"gex/{u}/strikes?", f"options/flow/{u}?limit=100&")))
    for path in ("v1/options/flow/unusual?limit=100", "v1/options/flow/unusual", "v1/sectors/rotation", "v1/sectors/rotation/series", "public/vix-term-structure",
                 "public/vix-term-structure/series", "v1/underlyings"):
        name = path.split("/", 1)[1].split("?")[0]
        if name in unfed:
            print(f"{base}/api/{path} has no answer: the source has no documents for it")
            continue
        yield f"{base}/api/{path}"
        if history and name in ("sectors/rotation", "vix-term-structure", "options/flow/unusual"):
            series = f"{base}/api/public/vix-term-structure/series" if "vix" in name else f"{base}/api/v1/gex/{u}/series"
            dated = (f"{base}/api/{path}{'&' if '?' in path else '?'}date={row[0]}" for row in read(series)[0]["data"]["rows"])
            yield from filter(exists, dated) if "flow" in name else dated


class Run:
    """Verifies answers, one after another."""

    def __init__(self, args):
        self.args, self.several = args, args.all or len(args.answers) > 1
        self.known, self.later, self.count, self.checks, self.differing, self.missing = {}, [], 0, 0, 0, 0

    def all(self, targets):
        for where in targets:
            try:
                answer, data = read(where)
            except (OSError, ValueError, LookupError, TypeError) as e:
                print(f"no answer in {where}: {e!r}", file=sys.stderr)
                self.missing += 1
                continue
            meta = answer["meta"]
            if meta["receipt"]["method"].split("/")[0] in ("series", "vixseries", "underlyings") or meta["endpoint"].endswith("/unusual"):
                self.later.append((where, answer, data))  # their rows are those of other answers
                continue
            self.one(where, answer, data)
            if not meta["endpoint"].endswith("/matrix"):
                short = {name: x for name, x in answer["data"].items() if name not in ("by_strike", "profile", "by_expiration")}
                self.known.setdefault(meta["receipt"]["data_sha256"], {"data": short, "meta": meta})
        for where, answer, data in self.later:
            self.one(where, answer, data)
        if self.several or self.missing:
            found = f"{self.checks} checks, {self.differing} differ" if self.count else "nothing was verified"
            print(f"{self.count} answers: {found}" + (f", {self.missing} could not be read" if self.missing else ""))
        return 2 if self.missing else 1 if self.differing else 0

    def one(self, where, answer, data):
        """Verifies an answer and prints its table."""
        if self.several:
            print(where)
        table = Table(self.args.quiet)
        inputs = verify_receipt(table, answer, data, self.args.documents)
        if len(inputs) == len(answer["meta"]["receipt"]["inputs"]):
            try:
                verify(table, answer, inputs, self.known, where, self.args.strike)
            except (LookupError, TypeError, ValueError, AttributeError, ArithmeticError) as e:
                traceback.print_exc()
                table.check("an answer of the form that the methods page says", repr(e), None)
        else:
            print("Nothing is recomputed without the documents that the receipt names.")
        print(f"{table.checks} checks, {len(table.differing)} differ", *table.differing, sep="\n  ")
        self.count, self.checks, self.differing = self.count + 1, self.checks + table.checks, self.differing + len(table.differing)


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("answers", nargs="*", metavar="ANSWER", help="URL of an answer, such as http://127.0.0.1:8080/api/v1/gex/spx, or a file")
    parser.add_argument("--documents", metavar="DIR", required=True, help="documents of the server, <data-dir>/<source>/objects, or a folder "
                        "of decoded files <sha256>")
    parser.add_argument("--all", metavar="URL", help="verify every current answer of a server, such as http://127.0.0.1:8080")
    parser.add_argument("--key", default=os.environ.get("API_KEY"), help="API key of the server; default: API_KEY of the environment, which other users do not see")
    parser.add_argument("--history", action="store_true", help="with --all, verify the answers of each stored date, too")
    parser.add_argument("--quiet", action="store_true", help="print only figures that differ")
    parser.add_argument("--strike", type=float, help="show volatility and gamma of this strike in every expiration; default: "
                        "of the strike nearest to the spot, in the first expiration")
    args = parser.parse_args()
    KEY.extend(filter(None, [args.key]))
    if not args.answers and not args.all:
        parser.error("name an answer, or a server with --all")
    try:
        targets = args.answers + (list(walk(args.all, args.history)) if args.all else [])
    except (OSError, ValueError, LookupError, TypeError) as e:
        parser.error(f"{args.all} is not a server that is ready: {e!r}")
    return Run(args).all(targets)


if __name__ == "__main__":
    sys.exit(main())
