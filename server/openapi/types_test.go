package openapi_test

import (
	"encoding/json"
	"reflect"
	"time"

	"strikecache/compute"
)

// The types below describe JSON that is written without a type of package compute, snapshots or refresh.

// mirrors has, for each type with its own MarshalJSON, a type whose tags give the same JSON.
var mirrors = map[reflect.Type]reflect.Type{
	reflect.TypeFor[compute.PayoutCurve](): reflect.TypeFor[[]payoutPoint](),
	reflect.TypeFor[compute.StrikeOIs]():   reflect.TypeFor[[]strikeOpenInterest](),
}

type payoutPoint struct {
	Price compute.Level   `json:"settlement_price"`
	Call  compute.Dollars `json:"call_payout_dollars"`
	Put   compute.Dollars `json:"put_payout_dollars"`
	Total compute.Dollars `json:"total_payout_dollars"`
}

type strikeOpenInterest struct {
	Strike compute.Level `json:"strike"`
	Call   compute.Count `json:"call"`
	Put    compute.Count `json:"put"`
}

// usage is `usage` of a request without a key.
type usage struct {
	Tier string `json:"tier"`
}

// keyedUsage is `usage` of a request with a key.
type keyedUsage struct {
	Tier           string    `json:"tier"`
	Key            string    `json:"key"`
	RequestsToday  int64     `json:"requests_today"`
	LimitPerDay    *int64    `json:"limit_per_day"`
	RemainingToday *int64    `json:"remaining_today"`
	ResetsAt       time.Time `json:"resets_at"`
}

// errorAnswer is the envelope of an error.
type errorAnswer struct {
	Success bool            `json:"success"`
	Error   errorBody       `json:"error"`
	Meta    errorMeta       `json:"meta"`
	Usage   json.RawMessage `json:"usage"`
}

type errorBody struct {
	Code        string   `json:"code"`
	Message     string   `json:"message"`
	Parameter   string   `json:"parameter,omitempty"`
	Reason      string   `json:"reason,omitempty"`
	Nearest     nearest  `json:"nearest,omitempty"`
	Expirations []string `json:"expirations,omitempty"`
}

type nearest struct {
	Earlier *compute.Date `json:"earlier"`
	Later   *compute.Date `json:"later"`
}

type errorMeta struct {
	Endpoint string `json:"endpoint"`
	Source   string `json:"source"`
}

type health struct {
	Status string `json:"status"`
	Source string `json:"source"`
}

type readiness struct {
	Ready    bool               `json:"ready"`
	Source   string             `json:"source"`
	Role     string             `json:"role,omitempty"`
	Waiting  []string           `json:"waiting"`
	Failures []readinessFailure `json:"failures"`
	Unfed    []string           `json:"unfed"`
	Degraded []string           `json:"degraded"`
}

type readinessFailure struct {
	Resource string `json:"resource"`
	Reason   string `json:"reason"`
}
