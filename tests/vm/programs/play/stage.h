/* SPDX-License-Identifier: Apache-2.0 */
/* Holdings, watches, hooks, and the agent. */
#ifndef PLAY_STAGE_H
#define PLAY_STAGE_H

#include "tests/vm/programs/play/cast.h"
#include "tests/vm/programs/play/seen.h"

#define MAX_HOLDINGS 64

struct holding {
	gs_kname name;
	uint32_t devs[GS_NODES_MAX];
	size_t n_devs;
	uint64_t kept; /* the number of an earlier state */
};

static struct holding holdings[MAX_HOLDINGS];
static size_t n_holdings;

static pid_t agent;
static struct gs_kstatus at_begin;

static struct holding *holding_find(const char *name)
{
	for (size_t i = 0; i < n_holdings; i++)
		if (strcmp(holdings[i].name, name) == 0)
			return &holdings[i];
	return NULL;
}

/* Makes it, or changes its times: -1 for those that stay. */
static int set_holding(const struct holding *h, int64_t lend_after, int64_t hold_max,
		       int64_t settle)
{
	struct gs_kholding_set set = { .name = h->name,
				       .devs = h->devs,
				       .n_devs = h->n_devs,
				       .lend_after_ms = lend_after,
				       .hold_max_ms = hold_max,
				       .settle_ms = settle };

	return -gs_klink_holding_set(kmod, &set, &err);
}

static int device(const char *word, uint32_t *ret)
{
	char buf[64];
	struct stat st;

	if (stat(node_path(word, buf, sizeof(buf)), &st) < 0)
		return wrong(errno, "%s", word);
	*ret = gs_kdev_of(st.st_rdev);
	return 0;
}

static int do_holding(char **argv)
{
	static const char *const names[] = { "lend_after=", "hold_max=", "settle=" };
	int64_t times[] = { GS_KTIME_NONE, GS_KTIME_NONE, GS_KTIME_NONE };
	struct holding *h = holding_find(argv[1]);
	int r;

	if (!h) {
		if (n_holdings == MAX_HOLDINGS)
			return wrong(E2BIG, "too many holdings");
		h = &holdings[n_holdings++];
		*h = (struct holding){ 0 };
		(void)snprintf(h->name, sizeof(h->name), "%s", argv[1]);
		times[0] = 60000;
		times[1] = PATIENCE_MS;
	}
	for (argv += 2; *argv && !strchr(*argv, '=') && h->n_devs < GS_NODES_MAX; argv++) {
		r = device(*argv, &h->devs[h->n_devs++]);
		if (r)
			return r;
	}
	for (; *argv; argv++)
		for (size_t i = 0; i < GS_ARRAY_SIZE(names); i++)
			if (strncmp(*argv, names[i], strlen(names[i])) == 0)
				times[i] = atoll(*argv + strlen(names[i]));
	return set_holding(h, times[0], times[1], times[2]);
}

static int get_holding(const char *name, struct gs_kholding *ret)
{
	cleanup_kstate struct gs_kstate state = { 0 };
	const struct gs_kholding *h;

	if (gs_klink_dump(kmod, &state, &err) < 0)
		return err.code;
	h = gs_kstate_holding(&state, name);
	if (!h)
		return wrong(ENOENT, "no holding %s", name);
	*ret = *h; /* but for what it points to */
	return 0;
}

/* Waits until a number of the holding, or of the watch, is that one. */
static int wait_number(char **argv)
{
	uint64_t end = now_ms() + PATIENCE_MS, want = (uint64_t)atoll(argv[2]), is = 0;
	bool state = strcmp(argv[0], "state") == 0;

	if (state)
		want = (uint64_t)gs_kname_find_state(argv[2]);
	for (;;) {
		cleanup_kstate struct gs_kstate all = { 0 };
		const struct gs_kholding *h;
		const struct gs_kwatch *w;

		if (gs_klink_dump(kmod, &all, &err) < 0)
			return err.code;
		h = gs_kstate_holding(&all, argv[1]);
		w = gs_kstate_watch(&all, argv[1]);
		if (state && h)
			is = h->state;
		else if (strcmp(argv[0], "files") == 0 && h)
			is = h->files;
		else if (strcmp(argv[0], "held") == 0 && h)
			is = h->held;
		else if (strcmp(argv[0], "opened") == 0 && w)
			is = w->files;
		else if (strcmp(argv[0], "revoked") == 0 && w)
			is = w->revoked;
		else
			return wrong(EINVAL, "nothing of that name");
		if (is == want)
			return 0;
		if (now_ms() >= end)
			return state ? wrong(ERANGE, "%s", gs_kname_state((unsigned int)is)) :
				       wrong(ERANGE, "%llu", (unsigned long long)is);
		hear(5);
	}
}

/* The number for LEND or RELEASE. */
static int get_seq(char **argv, uint64_t *ret)
{
	const struct holding *own = holding_find(argv[1]);
	struct gs_kholding h = { 0 };
	int r;

	if (argv[2] && strcmp(argv[2], "kept") == 0 && own) {
		*ret = own->kept;
		return 0;
	}
	r = get_holding(argv[1], &h);
	*ret = h.seq;
	return r;
}

/* Is that number the one of the event that told of the state? */
static int do_numbered(char **argv)
{
	struct gs_kholding h = { 0 };
	const struct seen *last = NULL;
	int r = get_holding(argv[1], &h);

	catch_up();
	for (size_t i = 0; i < n_events; i++)
		if (events[i].e.event == GS_EV_STATE && strcmp(events[i].who, argv[1]) == 0)
			last = &events[i];
	if (r || !last)
		return r ? r : wrong(ENOENT, "no event of that holding");
	if (last->e.event_seq != h.seq || last->e.state != h.state)
		return wrong(ERANGE, "event %llu, number %llu",
			     (unsigned long long)last->e.event_seq, (unsigned long long)h.seq);
	return 0;
}

static int do_keep(char **argv)
{
	struct holding *h = holding_find(argv[1]);

	return h ? get_seq((char *[]){ argv[0], argv[1], NULL }, &h->kept) : ENOENT;
}

static int do_lend(char **argv)
{
	uint64_t seq;
	int r = get_seq(argv, &seq);

	return r ? r : -gs_klink_lend(kmod, argv[1], seq, &err);
}

static int do_release(char **argv)
{
	uint64_t seq;
	int r = get_seq(argv, &seq);

	return r ? r : -gs_klink_release(kmod, argv[1], seq, &err);
}

static int do_withdraw(char **argv)
{
	return -gs_klink_withdraw(kmod, argv[1], &err);
}

static int do_drop(char **argv)
{
	return -gs_klink_holding_del(kmod, argv[1], &err);
}

static int do_unwatch(char **argv)
{
	return -gs_klink_watch_del(kmod, argv[1], &err);
}

/* Then it stays what it is until something happens. */
static int do_idle(char **argv)
{
	struct holding *h = holding_find(argv[1]);
	int r = h ? set_holding(h, 1, GS_KTIME_NONE, GS_KTIME_NONE) : wrong(ENOENT, "none");

	r = r ? r :
		wait_number((char *[]){ (char *)(uintptr_t) "state", argv[1],
					(char *)(uintptr_t) "idle", NULL });
	r = r ? r : set_holding(h, 60000, GS_KTIME_NONE, GS_KTIME_NONE);
	return r;
}

static int do_lent(char **argv)
{
	int r = do_idle(argv);

	return r ? r : do_lend((char *[]){ argv[0], argv[1], NULL });
}

static int do_watch(char **argv)
{
	struct gs_kwatch_set set = { .name = argv[1],
				     .role = strcmp(argv[0], "member") == 0 ? GS_MEMBER :
									      GS_BORROWER,
				     .kill_on_return = has_word(argv + 3, "kill") };
	cleanup_strv struct gs_strv list = { 0 };
	bool cgroup = has_word(argv + 3, "cgroup");
	struct actor *a = actor_find(argv[1]);
	cleanup_free char *path = cgroup_path(argv[1], "");
	char *rest = NULL;
	int r = 0;

	for (char *one = strtok_r(argv[2], ",", &rest); one; one = strtok_r(NULL, ",", &rest))
		gs_strv_add(&list, one);
	set.holdings = (const char *const *)list.v;
	set.n_holdings = list.n;
	if (!a)
		r = actor_make(argv[1], cgroup, &a);
	if (r)
		return r;
	r = cgroup ? gs_kwho_cgroup(path, &set.who, &err) : gs_kwho_pid(a->pid, &set.who, &err);
	return -(r < 0 ? r : gs_klink_watch_set(kmod, &set, &err));
}

static int do_outsider(char **argv)
{
	struct actor *a;

	return actor_make(argv[1], has_word(argv + 2, "host"), &a);
}

static int do_toucher(char **argv)
{
	const struct actor *a = actor_find(argv[2]);
	const struct seen *last = NULL;
	uint32_t dev;
	int r = device(argv[3], &dev);

	for (size_t i = 0; i < n_events; i++)
		if (events[i].e.event == GS_EV_STATE && events[i].e.cause == GS_BY_TOUCH &&
		    strcmp(events[i].who, argv[1]) == 0)
			last = &events[i];
	if (r || !a || !last)
		return r ? r : wrong(ENOENT, "no touch, or no such actor");
	if (strncmp(last->e.watch, a->name, strcspn(a->name, ".")) != 0 || !last->e.has_dev ||
	    last->e.dev != dev || (pid_t)last->e.pid != a->pid || !last->e.start_time ||
	    !last->e.has_kind || strcmp(gs_kname_kind(last->e.kind), argv[4]) != 0)
		return wrong(ERANGE, "watch=%s dev=%u:%u pid=%u kind=%u", last->e.watch,
			     gs_kdev_major(last->e.dev), gs_kdev_minor(last->e.dev), last->e.pid,
			     last->e.kind);
	return 0;
}

/* ---- The machine. */
static int do_hook(char **argv)
{
	char buf[64];

	for (argv++; *argv; argv++) {
		cleanup_close int fd = open(node_path(*argv, buf, sizeof(buf)), O_RDWR | O_CLOEXEC);
		struct gs_knode node;

		if (fd < 0)
			return wrong(errno, "%s", *argv);
		if (gs_klink_hook_add(kmod, fd, "fake", NULL, 0, false, &node, &err) < 0)
			return err.code;
	}
	return 0;
}

static int do_unhook(char **argv)
{
	for (argv++; *argv; argv++) {
		uint32_t dev;
		int r = device(*argv, &dev);

		if (r || gs_klink_hook_del(kmod, dev, &err) < 0)
			return r ? r : err.code;
	}
	return 0;
}

static int do_rmmod(char **argv)
{
	return syscall(SYS_delete_module, argv[1], O_NONBLOCK) < 0 ? wrong(errno, "rmmod") : 0;
}

static int do_insmod(char **argv)
{
	cleanup_close int fd = open(argv[1], O_RDONLY | O_CLOEXEC);

	return fd < 0 || syscall(SYS_finit_module, fd, "", 0) < 0 ? wrong(errno, "insmod") : 0;
}

static int do_param(char **argv)
{
	char path[128];

	(void)snprintf(path, sizeof(path), "/sys/module/fakegpu/parameters/%s", argv[1]);
	return write_file(path, argv[2]);
}

static int do_wait(char **argv)
{
	sleep_ms((unsigned int)atoi(argv[1]));
	return 0;
}

static void __attribute__((noreturn)) agent_run(void)
{
	struct gs_klink *link = NULL;

	(void)prctl(PR_SET_PDEATHSIG, SIGKILL);
	if (gs_klink_open(&link, &err) < 0)
		_exit(1);
	for (;;) {
		if (gs_klink_heartbeat(link, &err) < 0)
			_exit(1);
		sleep_ms(500);
	}
}

static int agent_is(bool alive)
{
	uint64_t end = now_ms() + PATIENCE_MS;
	struct gs_kstatus status;

	do {
		if (gs_klink_status(kmod, &status, &err) < 0)
			return err.code;
		if (status.agent_alive == alive)
			return 0;
		hear(5);
	} while (now_ms() < end);
	return wrong(ETIMEDOUT, "the agent is %s", alive ? "lost" : "there");
}

static int do_agent(char **argv)
{
	if (strcmp(argv[1], "up") == 0) {
		if (agent)
			return 0;
		agent = fork();
		if (agent == 0)
			agent_run();
		return agent < 0 ? wrong(errno, "fork") : agent_is(true);
	}
	if (!agent)
		return strcmp(argv[1], "down") == 0 ? 0 : wrong(ESRCH, "no agent");
	if (strcmp(argv[1], "stop") == 0) {
		(void)kill(agent, SIGSTOP);
		return agent_is(false);
	}
	if (strcmp(argv[1], "cont") == 0) {
		(void)kill(agent, SIGCONT);
		return agent_is(true);
	}
	(void)kill(agent, SIGKILL);
	(void)waitpid(agent, NULL, 0);
	agent = 0;
	return agent_is(false);
}

/* A second agent's heartbeat; where it is taken, we are the agent until our link is closed. */
static int do_beat(char **argv)
{
	(void)argv;
	return -gs_klink_heartbeat(kmod, &err);
}

static int do_total(char **argv)
{
	const uint64_t want = (uint64_t)atoll(argv[2]);
	uint64_t end = now_ms() + 2000, grown = 0;

	do {
		struct gs_kstatus s;

		if (gs_klink_status(kmod, &s, &err) < 0)
			return err.code;
		const struct {
			const char *name;
			uint64_t grown;
		} sums[] = {
			{ "held", s.held - at_begin.held },
			{ "returns", s.returns - at_begin.returns },
			{ "settled", s.settled - at_begin.settled },
			{ "hold_max", s.hold_max - at_begin.hold_max },
			{ "quarantine", s.quarantine - at_begin.quarantine },
			{ "kills", s.kills - at_begin.kills },
			{ "refused", s.refused - at_begin.refused },
		};
		bool known = false;

		for (size_t i = 0; i < GS_ARRAY_SIZE(sums); i++) {
			if (strcmp(sums[i].name, argv[1]) != 0)
				continue;
			known = true;
			grown = sums[i].grown;
		}
		if (!known)
			return wrong(EINVAL, "no such sum");
		if (grown == want)
			return 0;
		hear(5);
	} while (now_ms() < end);
	return wrong(ERANGE, "%llu", (unsigned long long)grown);
}

#endif
