package main

// mutant is a fault: in a file, a text that stands there once becomes another, and a test of a package must fail.
type mutant struct {
	name, file, is, becomes string
	pkg, test               string
}

var mutants = []mutant{
	{"AM and PM swapped", "compute/chain.go", `"SPX": {"SPX", AM}, "SPXW": {"SPX", PM}`, `"SPX": {"SPX", PM}, "SPXW": {"SPX", AM}`,
		"compute", "TestTimeToSettlement"},
	{"early close at 16:00", "compute/calendar.go", `return d.At(13, 0, 0, NewYork)`, `return d.At(16, 0, 0, NewYork)`,
		"compute", "TestOpenAndClose"},
	{"Juneteenth before 2022", "compute/calendar.go", `y >= 2022 && `, ``, "compute", "TestCalendarEasilyWrong"},
	{"New Year observed on Friday", "compute/calendar.go", `d == observed(NewDate(y, time.December, 25))`,
		`d == observed(NewDate(y, time.December, 25)) || d == NewDate(y, time.December, 31) && d.Weekday() == time.Friday`,
		"compute", "TestCalendarDayByDay"},
	{"VIX holiday rule dropped", "compute/calendar.go", `if !c.IsSession(friday) || !c.IsSession(wednesday) {`, `if !c.IsSession(wednesday) {`,
		"compute", "TestVIXExpiration"},
	{"New York time read as UTC", "refresh/cboe/clock.go", `parseClock(raw, compute.NewYork)`, `parseClock(raw, time.UTC)`,
		"refresh/cboe", "TestDecodeChainReadsEveryColumn"},
	{"UTC read as New York time", "refresh/cboe/clock.go", `return parseClock(raw, time.UTC)`, `return parseClock(raw, compute.NewYork)`,
		"refresh/cboe", "TestDecodeChainReadsEveryColumn"},
	{"trade times without DST", "refresh/cboe/clock.go", `Unix()-midnight == 24*3600`, `Unix()-midnight >= 0`, "refresh/cboe", "TestTradeTimesAcrossDST"},
	{"clocks are content", "refresh/cboe/quotes.go", `at = c[1]`, `at = c[0]`, "refresh/cboe", "TestContentIgnoresTheClocks"},
	{"yesterday's close as spot", "refresh/cboe/quotes.go", `case "close":`, `case "prev_day_close":`, "refresh/cboe", "TestSpotFallsBackToClose"},
	{"carry dropped", "compute/surface.go", `g.logCarry, g.source = logMoneyness(f, s.spot), forwardParity`, `g.logCarry, g.source = 0*logMoneyness(f, s.spot), forwardParity`,
		"compute", "TestForwardSources"},
	{"mids not grown by the rate", "compute/surface.go", `f, growth := s.forward(spot), 1/s.discount(rate)`, `f, growth := s.forward(spot), 1.0`,
		"compute", "TestImpliedIsUndiscounted"},
	{"volatility of the other side", "compute/surface.go", `if row.k < f {`, `if row.k >= f {`, "compute", "TestVolatilitySteps"},
	{"volatility floor dropped", "compute/surface.go", `math.Sqrt(max(s.years, volatilityFloorYears))`, `math.Sqrt(s.years)`,
		"compute", "TestVolatilityFloor"},
	{"v interpolated, not v²", "compute/surface.go", `math.Sqrt(a.v*a.v + w*(b.v*b.v-a.v*a.v))`, `a.v + w*(b.v-a.v)`,
		"compute", "TestInterpolatedVolatility"},
	{"settled rows kept", "compute/surface.go", `if years <= 0 {`, `if years <= -1 {`, "compute", "TestSkippedAccounts"},
	{"puts counted as calls", "compute/gamma.go", `sum.put -= gex`, `sum.put += gex`, "compute", "TestThreeContractsByHand"},
	{"put sign lost in the profile", "compute/scenarios.go", `				if Right(right) == Put {
					w = -w`, `				if Right(right) == Put {
					w = +w`, "compute", "TestFlipByHand"},
	{"open interest for volume", "compute/scenarios.go", `return positive(c.Volume)`, `return c.OpenInterest`, "compute", "TestConventions"},
	{"phantom roots kept", "compute/flip.go", `const materialShare = 0.01`, `const materialShare = 0`, "compute", "TestPhantomRootIsDropped"},
	{"recurrence never resynced", "compute/profile.go", `resync = 256`, `resync = 1 << 20`, "compute", "TestGridAgainstDirectEvaluation"},
	{"open interest is today's", "compute/gamma.go", `	return cal.Previous(last), oiSettled`, `	return last, oiSettled`, "compute", "TestOpenInterestDate"},
	{"max pain ties to the lowest", "compute/maxpain.go", `p.Payout == least.Payout &&`, `false &&`, "compute", "TestMaxPainTies"},
	{"max pain calls and puts swapped", "compute/maxpain.go", `row := &out[len(out)-1]; c.Right == Call`, `row := &out[len(out)-1]; c.Right == Put`,
		"compute", "TestMaxPainByHand"},
	{"flow of another session", "compute/flow.go", `case c.LastTrade < opened || c.LastTrade >= closed:`, `case c.LastTrade < 0*opened*closed:`, "compute", "TestFlowEligibility"},
	{"open interest for volume in flow", "compute/flowscore.go", `ratio := o.Volume / (o.OpenInterest + 100)`, `ratio := o.OpenInterest / (o.Volume + 100)`,
		"compute", "TestVolumeOIComponent"},
	{"quality factor dropped", "compute/flowscore.go", `roundTo(o.quality*o.components.sum(), 1)`, `roundTo(o.components.sum(), 1)`, "compute", "TestQualityFactor"},
	{"population deviation in rrg", "compute/sectors.go", `mean, sd := meanStdev(xs, 1)`, `mean, sd := meanStdev(xs, 0)`, "compute", "TestRRG"},
	{"weeklies on the VIX curve", "compute/vix.go", `rest, ok := strings.CutPrefix(symbol, "VX/")`, `_, rest, ok := strings.Cut(symbol, "/")`,
		"compute", "TestRecordedCurve"},
	{"rounding half to even", "compute/number.go", `return math.Round(x)`, `return math.RoundToEven(x)`,
		"compute", "TestNumberRounding"},
	{"ties as the binary falls", "compute/number.go", `noise = 4e-16`, `noise = 0`, "compute", "TestNumberRounding"},
	{"answers that wait for the disk forgotten", "snapshots/replica.go", `if delete(r.waiting, date); !onDisk {`, `if delete(r.waiting, date); false {`,
		"snapshots", "TestReplica"},
	{"publications in pieces", "refresh/process/sender.go", `n = len(numbers)
`, `n = 0
`, "refresh/process", "TestFollow"},
	{"a start makes stale answers fresh", "refresh/restore.go", `h.health.inherit(f)`, `_ = f`, "refresh", "TestStaleIsInherited"},
	{"a restored answer ends stale", "snapshots/replica.go", `here.Default.Meta.Freshness.Stale() &&`, `false &&`,
		"snapshots", "TestReplicaKeepsWhatWasComputedLater"},
	{"what a killed refresher wrote last is not read", "snapshots/replica.go", `	r.forget()`, ``, "snapshots", "TestReplicaReadsAgain"},
	{"who waits for a disk tells that all is well", "refresh/process/child.go", `w.looks%usageEvery == 1 && settles {`,
		`w.looks%usageEvery == 1 || settles && false {`, "refresh/process", "TestNoWordWhileStuck"},
	{"the market starts again with its refresher", "refresh/process/parent.go", `asked.Clock = new(r.clock)`, `asked.Clock = nil`,
		"refresh/process", "TestTheMarketGoesOn"},
	{"stale after two failures", "refresh/health.go", `failuresToStale = 3`, `failuresToStale = 2`, "refresh", "TestFreshness"},
	{"dates never close", "refresh/publish.go", `const closesAfter = 10 * time.Minute`, `const closesAfter = 1000 * time.Hour`, "refresh", "TestLateAnswers"},
	{"settlements a day early", "refresh/vix.go", `		return cal.Previous(d)
	}
	return d`, `		return d
	}
	return d`, "refresh", "TestSettlementDue"},
	{"digest of the payload alone", "snapshots/files.go", `digest(b[at+digestLen:]) != string(b[at:at+digestLen])`, `len(payload) == 0`,
		"snapshots", "TestFileDamage"},
	{"gzip;q=0 accepted", "server/negotiate.go", `s.Has(c) && q > 0 &&`, `s.Has(c) &&`, "server", "TestChoose"},
	{"a parameter may be repeated", "server/routes.go", `if n > 1 {`, `if n > 2 {`, "server", "TestErrors"},
	{"one coding's tag alone matches", "server/respond.go", `s.Matches(list[:end+2])`, `string(list[:end+2]) == s.ETag(snapshots.Identity)`,
		"server", "TestConditionalRequests"},
	{"keyed answers are public", "server/find.go", `return c.private`, `return c.public`, "server", "TestKeyedAnswers"},
	{"the last Content-Length counts", "server/head.go", `if h.sized || len(value) == 0 {`, `if h.body = 0; len(value) == 0 {`,
		"server", "TestHeadRefusesSecondFraming"},
	{"Transfer-Encoding ignored", "server/head.go", `return errTransferEncoding`, `return nil`, "server", "TestSmuggling"},
	{"a request without a Host", "server/head.go", `!h.named && !h.http10:`, `false:`, "server", "TestSmuggling"},
	{"bytes after a request are lost", "server/gate.go", `c.held = append(c.held, b[used+n:]...)`, `_ = used`, "server", "TestUnusualRequests"},
	{"a body may take as long as an idle connection", "server/gate.go", `if c.pass == 0 {`, `if c.pass >= 0 {`, "server", "TestFaultSlowClients"},
	{"who does not read keeps the kernel's memory", "server/gate.go", `tcp.SetLinger(0)`, `tcp.SetNoDelay(true)`, "server", "TestFaultSlowClients"},
	{"one connection more than the limit", "server/admit.go", `len(s.open) >= limit`, `len(s.open) > limit`, "server", "TestFaultConnectionLimit"},
	{"a lack of descriptors ends the server", "server/admit.go", `case lacking(err):`, `case false:`, "server", "TestFaultAccept"},
	{"a server that stops resets the backlog", "server/admit.go", `if g.interrupt(0) {`, `if false {`, "server", "TestShutdownServesTheBacklog"},
	{"checksum of the tail alone", "snapshots/tail.go", `crc32.Update(s.crc, crc32.IEEETable, dst[start:])`, `crc32.ChecksumIEEE(dst[start:])`,
		"snapshots", "TestKeyedBodies"},
	{"refused by rate, counted by day", "server/limits/verdict.go", `			v.Outcome = RateLimited
			return v`, `			v.Outcome = RateLimited
			v.Today, _ = d.Take(nowNanos, perDay)
			return v`, "server/limits", "TestAdmitHeaders"},
	{"every X-Forwarded-For is believed", "server/limits/proxies.go", `!trusted.Trusts(current)`, `false`, "server/limits", "TestClientAddr"},
	{"expired keys accepted", "server/keys/table.go", `|| nowNanos >= e.expires`, ``, "server/keys", "TestLookup"},
	{"another site's name for this machine", "server/admin/admin.go", `if !localHost(r.Host) {`, `if false {`, "server/admin", "TestRebinding"},
	{"a fault ends the process", "server/gate.go", `if panicked := recover(); panicked != nil {`, `if panicked := any(nil); panicked != nil {`,
		"server", "TestPanicIsAnswered"},
	{"every response is timed", "server/traffic.go", `nth%timedEvery == 1`, `nth%timedEvery >= 0`, "server", "TestDurationsAreSampled"},
}
