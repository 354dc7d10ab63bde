# For Varnish 6 or newer in front of strikecache. The rules of Varnish itself follow these, and obey max-age and Vary. These add
# stale-if-error: when the origin fails, a client gets the last answer for up to a day.
vcl 4.1;

backend default {
	.host = "127.0.0.1";
	.port = "8080";
	.connect_timeout = 2s;
	.first_byte_timeout = 3s;
}

sub vcl_recv {
	if (req.restarts == 0) {
		unset req.http.Failed;
		set req.grace = 25s; # longer stale answers only after a failure
	} else {
		set req.http.Failed = "true";
		set req.grace = 24h;
	}
	if (req.http.X-API-Key) {
		return (pass); # its answer is for one caller
	}
}

sub vcl_miss {
	if (req.http.Failed) {
		return (pass); # an error takes the place of no stored answer
	}
}

sub vcl_backend_response {
	if ((beresp.status >= 500 || beresp.status == 429) && (bereq.is_bgfetch || !bereq.http.Failed)) {
		return (abandon);
	}
	if (beresp.http.Cache-Control ~ "stale-if-error") {
		set beresp.grace = 24h;
	}
}

sub vcl_backend_error {
	if (!bereq.http.Failed) {
		return (abandon);
	}
}

# The first request to the origin has failed. The second finds the last answer, or gets the error.
sub vcl_synth {
	if (resp.status == 503 && req.restarts == 0) {
		return (restart);
	}
}
