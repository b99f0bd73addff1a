// SPDX-License-Identifier: Apache-2.0
/*
 * Uses a stand-in card as a script says it:
 *
 *	fgpu STEP [ARGUMENT]... [, STEP [ARGUMENT]...]...
 *
 * A node is opened when a step names it first, and stays open, as does the mapping that `mmap`
 * makes of it. Each step prints one line: what it was, "ok" or "failed errno=NAME", what came out,
 * and the microseconds that it took. A failure ends the program with 1, except after `try`.
 */
#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <pthread.h>
#include <signal.h>
#include <stdarg.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/mman.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include "tests/fakegpu/fakegpu.h"

#define MAX_NODES 64
#define MAX_THREADS 1024

struct node {
	const char *path;
	int fd;
	volatile uint32_t *words;
	size_t length;
};

static struct node nodes[MAX_NODES];
static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;

/* One step: its name, its arguments, and what its line will say behind "ok". */
struct step {
	char **argv;
	int argc;
	unsigned int thread; /* of several that do the same */
	char out[128];
};

static void __attribute__((format(printf, 1, 2), noreturn)) usage(const char *format, ...)
{
	va_list args;

	va_start(args, format);
	fputs("fgpu: ", stderr);
	vfprintf(stderr, format, args);
	fputc('\n', stderr);
	va_end(args);
	exit(2);
}

static void __attribute__((format(printf, 2, 3))) say(struct step *step, const char *format, ...)
{
	va_list args;

	va_start(args, format);
	vsnprintf(step->out, sizeof(step->out), format, args);
	va_end(args);
}

static uint64_t now_us(void)
{
	struct timespec t;

	(void)clock_gettime(CLOCK_MONOTONIC, &t);
	return (uint64_t)t.tv_sec * 1000000 + (uint64_t)t.tv_nsec / 1000;
}

static void sleep_ms(uint64_t ms)
{
	struct timespec t = { .tv_sec = (time_t)(ms / 1000),
			      .tv_nsec = (long)(ms % 1000 * 1000000) };

	while (nanosleep(&t, &t) < 0 && errno == EINTR)
		;
}

/* The argument of that position as a number (4K, 64M, 1G too), or what stands for an absent one. */
static uint64_t number(const struct step *step, int i, uint64_t otherwise)
{
	uint64_t value;
	char *end;

	if (i >= step->argc)
		return otherwise;
	value = strtoull(step->argv[i], &end, 0);
	if (*end == 'K' || *end == 'M' || *end == 'G')
		value <<= *end == 'K' ? 10 : *end == 'M' ? 20 : 30, end++;
	if (end == step->argv[i] || *end)
		usage("%s: not a number: %s", step->argv[0], step->argv[i]);
	return value;
}

/* The step's node, opened if it isn't yet; NULL with errno if that fails. */
static struct node *node_of(const struct step *step)
{
	struct node *node = nodes;

	if (step->argc < 2)
		usage("%s: which node?", step->argv[0]);
	pthread_mutex_lock(&lock);
	while (node->path && strcmp(node->path, step->argv[1]) != 0)
		if (++node == nodes + MAX_NODES)
			usage("more than %d nodes", MAX_NODES);
	if (!node->path || node->fd < 0) {
		node->fd = open(step->argv[1], O_RDWR | O_CLOEXEC);
		node->path = step->argv[1];
	}
	pthread_mutex_unlock(&lock);
	return node->fd >= 0 ? node : NULL;
}

static int call(const struct step *step, unsigned long request, void *args)
{
	struct node *node = node_of(step);

	return node ? ioctl(node->fd, request, args) : -1;
}

/* The words of the node's mapping, which is made if there is none; NULL with errno. */
static volatile uint32_t *words_of(const struct step *step, size_t pages)
{
	struct node *node = node_of(step);
	void *at;

	if (!node)
		return NULL;
	pthread_mutex_lock(&lock);
	if (!node->words) {
		node->length = pages * (size_t)sysconf(_SC_PAGESIZE);
		at = mmap(NULL, node->length, PROT_READ | PROT_WRITE, MAP_SHARED, node->fd, 0);
		if (at != MAP_FAILED)
			node->words = at;
	}
	pthread_mutex_unlock(&lock);
	return node->words;
}

/* ---- The steps: 0, or -1 with errno. */
static int do_open(struct step *step)
{
	return node_of(step) ? 0 : -1;
}

static int do_close(struct step *step)
{
	struct node *node = node_of(step);
	int fd;

	if (!node)
		return -1;
	fd = node->fd;
	node->fd = -1;
	return close(fd);
}

static int do_ping(struct step *step)
{
	struct fakegpu_ping args = { 0 };

	for (uint64_t n = number(step, 2, 1); n > 0; n--)
		if (call(step, FAKEGPU_PING, &args) < 0)
			return -1;
	say(step, " serial=%llu", (unsigned long long)args.serial);
	return 0;
}

static int do_version(struct step *step)
{
	struct fakegpu_version args = { 0 };

	if (call(step, FAKEGPU_VERSION, &args) < 0)
		return -1;
	say(step, " version=%u cards=%u", args.version, args.cards);
	return 0;
}

static int do_alloc(struct step *step)
{
	struct fakegpu_alloc args = { .bytes = number(step, 2, 1 << 20),
				      .card = (uint32_t)number(step, 3, 0) };

	if (call(step, FAKEGPU_ALLOC, &args) < 0)
		return -1;
	say(step, " handle=%u", args.handle);
	return 0;
}

static int do_free(struct step *step)
{
	struct fakegpu_free args = { .handle = (uint32_t)number(step, 2, 1) };

	return call(step, FAKEGPU_FREE, &args);
}

static int do_sleep(struct step *step)
{
	static const char *const kinds[] = { "interruptible", "killable", "uninterruptible" };
	struct fakegpu_sleep args = { .ms = (uint32_t)number(step, 2, 1000) };

	while (step->argc > 3 && strcmp(step->argv[3], kinds[args.kind]) != 0)
		if (++args.kind == sizeof(kinds) / sizeof(kinds[0]))
			usage("sleep: not a kind: %s", step->argv[3]);
	return call(step, FAKEGPU_SLEEP, &args);
}

static int do_work(struct step *step)
{
	struct fakegpu_submit args = { .ms = (uint32_t)number(step, 2, 1000),
				       .card = (uint32_t)number(step, 3, 0) };

	return call(step, FAKEGPU_SUBMIT, &args);
}

/* Several times: the tokens count up. Several threads: each has 2^32 of its own. */
static int do_echo(struct step *step)
{
	struct fakegpu_echo args = { .token = number(step, 2, 0) + ((uint64_t)step->thread << 32) };

	for (uint64_t n = number(step, 3, 1); n > 0; n--, args.token++)
		if (call(step, FAKEGPU_WORK_ECHO, &args) < 0)
			return -1;
	say(step, " serial=%llu", (unsigned long long)args.serial);
	return 0;
}

static int do_revoke(struct step *step)
{
	struct fakegpu_revoke args = { .card = (uint32_t)number(step, 2, 0) };

	if (call(step, FAKEGPU_REVOKE, &args) < 0)
		return -1;
	say(step, " files=%u", args.files);
	return 0;
}

static int do_doorbell(struct step *step)
{
	struct fakegpu_doorbell args = { .word = (uint32_t)number(step, 2, 0),
					 .card = (uint32_t)number(step, 3, 0) };

	if (call(step, FAKEGPU_DOORBELL, &args) < 0)
		return -1;
	say(step, " value=%u", args.value);
	return 0;
}

static int do_ioctl(struct step *step)
{
	char args[4096] = { 0 };

	return call(step, number(step, 2, 0), args);
}

/* As a 32-bit program would call: only an x86 kernel lets a 64-bit one do so. */
static int do_compat(struct step *step)
{
#ifdef __x86_64__
	struct node *node = node_of(step);
	struct fakegpu_echo *args;
	long ret;

	if (!node)
		return -1;
	args = mmap(NULL, 4096, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_32BIT, -1,
		    0);
	if (args == MAP_FAILED)
		return -1;
	args->token = number(step, 2, 0);
	__asm__ volatile("int $0x80"
			 : "=a"(ret)
			 : "a"(54L), "b"((long)node->fd), "c"((long)FAKEGPU_WORK_ECHO), "d"(args)
			 : "memory", "r8", "r9", "r10", "r11");
	say(step, " serial=%llu", (unsigned long long)args->serial);
	(void)munmap(args, 4096);
	/* The kernel's number is 32 bits wide here. */
	errno = -(int)ret;
	return (int)ret < 0 ? -1 : 0;
#else
	(void)step;
	errno = ENOSYS;
	return -1;
#endif
}

static int do_mmap(struct step *step)
{
	volatile uint32_t *words = words_of(step, number(step, 2, 1));

	if (!words)
		return -1;
	say(step, " at=%llu", (unsigned long long)(uintptr_t)words);
	return 0;
}

static int do_munmap(struct step *step)
{
	struct node *node = node_of(step);

	if (!node || !node->words || munmap((void *)node->words, node->length) < 0)
		return -1;
	node->words = NULL;
	return 0;
}

static int do_load(struct step *step)
{
	volatile uint32_t *words = words_of(step, 1);

	if (!words)
		return -1;
	say(step, " value=%u", words[number(step, 2, 0)]);
	return 0;
}

static int do_store(struct step *step)
{
	volatile uint32_t *words = words_of(step, 1);

	if (!words)
		return -1;
	words[number(step, 2, 0)] = (uint32_t)number(step, 3, 1);
	return 0;
}

/* Adds 1 as often as told: what is lost or done twice shows in the sum. */
static int do_add(struct step *step)
{
	volatile uint32_t *words = words_of(step, 1);

	if (!words)
		return -1;
	for (uint64_t n = number(step, 3, 1); n > 0; n--)
		__atomic_add_fetch(&words[number(step, 2, 0)], 1, __ATOMIC_SEQ_CST);
	return 0;
}

static int do_poll(struct step *step)
{
	struct node *node = node_of(step);
	struct pollfd p = { .fd = node ? node->fd : -1, .events = POLLIN };

	return node && poll(&p, 1, 1000) == 1 ? 0 : -1;
}

static int do_read(struct step *step)
{
	struct node *node = node_of(step);
	char c;

	return node && read(node->fd, &c, 1) == 0 ? 0 : -1;
}

static int do_write(struct step *step)
{
	struct node *node = node_of(step);

	return node && write(node->fd, "x", 1) == 1 ? 0 : -1;
}

static int do_wait(struct step *step)
{
	sleep_ms(number(step, 1, 1000));
	return 0;
}

/* Until a file is there: what a script decides by its own clock. */
static int do_until(struct step *step)
{
	if (step->argc < 2)
		usage("until: which file?");
	while (access(step->argv[1], F_OK) < 0)
		sleep_ms(2);
	return 0;
}

/* Opens all nodes that it names and stays until a signal ends the program. */
static int do_hold(struct step *step)
{
	struct step one = { .argc = 2 };
	char *argv[] = { step->argv[0], NULL };

	one.argv = argv;
	for (int i = 1; i < step->argc; i++) {
		argv[1] = step->argv[i];
		if (!node_of(&one))
			return -1;
	}
	puts("hold ok");
	for (;;)
		pause();
}

/* From here on two processes do the same; the first one waits for the second in the end. */
static int do_fork(struct step *step)
{
	pid_t child = fork();

	if (child < 0)
		return -1;
	say(step, child ? " child=%d" : " parent", (int)child);
	return 0;
}

static const struct {
	const char *name;
	int (*run)(struct step *step);
	const char *args;
} steps[] = {
	{ "open", do_open, "NODE" },
	{ "close", do_close, "NODE" },
	{ "ping", do_ping, "NODE [TIMES]" },
	{ "version", do_version, "NODE" },
	{ "alloc", do_alloc, "NODE [BYTES [CARD]]" },
	{ "free", do_free, "NODE HANDLE" },
	{ "sleep", do_sleep, "NODE MS [interruptible|killable|uninterruptible]" },
	{ "work", do_work, "NODE MS [CARD]" },
	{ "echo", do_echo, "NODE TOKEN [TIMES]" },
	{ "revoke", do_revoke, "NODE [CARD]" },
	{ "doorbell", do_doorbell, "NODE [WORD [CARD]]" },
	{ "ioctl", do_ioctl, "NODE NUMBER" },
	{ "compat", do_compat, "NODE TOKEN" },
	{ "mmap", do_mmap, "NODE [PAGES]" },
	{ "munmap", do_munmap, "NODE" },
	{ "load", do_load, "NODE [WORD]" },
	{ "store", do_store, "NODE [WORD [VALUE]]" },
	{ "add", do_add, "NODE [WORD [TIMES]]" },
	{ "poll", do_poll, "NODE" },
	{ "read", do_read, "NODE" },
	{ "write", do_write, "NODE" },
	{ "wait", do_wait, "MS" },
	{ "until", do_until, "FILE" },
	{ "hold", do_hold, "[NODE]..." },
	{ "fork", do_fork, "" },
};

/* ---- Running them. */
static bool run(struct step *step)
{
	uint64_t begin = now_us();
	size_t i = 0;
	int err;

	while (strcmp(steps[i].name, step->argv[0]) != 0)
		if (++i == sizeof(steps) / sizeof(steps[0]))
			usage("no such step: %s", step->argv[0]);
	err = steps[i].run(step) < 0 ? errno : 0;

	flockfile(stdout);
	printf("%s%s%s", step->argv[0], step->argc > 1 ? " " : "",
	       step->argc > 1 ? step->argv[1] : "");
	if (err)
		printf(" failed errno=%s", strerrorname_np(err));
	else
		printf(" ok%s", step->out);
	printf(" us=%llu\n", (unsigned long long)(now_us() - begin));
	funlockfile(stdout);
	return !err;
}

static void *run_thread(void *data)
{
	return run(data) ? NULL : data;
}

static bool run_threads(const struct step *model, unsigned int count)
{
	static struct step each[MAX_THREADS];
	pthread_t threads[MAX_THREADS];
	pthread_attr_t attr;
	bool ok = true;
	void *failed;

	if (count > MAX_THREADS)
		usage("more than %d threads", MAX_THREADS);
	pthread_attr_init(&attr);
	pthread_attr_setstacksize(&attr, 64 << 10);
	for (unsigned int i = 0; i < count; i++) {
		each[i] = *model;
		each[i].thread = i;
		errno = pthread_create(&threads[i], &attr, run_thread, &each[i]);
		if (errno)
			usage("thread %u: %s", i, strerror(errno));
	}
	for (unsigned int i = 0; i < count; i++) {
		pthread_join(threads[i], &failed);
		ok = ok && !failed;
	}
	return ok;
}

/* [try] [threads N] STEP ARGUMENT... */
static bool run_words(char **argv, int argc)
{
	struct step step = { .argv = argv, .argc = argc };
	unsigned int threads = 0;
	bool ok, try = false;

	if (step.argc > 0 && strcmp(step.argv[0], "try") == 0) {
		try = true;
		step.argv++, step.argc--;
	}
	if (step.argc > 1 && strcmp(step.argv[0], "threads") == 0) {
		threads = (unsigned int)number(&step, 1, 1);
		step.argv += 2, step.argc -= 2;
	}
	if (step.argc == 0)
		usage("a step without a name");
	ok = threads ? run_threads(&step, threads) : run(&step);
	return ok || try;
}

int main(int argc, char **argv)
{
	int begin = 1;

	if (argc < 2) {
		fputs("usage: fgpu [try] [threads N] STEP... [, ...]\n", stderr);
		for (size_t i = 0; i < sizeof(steps) / sizeof(steps[0]); i++)
			fprintf(stderr, "\t%s %s\n", steps[i].name, steps[i].args);
		return 2;
	}
	/* A line is out when its step is done, whoever reads. */
	setvbuf(stdout, NULL, _IOLBF, 0);
	for (int i = 1; i <= argc; i++) {
		if (i < argc && strcmp(argv[i], ",") != 0)
			continue;
		if (!run_words(argv + begin, i - begin))
			return 1;
		begin = i + 1;
	}
	while (wait(NULL) > 0)
		;
	return 0;
}
