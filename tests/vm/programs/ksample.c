// SPDX-License-Identifier: Apache-2.0
/*
 * Counts the instructions that it takes to look for stores of an idle holding's user (SAMPLE), and
 * those of his next store, which is seen by that. Only in a machine whose clock counts them.
 *
 *	ksample NODE MAPPINGS ROUNDS	NODE is hooked as revocable, and is no other holding's
 *
 * Prints "sample=MEDIAN store=MEDIAN bare=MEDIAN mappings=N rounds=N": the command; a store that it
 * made fault, which ends the idle time; and one that faults because the driver itself took the
 * mapping away, while the holding is in use.
 */
#include <errno.h>
#include <fcntl.h>
#include <sched.h>
#include <signal.h>
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
#include "tests/vm/programs/insn.h"

#define HOLDING "ksample"
#define MAX_MAPPINGS 256
#define MAX_ROUNDS 10000

static struct gs_err err;
static const char *node;
static size_t n_mappings;
static double *stored; /* shared: what the member's last store took */

static void __attribute__((noreturn)) die(const char *what)
{
	(void)fprintf(stderr, "ksample: %s: %s\n", what, err.code ? err.msg : strerror(errno));
	exit(1);
}

static void check(int r, const char *what)
{
	if (r < 0)
		die(what);
}

/* ---- The member, which stores to its first mapping each time that it is told to. */

static int to[2], from[2];

static volatile uint32_t *map(int fd)
{
	volatile uint32_t *words = mmap(NULL, 4096, PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0);

	if (words == MAP_FAILED)
		_exit(2);
	*words = 1;
	return words;
}

static void __attribute__((noreturn)) member(void)
{
	volatile uint32_t *words[MAX_MAPPINGS];
	const size_t n = n_mappings; /* as it stays */
	int fd = open(node, O_RDWR | O_CLOEXEC);
	char c;

	words[0] = map(fd);
	for (size_t i = 1; i < n; i++)
		words[i] = map(fd);
	close(fd);
	while (write(from[1], "x", 1) == 1 && read(to[0], &c, 1) == 1) {
		uint64_t begin = insn_now();

		*words[0] = 1;
		*stored = (double)(insn_now() - begin) * insn_per_tick();
		for (size_t i = 1; i < n; i++)
			*words[i] = 1;
	}
	_exit(3);
}

static void told(void)
{
	char c;

	if (read(from[0], &c, 1) != 1)
		die("the member");
}

static double store(void)
{
	if (write(to[1], "x", 1) != 1)
		die("write");
	told();
	return *stored;
}

/* ---- The module. */

static struct gs_klink *kmod;

static const struct gs_kholding *look(struct gs_kstate *state)
{
	const struct gs_kholding *h;

	gs_kstate_free(state);
	check(gs_klink_dump(kmod, state, &err), "dump");
	h = gs_kstate_holding(state, HOLDING);
	if (!h)
		die("the holding is gone");
	return h;
}

static uint64_t wait_idle(void)
{
	struct timespec t = { .tv_nsec = 2000000 };
	cleanup_kstate struct gs_kstate state = { 0 };

	for (int i = 0; i < 5000; i++) {
		const struct gs_kholding *h = look(&state);

		if (h->state == GS_IDLE)
			return h->seq;
		(void)nanosleep(&t, NULL);
	}
	die("the holding does not become idle");
}

/* The command has taken all away, and the store after it is what ends the idle time. */
static double sample(double *ret_store)
{
	cleanup_kstate struct gs_kstate state = { 0 };
	const struct gs_kholding *h;
	uint64_t seq = wait_idle(), begin = insn_now();
	double ret;

	check(gs_klink_sample(kmod, HOLDING, seq, &err), "sample");
	ret = (double)(insn_now() - begin) * insn_per_tick();
	h = look(&state);
	if (h->mappings != n_mappings || h->state != GS_IDLE)
		die("not every mapping was taken away");
	*ret_store = store();
	if (look(&state)->state == GS_IDLE)
		die("the store was not seen");
	return ret;
}

static double bare(void)
{
	struct fakegpu_revoke revoke = { .card = 0 };
	int fd = open(node, O_RDWR | O_CLOEXEC);

	if (fd < 0 || ioctl(fd, FAKEGPU_REVOKE, &revoke) < 0)
		die("the driver takes nothing away");
	close(fd);
	return store();
}

/* ---- All together. */

static pid_t start(void)
{
	const char *const holdings[] = { HOLDING };
	struct gs_kwatch_set watch = {
		.name = "ksample-member", .role = GS_MEMBER, .holdings = holdings, .n_holdings = 1
	};
	pid_t pid;

	if (pipe2(to, O_CLOEXEC) < 0 || pipe2(from, O_CLOEXEC) < 0)
		die("pipe");
	pid = (pid_t)syscall(SYS_clone, CLONE_NEWPID | SIGCHLD, 0, 0, 0, 0);
	if (pid < 0)
		die("clone");
	if (pid == 0)
		member();
	told();
	check(gs_kwho_pid(pid, &watch.who, &err), "who");
	check(gs_klink_watch_set(kmod, &watch, &err), "the member's watch");
	return pid;
}

int main(int argc, char **argv)
{
	static double samples[MAX_ROUNDS], stores[MAX_ROUNDS], bares[MAX_ROUNDS];
	struct gs_kholding_set holding = {
		.name = HOLDING, .n_devs = 1, .lend_after_ms = 10, .hold_max_ms = 30000
	};
	struct stat st;
	size_t rounds;
	uint32_t dev;
	pid_t pid;

	if (argc != 4) {
		(void)fputs("ksample: the head of its source says how to call it\n", stderr);
		return 2;
	}
	node = argv[1];
	n_mappings = strtoul(argv[2], NULL, 0);
	rounds = strtoul(argv[3], NULL, 0);
	if (!n_mappings || n_mappings > MAX_MAPPINGS || !rounds || rounds > MAX_ROUNDS ||
	    stat(node, &st) < 0)
		die(node);
	stored = mmap(NULL, 4096, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
	if (stored == MAP_FAILED)
		die("mmap");

	check(gs_klink_open(&kmod, &err), "open");
	dev = gs_kdev_of(st.st_rdev);
	holding.devs = &dev;
	check(gs_klink_holding_set(kmod, &holding, &err), "the holding");
	pid = start();
	for (size_t i = 0; i < rounds; i++) {
		samples[i] = sample(&stores[i]);
		bares[i] = bare();
	}
	printf("sample=%.0f store=%.0f bare=%.0f mappings=%zu rounds=%zu\n",
	       insn_median(samples, rounds), insn_median(stores, rounds),
	       insn_median(bares, rounds), n_mappings, rounds);

	(void)kill(pid, SIGKILL);
	(void)waitpid(pid, NULL, 0);
	check(gs_klink_watch_del(kmod, "ksample-member", &err), "the member's watch");
	check(gs_klink_holding_del(kmod, HOLDING, &err), "the holding");
	gs_klink_close(kmod);
	return 0;
}
