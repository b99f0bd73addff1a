// SPDX-License-Identifier: Apache-2.0
/*
 * Opens a node in the ways that aren't open(2):
 *
 *	openers WAY NODE [signals=MS] [sqes=N]
 *
 *	nonblock  open with O_NONBLOCK
 *	openat2   that system call
 *	inline    io_uring: in the system call that submits it
 *	async     io_uring: by a worker (IOSQE_ASYNC)
 *	sqpoll    io_uring: by the kernel's polling thread
 *	task      io_uring: in the caller's context at the end of whatever system call it makes,
 *	          as the second of two linked requests. It opens what is not there meanwhile.
 *
 * signals: an alarm that a handler serves, every so many milliseconds. sqes: how many at once.
 * Prints "WAY ok opened=N signals=N others=N" (others: what `task` did besides); or "WAY failed
 * errno=NAME" and ends with 1. Each request has to complete once: "twice" otherwise. Exit status
 * 77: this kernel has no such way.
 */
#include <errno.h>
#include <fcntl.h>
#include <linux/io_uring.h>
#include <linux/openat2.h>
#include <poll.h>
#include <signal.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/syscall.h>
#include <sys/time.h>
#include <unistd.h>

#define SKIPPED 77
#define MOST 64

static const char *way;
static volatile sig_atomic_t alarms;
static unsigned long others;

static void on_alarm(int sig)
{
	(void)sig;
	alarms++;
}

static void __attribute__((noreturn)) failed(int code)
{
	printf("%s failed errno=%s\n", way, strerrorname_np(code));
	exit(1);
}

static void __attribute__((noreturn)) opened(unsigned int n)
{
	printf("%s ok opened=%u signals=%d others=%lu\n", way, n, (int)alarms, others);
	exit(0);
}

/* ---- io_uring by its system calls. */

struct ring {
	int fd;
	unsigned int flags;
	char *at; /* both queues are in one mapping */
	struct io_uring_params p;
	struct io_uring_sqe *sqes;
	unsigned int queued; /* not submitted yet */
};

static struct ring ring;

static _Atomic unsigned int *word(unsigned int offset)
{
	return (_Atomic unsigned int *)(void *)(ring.at + offset);
}

static void *map(size_t length, off_t offset)
{
	void *at = mmap(NULL, length, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_POPULATE, ring.fd,
			offset);

	if (at == MAP_FAILED)
		failed(errno);
	return at;
}

static void ring_open(unsigned int flags)
{
	size_t sq, cq;

	ring.p.flags = flags;
	ring.p.sq_thread_idle = 100;
	ring.flags = flags;
	ring.fd = (int)syscall(SYS_io_uring_setup, 2 * MOST, &ring.p);
	if (ring.fd < 0 && errno == ENOSYS)
		exit(SKIPPED);
	if (ring.fd < 0)
		failed(errno);
	sq = ring.p.sq_off.array + ring.p.sq_entries * sizeof(unsigned int);
	cq = ring.p.cq_off.cqes + ring.p.cq_entries * sizeof(struct io_uring_cqe);
	ring.at = map(sq > cq ? sq : cq, IORING_OFF_SQ_RING);
	ring.sqes = map(ring.p.sq_entries * sizeof(struct io_uring_sqe), IORING_OFF_SQES);
}

static struct io_uring_sqe *ring_add(unsigned int opcode)
{
	unsigned int tail = *word(ring.p.sq_off.tail) + ring.queued;
	unsigned int i = tail & *word(ring.p.sq_off.ring_mask);
	struct io_uring_sqe *sqe = &ring.sqes[i];

	memset(sqe, 0, sizeof(*sqe));
	sqe->opcode = (uint8_t)opcode;
	*(word(ring.p.sq_off.array) + i) = i;
	ring.queued++;
	return sqe;
}

static struct io_uring_sqe *ring_add_open(const char *node, unsigned int id)
{
	struct io_uring_sqe *sqe = ring_add(IORING_OP_OPENAT);

	sqe->fd = AT_FDCWD;
	sqe->addr = (uintptr_t)node;
	sqe->open_flags = O_RDWR | O_CLOEXEC;
	sqe->user_data = id;
	return sqe;
}

static int ring_enter(unsigned int submit, unsigned int wait, unsigned int flags)
{
	return (int)syscall(SYS_io_uring_enter, ring.fd, submit, wait, flags, NULL, 0);
}

static void ring_submit(void)
{
	unsigned int n = ring.queued;

	atomic_fetch_add(word(ring.p.sq_off.tail), n);
	ring.queued = 0;
	if (ring.flags & IORING_SETUP_SQPOLL) {
		if (ring_enter(0, 0, IORING_ENTER_SQ_WAKEUP) < 0)
			failed(errno);
		return;
	}
	while (n) {
		int done = ring_enter(n, 0, 0);

		if (done < 0 && errno != EINTR)
			failed(errno);
		n -= done > 0 ? (unsigned int)done : 0;
	}
}

/* Takes what is there, and counts it by its user_data. */
static unsigned int ring_take(unsigned int seen[2 * MOST])
{
	unsigned int head = *word(ring.p.cq_off.head), n = 0;

	for (; head != atomic_load(word(ring.p.cq_off.tail)); head++, n++) {
		const struct io_uring_cqe *cqe = (void *)(ring.at + ring.p.cq_off.cqes);

		cqe += head & *word(ring.p.cq_off.ring_mask);
		if (cqe->res < 0)
			failed(-cqe->res);
		if (seen[cqe->user_data]++) {
			printf("%s twice\n", way);
			exit(1);
		}
	}
	atomic_store(word(ring.p.cq_off.head), head);
	return n;
}

static void ring_wait(unsigned int want)
{
	unsigned int seen[2 * MOST] = { 0 }, n = 0;
	int tries;

	while ((n += ring_take(seen)) < want) {
		if (strcmp(way, "task") == 0) {
			/* Its work is done at the end of a system call: nearly always of this. */
			if (open("/not/there", O_RDONLY | O_CLOEXEC) >= 0 || errno != ENOENT)
				failed(errno);
			others++;
		} else if (ring_enter(0, 1, IORING_ENTER_GETEVENTS) < 0 && errno != EINTR) {
			failed(errno);
		}
	}
	for (tries = 0; tries < 20; tries++) {
		poll(NULL, 0, 5);
		ring_take(seen);
	}
}

static unsigned int by_ring(const char *node, unsigned int n)
{
	struct io_uring_sqe *sqe;
	int ends[2];

	if (pipe(ends) < 0)
		failed(errno);
	ring_open(strcmp(way, "sqpoll") == 0 ? IORING_SETUP_SQPOLL : 0);
	for (unsigned int i = 0; i < n; i++) {
		if (strcmp(way, "task") == 0) {
			sqe = ring_add(IORING_OP_POLL_ADD);
			sqe->fd = ends[0];
			sqe->poll_events = POLLIN;
			sqe->flags = IOSQE_IO_LINK;
			sqe->user_data = MOST + i;
		}
		sqe = ring_add_open(node, i);
		if (strcmp(way, "async") == 0)
			sqe->flags |= IOSQE_ASYNC;
	}
	ring_submit();
	if (strcmp(way, "task") == 0) {
		/* Another process makes the first ones ready, at any time. */
		pid_t pid = fork();

		if (pid == 0) {
			usleep(50000);
			_exit(write(ends[1], "x", 1) != 1);
		}
		ring_wait(2 * n);
	} else {
		ring_wait(n);
	}
	return n;
}

static unsigned int by_call(const char *node)
{
	struct open_how how = { .flags = O_RDWR | O_CLOEXEC };
	int fd;

	if (strcmp(way, "openat2") == 0)
		fd = (int)syscall(SYS_openat2, AT_FDCWD, node, &how, sizeof(how));
	else
		fd = open(node, O_RDWR | O_CLOEXEC | O_NONBLOCK);
	if (fd < 0)
		failed(errno);
	return 1;
}

static void start_alarms(unsigned int ms)
{
	struct itimerval every = { .it_interval.tv_usec = ms * 1000,
				   .it_value.tv_usec = ms * 1000 };
	struct sigaction action = { .sa_handler = on_alarm };

	if (ms &&
	    (sigaction(SIGALRM, &action, NULL) < 0 || setitimer(ITIMER_REAL, &every, NULL) < 0))
		failed(errno);
}

int main(int argc, char **argv)
{
	unsigned int signals = 0, n = 1;

	for (int i = 3; i < argc; i++) {
		if (strncmp(argv[i], "signals=", 8) == 0)
			signals = (unsigned int)atoi(argv[i] + 8);
		else if (strncmp(argv[i], "sqes=", 5) == 0)
			n = (unsigned int)atoi(argv[i] + 5);
	}
	if (argc < 3 || n < 1 || n > MOST) {
		fputs("usage: openers WAY NODE [signals=MS] [sqes=N]\n", stderr);
		return 2;
	}
	way = argv[1];
	start_alarms(signals);
	if (strcmp(way, "nonblock") == 0 || strcmp(way, "openat2") == 0)
		opened(by_call(argv[2]));
	if (strcmp(way, "inline") == 0 || strcmp(way, "async") == 0 || strcmp(way, "sqpoll") == 0 ||
	    strcmp(way, "task") == 0)
		opened(by_ring(argv[2], n));
	fputs("openers: no such way\n", stderr);
	return 2;
}
