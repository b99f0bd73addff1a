// SPDX-License-Identifier: Apache-2.0
/*
 * Many events, and listeners of every kind: what each of them believes in the end must be what the
 * module says, what was lost must have been noticed, nothing may come twice or in another order.
 *
 *	evcheck flood NODE EVENTS	states change as fast as that goes
 *	evcheck overflow NODE HOLDINGS	all holdings of a node lose their hooks at once: more events
 *					than the module has places for
 *	evcheck reload			waits until the module was unloaded and loaded again
 *
 * NODE is hooked. Prints a line for each thing that was to be shown.
 */
#include <fcntl.h>
#include <pthread.h>
#include <stdatomic.h>
#include <sys/stat.h>
#include <time.h>

#include "common/cleanup.h"
#include "common/kevent.h"
#include "tests/vm/programs/nl.h"

static struct gs_klink *speaker;
static struct gs_err err;
static uint32_t dev;

static void check(int r)
{
	if (r < 0)
		nl_die("%s", err.msg);
}

static void sleep_ms(long ms)
{
	struct timespec t = { .tv_sec = ms / 1000, .tv_nsec = ms % 1000 * 1000000 };

	(void)nanosleep(&t, NULL);
}

/* ---- A listener, and what it believes. */

/* The agent knows each holding's state from events, and from a dump when it missed some. */
struct belief {
	gs_kname name;
	unsigned int state;
};

struct listener {
	const char *name;
	size_t buffer;
	long slow_ms; /* it takes so long over each event, ... */
	long dump_ms; /* ... and over each dump */
	bool may_lose; /* its buffer is made for that */

	pthread_t thread;
	struct gs_kevents *events;
	struct gs_klink *link;
	struct belief *beliefs;
	size_t n;
	uint64_t first, last; /* numbers of events */
	uint64_t known; /* its last dump is as new as that event, at least */
	uint64_t got, missing;
	unsigned int notices; /* "some were lost" */
	unsigned int disorder; /* a number that did not come next, without a notice */
};

static _Atomic uint64_t final; /* the last event's number; 0: more are coming */

static void believe(struct listener *l, const char *name, unsigned int state)
{
	size_t i = 0;

	while (i < l->n && strcmp(l->beliefs[i].name, name) != 0)
		i++;
	if (i == l->n) {
		l->beliefs = gs_reallocarray(l->beliefs, ++l->n, sizeof(*l->beliefs));
		(void)snprintf(l->beliefs[i].name, sizeof(l->beliefs[i].name), "%s", name);
	}
	l->beliefs[i].state = state;
}

/* Forgets all and reads it anew. */
static void catch_up(struct listener *l)
{
	cleanup_kstate struct gs_kstate state = { 0 };
	struct gs_err e;

	if (gs_klink_dump(l->link, &state, &e) < 0)
		nl_die("%s: dump: %s", l->name, e.msg);
	l->n = 0;
	l->known = state.status.event_seq;
	for (size_t i = 0; i < state.n_holdings; i++)
		believe(l, state.holdings[i].name, state.holdings[i].state);
}

static void take(struct listener *l, const struct gs_kevent *e)
{
	/* What is missing must be older than the last dump. */
	if (e->event_seq <= l->last || (e->event_seq > l->last + 1 && e->event_seq > l->known + 1))
		l->disorder++;
	else
		l->missing += e->event_seq - l->last - 1;
	l->last = e->event_seq;
	l->got++;
	/* Behind a loss there may be older ones in the buffer than what the dump said. */
	if (e->event == GS_EV_STATE && e->event_seq > l->known)
		believe(l, e->name, e->state);
}

static void *listen_on(void *data)
{
	struct listener *l = data;

	for (;;) {
		enum gs_kevent_what what;
		struct gs_kevent e;
		struct gs_err er;
		uint64_t end = atomic_load(&final);

		if (end && l->last >= end)
			return NULL;
		/* at the end a slow machine has time to send what is still queued */
		if (gs_kevent_next(l->events, end ? 5000 : 100, &what, &e, &er) < 0)
			nl_die("%s: %s", l->name, er.msg);
		if (what == GS_KEVENT_GOT) {
			take(l, &e);
			if (l->slow_ms)
				sleep_ms(l->slow_ms);
		} else if (what == GS_KEVENT_LOST) {
			l->notices++;
			if (l->dump_ms)
				sleep_ms(l->dump_ms);
			catch_up(l);
		} else if (what == GS_KEVENT_NONE && end) {
			/* The last ones were lost, and nothing came after them. */
			l->missing += end - l->last;
			l->disorder += l->known < end;
			return NULL;
		}
	}
}

static void start(struct listener *l)
{
	struct gs_kstatus status;

	l->first = l->last = l->got = l->missing = l->notices = l->disorder = 0;
	check(gs_klink_open(&l->link, &err));
	check(gs_klink_status(l->link, &status, &err));
	check(gs_kevents_open(l->buffer, &l->events, &err));
	l->first = l->last = status.event_seq;
	catch_up(l);
	if (pthread_create(&l->thread, NULL, listen_on, l))
		nl_die("no thread");
}

/* Does it believe what is true? */
static void judge(struct listener *l, const struct gs_kstate *state, uint64_t dropped)
{
	uint64_t all = state->status.event_seq - l->first;
	char name[128], why[256] = "";
	bool good = l->n == state->n_holdings;

	for (size_t i = 0; i < l->n && good; i++) {
		const struct gs_kholding *h = gs_kstate_holding(state, l->beliefs[i].name);

		good = h && h->state == l->beliefs[i].state;
		if (!good)
			(void)snprintf(why, sizeof(why), "%s is %s, believed %s",
				       l->beliefs[i].name, h ? gs_kname_state(h->state) : "gone",
				       gs_kname_state(l->beliefs[i].state));
	}
	printf("# %s: %llu events, %llu got, %llu missing in %u notices\n", l->name,
	       (unsigned long long)all, (unsigned long long)l->got, (unsigned long long)l->missing,
	       l->notices);
	(void)snprintf(name, sizeof(name), "%s: believes what is true in the end", l->name);
	nl_result(good, name, "%zu of %zu holdings; %s", l->n, state->n_holdings, why);
	(void)snprintf(name, sizeof(name), "%s: every event came once, in order, or is known lost",
		       l->name);
	nl_result(!l->disorder && l->got + l->missing == all, name, "%u out of order", l->disorder);
	if (l->may_lose) {
		(void)snprintf(name, sizeof(name), "%s: lost some, and was told", l->name);
		nl_result(l->missing > dropped && l->notices > 0, name, "lost none");
	} else {
		/* What the module itself had no place for is counted by it. */
		(void)snprintf(name, sizeof(name), "%s: lost what the module counts as lost",
			       l->name);
		nl_result(l->missing == dropped, name, "%llu, the module says %llu",
			  (unsigned long long)l->missing, (unsigned long long)dropped);
	}
	gs_kevents_close(l->events);
	gs_klink_close(l->link);
}

/* ---- A listener that does without our library: it sees ENOBUFS itself. */

struct raw {
	pthread_t thread;
	int fd;
	uint64_t got, gaps, last;
	unsigned int overruns;
};

static void *listen_raw(void *data)
{
	static char buf[NL_MAX] __attribute__((aligned(4)));
	struct raw *raw = data;

	for (;;) {
		ssize_t n = recv(raw->fd, buf, sizeof(buf), 0);
		const struct nlmsghdr *nlh = (const void *)buf;
		struct gs_kevent e;
		struct gs_err er;

		if (n < 0 && errno == ENOBUFS) {
			raw->overruns++;
			continue;
		}
		if (n < 0 && atomic_load(&final))
			return NULL;
		if (n < 0)
			continue;
		if (gs_kmsg_event(nlh, &e, &er) < 0)
			nl_die("%s", er.msg);
		if (raw->last)
			raw->gaps += e.event_seq - raw->last - 1;
		raw->last = e.event_seq;
		raw->got++;
	}
}

static void start_raw(struct raw *raw)
{
	struct timeval timeout = { .tv_usec = 200000 };
	int size = 1, group;
	struct nl nl;

	nl_open(&nl);
	group = (int)nl.group;
	raw->fd = nl.fd;
	(void)setsockopt(nl.fd, SOL_SOCKET, SO_RCVBUF, &size, sizeof(size));
	(void)setsockopt(nl.fd, SOL_SOCKET, SO_RCVTIMEO, &timeout, sizeof(timeout));
	if (setsockopt(nl.fd, SOL_NETLINK, NETLINK_ADD_MEMBERSHIP, &group, sizeof(group)) < 0 ||
	    pthread_create(&raw->thread, NULL, listen_raw, raw))
		nl_die("listen: %s", strerror(errno));
}

/* ---- What happens. */

static void set_holding(const char *name, int64_t lend_after_ms)
{
	const struct gs_kholding_set set = { .name = name,
					     .devs = &dev,
					     .n_devs = 1,
					     .lend_after_ms = lend_after_ms,
					     .hold_max_ms = GS_KTIME_NONE,
					     .settle_ms = GS_KTIME_NONE };

	check(gs_klink_holding_set(speaker, &set, &err));
}

/* A holding without a member never gets idle. */
static void set_member(const char *name, uint64_t cgroup)
{
	const struct gs_kwatch_set set = { .name = name,
					   .role = GS_MEMBER,
					   .who = { .cgroup_id = cgroup },
					   .holdings = &name,
					   .n_holdings = 1 };

	check(gs_klink_watch_set(speaker, &set, &err));
}

static uint64_t events_so_far(void)
{
	struct gs_kstatus status;

	check(gs_klink_status(speaker, &status, &err));
	return status.event_seq;
}

/*
 * Until no event comes any more; its number. The one that says how many had no place comes when the
 * worker has time for it, which takes a while where everything is checked.
 */
static uint64_t quiet(void)
{
	uint64_t now = events_so_far(), before;

	do {
		before = now;
		sleep_ms(1000);
		now = events_so_far();
	} while (now != before);
	return now;
}

static void final_state(struct gs_kstate *state)
{
	uint64_t end = quiet();

	atomic_store(&final, end);
	check(gs_klink_dump(speaker, state, &err));
}

#define FLOODED 24

static void flood(uint64_t events)
{
	static struct listener listeners[] = {
		{ .name = "a large buffer", .buffer = 16 << 20 },
		{ .name = "another one", .buffer = 16 << 20 },
		{ .name = "a tiny buffer", .buffer = 1, .dump_ms = 30, .may_lose = true },
		{ .name = "a slow listener",
		  .buffer = 8192,
		  .slow_ms = 20,
		  .dump_ms = 20,
		  .may_lose = true },
	};
	cleanup_kstate struct gs_kstate state = { 0 };
	struct raw raw = { 0 };
	struct gs_kstatus before;
	char name[32];
	uint64_t end;

	for (unsigned int i = 0; i < FLOODED; i++) {
		(void)snprintf(name, sizeof(name), "flood%u", i);
		set_holding(name, 1);
		set_member(name, 100000 + i);
	}
	for (unsigned int j = 0; j < 4; j++) {
		(void)snprintf(name, sizeof(name), "anew%u", j);
		set_holding(name, 60000);
	}
	(void)quiet();
	check(gs_klink_status(speaker, &before, &err));
	for (size_t i = 0; i < GS_ARRAY_SIZE(listeners); i++)
		start(&listeners[i]);
	start_raw(&raw);

	/*
	 * What is idle is taken back, and gets idle by itself again: two events, but each takes a
	 * grace period. What is made anew is an event that takes nothing.
	 */
	end = before.event_seq + events;
	for (unsigned int i = 0; i % 64 || events_so_far() < end; i++) {
		(void)snprintf(name, sizeof(name), "flood%u", i % FLOODED);
		check(gs_klink_withdraw(speaker, name, &err));
		for (unsigned int j = 0; j < 4; j++) {
			(void)snprintf(name, sizeof(name), "anew%u", j);
			check(gs_klink_holding_del(speaker, name, &err));
			set_holding(name, 60000);
		}
	}
	final_state(&state);
	for (size_t i = 0; i < GS_ARRAY_SIZE(listeners); i++)
		(void)pthread_join(listeners[i].thread, NULL);
	(void)pthread_join(raw.thread, NULL);
	for (size_t i = 0; i < GS_ARRAY_SIZE(listeners); i++)
		judge(&listeners[i], &state, state.status.events_lost - before.events_lost);
	printf("# a bare socket: %llu got, %llu in gaps, %u overruns\n",
	       (unsigned long long)raw.got, (unsigned long long)raw.gaps, raw.overruns);
	nl_result(raw.overruns > 0 && raw.gaps > 0,
		  "a bare socket: ENOBUFS, and a gap in the numbers", "%u overruns", raw.overruns);
	for (unsigned int i = 0; i < FLOODED; i++) {
		(void)snprintf(name, sizeof(name), "flood%u", i);
		check(gs_klink_watch_del(speaker, name, &err));
		check(gs_klink_holding_del(speaker, name, &err));
	}
	for (unsigned int j = 0; j < 4; j++) {
		(void)snprintf(name, sizeof(name), "anew%u", j);
		check(gs_klink_holding_del(speaker, name, &err));
	}
}

static void overflow(unsigned int holdings, const char *path)
{
	static struct listener listener = { .name = "a large buffer", .buffer = 16 << 20 };
	cleanup_kstate struct gs_kstate state = { 0 };
	cleanup_close int fd = open(path, O_RDWR | O_CLOEXEC);
	struct gs_kstatus before;
	uint64_t dropped, numbers;
	char name[32];

	for (unsigned int i = 0; i < holdings; i++) {
		(void)snprintf(name, sizeof(name), "over%u", i);
		set_holding(name, 60000);
	}
	(void)quiet();
	check(gs_klink_status(speaker, &before, &err));
	start(&listener);
	/* Behind these comes no event of itself that would show the gap. */
	check(gs_klink_hook_del(speaker, dev, &err));
	final_state(&state);
	(void)pthread_join(listener.thread, NULL);
	dropped = state.status.events_lost - before.events_lost;
	judge(&listener, &state, dropped);
	nl_result(dropped > 0 && dropped < holdings, "the module counts what it had no place for",
		  "%llu", (unsigned long long)dropped);
	/* And the ones that say that some were lost. */
	numbers = state.status.event_seq - before.event_seq;
	nl_result(numbers > holdings && numbers < holdings + 5,
		  "every change has a number, sent or not", "%llu numbers",
		  (unsigned long long)numbers);
	for (unsigned int i = 0; i < holdings; i++) {
		(void)snprintf(name, sizeof(name), "over%u", i);
		check(gs_klink_holding_del(speaker, name, &err));
	}
	check(gs_klink_hook_add(speaker, fd, "fake", NULL, 0, false, NULL, &err));
}

/* ---- A link and a listener that were open before the module was loaded again. */

static bool await(struct gs_kevents *events, enum gs_kevent_what want)
{
	for (int tries = 0; tries < 200; tries++) {
		enum gs_kevent_what what;
		struct gs_kevent e;

		check(gs_kevent_next(events, 100, &what, &e, &err));
		if (what == want)
			return true;
	}
	return false;
}

static void reload(void)
{
	cleanup_kevents struct gs_kevents *events = NULL;
	enum gs_kevent_what what;
	struct gs_kstatus status;
	struct nl before, after;
	struct gs_kevent e;
	int r;

	dev = gs_kdev(240, 1);
	nl_family(&before);
	check(gs_kevents_open(0, &events, &err));
	check(gs_klink_heartbeat(speaker, &err));
	puts("# ready");
	(void)fflush(stdout);
	nl_result(await(events, GS_KEVENT_UNLOADED), "the listener hears that the module goes",
		  "no");
	r = gs_klink_status(speaker, &status, &err);
	nl_result(r == -ENOENT && !gs_klink_loaded(speaker), "the link says that it is not loaded",
		  "%d", r);
	nl_result(await(events, GS_KEVENT_LOADED), "the listener hears that it comes", "no");
	nl_family(&after);
	printf("# family %u, group %u; then %u, %u\n", before.family, before.group, after.family,
	       after.group);
	nl_result(before.family != after.family, "it has other numbers now", "family %u",
		  after.family);
	r = gs_klink_status(speaker, &status, &err);
	nl_result(r == 0 && status.event_seq == 0 && !status.has_agent,
		  "the same link finds the new one, which knows of nothing", "%d", r);
	check(gs_klink_heartbeat(speaker, &err));
	r = gs_kevent_next(events, 5000, &what, &e, &err);
	nl_result(r == 0 && what == GS_KEVENT_GOT && e.event == GS_EV_AGENT && e.event_seq == 1,
		  "the same listener hears the new one's first event", "%d", r);
}

int main(int argc, char **argv)
{
	const char *how = argc > 1 ? argv[1] : "";
	struct stat st;

	check(gs_klink_open(&speaker, &err));
	if (argc > 2) {
		if (stat(argv[2], &st) < 0)
			nl_die("%s: %s", argv[2], strerror(errno));
		dev = gs_kdev_of(st.st_rdev);
	}
	if (strcmp(how, "flood") == 0 && argc == 4)
		flood(strtoull(argv[3], NULL, 10));
	else if (strcmp(how, "overflow") == 0 && argc == 4)
		overflow((unsigned int)strtoul(argv[3], NULL, 10), argv[2]);
	else if (strcmp(how, "reload") == 0)
		reload();
	else
		nl_die("evcheck: the head of its source says how to call it");
	gs_klink_close(speaker);
	return nl_failures != 0;
}
