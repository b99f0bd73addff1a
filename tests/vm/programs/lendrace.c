// SPDX-License-Identifier: Apache-2.0
/*
 * lendrace: LEND against a touch that comes at the same moment, many times:
 *
 *	lendrace ROUNDS [SECONDS] [SEED]
 *
 * There are some holdings, each with one member, a process in a PID namespace of its own. Whenever
 * one is idle, we lend it while its member touches the card, some time before, during or after
 * that. Every third holding gets a borrower as soon as it is lent. Between rounds the member
 * touches once more, at about the moment when its holding would become idle.
 *
 * Never lent over a touch: a touch that came after IDLE and was over before LENT makes LEND fail;
 * one that comes later ends it, and is held if a borrower was taken before that. Never idle over a
 * touch: one that comes after IDLE ends it, and one that came before was counted before (or else a
 * LEND without any touch would fail). Every call runs once.
 *
 * Prints a line for each violation, and a line of sums. Exit status 1 if there is a violation.
 */
#include <errno.h>
#include <fcntl.h>
#include <sched.h>
#include <signal.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include <linux/futex.h>
#include <linux/sched.h>

#include "common/cleanup.h"
#include "common/kevent.h"
#include "common/klink.h"
#include "common/kname.h"
#include "common/xalloc.h"
#include "tests/fakegpu/fakegpu.h"

#define SLOTS 24
#define LEND_AFTER_MS 1
#define PATIENCE_NS 10000000000ULL
#define VIOLATIONS 3 /* enough of them */
#define BEAT_NS 500000000ULL
#define NODE "/dev/fakegpu0"

/* What the member shall do next. */
enum touch { TOUCH_IOCTL, TOUCH_OPEN, TOUCH_MMAP, TOUCHES };

/* Shared with the member's process. */
struct shared {
	_Atomic uint32_t go; /* number of the touch that it shall make; it waits for a change */
	_Atomic uint32_t done; /* that is over */
	uint64_t at; /* when: CLOCK_BOOTTIME in ns */
	uint32_t touch;
	uint64_t begin, end; /* of the last one */
	uint64_t serial;
	int err;
};

struct slot {
	char name[16], member[16], borrower[16];
	struct shared *shared;
	struct gs_kwho who; /* the borrower's */
	uint64_t serial; /* of the member's last call */
	/* As the events tell. */
	uint64_t seq, state_ns;
	uint64_t idle_ns; /* the last one */
	uint64_t lending_ns, lent_ns; /* in this round; 0: it was not */
	unsigned int state;
	pid_t pid;
	bool lending_ended; /* by a touch, in this round */
	bool lends_on; /* to a borrower */
	bool probing; /* a touch is on its way that is not one of a round */
};

static struct slot slots[SLOTS];
static struct gs_klink *kmod;
static struct gs_kevents *listener;
static struct gs_err err;
static uint64_t heard_seq, next_beat, seed = 1;

static struct {
	uint64_t rounds, before, inside, after, taken, held, probes, woke, silent, ioctls, touches,
		stalls, violations;
} sums;

/* ---- Small things. */
static uint64_t now_ns(void)
{
	struct timespec t;

	(void)clock_gettime(CLOCK_BOOTTIME, &t);
	return (uint64_t)t.tv_sec * 1000000000 + (uint64_t)t.tv_nsec;
}

/*
 * By a timer, which interrupts whatever the other processor is doing at that moment, also where an
 * emulator runs one processor at a time.
 */
static void sleep_until(uint64_t ns)
{
	struct timespec t = { .tv_sec = (time_t)(ns / 1000000000),
			      .tv_nsec = (long)(ns % 1000000000) };

	while (now_ns() < ns)
		(void)clock_nanosleep(CLOCK_BOOTTIME, TIMER_ABSTIME, &t, NULL);
}

static uint64_t draw(uint64_t below)
{
	seed ^= seed << 13;
	seed ^= seed >> 7;
	seed ^= seed << 17;
	return below ? seed % below : 0;
}

static void futex_wait(_Atomic uint32_t *word, uint32_t value, unsigned int ms)
{
	struct timespec t = { .tv_sec = ms / 1000, .tv_nsec = ms % 1000 * 1000000L };

	(void)syscall(SYS_futex, word, FUTEX_WAIT, value, ms ? &t : NULL, NULL, 0);
}

static void futex_wake(_Atomic uint32_t *word)
{
	(void)syscall(SYS_futex, word, FUTEX_WAKE, 1, NULL, NULL, 0);
}

static void __attribute__((noreturn)) give_up(const char *what)
{
	(void)fprintf(stderr, "lendrace: %s: %s\n", what, err.code ? err.msg : strerror(errno));
	exit(2);
}

static void __attribute__((format(printf, 2, 3))) violation(struct slot *s, const char *fmt, ...)
{
	va_list ap;

	sums.violations++;
	printf("violation: %s, round %llu: ", s->name, (unsigned long long)sums.rounds);
	va_start(ap, fmt);
	(void)vprintf(fmt, ap);
	va_end(ap);
	printf("; idle=%llu lending=%llu lent=%llu touch=%llu..%llu\n",
	       (unsigned long long)s->idle_ns, (unsigned long long)s->lending_ns,
	       (unsigned long long)s->lent_ns, (unsigned long long)s->shared->begin,
	       (unsigned long long)s->shared->end);
	(void)fflush(stdout);
}

/* ---- The member's process. */
static int touch(struct shared *shared, int fd)
{
	struct fakegpu_echo echo = { .token = shared->go };
	void *at;
	int other;

	switch (shared->touch) {
	case TOUCH_OPEN:
		other = open(NODE, O_RDWR | O_CLOEXEC);
		return other < 0 ? -1 : close(other);
	case TOUCH_MMAP:
		at = mmap(NULL, 4096, PROT_READ, MAP_SHARED, fd, 0);
		return at == MAP_FAILED ? -1 : munmap(at, 4096);
	default:
		if (ioctl(fd, FAKEGPU_WORK_ECHO, &echo) < 0)
			return -1;
		shared->serial = echo.serial;
		return 0;
	}
}

static void __attribute__((noreturn)) member_run(struct shared *shared)
{
	int fd = open(NODE, O_RDWR | O_CLOEXEC);
	uint32_t last = 0;

	(void)prctl(PR_SET_PDEATHSIG, SIGKILL);
	(void)prctl(PR_SET_TIMERSLACK, 1UL);
	shared->err = fd < 0 ? errno : 0;
	shared->done = 1;
	for (;;) {
		while (shared->go == last)
			futex_wait(&shared->go, last, 0);
		last = shared->go;
		sleep_until(shared->at);
		shared->begin = now_ns();
		shared->err = touch(shared, fd) < 0 ? errno : 0;
		shared->end = now_ns();
		shared->done = last;
		futex_wake(&shared->done);
	}
}

/* Tells it to touch at that moment. */
static void send_touch(struct slot *s, enum touch kind, uint64_t at)
{
	s->shared->touch = kind;
	s->shared->at = at;
	s->shared->go++;
	futex_wake(&s->shared->go);
	sums.touches++;
	sums.ioctls += kind == TOUCH_IOCTL;
}

static bool touch_is_over(const struct slot *s)
{
	return s->shared->done == s->shared->go;
}

static void touch_is_looked_at(struct slot *s)
{
	if (s->shared->err)
		violation(s, "the touch failed: %s", strerror(s->shared->err));
	if (s->shared->touch == TOUCH_IOCTL && s->shared->serial <= s->serial)
		violation(s, "the card served the call as number %llu, after %llu",
			  (unsigned long long)s->shared->serial, (unsigned long long)s->serial);
	s->serial = s->shared->serial;
}

/* ---- Events. */
static struct slot *slot_of(const char *name)
{
	for (size_t i = 0; i < SLOTS; i++)
		if (strcmp(slots[i].name, name) == 0)
			return &slots[i];
	return NULL;
}

static void take(const struct gs_kevent *e)
{
	struct slot *s = e->event == GS_EV_STATE ? slot_of(e->name) : NULL;

	heard_seq = e->event_seq;
	if (!s)
		return;
	s->state = e->state;
	s->seq = e->event_seq;
	s->state_ns = e->time_ns;
	if (e->state == GS_ACTIVE && e->from == GS_LENDING && e->cause == GS_BY_TOUCH)
		s->lending_ended = true;
	if (e->state == GS_IDLE)
		s->idle_ns = e->time_ns;
	else if (e->state == GS_LENDING)
		s->lending_ns = e->time_ns;
	else if (e->state == GS_LENT)
		s->lent_ns = e->time_ns;
}

/* Takes in what has come, and waits for it at most so long; our heart beats meanwhile. */
static void hear(int ms)
{
	enum gs_kevent_what what;
	struct gs_kevent e;
	uint64_t now = now_ns();

	if (now >= next_beat) {
		next_beat = now + BEAT_NS;
		if (gs_klink_heartbeat(kmod, &err) < 0)
			give_up("heartbeat");
	}
	for (;;) {
		if (gs_kevent_next(listener, ms, &what, &e, &err) < 0)
			give_up("events");
		if (what == GS_KEVENT_NONE)
			return;
		if (what == GS_KEVENT_LOST)
			give_up("events were lost");
		if (what == GS_KEVENT_GOT)
			take(&e);
		ms = 0;
	}
}

/* Takes in all that the module has told so far. */
static void hear_all(void)
{
	uint64_t end = now_ns() + PATIENCE_NS;
	struct gs_kstatus status;

	if (gs_klink_status(kmod, &status, &err) < 0)
		give_up("status");
	for (hear(0); heard_seq < status.event_seq; hear(5))
		if (now_ns() > end)
			give_up("events that do not come");
}

/* Waits until the touch is over. */
static bool settle(struct slot *s)
{
	uint64_t end = now_ns() + PATIENCE_NS;

	while (!touch_is_over(s)) {
		futex_wait(&s->shared->done, s->shared->go - 1, 100);
		if (now_ns() > end) {
			violation(s, "the touch is not served, state %s", gs_kname_state(s->state));
			return false;
		}
		hear(0);
	}
	return true;
}

static bool wait_state(struct slot *s, bool (*is)(const struct slot *s))
{
	uint64_t end = now_ns() + PATIENCE_NS;

	for (hear(0); !is(s); hear(5))
		if (now_ns() > end)
			return false;
	return true;
}

/* A round is over when its holding is in use, or idle once more after that. */
static bool is_over(const struct slot *s)
{
	return s->state == GS_ACTIVE || (s->state == GS_IDLE && s->idle_ns > s->shared->begin);
}

static bool is_returning(const struct slot *s)
{
	return s->state == GS_RETURNING;
}

/* ---- Rounds. */
static void end_return(struct slot *s)
{
	if (!wait_state(s, is_returning)) {
		violation(s, "a touch over a borrower is no return, state %s",
			  gs_kname_state(s->state));
		return;
	}
	sums.held++;
	/* Held to the end: ours, for nobody else releases it. */
	if (touch_is_over(s))
		violation(s, "a touch was let through to a card that a borrower has");
	if (gs_klink_release(kmod, s->name, s->seq, &err) < 0)
		violation(s, "RELEASE: %s", err.msg);
}

static void take_borrower(struct slot *s)
{
	const char *lenders[] = { s->name };
	struct gs_kwatch_set set = { .name = s->borrower,
				     .role = GS_BORROWER,
				     .who = s->who,
				     .holdings = lenders,
				     .n_holdings = 1 };
	int r = gs_klink_watch_set(kmod, &set, &err);

	if (r < 0) {
		if (r != -EBUSY)
			violation(s, "a borrower: %s", err.msg);
		return;
	}
	sums.taken++;
	end_return(s);
	(void)settle(s);
	if (gs_klink_watch_del(kmod, s->borrower, &err) < 0)
		violation(s, "the borrower's end: %s", err.msg);
}

static void check_round(struct slot *s, bool lent)
{
	if (!wait_state(s, is_over)) {
		violation(s, "%s over a touch", gs_kname_state(s->state));
		return;
	}
	if (lent != (s->lent_ns != 0))
		violation(s, "LEND %s, but the holding was%s lent", lent ? "succeeded" : "failed",
			  s->lent_ns ? "" : " not");
	if (lent && s->shared->end < s->lent_ns)
		violation(s, "lent after a touch that was over");
	if (s->lending_ended != (s->lending_ns && !s->lent_ns))
		violation(s, "LENDING %s by a touch", s->lending_ended ? "ended" : "did not end");
	if (lent)
		sums.after++;
	else if (s->lending_ns)
		sums.inside++;
	else
		sums.before++;
}

/*
 * When the touch comes after we go to LEND: a guess that follows what came of it, so that it is now
 * before, now inside, now after that, and a part that is by chance.
 */
static uint64_t guess_ns = 200000, chance_ns = 200000;

static void guess_better(bool lent, uint64_t took)
{
	if (lent) {
		guess_ns -= guess_ns / 8;
		chance_ns = (7 * chance_ns + took) / 8;
	} else {
		guess_ns += guess_ns / 8 + 1000;
	}
	if (guess_ns > 50000000)
		guess_ns = 50000000;
}

/*
 * LEND. An agent that was silent for three seconds is none: so the machine stood still, or this
 * program did.
 */
static int lend(struct slot *s, uint64_t seq)
{
	int r = gs_klink_lend(kmod, s->name, seq, &err);

	for (int again = 0; r == -ENOTCONN && again < 3; again++) {
		sums.stalls++;
		if (gs_klink_heartbeat(kmod, &err) < 0)
			give_up("heartbeat");
		r = gs_klink_lend(kmod, s->name, seq, &err);
	}
	return r;
}

static void play_round(struct slot *s)
{
	enum touch kind = draw(8) ? TOUCH_IOCTL : 1 + draw(TOUCHES - 1);
	uint64_t begin = now_ns(), seq = s->seq;
	int r;

	if (s->lends_on && kind == TOUCH_MMAP)
		kind = TOUCH_IOCTL; /* which is not held */
	sums.rounds++;
	s->lending_ns = s->lent_ns = 0;
	s->lending_ended = false;
	send_touch(s, kind, begin + guess_ns + draw(2 * chance_ns) - chance_ns);
	r = lend(s, seq);
	guess_better(r == 0, now_ns() - begin);
	if (r < 0 && r != -EAGAIN)
		violation(s, "LEND: %s", err.msg);
	if (r == 0 && s->lends_on)
		take_borrower(s);
	if (!settle(s))
		return;
	touch_is_looked_at(s);
	check_round(s, r == 0);
}

/* A touch at about the moment of the next IDLE, as far as can be guessed. */
static uint64_t probe_ns = 10000000;

static void send_probe(struct slot *s)
{
	s->probing = true;
	sums.probes++;
	send_touch(s, TOUCH_IOCTL, s->state_ns + probe_ns / 2 + draw(probe_ns));
}

/*
 * If it came after IDLE, that is over. Else it was counted before, and nothing has changed since: a
 * LEND must succeed. A touch then ends that.
 */
static void check_probe(struct slot *s)
{
	s->probing = false;
	touch_is_looked_at(s);
	hear_all();
	if (s->state == GS_ACTIVE && s->state_ns > s->shared->begin) {
		sums.woke++;
		probe_ns -= probe_ns / 16;
	} else if (probe_ns < 100000000) {
		probe_ns += probe_ns / 32;
	}
	if (s->state != GS_IDLE)
		return;
	if (s->shared->begin > s->idle_ns) {
		violation(s, "idle after a touch");
		return;
	}
	sums.silent++;
	if (lend(s, s->seq) < 0) {
		violation(s, "idle over a touch, which LEND alone has seen: %s", err.msg);
		return;
	}
	send_touch(s, TOUCH_IOCTL, 1);
	if (!settle(s))
		return;
	touch_is_looked_at(s);
	if (!wait_state(s, is_over))
		violation(s, "%s over a touch", gs_kname_state(s->state));
}

/* One holding that can be lent now, or NULL. */
static struct slot *next_slot(void)
{
	static size_t last;

	for (size_t i = 0; i < SLOTS; i++) {
		struct slot *s = &slots[last++ % SLOTS];

		if (s->probing) {
			if (touch_is_over(s))
				check_probe(s);
			continue;
		}
		if (s->state == GS_IDLE)
			return s;
	}
	return NULL;
}

static void race(uint64_t rounds, uint64_t seconds)
{
	uint64_t end = now_ns() + seconds * 1000000000, last = now_ns();

	while (sums.rounds < rounds && sums.violations < VIOLATIONS &&
	       (!seconds || now_ns() < end)) {
		struct slot *s = next_slot();

		hear(s ? 0 : 1);
		if (!s && now_ns() - last > PATIENCE_NS) {
			violation(&slots[0], "no holding becomes idle");
			return;
		}
		if (!s || s->state != GS_IDLE)
			continue;
		last = now_ns();
		play_round(s);
		if (s->state == GS_ACTIVE && draw(8) == 0)
			send_probe(s);
	}
}

/* ---- Before and after. */
static void make_slot(struct slot *s, size_t i, uint32_t dev)
{
	struct clone_args args = { .flags = CLONE_NEWPID, .exit_signal = SIGCHLD };
	struct gs_kholding_set holding = { .name = s->name,
					   .devs = &dev,
					   .n_devs = 1,
					   .lend_after_ms = LEND_AFTER_MS,
					   .hold_max_ms = 60000,
					   .settle_ms = GS_KTIME_NONE };
	const char *names[] = { s->name };
	struct gs_kwatch_set member = {
		.name = s->member, .role = GS_MEMBER, .holdings = names, .n_holdings = 1
	};
	cleanup_free char *cgroup = gs_asprintf("/sys/fs/cgroup/lendrace-%zu", i);

	(void)snprintf(s->name, sizeof(s->name), "h%zu", i);
	(void)snprintf(s->member, sizeof(s->member), "m%zu", i);
	(void)snprintf(s->borrower, sizeof(s->borrower), "b%zu", i);
	s->lends_on = i % 3 == 0;
	s->shared = mmap(NULL, 4096, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
	if (s->shared == MAP_FAILED)
		give_up("memory");
	s->pid = (pid_t)syscall(SYS_clone3, &args, sizeof(args));
	if (s->pid == 0)
		member_run(s->shared);
	if (s->pid < 0)
		give_up("clone");
	while (!s->shared->done)
		futex_wait(&s->shared->done, 0, 10);
	s->shared->done = 0;
	if (s->shared->err)
		give_up(NODE);
	(void)mkdir(cgroup, 0755);
	if (gs_kwho_cgroup(cgroup, &s->who, &err) < 0 ||
	    gs_kwho_pid(s->pid, &member.who, &err) < 0 ||
	    gs_klink_holding_set(kmod, &holding, &err) < 0 ||
	    gs_klink_watch_set(kmod, &member, &err) < 0)
		give_up(s->name);
}

static void end_slot(struct slot *s, size_t i)
{
	cleanup_free char *cgroup = gs_asprintf("/sys/fs/cgroup/lendrace-%zu", i);
	uint64_t end = now_ns() + PATIENCE_NS;

	(void)kill(s->pid, SIGKILL);
	(void)waitpid(s->pid, NULL, 0);
	(void)rmdir(cgroup);
	(void)gs_klink_watch_del(kmod, s->member, &err);
	while (gs_klink_holding_del(kmod, s->name, &err) < 0 && now_ns() < end)
		hear(5);
}

/* How many calls the card has served, by its own account. */
static uint64_t served(void)
{
	FILE *f = fopen("/sys/kernel/debug/fakegpu/stats", "re");
	unsigned long long n = 0;
	char line[1024], *at;

	if (!f)
		give_up("the card's sums");
	while (fgets(line, sizeof(line), f))
		if (strncmp(line, "dev=fakegpu0 ", 13) == 0 && (at = strstr(line, " WORK_ECHO=")))
			n = strtoull(at + 11, NULL, 10);
	(void)fclose(f);
	return n;
}

/* What the module has counted of the members: every touch, some twice (those made anew). */
static uint64_t counted(void)
{
	cleanup_kstate struct gs_kstate state = { 0 };
	uint64_t n = 0;

	if (gs_klink_dump(kmod, &state, &err) < 0)
		give_up("dump");
	for (size_t i = 0; i < state.n_watches; i++)
		for (size_t j = 0; j < state.watches[i].n_counts; j++)
			n += state.watches[i].counts[j].touches;
	return n;
}

int main(int argc, char **argv)
{
	uint64_t rounds = argc > 1 ? strtoull(argv[1], NULL, 0) : 0, begin, took;
	uint64_t seconds = argc > 2 ? strtoull(argv[2], NULL, 0) : 0, calls, touches;
	struct stat st;

	if (!rounds) {
		(void)fprintf(stderr, "usage: lendrace ROUNDS [SECONDS] [SEED]\n");
		return 2;
	}
	seed = argc > 3 ? strtoull(argv[3], NULL, 0) : 0;
	seed = seed ? seed : now_ns();
	if (stat(NODE, &st) < 0)
		give_up(NODE);
	if (gs_klink_open(&kmod, &err) < 0 || gs_kevents_open(16 << 20, &listener, &err) < 0)
		give_up("the module");
	calls = served();
	for (size_t i = 0; i < SLOTS; i++)
		make_slot(&slots[i], i, gs_kdev_of(st.st_rdev));
	begin = now_ns();
	race(rounds, seconds);
	took = (now_ns() - begin) / 1000000 + 1;

	for (size_t i = 0; i < SLOTS; i++)
		if (!touch_is_over(&slots[i]))
			(void)settle(&slots[i]);
	calls = served() - calls;
	touches = counted();
	if (calls != sums.ioctls)
		violation(&slots[0], "the card has served %llu calls of %llu",
			  (unsigned long long)calls, (unsigned long long)sums.ioctls);
	if (touches < sums.touches)
		violation(&slots[0], "the module has counted %llu touches of %llu",
			  (unsigned long long)touches, (unsigned long long)sums.touches);
	for (size_t i = 0; i < SLOTS; i++)
		end_slot(&slots[i], i);
	printf("rounds=%llu before=%llu inside=%llu after=%llu taken=%llu held=%llu probes=%llu "
	       "woke=%llu silent=%llu touches=%llu counted=%llu stalls=%llu violations=%llu "
	       "ms=%llu rate=%llu\n",
	       (unsigned long long)sums.rounds, (unsigned long long)sums.before,
	       (unsigned long long)sums.inside, (unsigned long long)sums.after,
	       (unsigned long long)sums.taken, (unsigned long long)sums.held,
	       (unsigned long long)sums.probes, (unsigned long long)sums.woke,
	       (unsigned long long)sums.silent, (unsigned long long)sums.touches,
	       (unsigned long long)touches, (unsigned long long)sums.stalls,
	       (unsigned long long)sums.violations, (unsigned long long)took,
	       (unsigned long long)(sums.rounds * 1000 / took));
	return sums.violations > 0;
}
