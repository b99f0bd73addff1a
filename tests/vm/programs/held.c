// SPDX-License-Identifier: Apache-2.0
/*
 * Makes calls of a card's driver from many threads, and says what became of each:
 *
 *	held KEY=VALUE...
 *
 *	node=NODE       the card (/dev/fakegpu0)
 *	calls=KIND,...  what the threads call, in turns (ioctl); see kinds below
 *	threads=N       how many threads, each makes one call (1)
 *	token=N         of the first thread, the others' count up: each brings its token to the card
 *			by FAKEGPU_WORK_ECHO, by that call itself or through the file that it opened
 *	ready=FILE      made when all threads stand ready
 *	go=FIFO         they call as soon as somebody opens that for writing
 *	signals=MS      every MS each thread gets SIGUSR1, which has a handler
 *	sa=restart|none with SA_RESTART or without (restart)
 *	seccomp=1       under a filter that lets this very ioctl pass, and kills for restart_syscall
 *	cgroups=DIR,... the threads move there, in turns, by cgroup.threads or tasks
 *	leader=exit     the first thread ends before the calls
 *	aside=FILE      another thread forks, execs, makes and joins threads and maps memory beside
 *			the calls, then makes FILE
 *	exec=FIFO       another thread waits for a writer of FIFO, then execs this program with
 *			what follows "then", which ends the calls
 *	close=FIFO      another thread waits for a writer of FIFO, closes the file of the ioctls,
 *			and makes FIFO.done
 *	make=FILE       only makes FILE
 *
 * A line for each call that failed, and one for all:
 *	pid=HOST'S calls=N ok=N failed=N opens=N handlers=N least=N us=N
 * opens: files opened by calls; handlers: run while a thread was in its call; least: by one thread;
 * us: the longest call. Exit status 0 if none failed.
 */
#include <errno.h>
#include <fcntl.h>
#include <linux/audit.h>
#include <linux/filter.h>
#include <linux/io_uring.h>
#include <linux/openat2.h>
#include <linux/seccomp.h>
#include <poll.h>
#include <pthread.h>
#include <sched.h>
#include <signal.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
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

#include "tests/fakegpu/fakegpu.h"

#define MAX_THREADS 1024
#define STACK (64 << 10)

static const char *node = "/dev/fakegpu0";
static int node_fd;

struct caller {
	pthread_t thread;
	const struct kind *kind;
	uint64_t token;
	const char *cgroup;
	uint64_t us;
	volatile uint64_t handlers;
	unsigned int number;
	pid_t tid;
	int fd; /* that the call opened, or -1 */
	int err;
	volatile bool calling;
};

static struct caller callers[MAX_THREADS];
static unsigned int n_callers = 1;
static __thread struct caller *self;

/* Several hundred threads on two emulated processors: none of them may poll. */
static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static pthread_cond_t changed = PTHREAD_COND_INITIALIZER;
static unsigned int n_ready, n_done;
static bool gone;

static void __attribute__((noreturn)) die(const char *what)
{
	(void)fprintf(stderr, "held: %s: %s\n", what, strerror(errno));
	exit(2);
}

static uint64_t now_us(void)
{
	struct timespec t;

	(void)clock_gettime(CLOCK_MONOTONIC, &t);
	return (uint64_t)t.tv_sec * 1000000 + (uint64_t)t.tv_nsec / 1000;
}

static void sleep_us(unsigned int us)
{
	struct timespec t = { .tv_sec = us / 1000000, .tv_nsec = (long)(us % 1000000) * 1000 };

	while (nanosleep(&t, &t) < 0 && errno == EINTR)
		;
}

static void make_file(const char *path)
{
	int fd = open(path, O_WRONLY | O_CREAT | O_CLOEXEC, 0644);

	if (fd < 0 || close(fd) < 0)
		die(path);
}

static void wait_fifo(const char *path)
{
	int fd;

	while ((fd = open(path, O_RDONLY | O_CLOEXEC)) < 0)
		if (errno != EINTR)
			die(path);
	(void)close(fd);
}

static void one_more(unsigned int *n)
{
	(void)pthread_mutex_lock(&lock);
	(*n)++;
	(void)pthread_cond_broadcast(&changed);
	(void)pthread_mutex_unlock(&lock);
}

static void wait_gone(void)
{
	(void)pthread_mutex_lock(&lock);
	while (!gone)
		(void)pthread_cond_wait(&changed, &lock);
	(void)pthread_mutex_unlock(&lock);
}

/* ---- The kinds of calls: 0 or -1 with errno. */

static int echo(int fd)
{
	struct fakegpu_echo args = { .token = self->token };

	return ioctl(fd, FAKEGPU_WORK_ECHO, &args);
}

static int opened(int fd)
{
	self->fd = fd;
	return fd < 0 ? -1 : 0;
}

static int call_ioctl(void)
{
	return echo(node_fd);
}

static int call_open(void)
{
	return opened(open(node, O_RDWR | O_CLOEXEC));
}

static int call_creat(void)
{
	/* NOLINTNEXTLINE(android-cloexec-creat): this very call is what is tried. */
	return opened(creat(node, 0600));
}

static int call_openat2(void)
{
	struct open_how how = { .flags = O_RDWR | O_CLOEXEC };

	return opened((int)syscall(SYS_openat2, AT_FDCWD, node, &how, sizeof(how)));
}

static int call_nonblock(void)
{
	return opened(open(node, O_RDWR | O_CLOEXEC | O_NONBLOCK));
}

static int echo_as_child(void *data)
{
	self = data;
	return echo(node_fd) < 0 ? errno : 0;
}

/* What vfork() does: the child has our memory, and we sleep until it ends. */
static int call_vfork(void)
{
	char *stack = malloc(STACK);
	int status = 0;
	pid_t child;

	if (!stack)
		return -1;
	child = clone(echo_as_child, stack + STACK, CLONE_VM | CLONE_VFORK | SIGCHLD, self);
	while (child > 0 && waitpid(child, &status, 0) < 0)
		if (errno != EINTR)
			child = -1;
	free(stack);
	if (child < 0 || status == 0)
		return child < 0 ? -1 : 0;
	errno = WIFEXITED(status) ? WEXITSTATUS(status) : EIO;
	return -1;
}

static int call_mmap(void)
{
	void *at = mmap(NULL, 4096, PROT_READ | PROT_WRITE, MAP_SHARED, node_fd, 0);

	return at == MAP_FAILED ? -1 : munmap(at, 4096);
}

/* None of these is a touch. */
static int call_others(void)
{
	struct pollfd p = { .fd = node_fd, .events = POLLIN };
	char c = 'x';
	int fd = dup(node_fd);

	if (fd < 0 || poll(&p, 1, 1000) != 1 || read(fd, &c, 1) != 0 || write(fd, &c, 1) != 1)
		return -1;
	return close(fd);
}

#ifdef __x86_64__
/* As a 32-bit program calls the kernel; what it points to must lie below 4 GiB. */
static long syscall32(long nr, unsigned long a, unsigned long b, unsigned long c, unsigned long d)
{
	long ret;

	__asm__ volatile("int $0x80"
			 : "=a"(ret)
			 : "a"(nr), "b"(a), "c"(b), "d"(c), "S"(d)
			 : "memory", "r8", "r9", "r10", "r11");
	if (ret >= 0)
		return ret;
	errno = (int)-ret;
	return -1;
}

static void *low_copy(const void *what, size_t size)
{
	void *low = mmap(NULL, 4096, PROT_READ | PROT_WRITE,
			 MAP_PRIVATE | MAP_ANONYMOUS | MAP_32BIT, -1, 0);

	if (low == MAP_FAILED)
		die("memory below 4 GiB");
	return memcpy(low, what, size);
}

static int call_ioctl32(void)
{
	struct fakegpu_echo args = { .token = self->token };

	return (int)syscall32(54, (unsigned long)node_fd, FAKEGPU_WORK_ECHO,
			      (unsigned long)low_copy(&args, sizeof(args)), 0);
}

static int call_open32(void)
{
	return opened(
		(int)syscall32(5, (unsigned long)low_copy(node, strlen(node) + 1), O_RDWR, 0, 0));
}

static int call_openat32(void)
{
	return opened((int)syscall32(295, (unsigned long)AT_FDCWD,
				     (unsigned long)low_copy(node, strlen(node) + 1), O_RDWR, 0));
}
#else
static int call_ioctl32(void)
{
	errno = ENOSYS;
	return -1;
}
#define call_open32 call_ioctl32
#define call_openat32 call_ioctl32
#endif

/* ---- io_uring: one ring a call. */

static void *ring_map(int ring, size_t size, off_t what)
{
	void *at = mmap(NULL, size, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_POPULATE, ring, what);

	if (at == MAP_FAILED)
		die("map a ring");
	return at;
}

static int ring_open(unsigned int sqe_flags)
{
	struct io_uring_params p = { 0 };
	int ring = (int)syscall(SYS_io_uring_setup, 1, &p);
	struct io_uring_sqe *sqe;
	struct io_uring_cqe *cqe;
	char *sq, *cq;

	if (ring < 0)
		return -1;
	sq = ring_map(ring, p.sq_off.array + sizeof(uint32_t), (off_t)IORING_OFF_SQ_RING);
	cq = ring_map(ring, p.cq_off.cqes + p.cq_entries * sizeof(*cqe), (off_t)IORING_OFF_CQ_RING);
	sqe = ring_map(ring, sizeof(*sqe), (off_t)IORING_OFF_SQES);
	memset(sqe, 0, sizeof(*sqe));
	sqe->opcode = IORING_OP_OPENAT;
	sqe->flags = (uint8_t)sqe_flags;
	sqe->fd = AT_FDCWD;
	sqe->addr = (uint64_t)(uintptr_t)node;
	sqe->open_flags = O_RDWR | O_CLOEXEC;
	*(uint32_t *)(void *)(sq + p.sq_off.array) = 0;
	__atomic_store_n((uint32_t *)(void *)(sq + p.sq_off.tail), 1, __ATOMIC_RELEASE);
	if (syscall(SYS_io_uring_enter, ring, 1, 1, IORING_ENTER_GETEVENTS, NULL, 0) < 0 &&
	    errno != EINTR)
		return -1;
	/* A signal ends the wait for the answer, not the call. */
	while (__atomic_load_n((uint32_t *)(void *)(cq + p.cq_off.tail), __ATOMIC_ACQUIRE) == 0)
		(void)syscall(SYS_io_uring_enter, ring, 0, 1, IORING_ENTER_GETEVENTS, NULL, 0);
	cqe = (struct io_uring_cqe *)(void *)(cq + p.cq_off.cqes);
	(void)close(ring);
	if (cqe->res >= 0)
		return opened(cqe->res);
	errno = -cqe->res;
	return -1;
}

static int call_uring(void)
{
	return ring_open(0);
}

static int call_async(void)
{
	return ring_open(IOSQE_ASYNC);
}

static const struct kind {
	const char *name;
	int (*call)(void);
} kinds
	[] = {
		{ "ioctl", call_ioctl },
		{ "open", call_open },
		{ "openat2", call_openat2 },
		{ "creat", call_creat },
		{ "nonblock", call_nonblock }, /* an open that can't be made anew */
		{ "vfork", call_vfork },
		{ "ioctl32", call_ioctl32 },
		{ "open32", call_open32 },
		{ "openat32", call_openat32 },
		{ "uring", call_uring }, /* an open in the caller's own context */
		{ "async", call_async }, /* an open by a worker */
		{ "mmap", call_mmap },
		{ "others", call_others }, /* poll, read, write, close */
	};

static const struct kind *find_kind(const char *name)
{
	for (size_t i = 0; i < sizeof(kinds) / sizeof(kinds[0]); i++)
		if (strcmp(kinds[i].name, name) == 0)
			return &kinds[i];
	errno = EINVAL;
	die(name);
}

/* ---- The threads. */

static const char *go;

static void on_signal(int signo)
{
	(void)signo;
	if (self && self->calling)
		self->handlers++;
}

/* Moves the thread that calls into a cgroup. */
static void enter_cgroup(const char *cgroup)
{
	static const char *const files[] = { "cgroup.threads", "tasks" };
	char path[256];
	int fd = -1;

	for (size_t i = 0; i < 2 && fd < 0; i++) {
		(void)snprintf(path, sizeof(path), "%s/%s", cgroup, files[i]);
		fd = open(path, O_WRONLY | O_CLOEXEC);
	}
	if (fd < 0 || write(fd, "0", 1) != 1)
		die(path);
	(void)close(fd);
}

static void *call_once(void *data)
{
	uint64_t begin;
	char name[16];

	self = data;
	self->tid = (pid_t)syscall(SYS_gettid);
	(void)snprintf(name, sizeof(name), "held-%u", self->number);
	(void)prctl(PR_SET_NAME, name);
	if (self->cgroup)
		enter_cgroup(self->cgroup);
	one_more(&n_ready);
	wait_gone();

	begin = now_us();
	self->calling = true;
	self->err = self->kind->call() < 0 ? errno : 0;
	self->calling = false;
	self->us = now_us() - begin;
	if (self->fd >= 0 && !self->err) {
		if (echo(self->fd) < 0)
			self->err = errno;
		(void)close(self->fd);
	}
	__atomic_add_fetch(&n_done, 1, __ATOMIC_SEQ_CST);
	return NULL;
}

static void start(void *(*run)(void *), void *data, pthread_t *ret)
{
	pthread_attr_t attr;

	(void)pthread_attr_init(&attr);
	(void)pthread_attr_setstacksize(&attr, STACK);
	errno = pthread_create(ret, &attr, run, data);
	if (errno)
		die("start a thread");
}

static unsigned int signal_ms;

static void *send_signals(void *data)
{
	pid_t pid = getpid();

	(void)data;
	wait_gone();
	while (__atomic_load_n(&n_done, __ATOMIC_SEQ_CST) < n_callers) {
		for (unsigned int i = 0; i < n_callers; i++)
			if (callers[i].calling)
				(void)syscall(SYS_tgkill, pid, callers[i].tid, SIGUSR1);
		sleep_us(signal_ms * 1000);
	}
	return NULL;
}

static const char *aside, *exec_fifo, *close_fifo;
static char **exec_argv;

static void *nothing(void *data)
{
	return data;
}

/* Runs this program, to make a file. */
static void spawn(const char *path)
{
	char arg[256];
	int status;
	pid_t child;

	(void)snprintf(arg, sizeof(arg), "make=%s", path);
	child = fork();
	if (child == 0) {
		(void)execl("/proc/self/exe", "held", arg, NULL);
		_exit(127);
	}
	if (child < 0 || waitpid(child, &status, 0) != child || status)
		die("fork and exec");
}

static void *be_busy(void *data)
{
	pthread_t thread;
	void *at;

	(void)data;
	wait_gone();
	for (int i = 0; i < 3; i++) {
		start(nothing, NULL, &thread);
		(void)pthread_join(thread, NULL);
		at = mmap(NULL, 1 << 20, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1,
			  0);
		if (at == MAP_FAILED || munmap(at, 1 << 20) < 0)
			die("map memory");
		sleep_us(20000);
	}
	spawn(aside);
	return NULL;
}

static void *exec_later(void *data)
{
	(void)data;
	wait_fifo(exec_fifo);
	(void)execv("/proc/self/exe", exec_argv);
	die("exec");
}

static void *close_later(void *data)
{
	char done[256];

	(void)data;
	wait_fifo(close_fifo);
	(void)close(node_fd);
	(void)snprintf(done, sizeof(done), "%s.done", close_fifo);
	make_file(done);
	return NULL;
}

/* ---- seccomp: this ioctl of a card and no other, no restart_syscall, all else. */

static void filter(void)
{
	static struct sock_filter code[] = {
		BPF_STMT(BPF_LD | BPF_W | BPF_ABS, offsetof(struct seccomp_data, nr)),
		BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, SYS_restart_syscall, 3, 0),
		BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, SYS_ioctl, 0, 3),
		BPF_STMT(BPF_LD | BPF_W | BPF_ABS, offsetof(struct seccomp_data, args[1])),
		BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, FAKEGPU_WORK_ECHO, 1, 0),
		BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_KILL_PROCESS),
		BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ALLOW),
	};
	static struct sock_fprog prog = { .len = sizeof(code) / sizeof(code[0]), .filter = code };

	if (prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0) < 0 ||
	    syscall(SYS_seccomp, SECCOMP_SET_MODE_FILTER, SECCOMP_FILTER_FLAG_TSYNC, &prog) < 0)
		die("seccomp");
}

/* ---- What was asked for. */

static const char *ready, *cgroups, *calls = "ioctl";
static uint64_t first_token;
static bool with_seccomp, leader_exits;
static int sa_flags = SA_RESTART;

/* Item number @i of a list with commas, from the front again behind its end; to be freed. */
static char *item(const char *list, unsigned int i)
{
	const char *one = list;
	unsigned int n = 1;

	for (const char *c = list; *c; c++)
		n += *c == ',';
	for (i %= n; i > 0; i--)
		one = strchr(one, ',') + 1;
	return strndup(one, strcspn(one, ","));
}

static void set_up(void)
{
	struct sigaction sa = { .sa_handler = on_signal, .sa_flags = sa_flags };

	(void)sigaction(SIGUSR1, &sa, NULL);
	node_fd = open(node, O_RDWR | O_CLOEXEC);
	if (node_fd < 0)
		die(node);
	for (unsigned int i = 0; i < n_callers; i++) {
		char *name = item(calls, i);

		callers[i] = (struct caller){ .number = i,
					      .kind = find_kind(name),
					      .token = first_token + i,
					      .cgroup = cgroups ? item(cgroups, i) : NULL,
					      .fd = -1 };
		free(name);
		start(call_once, &callers[i], &callers[i].thread);
	}
}

static int report(void)
{
	unsigned int failed = 0, opens = 0;
	uint64_t handlers = 0, least = UINT64_MAX, us = 0;
	char pid[16] = "";

	/* By the host's /proc: its number for us. */
	if (readlink("/proc/self", pid, sizeof(pid) - 1) < 0)
		die("/proc/self");
	for (unsigned int i = 0; i < n_callers; i++) {
		const struct caller *c = &callers[i];

		opens += c->fd >= 0;
		handlers += c->handlers;
		least = c->handlers < least ? c->handlers : least;
		us = c->us > us ? c->us : us;
		if (!c->err)
			continue;
		failed++;
		printf("thread=%u kind=%s errno=%s us=%llu\n", i, c->kind->name,
		       strerrorname_np(c->err), (unsigned long long)c->us);
	}
	printf("pid=%s calls=%u ok=%u failed=%u opens=%u handlers=%llu least=%llu us=%llu\n", pid,
	       n_callers, n_callers - failed, failed, opens, (unsigned long long)handlers,
	       (unsigned long long)least, (unsigned long long)us);
	(void)fflush(stdout);
	return failed ? 1 : 0;
}

static void *direct(void *data)
{
	pthread_t thread;

	(void)data;
	set_up();
	if (signal_ms)
		start(send_signals, NULL, &thread);
	if (aside)
		start(be_busy, NULL, &thread);
	if (exec_fifo)
		start(exec_later, NULL, &thread);
	if (close_fifo)
		start(close_later, NULL, &thread);
	if (with_seccomp)
		filter();
	(void)pthread_mutex_lock(&lock);
	while (n_ready < n_callers)
		(void)pthread_cond_wait(&changed, &lock);
	(void)pthread_mutex_unlock(&lock);
	if (ready)
		make_file(ready);
	if (go)
		wait_fifo(go);
	(void)pthread_mutex_lock(&lock);
	gone = true;
	(void)pthread_cond_broadcast(&changed);
	(void)pthread_mutex_unlock(&lock);
	for (unsigned int i = 0; i < n_callers; i++)
		(void)pthread_join(callers[i].thread, NULL);
	exit(report());
}

static unsigned int number(const char *s)
{
	return (unsigned int)strtoul(s, NULL, 0);
}

static void argument(const char *key, const char *value)
{
	if (strcmp(key, "node") == 0)
		node = value;
	else if (strcmp(key, "calls") == 0)
		calls = value;
	else if (strcmp(key, "threads") == 0)
		n_callers = number(value);
	else if (strcmp(key, "token") == 0)
		first_token = number(value);
	else if (strcmp(key, "ready") == 0)
		ready = value;
	else if (strcmp(key, "go") == 0)
		go = value;
	else if (strcmp(key, "signals") == 0)
		signal_ms = number(value);
	else if (strcmp(key, "sa") == 0)
		sa_flags = strcmp(value, "restart") == 0 ? SA_RESTART : 0;
	else if (strcmp(key, "seccomp") == 0)
		with_seccomp = number(value);
	else if (strcmp(key, "cgroups") == 0)
		cgroups = value;
	else if (strcmp(key, "leader") == 0)
		leader_exits = strcmp(value, "exit") == 0;
	else if (strcmp(key, "aside") == 0)
		aside = value;
	else if (strcmp(key, "exec") == 0)
		exec_fifo = value;
	else if (strcmp(key, "close") == 0)
		close_fifo = value;
	else
		key = NULL;
	errno = EINVAL;
	if (!key || !n_callers || n_callers > MAX_THREADS)
		die(value);
}

int main(int argc, char **argv)
{
	pthread_t director;

	for (int i = 1; i < argc; i++) {
		char *value = strchr(argv[i], '=');

		if (strcmp(argv[i], "then") == 0) {
			argv[i] = argv[0];
			exec_argv = argv + i;
			break;
		}
		errno = EINVAL;
		if (!value)
			die(argv[i]);
		*value++ = '\0';
		if (strcmp(argv[i], "make") == 0) {
			make_file(value);
			return 0;
		}
		argument(argv[i], value);
	}
	start(direct, NULL, &director);
	if (leader_exits)
		pthread_exit(NULL);
	(void)pthread_join(director, NULL);
	return 2;
}
