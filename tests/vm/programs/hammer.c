// SPDX-License-Identifier: Apache-2.0
/*
 * Uses a card as hard as it can, and looks at every answer:
 *
 *	hammer NODE [procs=N] [loops=N] [calls=N] [pause=US] [until=FILE]
 *
 * Each of N processes opens NODE, makes `calls` (4) ioctls, maps and unmaps the card, closes; again
 * and again, `loops` times or until FILE exists, with a pause of so many microseconds between. The
 * driver numbers the calls that it serves: a number that does not grow is a call that was served
 * twice or never. Prints "opens=N ioctls=N maps=N failed=N errno=NAME wrong=N"; ends with 1 if
 * something failed or was wrong. A line "working" says that every process has been through once.
 */
#include <errno.h>
#include <fcntl.h>
#include <stdatomic.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/mman.h>
#include <sys/wait.h>
#include <unistd.h>

#include "tests/fakegpu/fakegpu.h"

static struct sums {
	_Atomic unsigned long opens, ioctls, maps, failed, wrong;
	_Atomic unsigned int working;
	_Atomic int first_errno;
} * sums;

static const char *node, *until;
static unsigned long loops, calls = 4, pause_us;

static void failed(void)
{
	int none = 0;

	atomic_compare_exchange_strong(&sums->first_errno, &none, errno);
	sums->failed++;
}

static void once(unsigned long token, uint64_t *last)
{
	size_t page = (size_t)sysconf(_SC_PAGESIZE);
	int fd = open(node, O_RDWR | O_CLOEXEC);
	void *at;

	sums->opens++;
	if (fd < 0) {
		failed();
		return;
	}
	for (unsigned long i = 0; i < calls; i++) {
		struct fakegpu_echo args = { .token = token };

		sums->ioctls++;
		if (ioctl(fd, FAKEGPU_WORK_ECHO, &args) < 0)
			failed();
		else if (args.serial <= *last || args.token != token)
			sums->wrong++;
		else
			*last = args.serial;
	}
	sums->maps++;
	at = mmap(NULL, page, PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0);
	if (at == MAP_FAILED)
		failed();
	else if (munmap(at, page) < 0)
		failed();
	if (close(fd) < 0)
		failed();
}

static void work(unsigned long number)
{
	uint64_t last = 0;

	for (unsigned long i = 0; !loops || i < loops; i++) {
		once(number << 32 | i, &last);
		if (!i)
			sums->working++;
		if (until && access(until, F_OK) == 0)
			break;
		if (pause_us)
			usleep((useconds_t)pause_us);
	}
}

int main(int argc, char **argv)
{
	unsigned int procs = 1;

	if (argc < 2) {
		fputs("usage: hammer NODE [procs=N] [loops=N] [calls=N] [pause=US] [until=FILE]\n",
		      stderr);
		return 2;
	}
	node = argv[1];
	for (int i = 2; i < argc; i++) {
		char *value = strchr(argv[i], '=');

		if (value && strncmp(argv[i], "procs=", 6) == 0)
			procs = (unsigned int)atoi(value + 1);
		else if (value && strncmp(argv[i], "loops=", 6) == 0)
			loops = strtoul(value + 1, NULL, 0);
		else if (value && strncmp(argv[i], "calls=", 6) == 0)
			calls = strtoul(value + 1, NULL, 0);
		else if (value && strncmp(argv[i], "pause=", 6) == 0)
			pause_us = strtoul(value + 1, NULL, 0);
		else if (value && strncmp(argv[i], "until=", 6) == 0)
			until = value + 1;
	}
	sums = mmap(NULL, sizeof(*sums), PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
	if (sums == MAP_FAILED)
		return 2;
	for (unsigned int i = 0; i < procs; i++) {
		pid_t pid = fork();

		if (pid < 0)
			return 2;
		if (pid == 0) {
			work(i + 1);
			_exit(0);
		}
	}
	while (sums->working < procs)
		usleep(1000);
	puts("working");
	(void)fflush(stdout);
	while (wait(NULL) > 0)
		;
	printf("opens=%lu ioctls=%lu maps=%lu failed=%lu errno=%s wrong=%lu\n", sums->opens,
	       sums->ioctls, sums->maps, sums->failed,
	       sums->first_errno ? strerrorname_np(sums->first_errno) : "0", sums->wrong);
	return sums->failed || sums->wrong;
}
