// SPDX-License-Identifier: Apache-2.0
/*
 * Says nonsense to the kernel module, as fast as it can: proper requests, requests with faults, and
 * random bytes, by several threads, while others call a hooked driver from containers that these
 * requests watch, lend, revoke and kill, and a listener and a reader of dumps look on.
 *
 *	nlfuzz [requests=N] [seed=N] [hooks=N] NODE...
 *
 * hooks: how often a node is really hooked or unhooked, which takes a second each.
 * In the end everything must be takable away, every caller must go on, no call may have seen EINTR
 * or an error that is not its own, and every refusal must have had a message.
 */
#include <fcntl.h>
#include <pthread.h>
#include <sched.h>
#include <signal.h>
#include <stdatomic.h>
#include <sys/ioctl.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <time.h>

#include "common/cleanup.h"
#include "common/kevent.h"
#include "common/proc.h"
#include "tests/fakegpu/fakegpu.h"
#include "tests/vm/programs/nl.h"

#define THREADS 2
#define CALLERS 4
#define MAX_NODES 8
#define NAMES 12

static uint64_t requests = 5000, seed = 1, hooks = 2;
static const char *nodes[MAX_NODES];
static int fds[MAX_NODES];
static uint32_t devs[MAX_NODES];
static size_t n_nodes;

static void sleep_ms(long ms)
{
	struct timespec t = { .tv_sec = ms / 1000, .tv_nsec = ms % 1000 * 1000000 };

	(void)nanosleep(&t, NULL);
}

/* ---- Callers: processes in containers of their own, begun anew when they are killed. */

static struct shared {
	struct {
		_Atomic int pid;
		_Atomic uint64_t start_time;
		_Atomic uint64_t calls; /* by all that stood here */
	} callers[CALLERS];
	_Atomic uint64_t refused; /* -EIO: it was a borrower */
	_Atomic uint64_t interrupted, odd; /* what no call may see */
	_Atomic int odd_errno;
	_Atomic uint64_t deaths;
	_Atomic bool stop;
} * shared;

static void outcome(int r)
{
	if (r >= 0)
		return;
	if (errno == EIO) {
		atomic_fetch_add(&shared->refused, 1);
		sleep_ms(2);
	} else if (errno == EINTR) {
		atomic_fetch_add(&shared->interrupted, 1);
	} else {
		atomic_store(&shared->odd_errno, errno);
		atomic_fetch_add(&shared->odd, 1);
	}
}

static void __attribute__((noreturn)) call(unsigned int me)
{
	struct fakegpu_ping ping;

	for (unsigned int i = 0;; i++) {
		int fd = open(nodes[i % n_nodes], O_RDWR | O_CLOEXEC);

		outcome(fd);
		for (unsigned int j = 0; fd >= 0 && j < 8; j++)
			outcome(ioctl(fd, FAKEGPU_PING, &ping));
		if (fd >= 0)
			(void)close(fd);
		atomic_fetch_add(&shared->callers[me].calls, 1);
		sleep_ms((long)(i % 16));
	}
}

/* Keeps one caller alive. */
static void keep(unsigned int me)
{
	while (!atomic_load(&shared->stop)) {
		pid_t pid = (pid_t)syscall(SYS_clone, CLONE_NEWPID | SIGCHLD, 0, 0, 0, 0);
		struct gs_kwho who;
		int status;

		if (pid < 0)
			nl_die("a container: %s", strerror(errno));
		if (pid == 0)
			call(me);
		if (gs_kwho_pid(pid, &who, NULL) == 0) {
			atomic_store(&shared->callers[me].pid, pid);
			atomic_store(&shared->callers[me].start_time, who.start_time);
		}
		(void)waitpid(pid, &status, 0);
		if (!WIFSIGNALED(status) || WTERMSIG(status) != SIGKILL)
			atomic_fetch_add(&shared->odd, 1);
		atomic_fetch_add(&shared->deaths, 1);
	}
}

/* ---- Chance. */

static _Thread_local uint64_t chance;

static uint32_t any(void)
{
	chance ^= chance << 13;
	chance ^= chance >> 7;
	chance ^= chance << 17;
	return (uint32_t)(chance >> 16);
}

static uint32_t below(uint32_t n)
{
	return any() % n;
}

/* ---- Proper requests. What they name is mostly there. */

static uint16_t family;
static _Atomic uint64_t seqs[NAMES]; /* of holdings, as of the last dump */

static const char *name_of(uint32_t i)
{
	static const char *const names[NAMES] = { "f0", "f1", "f2", "f3", "f4",	 "f5",
						  "f6", "f7", "f8", "f9", "f10", "f11" };

	return names[i % NAMES];
}

static uint64_t cgroup_of(uint32_t i)
{
	return 1000000 + i % 6;
}

static void make_watch(struct nl_msg *msg)
{
	uint32_t who = below(CALLERS + 3), role = below(8);
	const char *list[3] = { name_of(any()), name_of(any()), name_of(any()) };

	role = role < 5 ? GS_MEMBER : role < 7 ? GS_BORROWER : GS_EXEMPT;
	nl_put_u8(msg, GS_A_ROLE, (uint8_t)role);
	if (who < CALLERS) {
		nl_put_str(msg, GS_A_NAME, name_of(who));
		nl_put_u32(msg, GS_A_PID, (uint32_t)atomic_load(&shared->callers[who].pid));
		nl_put_u64(msg, GS_A_START_TIME, atomic_load(&shared->callers[who].start_time));
	} else {
		nl_put_str(msg, GS_A_NAME, name_of(any()));
		nl_put_u64(msg, GS_A_CGROUP_ID, cgroup_of(any()));
		if (below(8) == 0)
			nl_put(msg, GS_A_CGROUP_V1, NULL, 0);
	}
	if (role != GS_EXEMPT)
		nl_put_names(msg, list, 1 + below(3));
	if (role == GS_BORROWER && below(2))
		nl_put(msg, GS_A_KILL_ON_RETURN, NULL, 0);
}

static void make_holding(struct nl_msg *msg)
{
	/* Of each name always the same nodes, or it would be refused. */
	uint32_t i = below(NAMES), n = 1 + i % 2;
	uint32_t list[2] = { devs[i % n_nodes], devs[(i + 1) % n_nodes] };

	nl_put_str(msg, GS_A_NAME, name_of(i));
	nl_put(msg, GS_A_DEVS, list, n * sizeof(*list));
	if (below(8))
		nl_put_u32(msg, GS_A_LEND_AFTER_MS, 1 + below(20));
	if (below(8))
		nl_put_u32(msg, GS_A_HOLD_MAX_MS, 1 + below(200));
	if (below(4))
		nl_put_u32(msg, GS_A_SETTLE_MS, below(20));
}

static void make(struct nl_msg *msg, uint8_t cmd)
{
	uint32_t i = below(NAMES), passive[3] = { any(), any(), FAKEGPU_VERSION };

	nl_start(msg, family, cmd);
	switch (cmd) {
	case GS_CMD_HOOK_ADD:
		/* A descriptor that is none, for what is one takes a grace period. */
		nl_put_u32(msg, GS_A_FD, below(64) ? any() | 0x10000 : (uint32_t)fds[0]);
		nl_put_str(msg, GS_A_DRIVER, "fuzz");
		nl_put(msg, GS_A_PASSIVE, passive, below(4) * 4);
		if (below(2))
			nl_put(msg, GS_A_REVOCABLE, NULL, 0);
		break;
	case GS_CMD_HOOK_DEL:
		nl_put_u32(msg, GS_A_DEV, any());
		break;
	case GS_CMD_HOLDING_SET:
		make_holding(msg);
		break;
	case GS_CMD_WATCH_SET:
		make_watch(msg);
		break;
	case GS_CMD_LEND:
	case GS_CMD_SAMPLE:
	case GS_CMD_RELEASE:
		nl_put_str(msg, GS_A_NAME, name_of(i));
		nl_put_u64(msg, GS_A_SEQ, atomic_load(&seqs[i]));
		break;
	case GS_CMD_HOLDING_DEL:
	case GS_CMD_WATCH_DEL:
	case GS_CMD_WITHDRAW:
		nl_put_str(msg, GS_A_NAME, name_of(i));
		break;
	case GS_CMD_DUMP:
		nl_hdr(msg)->nlmsg_flags |= NLM_F_DUMP;
		break;
	default:
		break;
	}
}

/* Commands as often as they stand here. */
static const uint8_t mix[] = {
	GS_CMD_STATUS,	    GS_CMD_HEARTBEAT,	GS_CMD_HEARTBEAT,   GS_CMD_HOOK_ADD,
	GS_CMD_HOOK_DEL,    GS_CMD_HOLDING_SET, GS_CMD_HOLDING_SET, GS_CMD_HOLDING_SET,
	GS_CMD_HOLDING_SET, GS_CMD_HOLDING_DEL, GS_CMD_WATCH_SET,   GS_CMD_WATCH_SET,
	GS_CMD_WATCH_SET,   GS_CMD_WATCH_SET,	GS_CMD_WATCH_SET,   GS_CMD_WATCH_DEL,
	GS_CMD_LEND,	    GS_CMD_LEND,	GS_CMD_WITHDRAW,    GS_CMD_WITHDRAW,
	GS_CMD_RELEASE,	    GS_CMD_RELEASE,	GS_CMD_DUMP,	    GS_CMD_SAMPLE,
};

/* ---- Faults. */

/* One of the message's attributes, at the top or in a nest; NULL where there is none. */
static struct nlattr *some_attr(struct nl_msg *msg)
{
	size_t at = NLMSG_HDRLEN + GENL_HDRLEN, offsets[64], n = 0;

	while (at + NLA_HDRLEN <= msg->len && n < 64) {
		const struct nlattr *attr = (const void *)(msg->buf + at);
		size_t step = NLA_ALIGN((size_t)attr->nla_len);

		offsets[n++] = at;
		if ((attr->nla_type & NLA_F_NESTED) && below(2))
			step = NLA_HDRLEN;
		if (step < NLA_HDRLEN)
			break;
		at += step;
	}
	return n ? (void *)(msg->buf + offsets[below((uint32_t)n)]) : NULL;
}

static void random_bytes(char *at, size_t n)
{
	for (size_t i = 0; i < n; i++)
		at[i] = (char)any();
}

/* Any attribute with any content. */
static void put_any(struct nl_msg *msg)
{
	uint16_t type = (uint16_t)(below(4) ? below(GS_A_MAX + 4) : any());
	size_t len = below(8) ? below(24) : below(600);
	char data[600];

	random_bytes(data, len);
	nl_put(msg, type, data, len);
}

static void spoil_attr(struct nl_msg *msg, struct nlattr *attr)
{
	char copy[4096];
	size_t len = attr->nla_len, at = (size_t)((char *)attr - msg->buf);

	switch (below(6)) {
	case 0:
		attr->nla_len = (uint16_t)(below(2) ? any() : len + below(9) - 4);
		break;
	case 1:
		attr->nla_type ^= (uint16_t)(1U << below(16));
		break;
	case 2:
		attr->nla_type = (uint16_t)below(GS_A_MAX + 2);
		break;
	case 3: /* twice */
		if (len >= NLA_HDRLEN && len <= sizeof(copy) && at + len <= msg->len) {
			memcpy(copy, (char *)attr + NLA_HDRLEN, len - NLA_HDRLEN);
			nl_put(msg, attr->nla_type, copy, len - NLA_HDRLEN);
		}
		break;
	case 4: /* away */
		len = NLA_ALIGN(len);
		if (len >= NLA_HDRLEN && at + len <= msg->len) {
			memmove(attr, msg->buf + at + len, msg->len - at - len);
			msg->len -= len;
		}
		break;
	default: /* other content */
		if (len > NLA_HDRLEN && at + len <= msg->len)
			random_bytes(
				(char *)attr + NLA_HDRLEN + below((uint32_t)(len - NLA_HDRLEN)), 1);
	}
}

static void spoil(struct nl_msg *msg)
{
	size_t head = NLMSG_HDRLEN + GENL_HDRLEN;
	struct nlattr *attr = some_attr(msg);

	switch (below(12)) {
	case 0:
		if (msg->len > head)
			msg->buf[head + below((uint32_t)(msg->len - head))] ^=
				(char)(1U << below(8));
		break;
	case 1:
		if (msg->len > NLMSG_HDRLEN)
			msg->len = NLMSG_HDRLEN + below((uint32_t)(msg->len - NLMSG_HDRLEN));
		break;
	case 2:
		put_any(msg);
		break;
	case 3:
		nl_genl(msg)->cmd = (uint8_t)(below(2) ? any() : below(GS_CMD_MAX + 2));
		break;
	case 4:
		random_bytes(msg->buf + NLMSG_HDRLEN, GENL_HDRLEN);
		break;
	case 5:
		nl_hdr(msg)->nlmsg_flags |= (uint16_t)(1U << below(16));
		break;
	default:
		if (attr)
			spoil_attr(msg, attr);
	}
}

/* ---- Sending, in bunches, and reading what comes back. */

static _Atomic uint64_t sent, taken, refusals, silent;
static _Atomic int silent_code;

#define RING 4096

struct fuzzer {
	struct nl nl;
	struct nl_msg bunch;
	bool may_be_silent[RING]; /* by sequence number: what generic netlink itself refuses */
};

/* Does the kernel know what it is, so that a refusal has words? */
static bool known(struct nl_msg *msg)
{
	uint8_t cmd = nl_genl(msg)->cmd;
	bool dump = (nl_hdr(msg)->nlmsg_flags & NLM_F_DUMP) != 0;

	if (msg->len < NLMSG_HDRLEN + GENL_HDRLEN)
		return false;
	return dump ? cmd == GS_CMD_DUMP : cmd >= GS_CMD_STATUS && cmd <= GS_CMD_RELEASE;
}

static void read_error(struct fuzzer *f, const struct nlmsghdr *nlh)
{
	struct nl_said said = { 0 };

	(void)nl_last(nlh, &said);
	if (said.code == 0) {
		atomic_fetch_add(&taken, 1);
		return;
	}
	atomic_fetch_add(&refusals, 1);
	if (*said.text || f->may_be_silent[nlh->nlmsg_seq % RING] || said.code == ENOMEM ||
	    said.code == EBUSY)
		return;
	atomic_store(&silent_code, said.code);
	atomic_fetch_add(&silent, 1);
}

static void drain(struct fuzzer *f)
{
	static _Thread_local char buf[NL_MAX] __attribute__((aligned(4)));
	ssize_t n;

	while ((n = recv(f->nl.fd, buf, sizeof(buf), MSG_DONTWAIT)) >= 0 || errno == ENOBUFS) {
		struct nlmsghdr *nlh = (void *)buf;

		for (int rest = n < 0 ? 0 : (int)n; NLMSG_OK(nlh, (unsigned int)rest);
		     nlh = NLMSG_NEXT(nlh, rest))
			if (nlh->nlmsg_type == NLMSG_ERROR)
				read_error(f, nlh);
	}
}

static void flush(struct fuzzer *f)
{
	struct sockaddr_nl kernel = { .nl_family = AF_NETLINK };

	if (f->bunch.len)
		(void)sendto(f->nl.fd, f->bunch.buf, f->bunch.len, 0, (void *)&kernel,
			     sizeof(kernel));
	f->bunch.len = 0;
	drain(f);
}

static void add(struct fuzzer *f, struct nl_msg *msg)
{
	struct nlmsghdr *nlh = nl_hdr(msg);

	if (f->bunch.len + NLMSG_ALIGN(msg->len) > 16000)
		flush(f);
	nlh->nlmsg_seq = ++f->nl.seq;
	/* Mostly the length that it has. */
	nlh->nlmsg_len = (uint32_t)(below(64) ? msg->len : any());
	f->may_be_silent[nlh->nlmsg_seq % RING] = !known(msg);
	memcpy(f->bunch.buf + f->bunch.len, msg->buf, msg->len);
	f->bunch.len += NLMSG_ALIGN(msg->len);
	atomic_fetch_add(&sent, 1);
	if (below(8) == 0)
		flush(f);
}

static void one(struct fuzzer *f)
{
	struct nl_msg msg;

	if (below(16) == 0) {
		nl_start(&msg, family, (uint8_t)below(GS_CMD_MAX + 2));
		msg.len += below(400);
		random_bytes(msg.buf + NLMSG_HDRLEN, msg.len - NLMSG_HDRLEN);
	} else {
		make(&msg, mix[below(sizeof(mix))]);
		for (uint32_t n = below(4) ? below(4) : 0; n > 0; n--)
			spoil(&msg);
	}
	add(f, &msg);
}

/* ---- Something sensible meanwhile, so that lending, borrowing and returning really happen. */

/* A caller borrows what is lent, if it can. */
static void borrow(struct gs_klink *link, const char *lender)
{
	uint32_t who = below(CALLERS);
	const struct gs_kwatch_set set = {
		.name = name_of(who),
		.role = GS_BORROWER,
		.who = { .pid = atomic_load(&shared->callers[who].pid),
			 .start_time = atomic_load(&shared->callers[who].start_time) },
		.holdings = &lender,
		.n_holdings = 1,
		.kill_on_return = below(2),
	};

	(void)gs_klink_watch_del(link, set.name, NULL);
	(void)gs_klink_watch_set(link, &set, NULL);
}

static void drive_one(struct gs_klink *link, const struct gs_kholding *h, size_t n)
{
	for (uint32_t i = 0; i < NAMES; i++)
		if (strcmp(h->name, name_of(i)) == 0)
			atomic_store(&seqs[i], h->seq);
	if (h->state == GS_IDLE)
		(void)gs_klink_lend(link, h->name, h->seq, NULL);
	else if (h->state == GS_LENT && below(2))
		borrow(link, h->name);
	else if (h->state == GS_LENT && below(3) == 0)
		(void)gs_klink_withdraw(link, h->name, NULL);
	else if (h->state == GS_RETURNING && below(2))
		(void)gs_klink_release(link, h->name, h->seq, NULL);
	else if (n > 60 && h->state < GS_LENT)
		(void)gs_klink_holding_del(link, h->name, NULL);
}

static void *drive(void *data)
{
	struct gs_klink *link;
	struct gs_err err;

	chance = seed + 77;
	if (gs_klink_open(&link, &err) < 0)
		nl_die("%s", err.msg);
	while (atomic_load(&sent) < requests) {
		cleanup_kstate struct gs_kstate state = { 0 };
		int r = gs_klink_dump(link, &state, &err);

		if (r < 0 && r != -EAGAIN)
			nl_die("dump: %s", err.msg);
		(void)gs_klink_heartbeat(link, NULL);
		for (size_t i = 0; i < state.n_holdings; i++)
			drive_one(link, &state.holdings[i], state.n_holdings);
		sleep_ms(2);
	}
	gs_klink_close(link);
	return data;
}

static void *fuzz(void *data)
{
	struct fuzzer *f = gs_calloc(1, sizeof(*f));

	chance = seed * 0x9e3779b97f4a7c15U + (uint64_t)(uintptr_t)data + 1;
	nl_open(&f->nl);
	while (atomic_load(&sent) < requests)
		one(f);
	flush(f);
	(void)close(f->nl.fd);
	free(f);
	return NULL;
}

/* ---- Others who look on. */

static _Atomic bool looking = true;
static _Atomic uint64_t events_seen, dumps_seen;

static void *look(void *data)
{
	struct gs_kevents *events;
	struct gs_klink *link;
	struct gs_err err;

	if (gs_kevents_open(65536, &events, &err) < 0 || gs_klink_open(&link, &err) < 0)
		nl_die("%s", err.msg);
	while (atomic_load(&looking)) {
		enum gs_kevent_what what;
		struct gs_kevent e;
		int r = gs_kevent_next(events, 100, &what, &e, &err);

		if (r < 0)
			nl_die("events: %s", err.msg);
		events_seen += what == GS_KEVENT_GOT;
		if (what == GS_KEVENT_LOST || events_seen % 64 == 0) {
			cleanup_kstate struct gs_kstate state = { 0 };

			r = gs_klink_dump(link, &state, &err);
			if (r < 0 && r != -EAGAIN)
				nl_die("dump: %s", err.msg);
			dumps_seen++;
		}
	}
	gs_kevents_close(events);
	gs_klink_close(link);
	return data;
}

/* Hooks and unhooks the last node, evenly over the whole time. */
static void *hook(void *data)
{
	struct gs_klink *link;
	struct gs_err err;
	uint32_t dev = devs[n_nodes - 1];

	if (gs_klink_open(&link, &err) < 0)
		nl_die("%s", err.msg);
	for (uint64_t n = 1; n <= hooks; n++) {
		while (atomic_load(&sent) < n * requests / (hooks + 1))
			sleep_ms(20);
		if (gs_klink_hook_del(link, dev, &err) == -ENOENT)
			(void)gs_klink_hook_add(link, fds[n_nodes - 1], "fuzz", NULL, 0, false,
						NULL, NULL);
	}
	gs_klink_close(link);
	return data;
}

/* ---- The end. */

/* Takes away what there is, as far as that goes; how much is left. */
static size_t sweep(struct gs_klink *link)
{
	cleanup_kstate struct gs_kstate state = { 0 };
	struct gs_err err;

	if (gs_klink_dump(link, &state, &err) < 0)
		nl_die("dump: %s", err.msg);
	(void)gs_klink_heartbeat(link, NULL);
	for (size_t i = 0; i < state.n_holdings; i++) {
		const struct gs_kholding *h = &state.holdings[i];

		if (h->state == GS_LENT)
			(void)gs_klink_withdraw(link, h->name, NULL);
		if (h->state == GS_RETURNING)
			(void)gs_klink_release(link, h->name, h->seq, NULL);
		(void)gs_klink_holding_del(link, h->name, NULL);
	}
	for (size_t i = 0; i < state.n_watches; i++)
		(void)gs_klink_watch_del(link, state.watches[i].name, NULL);
	return state.n_holdings + state.n_watches;
}

static void sweep_all(void)
{
	size_t left = 1;
	struct gs_klink *link;
	struct gs_err err;
	char *text;

	if (gs_klink_open(&link, &err) < 0)
		nl_die("%s", err.msg);
	for (int tries = 0; tries < 200 && left; tries++) {
		left = sweep(link);
		if (left)
			sleep_ms(50);
	}
	text = nl_text(link);
	nl_result(left == 0, "all that was made can be taken away", "left:\n%s", text);
	free(text);
	gs_klink_close(link);
}

static void judge_callers(void)
{
	uint64_t before[CALLERS], all = 0, now;
	unsigned int alive = 0;

	for (unsigned int i = 0; i < CALLERS; i++)
		all += before[i] = atomic_load(&shared->callers[i].calls);
	for (int tries = 0; tries < 200 && alive < CALLERS; tries++) {
		sleep_ms(50);
		alive = 0;
		for (unsigned int i = 0; i < CALLERS; i++) {
			now = atomic_load(&shared->callers[i].calls);
			alive += now > before[i] + 2;
		}
	}
	printf("# callers: %llu rounds, %llu calls refused with EIO, %llu killed\n",
	       (unsigned long long)all, (unsigned long long)shared->refused,
	       (unsigned long long)shared->deaths);
	nl_result(alive == CALLERS, "every caller goes on in the end", "%u of %u", alive, CALLERS);
	nl_result(!shared->interrupted && !shared->odd,
		  "no call saw EINTR, or an error that is not the borrowers'",
		  "%llu saw EINTR, %llu others, as %s", (unsigned long long)shared->interrupted,
		  (unsigned long long)shared->odd, strerrorname_np(shared->odd_errno));
}

static void read_arguments(char **argv)
{
	struct stat st;

	for (; *argv; argv++) {
		if (sscanf(*argv, "requests=%ju", (uintmax_t *)&requests) == 1 ||
		    sscanf(*argv, "seed=%ju", (uintmax_t *)&seed) == 1 ||
		    sscanf(*argv, "hooks=%ju", (uintmax_t *)&hooks) == 1)
			continue;
		if (n_nodes == MAX_NODES || stat(*argv, &st) < 0)
			nl_die("%s: no argument", *argv);
		devs[n_nodes] = gs_kdev_of(st.st_rdev);
		nodes[n_nodes++] = *argv;
	}
	if (n_nodes < 2)
		nl_die("nlfuzz: at least two nodes");
}

int main(int argc, char **argv)
{
	pthread_t threads[THREADS], looker, hooker, driver;
	pid_t keepers[CALLERS];
	struct nl ids;

	(void)argc;
	read_arguments(argv + 1);
	nl_family(&ids);
	family = ids.family;
	shared = mmap(NULL, sizeof(*shared), PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1,
		      0);
	printf("# seed=%llu requests=%llu\n", (unsigned long long)seed,
	       (unsigned long long)requests);
	(void)fflush(stdout);
	for (unsigned int i = 0; i < CALLERS; i++) {
		keepers[i] = fork();
		if (keepers[i] == 0) {
			keep(i);
			_exit(0);
		}
	}
	for (size_t i = 0; i < n_nodes; i++)
		fds[i] = open(nodes[i], O_RDWR | O_CLOEXEC);
	(void)pthread_create(&looker, NULL, look, NULL);
	(void)pthread_create(&hooker, NULL, hook, NULL);
	(void)pthread_create(&driver, NULL, drive, NULL);
	for (uintptr_t i = 0; i < THREADS; i++)
		(void)pthread_create(&threads[i], NULL, fuzz, (void *)i);
	for (size_t i = 0; i < THREADS; i++)
		(void)pthread_join(threads[i], NULL);
	(void)pthread_join(hooker, NULL);
	(void)pthread_join(driver, NULL);
	sweep_all();
	atomic_store(&looking, false);
	(void)pthread_join(looker, NULL);
	judge_callers();
	atomic_store(&shared->stop, true);
	for (unsigned int i = 0; i < CALLERS; i++)
		(void)kill(atomic_load(&shared->callers[i].pid), SIGKILL);
	for (unsigned int i = 0; i < CALLERS; i++)
		(void)waitpid(keepers[i], NULL, 0);

	printf("# %llu requests, %llu taken of those that asked, %llu refused; %llu events, %llu "
	       "dumps\n",
	       (unsigned long long)sent, (unsigned long long)taken, (unsigned long long)refusals,
	       (unsigned long long)events_seen, (unsigned long long)dumps_seen);
	nl_result(silent == 0, "every refusal had a message", "%llu had none, as %s",
		  (unsigned long long)silent, strerrorname_np(silent_code));
	nl_result(taken > 0 && refusals > 0 && events_seen > 0 && dumps_seen > 0,
		  "some were taken, some refused, others looked on", "no");
	return nl_failures != 0;
}
