#!/usr/bin/env bats
# SPDX-License-Identifier: Apache-2.0
# A real Prometheus loads the rules, scrapes a real gpushared, and can evaluate what rules and
# dashboards ask. (What an alert fires for is in alerts.yml.)

setup() {
	cd "$BATS_TEST_DIRNAME/../.." || return 1
	command -v prometheus >/dev/null && command -v promtool >/dev/null ||
		skip "no Prometheus (packaging/deps.sh deb)"
	dir=$BATS_TEST_TMPDIR
}

teardown() {
	for pid in ${pids:-}; do
		kill "$pid"
		wait "$pid"
	done 2>/dev/null || true
}

# start COMMAND...: in the background, until the test ends; what it says goes to $dir/log.
start() {
	"$@" >>"$dir/log" 2>&1 3>&- &
	pids="${pids:-} $!"
}

# wait_for COMMAND...: a minute at most.
wait_for() {
	for _ in {1..600}; do
		! "$@" >/dev/null 2>&1 || return 0
		sleep 0.1
	done
	cat "$dir/log"
	return 1
}

free_port() {
	/usr/bin/python3 -c 'import socket
s = socket.socket()
s.bind(("127.0.0.1", 0))
print(s.getsockname()[1])'
}

# ask PATH [QUERY]: what Prometheus answers.
ask() {
	curl -fsS --get ${2:+--data-urlencode "query=$2"} "http://127.0.0.1:$port/api/v1/$1"
}

# counts QUERY N: so many series.
counts() {
	ask query "$1" | /usr/bin/python3 -c 'import json, sys
sys.exit(len(json.load(sys.stdin)["data"]["result"]) != int(sys.argv[1]))' "$2"
}

@test "promtool: the rules, and when each alert fires" {
	promtool check rules packaging/prometheus/*.yml
	promtool test rules tests/packages/alerts.yml
	# Every alert is there twice: fires, and does not.
	for alert in $(sed -n 's/.*- alert: //p' packaging/prometheus/gpushare.rules.yml); do
		[ "$(grep -c "alertname: $alert\b" tests/packages/alerts.yml)" -ge 2 ]
	done
}

@test "promtool: how a controller is scraped" {
	{
		echo 'scrape_configs:'
		sed -n '/<!-- test: scrape-controller -->/,/^```$/{/^<!--\|^```/d; p}' \
			docs/metrics.md |
			# Debian's is built without
			sed '/kubernetes_sd_configs:/,/namespaces:/d'
	} >"$dir/prometheus.yml"
	grep -q 'job_name: .*gpushare.*controller' "$dir/prometheus.yml"
	promtool check config --syntax-only "$dir/prometheus.yml"
}

@test "a real one scrapes the agent" {
	((EUID == 0)) || skip "needs root, as the agent does"
	agent=$(free_port) port=$(free_port)
	cat >"$dir/config.json" <<-END
		{"run_dir": "$dir/run", "lib_dir": "$dir/lib", "vendor_dirs": ["$PWD/vendors"],
		 "agent": {"http": {"port": $agent}, "probe": "$PWD/build/gpushare-probe"}}
	END
	# As docs/metrics.md says, with this agent's address, and sooner.
	{
		printf 'global: {scrape_interval: 1s, evaluation_interval: 1s}\n'
		printf 'rule_files: ["%s"]\n' "$PWD/packaging/prometheus/gpushare.rules.yml"
		sed -n '/^scrape_configs:/,/^```/{/^```/d;p}' docs/metrics.md |
			sed "s/127.0.0.1:9479/127.0.0.1:$agent/"
	} >"$dir/prometheus.yml"
	promtool check config "$dir/prometheus.yml"
	start build/gpushared --config "$dir/config.json"
	start prometheus --config.file="$dir/prometheus.yml" --storage.tsdb.path="$dir/data" \
		--web.listen-address="127.0.0.1:$port"
	wait_for counts 'up{job="gpushare"} == 1' 1
	wait_for counts 'gpushare_cards{instance="this-node"}' 8
	counts 'gpushare_kernel_module_loaded' 1
	curl -fsS "http://127.0.0.1:$agent/metrics" | promtool check metrics

	# Every family has arrived that is there from the beginning, under its name and type.
	curl -fsS "http://127.0.0.1:$agent/metrics" | awk '$2 == "TYPE" { print $3, $4 }' |
		sort >"$dir/served"
	sed -nE '/^## The controller/q; s/^\| `(gpushare_\w+)` \| (\w+) .*/\1 \2/p' \
		docs/metrics.md | sort |
		diff - "$dir/served"

	# It evaluates every rule, and every expression of the dashboards.
	/usr/bin/python3 - "$(ask rules)" <<-'END'
		import json, sys
		rules = json.loads(sys.argv[1])["data"]["groups"][0]["rules"]
		assert len(rules) >= 13, rules
		for rule in rules:
		    assert rule["health"] == "ok", rule
	END
	/usr/bin/python3 - packaging/grafana/*.json <<-'END' >"$dir/queries"
		import json, sys
		for name in sys.argv[1:]:
		    board = json.load(open(name))
		    seen = set()
		    for panel in board["panels"]:
		        assert panel["id"] not in seen and panel["title"], panel
		        seen.add(panel["id"])
		        for target in panel["targets"]:
		            print(target["expr"].replace("$instance", "this-node"))
	END
	[ "$(wc -l <"$dir/queries")" -gt 30 ]
	while IFS= read -r query; do
		ask query "$query" >"$dir/answer" || {
			echo "$query"
			return 1
		}
	done <"$dir/queries"
	# And where there are numbers already, panels have them.
	counts 'sum(gpushare_cards)' 1
	counts 'gpushare_borrowers{instance="this-node"}' 1
}
