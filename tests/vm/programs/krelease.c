// SPDX-License-Identifier: Apache-2.0
/*
 * How long a user who comes back waits for a borrower to be gone, beside what killing the same
 * borrower takes by itself.
 *
 *	krelease NODE PAIRS [deaf]	NODE is hooked, and is no other holding's
 *	krelease kill PID		the bare end of a process that stands already
 *
 * bare: a process in a PID namespace of its own, with the node open, memory of the card and a
 * mapping of it, gets SIGKILL: until its last close, as the driver's log has it.
 * return: the same process is a borrower with kill_on_return, settle_ms is 0, there is no agent; a
 * member of the holding makes a call: until the driver's log has that call.
 * One after the other, in pairs whose order turns. deaf: the process ignores SIGTERM and handles
 * other signals.
 *
 * kill: SIGKILL to a process that has a node open, until its last close; prints "bare=N".
 *
 * Prints, in nanoseconds: "bare=MEDIAN bare_min=N bare_max=N return=MEDIAN return_min=N
 * return_max=N pairs=N". Status 1 where something else happened than was to be measured.
 */
#include <errno.h>
#include <fcntl.h>
#include <sched.h>
#include <signal.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include "common/cleanup.h"
#include "common/klink.h"
#include "tests/fakegpu/fakegpu.h"

#define LOG "/sys/kernel/debug/fakegpu/log"
#define CLEAR "/sys/kernel/debug/fakegpu/clear"
#define MAX_PAIRS 10000
#define HOLDING "krelease"
#define BORROWER "krelease-borrower"

static struct gs_err err;
static const char *node;
static bool deaf;
static volatile uint64_t *touched; /* shared: when the member made its call */

static void __attribute__((noreturn)) die(const char *what)
{
	(void)fprintf(stderr, "krelease: %s: %s\n", what, err.code ? err.msg : strerror(errno));
	exit(1);
}

static void check(int r, const char *what)
{
	if (r < 0)
		die(what);
}

static uint64_t now(void)
{
	struct timespec t;

	(void)clock_gettime(CLOCK_BOOTTIME, &t);
	return (uint64_t)t.tv_sec * 1000000000 + (uint64_t)t.tv_nsec;
}

/* ---- Processes. */

struct process {
	pid_t pid;
	int to, from; /* a byte tells it to go on, one tells that it did */
};

static void put(int fd)
{
	if (write(fd, "x", 1) != 1)
		die("write");
}

static void get(int fd)
{
	char c;

	if (read(fd, &c, 1) != 1)
		die("read");
}

/* Starts @run as the first process of a new PID namespace. */
static void start(struct process *ret, void (*run)(int from, int to))
{
	int to[2], from[2];

	if (pipe2(to, O_CLOEXEC) < 0 || pipe2(from, O_CLOEXEC) < 0)
		die("pipe");
	ret->pid = (pid_t)syscall(SYS_clone, CLONE_NEWPID | SIGCHLD, 0, 0, 0, 0);
	if (ret->pid < 0)
		die("clone");
	if (ret->pid == 0) {
		close(to[1]);
		close(from[0]);
		run(to[0], from[1]);
		_exit(1);
	}
	close(to[0]);
	close(from[1]);
	ret->to = to[1];
	ret->from = from[0];
}

static void go(const struct process *process)
{
	put(process->to);
	get(process->from);
}

static void reap(struct process *process)
{
	int status;

	if (waitpid(process->pid, &status, 0) < 0)
		die("waitpid");
	if (!WIFSIGNALED(status) || WTERMSIG(status) != SIGKILL)
		die("the borrower did not die of SIGKILL");
	close(process->to);
	close(process->from);
}

/* Makes a call each time that it is told to. */
static void member(int from, int to)
{
	int fd = open(node, O_RDWR | O_CLOEXEC);

	if (fd < 0)
		_exit(2);
	for (;;) {
		struct fakegpu_ping ping;

		get(from);
		*touched = now();
		if (ioctl(fd, FAKEGPU_PING, &ping) < 0)
			_exit(3);
		put(to);
	}
}

static void handler(int signal)
{
	(void)signal;
}

static void borrower(int from, int to)
{
	struct fakegpu_alloc alloc = { .bytes = 64 << 20 };
	int fd;

	if (deaf) {
		for (int i = 1; i < SIGRTMIN; i++)
			(void)signal(i, handler);
		(void)signal(SIGTERM, SIG_IGN);
	}
	get(from);
	fd = open(node, O_RDWR | O_CLOEXEC);
	if (fd < 0 || ioctl(fd, FAKEGPU_ALLOC, &alloc) < 0 ||
	    mmap(NULL, 4096, PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0) == MAP_FAILED)
		_exit(2);
	put(to);
	for (;;)
		pause();
}

/* ---- The driver's log. */

static void clear_log(void)
{
	int fd = open(CLEAR, O_WRONLY | O_CLOEXEC);

	if (fd < 0)
		die(CLEAR);
	put(fd);
	close(fd);
}

/* When the last record of that kind (and name) of a process was made; 0: there is none. */
static uint64_t logged(const char *kind, const char *name, pid_t pid)
{
	FILE *f = fopen(LOG, "re");
	uint64_t found = 0;
	char line[512];

	if (!f)
		die(LOG);
	while (fgets(line, sizeof(line), f)) {
		unsigned long long ns;
		char k[32], n[32];
		int tgid;

		if (sscanf(line, "serial=%*u ns=%llu kind=%31s name=%31s dev=%*s tgid=%d", &ns, k,
			   n, &tgid) == 4 &&
		    tgid == pid && strcmp(k, kind) == 0 && strcmp(n, name) == 0)
			found = ns;
	}
	(void)fclose(f);
	return found;
}

/* ---- The two ways. */

static uint64_t killed(pid_t pid)
{
	struct timespec t = { .tv_nsec = 1000000 };
	uint64_t begin, end = 0;

	clear_log();
	begin = now();
	if (kill(pid, SIGKILL) < 0)
		die("kill");
	for (int i = 0; i < 10000 && end == 0; i++) {
		(void)nanosleep(&t, NULL);
		end = logged("release", "-", pid);
	}
	if (end <= begin)
		die("no last close in the log");
	return end - begin;
}

static uint64_t bare(void)
{
	struct process b;
	uint64_t begin, end;

	start(&b, borrower);
	go(&b);
	clear_log();
	begin = now();
	if (kill(b.pid, SIGKILL) < 0)
		die("kill");
	reap(&b);
	end = logged("release", "-", b.pid);
	if (end <= begin)
		die("no last close in the log");
	return end - begin;
}

/* Waits until the holding is idle, and returns the number that LEND asks for. */
static uint64_t wait_idle(struct gs_klink *link)
{
	struct timespec t = { .tv_nsec = 2000000 };

	for (int i = 0; i < 5000; i++) {
		cleanup_kstate struct gs_kstate state = { 0 };
		const struct gs_kholding *holding;

		check(gs_klink_dump(link, &state, &err), "dump");
		holding = gs_kstate_holding(&state, HOLDING);
		if (holding && holding->state == GS_IDLE)
			return holding->seq;
		(void)nanosleep(&t, NULL);
	}
	die("the holding does not become idle");
}

static unsigned int state_of(struct gs_klink *link)
{
	cleanup_kstate struct gs_kstate state = { 0 };
	const struct gs_kholding *holding;

	check(gs_klink_dump(link, &state, &err), "dump");
	holding = gs_kstate_holding(&state, HOLDING);
	return holding ? holding->state : GS_UNKNOWN;
}

static uint64_t returned(struct gs_klink *link, const struct process *m)
{
	const char *const holdings[] = { HOLDING };
	struct gs_kwatch_set set = { .name = BORROWER,
				     .role = GS_BORROWER,
				     .holdings = holdings,
				     .n_holdings = 1,
				     .kill_on_return = true };
	struct gs_klink *agent = NULL;
	struct gs_kstatus status;
	uint64_t closed, served;
	struct process b;

	/* First, or it had the agent's socket too, which would live as long as it. */
	start(&b, borrower);
	check(gs_klink_open(&agent, &err), "open");
	check(gs_klink_heartbeat(agent, &err), "heartbeat");
	check(gs_klink_lend(link, HOLDING, wait_idle(link), &err), "lend");
	check(gs_kwho_pid(b.pid, &set.who, &err), "who");
	check(gs_klink_watch_set(link, &set, &err), "the borrower's watch");
	go(&b);
	if (state_of(link) != GS_LENT)
		die("the holding is not lent");
	gs_klink_close(agent);
	check(gs_klink_status(link, &status, &err), "status");
	if (status.agent_alive)
		die("the agent is alive");
	clear_log();

	go(m);

	closed = logged("release", "-", b.pid);
	served = logged("ioctl", "PING", m->pid);
	if (!closed || served <= closed) {
		(void)kill(b.pid, SIGKILL);
		die("the member's call was not held until the borrower's last close");
	}
	reap(&b);
	check(gs_klink_watch_del(link, BORROWER, &err), "the borrower's watch");
	return served - *touched;
}

static int by_value(const void *a, const void *b)
{
	uint64_t x = *(const uint64_t *)a, y = *(const uint64_t *)b;

	return x < y ? -1 : x > y;
}

static void print(const char *name, uint64_t *v, size_t n)
{
	qsort(v, n, sizeof(v[0]), by_value);
	printf("%s=%llu %s_min=%llu %s_max=%llu ", name, (unsigned long long)v[n / 2], name,
	       (unsigned long long)v[0], name, (unsigned long long)v[n - 1]);
}

int main(int argc, char **argv)
{
	static uint64_t without[MAX_PAIRS], with[MAX_PAIRS];
	const char *const holdings[] = { HOLDING };
	struct gs_kholding_set holding = { .name = HOLDING,
					   .n_devs = 1,
					   .lend_after_ms = 10,
					   .hold_max_ms = 30000,
					   .settle_ms = 0 };
	struct gs_kwatch_set watch = {
		.name = "krelease-member", .role = GS_MEMBER, .holdings = holdings, .n_holdings = 1
	};
	cleanup_klink struct gs_klink *link = NULL;
	struct process m;
	struct stat st;
	uint32_t dev;
	size_t pairs;

	if (argc < 3) {
		(void)fputs("krelease: the head of its source says how to call it\n", stderr);
		return 2;
	}
	if (strcmp(argv[1], "kill") == 0) {
		printf("bare=%llu\n", (unsigned long long)killed((pid_t)strtol(argv[2], NULL, 10)));
		return 0;
	}
	node = argv[1];
	pairs = strtoul(argv[2], NULL, 0);
	deaf = argc > 3 && strcmp(argv[3], "deaf") == 0;
	if (pairs == 0 || pairs > MAX_PAIRS || stat(node, &st) < 0)
		die(node);
	touched = mmap(NULL, 4096, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
	if (touched == MAP_FAILED)
		die("mmap");

	check(gs_klink_open(&link, &err), "open");
	dev = gs_kdev_of(st.st_rdev);
	holding.devs = &dev;
	check(gs_klink_holding_set(link, &holding, &err), "the holding");
	start(&m, member);
	check(gs_kwho_pid(m.pid, &watch.who, &err), "who");
	check(gs_klink_watch_set(link, &watch, &err), "the member's watch");

	for (size_t i = 0; i < pairs; i++) {
		if (i % 2 == 0)
			without[i] = bare();
		with[i] = returned(link, &m);
		if (i % 2 == 1)
			without[i] = bare();
	}
	print("bare", without, pairs);
	print("return", with, pairs);
	printf("pairs=%zu\n", pairs);

	check(gs_klink_watch_del(link, "krelease-member", &err), "the member's watch");
	(void)kill(m.pid, SIGKILL);
	(void)waitpid(m.pid, NULL, 0);
	check(gs_klink_holding_del(link, HOLDING, &err), "the holding");
	return 0;
}
