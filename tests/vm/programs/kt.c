// SPDX-License-Identifier: Apache-2.0
/*
 * kt: speaks to the kernel module for test scripts. Linked statically, for a guest that has no
 * libraries.
 *
 *	kt hook NODE... [driver=D] [passive=N,N...] [revocable]         one line a node, as of dump
 *	kt unhook NODE|MAJOR:MINOR...
 *	kt holding NAME NODE|MAJOR:MINOR... [lend_after=MS] [hold_max=MS] [settle=MS]
 *	kt holding-del NAME...
 *	kt member NAME HOLDING,... WHO       WHO: pid=PID [start=TICKS] | cgroup=FOLDER | id=N [v1]
 *	kt borrower NAME LENDER,... WHO [kill]
 *	kt exempt NAME WHO
 *	kt watch-del NAME...
 *	kt lend NAME SEQ|auto       auto: the number that the holding's state has
 *	kt sample NAME SEQ|auto
 *	kt withdraw NAME
 *	kt release NAME SEQ|auto
 *	kt state NAME [KEY]         name= state= seq= files= held= touches= since= last_touch= ...
 *	kt watch NAME [KEY]         name= role= revoked= files= touches= counts= ...
 *	kt node NODE|MAJOR:MINOR [KEY]
 *	kt wait NAME STATE MS       until it is in that state, or was in it meanwhile
 *	kt status [KEY]
 *	kt dump                     a line for each node, holding and watch
 *	kt events [-b] [FILE] [buffer=BYTES] [dump]    a line for each event, until killed; with
 *	                            "dump" the lines of dump at the beginning, and where events
 *	                            were lost
 *	kt beat [N]                 one heartbeat, or N, each from a new agent
 *	kt nocaps VERB...           the same without any capability
 *	kt agent [-b] [lend] [release] [kill]   heartbeats; lends what is idle, kills borrowers
 *	                                        of what returns, releases what is drained
 *
 * -b: goes on in the background once it is at work, and prints its pid. KEY: only that value.
 * Exit status 0; 1 and "kt: ERRNO: message" on stderr; 2 for a wrong call.
 */
#include <errno.h>
#include <fcntl.h>
#include <linux/capability.h>
#include <signal.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "common/cleanup.h"
#include "common/kevent.h"
#include "common/klink.h"
#include "common/kname.h"
#include "common/proc.h"
#include "common/xalloc.h"

/* The agent's heartbeat. */
#define BEAT_MS 1000

static struct gs_klink *kmod;
static struct gs_err err;

static void __attribute__((noreturn)) misused(const char *what)
{
	(void)fprintf(stderr, "kt: %s; the head of its source says how to call it\n", what);
	exit(2);
}

static int failed(void)
{
	const char *name = strerrorname_np(err.code);

	(void)fprintf(stderr, "kt: %s: %s\n", name ? name : "?", err.msg);
	return 1;
}

/* 0, or the exit status of a failure after telling. */
static int told(int r)
{
	return r < 0 ? failed() : 0;
}

/* ---- Arguments. */

static uint64_t number(const char *s)
{
	char *end;
	unsigned long long n;

	errno = 0;
	n = strtoull(s, &end, 0);
	if (errno || end == s || *end)
		misused("a number is none");
	return n;
}

/* The value of the argument KEY=VALUE if this is one. */
static const char *value_of(const char *arg, const char *key)
{
	size_t len = strlen(key);

	return strncmp(arg, key, len) == 0 && arg[len] == '=' ? arg + len + 1 : NULL;
}

/* Fills @v with the numbers of a list with commas. */
static size_t numbers(const char *list, uint32_t *v, size_t max)
{
	cleanup_free char *copy = gs_strdup(list);
	char *rest = copy, *one;
	size_t n = 0;

	while ((one = strsep(&rest, ",")))
		if (n < max && *one)
			v[n++] = (uint32_t)number(one);
	return n;
}

/* NODE or MAJOR:MINOR. A node need not have a driver for that. */
static uint32_t device(const char *arg)
{
	unsigned int major, minor;
	struct stat st;
	char end;

	if (sscanf(arg, "%u:%u%c", &major, &minor, &end) == 2)
		return gs_kdev(major, minor);
	if (stat(arg, &st) < 0) {
		(void)gs_err_errno(&err, errno, "%s", arg);
		exit(failed());
	}
	return gs_kdev_of(st.st_rdev);
}

static void split(const char *list, struct gs_strv *ret)
{
	cleanup_free char *copy = gs_strdup(list);
	char *rest = copy, *one;

	while ((one = strsep(&rest, ",")))
		if (*one)
			gs_strv_add(ret, one);
}

/* Reads pid=, start=, cgroup=, id=, v1 and kill. */
static int read_who(char **argv, struct gs_kwatch_set *set)
{
	for (; *argv; argv++) {
		const char *pid = value_of(*argv, "pid"), *start = value_of(*argv, "start");
		const char *cgroup = value_of(*argv, "cgroup"), *id = value_of(*argv, "id");
		int r = 0;

		if (pid && value_of(argv[1] ? argv[1] : "", "start"))
			set->who.pid = (pid_t)number(pid);
		else if (pid)
			r = gs_kwho_pid((pid_t)number(pid), &set->who, &err);
		else if (start)
			set->who.start_time = number(start);
		else if (cgroup)
			r = gs_kwho_cgroup(cgroup, &set->who, &err);
		else if (id)
			set->who.cgroup_id = number(id);
		else if (strcmp(*argv, "v1") == 0)
			set->who.cgroup_v1 = true;
		else if (strcmp(*argv, "kill") == 0)
			set->kill_on_return = true;
		else
			misused("who is that");
		if (r < 0)
			return r;
	}
	return 0;
}

/* ---- What is printed: "key=value" with spaces between, or the value of one key. */

static const char *only; /* that key */
static FILE *out; /* normally stdout */
static bool any; /* was there something on this line? */

static void __attribute__((format(printf, 2, 3))) put(const char *key, const char *fmt, ...)
{
	va_list ap;

	if (only && strcmp(only, key) != 0)
		return;
	if (!only)
		(void)fprintf(out, "%s%s=", any ? " " : "", key);
	any = true;
	va_start(ap, fmt);
	(void)vfprintf(out, fmt, ap);
	va_end(ap);
}

/* 1 where there is no such key. */
static int end_line(void)
{
	if (only && !any) {
		(void)gs_err_set(&err, EINVAL, "no value %s", only);
		return failed();
	}
	(void)fputc('\n', out);
	any = false;
	return 0;
}

static void put_number(const char *key, uint64_t n)
{
	put(key, "%llu", (unsigned long long)n);
}

static void put_dev(const char *key, uint32_t dev)
{
	put(key, "%u:%u", gs_kdev_major(dev), gs_kdev_minor(dev));
}

/* Takes the text. */
static void put_list(const char *key, struct gs_buf *text)
{
	put(key, "%s", text->len ? text->data : "-");
	gs_buf_free(text);
}

static const char *comma(const struct gs_buf *text)
{
	return text->len ? "," : "";
}

static void put_node(const struct gs_knode *node)
{
	struct gs_buf funcs = { 0 };

	for (unsigned int kind = 0; kind < __GS_KIND_MAX; kind++)
		if (node->funcs & 1U << kind)
			gs_buf_addf(&funcs, "%s%s", comma(&funcs), gs_kname_kind(kind));
	put_dev("dev", node->dev);
	put("driver", "%s", *node->driver ? node->driver : "-");
	put_list("funcs", &funcs);
	put("module", "%s", *node->module ? node->module : "-");
	put_number("touches", node->touches);
	put_number("revocable", node->revocable);
}

static void put_holding(const struct gs_kstate *state, const struct gs_kholding *holding)
{
	struct gs_buf devs = { 0 };

	for (size_t i = 0; i < holding->devs.n; i++)
		gs_buf_addf(&devs, "%s%u:%u", comma(&devs), gs_kdev_major(holding->devs.v[i]),
			    gs_kdev_minor(holding->devs.v[i]));
	put("name", "%s", holding->name);
	put("state", "%s", gs_kname_state(holding->state));
	put_number("seq", holding->seq);
	put_number("files", holding->files);
	put_number("held", holding->held);
	put_number("mappings", holding->mappings);
	put_number("faults", holding->faults);
	put_number("touches", gs_kstate_touches(state, holding));
	put_number("since", holding->since_ns);
	put_number("last_touch", holding->last_touch_ns);
	put_number("lend_after", holding->lend_after_ms);
	put_number("hold_max", holding->hold_max_ms);
	put_number("settle", holding->settle_ms);
	put_list("devs", &devs);
}

static void put_watch(const struct gs_kwatch *watch)
{
	struct gs_buf counts = { 0 }, holdings = { 0 };
	uint64_t touches = 0;

	for (size_t i = 0; i < watch->n_counts; i++) {
		const struct gs_kcount *count = &watch->counts[i];

		gs_buf_addf(&counts, "%s%u:%u:%llu", comma(&counts), gs_kdev_major(count->dev),
			    gs_kdev_minor(count->dev), (unsigned long long)count->touches);
		touches += count->touches;
	}
	for (size_t i = 0; i < watch->holdings.n; i++)
		gs_buf_addf(&holdings, "%s%s", comma(&holdings), watch->holdings.v[i]);
	put("name", "%s", watch->name);
	put("role", "%s", gs_kname_role(watch->role));
	put_number("pid", watch->pid);
	put_number("pidns", watch->pidns);
	put_number("cgroup", watch->cgroup_id);
	put_list("holdings", &holdings);
	put_number("kill", watch->kill_on_return);
	put_number("revoked", watch->revoked);
	put_number("killed", watch->killed);
	put_number("files", watch->files);
	put_number("touches", touches);
	put_list("counts", &counts);
}

static void put_status(const struct gs_kstatus *status)
{
	struct gs_buf features = { 0 };

	for (unsigned int bit = 0; bit < 32; bit++)
		if (status->features & 1U << bit)
			gs_buf_addf(&features, "%s%s", comma(&features), gs_kname_feature(bit));
	put("version", "%s", status->version);
	put_number("abi", status->abi);
	put_list("features", &features);
	put_number("agent", status->agent_alive);
	put_number("agent_port", status->agent_port);
	put_number("agent_age", status->agent_age_ms);
	put_number("event_seq", status->event_seq);
	put_number("held", status->held);
	put_number("returns", status->returns);
	put_number("settled", status->settled);
	put_number("hold_max", status->hold_max);
	put_number("quarantine", status->quarantine);
	put_number("kills", status->kills);
	put_number("refused", status->refused);
	put_number("events_lost", status->events_lost);
	put_number("mappings", status->mappings);
	put_number("faults", status->faults);
	put_number("lend_after", status->lend_after_ms);
	put_number("hold_max_ms", status->hold_max_ms);
	put_number("settle", status->settle_ms);
}

static void put_event(const struct gs_kevent *e)
{
	bool state = e->event == GS_EV_STATE;

	put("event", "%s", gs_kname_event(e->event));
	put_number("seq", e->event_seq);
	if (*e->name)
		put("name", "%s", e->name);
	if (state)
		put("from", "%s", gs_kname_state(e->from));
	if (state)
		put("state", "%s", gs_kname_state(e->state));
	if (state || e->cause)
		put("cause", "%s", gs_kname_cause(e->cause));
	if (*e->watch)
		put("watch", "%s", e->watch);
	if (e->has_dev)
		put_dev("dev", e->dev);
	if (e->has_kind)
		put("kind", "%s", gs_kname_kind(e->kind));
	if (e->pid)
		put_number("pid", e->pid);
	if (e->start_time)
		put_number("start", e->start_time);
	if (e->pidns)
		put_number("pidns", e->pidns);
	if (e->event == GS_EV_RELEASED) {
		put_number("held", e->held);
		put_number("held_ms", e->held_ms);
		put_number("faults", e->faults);
	}
	if (state && e->state == GS_LENT)
		put_number("mappings", e->mappings);
	if (e->event == GS_EV_REVOKED)
		put_number("killed", e->killed);
	if (e->event == GS_EV_AGENT)
		put_number("alive", e->agent_alive);
	put_number("time", e->time_ns);
}

/* ---- The verbs. argv[0] is the verb; what they were called with ends in NULL. */

static int do_hook(char **argv)
{
	const char *driver = NULL, *given;
	uint32_t passive[256];
	bool revocable = false;
	size_t n = 0;

	for (char **arg = argv + 1; *arg; arg++) {
		revocable |= strcmp(*arg, "revocable") == 0;
		driver = (given = value_of(*arg, "driver")) ? given : driver;
		if ((given = value_of(*arg, "passive")))
			n = numbers(given, passive, GS_ARRAY_SIZE(passive));
	}
	for (char **arg = argv + 1; *arg; arg++) {
		cleanup_close int fd = -1;
		struct gs_knode node;

		if (strchr(*arg, '=') || strcmp(*arg, "revocable") == 0)
			continue;
		fd = open(*arg, O_RDWR | O_CLOEXEC);
		if (fd < 0) {
			(void)gs_err_errno(&err, errno, "%s", *arg);
			return failed();
		}
		if (gs_klink_hook_add(kmod, fd, driver, passive, n, revocable, &node, &err) < 0)
			return failed();
		put_node(&node);
		(void)end_line();
	}
	return 0;
}

static int do_unhook(char **argv)
{
	for (argv++; *argv; argv++)
		if (gs_klink_hook_del(kmod, device(*argv), &err) < 0)
			return failed();
	return 0;
}

static int do_holding(char **argv)
{
	struct gs_kholding_set set = { .name = argv[1],
				       .lend_after_ms = GS_KTIME_NONE,
				       .hold_max_ms = GS_KTIME_NONE,
				       .settle_ms = GS_KTIME_NONE };
	uint32_t devs[256];
	const char *given;

	for (argv += 2; *argv; argv++) {
		if ((given = value_of(*argv, "lend_after")))
			set.lend_after_ms = (int64_t)number(given);
		else if ((given = value_of(*argv, "hold_max")))
			set.hold_max_ms = (int64_t)number(given);
		else if ((given = value_of(*argv, "settle")))
			set.settle_ms = (int64_t)number(given);
		else if (set.n_devs < GS_ARRAY_SIZE(devs))
			devs[set.n_devs++] = device(*argv);
	}
	set.devs = devs;
	return told(gs_klink_holding_set(kmod, &set, &err));
}

static int each(char **argv, int (*del)(struct gs_klink *link, const char *name, struct gs_err *e))
{
	int ret = 0;

	for (argv++; *argv; argv++)
		if (del(kmod, *argv, &err) < 0)
			ret = failed();
	return ret;
}

static int do_holding_del(char **argv)
{
	return each(argv, gs_klink_holding_del);
}

static int do_watch_del(char **argv)
{
	return each(argv, gs_klink_watch_del);
}

static int do_withdraw(char **argv)
{
	return each(argv, gs_klink_withdraw);
}

static int set_watch(unsigned int role, const char *name, const char *holdings, char **rest)
{
	cleanup_strv struct gs_strv list = { 0 };
	struct gs_kwatch_set set = { .name = name, .role = role };

	split(holdings, &list);
	set.holdings = (const char *const *)list.v;
	set.n_holdings = list.n;
	if (read_who(rest, &set) < 0)
		return failed();
	return told(gs_klink_watch_set(kmod, &set, &err));
}

static int do_member(char **argv)
{
	return set_watch(GS_MEMBER, argv[1], argv[2], argv + 3);
}

static int do_borrower(char **argv)
{
	return set_watch(GS_BORROWER, argv[1], argv[2], argv + 3);
}

static int do_exempt(char **argv)
{
	return set_watch(GS_EXEMPT, argv[1], "", argv + 2);
}

static int no_such(const char *what, const char *name)
{
	(void)gs_err_set(&err, ENOENT, "no %s %s", what, name);
	return failed();
}

/* The number of the holding's state, as given or asked for. */
static int read_seq(char **argv, uint64_t *ret)
{
	cleanup_kstate struct gs_kstate state = { 0 };
	const struct gs_kholding *holding;

	if (strcmp(argv[2], "auto") != 0) {
		*ret = number(argv[2]);
		return 0;
	}
	if (gs_klink_dump(kmod, &state, &err) < 0)
		return failed();
	holding = gs_kstate_holding(&state, argv[1]);
	if (!holding)
		return no_such("holding", argv[1]);
	*ret = holding->seq;
	return 0;
}

static int do_lend(char **argv)
{
	uint64_t seq;
	int ret = read_seq(argv, &seq);

	return ret ? ret : told(gs_klink_lend(kmod, argv[1], seq, &err));
}

static int do_sample(char **argv)
{
	uint64_t seq;
	int ret = read_seq(argv, &seq);

	return ret ? ret : told(gs_klink_sample(kmod, argv[1], seq, &err));
}

static int do_release(char **argv)
{
	uint64_t seq;
	int ret = read_seq(argv, &seq);

	return ret ? ret : told(gs_klink_release(kmod, argv[1], seq, &err));
}

static int do_state(char **argv)
{
	cleanup_kstate struct gs_kstate state = { 0 };
	const struct gs_kholding *holding;

	if (gs_klink_dump(kmod, &state, &err) < 0)
		return failed();
	holding = gs_kstate_holding(&state, argv[1]);
	if (!holding)
		return no_such("holding", argv[1]);
	only = argv[2];
	put_holding(&state, holding);
	return end_line();
}

static int do_watch(char **argv)
{
	cleanup_kstate struct gs_kstate state = { 0 };
	const struct gs_kwatch *watch;

	if (gs_klink_dump(kmod, &state, &err) < 0)
		return failed();
	watch = gs_kstate_watch(&state, argv[1]);
	if (!watch)
		return no_such("watch", argv[1]);
	only = argv[2];
	put_watch(watch);
	return end_line();
}

static int do_node(char **argv)
{
	cleanup_kstate struct gs_kstate state = { 0 };
	const struct gs_knode *node;

	if (gs_klink_dump(kmod, &state, &err) < 0)
		return failed();
	node = gs_kstate_node(&state, device(argv[1]));
	if (!node)
		return no_such("node", argv[1]);
	only = argv[2];
	put_node(node);
	return end_line();
}

static int do_status(char **argv)
{
	struct gs_kstatus status;

	if (gs_klink_status(kmod, &status, &err) < 0)
		return failed();
	only = argv[1];
	put_status(&status);
	return end_line();
}

static int do_dump(char **argv)
{
	cleanup_kstate struct gs_kstate state = { 0 };

	(void)argv;
	if (!kmod && gs_klink_open(&kmod, &err) < 0)
		return failed();
	if (gs_klink_dump(kmod, &state, &err) < 0)
		return failed();
	for (size_t i = 0; i < state.n_nodes; i++) {
		(void)fputs("node ", out);
		put_node(&state.nodes[i]);
		(void)end_line();
	}
	for (size_t i = 0; i < state.n_holdings; i++) {
		(void)fputs("holding ", out);
		put_holding(&state, &state.holdings[i]);
		(void)end_line();
	}
	for (size_t i = 0; i < state.n_watches; i++) {
		(void)fputs("watch ", out);
		put_watch(&state.watches[i]);
		(void)end_line();
	}
	return 0;
}

/* ---- Waiting and staying. */

/* 1: the holding is in the state; prints it. -1 after telling what is wrong. */
static int in_state(const char *name, unsigned int want, unsigned int *ret_is)
{
	cleanup_kstate struct gs_kstate state = { 0 };
	const struct gs_kholding *holding;

	if (gs_klink_dump(kmod, &state, &err) < 0)
		return -failed();
	holding = gs_kstate_holding(&state, name);
	if (!holding)
		return -no_such("holding", name);
	*ret_is = holding->state;
	if (holding->state != want)
		return 0;
	put_holding(&state, holding);
	(void)end_line();
	return 1;
}

static int do_wait(char **argv)
{
	cleanup_kevents struct gs_kevents *events = NULL;
	int want = gs_kname_find_state(argv[2]), ms = (int)number(argv[3]);
	uint64_t now, deadline = gs_boottime_ms() + (uint64_t)ms;
	unsigned int is = 0;
	bool look = true;

	if (want < 0)
		misused("no such state");
	if (gs_kevents_open(0, &events, &err) < 0)
		return failed();
	for (;;) {
		enum gs_kevent_what what = GS_KEVENT_NONE;
		struct gs_kevent e;
		int r = look ? in_state(argv[1], (unsigned int)want, &is) : 0;

		if (r)
			return r < 0;
		now = gs_boottime_ms();
		if (now >= deadline)
			break;
		if (gs_kevent_next(events, (int)(deadline - now), &what, &e, &err) < 0)
			return failed();
		look = what == GS_KEVENT_LOST || what == GS_KEVENT_NONE;
		if (what != GS_KEVENT_GOT || e.event != GS_EV_STATE || strcmp(e.name, argv[1]) != 0)
			continue;
		is = e.state;
		if (is == (unsigned int)want) {
			put_event(&e);
			return end_line();
		}
	}
	(void)gs_err_set(&err, ETIMEDOUT, "%s is %s after %d ms", argv[1], gs_kname_state(is), ms);
	return failed();
}

/*
 * Goes on as a child that holds nothing of the caller's open, or $(kt agent -b) would never end.
 * Prints its pid.
 */
static void go_background(void)
{
	int null = open("/dev/null", O_RDWR | O_CLOEXEC);
	pid_t pid = null < 0 ? -1 : fork();

	if (pid < 0) {
		(void)gs_err_errno(&err, errno, "go into the background");
		exit(failed());
	}
	if (pid > 0) {
		printf("%d\n", (int)pid);
		exit(0);
	}
	(void)setsid();
	for (int fd = 0; fd <= 2; fd++)
		(void)dup2(null, fd);
}

static int do_events(char **argv)
{
	static const char *const said[] = { "none", "event", "lost", "loaded", "unloaded" };
	cleanup_kevents struct gs_kevents *events = NULL;
	bool background = false, dump = false;
	size_t buffer = 0;

	for (argv++; *argv; argv++) {
		if (strcmp(*argv, "-b") == 0)
			background = true;
		else if (strcmp(*argv, "dump") == 0)
			dump = true;
		else if (value_of(*argv, "buffer"))
			buffer = number(value_of(*argv, "buffer"));
		else
			out = fopen(*argv, "ae");
		if (!out) {
			(void)gs_err_errno(&err, errno, "%s", *argv);
			return failed();
		}
	}
	if (gs_kevents_open(buffer, &events, &err) < 0)
		return failed();
	if (background)
		go_background();
	for (bool look = dump;;) {
		enum gs_kevent_what what = GS_KEVENT_NONE;
		struct gs_kevent e;

		if (look)
			(void)do_dump(argv);
		(void)fflush(out);
		if (gs_kevent_next(events, -1, &what, &e, &err) < 0)
			put("event", "error message=%s", err.msg);
		else if (what == GS_KEVENT_GOT)
			put_event(&e);
		else
			put("event", "%s", said[what]);
		(void)end_line();
		look = dump && (what == GS_KEVENT_LOST || what == GS_KEVENT_LOADED);
	}
}

static int do_beat(char **argv)
{
	int ret = 0;

	for (uint64_t n = argv[1] ? number(argv[1]) : 1; ret == 0 && n; n--) {
		gs_klink_close(gs_steal(kmod));
		ret = told(gs_klink_open(&kmod, &err)) || told(gs_klink_heartbeat(kmod, &err));
	}
	return ret;
}

/* ---- A simple agent. */

static struct {
	bool lend, release, kill;
} agent;

/* Kills the first process of every borrower from the holding. */
static void kill_borrowers(const struct gs_kstate *state, const char *name)
{
	for (size_t i = 0; i < state->n_watches; i++) {
		const struct gs_kwatch *watch = &state->watches[i];

		if (watch->role == GS_BORROWER && watch->pid > 1 &&
		    gs_strv_has(&watch->holdings, name))
			(void)kill((pid_t)watch->pid, SIGKILL);
	}
}

/* Does for each holding what its state asks for. What is refused is left to the next event. */
static void work(void)
{
	cleanup_kstate struct gs_kstate state = { 0 };

	if (gs_klink_dump(kmod, &state, &err) < 0)
		return;
	for (size_t i = 0; i < state.n_holdings; i++) {
		const struct gs_kholding *h = &state.holdings[i];

		if (agent.lend && h->state == GS_IDLE)
			(void)gs_klink_lend(kmod, h->name, h->seq, &err);
		if (agent.kill && h->state == GS_RETURNING)
			kill_borrowers(&state, h->name);
		if (agent.release && h->state == GS_RETURNING && h->files == 0)
			(void)gs_klink_release(kmod, h->name, h->seq, &err);
	}
}

static int do_agent(char **argv)
{
	cleanup_kevents struct gs_kevents *events = NULL;
	bool background = false;

	for (argv++; *argv; argv++) {
		background |= strcmp(*argv, "-b") == 0;
		agent.lend |= strcmp(*argv, "lend") == 0;
		agent.release |= strcmp(*argv, "release") == 0;
		agent.kill |= strcmp(*argv, "kill") == 0;
	}
	if (gs_kevents_open(0, &events, &err) < 0 || gs_klink_heartbeat(kmod, &err) < 0)
		return failed();
	if (background)
		go_background();
	for (uint64_t next = gs_boottime_ms(), now;;) {
		enum gs_kevent_what what;
		struct gs_kevent e;

		now = gs_boottime_ms();
		if (now >= next) {
			(void)gs_klink_heartbeat(kmod, &err);
			next = now + BEAT_MS;
		}
		work();
		now = gs_boottime_ms();
		(void)gs_kevent_next(events, now < next ? (int)(next - now) : 0, &what, &e, &err);
	}
}

static const struct verb {
	const char *name;
	int min, max; /* arguments */
	int (*run)(char **argv);
} verbs[] = {
	{ "hook", 1, 99, do_hook },	  { "unhook", 1, 99, do_unhook },
	{ "holding", 1, 99, do_holding }, { "holding-del", 1, 99, do_holding_del },
	{ "member", 3, 6, do_member },	  { "borrower", 3, 6, do_borrower },
	{ "exempt", 2, 5, do_exempt },	  { "watch-del", 1, 99, do_watch_del },
	{ "lend", 2, 2, do_lend },	  { "withdraw", 1, 99, do_withdraw },
	{ "release", 2, 2, do_release },  { "state", 1, 2, do_state },
	{ "watch", 1, 2, do_watch },	  { "node", 1, 2, do_node },
	{ "wait", 3, 3, do_wait },	  { "status", 0, 1, do_status },
	{ "dump", 0, 0, do_dump },	  { "events", 0, 4, do_events },
	{ "beat", 0, 1, do_beat },	  { "agent", 0, 4, do_agent },
	{ "sample", 2, 2, do_sample },
};

static void drop_capabilities(void)
{
	struct __user_cap_header_struct head = { .version = _LINUX_CAPABILITY_VERSION_3 };
	struct __user_cap_data_struct none[_LINUX_CAPABILITY_U32S_3] = { 0 };

	if (syscall(SYS_capset, &head, none) < 0) {
		(void)gs_err_errno(&err, errno, "capset");
		exit(failed());
	}
}

int main(int argc, char **argv)
{
	int ret = 2;

	(void)close_range(3, ~0U, 0);
	out = stdout;
	if (argc > 1 && strcmp(argv[1], "nocaps") == 0) {
		drop_capabilities();
		argc--;
		argv++;
	}
	if (argc < 2)
		misused("no verb");
	for (size_t i = 0; i < GS_ARRAY_SIZE(verbs); i++) {
		const struct verb *verb = &verbs[i];

		if (strcmp(argv[1], verb->name) != 0)
			continue;
		if (argc - 2 < verb->min || argc - 2 > verb->max)
			misused("too few or too many arguments");
		/* Listening goes on, and may begin, without the module. */
		if (verb->run != do_events && gs_klink_open(&kmod, &err) < 0)
			return failed();
		ret = verb->run(argv + 1);
		gs_klink_close(kmod);
		return ret;
	}
	misused("no such verb");
}
