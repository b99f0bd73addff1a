// SPDX-License-Identifier: Apache-2.0
/*
 * Dumps of many objects, the bounds on how many there may be, and names of every legal byte.
 *
 *	dumpcheck large		200 watches of 16 holdings each, with the longest names
 *	dumpcheck moving [S]	dumps while objects come and go, for that many seconds
 *	dumpcheck names NODE	every byte that a name may have, in dumps and events
 *	dumpcheck limits FOLDER	as many nodes (the device files in FOLDER), holdings, links and
 *				passive calls as there may be, and one more
 *	dumpcheck watches	the same of watches
 *
 * Prints a line for each thing that was to be shown. Leaves what it made: unload the module.
 */
#include <dirent.h>
#include <fcntl.h>
#include <pthread.h>
#include <stdatomic.h>
#include <sys/stat.h>
#include <time.h>

#include "common/cleanup.h"
#include "common/kevent.h"
#include "common/proc.h"
#include "tests/vm/programs/nl.h"

/* Bounds of kmod/gs.h, which user space is not told. */
#define HOLDINGS_MAX 4096
#define WATCHES_MAX 8192

static struct gs_klink *link_;
static struct gs_err err;

static void check(int r)
{
	if (r < 0)
		nl_die("%s", err.msg);
}

/* ---- Making things. The devices are hooked nowhere, unless said. */

static int set_holding(struct gs_klink *by, const char *name, const uint32_t *devs, size_t n)
{
	const struct gs_kholding_set set = { .name = name,
					     .devs = devs,
					     .n_devs = n,
					     .lend_after_ms = 60000,
					     .hold_max_ms = GS_KTIME_NONE,
					     .settle_ms = GS_KTIME_NONE };

	return gs_klink_holding_set(by, &set, &err);
}

static int set_watch(struct gs_klink *by, const char *name, uint64_t cgroup,
		     const char *const *holdings, size_t n)
{
	const struct gs_kwatch_set set = { .name = name,
					   .role = GS_MEMBER,
					   .who = { .cgroup_id = cgroup },
					   .holdings = holdings,
					   .n_holdings = n };

	return gs_klink_watch_set(by, &set, &err);
}

/* A name of the greatest length that begins with a letter and a number. */
static const char *long_name(char *name, char letter, unsigned int n)
{
	int len = snprintf(name, GS_NAME_MAX + 1, "%c%u-", letter, n);

	memset(name + len, letter, (size_t)(GS_NAME_MAX - len));
	name[GS_NAME_MAX] = '\0';
	return name;
}

static const uint32_t some_dev = 0xabc01;

/* ---- Large. */

#define WATCHES 200

/* Is the watch @n in the state, with all its holdings? */
static bool has_watch(const struct gs_kstate *state, unsigned int n)
{
	char name[GS_NAME_MAX + 1];
	const struct gs_kwatch *watch = gs_kstate_watch(state, long_name(name, 'w', n));

	if (!watch || watch->cgroup_id != 100000 + n || watch->holdings.n != GS_LINKS_MAX)
		return false;
	for (unsigned int i = 0; i < GS_LINKS_MAX; i++)
		if (!gs_strv_has(&watch->holdings, long_name(name, 'h', i)))
			return false;
	return true;
}

/* Reads a dump with a buffer of that size: messages, or -1. */
static int read_small(size_t size)
{
	struct sockaddr_nl kernel = { .nl_family = AF_NETLINK };
	char *buf = gs_malloc(size);
	struct nl_said said = { 0 };
	struct nl_msg msg;
	struct nl nl;

	nl_open(&nl);
	nl_start(&msg, nl.family, GS_CMD_DUMP);
	nl_hdr(&msg)->nlmsg_flags = NLM_F_REQUEST | NLM_F_DUMP;
	nl_hdr(&msg)->nlmsg_len = (uint32_t)msg.len;
	if (sendto(nl.fd, msg.buf, msg.len, 0, (void *)&kernel, sizeof(kernel)) < 0)
		nl_die("send: %s", strerror(errno));
	for (bool last = false; !last;) {
		ssize_t n = recv(nl.fd, buf, size, MSG_TRUNC);
		struct nlmsghdr *nlh = (void *)buf;

		if (n < 0)
			nl_die("receive: %s", strerror(errno));
		if ((size_t)n > size) {
			printf("# a datagram of %zd for a buffer of %zu\n", n, size);
			said.code = EMSGSIZE;
			break;
		}
		for (int rest = (int)n; NLMSG_OK(nlh, (unsigned int)rest);
		     nlh = NLMSG_NEXT(nlh, rest))
			last = nl_last(nlh, &said);
	}
	(void)close(nl.fd);
	free(buf);
	return said.code ? -1 : (int)said.messages;
}

static void large(void)
{
	cleanup_kstate struct gs_kstate state = { 0 };
	char names[GS_LINKS_MAX][GS_NAME_MAX + 1], name[GS_NAME_MAX + 1];
	const char *list[GS_LINKS_MAX];
	unsigned int found = 0;
	int n;

	for (unsigned int i = 0; i < GS_LINKS_MAX; i++) {
		list[i] = long_name(names[i], 'h', i);
		check(set_holding(link_, list[i], &some_dev, 1));
	}
	for (unsigned int i = 0; i < WATCHES; i++)
		check(set_watch(link_, long_name(name, 'w', i), 100000 + i, list, GS_LINKS_MAX));
	check(gs_klink_dump(link_, &state, &err));
	for (unsigned int i = 0; i < WATCHES; i++)
		found += has_watch(&state, i);
	nl_result(
		found == WATCHES && state.n_watches == WATCHES && state.n_holdings == GS_LINKS_MAX,
		"200 watches of 16 holdings, names of 127: all in the dump, each whole",
		"%u whole of %zu watches, %zu holdings", found, state.n_watches, state.n_holdings);
	n = read_small(16384);
	nl_result(n == WATCHES + GS_LINKS_MAX, "the same for a reader with a buffer of 16 KiB",
		  "%d messages", n);
}

/* ---- Moving. */

static _Atomic bool stop;
static _Atomic unsigned int moves;
static _Atomic unsigned int pause_ms; /* with both, and with none */
#define PAUSE_MAX_MS 512

static void sleep_ms(unsigned int ms)
{
	const struct timespec t = { .tv_sec = ms / 1000, .tv_nsec = ms % 1000 * 1000000L };

	(void)nanosleep(&t, NULL);
}

/*
 * a comes before b and goes after it, so a dump that shows b without a is of no moment that ever
 * was. Both hold on to many others, so that they are in different parts of the dump.
 */
static void *move(void *data)
{
	const char *const holding[] = { "fixed0" };
	struct gs_klink *by;

	check(gs_klink_open(&by, &err));
	while (!atomic_load(&stop)) {
		check(set_holding(by, "a", &some_dev, 1));
		check(set_watch(by, "b", 55, holding, 1));
		sleep_ms(atomic_load(&pause_ms));
		check(gs_klink_watch_del(by, "b", &err));
		check(gs_klink_holding_del(by, "a", &err));
		atomic_fetch_add(&moves, 1);
		sleep_ms(atomic_load(&pause_ms));
	}
	gs_klink_close(by);
	return data;
}

static int take(const struct nlmsghdr *nlh, void *state, struct gs_err *e)
{
	return gs_kmsg_add(nlh, state, e);
}

/* One dump without a second try. */
static bool dump_once(struct gs_knl *nl, uint16_t family, struct gs_kstate *state)
{
	struct gs_kreq req;

	gs_kreq_start(&req, family, GS_CMD_DUMP, GS_GENL_VERSION);
	check(gs_knl_ask(nl, &req, true, take, state, &err));
	return !nl->interrupted;
}

#define FIXED 300U

static void moving(unsigned int seconds)
{
	unsigned int whole = 0, interrupted = 0, wrong = 0, with = 0;
	uint64_t end = gs_boottime_ms() + seconds * 1000ULL;
	const char *list[] = { "fixed0" };
	struct gs_knl nl = { 0 };
	pthread_t mover;
	char name[32];
	struct nl ids;

	for (unsigned int i = 0; i < FIXED; i++) {
		(void)snprintf(name, sizeof(name), "fixed%u", i);
		check(set_holding(link_, name, &some_dev, 1));
		check(set_watch(link_, name, 200000 + i, list, 1));
	}
	nl_family(&ids);
	check(gs_knl_open(&nl, 0, &err));
	if (pthread_create(&mover, NULL, move, NULL))
		nl_die("no thread");
	while (gs_boottime_ms() < end || whole < 5) {
		cleanup_kstate struct gs_kstate state = { 0 };
		bool a, b;

		/* As fast as can be, but for pauses that let a dump get through now and then. */
		if (!dump_once(&nl, ids.family, &state)) {
			unsigned int pause = atomic_load(&pause_ms);

			if (++interrupted % 8 == 0 && pause < PAUSE_MAX_MS)
				atomic_store(&pause_ms, pause * 2 + 1);
			continue;
		}
		atomic_store(&pause_ms, atomic_load(&pause_ms) / 2);
		whole++;
		a = gs_kstate_holding(&state, "a");
		b = gs_kstate_watch(&state, "b");
		with += a;
		if ((b && !a) || state.n_holdings != FIXED + a || state.n_watches != FIXED + b)
			wrong++;
	}
	atomic_store(&stop, true);
	(void)pthread_join(mover, NULL);
	gs_knl_close(&nl);
	printf("# %u rounds of objects, %u dumps whole (%u with a), %u interrupted\n",
	       atomic_load(&moves), whole, with, interrupted);
	nl_result(wrong == 0, "a dump that is not marked as interrupted is complete and consistent",
		  "%u of %u are not", wrong, whole);
	nl_result(interrupted > 0 && atomic_load(&moves) > 1,
		  "a dump is marked as interrupted when objects came or went", "%u rounds",
		  atomic_load(&moves));
}

/* ---- Names. */

/* Every byte but control characters and the end; @turn starts it elsewhere. */
static void fill_name(char *name, unsigned int turn)
{
	unsigned int n = 0;

	for (unsigned int i = 0; n < GS_NAME_MAX; i++) {
		unsigned int c = (i + turn) % 256;

		if (c >= ' ' && c != 0x7f)
			name[n++] = (char)c;
	}
	name[n] = '\0';
}

static bool heard_name(struct gs_kevents *events, const char *name)
{
	for (int tries = 0; tries < 50; tries++) {
		enum gs_kevent_what what;
		struct gs_kevent e;

		check(gs_kevent_next(events, 100, &what, &e, &err));
		if (what == GS_KEVENT_GOT && strcmp(e.name, name) == 0)
			return true;
	}
	return false;
}

static void names(const char *node)
{
	cleanup_kevents struct gs_kevents *events = NULL;
	cleanup_close int fd = open(node, O_RDWR | O_CLOEXEC);
	bool seen[256] = { 0 }, good = true, heard = true, drivers = true;
	unsigned int missing = 0;
	struct gs_knode hooked;
	char name[GS_NAME_MAX + 1];

	if (fd < 0)
		nl_die("%s: %s", node, strerror(errno));
	check(gs_kevents_open(0, &events, &err));
	check(gs_klink_hook_add(link_, fd, "x", NULL, 0, false, &hooked, &err));
	for (unsigned int turn = 32; turn < 256; turn += 32) {
		const char *const list[] = { name };
		cleanup_kstate struct gs_kstate state = { 0 };
		const struct gs_kwatch *watch;

		fill_name(name, turn);
		for (const char *c = name; *c; c++)
			seen[(unsigned char)*c] = true;
		check(gs_klink_hook_add(link_, fd, name, NULL, 0, false, NULL, &err));
		check(set_holding(link_, name, &hooked.dev, 1));
		check(set_watch(link_, name, 300000 + turn, list, 1));
		heard = heard && heard_name(events, name);
		check(gs_klink_dump(link_, &state, &err));
		watch = gs_kstate_watch(&state, name);
		good = good && watch && gs_kstate_holding(&state, name) &&
		       gs_strv_has(&watch->holdings, name);
		drivers = drivers && strcmp(state.nodes[0].driver, name) == 0;
	}
	for (unsigned int c = ' '; c < 256; c++)
		missing += c != 0x7f && !seen[c];
	nl_result(good && missing == 0, "every legal byte in holdings and watches, as it was given",
		  "%u bytes not tried", missing);
	nl_result(drivers, "every legal byte in a driver's name", "another name came back");
	nl_result(heard, "every legal byte in events", "not heard");
}

/* ---- Limits. */

/* Was the last request refused with that errno and a message of the module's? */
static void refused(int r, int want, const char *name)
{
	nl_result(r == -want && strncmp(err.msg, "the module refused: ", 20) == 0, name,
		  "%d, wanted %d: %s", r, -want, r < 0 ? err.msg : "taken");
}

static void limit_nodes(const char *folder)
{
	cleanup_kstate struct gs_kstate state = { 0 };
	unsigned int hooked = 0, others = 0;
	DIR *dir = opendir(folder);
	uint32_t many[GS_PASSIVE_MAX + 1] = { 0 };
	struct dirent *entry;
	int r = 0, last = -1;

	if (!dir)
		nl_die("%s: %s", folder, strerror(errno));
	while ((entry = readdir(dir))) {
		int fd = openat(dirfd(dir), entry->d_name, O_RDWR | O_CLOEXEC);

		if (strncmp(entry->d_name, "fakegpu", 7) != 0 || fd < 0) {
			if (fd >= 0)
				(void)close(fd);
			continue;
		}
		r = gs_klink_hook_add(link_, fd, "fake", many, GS_PASSIVE_MAX, false, NULL, &err);
		if (r == 0)
			hooked++;
		else if (!others++)
			refused(r, ENOSPC, "one node more than 64: refused");
		if (last >= 0)
			(void)close(last);
		last = fd;
	}
	(void)closedir(dir);
	check(gs_klink_dump(link_, &state, &err));
	nl_result(hooked == GS_NODES_MAX && state.n_nodes == GS_NODES_MAX && others > 0,
		  "64 nodes are hooked", "%u hooked, %zu in the dump, %u refused", hooked,
		  state.n_nodes, others);
	r = gs_klink_hook_add(link_, last, "fake", many, GS_PASSIVE_MAX + 1, false, NULL, &err);
	refused(r, ERANGE, "one passive call more than 32: refused");
	(void)close(last);
	for (unsigned int i = 0; i < 2; i++) {
		const struct gs_knode *node = &state.nodes[i * (GS_NODES_MAX - 1)];

		check(gs_klink_hook_del(link_, node->dev, &err));
	}
}

static void limit_holdings(void)
{
	cleanup_kstate struct gs_kstate state = { 0 };
	uint32_t devs[GS_NODES_MAX + 1];
	unsigned int found = 0;
	char name[32];
	int r;

	for (uint32_t i = 0; i <= GS_NODES_MAX; i++)
		devs[i] = some_dev + i;
	check(set_holding(link_, "wide", devs, GS_NODES_MAX));
	r = set_holding(link_, "wider", devs, GS_NODES_MAX + 1);
	refused(r, ERANGE, "a holding of 65 nodes: refused");
	for (unsigned int i = 1; i < HOLDINGS_MAX; i++) {
		(void)snprintf(name, sizeof(name), "holding%u", i);
		check(set_holding(link_, name, &some_dev, 1));
	}
	r = set_holding(link_, "more", &some_dev, 1);
	refused(r, E2BIG, "one holding more than 4,096: refused");
	check(gs_klink_dump(link_, &state, &err));
	for (unsigned int i = 1; i < state.n_holdings; i++) {
		(void)snprintf(name, sizeof(name), "holding%u", i);
		found += strcmp(state.holdings[i].name, name) == 0;
	}
	nl_result(state.n_holdings == HOLDINGS_MAX && found == HOLDINGS_MAX - 1 &&
			  gs_kstate_holding(&state, "wide")->devs.n == GS_NODES_MAX,
		  "4,096 holdings are in the dump", "%zu, %u as they were made", state.n_holdings,
		  found);
	check(set_holding(link_, "holding1", &some_dev, 1));
	check(gs_klink_holding_del(link_, "holding4095", &err));
	check(set_holding(link_, "more", &some_dev, 1));
}

static void limit_links(void)
{
	const char *list[GS_LINKS_MAX + 1];
	char names[GS_LINKS_MAX + 1][32];
	int r;

	for (unsigned int i = 0; i <= GS_LINKS_MAX; i++) {
		(void)snprintf(names[i], sizeof(names[i]), "holding%u", i + 1);
		list[i] = names[i];
	}
	r = set_watch(link_, "links", 400000, list, GS_LINKS_MAX + 1);
	refused(r, E2BIG, "a watch of 17 holdings: refused");
	check(set_watch(link_, "links", 400000, list, GS_LINKS_MAX));
	r = set_watch(link_, "links", 400000, list + GS_LINKS_MAX, 1);
	refused(r, E2BIG, "a watch of 16 holdings joins no more");
	check(set_watch(link_, "links", 400000, list, GS_LINKS_MAX));
	check(gs_klink_watch_del(link_, "links", &err));
}

static void limit_watches(void)
{
	const char *const list[] = { "one" };
	cleanup_kstate struct gs_kstate state = { 0 };
	unsigned int found = 0;
	char name[32];
	int r;

	check(set_holding(link_, list[0], &some_dev, 1));
	for (unsigned int i = 0; i < WATCHES_MAX; i++) {
		(void)snprintf(name, sizeof(name), "watch%u", i);
		check(set_watch(link_, name, 500000 + i, list, 1));
	}
	r = set_watch(link_, "more", 600000, list, 1);
	refused(r, E2BIG, "one watch more than 8,192: refused");
	check(gs_klink_dump(link_, &state, &err));
	for (unsigned int i = 0; i < state.n_watches; i++) {
		(void)snprintf(name, sizeof(name), "watch%u", i);
		found += strcmp(state.watches[i].name, name) == 0 &&
			 state.watches[i].cgroup_id == 500000 + i;
	}
	nl_result(state.n_watches == WATCHES_MAX && found == WATCHES_MAX,
		  "8,192 watches are in the dump", "%zu, %u as they were made", state.n_watches,
		  found);
	check(gs_klink_watch_del(link_, "watch5", &err));
	check(set_watch(link_, "more", 600000, list, 1));
}

int main(int argc, char **argv)
{
	const char *how = argc > 1 ? argv[1] : "";

	check(gs_klink_open(&link_, &err));
	if (strcmp(how, "large") == 0) {
		large();
	} else if (strcmp(how, "moving") == 0) {
		moving(argc > 2 ? (unsigned int)strtoul(argv[2], NULL, 10) : 3);
	} else if (strcmp(how, "names") == 0 && argc == 3) {
		names(argv[2]);
	} else if (strcmp(how, "limits") == 0 && argc == 3) {
		limit_nodes(argv[2]);
		limit_holdings();
		limit_links();
	} else if (strcmp(how, "watches") == 0) {
		limit_watches();
	} else {
		nl_die("dumpcheck: the head of its source says how to call it");
	}
	gs_klink_close(link_);
	return nl_failures != 0;
}
