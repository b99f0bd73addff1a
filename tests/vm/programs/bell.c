// SPDX-License-Identifier: Apache-2.0
/*
 * Rings doorbells: a member of a holding that speaks to its card by mappings alone.
 *
 *	bell STEP [ARGUMENT]... [, STEP [ARGUMENT]...]...
 *
 *	map NODE [PAGES]        opens it, maps it, closes it: a mapping of its own, numbered from 0
 *	private NODE            the same, MAP_PRIVATE
 *	open NODE, mapopen      opens it; maps what was opened last
 *	anon                    a mapping of a page of memory, numbered too
 *	add N [TIMES]           adds 1 to the first word of mapping N (-: of all), so often
 *	load N                  prints that word
 *	ring N THREADS [TIMES]  so many threads add, all at once
 *	hammer N TIMES MAX      adds 1 so often, and waits up to MAX microseconds after each
 *	start N                 a thread adds 1, and the steps go on; `join` waits for it
 *	read N                  a system call of the kernel's writes one byte there: read(2) of
 *	                        /dev/zero; its error if it has one
 *	list N FOLDER           another does, with a lock that all who use that folder need:
 *	                        getdents64(2)
 *	last N robust|tid       a thread ends whose last words the kernel writes there
 *	hide N FILE             another thread forks, and is not let finish that; its child, which
 *	                        adds 1 once there is FILE, has a mapping that this program unmaps
 *	                        then. `unhide` lets it, and waits for it
 *	flood NODE N            N mappings of it, by two files in turn
 *	move N                  mremap(2) to another address
 *	unmap N, protect N r|w
 *	fork                    the child does the steps that follow, its parent waits for it
 *	exec STEP...            the steps that follow, up to the end, by a new program
 *	ready FILE, until FILE  makes a file; waits for one
 *	wait MS
 *	enter PID               a child in that process's PID namespace does the steps that follow
 *	peek PID AT, poke PID AT        reads or writes its memory by /proc/PID/mem
 *	trace PID AT            reads a word of it by ptrace(2)
 *	signal                  from here on SIGUSR1 has a handler, and `signals` prints how often
 *	peer MS                 starts a thread that maps, touches and unmaps memory; `peers` prints
 *	                        the worst and the median microseconds of so many milliseconds
 *	quiet                   prints nothing but errors from here on
 *	end N                   ends with that status at once
 *
 * Each step prints a line, as it ends: its name, "ok" or the errno's name, and what came out.
 */
#include <errno.h>
#include <fcntl.h>
#include <linux/futex.h>
#include <linux/userfaultfd.h>
#include <poll.h>
#include <pthread.h>
#include <sched.h>
#include <signal.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/mman.h>
#include <sys/ptrace.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#define MAX_MAPS 64
#define MAX_THREADS 16384
#define MAX_SAMPLES 200000

static struct map {
	volatile uint32_t *words;
	size_t length;
} maps[MAX_MAPS];
static unsigned int n_maps;
static bool quiet;
static atomic_uint signals;
static char out[128];

static void sleep_ms(unsigned long ms)
{
	struct timespec t = { .tv_sec = (time_t)(ms / 1000),
			      .tv_nsec = (long)(ms % 1000 * 1000000) };

	while (nanosleep(&t, &t) < 0 && errno == EINTR)
		;
}

static uint64_t now_us(void)
{
	struct timespec t;

	(void)clock_gettime(CLOCK_MONOTONIC, &t);
	return (uint64_t)t.tv_sec * 1000000 + (uint64_t)t.tv_nsec / 1000;
}

static unsigned long number(char **argv, int i, unsigned long otherwise)
{
	for (int k = 0; k < i; k++)
		if (!argv[k])
			return otherwise;
	return argv[i] ? strtoul(argv[i], NULL, 0) : otherwise;
}

/* The mapping that is meant, or NULL with errno. */
static struct map *map_of(char **argv)
{
	unsigned long n = number(argv, 1, 0);

	if (n < n_maps && maps[n].words)
		return &maps[n];
	errno = ENOENT;
	return NULL;
}

static int new_map(void *at, size_t length)
{
	if (at == MAP_FAILED)
		return -1;
	if (n_maps == MAX_MAPS) {
		errno = EMFILE;
		return -1;
	}
	maps[n_maps++] = (struct map){ .words = at, .length = length };
	return 0;
}

static int opened = -1;

static int do_open(char **argv)
{
	opened = argv[1] ? open(argv[1], O_RDWR | O_CLOEXEC) : -1;
	return opened < 0 ? -1 : 0;
}

static int map_opened(size_t pages, int how)
{
	size_t length = pages * (size_t)sysconf(_SC_PAGESIZE);
	void *at = mmap(NULL, length, PROT_READ | PROT_WRITE, how, opened, 0);

	(void)snprintf(out, sizeof(out), " at=%llu", (unsigned long long)(uintptr_t)at);
	return new_map(at, length);
}

static int do_mapopen(char **argv)
{
	return map_opened(number(argv, 1, 1), MAP_SHARED);
}

static int open_and_map(char **argv, size_t pages, int how)
{
	int r;

	if (do_open(argv) < 0)
		return -1;
	r = map_opened(pages, how);
	(void)close(opened);
	return r;
}

static int do_map(char **argv)
{
	return open_and_map(argv, number(argv, 2, 1), MAP_SHARED);
}

static int do_private(char **argv)
{
	return open_and_map(argv, 1, MAP_PRIVATE);
}

static int do_anon(char **argv)
{
	size_t length = (size_t)sysconf(_SC_PAGESIZE);

	(void)argv;
	return new_map(mmap(NULL, length, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1,
			    0),
		       length);
}

static void add(volatile uint32_t *word)
{
	__atomic_add_fetch(word, 1, __ATOMIC_SEQ_CST);
}

static int do_add(char **argv)
{
	unsigned long times = number(argv, 2, 1);
	struct map *map;

	if (argv[1] && strcmp(argv[1], "-") == 0) {
		for (unsigned int i = 0; i < n_maps; i++)
			for (unsigned long n = 0; maps[i].words && n < times; n++)
				add(maps[i].words);
		return 0;
	}
	map = map_of(argv);
	if (!map)
		return -1;
	for (; times; times--)
		add(map->words);
	return 0;
}

static int do_hammer(char **argv)
{
	unsigned long times = number(argv, 2, 100), most = number(argv, 3, 1000);
	struct map *map = map_of(argv);

	if (!map)
		return -1;
	srandom((unsigned int)getpid());
	for (; times; times--) {
		add(map->words);
		(void)usleep((unsigned int)((unsigned long)random() % most));
	}
	return 0;
}

static int do_load(char **argv)
{
	struct map *map = map_of(argv);

	if (!map)
		return -1;
	(void)snprintf(out, sizeof(out), " value=%u", map->words[0]);
	return 0;
}

struct ring {
	struct map *map;
	unsigned long times;
};

static void *ring(void *arg)
{
	const struct ring *r = arg;

	for (unsigned long n = 0; n < r->times; n++)
		add(r->map->words);
	return NULL;
}

static int do_ring(char **argv)
{
	struct ring r = { .map = map_of(argv), .times = number(argv, 3, 1) };
	static pthread_t threads[MAX_THREADS];
	unsigned long n = number(argv, 2, 2), i;
	pthread_attr_t attr;

	if (!r.map)
		return -1;
	(void)pthread_attr_init(&attr);
	(void)pthread_attr_setstacksize(&attr, 32768);
	for (i = 0; i < n && i < MAX_THREADS; i++)
		if ((errno = pthread_create(&threads[i], &attr, ring, &r)))
			return -1;
	while (i)
		(void)pthread_join(threads[--i], NULL);
	return 0;
}

static pthread_t started;

static int do_start(char **argv)
{
	static struct ring r = { .times = 1 };

	r.map = map_of(argv);
	if (!r.map)
		return -1;
	errno = pthread_create(&started, NULL, ring, &r);
	return errno ? -1 : 0;
}

static int do_join(char **argv)
{
	(void)argv;
	errno = pthread_join(started, NULL);
	return errno ? -1 : 0;
}

static int do_read(char **argv)
{
	struct map *map = map_of(argv);
	int fd, r = -1, saved;

	if (!map)
		return -1;
	fd = open("/dev/zero", O_RDONLY | O_CLOEXEC);
	if (fd >= 0)
		r = (int)read(fd, (void *)(uintptr_t)&map->words[8], 1);
	saved = errno;
	(void)close(fd);
	errno = saved;
	return r == 1 ? 0 : -1;
}

static int do_unmap(char **argv)
{
	struct map *map = map_of(argv);

	if (!map || munmap((void *)(uintptr_t)map->words, map->length) < 0)
		return -1;
	map->words = NULL;
	return 0;
}

static int do_list(char **argv)
{
	struct map *map = map_of(argv);
	int fd, saved;
	long n;

	fd = map && argv[2] ? open(argv[2], O_RDONLY | O_DIRECTORY | O_CLOEXEC) : -1;
	if (fd < 0)
		return -1;
	n = syscall(SYS_getdents64, fd, (void *)(uintptr_t)&map->words[8], 1024);
	saved = errno;
	(void)close(fd);
	errno = saved;
	return n > 0 ? 0 : -1;
}

struct last {
	struct map *map;
	bool robust;
};

static void *last(void *arg)
{
	const struct last *l = arg;
	void *at = (void *)(uintptr_t)&l->map->words[8];

	if (l->robust)
		(void)syscall(SYS_set_robust_list, at, sizeof(struct robust_list_head));
	else
		(void)syscall(SYS_set_tid_address, at);
	(void)syscall(SYS_exit, 0); /* not libc's end of a thread, which waits for that word */
	return NULL;
}

static int do_last(char **argv)
{
	static struct last l;
	pthread_t thread;

	l.map = map_of(argv);
	if (!l.map || !argv[2])
		return -1;
	l.robust = strcmp(argv[2], "robust") == 0;
	errno = pthread_create(&thread, NULL, last, &l);
	return errno ? -1 : 0;
}

/*
 * A fork that lasts: it waits until somebody has read of it from a userfaultfd, when all is copied
 * and no lock is held.
 */
static int uffd = -1;
static pthread_t hider;
static const char *hidden_until;
static struct map hidden;
static int hidden_status;

static void *hide(void *arg)
{
	pid_t child = fork();

	(void)arg;
	if (child == 0) {
		while (access(hidden_until, F_OK) < 0)
			sleep_ms(2);
		add(hidden.words);
		_exit(0);
	}
	if (child < 0 || waitpid(child, &hidden_status, 0) < 0)
		hidden_status = -1;
	return NULL;
}

static int do_hide(char **argv)
{
	struct uffdio_api api = { .api = UFFD_API, .features = UFFD_FEATURE_EVENT_FORK };
	struct uffdio_register range = { .mode = UFFDIO_REGISTER_MODE_MISSING };
	struct map *map = map_of(argv);
	struct pollfd waits;
	void *at;

	if (!map || !argv[2])
		return -1;
	hidden = *map;
	hidden_until = argv[2];
	at = mmap(NULL, 4096, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
	uffd = (int)syscall(SYS_userfaultfd, O_CLOEXEC | O_NONBLOCK);
	if (at == MAP_FAILED || uffd < 0 || ioctl(uffd, UFFDIO_API, &api) < 0)
		return -1;
	range.range.start = (uintptr_t)at;
	range.range.len = 4096;
	if (ioctl(uffd, UFFDIO_REGISTER, &range) < 0)
		return -1;
	if ((errno = pthread_create(&hider, NULL, hide, NULL)))
		return -1;
	waits = (struct pollfd){ .fd = uffd, .events = POLLIN };
	if (poll(&waits, 1, -1) < 0)
		return -1;
	return do_unmap(argv);
}

static int do_unhide(char **argv)
{
	struct uffd_msg msg;

	(void)argv;
	if (read(uffd, &msg, sizeof(msg)) != sizeof(msg) || msg.event != UFFD_EVENT_FORK)
		return -1;
	(void)pthread_join(hider, NULL);
	errno = ECHILD;
	return hidden_status ? -1 : 0;
}

static int do_flood(char **argv)
{
	unsigned long n = number(argv, 2, 1000);
	int fds[2];

	for (int i = 0; i < 2; i++) {
		fds[i] = argv[1] ? open(argv[1], O_RDWR | O_CLOEXEC) : -1;
		if (fds[i] < 0)
			return -1;
	}
	for (unsigned long i = 0; i < n; i++)
		if (mmap(NULL, 4096, PROT_READ | PROT_WRITE, MAP_SHARED, fds[i % 2], 0) ==
		    MAP_FAILED)
			return -1;
	return 0;
}

static int do_move(char **argv)
{
	struct map *map = map_of(argv);
	void *to, *at;

	if (!map)
		return -1;
	to = mmap(NULL, map->length, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
	if (to == MAP_FAILED)
		return -1;
	at = mremap((void *)(uintptr_t)map->words, map->length, map->length,
		    MREMAP_MAYMOVE | MREMAP_FIXED, to);
	if (at == MAP_FAILED)
		return -1;
	map->words = at;
	return 0;
}

static int do_protect(char **argv)
{
	struct map *map = map_of(argv);

	return map ? mprotect((void *)(uintptr_t)map->words, map->length,
			      argv[2] && *argv[2] == 'w' ? PROT_READ | PROT_WRITE : PROT_READ) :
		     -1;
}

static int do_fork(char **argv)
{
	pid_t child = fork();
	int status = 0;

	(void)argv;
	if (child <= 0)
		return child;
	while (waitpid(child, &status, 0) < 0 && errno == EINTR)
		;
	_exit(WIFEXITED(status) ? WEXITSTATUS(status) : 128 + WTERMSIG(status));
}

static int do_enter(char **argv)
{
	char path[64];
	int fd;

	(void)snprintf(path, sizeof(path), "/proc/%lu/ns/pid", number(argv, 1, 0));
	fd = open(path, O_RDONLY | O_CLOEXEC);
	if (fd < 0 || setns(fd, CLONE_NEWPID) < 0)
		return -1;
	return do_fork(argv);
}

static int memory(char **argv, bool write)
{
	uint32_t word = 1;
	char path[64];
	ssize_t n;
	int fd;

	(void)snprintf(path, sizeof(path), "/proc/%lu/mem", number(argv, 1, 0));
	fd = open(path, O_RDWR | O_CLOEXEC);
	if (fd < 0)
		return -1;
	n = write ? pwrite(fd, &word, sizeof(word), (off_t)number(argv, 2, 0)) :
		    pread(fd, &word, sizeof(word), (off_t)number(argv, 2, 0));
	if (n < 0)
		return -1;
	(void)close(fd);
	(void)snprintf(out, sizeof(out), " value=%u n=%zd", word, n);
	return 0;
}

static int do_peek(char **argv)
{
	return memory(argv, false);
}

static int do_poke(char **argv)
{
	return memory(argv, true);
}

static int do_trace(char **argv)
{
	pid_t pid = (pid_t)number(argv, 1, 0);
	int status, saved;
	long word;

	if (ptrace(PTRACE_ATTACH, pid, NULL, NULL) < 0 || waitpid(pid, &status, __WALL) < 0)
		return -1;
	errno = 0;
	word = ptrace(PTRACE_PEEKDATA, pid, (void *)(uintptr_t)number(argv, 2, 0), NULL);
	saved = errno;
	(void)ptrace(PTRACE_DETACH, pid, NULL, NULL);
	errno = saved;
	(void)snprintf(out, sizeof(out), " value=%u", (unsigned int)word);
	return errno ? -1 : 0;
}

static int do_ready(char **argv)
{
	int fd = argv[1] ? open(argv[1], O_WRONLY | O_CREAT | O_CLOEXEC, 0600) : -1;

	if (fd < 0)
		return -1;
	return close(fd);
}

static int do_until(char **argv)
{
	while (argv[1] && access(argv[1], F_OK) < 0)
		sleep_ms(2);
	return 0;
}

static int do_wait(char **argv)
{
	sleep_ms(number(argv, 1, 100));
	return 0;
}

static void on_signal(int sig)
{
	(void)sig;
	signals++;
}

static int do_signal(char **argv)
{
	struct sigaction sa = { .sa_handler = on_signal };

	(void)argv;
	return sigaction(SIGUSR1, &sa, NULL);
}

static int do_signals(char **argv)
{
	(void)argv;
	(void)snprintf(out, sizeof(out), " count=%u", signals);
	return 0;
}

/* ---- Another thread that needs the mmap lock. */
static uint32_t samples[MAX_SAMPLES];
static unsigned int n_samples;
static pthread_t peer_thread;
static unsigned long peer_ms;

static void *peer(void *arg)
{
	uint64_t end = now_us() + peer_ms * 1000, begin;
	volatile char *at;

	(void)arg;
	while (n_samples < MAX_SAMPLES && (begin = now_us()) < end) {
		at = mmap(NULL, 16384, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
		if (at == MAP_FAILED)
			break;
		at[0] = at[8192] = 1;
		(void)munmap((void *)(uintptr_t)at, 16384);
		samples[n_samples++] = (uint32_t)(now_us() - begin);
		if (n_samples % 16 == 0)
			sleep_ms(1);
	}
	return NULL;
}

static int do_peer(char **argv)
{
	peer_ms = number(argv, 1, 1000);
	n_samples = 0;
	errno = pthread_create(&peer_thread, NULL, peer, NULL);
	return errno ? -1 : 0;
}

static int compare(const void *a, const void *b)
{
	return *(const uint32_t *)a < *(const uint32_t *)b ?
		       -1 :
		       *(const uint32_t *)a > *(const uint32_t *)b;
}

static int do_peers(char **argv)
{
	(void)argv;
	(void)pthread_join(peer_thread, NULL);
	if (!n_samples) {
		errno = ENODATA;
		return -1;
	}
	qsort(samples, n_samples, sizeof(*samples), compare);
	(void)snprintf(out, sizeof(out), " n=%u median=%u worst=%u", n_samples,
		       samples[n_samples / 2], samples[n_samples - 1]);
	return 0;
}

static int do_quiet(char **argv)
{
	(void)argv;
	quiet = true;
	return 0;
}

static int do_end(char **argv)
{
	_exit((int)number(argv, 1, 0));
}

static const struct {
	const char *name;
	int (*run)(char **argv);
} steps[] = {
	{ "hammer", do_hammer },   { "open", do_open },	    { "mapopen", do_mapopen },
	{ "start", do_start },	   { "join", do_join },	    { "enter", do_enter },
	{ "peek", do_peek },	   { "poke", do_poke },	    { "trace", do_trace },
	{ "map", do_map },	   { "anon", do_anon },	    { "add", do_add },
	{ "load", do_load },	   { "ring", do_ring },	    { "read", do_read },
	{ "move", do_move },	   { "unmap", do_unmap },   { "protect", do_protect },
	{ "fork", do_fork },	   { "ready", do_ready },   { "until", do_until },
	{ "wait", do_wait },	   { "signal", do_signal }, { "signals", do_signals },
	{ "private", do_private }, { "list", do_list },	    { "last", do_last },
	{ "hide", do_hide },	   { "unhide", do_unhide }, { "flood", do_flood },
	{ "peer", do_peer },	   { "peers", do_peers },   { "quiet", do_quiet },
	{ "end", do_end },
};

static bool run(char **argv)
{
	for (size_t i = 0; i < sizeof(steps) / sizeof(*steps); i++) {
		int r;

		if (strcmp(steps[i].name, argv[0]) != 0)
			continue;
		*out = 0;
		errno = 0;
		r = steps[i].run(argv);
		if (r < 0)
			printf("%s %s\n", argv[0], strerrorname_np(errno));
		else if (!quiet)
			printf("%s ok%s\n", argv[0], out);
		(void)fflush(stdout);
		return r >= 0;
	}
	fprintf(stderr, "bell: no such step: %s\n", argv[0]);
	return false;
}

int main(int argc, char **argv)
{
	static char comma[] = ",";
	int i, begin;
	bool good = true;

	for (i = begin = 1; i <= argc && good; i++) {
		if (i < argc && strcmp(argv[i], ",") != 0)
			continue;
		argv[i] = NULL;
		if (i > begin && strcmp(argv[begin], "exec") == 0) {
			/* What was cut off so far is before this. */
			argv[begin] = argv[0];
			if (i < argc)
				argv[i] = comma;
			(void)execv("/proc/self/exe", argv + begin);
			perror("bell: exec");
			return 1;
		}
		if (i > begin)
			good = run(argv + begin);
		begin = i + 1;
	}
	return !good;
}
